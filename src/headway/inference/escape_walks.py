"""The walk of `matrix_tree`: elimination, escapes, and their derivatives, for one connected group of words.

`table[i, 1 + j]` is the weight of stepping from word i to word j of the group, `table[i, 0]` to the root.
Eliminating word k, with `d_k` its row sum (the root counted for multi-root only) and `p_k = row / d_k`:

    table[i] += table[i, 1 + k] p_k         Z = product of d_k, times the last word's root weight
    E[k, m] = p_k[0] + sum_j p_k[j] E[j, m]         (k eliminated before the words j)

Every quantity exists in four variants. In logarithms, for spreads float64 cannot hold; and with derivatives in some
direction: linear tables then carry dW beside W, logarithmic ones the log-derivative F = dW / W, which is a mean of
bounded numbers. Both only add and multiply along the same elimination, so no derivative is amplified by a tight
cycle.

Divide and conquer: the columns of one half need the other half eliminated; table[level + 1] holds what that left.

The file is longer than most: the four variants are the same elimination step by step, and are easiest to check side by
side.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Floats, Ints
from headway.inference.fast_exp import fast_exp
from headway.inference.jit import part

# Words are eliminated four at a time: each remaining row is then read and written once for four updates.
PANEL = 4
# Groups of up to so many words are written out (`_solve_few`), if no factors are watched.
_FEW_WORDS = 3
# Rows of workspace: the panel (later sums of four words' escapes) and the pivots d_k.
WORK_ROWS = PANEL + 1

# Loops run over whole blocks of this many numbers, so that none is left over for scalar code. What lies beyond a row's
# end is multiplied by zero, or added up and not used.
_BLOCK = 8


@part
def padded(count: int) -> int:
    """`count` rounded up to whole blocks: the width that tables and workspace must have."""
    return (count + _BLOCK - 1) // _BLOCK * _BLOCK


@part
def table_shape(nodes: int) -> tuple[int, int, int]:
    """Levels, rows and columns of the tables for a sentence of so many nodes."""
    levels, size = 3, nodes
    while size > 0:
        levels, size = levels + 1, size // 2
    return levels, nodes, padded(nodes)


def packed_size(nodes: int) -> int:
    """Numbers that `pack` has room for. Plain Python: parts would be compiled anew in every process.

    A level with n words takes less than 5/8 n^2 + 3/4 n numbers and seven more a row, and the next has half the words:
    less than half of this. But glibc gives memory back to the system once twice the largest array is free, and takes it
    again page by page, which would take longer than all the rest.
    """
    return 2 * nodes * (nodes + _BLOCK)


@part
def solve(
    table: Floats,
    slope: Floats | None,
    n: int,
    multi_root: bool,
    logs: bool,
    watch: bool,
    begun: bool,
    wanted: bool,
    work: Floats,
    path: Ints,
    escapes: Floats,
    escape_slopes: Floats | None,
    place: int,
) -> tuple[float, float, float, float]:
    """log Z of the n words in table[0]; their escapes, at escapes[place]; if watched, the smallest factor used for log
    Z, and the smallest and largest of all. The slopes are None when no derivatives are wanted, which is compiled apart.

    log Z is the product of the pivots on the leftmost path: the first half of the words, the first half of these, and
    so on. If no escapes are `wanted`, the walk ends there. It goes on from there (`begun`) with the tables it left,
    which `pack` and `unpack` keep; log Z is then not computed again.
    """
    low, low_of_z, high = 1.0, 1.0, 1.0
    pivots = work[PANEL]
    escape = escapes[place]
    log_z = 0.0
    begin, end, stage = path[0], path[1], path[2]
    level = 0
    begin[0], end[0], stage[0] = 0, n, 0
    few = 1 if logs or watch or slope is not None else _FEW_WORDS
    if begun:
        while end[level] > few:
            stage[level] = 1
            level += 1
            begin[level], end[level], stage[level] = 0, end[level - 1] // 2, 0
    while level >= 0:
        lo, hi = begin[level], end[level]
        size = hi - lo
        if size <= few:
            if size == 1:
                log_few = _log(table[level, 0, 0], logs)
                escape[lo, lo] = -np.inf if logs else 0.0
                if escape_slopes is not None:
                    escape_slopes[place, lo, lo] = 0.0
            else:
                log_few = _solve_few(table, level, size, multi_root, lo, escape)
            if lo == 0:
                log_z += log_few
                low_of_z = low
                if not wanted:
                    break
            level -= 1
            continue
        half = size // 2
        if stage[level] > 0:
            back = stage[level] == 1
            columns, keep = (lo, half) if back else (lo + half, size - half)
            others = lo + half if back else lo
            if slope is None:
                _substitute(table, level + 1, columns, keep, others, size, logs, work, escape)
            elif escape_slopes is not None:
                _substitute_slopes(
                    table[level + 1], slope[level + 1], columns, keep, others, size, logs, escape, escape_slopes[place]
                )
        if stage[level] == 2:
            level -= 1
            continue
        left = stage[level] == 0
        first, keep = (0, half) if left else (half, size - half)
        _copy(table, level, first, keep, size)
        if slope is None:
            low = _eliminate(table, level + 1, size, keep, multi_root, logs, watch, work, low)
        else:
            _copy(slope, level, first, keep, size)
            _eliminate_slopes(table[level + 1], slope[level + 1], size, keep, multi_root, logs, pivots)
        if lo == 0 and left:
            log_z += _log_product(pivots, keep, size, logs)
        stage[level] += 1
        level += 1
        begin[level] = lo + first
        end[level] = begin[level] + keep
        stage[level] = 0

    if watch and wanted:
        for i in range(n):
            for j in range(n):
                if escape[i, j] != 0.0:
                    low = min(low, escape[i, j])
                    high = max(high, escape[i, j])
    return log_z, low_of_z, low, high


@part
def _copy(tables: Floats, level: int, first: int, keep: int, size: int) -> None:
    """Copy `size` words one level down, so that the `keep` words from `first` on come first, the others after them."""
    others = 0 if first > 0 else keep
    if first < 0 or keep < 0 or level < 0:  # never; see add_rows
        return
    if first == 0:
        for i in range(size):
            for j in range(padded(size + 1)):
                tables[level + 1, i, j] = tables[level, i, j]
        return
    for i in range(size):
        row = first + i if i < keep else others + i - keep
        tables[level + 1, i, 0] = tables[level, row, 0]
        for j in range(keep):
            tables[level + 1, i, 1 + j] = tables[level, row, 1 + first + j]
        for j in range(size - keep):
            tables[level + 1, i, 1 + keep + j] = tables[level, row, 1 + others + j]


@part
def pack(table: Floats, n: int, watch: bool, packed: Floats) -> None:
    """What is needed of the tables of the leftmost path, one after the other."""
    at, level, size = 0, 1, n
    while size > (1 if watch else _FEW_WORDS):
        for i in range(size):
            count = padded(max(i, size // 2) + 1)
            if at < 0 or level < 0:  # never; see add_rows
                return
            for j in range(count):
                packed[at + j] = table[level, i, j]
            at += count
        level, size = level + 1, size // 2


@part
def unpack(packed: Floats, n: int, watch: bool, table: Floats) -> None:
    """The tables as `pack` found them."""
    at, level, size = 0, 1, n
    while size > (1 if watch else _FEW_WORDS):
        for i in range(size):
            count = padded(max(i, size // 2) + 1)
            if at < 0 or level < 0:  # never; see add_rows
                return
            for j in range(count):
                table[level, i, j] = packed[at + j]
            at += count
        level, size = level + 1, size // 2


@part
def _log(x: float, logs: bool) -> float:
    return x if logs else float(np.log(x))


@part
def _log_product(pivots: Floats, start: int, stop: int, logs: bool) -> float:
    total = 0.0
    for k in range(start, stop):
        total += pivots[k] if logs else np.log(pivots[k])
    return total


@part
def _solve_few(table: Floats, level: int, size: int, multi_root: bool, lo: int, escape: Floats) -> float:
    """Two or three words: escapes written out. Returns their part of log Z."""
    log_z = 0.0
    for m in range(size):
        u, v = (m + 1) % size, (m + 2) % size
        to_m, root = table[level, u, 1 + m], table[level, u, 0]
        d_v, past_v = 1.0, 0.0
        if size == 3:
            d_v = table[level, v, 1 + m] + table[level, v, 1 + u] + (table[level, v, 0] if multi_root else 0.0)
            past_v = table[level, u, 1 + v] / d_v
            to_m += past_v * table[level, v, 1 + m]
            root += past_v * table[level, v, 0]
        d_u = to_m + (root if multi_root else 0.0)
        escape[lo + m, lo + m] = 0.0
        escape[lo + u, lo + m] = root / d_u
        last = table[level, m, 0] + table[level, m, 1 + u] * escape[lo + u, lo + m]
        if size == 3:
            escape[lo + v, lo + m] = (table[level, v, 0] + table[level, v, 1 + u] * escape[lo + u, lo + m]) / d_v
            last += table[level, m, 1 + v] * escape[lo + v, lo + m]
        if m == 0:
            log_z = float(np.log(d_v) + np.log(d_u) + np.log(last))
    return log_z


@part
def _eliminate(
    table: Floats,
    level: int,
    size: int,
    keep: int,
    multi_root: bool,
    logs: bool,
    watch: bool,
    work: Floats,
    low: float,
) -> float:
    """Eliminate words size-1 .. keep. Row k is left as p_k, the d_k in `work`; returns the smallest factor."""
    pivots = work[PANEL]
    if logs:
        _eliminate_logs(table[level], size, keep, multi_root, pivots)
        return low
    top = size
    while top > keep:
        panel = PANEL if top - keep >= PANEL else 1
        for a in range(panel):
            k = top - 1 - a
            for c in range(a):
                factor = table[level, k, top - c]
                for j in range(padded(top - c)):
                    table[level, k, j] += factor * work[c, j]
            d = table[level, k, 0] if multi_root else 0.0
            for j in range(1, k + 1):
                d += table[level, k, j]
            pivots[k] = d
            inverse = 1.0 / d
            for j in range(k + 1):
                work[a, j] = table[level, k, j] * inverse
                table[level, k, j] = work[a, j]
            for j in range(k + 1, padded(top)):
                work[a, j] = 0.0
        if panel == 1:
            _update_by_one(table, level, top, work)
        else:
            _update_by_four(table, level, top, work)
        if watch:
            for k in range(top - panel, top):
                low = _smallest(table, level, k, low)
        top -= panel
    return low


@part
def _update_by_one(table: Floats, level: int, top: int, p: Floats) -> None:
    for i in range(top - 1):
        f = table[level, i, top]
        for j in range(padded(top)):
            table[level, i, j] += f * p[0, j]


@part
def _update_by_four(table: Floats, level: int, top: int, p: Floats) -> None:
    """Rows above the panel, each word's factor brought up to date by the pivots before it."""
    for i in range(top - 4):
        f0 = table[level, i, top]
        f1 = table[level, i, top - 1] + f0 * p[0, top - 1]
        f2 = table[level, i, top - 2] + f0 * p[0, top - 2] + f1 * p[1, top - 2]
        f3 = table[level, i, top - 3] + f0 * p[0, top - 3] + f1 * p[1, top - 3] + f2 * p[2, top - 3]
        for j in range(padded(top - 3)):
            table[level, i, j] += (f0 * p[0, j] + f1 * p[1, j]) + (f2 * p[2, j] + f3 * p[3, j])
        table[level, i, top - 1], table[level, i, top - 2], table[level, i, top - 3] = f1, f2, f3


