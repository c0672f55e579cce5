"""Projective trees of a batch: log Z, marginals, derivatives and samples, in O(n^3) per sentence.

The recurrences are Eisner's; `span_chart` states them. Here they run on linear numbers, on several sentences at a
time. A chart is stored by width and left end, with the sentences of a group side by side,

    right[w, i]: head i over the words i .. i + w          left[w, i]: head i + w over the same words
    right_arc[w, i]: those with the arc i -> i + w         left_arc[w, i]: with the arc i + w -> i

so that a sum over split points t is, for all spans of one width and all sentences of the group at once, a product
of two stretches of memory added onto a third: long loops that vectorise, however short the sentences. A shorter
sentence beside a longer one finds weights of zero beyond its end. The outside pass is the same sums with the
derivatives of log Z (`out_*`).

*Derivatives* of the marginals in a direction f of the scores: Cov(f, 1[arc]) for every arc. Beside the chart lies a
second, `slopes`, with the derivative of each number in it. It starts from dW = W f. Both passes are sums of products,
d(ab) = a db + b da, so each recurrence stands here once, and derivatives cost three products for one. Without a
direction `slopes` is None, and Numba leaves the derivatives out of the kernel.

*Range.* Each word's weights are scaled by 6.75 times its largest, the rate at which projective trees multiply. No
cell then exceeds 1, and every partial product is at least as large as the probability it leads to. A sentence with
a cell below `_FLOOR` is computed again in logarithms by `span_chart`, which also serves samples.

*Cancellation.* Values are sums of positive terms. The derivative of a cell is the cell times a mean of f over its
trees, and that of an arc's probability P subtracts P E[f] from P E[f | arc]: rounding errs by a few n eps P times the
largest |f(tree)|, and cannot grow as one sum follows another. To keep that small, f is first shifted to 0 at each
word's best head, which adds the same to all trees and changes no covariance: for a confident sentence nearly nothing
is left to cancel. Then it is scaled to at most 1, so that a derivative has the range of its value.

Shapes: scores (B, N+1, N+1) to log Z (B,), marginals like scores. O(n^2) memory per sentence of a group.

The file is longer than most: both passes, their derivatives and the range checks share one layout of the charts, and a
change to it is a change to all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Floats, Ints
from headway.inference import span_chart
from headway.inference.aligned import aligned_empty
from headway.inference.batch import Batch, over_sentences
from headway.inference.fast_exp import fast_exp
from headway.inference.jit import kernel, part
from headway.parallel import Executor

# Numbers in the charts of a group: as many sentences side by side as a second-level cache of about two megabytes holds,
# since half of each plane is never touched.
_GROUP_CELLS = 2**19
_LARGEST_GROUP = 16
_GROWTH = np.log(6.75)
# A term lost to underflow is 38 orders of magnitude below a cell of 1e-270, and a cell that is lost whole is seen as 0.
_FLOOR = 1e-270
# With forbidden arcs a zero may be a true one. It is, if no product of a weight and two cells can come near underflow.
_SAFE = 1e-100
_LOG_SAFE = np.log(_SAFE)

# The planes of a chart.
_RIGHT, _LEFT, _RIGHT_ARC, _LEFT_ARC, _RIGHT_WEIGHT, _LEFT_WEIGHT, _OUT_RIGHT, _OUT_LEFT, _OUT_BOTH = range(9)
# Two more, of whose rows the first serves: sums under way.
_TOTAL, _OTHER_TOTAL, _PLANES = 9, 10, 11

# How many of them are in use at a time, so that they should be in the cache.
_PLANES_OF_SUMS = 9

_NONE = np.empty((0, 0, 0))
_NO_CHARTS = np.empty((0, 0, 0, 0))


# How a sentence's marginals go on from its log Z: not at all, from its chart, in logarithms.
_AFRESH, _LINEAR, _LOGS = 0, 1, 2


class Begun(NamedTuple):
    """log Z of a batch, and how far its marginals have got.

    There are the charts of the inside pass, which take three copies of the scores, and P(root -> m) if trees have a
    single root, (B, N+1). `resume` (B,) tells what `marginals` can do with them.
    """

    log_z: Floats
    charts: Floats
    roots: Floats
    resume: NDArray[np.int8]


def log_partition(batch: Batch, *, single_root: bool, executor: Executor) -> Floats:
    """log Z of every sentence; -inf where no projective tree exists."""
    return _inside_outside(batch, single_root, executor, _nothing(batch, _NO_CHARTS), _NONE).log_z


def begin(batch: Batch, *, single_root: bool, executor: Executor) -> Begun:
    """log Z of every sentence, and what `marginals` can go on from."""
    group = _group_size(batch.scores.shape[1], _PLANES_OF_SUMS)
    places = batch.scores.shape[1] - (1 if single_root else 0)
    charts = aligned_empty((-(-len(batch) // group), _PLANES, places, places * min(group, len(batch))), np.float64)
    return _inside_outside(batch, single_root, executor, _nothing(batch, charts), _NONE)


def marginals(
    batch: Batch, *, single_root: bool, executor: Executor, begun: Begun | None = None
) -> tuple[Floats, Floats]:
    """log Z and arc marginals [head, modifier] of every sentence; log Z is -inf where no tree exists.

    What has begun is used up.
    """
    mu = np.zeros(batch.scores.shape)
    return _inside_outside(batch, single_root, executor, begun or _nothing(batch, _NO_CHARTS), mu).log_z, mu


def covariance(batch: Batch, f: Floats, *, single_root: bool, executor: Executor) -> tuple[Floats, Floats, Floats]:
    """log Z, marginals, and Cov(f, 1[arc]) for every arc: the derivative of the marginals in the direction f."""
    mu, slope = np.zeros(batch.scores.shape), np.zeros(batch.scores.shape)
    return _inside_outside(batch, single_root, executor, _nothing(batch, _NO_CHARTS), mu, f, slope).log_z, mu, slope


def _nothing(batch: Batch, charts: Floats) -> Begun:
    """Nothing begun yet, with room to keep charts or without."""
    size, nodes = batch.scores.shape[:2]
    return Begun(np.zeros(size), charts, np.empty((size, nodes)), np.zeros(size, np.int8))


def _group_size(nodes: int, planes: int) -> int:
    return max(1, min(_LARGEST_GROUP, _GROUP_CELLS // (planes * nodes * nodes)))


def _inside_outside(
    batch: Batch,
    single_root: bool,
    executor: Executor,
    begun: Begun,
    mu: Floats,
    f: Floats | None = None,
    slope: Floats | None = None,
) -> Begun:
    size, nodes = batch.scores.shape[:2]
    order = np.argsort(batch.lengths, kind="stable")
    group = _group_size(nodes, _PLANES_OF_SUMS if f is None else 2 * _PLANES_OF_SUMS)
    log_z, charts, roots, resume = begun

    def run(start: int, stop: int) -> None:
        own = charts[start // group : -(-stop // group)]
        _groups(
            batch.scores, batch.lengths, order[start:stop], group, single_root, log_z, own, roots, resume, mu, f, slope
        )

    work = (0.5 if f is None else 1.5) * size * float(nodes) ** 3
    over_sentences(run, batch, work=work, executor=executor, grain=group)
    return begun


def sample(scores: Floats, k: int, rng: np.random.Generator, *, single_root: bool) -> Ints:
    """k independent trees of one sentence, drawn top-down from the chart: O(n^3) once, O(n^2) per tree."""
    heads = np.full((k, len(scores)), -1, dtype=np.int64)
    if len(scores) > 1:
        span_chart.draw(np.ascontiguousarray(scores), len(scores) - 1, single_root, rng, heads)
    return heads


@kernel
def _groups(
    scores: Floats,
    lengths: Ints,
    order: Ints,
    largest: int,
    single_root: bool,
    log_z: Floats,
    charts: Floats,
    roots: Floats,
    resume: NDArray[np.int8],
    mu: Floats,
    f: Floats | None,
    slope: Floats | None,
) -> None:
    """Inside, unless it has been done before, and outside, if there is room for marginals. A group of the sentences of
    `order` at a time; logarithms for those that need them."""
    if order.shape[0] == 0:
        return
    first = 1 if single_root else 0
    places = max(lengths[order[-1]] + 1 - first, 1)
    lanes = min(largest, order.shape[0])
    own_chart = np.empty((1 if charts.shape[0] == 0 else 0, _PLANES, places, places * lanes))
    slopes = np.empty((_PLANES, places, places * lanes)) if f is not None else None
    direction = np.empty((lanes, scores.shape[1], scores.shape[1])) if f is not None else None
    scale = np.empty((lanes, scores.shape[1]))
    unit = np.ones((2, lanes))
    wanted = mu.shape[0] > 0
    count = (order.shape[0] + largest - 1) // largest
    for turn in range(count):
        # What has been begun last is gone on with first: it may still be in the cache.
        number = count - 1 - turn if wanted and charts.shape[0] > 0 else turn
        if number < 0:  # never; see _add_products
            return
        group = order[number * largest : (number + 1) * largest]
        chart = charts[number] if charts.shape[0] > 0 else own_chart[0]
        places = lengths[group[-1]] + 1 - first
        if lengths[group[-1]] == 0:
            continue
        if resume[group[-1]] == _AFRESH:
            _load(scores, lengths, group, first, chart, scale)
            _load_slopes(scores, lengths, group, first, chart, f, slopes, direction, unit[1])
            _inside(places, group.shape[0], chart, slopes)
            _check(scores, lengths, group, first, scale, chart, resume)
            _sum_roots(scores, lengths, group, single_root, chart, scale, log_z, roots)
        if wanted:
            _start_outside(lengths, group, single_root, places, chart, roots, mu)
            _sum_root_slopes(lengths, group, single_root, places, chart, roots, slopes, direction, unit[1], slope)
            _outside(places, group.shape[0], chart, slopes)
            _store(lengths, group, first, chart, unit[0], mu)
            _store(lengths, group, first, slopes, unit[1], slope)
        for b in group:
            if resume[b] == _LOGS and lengths[b] > 0:
                _in_logs(scores, lengths, b, single_root, log_z, mu, f, slope)
            if wanted:
                resume[b] = _AFRESH


@part
def _load(scores: Floats, lengths: Ints, group: Ints, first: int, chart: Floats, scale: Floats) -> None:
    """Scaled weights by width and left end; zero where a sentence has ended."""
    lanes = group.shape[0]
    places = lengths[group[-1]] + 1 - first
    right_weight, left_weight = chart[_RIGHT_WEIGHT], chart[_LEFT_WEIGHT]
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
def _load_slopes(
    scores: Floats,
    lengths: Ints,
    group: Ints,
    first: int,
    chart: Floats,
    f: Floats | None,
    slopes: Floats | None,
    direction: Floats | None,
    unit: Floats,
) -> None:
    """dW = W f beside the weights, for f shifted and scaled: `direction`, which is f in `unit`s."""
    if f is None or slopes is None or direction is None:
        return
    lanes = group.shape[0]
    places = lengths[group[-1]] + 1 - first
    right_weight, left_weight = chart[_RIGHT_WEIGHT], chart[_LEFT_WEIGHT]
    right_slope, left_slope = slopes[_RIGHT_WEIGHT], slopes[_LEFT_WEIGHT]
    for lane in range(lanes):
        own, n = direction[lane], lengths[group[lane]]
        unit[lane] = _normalise(scores[group[lane]], f[group[lane]], n, first, own)
        for w in range(1, places):
            for i in range(places - w):
                x = i * lanes + lane
                a, b = first + i, first + i + w
                right_slope[w, x] = right_weight[w, x] * own[a, b] if b <= n else 0.0
                left_slope[w, x] = left_weight[w, x] * own[b, a] if b <= n and a > 0 else 0.0


@part
def _normalise(scores: Floats, f: Floats, n: int, first: int, direction: Floats) -> float:
    """f less its value at each word's best head, over the largest of what is left, which is returned."""
    largest = 0.0
    for m in range(1, n + 1):
        best, top = m, -np.inf
        for h in range(first, n + 1):
            if h != m and scores[h, m] > top:
                best, top = h, scores[h, m]
        at_best = f[best, m] if best != m else 0.0
        for h in range(n + 1):
            direction[h, m] = f[h, m] - at_best if h != m and scores[h, m] > -np.inf else 0.0
            largest = max(largest, abs(direction[h, m]))
    for h in range(n + 1):
        for m in range(1, n + 1):
            direction[h, m] = direction[h, m] / largest if largest > 0.0 else 0.0
    return largest


