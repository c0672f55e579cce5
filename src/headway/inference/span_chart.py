"""Eisner's (1996) spans for one sentence, in logarithms, for scores of any range.

`C[h, e]` sums the trees over the words from h to e (either side of h) with root h; `I[h, m]` those over the words
between h and m that have the arc h -> m; for i < j

    Q[i, j] = sum_{i <= k < j}  C[i, k] C[j, k + 1]         I[i, j] = w[i, j] Q[i, j],   I[j, i] = w[j, i] Q[i, j]
    C[i, j] = sum_{i < k <= j}  I[i, k] C[k, j]             C[j, i] = sum_{i <= k < j} I[j, k] C[k, i]

with C[h, h] = 1 and a transposed copy CT, so that every sum runs along two rows. Multi-root trees put the root into
the chart as node 0 (Z = C[0, n]); single-root trees sum over its one child, Z = sum_m w[0, m] C[m, 1] C[m, n].

*Marginals* go from the top down: an item of posterior mu hands p mu to the parts of each of its terms, p being the
term's share of the item's sum. The shares of an item are normalised by their own sum, so columns sum to 1 at any
magnitude.

*Derivatives*: beside each item the expectation F of an arc-factored f over its trees (first-order expectation
semiring, Li and Eisner 2009), and beside each posterior its derivative: p (d mu + mu (F_a + F_b - F_item)) for a
term with parts a, b.

O(n^3) time with an exponential a term, O(n^2) memory. `eisner` is faster where linear numbers hold the chart.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Floats, Ints
from headway.inference.fast_exp import fast_exp
from headway.inference.jit import kernel, part

# Matrices in a chart: C, CT, I, Q.
CHART = 4


@part
def inside(scores: Floats, n: int, single_root: bool, chart: Floats, root: Floats, terms: Floats) -> float:
    """Fill the chart and return log Z; for single-root trees `root[m]` is left as P(root -> m)."""
    c, ct, arcs, q = chart
    first = 1 if single_root else 0
    for i in range(first, n + 1):
        c[i, i] = 0.0
        ct[i, i] = 0.0
    for width in range(1, n + 1 - first):
        for i in range(first, n + 1 - width):
            j = i + width
            q[i, j] = _log_sum(c, i, i, c, j, i + 1, width, terms)
            arcs[i, j] = scores[i, j] + q[i, j]
            arcs[j, i] = scores[j, i] + q[i, j] if i > 0 else -np.inf
            c[i, j] = _log_sum(arcs, i, i + 1, ct, j, i + 1, width, terms)
            c[j, i] = _log_sum(arcs, j, i, ct, i, i, width, terms)
            ct[j, i] = c[i, j]
            ct[i, j] = c[j, i]
    if not single_root:
        return float(c[0, n])
    for m in range(1, n + 1):
        root[m] = scores[0, m] + c[m, 1] + c[m, n]
    top = np.max(root[1 : n + 1])
    if top == -np.inf:
        return float(top)
    root[1 : n + 1] = np.exp(root[1 : n + 1] - top)
    total = np.sum(root[1 : n + 1])
    root[1 : n + 1] /= total
    return float(top + np.log(total))


@part
def _log_sum(a: Floats, i: int, x: int, b: Floats, j: int, y: int, count: int, terms: Floats) -> float:
    """log sum_t exp(a[i, x + t] + b[j, y + t])."""
    top, total = _shares(a, i, x, b, j, y, count, terms)
    return float(top + np.log(total)) if top > -np.inf else top


@part
def _shares(a: Floats, i: int, x: int, b: Floats, j: int, y: int, count: int, terms: Floats) -> tuple[float, float]:
    """The terms exp(a[i, x + t] + b[j, y + t] - top), and (top, their sum); nothing if top is -inf."""
    top = -np.inf
    for t in range(count):
        terms[t] = a[i, x + t] + b[j, y + t]
        top = max(top, terms[t])
    total = 0.0
    if top == -np.inf:
        return top, total
    for t in range(count):
        terms[t] = fast_exp(terms[t] - top)
        total += terms[t]
    return top, total


@part
def outside(
    n: int, single_root: bool, chart: Floats, root: Floats, terms: Floats, posterior: Floats, mu: Floats
) -> None:
    """Hand each item's posterior down to its parts, widest spans first; mu receives those of the arcs."""
    c, ct, arcs, _ = chart
    in_c, in_ct, in_arcs = posterior
    posterior[:, : n + 1, : n + 1] = 0.0
    first = 1 if single_root else 0
    if single_root:
        for m in range(1, n + 1):
            mu[0, m] = root[m]
            in_c[m, 1] += root[m]
            in_c[m, n] += root[m]
    else:
        in_c[0, n] = 1.0
    for width in range(n - first, 0, -1):
        for i in range(first, n + 1 - width):
            j = i + width
            share = in_c[i, j] + in_ct[j, i]
            _hand_down(share, arcs, i, i + 1, ct, j, i + 1, width, terms, in_arcs, in_ct)
            share = in_c[j, i] + in_ct[i, j]
            _hand_down(share, arcs, j, i, ct, i, i, width, terms, in_arcs, in_ct)
            mu[i, j] = in_arcs[i, j]
            if i > 0:
                mu[j, i] = in_arcs[j, i]
            share = in_arcs[i, j] + in_arcs[j, i]
            _hand_down(share, c, i, i, c, j, i + 1, width, terms, in_c, in_c)


