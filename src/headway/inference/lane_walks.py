"""The walk of `escape_walks` for eight groups of words at a time, one in each lane of a vector register (`lanes`).

Nothing in the walk looks at a number to decide what to do next, so eight groups of the same number of words take the
same steps side by side. `side_by_side` has a sentence in each lane, `blocked_walks` parts of one sentence.

`cells` are float32 or float64, flat: cell i (n + 1) + 1 + j is the weight of stepping from word i to word j, cell
i (n + 1) to the root; after the words' weights there is room for the table of each level.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from headway.arrays import Ints
from headway.inference.jit import part
from headway.inference.lanes import fill, load, store

Cells = NDArray[Any]


def cells_of_tables(n: int) -> int:
    """The words' weights, and a table for each level, which holds all words of the level above."""
    total, size = n * (n + 1), n
    while size > 1:
        total += size * (size + 1)
        size = (size + 1) // 2
    return total


count_cells = part(cells_of_tables)


@part
def solve_cells(
    cells: Cells, n: int, multi_root: bool, begun: bool, wanted: bool, path: Ints, pivots: Cells, escapes: Cells
) -> None:
    """Escapes, cell h (n + 1) + m, of the n words whose weights come first in `cells`; pivots k < n multiply to Z.

    What other pivots there are lie behind these. `escapes` has a column to spare, as columns are computed in pairs: the
    one too many is computed properly later. As in `escape_walks.solve`, the walk ends with log Z if no escapes are
    `wanted`, and goes on from there with the tables it left (`begun`).
    """
    begin, end, stage, at, width = path[0], path[1], path[2], path[3], path[4]
    stride = n + 1
    level = 0
    begin[0], end[0], stage[0], at[0], width[0], at[1] = 0, n, 0, 0, n + 1, n * (n + 1)
    while begun and end[level] > 2:
        size = end[level]
        stage[level] = 1
        level += 1
        begin[level], end[level], stage[level] = 0, size // 2, 0
        width[level], at[level + 1] = size + 1, at[level] + size * (size + 1)
    while level >= 0:
        lo, hi = begin[level], end[level]
        size = hi - lo
        to = 0 if lo == 0 else n
        if size <= 2:
            _solve_few(cells, at[level], width[level], size, multi_root, pivots, to, escapes, lo * stride + lo, stride)
            if lo == 0 and not wanted:
                return
            level -= 1
            continue
        half = size // 2
        below = level + 1
        if stage[level] == 1:
            _substitute(cells, at[below], width[below], size, half, escapes, stride, lo, lo + half)
        if stage[level] == 2:
            _substitute(cells, at[below], width[below], size, size - half, escapes, stride, lo + half, lo)
            level -= 1
            continue
        first, keep = (0, half) if stage[level] == 0 else (half, size - half)
        width[below] = size + 1
        at[below + 1] = at[below] + size * (size + 1)
        _copy(cells, at[level], width[level], first, keep, size, at[below])
        _eliminate(cells, at[below], size + 1, size, keep, multi_root, pivots, to if first == 0 else n)
        stage[level] += 1
        level += 1
        begin[level], end[level], stage[level] = lo + first, lo + first + keep, 0


@part
def _solve_few(
    cells: Cells,
    at: int,
    width: int,
    size: int,
    multi_root: bool,
    pivots: Cells,
    to: int,
    escapes: Cells,
    place: int,
    stride: int,
) -> None:
    """One word or two."""
    store(escapes, place, fill(cells.dtype.type(0)))
    if size == 1:
        store(pivots, to, load(cells, at))
        return
    root_0, root_1 = load(cells, at), load(cells, at + width)
    to_1, to_0 = load(cells, at + 2), load(cells, at + width + 1)
    d_0 = to_1 + root_0 if multi_root else to_1
    d_1 = to_0 + root_1 if multi_root else to_0
    escape = root_1 / d_1
    store(escapes, place + stride, escape)
    store(escapes, place + 1, root_0 / d_0)
    store(escapes, place + stride + 1, fill(cells.dtype.type(0)))
    store(pivots, to + 1, d_1)
    store(pivots, to, root_0 + to_1 * escape)


@part
def _copy(cells: Cells, at: int, width: int, first: int, keep: int, size: int, to: int) -> None:
    """Copy `size` words one level down, so that the `keep` words from `first` on come first, the others after them."""
    others = 0 if first > 0 else keep
    for i in range(size):
        row = at + width * (first + i if i < keep else others + i - keep)
        store(cells, to, load(cells, row))
        for j in range(keep):
            store(cells, to + 1 + j, load(cells, row + 1 + first + j))
        for j in range(size - keep):
            store(cells, to + 1 + keep + j, load(cells, row + 1 + others + j))
        to += size + 1


@part
def _eliminate(
    cells: Cells, at: int, width: int, size: int, keep: int, multi_root: bool, pivots: Cells, to: int
) -> None:
    """Eliminate words size-1 .. keep, four at a time while there are as many. Row k is left as p_k."""
    top = size
    while top > keep:
        count = 4 if top - keep >= 4 else 1
        for k in range(top - 1, top - 1 - count, -1):
            row = at + k * width
            for q in range(top - 1, k, -1):
                factor, pivot = load(cells, row + 1 + q), at + q * width
                for j in range(q + 1):
                    store(cells, row + j, load(cells, row + j) + factor * load(cells, pivot + j))
            d, odd = fill(cells.dtype.type(0)), fill(cells.dtype.type(0))
            for j in range(0 if multi_root else 1, k, 2):
                d = d + load(cells, row + j)
                odd = odd + load(cells, row + j + 1)
            d = d + odd
            if (k + 1 - (0 if multi_root else 1)) % 2 == 1:
                d = d + load(cells, row + k)
            store(pivots, to + k, d)
            inverse = fill(cells.dtype.type(1)) / d
            for j in range(k + 1):
                store(cells, row + j, load(cells, row + j) * inverse)
        if count == 1:
            _update_by_one(cells, at, width, top - 1)
        else:
            _update_by_four(cells, at, width, top)
        top -= count


