"""Which cells of a padded batch of scores are arcs, and which of its columns are words."""

from __future__ import annotations

import torch
from torch import Tensor


def cells(lengths: Tensor, nodes: int) -> Tensor:
    """(B, N+1, N+1): no padding, no diagonal, not column 0."""
    node = torch.arange(nodes, device=lengths.device)
    inside = node <= lengths[:, None]
    return inside[:, :, None] & (inside & (node > 0))[:, None, :] & (node[:, None] != node)


def possible_arcs(scores: Tensor, lengths: Tensor) -> Tensor:
    """The cells that no mask forbids; what is no arc may hold anything, nan too."""
    return cells(lengths, scores.shape[-1]) & (scores > -torch.inf)


def real_words(lengths: Tensor, nodes: int) -> Tensor:
    """(B, N): which words 1..N the sentence has."""
    return torch.arange(1, nodes, device=lengths.device) <= lengths[:, None]


def relative_to_best(scores: Tensor, arcs: Tensor) -> tuple[Tensor, Tensor]:
    """Scores relative to the best of each word's arcs, and the sum of these bests (B,), which log Z has to get back."""
    best = torch.where(arcs, scores, -torch.inf).detach().amax(1, keepdim=True)
    best = torch.where(best > -torch.inf, best, 0.0)
    return scores - best, best.sum((1, 2))