@part
def _inside(places: int, lanes: int, chart: Floats, slopes: Floats | None) -> None:
    _fill(chart, slopes, _RIGHT, 0, places * lanes, 1.0)
    _fill(chart, slopes, _LEFT, 0, places * lanes, 1.0)
    for w in range(1, places):
        count = (places - w) * lanes
        _fill(chart, slopes, _TOTAL, 0, count, 0.0)
        for t in range(w):
            _add_products(chart, slopes, _TOTAL, 0, 0, _RIGHT, t, 0, _LEFT, w - 1 - t, (t + 1) * lanes, count)
        _multiply(chart, slopes, _RIGHT_ARC, _TOTAL, _RIGHT_WEIGHT, w, count)
        _multiply(chart, slopes, _LEFT_ARC, _TOTAL, _LEFT_WEIGHT, w, count)
        _fill(chart, slopes, _RIGHT, w, count, 0.0)
        _fill(chart, slopes, _LEFT, w, count, 0.0)
        for t in range(w):
            at = (t + 1) * lanes
            _add_products(chart, slopes, _RIGHT, w, 0, _RIGHT_ARC, t + 1, 0, _RIGHT, w - 1 - t, at, count)
            _add_products(chart, slopes, _LEFT, w, 0, _LEFT, t, 0, _LEFT_ARC, w - t, t * lanes, count)