@part
def _smallest(table: Floats, level: int, k: int, low: float) -> float:
    """The smallest factor other than zero that eliminating word k multiplied by."""
    for j in range(k + 1):
        if table[level, k, j] != 0.0:
            low = min(low, table[level, k, j])
    for i in range(k):
        if table[level, i, k + 1] != 0.0:
            low = min(low, table[level, i, k + 1])
    return low


@part
def _substitute(
    table: Floats,
    level: int,
    columns: int,
    keep: int,
    others: int,
    size: int,
    logs: bool,
    work: Floats,
    escape: Floats,
) -> None:
    """Escapes of the eliminated words (from place `others` on), last eliminated first, for `keep` columns."""
    if logs:
        _substitute_logs(table[level], columns, keep, others, size, escape)
        return
    if columns < 0 or keep < 0 or others < 0:  # never; see add_rows
        return
    rows = table[level]
    k = keep
    while k < size:
        count = 4 if k + 4 <= size else 1
        for q in range(count):
            for m in range(padded(keep)):
                work[q, m] = rows[k + q, 0]
        add_rows(count, rows, k, 1, keep, escape, columns, columns, keep, work, 0)
        add_rows(count, rows, k, 1 + keep, k - keep, escape, others, columns, keep, work, 0)
        for q in range(1, count):  # words of this panel that were eliminated after word k + q
            for c in range(q):
                for m in range(padded(keep)):
                    work[q, m] += rows[k + q, 1 + k + c] * work[c, m]
        for q in range(count):
            for m in range(keep):
                escape[others + k - keep + q, columns + m] = work[q, m]
        k += count


