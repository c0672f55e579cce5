"""The best projective trees in Triton: Eisner's chart with maxima for sums, one program a sentence.

The recurrences are those of `eisner`, with scores that are added up in float64, in the order of
`headway.inference.eisner`; of equal terms the first is taken. So both find the same tree.

Trees are read off without a stack, from wide spans to narrow: a complete span that is part of the best tree has an arc
from its head to the best k, and marks the three narrower spans that this leaves. Spans of one width are side by side.

Tables of a chart: scores of C and I, in float64; where the maxima of C and, above the diagonal, of Q are, and in C's
place of a third table whether the span is marked. Shapes: scores (B, N+1, N+1), heads (B, N+1). O(n^3), any number of
words.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BYTES = 1 << 26  # of all charts together
_LEAST_PROGRAMS = 128
_SPANS, _TERMS = 16, 16  # a tile of maxima


def best_heads(scores: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
    """Heads (B, N+1), padding -1; all -1 where there is no tree."""
    batch, nodes = scores.shape[:2]
    heads = torch.full((batch, nodes), -1, dtype=torch.int64, device=scores.device)
    programs = min(batch, max(_LEAST_PROGRAMS, _BYTES // (28 * nodes * nodes)))
    values = torch.empty(programs * 2 * nodes * nodes, dtype=torch.float64, device=scores.device)
    places = torch.empty(programs * 3 * nodes * nodes, dtype=torch.int32, device=scores.device)
    _viterbi[(programs,)](
        scores, lengths, batch, nodes, heads, values, places,
        MULTI=not single_root, SPANS=_SPANS, TERMS=_TERMS, num_warps=1 if nodes <= 40 else 4, enable_fp_fusion=True,
    )  # fmt: skip
    return heads


@triton.jit
def _viterbi(
    scores, lengths, batch, nodes, heads, values, places,
    MULTI: tl.constexpr, SPANS: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    values += tl.program_id(0).to(tl.int64) * 2 * nodes * nodes
    places += tl.program_id(0).to(tl.int64) * 3 * nodes * nodes
    b = tl.program_id(0).to(tl.int64)
    while b < batch:
        own = scores + b * nodes * nodes
        n = tl.load(lengths + b).to(tl.int32)
        count = n + 1 if MULTI else n
        _clear(count, nodes, values, places, TERMS)
        tl.debug_barrier()
        _maxima(own, count, nodes, values, places, MULTI, SPANS, TERMS)
        if n > 0:
            _mark_widest(own, count, nodes, heads + b * nodes, values, places, MULTI, TERMS)
        tl.debug_barrier()
        _follow(count, nodes, heads + b * nodes, places, MULTI, SPANS)
        tl.debug_barrier()
        b += tl.num_programs(0)


@triton.jit
def _clear(count, nodes, values, places, TERMS: tl.constexpr):
    """Empty spans, and no marks."""
    for i in range(count):
        for start in range(0, count, TERMS):
            j = start + tl.arange(0, TERMS)
            tl.store(values + i * nodes + j, tl.zeros((TERMS,), tl.float64), mask=j == i)
            tl.store(places + 2 * nodes * nodes + i * nodes + j, j * 0, mask=j < count)


@triton.jit
def _maxima(scores, count, nodes, values, places, MULTI: tl.constexpr, SPANS: tl.constexpr, TERMS: tl.constexpr):
    """C and I, narrow spans first, and where their maxima are."""
    square = nodes * nodes
    FIRST: tl.constexpr = 0 if MULTI else 1
    for width in range(1, count):
        for first in range(0, count - width, SPANS):
            i = first + tl.arange(0, SPANS)
            j = i + width
            mine = j < count
            best, k = _best(values, i * nodes + i, values, j * nodes + i + 1, 1, width, mine, SPANS, TERMS)
            tl.store(places + square + i * nodes + j, i + k, mask=mine)
            to = mine & (i + FIRST > 0)  # the root has no head
            right = tl.load(scores + (i + FIRST) * nodes + j + FIRST, mask=mine, other=0).to(tl.float64)
            left = tl.load(scores + (j + FIRST) * nodes + i + FIRST, mask=to, other=float("-inf")).to(tl.float64)
            tl.store(values + square + i * nodes + j, best + right, mask=mine)
            tl.store(values + square + j * nodes + i, best + left, mask=mine)
        tl.debug_barrier()
        for first in range(0, count - width, SPANS):
            i = first + tl.arange(0, SPANS)
            j = i + width
            mine = j < count
            arcs, rest = square + i * nodes + i + 1, (i + 1) * nodes + j
            best, k = _best(values, arcs, values, rest, nodes, width, mine, SPANS, TERMS)
            tl.store(values + i * nodes + j, best, mask=mine)
            tl.store(places + i * nodes + j, i + 1 + k, mask=mine)
            arcs, rest = square + j * nodes + i, i * nodes + i
            best, k = _best(values, arcs, values, rest, nodes, width, mine, SPANS, TERMS)
            tl.store(values + j * nodes + i, best, mask=mine)
            tl.store(places + j * nodes + i, i + k, mask=mine)
        tl.debug_barrier()


@triton.jit
def _best(a, at, b, there, step, width, mine, SPANS: tl.constexpr, TERMS: tl.constexpr):
    """The largest a[at + t] + b[there + t step] over t < width, and the first such t."""
    best = tl.full((SPANS,), float("-inf"), tl.float64)
    where = tl.zeros((SPANS,), tl.int32)
    for start in range(0, width, TERMS):
        t = start + tl.arange(0, TERMS)[None, :]
        mask = mine[:, None] & (t < width)
        x = tl.load(a + at[:, None] + t, mask=mask, other=float("-inf"))
        x += tl.load(b + there[:, None] + t * step, mask=mask, other=float("-inf"))
        value, place = tl.max(x, 1, return_indices=True)
        where = tl.where(value > best, start + place, where)
        best = tl.maximum(best, value)
    return best, where


@triton.jit
def _mark_widest(scores, count, nodes, heads, values, places, MULTI: tl.constexpr, TERMS: tl.constexpr):
    """The root's span, or the two of its best child; nothing if there is no tree."""
    marks = places + 2 * nodes * nodes
    if MULTI:
        tl.store(marks + count - 1, 1, mask=tl.load(values + count - 1) > float("-inf"))
    else:
        best = tl.full((), float("-inf"), tl.float64)
        child = tl.full((), 0, tl.int32)
        for start in range(0, count, TERMS):
            r = start + tl.arange(0, TERMS)
            x = tl.load(scores + 1 + r, mask=r < count, other=float("-inf")).to(tl.float64)
            x += tl.load(values + r * nodes, mask=r < count, other=float("-inf"))
            x += tl.load(values + r * nodes + count - 1, mask=r < count, other=float("-inf"))
            value, place = tl.max(x, 0, return_indices=True)
            child = tl.where(value > best, start + place, child)
            best = tl.maximum(best, value)
        found = best > float("-inf")
        tl.store(heads + 1 + child, 0, mask=found)
        tl.store(marks + child * nodes, 1, mask=found)
        tl.store(marks + child * nodes + count - 1, 1, mask=found)