@part
def _fill(chart: Floats, slopes: Floats | None, plane: int, row: int, count: int, value: float) -> None:
    for t in range(count):
        chart[plane, row, t] = value
    if slopes is None:
        return
    for t in range(count):
        slopes[plane, row, t] = 0.0


@part
def _add_products(
    chart: Floats,
    slopes: Floats | None,
    total: int, row: int, at: int,
    a: int, i: int, x: int,
    b: int, j: int, y: int,
    count: int,
) -> None:  # fmt: skip
    """total[row, at + t] += a[i, x + t] b[j, y + t], for planes total, a and b."""
    # Says that no index counts from the end, without which the loops do not vectorise. Slices would say so too, but
    # Numba counts references to them, at the price of a short loop.
    if at < 0 or x < 0 or y < 0:
        return
    for t in range(count):
        chart[total, row, at + t] += chart[a, i, x + t] * chart[b, j, y + t]
    if slopes is None:
        return
    for t in range(count):
        slopes[total, row, at + t] += (
            slopes[a, i, x + t] * chart[b, j, y + t] + chart[a, i, x + t] * slopes[b, j, y + t]
        )


@part
def _multiply(chart: Floats, slopes: Floats | None, product: int, total: int, a: int, w: int, count: int) -> None:
    """product[w] = total[0] a[w], for planes product, total and a."""
    for t in range(count):
        chart[product, w, t] = chart[total, 0, t] * chart[a, w, t]
    if slopes is None:
        return
    for t in range(count):
        slopes[product, w, t] = slopes[total, 0, t] * chart[a, w, t] + chart[total, 0, t] * slopes[a, w, t]