@part
def add_rows(
    count: int,
    a: Floats,
    row: int,
    start: int,
    terms: int,
    b: Floats,
    first: int,
    columns: int,
    width: int,
    out: Floats,
    to: int,
) -> None:
    """out[to + q] += sum over `terms` j of a[row + q, start + j] b[first + j, columns:], for q < count, 4 or 1.

    Four rows and four terms in each pass, so that each number read takes part in four sums. Columns are added up to
    whole blocks.
    """
    # Tells the compiler that no index counts from the end, without which it does not vectorise.
    if row < 0 or start < 0 or first < 0 or columns < 0 or to < 0:
        return
    j, r, end = start, first, start + terms
    if count == 1:
        while j + 4 <= end:
            a0, a1, a2, a3 = a[row, j], a[row, j + 1], a[row, j + 2], a[row, j + 3]
            for m in range(padded(width)):
                out[to, m] += (a0 * b[r, columns + m] + a1 * b[r + 1, columns + m]) + (
                    a2 * b[r + 2, columns + m] + a3 * b[r + 3, columns + m]
                )
            j += 4
            r += 4
        while j < end:
            a0 = a[row, j]
            for m in range(padded(width)):
                out[to, m] += a0 * b[r, columns + m]
            j += 1
            r += 1
        return
    while j + 4 <= end:
        a00, a01, a02, a03 = a[row, j], a[row, j + 1], a[row, j + 2], a[row, j + 3]
        a10, a11, a12, a13 = a[row + 1, j], a[row + 1, j + 1], a[row + 1, j + 2], a[row + 1, j + 3]
        a20, a21, a22, a23 = a[row + 2, j], a[row + 2, j + 1], a[row + 2, j + 2], a[row + 2, j + 3]
        a30, a31, a32, a33 = a[row + 3, j], a[row + 3, j + 1], a[row + 3, j + 2], a[row + 3, j + 3]
        for m in range(padded(width)):
            b0, b1, b2, b3 = b[r, columns + m], b[r + 1, columns + m], b[r + 2, columns + m], b[r + 3, columns + m]
            out[to, m] += (a00 * b0 + a01 * b1) + (a02 * b2 + a03 * b3)
            out[to + 1, m] += (a10 * b0 + a11 * b1) + (a12 * b2 + a13 * b3)
            out[to + 2, m] += (a20 * b0 + a21 * b1) + (a22 * b2 + a23 * b3)
            out[to + 3, m] += (a30 * b0 + a31 * b1) + (a32 * b2 + a33 * b3)
        j += 4
        r += 4
    while j < end:
        a0, a1, a2, a3 = a[row, j], a[row + 1, j], a[row + 2, j], a[row + 3, j]
        for m in range(padded(width)):
            out[to, m] += a0 * b[r, columns + m]
            out[to + 1, m] += a1 * b[r, columns + m]
            out[to + 2, m] += a2 * b[r, columns + m]
            out[to + 3, m] += a3 * b[r, columns + m]
        j += 1
        r += 1


