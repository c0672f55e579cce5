"""Projective trees in Triton: log Z and marginals by Eisner's inside-outside, one program a sentence.

Places are the sentence's words; with several words on the root, the root is the place before the first. With i < j,

    Q[i, j] = sum over i <= k < j of C[i, k] C[j, k + 1]
    I[i, j] = Q[i, j] W[i, j]           I[j, i] = Q[i, j] W[j, i]               arcs from i to j, from j to i
    C[h, e] = sum over k of I[h, k] C[k, e]                                     h's words up to e, on either side

W is a weight relative to the word's largest. Z is C[root, last], or the sum over the root's child r of
W[root, r] C[r, first] C[r, last]. The outside pass has the derivatives of log Z: O[h, e] by C[h, e], and D[i, j] by
Q[i, j], widest spans first.

The chart is in memory, mostly in a cache, a few megabytes for as many programs as a GPU runs at a time; each takes
sentences in turn. Spans of one width are side by side, with a barrier before the next width. Numbers are m 2^e
(`extended`), so all scores will do that differ by less than a million nats or so; -1e9 as a mask is beyond, and such
sentences are marked in `left`.

Tables are P x P, P = N+1: C, I, W with the root's weights on its diagonal, and O. D takes W's place above the diagonal.
Shapes: scores and marginals (B, N+1, N+1); lengths and log Z (B,). O(n^3), any number of words.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from headway.torch.triton.extended import (
    LARGEST_EXPONENT,
    ZERO,
    exponential,
    logarithm,
    normal,
    plus,
    plus_sum,
    power_of_two,
    times,
)

_TABLES = 4
_BYTES = 1 << 26  # of all charts together
_LEAST_PROGRAMS = 128
_SPANS, _TERMS = 16, 16  # a tile of sums


def log_partition(scores: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    """log Z, and which sentences are left to others."""
    log_z, left = scores.new_empty(len(scores)), lengths.new_empty(len(scores), dtype=torch.int32)
    _launch(scores, lengths, single_root, log_z, left, None)
    return log_z, left


def marginals(scores: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor, Tensor]:
    """log Z, marginals, and which sentences are left to others."""
    log_z, left = scores.new_empty(len(scores)), lengths.new_empty(len(scores), dtype=torch.int32)
    mu = torch.zeros_like(scores)
    _launch(scores, lengths, single_root, log_z, left, mu)
    return log_z, mu, left


def _launch(scores: Tensor, lengths: Tensor, single_root: bool, log_z: Tensor, left: Tensor, mu: Tensor | None) -> None:
    batch, nodes = scores.shape[:2]
    size = _TABLES * nodes * nodes
    programs = min(batch, max(_LEAST_PROGRAMS, _BYTES // (size * (4 + scores.element_size()))))
    numbers = scores.new_empty(programs * size)
    exponents = lengths.new_empty(programs * size, dtype=torch.int32)
    _eisner[(programs,)](
        scores, lengths, batch, nodes, log_z, left, mu, numbers, exponents,
        MULTI=not single_root, DOUBLE=scores.dtype == torch.float64, OUTSIDE=mu is not None,
        SPREAD=LARGEST_EXPONENT * math.log(2) / nodes, SPANS=_SPANS, TERMS=_TERMS,
        num_warps=1 if nodes <= 40 else 4, enable_fp_fusion=True,
    )  # fmt: skip


@triton.jit
def _eisner(
    scores, lengths, batch, nodes, log_z, left, mu, numbers, exponents,
    MULTI: tl.constexpr, DOUBLE: tl.constexpr, OUTSIDE: tl.constexpr,
    SPREAD: tl.constexpr, SPANS: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    chart = tl.program_id(0).to(tl.int64) * 4 * nodes * nodes
    numbers += chart
    exponents += chart
    b = tl.program_id(0).to(tl.int64)
    while b < batch:
        own = scores + b * nodes * nodes
        n = tl.load(lengths + b).to(tl.int32)
        places = n + 1 if MULTI else n
        shift, lowest = _fill(own, n, places, nodes, numbers, exponents, MULTI, DOUBLE, TERMS)
        tl.store(left + b, tl.where(lowest >= -SPREAD, 0, 1))
        if lowest >= -SPREAD:
            tl.debug_barrier()
            _inside(places, nodes, numbers, exponents, DOUBLE, SPANS, TERMS)
            zm, ze = _total(places, nodes, numbers, exponents, MULTI, DOUBLE, TERMS)
            value = logarithm(zm, ze) + shift
            tl.store(log_z + b, tl.where(n == 0, 0, value).to(log_z.dtype.element_ty))
            if OUTSIDE:
                _outside(places, nodes, zm, ze, numbers, exponents, mu + b * nodes * nodes, MULTI, DOUBLE, SPANS, TERMS)
        tl.debug_barrier()
        b += tl.num_programs(0)


@triton.jit
def _get(numbers, exponents, at, mask):
    """Cells of a table; zero where the mask says so."""
    return tl.load(numbers + at, mask=mask, other=0), tl.load(exponents + at, mask=mask, other=ZERO)


@triton.jit
def _put(numbers, exponents, at, m, e, mask):
    tl.store(numbers + at, m, mask=mask)
    tl.store(exponents + at, e, mask=mask)


@triton.jit
def _fill(scores, n, places, nodes, numbers, exponents, MULTI: tl.constexpr, DOUBLE: tl.constexpr, TERMS: tl.constexpr):
    """Weights, and ones on the diagonal of C. What their log Z lacks, and the lowest score of an arc among them."""
    none: tl.constexpr = float("-inf")
    weights = 2 * nodes * nodes
    shift = tl.full((), 0, tl.float64)
    lowest = tl.full((TERMS, TERMS), 0, tl.float64)
    for first in range(1, n + 1, TERMS):
        m = first + tl.arange(0, TERMS)[:, None]
        largest = tl.full((TERMS, TERMS), none, tl.float64)
        for start in range(0, n + 1, TERMS):
            h = start + tl.arange(0, TERMS)[None, :]
            arc = (h <= n) & (m <= n) & (h != m)
            x = tl.load(scores + h * nodes + m, mask=arc, other=none).to(tl.float64)
            largest = tl.maximum(largest, x)
        top = tl.max(largest, 1)
        top = tl.where(top > none, top, 0)
        shift += tl.sum(top)
        for start in range(0, n + 1, TERMS):
            h = start + tl.arange(0, TERMS)[None, :]
            arc = (h <= n) & (m <= n) & (h != m)
            x = tl.load(scores + h * nodes + m, mask=arc, other=none).to(tl.float64) - top[:, None]
            lowest = tl.minimum(lowest, tl.where(x > none, x, 0))
            at = h * nodes + m if MULTI else tl.where(h == 0, m - 1, h - 1) * nodes + m - 1
            wm, we = exponential(x, DOUBLE)
            _put(numbers, exponents, weights + at, wm, we, arc)
    for start in range(0, places, TERMS):
        i = start + tl.arange(0, TERMS)
        one = tl.full((TERMS,), 1, numbers.dtype.element_ty)
        _put(numbers, exponents, i * nodes + i, one, i * 0, i < places)
        if MULTI:  # the root has no head
            _put(numbers, exponents, weights + i * nodes, one * 0, i * 0 + ZERO, i < places)
    return shift, tl.min(tl.min(lowest, 1))


@triton.jit
def _inside(places, nodes, numbers, exponents, DOUBLE: tl.constexpr, SPANS: tl.constexpr, TERMS: tl.constexpr):
    """C and I, narrow spans first."""
    arcs = nodes * nodes
    for width in range(1, places):
        for first in range(0, places - width, SPANS):
            i = first + tl.arange(0, SPANS)[:, None]
            j = i + width
            mine = j < places
            qm, qe = _zeros(SPANS, numbers)
            rightm, righte = _zeros(SPANS, numbers)
            leftm, lefte = _zeros(SPANS, numbers)
            for start in range(0, width, TERMS):
                k = i + start + tl.arange(0, TERMS)[None, :]
                mask = mine & (k < j)
                am, ae = _get(numbers, exponents, i * nodes + k, mask)
                bm, be = _get(numbers, exponents, j * nodes + k + 1, mask)
                qm, qe = plus_sum(qm, qe, am * bm, ae + be, DOUBLE)
                mask = mask & (k > i)
                am, ae = _get(numbers, exponents, arcs + i * nodes + k, mask)
                bm, be = _get(numbers, exponents, k * nodes + j, mask)
                rightm, righte = plus_sum(rightm, righte, am * bm, ae + be, DOUBLE)
                am, ae = _get(numbers, exponents, arcs + j * nodes + k, mask)
                bm, be = _get(numbers, exponents, k * nodes + i, mask)
                leftm, lefte = plus_sum(leftm, lefte, am * bm, ae + be, DOUBLE)
            i = first + tl.arange(0, SPANS)
            j = i + width
            mine = j < places
            _close(i, j, mine, qm, qe, rightm, righte, nodes, numbers, exponents, DOUBLE)
            _close(j, i, mine, qm, qe, leftm, lefte, nodes, numbers, exponents, DOUBLE)
        tl.debug_barrier()


@triton.jit
def _close(h, e, mine, qm, qe, sm, se, nodes, numbers, exponents, DOUBLE: tl.constexpr):
    """I[h, e] from Q, and C[h, e], which has one more term than there are in s: the arc itself."""
    square, at = nodes * nodes, h * nodes + e
    wm, we = _get(numbers, exponents, 2 * square + at, mine)
    wm, we = times(qm, qe, wm, we, DOUBLE)
    _put(numbers, exponents, square + at, wm, we, mine)
    sm, se = plus(sm, se, wm, we, DOUBLE)
    _put(numbers, exponents, at, sm, se, mine)


@triton.jit
def _zeros(SIZE: tl.constexpr, numbers):
    return tl.zeros((SIZE,), numbers.dtype.element_ty), tl.full((SIZE,), ZERO, tl.int32)


@triton.jit
def _root_arcs(r, places, nodes, numbers, exponents):
    """W[root, r], C[r, first] and C[r, last] for one word on the root."""
    mask = r < places
    wm, we = _get(numbers, exponents, 2 * nodes * nodes + r * nodes + r, mask)
    am, ae = _get(numbers, exponents, r * nodes, mask)
    bm, be = _get(numbers, exponents, r * nodes + places - 1, mask)
    return wm, we, am, ae, bm, be


@triton.jit
def _total(places, nodes, numbers, exponents, MULTI: tl.constexpr, DOUBLE: tl.constexpr, TERMS: tl.constexpr):
    """Z."""
    if MULTI:
        return tl.load(numbers + places - 1), tl.load(exponents + places - 1)
    else:
        zm, ze = _zeros(1, numbers)
        for start in range(0, places, TERMS):
            r = start + tl.arange(0, TERMS)[None, :]
            wm, we, am, ae, bm, be = _root_arcs(r, places, nodes, numbers, exponents)
            zm, ze = plus_sum(zm, ze, wm * am * bm, we + ae + be, DOUBLE)
        return tl.sum(zm), tl.sum(ze)


@triton.jit
def _outside(
    places, nodes, zm, ze, numbers, exponents, mu,
    MULTI: tl.constexpr, DOUBLE: tl.constexpr, SPANS: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    """O and D, wide spans first, and every arc's marginal."""
    square = nodes * nodes
    onem, onee = normal(1 / tl.where(zm > 0, zm, 1), -ze, DOUBLE)
    onem, onee = tl.where(zm > 0, onem, 0), tl.where(zm > 0, onee, ZERO)  # 1 / Z, or nothing
    if not MULTI:
        for start in range(0, places, TERMS):
            r = start + tl.arange(0, TERMS)
            wm, we, am, ae, bm, be = _root_arcs(r, places, nodes, numbers, exponents)
            am, ae = times(wm * am, we + ae, bm, be, DOUBLE)
            tl.store(mu + 1 + r, am * onem * power_of_two(ae + onee, DOUBLE), mask=r < places)
    for back in range(1, places):
        width = places - back
        for first in range(0, back, SPANS):
            i = first + tl.arange(0, SPANS)[:, None]
            j = i + width
            rightm, righte = _zeros(SPANS, numbers)
            leftm, lefte = _zeros(SPANS, numbers)
            by_rightm, by_righte = _zeros(SPANS, numbers)
            by_leftm, by_lefte = _zeros(SPANS, numbers)
            for start in range(0, places, TERMS):
                # The wider spans: first those that begin at r < i and end at j, then those from i to r > j.
                #     C[r, j] has I[r, i] C[i, j],   Q[r, j] has C[r, i - 1] C[j, i],   C[j, r] has I[j, i] C[i, r]
                #     C[r, i] has I[r, j] C[j, i],   Q[i, r] has C[i, j] C[r, j + 1],   C[i, r] has I[i, j] C[j, r]
                r = start + tl.arange(0, TERMS)[None, :]
                before = (r < i) & (j < places)
                after = (r > j) & (r < places)
                mask = before | after
                u, v = tl.where(before, j, i), tl.where(before, i, j)
                am, ae = _get(numbers, exponents, 3 * square + r * nodes + u, mask)
                bm, be = _get(numbers, exponents, square + r * nodes + v, mask)
                farm, fare = am * bm, ae + be
                am, ae = _get(numbers, exponents, 2 * square + tl.minimum(r, u) * nodes + tl.maximum(r, u), mask)
                bm, be = _get(numbers, exponents, r * nodes + tl.where(before, v - 1, v + 1), mask)
                innerm, innere = am * bm, ae + be
                am, ae = _get(numbers, exponents, 3 * square + u * nodes + r, mask)
                bm, be = _get(numbers, exponents, v * nodes + r, mask)
                m, e = tl.where(before, farm, innerm), tl.where(before, fare, innere)
                rightm, righte = plus_sum(rightm, righte, m, e, DOUBLE)
                m, e = tl.where(before, innerm, farm), tl.where(before, innere, fare)
                leftm, lefte = plus_sum(leftm, lefte, m, e, DOUBLE)
                m, e = tl.where(before, 0, am * bm), tl.where(before, ZERO, ae + be)
                by_rightm, by_righte = plus_sum(by_rightm, by_righte, m, e, DOUBLE)
                m, e = tl.where(before, am * bm, 0), tl.where(before, ae + be, ZERO)
                by_leftm, by_lefte = plus_sum(by_leftm, by_lefte, m, e, DOUBLE)
            i = first + tl.arange(0, SPANS)
            j = i + width
            mine = j < places
            if MULTI:
                m, e = tl.where(width == places - 1, onem, 0), tl.where(width == places - 1, onee, ZERO)
                rightm, righte = plus(rightm, righte, m, e, DOUBLE)
            else:
                wm, we, am, ae, bm, be = _root_arcs(i, places, nodes, numbers, exponents)
                m, e = times(wm * am, we + ae, onem, onee, DOUBLE)
                m, e = tl.where(j == places - 1, m, 0), tl.where(j == places - 1, e, ZERO)
                rightm, righte = plus(rightm, righte, m, e, DOUBLE)
                wm, we, am, ae, bm, be = _root_arcs(j, places, nodes, numbers, exponents)
                m, e = times(wm * bm, we + be, onem, onee, DOUBLE)
                m, e = tl.where(i == 0, m, 0), tl.where(i == 0, e, ZERO)
                leftm, lefte = plus(leftm, lefte, m, e, DOUBLE)
            by_rightm, by_righte = plus(by_rightm, by_righte, rightm, righte, DOUBLE)
            by_leftm, by_lefte = plus(by_leftm, by_lefte, leftm, lefte, DOUBLE)
            am, ae = _arc(i, j, mine, by_rightm, by_righte, nodes, numbers, exponents, mu, MULTI, DOUBLE)
            bm, be = _arc(j, i, mine, by_leftm, by_lefte, nodes, numbers, exponents, mu, MULTI, DOUBLE)
            am, ae = plus(am, ae, bm, be, DOUBLE)
            _put(numbers, exponents, 2 * square + i * nodes + j, am, ae, mine)
            _put(numbers, exponents, 3 * square + i * nodes + j, rightm, righte, mine)
            _put(numbers, exponents, 3 * square + j * nodes + i, leftm, lefte, mine)
        tl.debug_barrier()


@triton.jit
def _arc(h, m, mine, bym, bye, nodes, numbers, exponents, mu, MULTI: tl.constexpr, DOUBLE: tl.constexpr):
    """Store the marginal of the arc from place h to m, given log Z's derivative by I; returns its part of that by Q."""
    square, at = nodes * nodes, h * nodes + m
    im, ie = _get(numbers, exponents, square + at, mine)
    value = im * bym * power_of_two(ie + bye, DOUBLE)
    tl.store(mu + (at if MULTI else at + nodes + 1), value, mask=mine & (m > 0) if MULTI else mine)
    wm, we = _get(numbers, exponents, 2 * square + at, mine)
    return times(bym, bye, wm, we, DOUBLE)
