"""Projective trees of a batch: the best tree, log Z, marginals, derivatives and samples, in O(n^3) a sentence.

The recurrences are Eisner's; `span_chart` states them. Here they run on linear numbers, on several sentences at a
time. A chart is stored by width and left end, with the sentences of a group side by side,

    right[w, i]: head i over the words i .. i + w          left[w, i]: head i + w over the same words
    right_arc[w, i]: those with the arc i -> i + w         left_arc[w, i]: with the arc i + w -> i

so that a sum over split points t is, for all spans of one width and all sentences of the group at once, a product
of two stretches of memory added onto a third: long loops that vectorise, however short the sentences. A shorter
sentence beside a longer one finds weights of zero beyond its end. The outside pass is the same sums with the
derivatives of log Z (`out_*`).

*Range.* Each word's weights are scaled by 6.75 times its largest, the rate at which projective trees multiply. No
cell then exceeds 1, and every partial product is at least as large as the probability it leads to. A sentence with
a cell below `_FLOOR_*` is computed again in logarithms by `span_chart`, which also serves derivatives and samples.

Shapes: scores (B, N+1, N+1) to heads (B, N+1), log Z (B,), marginals like scores. O(n^2) memory a sentence of a
group.
"""

from __future__ import annotations

import numpy as np

from headway.inference import span_chart
from headway.inference.batch import Batch, Floats, Ints, over_sentences
from headway.inference.fast_exp import fast_exp
from headway.inference.jit import kernel, part

# Numbers in the charts of a group: as many sentences side by side as a second-level cache of about a megabyte holds.
_GROUP_CELLS = 2**20
_LARGEST_GROUP = 16
_GROWTH = np.log(6.75)
# A term lost to underflow is 38 orders of magnitude below a cell of 1e-270, and a cell that is lost whole is seen as 0.
_FLOOR_DENSE = 1e-270
# With forbidden arcs a zero may be a true one, so no product of two cells may come near underflow.
_FLOOR_SPARSE = 1e-145
_LOG_FLOOR_SPARSE = np.log(_FLOOR_SPARSE)

_NONE = np.empty((0, 0, 0))


def argmax(batch: Batch, *, single_root: bool, threads: int | None) -> tuple[Ints, Ints]:
    """Best projective heads (B, N+1) and, per sentence, whether a tree exists (1) or not (0)."""
    size, nodes = batch.scores.shape[:2]
    heads = np.full((size, nodes), -1, dtype=np.int64)
    found = np.ones(size, dtype=np.int64)
    over_sentences(
        lambda start, stop: _decode(batch.scores, batch.lengths, single_root, start, stop, heads, found),
        batch,
        work=0.5 * size * float(nodes) ** 3,
        threads=threads,
    )
    return heads, found


def log_partition(batch: Batch, *, single_root: bool, threads: int | None) -> Floats:
    """log Z of every sentence; -inf where no projective tree exists."""
    return _inside_outside(batch, single_root, threads, _NONE)


def marginals(batch: Batch, *, single_root: bool, threads: int | None) -> tuple[Floats, Floats]:
    """log Z and arc marginals [head, modifier] of every sentence; log Z is -inf where no tree exists."""
    mu = np.zeros(batch.scores.shape)
    return _inside_outside(batch, single_root, threads, mu), mu


