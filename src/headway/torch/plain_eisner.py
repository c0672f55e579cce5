"""Projective trees in plain torch operations: log Z, marginals and their derivatives.

Eisner's recurrences, as in `headway.inference.span_chart`. A chart is a list by width w of tensors by left end i,

    right[w][i]: head i over the nodes i .. i + w           left[w][i]: head i + w over the same nodes
    right_arc[w][i]: those with the arc i -> i + w          left_arc[w][i]: with the arc i + w -> i

    both[w][i]  = sum_t right[t][i] left[w - 1 - t][i + t + 1]       times the arc's weight: right_arc, left_arc
    right[w][i] = sum_t right_arc[t][i] right[w - t][i + t]          left is its mirror image

with zeros beyond the sentence's end, so that all left ends and sentences are one operation. The outside pass has, for
each of these, the sum over all that a tree can have around it. With one word on the root, charts are over the words
alone, and the root's child joins two of them; with several, the root is the leftmost node, and right[n][0] is Z.

Numbers are logarithms (`log_numbers`); every step is an operation that autograd knows. Shapes: scores (B, N+1, N+1).
O(n^3) time in O(n^2) steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headway.torch.arcs import possible_arcs, relative_to_best
from headway.torch.log_numbers import LogNumbers, cat, constant, stack


@dataclass(frozen=True)
class _Inside:
    """By width; every entry is (B, nodes)."""

    right: list[LogNumbers]
    left: list[LogNumbers]
    right_arc: list[LogNumbers]
    left_arc: list[LogNumbers]


@dataclass(frozen=True)
class _Seeds:
    """What stands around the halves that the root joins, by width as above."""

    right: list[LogNumbers]
    left: list[LogNumbers]


def tree_sums(
    scores: Tensor, lengths: Tensor, single_root: bool, f: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """log Z (B,), marginals and, with a direction f, their derivatives in it."""
    size, nodes = scores.shape[:2]
    if nodes == 1 or size == 0:
        return scores.new_zeros(size), torch.zeros_like(scores), None if f is None else torch.zeros_like(scores)
    arcs = possible_arcs(scores, lengths)
    relative, best = relative_to_best(scores, arcs)
    weights = LogNumbers(relative, f).where(arcs)
    z, joint = (_single_root if single_root else _multi_root)(weights, lengths)
    mu, slope = (joint / z.unsqueeze(1).unsqueeze(2)).exp()
    return z.log + best, mu, slope


def _single_root(weights: LogNumbers, lengths: Tensor) -> tuple[LogNumbers, LogNumbers]:
    """Z, and for every arc the sum over the trees that have it."""
    root, words = weights[:, 0, 1:], weights[:, 1:, 1:]
    inside = _inside(words)
    # The root's child r joins left[r][0] and right[n - 1 - r][r], words counted from 0.
    start = torch.arange(words.log.shape[1], device=lengths.device)
    width = lengths[:, None] - 1 - start
    to_first = stack([cell[:, 0] for cell in inside.left], 1)
    to_last = _at_width(inside.right, width)
    split = root * to_first * to_last
    around_left, around_right = root * to_last, root * to_first
    seeds = _Seeds(
        right=[around_right.where(width == w) for w in range(len(start))],
        left=[around_left[:, w : w + 1].where(start == 0) for w in range(len(start))],
    )
    joint = cat([split.unsqueeze(1), _outside(words, inside, seeds)], 1)
    return split.sum(1).where(lengths > 0, 0.0), cat([constant(-torch.inf, joint[:, :, :1]), joint], 2)


def _multi_root(weights: LogNumbers, lengths: Tensor) -> tuple[LogNumbers, LogNumbers]:
    inside = _inside(weights)
    start = torch.arange(weights.log.shape[1], device=lengths.device)
    one = constant(0.0, weights[:, 0])
    nothing = constant(-torch.inf, one)
    whole = [one.where((start == 0) & (lengths == w)[:, None]) for w in range(len(start))]
    joint = _outside(weights, inside, _Seeds(right=whole, left=[nothing] * len(start)))
    return _at_width(inside.right, lengths[:, None].expand_as(one.log))[:, 0], joint


def _inside(weights: LogNumbers) -> _Inside:
    """The charts over nodes with these weights [head, modifier]."""
    one = constant(0.0, weights[:, 0])
    nothing = constant(-torch.inf, one)
    right, left, right_arc, left_arc = [one], [one], [nothing], [nothing]
    for w in range(1, weights.log.shape[1]):
        both = _total([right[t] * _ahead(left[w - 1 - t], t + 1) for t in range(w)])
        right_arc.append(both * _diagonal(weights, w))
        left_arc.append(both * _diagonal(weights, -w))
        right.append(_total([right_arc[t] * _ahead(right[w - t], t) for t in range(1, w + 1)]))
        left.append(_total([left[w - t] * _ahead(left_arc[t], w - t) for t in range(1, w + 1)]))
    return _Inside(right, left, right_arc, left_arc)


def _outside(weights: LogNumbers, inside: _Inside, seeds: _Seeds) -> LogNumbers:
    """For every arc [head, modifier] the sum over the trees that have it."""
    nodes = weights.log.shape[1]
    nothing = constant(-torch.inf, weights[:, 0])
    out_right, out_left, out_both = [nothing] * nodes, [nothing] * nodes, [nothing] * nodes
    to_right, to_left = [nothing] * nodes, [nothing] * nodes
    for w in range(nodes - 1, 0, -1):
        wider = range(w + 1, nodes)
        out_right[w] = _total(
            [seeds.right[w]]
            + [out_both[v] * _ahead(inside.left[v - 1 - w], w + 1) for v in wider]
            + [_behind(out_right[v] * inside.right_arc[v - w], v - w) for v in wider]
        )
        out_left[w] = _total(
            [seeds.left[w]]
            + [_behind(out_both[v] * inside.right[v - 1 - w], v - w) for v in wider]
            + [out_left[v] * _ahead(inside.left_arc[v - w], w) for v in wider]
        )
        as_wide = range(w, nodes)
        out_right_arc = _total([out_right[v] * _ahead(inside.right[v - w], w) for v in as_wide])
        out_left_arc = _total([_behind(out_left[v] * inside.left[v - w], v - w) for v in as_wide])
        out_both[w] = out_right_arc * _diagonal(weights, w) + out_left_arc * _diagonal(weights, -w)
        to_right[w] = out_right_arc * inside.right_arc[w]
        to_left[w] = out_left_arc * inside.left_arc[w]
    head, modifier = torch.meshgrid(*[torch.arange(nodes, device=weights.log.device)] * 2, indexing="ij")
    right_arcs = stack(to_right, 1)[:, (modifier - head).clamp(min=0), head]
    left_arcs = stack(to_left, 1)[:, (head - modifier).clamp(min=0), modifier]
    return right_arcs.where(modifier > head, left_arcs)


def _total(terms: list[LogNumbers]) -> LogNumbers:
    return stack(terms, 0).sum(0)


def _at_width(chart: list[LogNumbers], width: Tensor) -> LogNumbers:
    """(B, nodes): the entry of each left end with the width given; nothing where that is negative."""
    return stack(chart, 1).gather(1, width.clamp(min=0).unsqueeze(1))[:, 0].where(width >= 0)


def _ahead(cells: LogNumbers, steps: int) -> LogNumbers:
    """The entry of the left end so many nodes further on."""
    return cat([cells[:, steps:], constant(-torch.inf, cells[:, :steps])], 1)


def _behind(cells: LogNumbers, steps: int) -> LogNumbers:
    """The entry of the left end so many nodes before."""
    return cat([constant(-torch.inf, cells[:, :steps]), cells[:, : cells.log.shape[1] - steps]], 1)


def _diagonal(weights: LogNumbers, w: int) -> LogNumbers:
    """By left end i, the weight of the arc i -> i + w; for -w, of the arc i + w -> i."""
    count = weights.log.shape[1] - abs(w)
    start = torch.arange(count, device=weights.log.device)
    cells = weights[:, start, start + w] if w > 0 else weights[:, start - w, start]
    return cat([cells, constant(-torch.inf, weights[:, 0, : abs(w)])], 1)
