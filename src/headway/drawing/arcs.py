"""How an arc is drawn: a rounded arch, its label in a gap of the horizontal part, an arrow head at the modifier.

Of an arc that goes on in another row, only the horizontal part is drawn on that side, up to the edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from headway.drawing.layout import LABEL_SPACE, PlacedArc
from headway.drawing.primitives import Line, Mark, Move, Path, Polygon, Segment, Text, corner

LABEL_SIZE = 11.0
FIRST_LEVEL = 30.0  # from the words to the horizontal part of the lowest arcs
LEVEL = 20.0  # from one level to the next
_CORNER = (18.0, 13.0)  # low enough not to touch the labels one level below
_ARROW = (7.0, 6.0)  # length and width
_GAP = 3.0  # between a label and its own arc
_LABEL_DROP = 0.35 * LABEL_SIZE  # from the middle of small letters to their baseline


class Edges(NamedTuple):
    """The x at which an arc goes on in another row, towards its head and towards its modifier; None where it ends."""

    head: float | None = None
    modifier: float | None = None


WHOLE = Edges()


@dataclass(frozen=True, slots=True)
class Style:
    """How an arc looks."""

    colour: str
    width: float
    label_colour: str
    dash: tuple[float, float] | None = None
    bold: bool = False


def height(level: int) -> float:
    """How far an arc of this level reaches from the words, including its label; 0 without arcs.

    >>> height(0), height(2) - height(1) == LEVEL
    (0.0, True)
    """
    return FIRST_LEVEL + (level - 1) * LEVEL + LABEL_SIZE * 0.75 if level else 0.0


def arc_marks(
    placed: PlacedArc, label: str, style: Style, base: float, up: int, edges: Edges = WHOLE
) -> tuple[Mark, ...]:
    """The marks of an arc that starts at y = `base`; `up` is -1 for arcs above the words and 1 for arcs below."""
    level = base + up * (FIRST_LEVEL + (placed.level - 1) * LEVEL)
    if placed.arc.head:
        segments = _arch(placed, base, level, up, edges)
    else:
        start = level - up * (LABEL_SIZE * 0.6 + _GAP if label else 0.0)
        segments = (Move((placed.modifier_x, start)), Line((placed.modifier_x, base + up * _ARROW[0])))
    marks: list[Mark] = [Path(segments, style.colour, style.width, style.dash)]
    if edges.modifier is None:
        marks.append(_arrow(placed.modifier_x, base, up, style.colour))
    if label:
        colour, bold = style.label_colour, style.bold
        marks.append(Text(placed.label_x, level + _LABEL_DROP, label, LABEL_SIZE, colour, bold=bold, halo=True))
    return tuple(marks)


def _arch(placed: PlacedArc, base: float, level: float, up: int, edges: Edges) -> tuple[Segment, ...]:
    """From the head to the modifier; both corners stay clear of the label."""
    start, end = (placed.head_x, base), (placed.modifier_x, base + up * _ARROW[0])
    way = 1 if end[0] > start[0] else -1
    half = placed.arc.label_width / 2
    near, far = placed.label_x - way * half, placed.label_x + way * half  # the label's ends, as seen from the head
    first = min(_CORNER[0], max(LABEL_SPACE - _GAP, abs(near - start[0]) - _GAP))
    second = min(_CORNER[0], max(LABEL_SPACE - _GAP, abs(end[0] - far) - _GAP))
    tall = min(_CORNER[1], abs(level - end[1]))
    rise, fall = (start[0], level - up * tall), (end[0], level - up * tall)
    over, beyond = (start[0] + way * first, level), (end[0] - way * second, level)
    label: tuple[Segment, ...] = (Line((near - way * _GAP, level)), Move((far + way * _GAP, level))) if half else ()
    turned, falling = corner(rise, over), corner(beyond, fall, level=True)
    rising: tuple[Segment, ...] = (Move(start), Line(rise), turned)
    if edges.head is not None:
        rising = (Move((edges.head, level)),)
    if edges.modifier is not None:
        return *rising, *label, Line((edges.modifier, level))
    return *rising, *label, Line(beyond), falling, Line(end)


def _arrow(x: float, base: float, up: int, colour: str) -> Polygon:
    length, width = _ARROW
    back = base + up * length
    notch = base + up * length * 0.75
    return Polygon(((x, base), (x - width / 2, back), (x, notch), (x + width / 2, back)), colour)