@part
def _check(
    scores: Floats,
    lengths: Ints,
    group: Ints,
    first: int,
    scale: Floats,
    chart: Floats,
    resume: NDArray[np.int8],
) -> None:
    """Which sentences of the group linear numbers hold, with every probability to full relative accuracy."""
    lanes = group.shape[0]
    places = lengths[group[-1]] + 1 - first
    small = 0
    for plane in range(_RIGHT_ARC, _LEFT_ARC + 1):
        for w in range(1, places):
            for x in range((places - w) * lanes):
                small += chart[plane, w, x] < _SAFE
    for b in group:
        resume[b] = _LINEAR
    if small == 0:
        return
    for lane in range(lanes):
        s, n = scores[group[lane]], lengths[group[lane]]
        forbidden, unsafe, lost = 0, 0, 0
        for h in range(first, n + 1):
            for m in range(1, n + 1):
                x = s[h, m] - scale[lane, m]
                forbidden += (x == -np.inf) & (m != h)
                unsafe += (x < _LOG_SAFE) & (x > -np.inf) & (m != h)
        # Where all arcs are allowed, no span is below the cell of its longest arc.
        for plane in range(_RIGHT_ARC if forbidden == 0 else _RIGHT, _LEFT_ARC + 1):
            for w in range(1, n + 1 - first):
                # Nothing goes to the left from the artificial root, so its cells there are true zeros.
                for i in range(1 if first == 0 and plane == _LEFT_ARC else 0, n + 1 - first - w):
                    cell = chart[plane, w, i * lanes + lane]
                    lost += (cell < _FLOOR) & ((cell != 0.0) | (forbidden == 0))
                    unsafe += (cell < _SAFE) & (cell != 0.0)
        if forbidden > 0 and unsafe > 0 and lost == 0:
            lost = _false_zeros(s, n, first, lane, lanes, chart)
        resume[group[lane]] = _LINEAR if lost == 0 else _LOGS


