"""A sentence in one row, or in several where one would be too wide.

A row takes as many words as fit; arcs within it are placed as in a sentence of its own (`layout`). An arc that leaves
it is placed up to the edge, and goes on from the edge of the next row. The longer of two arcs is the higher one in
every row, so that arcs cross an edge in the same order on both sides of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.drawing.layout import WORD_SPACE, Arc, PlacedArc, place

_HALVINGS = 5  # of the range of widths of rows
_FEW = 8  # rows, which are made equally wide; more than these end like a paragraph


@dataclass(frozen=True, slots=True)
class Piece:
    """What a row has of the arc with this number among those given, and whether that goes on to the left or right."""

    number: int
    placed: PlacedArc
    from_left: bool
    to_right: bool


@dataclass(frozen=True, slots=True)
class Row:
    """Words from the number `first` on, at these places; the width with both margins; the arcs above and below."""

    first: int
    words: tuple[float, ...]
    width: float
    above: tuple[Piece, ...]
    below: tuple[Piece, ...]


def in_rows(
    widths: Sequence[float], above: Sequence[Arc], below: Sequence[Arc], *, margin: float, most: float | None
) -> list[Row]:
    """The rows of words of these widths, each `most` wide where that is possible; one row if that is None."""
    if most is None or len(widths) < 2 or _least_width(widths, margin) <= most:
        row = _row(widths, above, below, 1, len(widths), margin)
        if most is None or len(widths) < 2 or row.width <= most:
            return [row]
    rows = _filled(widths, above, below, margin, most)
    if len(rows) > _FEW:
        return rows
    # Narrower, as long as that takes no more rows, so that the last one is not left with a word or two.
    narrowest, widest = most / 2, most
    for _ in range(_HALVINGS):
        middle = (narrowest + widest) / 2
        even = _filled(widths, above, below, margin, middle)
        if len(even) > len(rows):
            narrowest = middle
        else:
            rows, widest = even, middle
    return rows


def _filled(
    widths: Sequence[float], above: Sequence[Arc], below: Sequence[Arc], margin: float, most: float
) -> list[Row]:
    """Each row is filled before the next one begins."""
    rows: list[Row] = []
    first = 1
    while first <= len(widths):
        rows.append(_widest_row(widths, above, below, first, margin, most))
        first += len(rows[-1].words)
    return rows


def _widest_row(
    widths: Sequence[float], above: Sequence[Arc], below: Sequence[Arc], first: int, margin: float, most: float
) -> Row:
    """The row from this word on, with as many words as fit, and one at least."""
    last = first
    while last < len(widths) and _least_width(widths[first - 1 : last + 1], margin) <= most:
        last += 1
    while True:
        row = _row(widths, above, below, first, last, margin)
        if row.width <= most or last == first:
            return row
        last = max(first, min(last - 1, first + int((last - first) * most / row.width)))


def _least_width(widths: Sequence[float], margin: float) -> float:
    """What the words take without their arcs."""
    return sum(widths) + WORD_SPACE * (len(widths) - 1) + 2 * margin


def _row(
    widths: Sequence[float], above: Sequence[Arc], below: Sequence[Arc], first: int, last: int, margin: float
) -> Row:
    """Some words as a row; its edges, where arcs cross them, are placed like words without width."""
    crossing = [arc for arc in (*above, *below) if arc.head and arc.left <= last and arc.right >= first]
    left = any(arc.left < first for arc in crossing)
    right = any(arc.right > last for arc in crossing)
    own = [*[0.0] * left, *widths[first - 1 : last], *[0.0] * right]
    before = first - 1 - left  # words before the first place
    edges = frozenset([*[1] * left, *[len(own)] * right])

    def pieces(arcs: Sequence[Arc]) -> tuple[list[int], list[Arc]]:
        numbers, cut = [], []
        for number, arc in enumerate(arcs):
            if arc.right < first or arc.left > last:
                continue
            ends = [min(max(word - before, 1), len(own)) if word else 0 for word in (arc.head, arc.modifier)]
            numbers.append(number)
            cut.append(Arc(ends[0], ends[1], arc.label_width, arc.length))
        return numbers, cut

    (numbers_above, cut_above), (numbers_below, cut_below) = pieces(above), pieces(below)
    found = place(own, cut_above, cut_below, margin=margin, edges=edges)

    def placed(numbers: Sequence[int], arcs: Sequence[Arc], places: Sequence[PlacedArc]) -> tuple[Piece, ...]:
        return tuple(
            Piece(number, each, bool(arcs[number].head) and arcs[number].left < first, arcs[number].right > last)
            for number, each in zip(numbers, places, strict=True)
        )

    words = found.words[left : len(own) - right]
    above_pieces, below_pieces = placed(numbers_above, above, found.above), placed(numbers_below, below, found.below)
    return Row(first, words, found.width, above_pieces, below_pieces)
