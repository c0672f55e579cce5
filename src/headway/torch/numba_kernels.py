"""`Kernels` for tensors on the CPU: those of `headway.inference`, compiled by Numba.

float64 tensors are handed over and returned without a copy. So are float32 ones where `side_by_side` computes log Z and
marginals in float32; everything else takes a copy in float64. As many threads run as torch has been allowed
(`torch.set_num_threads`). This is the only module of `headway.torch` that needs Numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.arrays import Bools, TreeClass
from headway.errors import LengthsError, ScoresError
from headway.inference import first_order, sampling, side_by_side
from headway.inference.batch import Batch, as_batch
from headway.parallel import Executor, executor_for
from headway.torch.arcs import possible_arcs


class Begun(NamedTuple):
    """log Z (B,), and how far the marginals have got: of the sentences computed in float32, and of the rest."""

    scores: Tensor
    lengths: Tensor
    trees: TreeClass
    log_z: Tensor
    singles: side_by_side.Begun | None
    rest: first_order.Begun | None

    def marginals(self) -> Tensor:
        """The marginals. What was kept is used up."""
        mu = None
        if self.rest is not None:
            mu = first_order.try_arc_marginals(self.rest.tame, self.trees, _executor(), self.rest)[1]
        if self.singles is None:
            assert mu is not None
            return _like(self.scores, mu)
        _, singles, computed = side_by_side.marginals(
            self.scores.detach().numpy(), self.lengths.numpy(), single_root=self.trees.single_root,
            executor=_executor(), begun=self.singles,
        )  # fmt: skip
        if mu is not None:
            singles[~computed] = mu
        return torch.from_numpy(singles)


class NumbaKernels:
    """The CPU, any scale, any number of words."""

    def begin(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Begun:
        """log Z (B,), and what its marginals can go on from."""
        if not _in_float32(scores, trees):
            sums = first_order.begin(_batch(scores, lengths), trees, _executor())
            return Begun(scores, lengths, trees, _like(scores, sums.log_z), None, sums)
        singles = side_by_side.begin(
            scores.detach().numpy(), lengths.numpy(), single_root=trees.single_root, executor=_executor()
        )
        others, log_z, rest = ~singles.computed, singles.log_z, None
        if others.any():
            rest = first_order.begin(_part_of_batch(scores, lengths, others), trees, _executor())
            log_z[others] = rest.log_z
        return Begun(scores, lengths, trees, _like(scores, log_z), singles, rest)

    def log_partition(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
        """log Z (B,)."""
        if _in_float32(scores, trees):
            log_z, computed = side_by_side.log_partition(
                scores.detach().numpy(), lengths.numpy(), single_root=trees.single_root, executor=_executor()
            )
            rest = ~computed
            if rest.any():
                log_z[rest] = first_order.tree_sums(_part_of_batch(scores, lengths, rest), trees, _executor())
            return _like(scores, log_z)
        return _like(scores, first_order.tree_sums(_batch(scores, lengths), trees, _executor()))

    def marginals(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> tuple[Tensor, Tensor]:
        """log Z (B,) and marginals."""
        if _in_float32(scores, trees):
            log_z, singles, computed = side_by_side.marginals(
                scores.detach().numpy(), lengths.numpy(), single_root=trees.single_root, executor=_executor()
            )
            rest = ~computed
            if rest.any():
                batch = _part_of_batch(scores, lengths, rest)
                log_z[rest], singles[rest] = first_order.try_arc_marginals(batch, trees, _executor())
            return _like(scores, log_z), torch.from_numpy(singles)
        log_z, mu = first_order.try_arc_marginals(_batch(scores, lengths), trees, _executor())
        return _like(scores, log_z), _like(scores, mu)

    def covariance(self, scores: Tensor, lengths: Tensor, f: Tensor, trees: TreeClass) -> Tensor:
        """Cov(f, 1[arc])."""
        values = torch.where(possible_arcs(scores, lengths), f, 0.0).to(torch.float64).numpy()
        return _like(scores, first_order.try_arc_covariances(_batch(scores, lengths), values, trees, _executor())[2])

    def argmax(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
        """Heads (B, N+1)."""
        heads, found = first_order.try_best_heads(_batch(scores, lengths), trees, _executor())
        heads[found == 0] = -1
        return torch.from_numpy(heads)

    def sample(self, scores: Tensor, lengths: Tensor, mu: Tensor, trees: TreeClass, k: int, seed: int) -> Tensor:
        """k trees of each sentence: (B, k, N+1)."""
        rng, batch = np.random.default_rng(seed), _batch(scores, lengths)
        result = torch.full((len(batch), k, scores.shape[-1]), -1)
        for b, sentence in enumerate(batch.sentences()):
            nodes = sentence.scores.shape[1]
            own = mu[b, :nodes, :nodes].to(torch.float64).numpy()
            if not own.any():
                continue  # no words, or no tree
            drawn = sampling.sample(sentence, np.ascontiguousarray(own), k, rng, trees, _executor())
            result[b, :, :nodes] = torch.from_numpy(drawn)
        return result


def _in_float32(scores: Tensor, trees: TreeClass) -> bool:
    return scores.dtype == torch.float32 and not trees.projective


def _batch(scores: Tensor, lengths: Tensor) -> Batch:
    return as_batch(scores.detach().to(torch.float64).numpy(), lengths.numpy())


def _part_of_batch(scores: Tensor, lengths: Tensor, these: Bools) -> Batch:
    try:
        return _batch(scores[these], lengths[these])
    except (LengthsError, ScoresError):
        _batch(scores, lengths)  # raises the same error, with the sentence's place in the whole batch
        raise


def _like(scores: Tensor, values: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(values).to(scores.dtype)


def _executor() -> Executor:
    return executor_for(torch.get_num_threads())
