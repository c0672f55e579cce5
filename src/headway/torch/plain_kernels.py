"""`Kernels` in plain torch operations: for any device, and the reference of the others.

Everything is computed in float64, whatever the scores are in, and on logarithms: what is rounded is a sum of scores, so
that a probability is off by about 1e-16 times the largest of them. Sums, marginals and covariances can be
differentiated by autograd, as often as one likes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headway.arrays import TreeClass
from headway.torch import plain_eisner, plain_escape_walks, plain_spanning_tree, plain_viterbi


class PlainKernels:
    """Any device, any scale, any number of words; slow."""

    def log_partition(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
        """log Z (B,)."""
        return self.marginals(scores, lengths, trees)[0]

    def marginals(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> tuple[Tensor, Tensor]:
        """log Z (B,) and marginals."""
        log_z, mu, _ = _sums(scores, lengths, trees, None)
        return log_z.to(scores.dtype), mu.to(scores.dtype)

    def covariance(self, scores: Tensor, lengths: Tensor, f: Tensor, trees: TreeClass) -> Tensor:
        """Cov(f, 1[arc])."""
        _, _, slope = _sums(scores, lengths, trees, f.to(torch.float64))
        assert slope is not None
        return slope.to(scores.dtype)

    def argmax(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
        """Heads (B, N+1)."""
        algorithm = plain_viterbi.best_heads if trees.projective else plain_spanning_tree.best_heads
        return algorithm(scores.to(torch.float64), lengths, trees.single_root)


def _sums(scores: Tensor, lengths: Tensor, trees: TreeClass, f: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    algorithm = plain_eisner.tree_sums if trees.projective else plain_escape_walks.tree_sums
    return algorithm(scores.to(torch.float64), lengths, trees.single_root, f)
