"""The best projective trees in plain torch operations: `plain_eisner` with maxima for sums.

The charts are filled for the whole batch at once; each records where its maximum came from, and trees are read off them
on the CPU, sentence by sentence. O(n^3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headway.arrays import Ints
from headway.torch.arcs import possible_arcs


@dataclass(frozen=True)
class _Chart:
    """By width w and left end i: the split t of each best span, as in `plain_eisner`."""

    both: list[Tensor]
    right: list[Tensor]
    left: list[Tensor]


def best_heads(scores: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
    """Heads (B, N+1), padding -1; all -1 where there is no tree."""
    size, nodes = scores.shape[:2]
    heads = np.full((size, nodes), -1, dtype=np.int64)
    if nodes > 1 and size > 0:
        weights = torch.where(possible_arcs(scores, lengths), scores, -torch.inf)
        first = 1 if single_root else 0
        right, left, chart = _maxima(weights[:, first:, first:])
        for b, n in enumerate(lengths.tolist()):
            spans = _root_spans(weights[b, 0], right, left, b, n) if single_root else _whole(right, b, n)
            if spans is not None:
                _read(chart, b, spans, first, heads[b])
    return torch.from_numpy(heads).to(scores.device)


def _maxima(weights: Tensor) -> tuple[list[Tensor], list[Tensor], _Chart]:
    """Scores of the best right and left spans, and how they split."""
    one = torch.zeros_like(weights[:, 0])
    right, left, right_arc, left_arc = [one], [one], [one], [one]
    unused = torch.zeros_like(one, dtype=torch.int64)
    chart = _Chart([unused], [unused], [unused])
    for w in range(1, weights.shape[1]):
        both, split = torch.stack([right[t] + _ahead(left[w - 1 - t], t + 1) for t in range(w)]).max(0)
        chart.both.append(split.cpu())
        right_arc.append(both + _diagonal(weights, w))
        left_arc.append(both + _diagonal(weights.transpose(1, 2), w))
        best, split = torch.stack([right_arc[t] + _ahead(right[w - t], t) for t in range(1, w + 1)]).max(0)
        right.append(best)
        chart.right.append(1 + split.cpu())
        best, split = torch.stack([left[w - t] + _ahead(left_arc[t], w - t) for t in range(1, w + 1)]).max(0)
        left.append(best)
        chart.left.append(1 + split.cpu())
    return right, left, chart


# A span still to be read: whether its head is on the left, width and left end.
_Span = tuple[bool, int, int]


def _whole(right: list[Tensor], b: int, n: int) -> list[_Span] | None:
    """The root over all words; None if there is no tree."""
    return [(True, n, 0)] if right[n][b, 0] > -torch.inf else None


def _root_spans(root: Tensor, right: list[Tensor], left: list[Tensor], b: int, n: int) -> list[_Span] | None:
    """What stands on both sides of the root's best child."""
    totals = [float(root[1 + r] + left[r][b, 0] + right[n - 1 - r][b, r]) for r in range(n)]
    best = max(totals, default=-np.inf)
    if best == -np.inf:
        return None
    child = totals.index(best)
    return [(False, child, 0), (True, n - 1 - child, child)]


def _read(chart: _Chart, b: int, spans: list[_Span], first: int, heads: Ints) -> None:
    """Fill in the heads of all words below the spans; a word that is nobody's modifier is the root's child."""
    heads[1 : max(i + w for _, w, i in spans) + first + 1] = 0
    while spans:
        to_right, w, i = spans.pop()
        if w == 0:
            continue
        t = int((chart.right if to_right else chart.left)[w][b, i])
        start = i if to_right else i + w - t
        head, modifier = (start, start + t) if to_right else (start + t, start)
        heads[first + modifier] = first + head
        spans.append((True, w - t, i + t) if to_right else (False, w - t, i))
        split = int(chart.both[t][b, start])
        spans += [(True, split, start), (False, t - 1 - split, start + split + 1)]


def _ahead(cells: Tensor, steps: int) -> Tensor:
    return torch.cat([cells[:, steps:], torch.full_like(cells[:, :steps], -torch.inf)], 1)


def _diagonal(weights: Tensor, w: int) -> Tensor:
    """By left end i, the weight of the arc i -> i + w."""
    cells = weights.diagonal(w, 1, 2)
    return torch.cat([cells, torch.full_like(weights[:, 0, :w], -torch.inf)], 1)