@part
def _update_by_one(cells: Cells, at: int, width: int, k: int) -> None:
    pivot = at + k * width
    for i in range(k):
        row = at + i * width
        factor = load(cells, row + 1 + k)
        for j in range(k + 1):
            store(cells, row + j, load(cells, row + j) + factor * load(cells, pivot + j))


@part
def _update_by_four(cells: Cells, at: int, width: int, top: int) -> None:
    """Rows above the panel, each word's factor brought up to date by the pivots before it."""
    p0 = at + (top - 1) * width
    p1, p2, p3 = p0 - width, p0 - 2 * width, p0 - 3 * width
    for i in range(top - 4):
        row = at + i * width
        f0 = load(cells, row + top)
        f1 = load(cells, row + top - 1) + f0 * load(cells, p0 + top - 1)
        f2 = load(cells, row + top - 2) + f0 * load(cells, p0 + top - 2) + f1 * load(cells, p1 + top - 2)
        f3 = load(cells, row + top - 3) + f0 * load(cells, p0 + top - 3) + f1 * load(cells, p1 + top - 3)
        f3 = f3 + f2 * load(cells, p2 + top - 3)
        for j in range(top - 3):
            x = load(cells, row + j) + f0 * load(cells, p0 + j) + f1 * load(cells, p1 + j)
            store(cells, row + j, x + f2 * load(cells, p2 + j) + f3 * load(cells, p3 + j))


@part
def _substitute(
    cells: Cells,
    at: int,
    width: int,
    size: int,
    keep: int,
    escapes: Cells,
    stride: int,
    columns: int,
    others: int,
) -> None:
    """Escapes of the eliminated words (from place `others` on), last eliminated first, for `keep` columns.

    Two columns at a time, and four words, so that each number read takes part in several sums.
    """
    k = keep
    while k < size:
        count = 4 if k + 4 <= size else 1
        for m in range(columns, columns + keep, 2):
            near, far = columns * stride + m, others * stride + m
            if count == 4:
                _four_words(cells, at + k * width, width, k, keep, escapes, stride, near, far)
            else:
                _one_word(cells, at + k * width, k, keep, escapes, stride, near, far)
        k += count


@part
def _one_word(cells: Cells, row: int, k: int, keep: int, escapes: Cells, stride: int, near: int, far: int) -> None:
    a = load(cells, row)
    b = a
    for start, stop, first in ((0, keep, near), (keep, k, far)):
        e = first
        for j in range(1 + start, 1 + stop):
            p = load(cells, row + j)
            a = a + p * load(escapes, e)
            b = b + p * load(escapes, e + 1)
            e += stride
    to = far + (k - keep) * stride
    store(escapes, to, a)
    store(escapes, to + 1, b)


@part
def _four_words(
    cells: Cells, row: int, width: int, k: int, keep: int, escapes: Cells, stride: int, near: int, far: int
) -> None:
    r1, r2, r3 = row + width, row + 2 * width, row + 3 * width
    a0, a1, a2, a3 = load(cells, row), load(cells, r1), load(cells, r2), load(cells, r3)
    b0, b1, b2, b3 = a0, a1, a2, a3
    for start, stop, first in ((0, keep, near), (keep, k, far)):
        e = first
        for j in range(1 + start, 1 + stop):
            x, y = load(escapes, e), load(escapes, e + 1)
            p0, p1, p2, p3 = load(cells, row + j), load(cells, r1 + j), load(cells, r2 + j), load(cells, r3 + j)
            a0, b0 = a0 + p0 * x, b0 + p0 * y
            a1, b1 = a1 + p1 * x, b1 + p1 * y
            a2, b2 = a2 + p2 * x, b2 + p2 * y
            a3, b3 = a3 + p3 * x, b3 + p3 * y
            e += stride
    p = load(cells, r1 + 1 + k)
    a1, b1 = a1 + p * a0, b1 + p * b0
    p, q = load(cells, r2 + 1 + k), load(cells, r2 + 2 + k)
    a2, b2 = a2 + p * a0 + q * a1, b2 + p * b0 + q * b1
    p, q, r = load(cells, r3 + 1 + k), load(cells, r3 + 2 + k), load(cells, r3 + 3 + k)
    a3, b3 = a3 + p * a0 + q * a1 + r * a2, b3 + p * b0 + q * b1 + r * b2
    to = far + (k - keep) * stride
    store(escapes, to, a0)
    store(escapes, to + 1, b0)
    store(escapes, to + stride, a1)
    store(escapes, to + stride + 1, b1)
    store(escapes, to + 2 * stride, a2)
    store(escapes, to + 2 * stride + 1, b2)
    store(escapes, to + 3 * stride, a3)
    store(escapes, to + 3 * stride + 1, b3)