@part
def _false_zeros(s: Floats, n: int, first: int, lane: int, lanes: int, chart: Floats) -> int:
    """1 if some cell is 0 by underflow: with a term that has no factor 0. Up to the first of them, zeros are true."""
    for w in range(1, n + 1 - first):
        for i in range(n + 1 - first - w):
            x = i * lanes + lane
            a, b = first + i, first + i + w
            no_right = chart[_RIGHT_ARC, w, x] == 0.0 and s[a, b] > -np.inf
            no_left = chart[_LEFT_ARC, w, x] == 0.0 and a > 0 and s[b, a] > -np.inf
            for t in range(w):
                y, z = x + t * lanes, x + (t + 1) * lanes
                if (no_right or no_left) and chart[_RIGHT, t, x] > 0.0 and chart[_LEFT, w - 1 - t, z] > 0.0:
                    return 1
                if (
                    chart[_RIGHT, w, x] == 0.0
                    and chart[_RIGHT_ARC, t + 1, x] > 0.0
                    and chart[_RIGHT, w - 1 - t, z] > 0.0
                ):
                    return 1
                if chart[_LEFT, w, x] == 0.0 and chart[_LEFT, t, x] > 0.0 and chart[_LEFT_ARC, w - t, y] > 0.0:
                    return 1
    return 0


@part
def _sum_roots(
    scores: Floats,
    lengths: Ints,
    group: Ints,
    single_root: bool,
    chart: Floats,
    scale: Floats,
    log_z: Floats,
    roots: Floats,
) -> None:
    """log Z of the group; single-root: P(root -> m)."""
    right, left = chart[_RIGHT], chart[_LEFT]
    lanes = group.shape[0]
    for lane in range(lanes):
        b, n = group[lane], lengths[group[lane]]
        if n == 0:
            continue
        shift = np.sum(scale[lane, 1 : n + 1])
        if not single_root:
            log_z[b] = np.log(right[n, lane]) + shift
            continue
        top = -np.inf
        for m in range(1, n + 1):
            inner = np.log(left[m - 1, lane]) + np.log(right[n - m, (m - 1) * lanes + lane])
            roots[b, m] = scores[b, 0, m] - scale[lane, m] + inner
            top = max(top, roots[b, m])
        if top == -np.inf:
            log_z[b] = top
            roots[b, 1 : n + 1] = 0.0
            continue
        total = 0.0
        for m in range(1, n + 1):
            roots[b, m] = np.exp(roots[b, m] - top)
            total += roots[b, m]
        log_z[b] = np.log(total) + top + shift
        for m in range(1, n + 1):
            roots[b, m] = roots[b, m] / total