def _inside_outside(batch: Batch, single_root: bool, threads: int | None, mu: Floats) -> Floats:
    size, nodes = batch.scores.shape[:2]
    log_z = np.zeros(size)
    order = np.argsort(batch.lengths, kind="stable")
    group = max(1, min(_LARGEST_GROUP, _GROUP_CELLS // (9 * nodes * nodes)))
    over_sentences(
        lambda start, stop: _groups(batch.scores, batch.lengths, order[start:stop], group, single_root, log_z, mu),
        batch,
        work=0.5 * size * float(nodes) ** 3,
        threads=threads,
        grain=group,
    )
    return log_z


def covariance(batch: Batch, f: Floats, *, single_root: bool, threads: int | None) -> tuple[Floats, Floats, Floats]:
    """log Z, marginals, and Cov(f, 1[arc]) for every arc: the derivative of the marginals in the direction f."""
    size, nodes = batch.scores.shape[:2]
    _, mu = marginals(batch, single_root=single_root, threads=threads)
    log_z, slope = np.zeros(size), np.zeros(batch.scores.shape)
    over_sentences(
        lambda start, stop: _differentiate(batch.scores, batch.lengths, f, single_root, start, stop, log_z, slope),
        batch,
        work=10.0 * size * float(nodes) ** 3,
        threads=threads,
    )
    return log_z, mu, slope


def sample(scores: Floats, k: int, rng: np.random.Generator, *, single_root: bool) -> Ints:
    """k independent trees of one sentence, drawn top-down from the chart: O(n^3) once, O(n^2) a tree."""
    heads = np.full((k, len(scores)), -1, dtype=np.int64)
    if len(scores) > 1:
        span_chart.draw(np.ascontiguousarray(scores), len(scores) - 1, single_root, rng, heads)
    return heads


@kernel
def _groups(
    scores: Floats, lengths: Ints, order: Ints, largest: int, single_root: bool, log_z: Floats, mu: Floats
) -> None:
    """Inside and outside for the sentences of `order`, a group at a time; logarithms for those that need them."""
    if order.shape[0] == 0:
        return
    first = 1 if single_root else 0
    places = max(lengths[order[-1]] + 1 - first, 1)
    lanes = min(largest, order.shape[0])
    chart = np.empty((9, places, places * lanes))
    scale = np.empty((lanes, scores.shape[1]))
    holds = np.empty(lanes, dtype=np.bool_)
    total = np.empty((2, places * lanes))
    for begin in range(0, order.shape[0], largest):
        group = order[begin : begin + largest]
        places = lengths[group[-1]] + 1 - first
        if lengths[group[-1]] == 0:
            continue
        _load(scores, lengths, group, first, chart, scale)
        _inside(places, group.shape[0], chart, total)
        _check(scores, lengths, group, first, scale, chart, holds)
        _sum_roots(scores, lengths, group, single_root, places, chart, scale, log_z, mu)
        if mu.shape[0] > 0:
            _outside(places, group.shape[0], chart, total)
            _store(lengths, group, first, chart, mu)
        for lane in range(group.shape[0]):
            if not holds[lane] and lengths[group[lane]] > 0:
                _in_logs(scores, lengths, group[lane], single_root, log_z, mu)


@part
def _load(scores: Floats, lengths: Ints, group: Ints, first: int, chart: Floats, scale: Floats) -> None:
    """Scaled weights by width and left end; zero where a sentence has ended."""
    lanes = group.shape[0]
    places = lengths[group[-1]] + 1 - first
    right_weight, left_weight = chart[4], chart[5]
    for lane in range(lanes):
        s, n = scores[group[lane]], lengths[group[lane]]
        top = scale[lane]
        top[: n + 1] = -np.inf
        for h in range(first, n + 1):
            own = top[h]
            for m in range(1, n + 1):
                top[m] = s[h, m] if s[h, m] > top[m] else top[m]
            top[h] = own
        for m in range(1, n + 1):
            top[m] = top[m] + _GROWTH if top[m] > -np.inf else 0.0
        for w in range(1, places):
            for i in range(places - w):
                x = i * lanes + lane
                a, b = first + i, first + i + w
                if b <= n:
                    right_weight[w, x] = s[a, b] - top[b]
                    left_weight[w, x] = s[b, a] - top[a] if a > 0 else -np.inf
                else:
                    right_weight[w, x] = -np.inf
                    left_weight[w, x] = -np.inf
    for w in range(1, places):
        for x in range((places - w) * lanes):
            right_weight[w, x] = fast_exp(right_weight[w, x])
            left_weight[w, x] = fast_exp(left_weight[w, x])


@part
def _inside(places: int, lanes: int, chart: Floats, total: Floats) -> None:
    right, left, right_arc, left_arc, right_weight, left_weight = chart[:6]
    right[0, : places * lanes] = 1.0
    left[0, : places * lanes] = 1.0
    for w in range(1, places):
        count = (places - w) * lanes
        total[0, :count] = 0.0
        for t in range(w):
            _add_products(total, 0, 0, right, t, 0, left, w - 1 - t, (t + 1) * lanes, count)
        for x in range(count):
            right_arc[w, x] = right_weight[w, x] * total[0, x]
            left_arc[w, x] = left_weight[w, x] * total[0, x]
        right[w, :count] = 0.0
        left[w, :count] = 0.0
        for t in range(w):
            _add_products(right, w, 0, right_arc, t + 1, 0, right, w - 1 - t, (t + 1) * lanes, count)
            _add_products(left, w, 0, left, t, 0, left_arc, w - t, t * lanes, count)


@part
def _add_products(
    total: Floats, row: int, at: int, a: Floats, i: int, x: int, b: Floats, j: int, y: int, count: int
) -> None:
    """total[row, at + t] += a[i, x + t] b[j, y + t]."""
    onto, left, right = total[row, at : at + count], a[i, x : x + count], b[j, y : y + count]
    for t in range(count):
        onto[t] += left[t] * right[t]


@part
def _check(
    scores: Floats, lengths: Ints, group: Ints, first: int, scale: Floats, chart: Floats, holds: np.ndarray
) -> None:
    """Which sentences of the group linear numbers hold, with every probability to full relative accuracy."""
    lanes = group.shape[0]
    places = lengths[group[-1]] + 1 - first
    small = 0
    for plane in range(2, 4):
        for w in range(1, places):
            for x in range((places - w) * lanes):
                small += chart[plane, w, x] < _FLOOR_SPARSE
    holds[:] = True
    if small == 0:
        return
    for lane in range(lanes):
        s, n = scores[group[lane]], lengths[group[lane]]
        forbidden, extreme = 0, 0
        for h in range(first, n + 1):
            for m in range(1, n + 1):
                x = s[h, m] - scale[lane, m]
                forbidden += (x == -np.inf) & (m != h)
                extreme += (x < _LOG_FLOOR_SPARSE) & (x > -np.inf) & (m != h)
        floor = _FLOOR_DENSE if forbidden == 0 else _FLOOR_SPARSE
        lost = 0 if forbidden == 0 else extreme
        for plane in range(2, 4):
            for w in range(1, n + 1 - first):
                # Nothing goes to the left from the artificial root, so its cells there are true zeros.
                for i in range(1 if first == 0 and plane == 3 else 0, n + 1 - first - w):
                    cell = chart[plane, w, i * lanes + lane]
                    lost += (cell < floor) & ((cell != 0.0) | (forbidden == 0))
        holds[lane] = lost == 0


@part
def _sum_roots(
    scores: Floats,
    lengths: Ints,
    group: Ints,
    single_root: bool,
    places: int,
    chart: Floats,
    scale: Floats,
    log_z: Floats,
    mu: Floats,
) -> None:
    """log Z of the group, and the outermost derivatives, from which the outside pass starts."""
    right, left = chart[0], chart[1]
    out_right, out_left = chart[6], chart[7]
    lanes = group.shape[0]
    out_right[:places, : places * lanes] = 0.0
    out_left[:places, : places * lanes] = 0.0
    terms = np.empty(places + 1)
    for lane in range(lanes):
        b, n = group[lane], lengths[group[lane]]
        if n == 0:
            continue
        shift = np.sum(scale[lane, 1 : n + 1])
        if not single_root:
            z = right[n, lane]
            log_z[b] = np.log(z) + shift
            out_right[n, lane] = 1.0 / z if z > 0.0 else 0.0
            continue
        top = -np.inf
        for m in range(1, n + 1):
            inner = np.log(left[m - 1, lane]) + np.log(right[n - m, (m - 1) * lanes + lane])
            terms[m] = scores[b, 0, m] - scale[lane, m] + inner
            top = max(top, terms[m])
        if top == -np.inf:
            log_z[b] = top
            continue
        total = 0.0
        for m in range(1, n + 1):
            terms[m] = np.exp(terms[m] - top)
            total += terms[m]
        log_z[b] = np.log(total) + top + shift
        for m in range(1, n + 1):
            p = terms[m] / total
            if p > 0.0:
                out_left[m - 1, lane] = p / left[m - 1, lane]
                out_right[n - m, (m - 1) * lanes + lane] = p / right[n - m, (m - 1) * lanes + lane]
            if mu.shape[0] > 0:
                mu[b, 0, m] = p


@part
def _outside(places: int, lanes: int, chart: Floats, total: Floats) -> None:
    """Derivatives of log Z by every span, widest first; the arcs' probabilities replace their weights."""
    right, left, right_arc, left_arc, right_weight, left_weight, out_right, out_left, out_both = chart
    for w in range(places - 1, 0, -1):
        count = (places - w) * lanes
        for t in range(1, places - w):
            at, some = t * lanes, count - t * lanes
            _add_products(out_right, w, at, out_right, w + t, 0, right_arc, t, 0, some)
            _add_products(out_left, w, 0, out_left, w + t, 0, left_arc, t, w * lanes, some)
            _add_products(out_right, w, 0, out_both, w + t, 0, left, t - 1, (w + 1) * lanes, some)
            _add_products(out_left, w, at, out_both, w + t, 0, right, t - 1, 0, some)
        total[:, :count] = 0.0
        for t in range(places - w):
            at, some = t * lanes, count - t * lanes
            _add_products(total, 0, 0, out_right, w + t, 0, right, t, w * lanes, some)
            _add_products(total, 1, at, out_left, w + t, 0, left, t, 0, some)
        for x in range(count):
            out_both[w, x] = total[0, x] * right_weight[w, x] + total[1, x] * left_weight[w, x]
            right_weight[w, x] = total[0, x] * right_arc[w, x]
            left_weight[w, x] = total[1, x] * left_arc[w, x]


@part
def _store(lengths: Ints, group: Ints, first: int, chart: Floats, mu: Floats) -> None:
    lanes = group.shape[0]
    for lane in range(lanes):
        own = mu[group[lane]]
        n = lengths[group[lane]]
        for w in range(1, n + 1 - first):
            for i in range(n + 1 - first - w):
                own[first + i, first + i + w] = chart[4, w, i * lanes + lane]
                if first + i > 0:
                    own[first + i + w, first + i] = chart[5, w, i * lanes + lane]


@part
def _in_logs(scores: Floats, lengths: Ints, b: int, single_root: bool, log_z: Floats, mu: Floats) -> None:
    n = lengths[b]
    chart = np.empty((span_chart.CHART, n + 1, n + 1))
    root, terms = np.empty(n + 1), np.empty(n + 1)
    log_z[b] = span_chart.inside(scores[b], n, single_root, chart, root, terms)
    if mu.shape[0] > 0:
        mu[b, : n + 1, : n + 1] = 0.0
        if log_z[b] > -np.inf:
            posterior = np.empty((3, n + 1, n + 1))
            span_chart.outside(n, single_root, chart, root, terms, posterior, mu[b])


@kernel
def _differentiate(
    scores: Floats,
    lengths: Ints,
    f: Floats,
    single_root: bool,
    start: int,
    stop: int,
    log_z: Floats,
    slope: Floats,
) -> None:
    nodes = scores.shape[1]
    chart = np.empty((span_chart.CHART, nodes, nodes))
    means = np.empty((4, nodes, nodes))
    posterior = np.empty((6, nodes, nodes))
    root, terms = np.empty(nodes), np.empty(nodes)
    for b in range(start, stop):
        n = lengths[b]
        if n == 0:
            continue
        log_z[b] = span_chart.inside(scores[b], n, single_root, chart, root, terms)
        if log_z[b] > -np.inf:
            span_chart.inside_means(f[b], n, single_root, chart, terms, means)
            span_chart.outside_slopes(f[b], n, single_root, chart, means, root, terms, posterior, slope[b])


@kernel
def _decode(
    scores: Floats,
    lengths: Ints,
    single_root: bool,
    start: int,
    stop: int,
    heads: Ints,
    found: Ints,
) -> None:
    nodes = scores.shape[1]
    chart = np.empty((span_chart.CHART, nodes, nodes))
    for b in range(start, stop):
        if lengths[b] > 0:
            found[b] = best_tree(scores[b], lengths[b], single_root, chart, heads[b])


@part
def best_tree(scores: Floats, n: int, single_root: bool, chart: Floats, heads: Ints) -> bool:
    """The chart of `span_chart` with max for sum; the way back looks again for the terms that attain it."""
    c, ct, arcs, q = chart
    first = 1 if single_root else 0
    for i in range(first, n + 1):
        c[i, i] = 0.0
        ct[i, i] = 0.0
    for width in range(1, n + 1 - first):
        for i in range(first, n + 1 - width):
            j = i + width
            best = _max(c, i, i, c, j, i + 1, width)
            q[i, j] = best
            arcs[i, j] = best + scores[i, j]
            arcs[j, i] = best + scores[j, i] if i > 0 else -np.inf
            c[i, j] = _max(arcs, i, i + 1, ct, j, i + 1, width)
            c[j, i] = _max(arcs, j, i, ct, i, i, width)
            ct[j, i] = c[i, j]
            ct[i, j] = c[j, i]

    todo = np.empty((2 * n + 2, 3), dtype=np.int64)
    if single_root:
        child, top = 0, -np.inf
        for m in range(1, n + 1):
            if scores[0, m] + c[m, 1] + c[m, n] > top:
                child, top = m, scores[0, m] + c[m, 1] + c[m, n]
        if child == 0:
            return False
        heads[child] = 0
        todo[0] = (0, child, 1)
        todo[1] = (0, child, n)
        left = 2
    else:
        if c[0, n] == -np.inf:
            return False
        todo[0] = (0, 0, n)
        left = 1
    while left > 0:
        left -= 1
        is_arc, h, e = todo[left]
        i, j = min(h, e), max(h, e)
        if i == j:
            continue
        if is_arc:
            k = i + _where(q[i, j], c, i, i, c, j, i + 1)
            heads[e] = h
            todo[left] = (0, i, k)
            todo[left + 1] = (0, j, k + 1)
        else:
            x = i + 1 if h < e else i
            k = x + _where(c[h, e], arcs, h, x, ct, e, x)
            todo[left] = (1, h, k)
            todo[left + 1] = (0, k, e)
        left += 2
    return True


@part
def _max(a: Floats, i: int, x: int, b: Floats, j: int, y: int, count: int) -> float:
    top = -np.inf
    for t in range(count):
        top = max(top, a[i, x + t] + b[j, y + t])
    return top


@part
def _where(value: float, a: Floats, i: int, x: int, b: Floats, j: int, y: int) -> int:
    t = 0
    while a[i, x + t] + b[j, y + t] != value:
        t += 1
    return t
