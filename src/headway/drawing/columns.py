"""Blocks of rows on a sheet: one below the other, in as many columns as make the sheet about as wide as it is high.

Blocks keep their order, down one column and then the next. The height of a column is found by bisection, so that the
tallest column is as low as possible. O(B) for B blocks, for each number of columns tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headway.drawing.primitives import Group, Mark

_COLUMN_SPACE = 14.0
_HALVINGS = 20  # of the range of heights, until one is right to a tenth of a pixel

Painted = tuple[list[Mark], list[Group]]


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that stay together; `space` is left above them, unless they are at the top of a column.

    `paint` takes the x and y of the upper left corner and the width of the column, and gives the background and the
    rows.
    """

    width: float
    height: float
    space: float
    paint: Callable[[float, float, float], Painted]


def painted(blocks: Sequence[Block], margin: float) -> tuple[list[Mark], list[Group], float, float]:
    """The background, the rows, the width of the sheet with both margins, and the lower end of the columns."""
    background: list[Mark] = []
    rows: list[Group] = []
    x = bottom = margin
    for column in _in_columns(blocks):
        y, widest = margin - column[0].space, max(block.width for block in column)
        for block in column:
            behind, own = block.paint(x, y + block.space, widest)
            background += behind
            rows += own
            y += block.space + block.height
        x += widest + _COLUMN_SPACE
        bottom = max(bottom, y)
    return background, rows, max(x - _COLUMN_SPACE, margin) + margin, bottom


def _in_columns(blocks: Sequence[Block]) -> list[list[Block]]:
    """The blocks in the number of columns that makes width and height most alike."""
    best: list[list[Block]] = []
    least, tallest = math.inf, max((block.height for block in blocks), default=0.0)
    for count in range(1, len(blocks) + 1):
        columns = _evenly(blocks, count)
        width = sum(max(block.width for block in column) + _COLUMN_SPACE for column in columns)
        height = max(map(_height, columns))
        if abs(math.log(width / height)) < least:
            best, least = columns, abs(math.log(width / height))
        if width > height or height <= tallest:  # more columns are only wider, or no lower
            break
    return best


def _evenly(blocks: Sequence[Block], count: int) -> list[list[Block]]:
    """The blocks in at most `count` columns, the tallest as low as possible."""
    low, high = max(block.height for block in blocks), _height(blocks)
    columns = [list(blocks)]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        found = _filled(blocks, middle)
        if len(found) <= count:
            columns, high = found, middle
        else:
            low = middle
    return columns


def _filled(blocks: Sequence[Block], height: float) -> list[list[Block]]:
    """Each column is filled up to `height` before the next one begins."""
    columns: list[list[Block]] = []
    y = math.inf
    for block in blocks:
        y += block.space + block.height
        if y > height:
            columns.append([])
            y = block.height
        columns[-1].append(block)
    return columns


def _height(column: Sequence[Block]) -> float:
    return sum(block.height + block.space for block in column) - column[0].space
