"""The product of two matrices in vector registers: four rows and two or three blocks of `LANES` columns at a time.

Every number that is read takes part in several sums, and all of these stay in registers: eight with two blocks of
columns, twelve with three. That is why both are written out; a loop over blocks would keep the sums in memory. Columns
up to the end of a block are read, whatever is there, but only those that are asked for are written.

Shapes: a (rows, terms), b (terms, columns), out (rows, columns), in larger arrays. O(rows terms columns).
"""

from __future__ import annotations

from headway.arrays import Floats
from headway.inference.jit import part
from headway.inference.lanes import LANES, Lanes, fill, first_lanes, load_row, store_row


@part
def product(
    a: Floats,
    row: int,
    count: int,
    start: int,
    keep: int,
    terms: int,
    b: Floats,
    near: int,
    far: int,
    out: Floats,
    to: int,
    columns: int,
    width: int,
) -> None:
    """`width` columns of `count` rows of out, from row `to` on: those of a, from `row` on, times b.

    Row i is the sum over j < terms of a[i, start + j] b[near + j], from j = keep on b[far + j - keep], plus a[i, 0] if
    it starts with 1. Up to four rows and three blocks of columns at a time, so that each number read takes part in
    several sums.
    """
    if row < 0 or start < 0 or keep < 0 or near < 0 or far < 0 or columns < 0:  # never; see escape_walks.copy_words
        return
    m, end = columns, columns + width
    while m < end:
        blocks = (end - m + LANES - 1) // LANES
        if blocks == 1 or blocks == 2 or blocks == 4:
            _two_blocks(a, row, count, start, keep, terms, b, near, far, out, to, m, end)
            m += 2 * LANES
        else:
            _three_blocks(a, row, count, start, keep, terms, b, near, far, out, to, m, end)
            m += 3 * LANES


@part
def _two_blocks(
    a: Floats,
    row: int,
    count: int,
    start: int,
    keep: int,
    terms: int,
    b: Floats,
    near: int,
    far: int,
    out: Floats,
    to: int,
    m: int,
    end: int,
) -> None:
    r1, r2, r3 = row + (count > 1), row + 2 * (count > 2), row + 3 * (count > 3)
    x = m + LANES if m + LANES < end else m
    a0 = fill(a[row, 0]) if start == 1 else fill(0.0)
    a1 = fill(a[r1, 0]) if start == 1 else fill(0.0)
    a2 = fill(a[r2, 0]) if start == 1 else fill(0.0)
    a3 = fill(a[r3, 0]) if start == 1 else fill(0.0)
    b0, b1, b2, b3 = a0, a1, a2, a3
    for first, stop, place in ((0, keep, near), (keep, terms, far - keep)):
        for j in range(first, stop):
            u, v = load_row(b, place + j, m), load_row(b, place + j, x)
            p0, p1 = fill(a[row, start + j]), fill(a[r1, start + j])
            p2, p3 = fill(a[r2, start + j]), fill(a[r3, start + j])
            a0, b0 = a0 + p0 * u, b0 + p0 * v
            a1, b1 = a1 + p1 * u, b1 + p1 * v
            a2, b2 = a2 + p2 * u, b2 + p2 * v
            a3, b3 = a3 + p3 * u, b3 + p3 * v
    _store_rows(out, to, count, m, end, a0, a1, a2, a3)
    _store_rows(out, to, count, x, end, b0, b1, b2, b3)


@part
def _three_blocks(
    a: Floats,
    row: int,
    count: int,
    start: int,
    keep: int,
    terms: int,
    b: Floats,
    near: int,
    far: int,
    out: Floats,
    to: int,
    m: int,
    end: int,
) -> None:
    r1, r2, r3 = row + (count > 1), row + 2 * (count > 2), row + 3 * (count > 3)
    x, y = m + LANES, m + 2 * LANES
    a0 = fill(a[row, 0]) if start == 1 else fill(0.0)
    a1 = fill(a[r1, 0]) if start == 1 else fill(0.0)
    a2 = fill(a[r2, 0]) if start == 1 else fill(0.0)
    a3 = fill(a[r3, 0]) if start == 1 else fill(0.0)
    b0, b1, b2, b3 = a0, a1, a2, a3
    c0, c1, c2, c3 = a0, a1, a2, a3
    for first, stop, place in ((0, keep, near), (keep, terms, far - keep)):
        for j in range(first, stop):
            u, v, w = load_row(b, place + j, m), load_row(b, place + j, x), load_row(b, place + j, y)
            p0, p1 = fill(a[row, start + j]), fill(a[r1, start + j])
            p2, p3 = fill(a[r2, start + j]), fill(a[r3, start + j])
            a0, b0, c0 = a0 + p0 * u, b0 + p0 * v, c0 + p0 * w
            a1, b1, c1 = a1 + p1 * u, b1 + p1 * v, c1 + p1 * w
            a2, b2, c2 = a2 + p2 * u, b2 + p2 * v, c2 + p2 * w
            a3, b3, c3 = a3 + p3 * u, b3 + p3 * v, c3 + p3 * w
    _store_rows(out, to, count, m, end, a0, a1, a2, a3)
    _store_rows(out, to, count, x, end, b0, b1, b2, b3)
    _store_rows(out, to, count, y, end, c0, c1, c2, c3)


@part
def _store_rows(out: Floats, to: int, count: int, m: int, end: int, x0: Lanes, x1: Lanes, x2: Lanes, x3: Lanes) -> None:
    """A block of `count` rows, from column m on, but nothing at `end` and behind it."""
    store_row(out, to, m, x0 if m + LANES <= end else first_lanes(end - m, x0, load_row(out, to, m)))
    if count > 1:
        store_row(out, to + 1, m, x1 if m + LANES <= end else first_lanes(end - m, x1, load_row(out, to + 1, m)))
    if count > 2:
        store_row(out, to + 2, m, x2 if m + LANES <= end else first_lanes(end - m, x2, load_row(out, to + 2, m)))
    if count > 3:
        store_row(out, to + 3, m, x3 if m + LANES <= end else first_lanes(end - m, x3, load_row(out, to + 3, m)))