@part
def _hand_down(
    share: float,
    a: Floats,
    i: int,
    x: int,
    b: Floats,
    j: int,
    y: int,
    count: int,
    terms: Floats,
    in_a: Floats,
    in_b: Floats,
) -> None:
    if share == 0.0:
        return
    _, total = _shares(a, i, x, b, j, y, count, terms)
    for t in range(count):
        part = share * (terms[t] / total)
        in_a[i, x + t] += part
        in_b[j, y + t] += part


@part
def inside_means(f: Floats, n: int, single_root: bool, chart: Floats, terms: Floats, means: Floats) -> None:
    """Beside each item of the chart, the expectation of f over its trees."""
    c, ct, arcs, _ = chart
    mean_c, mean_ct, mean_arcs, mean_q = means
    first = 1 if single_root else 0
    for i in range(first, n + 1):
        mean_c[i, i] = 0.0
        mean_ct[i, i] = 0.0
    for width in range(1, n + 1 - first):
        for i in range(first, n + 1 - width):
            j = i + width
            mean = _mean(c, i, i, c, j, i + 1, width, terms, mean_c, mean_c)
            mean_q[i, j] = mean
            mean_arcs[i, j] = mean + f[i, j]
            mean_arcs[j, i] = mean + f[j, i]
            mean_c[i, j] = _mean(arcs, i, i + 1, ct, j, i + 1, width, terms, mean_arcs, mean_ct)
            mean_c[j, i] = _mean(arcs, j, i, ct, i, i, width, terms, mean_arcs, mean_ct)
            mean_ct[j, i] = mean_c[i, j]
            mean_ct[i, j] = mean_c[j, i]


@part
def _mean(
    a: Floats,
    i: int,
    x: int,
    b: Floats,
    j: int,
    y: int,
    count: int,
    terms: Floats,
    mean_a: Floats,
    mean_b: Floats,
) -> float:
    """The parts' means, averaged over an item's terms; 0 for an item without trees."""
    top, total = _shares(a, i, x, b, j, y, count, terms)
    if top == -np.inf:
        return 0.0
    mean = 0.0
    for t in range(count):
        mean += terms[t] * (mean_a[i, x + t] + mean_b[j, y + t])
    return mean / total