@part
def _start_outside(
    lengths: Ints, group: Ints, single_root: bool, places: int, chart: Floats, roots: Floats, mu: Floats
) -> None:
    """The outermost derivatives of log Z, from which the outside pass starts."""
    right, left = chart[_RIGHT], chart[_LEFT]
    out_right, out_left = chart[_OUT_RIGHT], chart[_OUT_LEFT]
    lanes = group.shape[0]
    out_right[:places, : places * lanes] = 0.0
    out_left[:places, : places * lanes] = 0.0
    for lane in range(lanes):
        b, n = group[lane], lengths[group[lane]]
        if n == 0:
            continue
        if not single_root:
            z = right[n, lane]
            out_right[n, lane] = 1.0 / z if z > 0.0 else 0.0
            continue
        for m in range(1, n + 1):
            p = roots[b, m]
            if p > 0.0:
                out_left[m - 1, lane] = p / left[m - 1, lane]
                out_right[n - m, (m - 1) * lanes + lane] = p / right[n - m, (m - 1) * lanes + lane]
            mu[b, 0, m] = p


@part
def _sum_root_slopes(
    lengths: Ints,
    group: Ints,
    single_root: bool,
    places: int,
    chart: Floats,
    roots: Floats,
    slopes: Floats | None,
    direction: Floats | None,
    unit: Floats,
    slope: Floats | None,
) -> None:
    """The derivatives of what `_start_outside` leaves: 1 / Z, or P(root -> m) over the spans either side of m."""
    if slopes is None or direction is None or slope is None:
        return
    right, left = chart[_RIGHT], chart[_LEFT]
    out_right, out_left = chart[_OUT_RIGHT], chart[_OUT_LEFT]
    d_right, d_left = slopes[_RIGHT], slopes[_LEFT]
    d_out_right, d_out_left = slopes[_OUT_RIGHT], slopes[_OUT_LEFT]
    lanes = group.shape[0]
    d_out_right[:places, : places * lanes] = 0.0
    d_out_left[:places, : places * lanes] = 0.0
    for lane in range(lanes):
        b, n = group[lane], lengths[group[lane]]
        if n == 0:
            continue
        if not single_root:
            d_out_right[n, lane] = -out_right[n, lane] * _mean(right, d_right, n, lane)
            continue
        expected = 0.0
        for m in range(1, n + 1):
            x = (m - 1) * lanes + lane
            means = _mean(left, d_left, m - 1, lane) + _mean(right, d_right, n - m, x)
            expected += roots[b, m] * (direction[lane, 0, m] + means)
        for m in range(1, n + 1):
            x = (m - 1) * lanes + lane
            on_left, on_right = _mean(left, d_left, m - 1, lane), _mean(right, d_right, n - m, x)
            rest = direction[lane, 0, m] - expected
            slope[b, 0, m] = unit[lane] * roots[b, m] * (rest + on_left + on_right)
            d_out_left[m - 1, lane] = out_left[m - 1, lane] * (rest + on_right)
            d_out_right[n - m, x] = out_right[n - m, x] * (rest + on_left)


@part
def _mean(cells: Floats, slopes: Floats, row: int, x: int) -> float:
    """The mean of the direction over a cell's trees, which is the derivative of its logarithm; 0 without trees."""
    return float(slopes[row, x] / cells[row, x]) if cells[row, x] > 0.0 else 0.0