@triton.jit
def _follow(count, nodes, heads, places, MULTI: tl.constexpr, SPANS: tl.constexpr):
    """The arcs of marked spans, wide ones first."""
    for back in range(1, count):
        width = count - back
        for first in range(0, back, SPANS):
            i = first + tl.arange(0, SPANS)
            j = i + width
            _expand(i, j, j < count, nodes, heads, places, MULTI)
            _expand(j, i, j < count, nodes, heads, places, MULTI)
        tl.debug_barrier()


@triton.jit
def _expand(h, e, mine, nodes, heads, places, MULTI: tl.constexpr):
    """C[h, e] is I[h, k] and C[k, e]; I[h, k] is C[h, q] and C[k, q + 1], or for k < h the mirror image."""
    FIRST: tl.constexpr = 0 if MULTI else 1
    square = nodes * nodes
    marks = places + 2 * square
    marked = tl.load(marks + h * nodes + e, mask=mine, other=0) > 0
    k = tl.load(places + h * nodes + e, mask=marked, other=0)
    low, high = tl.minimum(h, k), tl.maximum(h, k)
    q = tl.load(places + square + low * nodes + high, mask=marked, other=0)
    tl.store(heads + k + FIRST, (h + FIRST).to(tl.int64), mask=marked)
    one = h * 0 + 1
    tl.store(marks + k * nodes + e, one, mask=marked)
    tl.store(marks + low * nodes + q, one, mask=marked)
    tl.store(marks + high * nodes + q + 1, one, mask=marked)
