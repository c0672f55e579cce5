"""Log-partition, marginals and their derivatives for non-projective trees: the matrix-tree theorem without
subtraction.

koo2007 section 3 inverts the Laplacian; its differences cancel, and confident 2- and 3-cycles make it singular.
Here (DESIGN 5.1) the same quantities come from a random walk that steps from a word m to its head h in proportion
to the arc's weight `W[m, h]`. Words are eliminated one after the other, which only adds, multiplies and divides
non-negative numbers (`escape_walks` has the formulas), and Z is the product of the pivots. With

    E[h, m] = the chance that the walk from h reaches the root before m
              (single-root: the root weight it collects before m)

    P(h -> m) is proportional to W[m, h] E[h, m]  and  P(root -> m) to W[m, 0],   over the heads of m.

*Derivatives* of all marginals in one direction f, which are Cov(f, 1[arc]), take two matrix products once the escapes
are known (`marginal_slopes`). Where those would cancel, they follow the same walk with dW = W f, with no difference
of large numbers either. Both are O(n^3), where druck2009's sum over pairs of arcs takes O(n^4).

*Range.* Each word's weights are scaled by its largest. Products then stay inside float64 unless weights span
hundreds of nats; `find_scale` decides beforehand where it can, a watch on the smallest factor used decides afterwards.
Otherwise the same elimination runs on logarithms.

*Reducible single-root graphs.* Words from which the walk cannot leave a set C (all their heads lie in C) force the
root's child into C. The distribution is then a product: single-root trees over C, and forests over the other words
with C as their root. `find_core` finds C; nothing special happens when it is the whole sentence.

Shapes: scores (B, N+1, N+1) to log Z (B,), marginals and derivatives like scores. O(n^3) time, O(n^2) memory a
thread; a sentence, if marginals are to go on from its log Z.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Floats, Ints
from headway.inference.batch import Batch, over_sentences
from headway.inference.blocked_walks import LaneSpace, aligned, lane_space, solve_plain
from headway.inference.escape_walks import log_add, pack, packed_size, solve, table_shape, unpack
from headway.inference.jit import kernel, part
from headway.inference.marginal_slopes import MOST_VISITS, most_visits, slopes_by_products
from headway.inference.panel_elimination import WORK_ROWS
from headway.inference.walk_weights import SMALLEST_FACTOR, fill_weights, find_core, find_scale
from headway.parallel import Executor

_LARGEST_FACTOR = 1e145  # for the same reason as SMALLEST_FACTOR
# How a sentence's marginals go on from its log Z: not at all, from its table, from its table with factors watched.
_AFRESH, _PLAIN, _WATCHED = 0, 1, 2


class Begun(NamedTuple):
    """log Z of a batch, and how far its marginals have got.

    Of every sentence there are the weights, which become its marginals, and the tables that the walk to log Z left:
    about two copies of the scores in all. `resume` (B,) tells what `marginals` can do with them.
    """

    log_z: Floats
    weights: Floats
    tables: Floats
    resume: NDArray[np.int8]


def log_partition(batch: Batch, *, single_root: bool, executor: Executor) -> Floats:
    """log Z of every sentence; -inf where no tree exists."""
    return _run(batch, single_root, executor, _nothing(batch, 0, 0), False).log_z


def begin(batch: Batch, *, single_root: bool, executor: Executor) -> Begun:
    """log Z of every sentence, and what `marginals` can go on from."""
    return _run(batch, single_root, executor, _nothing(batch, len(batch), len(batch)), False)


def marginals(
    batch: Batch, *, single_root: bool, executor: Executor, begun: Begun | None = None
) -> tuple[Floats, Floats]:
    """log Z and arc marginals [head, modifier] of every sentence; log Z is -inf where no tree exists.

    What has begun is used up.
    """
    done = _run(batch, single_root, executor, begun or _nothing(batch, len(batch), 0), True)
    return done.log_z, done.weights


def covariance(batch: Batch, f: Floats, *, single_root: bool, executor: Executor) -> tuple[Floats, Floats, Floats]:
    """log Z, marginals, and Cov(f, 1[arc]) for every arc: the derivative of the marginals in the direction f."""
    size, nodes = batch.scores.shape[:2]
    log_z, mu, slope = np.zeros(size), np.empty(batch.scores.shape), np.empty(batch.scores.shape)

    def run(start: int, stop: int) -> None:
        _slopes(batch.scores, batch.lengths, f, single_root, start, stop, log_z, mu, slope)

    over_sentences(run, batch, work=2.5 * size * float(nodes) ** 3, executor=executor)
    return log_z, mu, slope


def _nothing(batch: Batch, weights: int, tables: int) -> Begun:
    """Nothing begun yet, with room to keep weights and tables of so many sentences."""
    size, nodes = batch.scores.shape[:2]
    room = np.empty((weights, nodes, nodes)), np.empty((tables, packed_size(nodes)))
    return Begun(np.zeros(size), *room, np.zeros(size, np.int8))


def _run(batch: Batch, single_root: bool, executor: Executor, begun: Begun, wanted: bool) -> Begun:
    size, nodes = batch.scores.shape[:2]

    def run(start: int, stop: int) -> None:
        _sentences(batch.scores, batch.lengths, single_root, start, stop, wanted, *begun)

    over_sentences(run, batch, work=1.5 * size * float(nodes) ** 3, executor=executor)
    return begun


@kernel
def _sentences(
    scores: Floats,
    lengths: Ints,
    single_root: bool,
    start: int,
    stop: int,
    wanted: bool,
    log_z: Floats,
    kept_weights: Floats,
    kept_tables: Floats,
    resume: NDArray[np.int8],
) -> None:
    """Sentences start..stop: log Z, and marginals in the place of weights if they are wanted. If not, what they can go
    on from, where there is room to keep it."""
    nodes = scores.shape[1]
    levels, rows, columns = table_shape(nodes)
    table, escapes, work = _workspace(levels, rows, columns)
    space, path = lane_space(levels, nodes), np.zeros((3, levels), dtype=np.int64)
    words = np.empty(nodes, dtype=np.int64)
    core = np.empty(nodes, dtype=np.bool_)
    scale, totals, inverse_totals = np.empty(nodes), np.empty(nodes), np.empty(nodes)
    own_weights = np.empty((1 if len(kept_weights) == 0 else 0, nodes, nodes))
    for b in range(start, stop):
        n = lengths[b]
        weights = kept_weights[b] if len(kept_weights) > 0 else own_weights[0]
        begun, known, found = resume[b] != _AFRESH, resume[b] != _AFRESH, True
        watch, logs, shift = resume[b] == _WATCHED, False, 0.0
        if begun:
            core[1 : n + 1] = True
            unpack(kept_tables[b], n, watch, table)
        while n > 0:
            if not begun:
                linear, watch, shift = find_scale(scores[b], n, single_root, scale)
                logs = logs or not linear
                found = find_core(scores[b], n, single_root and watch, words, core)
                if not found:
                    log_z[b] = -np.inf
                    break
                fill_weights(scores[b], n, single_root, logs, scale, core, weights)
            value, safe = _tree_sum(
                weights, None, 0, n, single_root, logs, watch and not logs, begun, wanted, words, core,
                table, None, work, path, escapes, None, space,
            )  # fmt: skip
            if not (known or np.isnan(value)):
                log_z[b] = value + shift
                known = True
            if logs or (known and (safe or not wanted)):
                found = value > -np.inf
                break
            begun, logs = False, True
        resume[b] = _AFRESH
        if wanted and not (found and n > 0):
            weights[:] = 0.0
        elif wanted:
            _normalise(weights, escapes[0], n, logs, totals, inverse_totals, weights)
            _clear(weights, n)
        elif len(kept_tables) > 0 and n > 0 and found and not logs and np.all(core[1 : n + 1]):
            pack(table, n, watch, kept_tables[b])
            resume[b] = _WATCHED if watch else _PLAIN


@part
def _workspace(levels: int, rows: int, columns: int) -> tuple[Floats, Floats, Floats]:
    """Tables, escapes and work, all rows of which begin with a cache line."""
    table = aligned(levels * 2 * rows * columns).reshape(levels, 2 * rows, columns)
    escapes = aligned(2 * rows * 2 * columns).reshape(2, rows, 2 * columns)
    work = aligned(WORK_ROWS * columns).reshape(WORK_ROWS, columns)
    work[:] = 0.0
    return table, escapes, work


@part
def _clear(mu: Floats, n: int) -> None:
    """Nothing where there is no arc: column 0, the diagonal, padding."""
    mu[: n + 1, 0] = 0.0
    mu[: n + 1, n + 1 :] = 0.0
    mu[n + 1 :] = 0.0
    for m in range(1, n + 1):
        mu[m, m] = 0.0


@kernel
def _slopes(
    scores: Floats,
    lengths: Ints,
    f: Floats,
    single_root: bool,
    start: int,
    stop: int,
    log_z: Floats,
    mu: Floats,
    slope: Floats,
) -> None:
    """Sentences start..stop: log Z, marginals and their derivatives."""
    nodes = scores.shape[1]
    levels, rows, columns = table_shape(nodes)
    table, escapes, work = _workspace(levels, rows, columns)
    # Less than `table` in all: glibc gives memory back to the system once twice the largest array is free.
    d_table, d_escapes = np.empty((levels, rows, columns)), np.empty((2, rows, 2 * columns))
    space, path = lane_space(levels, nodes), np.zeros((3, levels), dtype=np.int64)
    weights = np.empty((nodes, nodes))
    words = np.empty(nodes, dtype=np.int64)
    core = np.empty(nodes, dtype=np.bool_)
    scale, totals, inverse_totals = np.empty(nodes), np.empty(nodes), np.empty(nodes)
    for b in range(start, stop):
        n = lengths[b]
        _clear(mu[b], n)
        _clear(slope[b], n)
        if n == 0:
            continue
        linear, watch, shift = find_scale(scores[b], n, single_root, scale)
        if not find_core(scores[b], n, single_root and watch, words, core):
            log_z[b], mu[b], slope[b] = -np.inf, 0.0, 0.0
            continue
        if linear:
            # Derivatives are not watched themselves: the same walk without them tells whether linear numbers hold.
            fill_weights(scores[b], n, single_root, False, scale, core, weights)
            value, safe = _tree_sum(
                weights, None, b, n, single_root, False, watch, False, True, words, core,
                table, None, work, path, escapes, None, space,
            )  # fmt: skip
            linear = safe and not np.isnan(value)
        if linear and np.all(core[1 : n + 1]):
            _normalise(weights, escapes[0], n, False, totals, inverse_totals, mu[b])
            if most_visits(weights, escapes[0], inverse_totals, n, single_root) <= MOST_VISITS:
                slopes_by_products(weights, f[b], escapes[0], inverse_totals, n, single_root, d_table, mu[b], slope[b])
                log_z[b] = value + shift
                continue
        logs = not linear
        while True:
            fill_weights(scores[b], n, single_root, logs, scale, core, weights)
            value, _ = _tree_sum(
                weights, f, b, n, single_root, logs, False, False, True, words, core,
                table, d_table, work, path, escapes, d_escapes, space,
            )  # fmt: skip
            if not np.isnan(value):
                break
            logs = True
        log_z[b] = value + shift
        if value == -np.inf:
            mu[b], slope[b] = 0.0, 0.0
            continue
        _normalise(weights, escapes[0], n, logs, totals, inverse_totals, mu[b])
        _normalise_slopes(weights, f[b], escapes[0], d_escapes[0], n, logs, mu[b], slope[b])


@part
def _tree_sum(
    weights: Floats,
    f: Floats | None,
    b: int,
    n: int,
    single_root: bool,
    logs: bool,
    watch: bool,
    begun: bool,
    wanted: bool,
    words: Ints,
    core: np.ndarray,
    table: Floats,
    d_table: Floats | None,
    work: Floats,
    path: Ints,
    escapes: Floats,
    d_escapes: Floats | None,
    space: LaneSpace,
) -> tuple[float, bool]:
    """log Z of the scaled weights, nan if a watched factor left the safe range; escapes[0, h - 1, m - 1], if `wanted`,
    and whether theirs stayed in it. `begun` is as in `solve`.

    The core is solved in the requested class, the words outside it (if any) as a forest rooted in the core, each in
    escapes[1] first.
    """
    total, all_safe = 0.0, True
    for inside in (True, False):
        count = int(np.int64(0))  # a mere constant would have Numba compile `solve` twice
        for m in range(1, n + 1):
            if core[m] == inside:
                words[count] = m
                count += 1
        if count == 0:
            continue
        _load(weights, n, words, count, core, inside, logs, table[0])
        if f is not None and d_table is not None:
            _load_slopes(weights, f[b], n, words, count, core, inside, logs, d_table[0])
        multi_root = not (single_root and inside)
        place = 0 if count == n else 1
        low_of_z, low, high = 1.0, 1.0, 1.0
        if d_table is None and not (logs or watch):
            log_z = solve_plain(table, count, multi_root, begun, wanted, work, escapes[place], space)
        else:
            log_z, low_of_z, low, high = solve(
                table, d_table, count, multi_root, logs, watch, begun, wanted, work, path, escapes, d_escapes, place
            )
        if not (logs or (low_of_z >= SMALLEST_FACTOR and np.isfinite(log_z))):
            return np.nan, False
        all_safe = all_safe and low >= SMALLEST_FACTOR and high <= _LARGEST_FACTOR
        total += log_z
        if place == 1 and wanted:
            _store(escapes[1], words, count, core, inside, n, 0.0 if logs else 1.0, escapes[0])
            if d_escapes is not None:
                _store(d_escapes[1], words, count, core, inside, n, 0.0, d_escapes[0])
    return total, all_safe


@part
def _load(
    weights: Floats,
    n: int,
    words: Ints,
    count: int,
    core: np.ndarray,
    inside: bool,
    logs: bool,
    table: Floats,
) -> None:
    """table[i, 1 + j]: weight of the arc words[j] -> words[i]; column 0: of the root (for the rest, the core)."""
    if count == n:
        for h in range(n + 1):
            for i in range(n):
                table[i, h] = weights[h, 1 + i]
        return
    for i in range(count):
        table[i, 0] = weights[0, words[i]]
        for j in range(count):
            table[i, 1 + j] = weights[words[j], words[i]]
    if inside:
        return
    for i in range(count):
        for h in range(1, n + 1):
            if core[h]:
                w = weights[h, words[i]]
                table[i, 0] = log_add(table[i, 0], w) if logs else table[i, 0] + w


@part
def _load_slopes(
    weights: Floats,
    f: Floats,
    n: int,
    words: Ints,
    count: int,
    core: np.ndarray,
    inside: bool,
    logs: bool,
    slope: Floats,
) -> None:
    """The same places' derivatives: dW = W f, or f itself beside logarithms; the core's is the mean over its words."""
    for i in range(count):
        m = words[i]
        slope[i, 0] = f[0, m] * (1.0 if logs else weights[0, m])
        for j in range(count):
            h = words[j]
            slope[i, 1 + j] = f[h, m] * (1.0 if logs else weights[h, m])
    if inside:
        return
    for i in range(count):
        m = words[i]
        total, mean = -np.inf, 0.0
        for h in range(1, n + 1):
            if core[h]:
                if not logs:
                    slope[i, 0] += f[h, m] * weights[h, m]
                elif weights[h, m] > -np.inf:
                    total = log_add(total, weights[h, m])
                    mean += np.exp(weights[h, m] - total) * (f[h, m] - mean)
        if logs:
            slope[i, 0] = mean


@part
def _store(
    solved: Floats,
    words: Ints,
    count: int,
    core: np.ndarray,
    inside: bool,
    n: int,
    escaped: float,
    escape: Floats,
) -> None:
    """Copy a group's escapes to their places; a head in the core has escaped already."""
    for i in range(count):
        for j in range(count):
            escape[words[i] - 1, words[j] - 1] = solved[i, j]
    for h in range(1, n + 1):
        if core[h] != inside:
            for j in range(count):
                escape[h - 1, words[j] - 1] = escaped