@part
def _outside(places: int, lanes: int, chart: Floats, slopes: Floats | None) -> None:
    """Derivatives of log Z by every span, widest first; the arcs' probabilities replace their weights."""
    for w in range(places - 1, 0, -1):
        count = (places - w) * lanes
        for t in range(1, places - w):
            at, some = t * lanes, count - t * lanes
            end = (w + 1) * lanes
            _add_products(chart, slopes, _OUT_RIGHT, w, at, _OUT_RIGHT, w + t, 0, _RIGHT_ARC, t, 0, some)
            _add_products(chart, slopes, _OUT_LEFT, w, 0, _OUT_LEFT, w + t, 0, _LEFT_ARC, t, w * lanes, some)
            _add_products(chart, slopes, _OUT_RIGHT, w, 0, _OUT_BOTH, w + t, 0, _LEFT, t - 1, end, some)
            _add_products(chart, slopes, _OUT_LEFT, w, at, _OUT_BOTH, w + t, 0, _RIGHT, t - 1, 0, some)
        _fill(chart, slopes, _TOTAL, 0, count, 0.0)
        _fill(chart, slopes, _OTHER_TOTAL, 0, count, 0.0)
        for t in range(places - w):
            at, some = t * lanes, count - t * lanes
            _add_products(chart, slopes, _TOTAL, 0, 0, _OUT_RIGHT, w + t, 0, _RIGHT, t, w * lanes, some)
            _add_products(chart, slopes, _OTHER_TOTAL, 0, at, _OUT_LEFT, w + t, 0, _LEFT, t, 0, some)
        _multiply(chart, slopes, _OUT_BOTH, _TOTAL, _RIGHT_WEIGHT, w, count)
        _add_products(chart, slopes, _OUT_BOTH, w, 0, _OTHER_TOTAL, 0, 0, _LEFT_WEIGHT, w, 0, count)
        _multiply(chart, slopes, _RIGHT_WEIGHT, _TOTAL, _RIGHT_ARC, w, count)
        _multiply(chart, slopes, _LEFT_WEIGHT, _OTHER_TOTAL, _LEFT_ARC, w, count)


@part
def _store(lengths: Ints, group: Ints, first: int, chart: Floats | None, unit: Floats, result: Floats | None) -> None:
    if chart is None or result is None:
        return
    lanes = group.shape[0]
    for lane in range(lanes):
        own = result[group[lane]]
        n = lengths[group[lane]]
        for w in range(1, n + 1 - first):
            for i in range(n + 1 - first - w):
                x = i * lanes + lane
                own[first + i, first + i + w] = unit[lane] * chart[_RIGHT_WEIGHT, w, x]
                if first + i > 0:
                    own[first + i + w, first + i] = unit[lane] * chart[_LEFT_WEIGHT, w, x]


@part
def _in_logs(
    scores: Floats,
    lengths: Ints,
    b: int,
    single_root: bool,
    log_z: Floats,
    mu: Floats,
    f: Floats | None,
    slope: Floats | None,
) -> None:
    n = lengths[b]
    chart = np.empty((span_chart.CHART, n + 1, n + 1))
    root, terms = np.empty(n + 1), np.empty(n + 1)
    log_z[b] = span_chart.inside(scores[b], n, single_root, chart, root, terms)
    if mu.shape[0] > 0:
        mu[b, : n + 1, : n + 1] = 0.0
        if log_z[b] > -np.inf:
            posterior = np.empty((3, n + 1, n + 1))
            span_chart.outside(n, single_root, chart, root, terms, posterior, mu[b])
    if f is None or slope is None:
        return
    slope[b, : n + 1, : n + 1] = 0.0
    if log_z[b] > -np.inf:
        means, slopes = np.empty((4, n + 1, n + 1)), np.empty((6, n + 1, n + 1))
        span_chart.inside_means(f[b], n, single_root, chart, terms, means)
        span_chart.outside_slopes(f[b], n, single_root, chart, means, root, terms, slopes, slope[b])
