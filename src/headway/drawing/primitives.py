"""What a drawing is made of: texts, paths, polygons and rectangles, in the order they are painted.

Lengths are CSS pixels, x to the right and y down. A drawing is independent of the file format: `svg` and
`matplotlib_export` paint the same marks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

Point: TypeAlias = tuple[float, float]
Anchor: TypeAlias = Literal["start", "middle", "end"]

CIRCLE = 0.5523  # where the control points of a quarter of a circle are, as a share of the radius


@dataclass(frozen=True, slots=True)
class Text:
    """Text whose baseline has its `anchor` at (x, y); `rotation` is in degrees, clockwise.

    A `halo` is drawn around it in the colour of the background, so that it is readable on top of lines.
    """

    x: float
    y: float
    text: str
    size: float
    colour: str
    anchor: Anchor = "middle"
    bold: bool = False
    halo: bool = False
    rotation: float = 0.0


class Move(NamedTuple):
    """Lift the pen."""

    to: Point


class Line(NamedTuple):
    """A straight line."""

    to: Point


class Cubic(NamedTuple):
    """A cubic Bézier curve with two control points."""

    first: Point
    second: Point
    to: Point


Segment: TypeAlias = Move | Line | Cubic


@dataclass(frozen=True, slots=True)
class Path:
    """A line, stroked but not filled; the first segment is a `Move`. `dash` is (drawn, left out)."""

    segments: tuple[Segment, ...]
    colour: str
    width: float
    dash: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Polygon:
    """A filled shape."""

    points: tuple[Point, ...]
    colour: str


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle with its upper left corner at (x, y), filled, stroked, or both."""

    x: float
    y: float
    width: float
    height: float
    fill: str | None
    stroke: str | None = None
    stroke_width: float = 1.0


Mark: TypeAlias = Text | Path | Polygon | Rectangle


@dataclass(frozen=True, slots=True)
class Group:
    """Marks that belong together; `title` is what a browser shows when the pointer rests on them."""

    title: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Marks on a sheet whose upper left corner is (0, 0); `title` and `description` are for those who cannot see it."""

    width: float
    height: float
    marks: tuple[Mark | Group, ...]
    title: str
    description: str

    def flat(self) -> Iterator[Mark]:
        """The marks without their groups."""
        for mark in self.marks:
            if isinstance(mark, Group):
                yield from mark.marks
            else:
                yield mark


def corner(start: Point, end: Point, *, level: bool = False) -> Cubic:
    """A quarter of an ellipse that begins upright and ends level, or begins `level` and ends upright."""
    (x0, y0), (x1, y1) = start, end
    dx, dy = (x1 - x0) * CIRCLE, (y1 - y0) * CIRCLE
    if level:
        return Cubic((x0 + dx, y0), (x1, y1 - dy), end)
    return Cubic((x0, y0 + dy), (x1 - dx, y1), end)


def disc(middle: Point, radius: float, colour: str, *, corners: int) -> Polygon:
    """A filled circle, as a polygon with this many corners."""
    x, y = middle
    angles = [number * math.tau / corners for number in range(corners)]
    return Polygon(tuple((x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles), colour)


def mixed(pale: str, full: str, share: float) -> str:
    """The colour `share` of the way from one "#rrggbb" to the other.

    >>> mixed("#ffffff", "#000000", 0.2)
    '#cccccc'
    """
    share = min(1.0, max(0.0, share))
    channels = (
        round(int(pale[i : i + 2], 16) * (1 - share) + int(full[i : i + 2], 16) * share) for i in range(1, 7, 2)
    )
    return "#" + "".join(f"{channel:02x}" for channel in channels)
