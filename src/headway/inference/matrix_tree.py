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
hundreds of nats; `_scale` decides beforehand where it can, a watch on the smallest factor used decides afterwards.
Otherwise the same elimination runs on logarithms.

*Reducible single-root graphs.* Words from which the walk cannot leave a set C (all their heads lie in C) force the
root's child into C. The distribution is then a product: single-root trees over C, and forests over the other words
with C as their root. `find_core` finds C; nothing special happens when it is the whole sentence.

Shapes: scores (B, N+1, N+1) to log Z (B,), marginals and derivatives like scores. O(n^3) time, O(n^2) memory a
thread.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Floats, Ints
from headway.inference.batch import Batch, over_sentences
from headway.inference.escape_walks import WORK_ROWS, log_add, solve, table_shape
from headway.inference.fast_exp import fast_exp
from headway.inference.jit import kernel, part
from headway.inference.marginal_slopes import MOST_VISITS, most_visits, slopes_by_products
from headway.parallel import Executor

# If no factor is smaller than this (334 nats below its row's largest), no product of two underflows.
_SMALLEST_FACTOR = 1e-145
_SMALLEST_LOG_FACTOR = np.log(_SMALLEST_FACTOR)
_LARGEST_FACTOR = 1e145
# With no arc forbidden, entries only grow: a spread of 300 nats needs no watching (products stay above 1e-261).
_SAFE_SPREAD = 300.0


def log_partition(batch: Batch, *, single_root: bool, executor: Executor) -> Floats:
    """log Z of every sentence; -inf where no tree exists."""
    return _run(batch, None, single_root, executor, None, None)


def marginals(batch: Batch, *, single_root: bool, executor: Executor) -> tuple[Floats, Floats]:
    """log Z and arc marginals [head, modifier] of every sentence; log Z is -inf where no tree exists."""
    mu = np.zeros(batch.scores.shape)
    return _run(batch, None, single_root, executor, mu, None), mu


def covariance(batch: Batch, f: Floats, *, single_root: bool, executor: Executor) -> tuple[Floats, Floats, Floats]:
    """log Z, marginals, and Cov(f, 1[arc]) for every arc: the derivative of the marginals in the direction f."""
    mu, slope = np.zeros(batch.scores.shape), np.zeros(batch.scores.shape)
    return _run(batch, f, single_root, executor, mu, slope), mu, slope


def _run(
    batch: Batch,
    f: Floats | None,
    single_root: bool,
    executor: Executor,
    mu: Floats | None,
    slope: Floats | None,
) -> Floats:
    size, nodes = batch.scores.shape[:2]
    log_z = np.zeros(size)
    shape = table_shape(nodes)
    wide = (2, nodes, 2 * shape[2])

    def run(start: int, stop: int) -> None:
        table, d_table = np.zeros(shape), None if f is None else np.zeros(shape)
        escapes, d_escapes = None if mu is None else np.zeros(wide), None if f is None else np.zeros(wide)
        _sentences(
            batch.scores, batch.lengths, f, single_root, start, stop, table, d_table, escapes, d_escapes,
            log_z, mu, slope,
        )  # fmt: skip

    over_sentences(run, batch, work=(1.5 if f is None else 2.5) * size * float(nodes) ** 3, executor=executor)
    return log_z


