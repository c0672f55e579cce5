"""The elimination and the substitution of `escape_walks` in linear numbers: four words at a time, a panel.

With q_k where the walk from a word k of the panel first is outside of it, on the root or on a word that remains,

    table[i] += sum over the panel of table[i, 1 + k] q_k         E[k, m] = q_k[0] + sum_j q_k[j] E[j, m]

so that each row is read and written once for four words. The d_k are found first, from the weights within the panel and
the sums of those that lead out of it: as long as rows are, no division waits for one.

Shapes: `rows` are tables one below the other, that of a group from row `at` on; `work` (WORK_ROWS, columns).
"""

from __future__ import annotations

from headway.arrays import Floats
from headway.inference.jit import ordered_part, part
from headway.inference.lane_product import product
from headway.inference.lanes import LANES, fill, first_lanes, load_row, store_row, total

# Words are eliminated four at a time.
PANEL = 4
# Rows of workspace: a panel that is watched, the pivots d_k, and those that are not asked for.
WORK_ROWS = PANEL + 2


@part
def eliminate(
    rows: Floats, at: int, size: int, keep: int, multi_root: bool, watch: bool, work: Floats, low: float
) -> float:
    """Eliminate words size-1 .. keep of the table at row `at`, a panel at a time. Row k is left as q_k, the d_k in
    `work`; returns the smallest factor, if watched."""
    if at < 0 or keep < 0:  # never: tells the compiler that no index counts from the end
        return low
    top = size
    while top > keep:
        rest = max(keep, top - PANEL)
        low = leave_panel(rows, at, top, rest, multi_root, watch, work, PANEL, low)
        if watch:
            for i in range(at, at + rest):
                low = _smallest(rows, i, rest + 1, top + 1, low)
        update(rows, at, top, rest)
        top = rest
    return low


@ordered_part
def leave_panel(
    rows: Floats,
    at: int,
    top: int,
    rest: int,
    multi_root: bool,
    watch: bool,
    work: Floats,
    pivots: int,
    low: float,
) -> float:
    """The rows of words top-1 .. rest become their q, over the root and the words below `rest`.

    Words of the panel are 0 to 3, in the order of their elimination: g01 is the weight of stepping from word 0 to word
    1, s0 that of leaving the panel from word 0. A word that the panel lacks is met by no other, and left with weight 1.
    """
    if rest < 0 or top <= rest:  # never; see eliminate
        return low
    two, three, four = top - rest > 1, top - rest > 2, top - rest > 3
    k0 = at + top - 1
    k1, k2, k3 = k0 - 1 if two else k0, k0 - 2 if three else k0, k0 - 3 if four else k0
    zero = fill(0.0)
    v0, v1, v2, v3 = zero, zero, zero, zero
    for j in range(0, rest + 1, LANES):
        root, own = 0 if multi_root or j > 0 else 1, rest + 1 - j
        v0 = v0 + first_lanes(root, zero, first_lanes(own, load_row(rows, k0, j), zero))
        v1 = v1 + first_lanes(root, zero, first_lanes(own, load_row(rows, k1, j), zero))
        v2 = v2 + first_lanes(root, zero, first_lanes(own, load_row(rows, k2, j), zero))
        v3 = v3 + first_lanes(root, zero, first_lanes(own, load_row(rows, k3, j), zero))
    g01, g10 = (rows[k0, top - 1], rows[k1, top]) if two else (0.0, 0.0)
    g02, g12 = (rows[k0, top - 2], rows[k1, top - 2]) if three else (0.0, 0.0)
    g20, g21 = (rows[k2, top], rows[k2, top - 1]) if three else (0.0, 0.0)
    g03, g13, g23 = (rows[k0, top - 3], rows[k1, top - 3], rows[k2, top - 3]) if four else (0.0, 0.0, 0.0)
    g30, g31, g32 = (rows[k3, top], rows[k3, top - 1], rows[k3, top - 2]) if four else (0.0, 0.0, 0.0)
    s0, s1 = total(v0), total(v1) if two else 1.0
    s2, s3 = total(v2) if three else 1.0, total(v3) if four else 1.0

    d0 = s0 + (g01 + g02 + g03)
    u0 = 1.0 / d0
    p01, p02, p03 = g01 * u0, g02 * u0, g03 * u0
    f10, f20, f30 = g10 * u0, g20 * u0, g30 * u0
    s1, g12, g13 = s1 + f10 * s0, g12 + f10 * g02, g13 + f10 * g03
    s2, g21, g23 = s2 + f20 * s0, g21 + f20 * g01, g23 + f20 * g03
    s3, g31, g32 = s3 + f30 * s0, g31 + f30 * g01, g32 + f30 * g02
    d1 = s1 + (g12 + g13)
    u1 = 1.0 / d1
    p12, p13 = g12 * u1, g13 * u1
    f21, f31 = g21 * u1, g31 * u1
    s2, g23 = s2 + f21 * s1, g23 + f21 * g13
    s3, g32 = s3 + f31 * s1, g32 + f31 * g12
    d2 = s2 + g23
    u2 = 1.0 / d2
    p23, f32 = g23 * u2, g32 * u2
    d3 = s3 + f32 * s2
    u3 = 1.0 / d3

    for j in range(0, rest + 1, LANES):
        own = rest + 1 - j
        x0 = first_lanes(own, load_row(rows, k0, j), zero)
        x1 = first_lanes(own, load_row(rows, k1, j), zero) + fill(f10) * x0
        x2 = first_lanes(own, load_row(rows, k2, j), zero) + fill(f20) * x0 + fill(f21) * x1
        x3 = first_lanes(own, load_row(rows, k3, j), zero) + fill(f30) * x0 + fill(f31) * x1 + fill(f32) * x2
        q3 = fill(u3) * x3
        q2 = fill(u2) * x2 + fill(p23) * q3
        q1 = fill(u1) * x1 + fill(p12) * q2 + fill(p13) * q3
        q0 = fill(u0) * x0 + fill(p01) * q1 + fill(p02) * q2 + fill(p03) * q3
        store_row(rows, k0, j, q0)
        if two:
            store_row(rows, k1, j, q1)
        if three:
            store_row(rows, k2, j, q2)
        if four:
            store_row(rows, k3, j, q3)
        if watch:
            store_row(work, 0, j, x0)
            store_row(work, 1, j, x1)
            store_row(work, 2, j, x2)
            store_row(work, 3, j, x3)
    work[pivots, top - 1] = d0
    if two:
        work[pivots, top - 2] = d1
    if three:
        work[pivots, top - 3] = d2
    if four:
        work[pivots, top - 4] = d3
    if watch:
        for factor in (f10, f20, f30, f21, f31, f32, p01, p02, p03, p12, p13, p23):
            low = min(low, factor) if factor != 0.0 else low
        for a in range(top - rest):
            low = _smallest(work, a, 0, rest + 1, low)
            low = _smallest(rows, k0 - a, 0, rest + 1, low)
    return low


