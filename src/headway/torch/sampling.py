"""Exact, independent samples, all sentences and samples side by side.

Ancestral: word by word, each head from its marginals given the heads before it; what is drawn forbids all other heads
of its word. n passes over a batch of B k sentences, O(n^4) a sample, and nothing leaves the device. On the CPU, Numba's
kernels draw by loop-erased walks and from charts (`headway.inference.sampling`), seeded by the generator.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from headway.arrays import TreeClass
from headway.torch import operators
from headway.torch.kernels import kernels_for


@runtime_checkable
class Sampler(Protocol):
    """Kernels that can also draw."""

    def sample(self, scores: Tensor, lengths: Tensor, mu: Tensor, trees: TreeClass, k: int, seed: int) -> Tensor:
        """k trees of each sentence, given its marginals: (B, k, N+1)."""
        ...


def sample(
    scores: Tensor, lengths: Tensor, mu: Tensor, trees: TreeClass, k: int, generator: torch.Generator | None
) -> Tensor:
    """k trees of each sentence, given its marginals: (B, k, N+1), padding -1; all -1 where there is no tree."""
    kernels = kernels_for(scores)
    if isinstance(kernels, Sampler):
        seed = int(torch.randint(2**62, (), generator=generator))
        return kernels.sample(scores, lengths, mu, trees, k, seed)
    return _ancestral(scores, lengths, mu, trees, k, generator)


def _ancestral(
    scores: Tensor, lengths: Tensor, mu: Tensor, trees: TreeClass, k: int, generator: torch.Generator | None
) -> Tensor:
    size, nodes = scores.shape[:2]
    heads = torch.full((size * k, nodes), -1, device=scores.device)
    scores, lengths = scores.repeat_interleave(k, 0), lengths.repeat_interleave(k, 0)
    mu = mu.repeat_interleave(k, 0)
    node = torch.arange(nodes, device=scores.device)
    for m in range(1, nodes):
        if m > 1:
            _, mu = operators.marginals(scores, lengths, trees)
        chances = mu[:, :, m]
        below = chances.cumsum(1)
        drawn = torch.rand((size * k, 1), generator=generator, device=scores.device, dtype=below.dtype) * below[:, -1:]
        head = (below <= drawn).sum(1, keepdim=True).clamp(max=nodes - 1)
        possible = (lengths >= m) & (below[:, -1] > 0)
        heads[:, m] = torch.where(possible, head[:, 0], -1)
        other = (node != head)[:, :, None] & (node == m)
        scores = torch.where(other, -torch.inf, scores)
    return heads.reshape(size, k, nodes)