@kernel
def _sentences(
    scores: Floats,
    lengths: Ints,
    f: Floats | None,
    single_root: bool,
    start: int,
    stop: int,
    table: Floats,
    d_table: Floats | None,
    escapes: Floats | None,
    d_escapes: Floats | None,
    log_z: Floats,
    mu: Floats | None,
    slope: Floats | None,
) -> None:
    """Sentences start..stop. What is None is not wanted, and not compiled either."""
    nodes = scores.shape[1]
    weights = np.empty((nodes, nodes))
    work = np.zeros((WORK_ROWS, table.shape[2]))
    words = np.empty(nodes, dtype=np.int64)
    core = np.empty(nodes, dtype=np.bool_)
    scale, inverse_totals = np.empty(nodes), np.empty(nodes)
    for b in range(start, stop):
        n = lengths[b]
        if n == 0:
            continue
        linear, watch, shift = _scale(scores[b], n, single_root, scale)
        if not find_core(scores[b], n, single_root and watch, words, core):
            log_z[b] = -np.inf
            continue
        if f is not None and d_table is not None and escapes is not None and mu is not None and slope is not None:
            if linear:
                # Derivatives are not watched themselves: the same walk without them tells whether linear numbers hold.
                _fill_weights(scores[b], n, single_root, False, scale, core, weights)
                value = _tree_sum(
                    weights, None, b, n, single_root, False, watch, words, core, table, None, work, escapes, None
                )
                linear, watch = not np.isnan(value), False
            if linear and np.all(core[1 : n + 1]):
                _normalise(weights, escapes[0], n, False, inverse_totals, mu[b])
                if most_visits(weights, escapes[0], inverse_totals, n, single_root) <= MOST_VISITS:
                    slopes_by_products(
                        weights, f[b], escapes[0], inverse_totals, n, single_root, d_table, mu[b], slope[b]
                    )
                    log_z[b] = value + shift
                    continue
        logs = not linear
        while True:
            _fill_weights(scores[b], n, single_root, logs, scale, core, weights)
            value = _tree_sum(
                weights, f, b, n, single_root, logs, watch and not logs, words, core,
                table, d_table, work, escapes, d_escapes,
            )  # fmt: skip
            if not np.isnan(value):
                break
            logs = True
        log_z[b] = value + shift
        if value == -np.inf:
            continue
        if mu is not None and escapes is not None:
            _normalise(weights, escapes[0], n, logs, inverse_totals, mu[b])
            if f is not None and d_escapes is not None and slope is not None:
                _normalise_slopes(weights, f[b], escapes[0], d_escapes[0], n, logs, mu[b], slope[b])


@part
def _scale(scores: Floats, n: int, single_root: bool, scale: Floats) -> tuple[bool, bool, float]:
    """Fill `scale[m]`, each word's largest score; return (try linear?, watch factors?, the shift of log Z).

    Single-root trees use the root once, so its scores are scaled together (`scale[0]`), after each word's own.
    """
    first = 1 if single_root else 0
    for m in range(n + 1):
        scale[m] = -np.inf
    for h in range(first, n + 1):
        own = scale[h]
        for m in range(1, n + 1):
            scale[m] = scores[h, m] if scores[h, m] > scale[m] else scale[m]
        scale[h] = own
    scale[0] = 0.0
    shift = 0.0
    for m in range(1, n + 1):
        scale[m] = scale[m] if scale[m] > -np.inf else 0.0
        shift += scale[m]
    if single_root:
        top = -np.inf
        for m in range(1, n + 1):
            top = max(top, scores[0, m] - scale[m])
        scale[0] = top if top > -np.inf else 0.0
        shift += scale[0]
    wide = 0
    for h in range(n + 1):
        extra = scale[0] if h == 0 else 0.0
        for m in range(1, n + 1):
            wide += (scores[h, m] - scale[m] - extra < -_SAFE_SPREAD) & (m != h)
    if wide == 0:
        return True, False, shift
    forbidden, extreme = 0, 0
    for h in range(n + 1):
        extra = scale[0] if h == 0 else 0.0
        for m in range(1, n + 1):
            x = scores[h, m] - scale[m] - extra
            forbidden += (x == -np.inf) & (m != h)
            extreme += (x < _SMALLEST_LOG_FACTOR) & (x != -np.inf) & (m != h)
    return forbidden > 0 and extreme == 0, forbidden > 0, shift