@part
def _normalise(
    weights: Floats, escape: Floats, n: int, logs: bool, totals: Floats, inverse: Floats, mu: Floats
) -> None:
    """P(h -> m) from weights and escapes [head, modifier], column by column; linear: and the totals' inverses."""
    if logs:
        for m in range(1, n + 1):
            total = weights[0, m]
            for h in range(1, n + 1):
                if h != m:
                    total = log_add(total, weights[h, m] + escape[h - 1, m - 1])
            mu[0, m] = np.exp(weights[0, m] - total)
            for h in range(1, n + 1):
                if h != m:
                    mu[h, m] = np.exp(weights[h, m] + escape[h - 1, m - 1] - total)
        return
    for m in range(1, n + 1):
        mu[0, m] = weights[0, m]
        totals[m] = weights[0, m]
    for h in range(1, n + 1):
        for m in range(1, n + 1):
            mu[h, m] = weights[h, m] * escape[h - 1, m - 1]
            totals[m] += mu[h, m]
    for m in range(1, n + 1):
        inverse[m] = 1.0 / totals[m]
    for h in range(n + 1):
        for m in range(1, n + 1):
            # What is certain is exactly so: a number times its inverse need not be 1.
            mu[h, m] = 1.0 if mu[h, m] == totals[m] else mu[h, m] * inverse[m]


@part
def _normalise_slopes(
    weights: Floats,
    f: Floats,
    escape: Floats,
    d_escape: Floats,
    n: int,
    logs: bool,
    mu: Floats,
    slope: Floats,
) -> None:
    """dP = P (d log(W E) - its mean over the heads of m)."""
    for m in range(1, n + 1):
        mean = 0.0
        for h in range(n + 1):
            if mu[h, m] > 0.0:
                change = 0.0 if h == 0 else d_escape[h - 1, m - 1]
                if h > 0 and not logs:
                    change /= escape[h - 1, m - 1]
                slope[h, m] = f[h, m] + change
                mean += mu[h, m] * slope[h, m]
        for h in range(n + 1):
            slope[h, m] = mu[h, m] * (slope[h, m] - mean) if mu[h, m] > 0.0 else 0.0
