"""The structures that scores of arcs or labels describe, for problems to choose from: trees of a class, and labels.

Trees are over arc scores (B, N+1, N+1), or labelled over (B, N+1, N+1, L) (koo2007 section 3.4); labels of given arcs
over (B, N+1, L).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.arrays import Bools, Floats, Ints, TreeClass
from headway.inference.batch import as_batch, as_function
from headway.inference.first_order import arc_covariances, arc_marginals, best_heads
from headway.inference.labels import LabelledTreeDistribution
from headway.parallel import SERIAL, Executor


@dataclass(frozen=True)
class Trees:
    """Trees of a class; labelled ones where the scores have a fourth axis."""

    trees: TreeClass
    executor: Executor = SERIAL

    def best(self, scores: Floats, lengths: Ints) -> Floats:
        """1 on the arcs of the best trees, 0 elsewhere."""
        arcs = scores if scores.ndim == 3 else scores.max(axis=-1)
        heads = best_heads(as_batch(arcs, lengths), self.trees, self.executor)
        chosen = np.zeros_like(scores)
        b, m = np.nonzero(heads >= 0)
        h = heads[b, m]
        if scores.ndim == 3:
            chosen[b, h, m] = 1.0
        else:
            chosen[b, h, m, scores[b, h, m].argmax(axis=-1)] = 1.0
        return chosen

    def marginals(self, scores: Floats, lengths: Ints) -> tuple[Floats, Floats]:
        """log Z (B,) and the arcs' probabilities."""
        if scores.ndim == 3:
            return arc_marginals(as_batch(scores, lengths), self.trees, self.executor)
        d = self._labelled(scores, lengths)
        mu = d.marginals  # before log_partition: one pass gives both
        return d.log_partition, mu

    def covariance(self, scores: Floats, lengths: Ints, f: Floats) -> tuple[Floats, Floats, Floats]:
        """log Z (B,), probabilities, and Cov(f, arc) for every arc."""
        if scores.ndim == 3:
            batch = as_batch(scores, lengths)
            return arc_covariances(batch, as_function(f, batch, "f"), self.trees, self.executor)
        d = self._labelled(scores, lengths)
        mu = d.marginals
        return d.log_partition, mu, d.covariance_with_arcs(f)

    def _labelled(self, scores: Floats, lengths: Ints) -> LabelledTreeDistribution:
        return LabelledTreeDistribution(scores, *self.trees, lengths, self.executor.workers)


@dataclass(frozen=True)
class Labels:
    """One label for each word, chosen independently."""

    def best(self, scores: Floats, lengths: Ints) -> Floats:
        """1 on each word's best label."""
        chosen = np.zeros_like(scores)
        b, m = np.nonzero(_words(scores, lengths))
        chosen[b, m, scores[b, m].argmax(axis=-1)] = 1.0
        return chosen

    def marginals(self, scores: Floats, lengths: Ints) -> tuple[Floats, Floats]:
        """log Z (B,) and the labels' probabilities."""
        words = _words(scores, lengths)
        top = scores.max(axis=-1, keepdims=True)
        share = np.exp(scores - top)
        total = share.sum(axis=-1, keepdims=True)
        log_z = np.where(words, (top + np.log(total))[..., 0], 0.0).sum(axis=-1)
        return log_z, np.where(words[..., None], share / total, 0.0)


def _words(scores: Floats, lengths: Ints) -> Bools:
    """Which of the N+1 nodes are words of their sentence."""
    nodes = np.arange(scores.shape[1])
    words: Bools = (nodes > 0) & (nodes <= lengths[:, None])
    return words