@part
def log_add(x: float, y: float) -> float:
    """log(exp(x) + exp(y)); the smaller is not worth an exponential once it is 40 nats below."""
    if x < y:
        x, y = y, x
    if y < x - 40.0 or y == -np.inf:
        return x
    return x + float(np.log1p(np.exp(y - x)))


@part
def _eliminate_logs(table: Floats, size: int, keep: int, multi_root: bool, pivots: Floats) -> None:
    for k in range(size - 1, keep - 1, -1):
        d = table[k, 0] if multi_root else -np.inf
        for j in range(1, k + 1):
            d = log_add(d, table[k, j])
        pivots[k] = d
        for j in range(k + 1):
            table[k, j] = table[k, j] - d if d > -np.inf else -np.inf
        for i in range(k):
            factor = table[i, k + 1]
            if factor > -np.inf:
                for j in range(k + 1):
                    table[i, j] = log_add(table[i, j], factor + table[k, j])


@part
def _substitute_logs(table: Floats, columns: int, keep: int, others: int, size: int, escape: Floats) -> None:
    for k in range(keep, size):
        for m in range(columns, columns + keep):
            total = table[k, 0]
            for j in range(k):
                r = columns + j if j < keep else others + j - keep
                total = log_add(total, table[k, 1 + j] + escape[r, m])
            escape[others + k - keep, m] = total