@part
def find_core(scores: Floats, n: int, reducible: bool, queue: Ints, core: np.ndarray) -> bool:
    """Mark the words that can be the root's child as far as words' heads go; False if there are none.

    Going from head to modifier, a word is such if it reaches every word. The start of the last search that found new
    words is the only candidate; if it reaches all, the core is every word that reaches it.
    """
    for m in range(1, n + 1):
        core[m] = True
    if not reducible:
        return True
    seen = np.zeros(n + 1, dtype=np.bool_)
    candidate = 0
    for m in range(1, n + 1):
        if not seen[m]:
            candidate = m
            _reach(scores, n, m, True, queue, seen)
    seen[:] = False
    if _reach(scores, n, candidate, True, queue, seen) < n:
        return False
    core[1 : n + 1] = False
    _reach(scores, n, candidate, False, queue, core)
    return True


@part
def _reach(scores: Floats, n: int, start: int, downwards: bool, queue: Ints, seen: np.ndarray) -> int:
    """Mark what can be reached from `start`, from heads to modifiers or back; return how many are new."""
    seen[start] = True
    queue[0] = start
    count, done = 1, 0
    while done < count:
        v = queue[done]
        done += 1
        for u in range(1, n + 1):
            if not seen[u] and (scores[v, u] if downwards else scores[u, v]) > -np.inf:
                seen[u] = True
                queue[count] = u
                count += 1
    return count


@part
def _fill_weights(
    scores: Floats,
    n: int,
    single_root: bool,
    logs: bool,
    scale: Floats,
    core: np.ndarray,
    weights: Floats,
) -> None:
    """Scaled weights [head, modifier], or their logarithms; nothing on the diagonal, no root outside the core."""
    nothing = -np.inf if logs else 0.0
    for h in range(n + 1):
        extra = scale[0] if h == 0 else 0.0
        for m in range(1, n + 1):
            weights[h, m] = scores[h, m] - scale[m] - extra
        if not logs:
            for m in range(1, n + 1):
                weights[h, m] = fast_exp(weights[h, m])
        weights[h, h] = nothing
    if single_root:
        for m in range(1, n + 1):
            if not core[m]:
                weights[0, m] = nothing


@part
def _tree_sum(
    weights: Floats,
    f: Floats | None,
    b: int,
    n: int,
    single_root: bool,
    logs: bool,
    watch: bool,
    words: Ints,
    core: np.ndarray,
    table: Floats,
    d_table: Floats | None,
    work: Floats,
    escapes: Floats | None,
    d_escapes: Floats | None,
) -> float:
    """log Z of the scaled weights; escapes[0, h - 1, m - 1] is filled; nan if a watched factor left the safe range.

    The core is solved in the requested class, the words outside it (if any) as a forest rooted in the core, each in
    escapes[1] first.
    """
    total = 0.0
    for inside in (True, False):
        count = 0
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
        log_z, low, high = solve(table, d_table, count, multi_root, logs, watch, work, escapes, d_escapes, place)
        safe = (not watch) | ((low >= _SMALLEST_FACTOR) & (high <= _LARGEST_FACTOR))
        if not (logs or (safe and np.isfinite(log_z))):
            return np.nan
        total += log_z
        if place == 1 and escapes is not None:
            _store(escapes[1], words, count, core, inside, n, 0.0 if logs else 1.0, escapes[0])
        if place == 1 and d_escapes is not None:
            _store(d_escapes[1], words, count, core, inside, n, 0.0, d_escapes[0])
    return total


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
        for i in range(n):
            for h in range(n + 1):
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
def _normalise(weights: Floats, escape: Floats, n: int, logs: bool, totals: Floats, mu: Floats) -> None:
    """P(h -> m) from weights and escapes [head, modifier], column by column; linear: `totals` holds what it took."""
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
        totals[m] = 1.0 / totals[m]
    for h in range(n + 1):
        for m in range(1, n + 1):
            mu[h, m] *= totals[m]


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