@part
def update(rows: Floats, at: int, top: int, rest: int) -> None:
    """Rows above a panel take of its q what they stepped to it with; two at a time, so that each q is read for both."""
    k0 = at + top - 1
    k1 = k0 - 1 if top - rest > 1 else k0
    k2 = k0 - 2 if top - rest > 2 else k0
    k3 = k0 - 3 if top - rest > 3 else k0
    last = at + rest - 1
    for i in range(at, last + 1, 2):
        x0, x1, x2, x3 = _factors(rows, i, top, rest)
        u0, u1, u2, u3 = fill(x0), fill(x1), fill(x2), fill(x3)
        if i == last:
            for j in range(0, rest + 1, LANES):
                x = load_row(rows, i, j) + u0 * load_row(rows, k0, j) + u1 * load_row(rows, k1, j)
                store_row(rows, i, j, x + u2 * load_row(rows, k2, j) + u3 * load_row(rows, k3, j))
            return
        y0, y1, y2, y3 = _factors(rows, i + 1, top, rest)
        v0, v1, v2, v3 = fill(y0), fill(y1), fill(y2), fill(y3)
        for j in range(0, rest + 1, LANES):
            q0, q1, q2, q3 = load_row(rows, k0, j), load_row(rows, k1, j), load_row(rows, k2, j), load_row(rows, k3, j)
            store_row(rows, i, j, load_row(rows, i, j) + u0 * q0 + u1 * q1 + u2 * q2 + u3 * q3)
            store_row(rows, i + 1, j, load_row(rows, i + 1, j) + v0 * q0 + v1 * q1 + v2 * q2 + v3 * q3)


@part
def _factors(rows: Floats, i: int, top: int, rest: int) -> tuple[float, float, float, float]:
    """The weights of stepping from row i to the words of the panel."""
    f1 = rows[i, top - 1] if top - rest > 1 else 0.0
    f2 = rows[i, top - 2] if top - rest > 2 else 0.0
    f3 = rows[i, top - 3] if top - rest > 3 else 0.0
    return rows[i, top], f1, f2, f3


@part
def _smallest(rows: Floats, i: int, start: int, stop: int, low: float) -> float:
    """The smallest number other than zero in columns start .. stop of row i."""
    for j in range(start, stop):
        low = min(low, rows[i, j]) if rows[i, j] != 0.0 else low
    return low


@part
def substitute(rows: Floats, at: int, columns: int, keep: int, others: int, size: int, escape: Floats) -> None:
    """Escapes of the eliminated words (from place `others` on), last panel first, for `keep` columns."""
    k, count = keep, (size - keep - 1) % PANEL + 1
    while k < size:
        product(rows, at + k, count, 1, keep, k, escape, columns, others, escape, others + k - keep, columns, keep)
        k, count = k + count, PANEL