@part
def _eliminate_slopes(
    table: Floats, slope: Floats, size: int, keep: int, multi_root: bool, logs: bool, pivots: Floats
) -> None:
    """_eliminate, one word at a time, with dW in `slope`; row k of it is left as dp_k."""
    if logs:
        _eliminate_log_slopes(table, slope, size, keep, multi_root, pivots)
        return
    p, dp = np.empty(size + 1), np.empty(size + 1)
    for k in range(size - 1, keep - 1, -1):
        d = table[k, 0] if multi_root else 0.0
        dd = slope[k, 0] if multi_root else 0.0
        for j in range(1, k + 1):
            d += table[k, j]
            dd += slope[k, j]
        pivots[k] = d
        for j in range(k + 1):
            p[j] = table[k, j] / d
            dp[j] = (slope[k, j] - p[j] * dd) / d
            table[k, j], slope[k, j] = p[j], dp[j]
        for i in range(k):
            f, df = table[i, k + 1], slope[i, k + 1]
            for j in range(k + 1):
                table[i, j] += f * p[j]
                slope[i, j] += df * p[j] + f * dp[j]


@part
def _substitute_slopes(
    table: Floats,
    slope: Floats,
    columns: int,
    keep: int,
    others: int,
    size: int,
    logs: bool,
    escape: Floats,
    escape_slope: Floats,
) -> None:
    if logs:
        _substitute_log_slopes(table, slope, columns, keep, others, size, escape, escape_slope)
        return
    total, change = np.empty(keep), np.empty(keep)
    for k in range(keep, size):
        for m in range(keep):
            total[m], change[m] = table[k, 0], slope[k, 0]
        for j in range(k):
            r = columns + j if j < keep else others + j - keep
            p, dp = table[k, 1 + j], slope[k, 1 + j]
            for m in range(keep):
                total[m] += p * escape[r, columns + m]
                change[m] += dp * escape[r, columns + m] + p * escape_slope[r, columns + m]
        for m in range(keep):
            escape[others + k - keep, columns + m] = total[m]
            escape_slope[others + k - keep, columns + m] = change[m]


@part
def _eliminate_log_slopes(table: Floats, slope: Floats, size: int, keep: int, multi_root: bool, pivots: Floats) -> None:
    """_eliminate_logs with log-derivatives in `slope`: a sum has the mean of its terms', a quotient the difference."""
    for k in range(size - 1, keep - 1, -1):
        d, mean = -np.inf, 0.0
        for j in range(0 if multi_root else 1, k + 1):
            d, mean = _mix(d, mean, table[k, j], slope[k, j])
        pivots[k] = d
        for j in range(k + 1):
            table[k, j] = table[k, j] - d if d > -np.inf else -np.inf
            slope[k, j] -= mean
        for i in range(k):
            if table[i, k + 1] > -np.inf:
                for j in range(k + 1):
                    table[i, j], slope[i, j] = _mix(
                        table[i, j],
                        slope[i, j],
                        table[i, k + 1] + table[k, j],
                        slope[i, k + 1] + slope[k, j],
                    )


@part
def _substitute_log_slopes(
    table: Floats,
    slope: Floats,
    columns: int,
    keep: int,
    others: int,
    size: int,
    escape: Floats,
    escape_slope: Floats,
) -> None:
    for k in range(keep, size):
        for m in range(columns, columns + keep):
            total, mean = table[k, 0], slope[k, 0]
            for j in range(k):
                r = columns + j if j < keep else others + j - keep
                total, mean = _mix(
                    total,
                    mean,
                    table[k, 1 + j] + escape[r, m],
                    slope[k, 1 + j] + escape_slope[r, m],
                )
            escape[others + k - keep, m] = total
            escape_slope[others + k - keep, m] = mean


@part
def _mix(x: float, mean_x: float, y: float, mean_y: float) -> tuple[float, float]:
    """Add two weights given by their logarithms; their means mix in proportion."""
    if y == -np.inf:
        return x, mean_x
    if x < y:
        share = fast_exp(x - y)
        return y + np.log1p(share), mean_y + share / (1.0 + share) * (mean_x - mean_y)
    share = fast_exp(y - x)
    return x + np.log1p(share), mean_x + share / (1.0 + share) * (mean_y - mean_x)