@part
def outside_slopes(
    f: Floats,
    n: int,
    single_root: bool,
    chart: Floats,
    means: Floats,
    root: Floats,
    terms: Floats,
    posterior: Floats,
    slope: Floats,
) -> None:
    """`outside` with each posterior's derivative in the direction f beside it; `slope` receives the arcs'."""
    c, ct, arcs, _ = chart
    mean_c, mean_ct, mean_arcs, mean_q = means
    in_c, in_ct, in_arcs, d_c, d_ct, d_arcs = posterior
    posterior[:, : n + 1, : n + 1] = 0.0
    first = 1 if single_root else 0
    if single_root:
        expected = 0.0
        for m in range(1, n + 1):
            expected += root[m] * (f[0, m] + mean_c[m, 1] + mean_c[m, n])
        for m in range(1, n + 1):
            slope[0, m] = root[m] * (f[0, m] + mean_c[m, 1] + mean_c[m, n] - expected)
            in_c[m, 1] += root[m]
            in_c[m, n] += root[m]
            d_c[m, 1] += slope[0, m]
            d_c[m, n] += slope[0, m]
    else:
        in_c[0, n] = 1.0
    for width in range(n - first, 0, -1):
        for i in range(first, n + 1 - width):
            j = i + width
            _hand_down_slope(
                in_c[i, j] + in_ct[j, i], d_c[i, j] + d_ct[j, i], mean_c[i, j],
                arcs, i, i + 1, ct, j, i + 1, width, terms,
                mean_arcs, mean_ct, in_arcs, in_ct, d_arcs, d_ct,
            )  # fmt: skip
            _hand_down_slope(
                in_c[j, i] + in_ct[i, j], d_c[j, i] + d_ct[i, j], mean_c[j, i],
                arcs, j, i, ct, i, i, width, terms,
                mean_arcs, mean_ct, in_arcs, in_ct, d_arcs, d_ct,
            )  # fmt: skip
            slope[i, j] = d_arcs[i, j]
            if i > 0:
                slope[j, i] = d_arcs[j, i]
            _hand_down_slope(
                in_arcs[i, j] + in_arcs[j, i], d_arcs[i, j] + d_arcs[j, i], mean_q[i, j],
                c, i, i, c, j, i + 1, width, terms,
                mean_c, mean_c, in_c, in_c, d_c, d_c,
            )  # fmt: skip


@part
def _hand_down_slope(
    share: float,
    slope: float,
    mean: float,
    a: Floats,
    i: int,
    x: int,
    b: Floats,
    j: int,
    y: int,
    count: int,
    terms: Floats,
    mean_a: Floats,
    mean_b: Floats,
    in_a: Floats,
    in_b: Floats,
    d_a: Floats,
    d_b: Floats,
) -> None:
    """A term's probability p grows at the rate p (its mean - the item's mean)."""
    if share == 0.0:
        return
    _, total = _shares(a, i, x, b, j, y, count, terms)
    for t in range(count):
        p = terms[t] / total
        part = p * share
        change = p * slope + part * (mean_a[i, x + t] + mean_b[j, y + t] - mean)
        in_a[i, x + t] += part
        in_b[j, y + t] += part
        d_a[i, x + t] += change
        d_b[j, y + t] += change


@kernel
def draw(scores: Floats, n: int, single_root: bool, rng: np.random.Generator, heads: Ints) -> None:
    """Fill each row of `heads` with one tree, choosing the terms of the chart in proportion to them."""
    chart = np.empty((CHART, n + 1, n + 1))
    root, terms = np.empty(n + 1), np.empty(n + 1)
    inside(scores, n, single_root, chart, root, terms)
    c, ct, arcs, _ = chart
    todo = np.empty((2 * n + 2, 3), dtype=np.int64)
    for tree in range(heads.shape[0]):
        if single_root:
            m = 1 + _pick(root[1 : n + 1], rng.random())
            heads[tree, m] = 0
            todo[0] = (0, m, 1)
            todo[1] = (0, m, n)
            left = 2
        else:
            todo[0] = (0, 0, n)
            left = 1
        while left > 0:
            left -= 1
            is_arc, h, e = todo[left]
            i, j = min(h, e), max(h, e)
            if i == j:
                continue
            if is_arc:
                _, total = _shares(c, i, i, c, j, i + 1, j - i, terms)
                k = i + _pick(terms[: j - i], rng.random() * total)
                heads[tree, e] = h
                todo[left] = (0, i, k)
                todo[left + 1] = (0, j, k + 1)
            else:
                x = i + 1 if h < e else i
                _, total = _shares(arcs, h, x, ct, e, x, j - i, terms)
                k = x + _pick(terms[: j - i], rng.random() * total)
                todo[left] = (1, h, k)
                todo[left + 1] = (0, k, e)
            left += 2


@part
def _pick(weights: Floats, u: float) -> int:
    """The place u falls on along the weights; never one of weight zero."""
    chosen = 0
    for t in range(weights.shape[0]):
        if weights[t] > 0.0:
            chosen = t
            u -= weights[t]
            if u < 0.0:
                break
    return chosen
