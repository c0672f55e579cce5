"""Non-projective trees in Triton: log Z and marginals by escape walks, one program a sentence.

The theory is that of `headway.inference.matrix_tree`. T[i, j] is the weight of word j as the head of word i, R[i] that
of the root. Eliminating a word k, with d the sum of its row over the words that are left (and R[k], for several roots),

    T[i] += (T[i, k] / d) T[k]      R[i] += (T[i, k] / d) R[k]      Z = product of the d, times the last word's R.

Divide and conquer: the columns of one half of the words need the other half eliminated. Triton has no recursion, and
there is no way back here. Rows of eliminated words stay: row k becomes T[k] / d, and later eliminations change it as
they do all rows. It tells which of the words that are left k's walk meets first. With one word m left, R is what all
words collect before they meet it: the escapes E[:, m].

At each level there are groups of H words next to each other, and a group has the columns of its own words, `kept`, and
all N rows. Side by side, the groups' columns are a table of N x N, whatever the level. So are `others`, the columns of
the words of the group's sibling, which it now eliminates, and `escapes`, its R beside each of its columns. In step t
each group eliminates its t-th other word; then H is halved. N - 1 steps in all: O(N^3), nothing subtracted.

Each lane has columns, in registers. A row is picked out by a masked sum, a column of each group by a shuffle.

Words beyond a sentence's end, up to N, all have word 1 as their only head, and are nobody's head.

*Numbers* are float32 or float64, weights relative to each word's largest, with the range of `cuda/matrix_tree.cu`: none
is more than 37 nats below the largest in float32, or 300 in float64. There, a forbidden arc counts as one of exp(-230),
if trees with such arcs have less than 1e-16 of Z together; in float32 there may be none. Sentences that do not meet
this are marked in `left`, and their results mean nothing.

Shapes: scores and marginals (B, N+1, N+1) [head, modifier]; lengths and log Z (B,).
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

MOST_WORDS = {torch.float32: 128, torch.float64: 64}  # of a table in registers
WARPS = {8: 1, 16: 1, 32: 1, 64: 4, 128: 16}
_SPREAD = {torch.float32: 37.0, torch.float64: 300.0}
_FORBIDDEN_LOG = tl.constexpr(-230.0)
_NEGLIGIBLE_LOG = tl.constexpr(-37.0)


def log_partition(
    scores: Tensor, lengths: Tensor, single_root: bool, numbers: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """log Z, and which sentences such numbers cannot hold."""
    log_z, left = scores.new_empty(len(scores)), lengths.new_empty(len(scores), dtype=torch.int32)
    _launch(_log_partition, scores, lengths, single_root, numbers, log_z, left)
    return log_z, left


def marginals(
    scores: Tensor, lengths: Tensor, single_root: bool, numbers: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, Tensor]:
    """log Z, marginals, and which sentences such numbers cannot hold."""
    log_z, left = scores.new_empty(len(scores)), lengths.new_empty(len(scores), dtype=torch.int32)
    mu = torch.zeros_like(scores)
    _launch(_marginals, scores, lengths, single_root, numbers, log_z, left, mu)
    return log_z, mu, left


def _launch(
    kernel: Any, scores: Tensor, lengths: Tensor, single_root: bool, numbers: torch.dtype, *results: Tensor
) -> None:
    batch, nodes = scores.shape[:2]
    size = max(min(WARPS), triton.next_power_of_2(nodes - 1))
    kernel[(batch,)](
        scores, lengths, nodes, 1, *results,
        LEVELS=size.bit_length() - 1, MULTI=not single_root, DOUBLE=numbers == torch.float64,
        SPREAD=_SPREAD[numbers], num_warps=WARPS[size] * numbers.itemsize // 4, enable_fp_fusion=True,
    )  # fmt: skip


# `one` is how far apart a head's scores are. If Triton knew, it would give each lane a row, to read them faster.
@triton.jit(do_not_specialize=["one"])
def _log_partition(
    scores, lengths, nodes, one, log_z, left,
    LEVELS: tl.constexpr, MULTI: tl.constexpr, DOUBLE: tl.constexpr, SPREAD: tl.constexpr,
):  # fmt: skip
    """All words but the first are eliminated, the last one first."""
    N: tl.constexpr = 1 << LEVELS
    b = tl.program_id(0).to(tl.int64)
    n = tl.load(lengths + b).to(tl.int32)
    scores += b * nodes * nodes
    table, root, top, highest, safe, slack = _weights(scores, n, nodes, one, N, MULTI, DOUBLE, SPREAD)
    if not safe:
        tl.store(left + b, 1)
        return
    word = tl.arange(0, N)
    pivots = tl.full((N,), 1, table.dtype)
    for turn in range(1, N):
        k = N - turn
        row = tl.sum(tl.where((word == k)[:, None] & (word < k)[None, :], table, 0), 0)
        to_root = tl.sum(tl.where(word == k, root, 0))
        d = tl.sum(row)
        if MULTI:
            d += to_root
        share = tl.gather(table, tl.full((N, 1), 0, tl.int32) + k, 1) / d
        table += share * row[None, :]
        root += tl.sum(share, 1) * to_root
        pivots = tl.where(word == k, d, pivots)
    _store_log_z(log_z + b, left + b, tl.where(word == 0, root, pivots), n, top, highest, slack, word)


@triton.jit(do_not_specialize=["one"])
def _marginals(
    scores, lengths, nodes, one, log_z, left, mu,
    LEVELS: tl.constexpr, MULTI: tl.constexpr, DOUBLE: tl.constexpr, SPREAD: tl.constexpr,
):  # fmt: skip
    N: tl.constexpr = 1 << LEVELS
    none: tl.constexpr = float("-inf")
    b = tl.program_id(0).to(tl.int64)
    n = tl.load(lengths + b).to(tl.int32)
    scores += b * nodes * nodes
    mu += b * nodes * nodes
    kept, root, top, highest, safe, slack = _weights(scores, n, nodes, one, N, MULTI, DOUBLE, SPREAD)
    if not safe:
        tl.store(left + b, 1)
        return
    word = tl.arange(0, N)
    row, column = word[:, None], word[None, :]
    escapes = root[:, None] + tl.zeros((N, N), kept.dtype)
    pivots = tl.full((N,), 1, kept.dtype)
    for level in range(LEVELS):
        H = N >> (level + 1)
        siblings = (column ^ H) + tl.zeros((N, N), tl.int32)
        others = tl.gather(kept, siblings, 1)
        for t in range(H):
            k = (word & -H ^ H) + t  # in the group of each column
            is_pivot = row == k[None, :]
            to_kept = tl.sum(tl.where(is_pivot, kept, 0), 0)
            to_others = tl.sum(tl.where(is_pivot & ((column & (H - 1)) > t), others, 0), 0)
            to_root = tl.sum(tl.where(is_pivot, escapes, 0), 0)
            d = _group_sums(to_kept + to_others, word, H, LEVELS)
            if MULTI:
                d += to_root
            pivots = tl.where(word == H + t, tl.sum(tl.where(word == 0, d, 0)), pivots)
            inverse = 1 / tl.where(d > 0, d, 1)  # zero in a group of words beyond the sentence's end
            share = tl.gather(others, (column & -H) + t + tl.zeros((N, N), tl.int32), 1)
            share = tl.where(is_pivot, 1, share) * inverse[None, :]
            kept = tl.where(is_pivot, 0, kept) + share * to_kept[None, :]
            others = tl.where(is_pivot, 0, others) + share * to_others[None, :]
            escapes = tl.where(is_pivot, 0, escapes) + share * to_root[None, :]
    last = tl.sum(tl.sum(tl.where((row == 0) & (column == 0), escapes, 0), 0))
    _store_log_z(log_z + b, left + b, tl.where(word == 0, last, pivots), n, top, highest, slack, word)

    # Each word's heads in proportion. Weights are read again: registers are scarce.
    arc = (row < n) & (column < n) & (row != column)
    places = (row + 1) * nodes + column + 1
    mass = tl.exp(tl.load(scores + places, mask=arc, other=none).to(kept.dtype) - top[None, :]) * escapes
    from_root = tl.exp(tl.load(scores + 1 + word, mask=word < n, other=none).to(kept.dtype) - top - highest)
    total = from_root + tl.sum(mass, 0)
    total = tl.where(total > 0, total, 1)
    tl.store(mu + places, mass / total[None, :], mask=arc)
    tl.store(mu + 1 + word, from_root / total, mask=word < n)


@triton.jit
def _weights(
    scores, n, nodes, one, N: tl.constexpr, MULTI: tl.constexpr, DOUBLE: tl.constexpr, SPREAD: tl.constexpr
):  # fmt: skip
    """Table [modifier, head] and root weights, relative to each word's largest, and the logarithms of these.

    For one word on the root, its weights are scaled once more, all together, since a tree uses one of them. Further,
    whether all are safe, and how large log Z must be for forbidden arcs not to be noticed.
    """
    numbers: tl.constexpr = tl.float64 if DOUBLE else tl.float32
    none: tl.constexpr = float("-inf")
    word = tl.arange(0, N)
    modifier, head = word[:, None], word[None, :]
    real = word < n
    arc = (modifier < n) & (head < n) & (modifier != head)
    x = tl.load(scores + (head + 1) * nodes + (modifier + 1) * one, mask=arc, other=none).to(numbers)
    to_root = tl.load(scores + 1 + word, mask=real, other=none).to(numbers)
    top = tl.max(x, 1)
    if MULTI:
        top = tl.maximum(top, to_root)
    top = tl.where(top > none, top, 0)  # a word without heads
    x -= top[:, None]
    to_root -= top
    highest = tl.full((), 0, numbers)
    if not MULTI:
        highest = tl.max(to_root)
        highest = tl.where(highest > none, highest, 0)
        to_root -= highest
    table, root = tl.exp(x), tl.exp(to_root)
    unsafe = arc & ~(x >= -SPREAD)
    unsafe_root = real & ~(to_root >= -SPREAD)
    slack = tl.full((), none, tl.float64)
    if DOUBLE:
        forbidden, forbidden_root = arc & (x == none), real & (to_root == none)
        unsafe, unsafe_root = unsafe & ~forbidden, unsafe_root & ~forbidden_root
        weight = tl.exp(tl.full((), _FORBIDDEN_LOG, numbers))
        table, root = tl.where(forbidden, weight, table), tl.where(forbidden_root, weight, root)
        # Hadamard: such trees have at most n^2 exp(-230) times the product of the rows' sums.
        sums = tl.maximum(tl.where(real, tl.sum(table, 1) + root, 1), 1)
        bound = tl.sum(tl.log(sums)) + 2 * tl.log(tl.maximum(n, 1).to(tl.float64)) + _FORBIDDEN_LOG - _NEGLIGIBLE_LOG
        slack = tl.where(_any(forbidden, forbidden_root), bound, none)
    table = tl.where((modifier >= n) & (head == 0), 1, table).to(numbers)
    root = tl.where((word == 0) & (n == 0), 1, root).to(numbers)
    return table, root, top, highest, _any(unsafe, unsafe_root) == 0, slack


@triton.jit
def _any(cells, words):
    return tl.sum(tl.sum(cells.to(tl.int32), 1) + words.to(tl.int32)) > 0


@triton.jit
def _group_sums(x, word, H, LEVELS: tl.constexpr):
    """At each word the sum over its group of H."""
    for level in tl.static_range(LEVELS):
        x += tl.where((1 << level) < H, tl.gather(x, word ^ (1 << level), 0), 0)
    return x


@triton.jit
def _store_log_z(log_z, left, pivots, n, top, highest, slack, word):
    """log Z from all d and the last word's root weight; and whether the sentence is left to others."""
    value = tl.sum(tl.log(pivots.to(tl.float64)))
    shift = tl.sum(tl.where(word < n, top, 0).to(tl.float64)) + highest.to(tl.float64)
    tl.store(log_z, tl.where(n == 0, 0, value + shift).to(log_z.dtype.element_ty))
    tl.store(left, tl.where((n == 0) | (value >= slack), 0, 1))
