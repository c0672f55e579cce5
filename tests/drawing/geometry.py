"""What a drawing covers, measured on its marks: curves as polylines, texts and shapes as boxes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from headway.drawing.primitives import Cubic, Mark, Move, Path, Point, Polygon, Rectangle, Text
from headway.drawing.text_width import text_width

STEPS = 8


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box, room: float = 0.0) -> bool:
        across = self.left < other.right + room and other.left < self.right + room
        return across and self.top < other.bottom + room and other.top < self.bottom + room

    def holds(self, other: Box) -> bool:
        across = self.left <= other.left and other.right <= self.right
        return across and self.top <= other.top and other.bottom <= self.bottom


def polylines(path: Path) -> Iterator[list[Point]]:
    """The strokes of a path, from pen down to pen up, curves cut into straight pieces."""
    stroke: list[Point] = []
    for segment in path.segments:
        if isinstance(segment, Move):
            if len(stroke) > 1:
                yield stroke
            stroke = [segment.to]
        elif isinstance(segment, Cubic):
            start = stroke[-1]
            stroke += [_bezier(start, segment, step / STEPS) for step in range(1, STEPS + 1)]
        else:
            stroke.append(segment.to)
    if len(stroke) > 1:
        yield stroke


def pieces(path: Path) -> list[tuple[Point, Point]]:
    return [piece for stroke in polylines(path) for piece in pairwise(stroke)]


def box(mark: Mark) -> Box:
    match mark:
        case Text():
            return _text_box(mark)
        case Path():
            return _around((point for stroke in polylines(mark) for point in stroke), mark.width / 2)
        case Polygon():
            return _around(mark.points)
        case Rectangle():
            edge = mark.stroke_width / 2 if mark.stroke else 0.0
            corners = [(mark.x, mark.y), (mark.x + mark.width, mark.y + mark.height)]
            return _around(corners, edge)


def meets(piece: tuple[Point, Point], area: Box) -> bool:
    """Does a straight piece touch the box? By clipping (Liang and Barsky 1984)."""
    (x0, y0), (x1, y1) = piece
    low, high = 0.0, 1.0
    for start, step, least, most in ((x0, x1 - x0, area.left, area.right), (y0, y1 - y0, area.top, area.bottom)):
        if step == 0:
            if not least < start < most:
                return False
            continue
        ends = sorted(((least - start) / step, (most - start) / step))
        low, high = max(low, ends[0]), min(high, ends[1])
    return low < high


def cross(a: tuple[Point, Point], b: tuple[Point, Point]) -> bool:
    """Do two straight pieces cross, each properly?"""
    return _side(a, b[0]) * _side(a, b[1]) < 0 and _side(b, a[0]) * _side(b, a[1]) < 0


def _side(piece: tuple[Point, Point], point: Point) -> float:
    (x0, y0), (x1, y1) = piece
    return (x1 - x0) * (point[1] - y0) - (y1 - y0) * (point[0] - x0)


def _bezier(start: Point, curve: Cubic, t: float) -> Point:
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    points = (start, curve.first, curve.second, curve.to)
    x, y = (sum(weight * point[axis] for weight, point in zip(weights, points, strict=True)) for axis in (0, 1))
    return x, y


def _text_box(mark: Text) -> Box:
    width = text_width(mark.text, mark.size, bold=mark.bold)
    start = {"start": 0.0, "middle": -width / 2, "end": -width}[mark.anchor]
    turn = math.radians(mark.rotation)
    corners = [(x, y) for x in (start, start + width) for y in (-0.75 * mark.size, 0.25 * mark.size)]
    return _around(
        (mark.x + x * math.cos(turn) - y * math.sin(turn), mark.y + x * math.sin(turn) + y * math.cos(turn))
        for x, y in corners
    )


def _around(points: Iterable[Point], edge: float = 0.0) -> Box:
    xs, ys = zip(*points, strict=True)
    return Box(min(xs) - edge, min(ys) - edge, max(xs) + edge, max(ys) + edge)
