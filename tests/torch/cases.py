"""Batches for the tests: masks, lengths and reducible graphs, over all of which every class has a tree."""

from __future__ import annotations

import torch
from torch import Tensor

NOTHING = -torch.inf
LENGTHS = torch.tensor([4, 3, 2, 0, 1, 4])
# A tree of every class for each sentence; none of its arcs is forbidden below.
TREES = torch.tensor(
    [
        [-1, 0, 3, 1, 3],
        [-1, 2, 0, 2, -1],
        [-1, 0, 1, -1, -1],
        [-1, -1, -1, -1, -1],
        [-1, 0, -1, -1, -1],
        [-1, 2, 0, 2, 3],
    ]
)


def forbidden_arcs() -> Tensor:
    """Some at random in the first sentence; the last is reducible: words 3 and 4 can head none of words 1 and 2."""
    mask = torch.zeros(6, 5, 5, dtype=torch.bool)
    mask[0, 1, 2] = mask[0, 0, 3] = mask[0, 2, 4] = mask[0, 4, 1] = True
    mask[1, 3, 1] = True
    mask[5, 3:, 1:3] = True
    return mask


def masked(scores: Tensor) -> Tensor:
    """Forbidden arcs at -inf, and garbage where there is no arc."""
    node = torch.arange(5)
    no_arc = (
        (node[:, None] == node)
        | (node == 0)
        | (node > LENGTHS[:, None, None])
        | (node[:, None] > LENGTHS[:, None, None])
    )
    return torch.where(no_arc, torch.nan, torch.where(forbidden_arcs(), NOTHING, scores))


def random_scores(seed: int, scale: float = 1.0) -> Tensor:
    """(6, 5, 5) float64, nothing forbidden yet."""
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(6, 5, 5, generator=generator, dtype=torch.float64)
