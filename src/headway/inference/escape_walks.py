"""The walk of `matrix_tree`: elimination, escapes, and their derivatives, for one connected group of words.

`table[i, 1 + j]` is the weight of stepping from word i to word j of the group, `table[i, 0]` to the root.
Eliminating word k, with `d_k` its row sum (the root counted for multi-root only) and `p_k = row / d_k`:

    table[i] += table[i, 1 + k] p_k         Z = product of d_k, times the last word's root weight
    E[k, m] = p_k[0] + sum_j p_k[j] E[j, m]         (k eliminated before the words j)

Every quantity exists in four variants: in linear numbers, of which `panel_elimination` takes four words at a time; in
logarithms, for spreads float64 cannot hold; and both with derivatives in some direction. Linear tables then carry dW
beside W, logarithmic ones the log-derivative F = dW / W, which is a mean of bounded numbers. Both only add and multiply
along the same elimination, so no derivative is amplified by a tight cycle.

Divide and conquer: the columns of one half need the other half eliminated; table[level + 1] holds what that left.
Where nothing has to be watched, `blocked_walks` takes the same steps in another order.

Loops run over whole blocks of `LANES` numbers, so that none is left over for scalar code. What lies beyond a row's end
may be anything, nan that another sentence has left too: sums leave it out, and all else keeps it in its column.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Floats, Ints
from headway.inference.fast_exp import fast_exp
from headway.inference.jit import part
from headway.inference.lanes import LANES, load_row, store_row
from headway.inference.panel_elimination import PANEL, eliminate, substitute

# Groups of up to so many words are solved side by side (`blocked_walks`), if no factors are watched.
FEW_WORDS = 6


@part
def padded(count: int) -> int:
    """`count` rounded up to whole blocks: the width that tables and workspace must have."""
    return (count + LANES - 1) // LANES * LANES


@part
def table_shape(nodes: int) -> tuple[int, int, int]:
    """Levels, rows and columns of the tables for a sentence of so many nodes; `blocked_walks` needs twice the rows."""
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
    return 2 * nodes * (nodes + LANES)


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
    rows, height = flat(table), table.shape[1]
    log_z = 0.0
    begin, end, stage = path[0], path[1], path[2]
    level = 0
    begin[0], end[0], stage[0] = 0, n, 0
    if begun:
        while end[level] > 1:
            stage[level] = 1
            level += 1
            begin[level], end[level], stage[level] = 0, end[level - 1] // 2, 0
    while level >= 0:
        lo, hi = begin[level], end[level]
        size = hi - lo
        if size == 1:
            escape[lo, lo] = -np.inf if logs else 0.0
            if escape_slopes is not None:
                escape_slopes[place, lo, lo] = 0.0
            if lo == 0:
                log_z += _log(table[level, 0, 0], logs)
                low_of_z = low
                if not wanted:
                    break
            level -= 1
            continue
        half = size // 2
        below = (level + 1) * height
        if stage[level] > 0:
            back = stage[level] == 1
            columns, keep = (lo, half) if back else (lo + half, size - half)
            others = lo + half if back else lo
            if slope is None:
                if logs:
                    _substitute_logs(table[level + 1], columns, keep, others, size, escape)
                else:
                    substitute(rows, below, columns, keep, others, size, escape)
            elif escape_slopes is not None:
                _substitute_slopes(
                    table[level + 1], slope[level + 1], columns, keep, others, size, logs, escape, escape_slopes[place]
                )
        if stage[level] == 2:
            level -= 1
            continue
        left = stage[level] == 0
        first, keep = (0, half) if left else (half, size - half)
        copy_words(rows, below - height, first, keep, size, below)
        if slope is None:
            if logs:
                _eliminate_logs(table[level + 1], size, keep, multi_root, pivots)
            else:
                low = eliminate(rows, below, size, keep, multi_root, watch, work, low)
        else:
            copy_words(flat(slope), level * slope.shape[1], first, keep, size, (level + 1) * slope.shape[1])
            _eliminate_slopes(table[level + 1], slope[level + 1], size, keep, multi_root, logs, pivots)
        if lo == 0 and left:
            log_z += log_product(pivots, keep, size, logs)
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
def flat(tables: Floats) -> Floats:
    """The rows of all levels, one below the other."""
    return tables.reshape(tables.shape[0] * tables.shape[1], tables.shape[2])


@part
def copy_words(rows: Floats, at: int, first: int, keep: int, size: int, to: int) -> None:
    """Copy the table of `size` words at row `at` to row `to`, so that the `keep` words from `first` on come first."""
    if first == 0:
        for i in range(size):
            for j in range(0, size + 1, LANES):
                store_row(rows, to + i, j, load_row(rows, at + i, j))
        return
    if at < 0 or first < 0 or keep < 0 or to < 0:  # never: tells the compiler that no index counts from the end
        return
    for i in range(size):
        row = at + (first + i if i < keep else i - keep)
        rows[to + i, 0] = rows[row, 0]
        for j in range(keep):
            rows[to + i, 1 + j] = rows[row, 1 + first + j]
        for j in range(size - keep):
            rows[to + i, 1 + keep + j] = rows[row, 1 + j]


@part
def pack(table: Floats, n: int, watch: bool, packed: Floats) -> None:
    """What is needed of the tables of the leftmost path, one after the other."""
    at, level, size = 0, 1, n
    while size > (1 if watch else FEW_WORDS):
        for i in range(size):
            count = padded(max(i, size // 2) + 1)
            if at < 0 or level < 0:  # never; see copy_words
                return
            for j in range(count):
                packed[at + j] = table[level, i, j]
            at += count
        level, size = level + 1, size // 2


@part
def unpack(packed: Floats, n: int, watch: bool, table: Floats) -> None:
    """The tables as `pack` found them."""
    at, level, size = 0, 1, n
    while size > (1 if watch else FEW_WORDS):
        for i in range(size):
            count = padded(max(i, size // 2) + 1)
            if at < 0 or level < 0:  # never; see copy_words
                return
            for j in range(count):
                table[level, i, j] = packed[at + j]
            at += count
        level, size = level + 1, size // 2


@part
def _log(x: float, logs: bool) -> float:
    return x if logs else float(np.log(x))


@part
def log_product(pivots: Floats, start: int, stop: int, logs: bool) -> float:
    """Of numbers between 1e-145 and 1e145, few logarithms are taken: most of them are multiplied first."""
    total, product = 0.0, 1.0
    for k in range(start, stop):
        if logs:
            total += pivots[k]
            continue
        product *= pivots[k]
        if not 1e-145 < product < 1e145:
            total += np.log(product)
            product = 1.0
    return total if logs else total + float(np.log(product))


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
    """`eliminate`, one word at a time, with dW in `slope`; row k of it is left as dp_k."""
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
