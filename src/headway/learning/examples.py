"""What a learner sees of the world: arrays for sentences, and the structures it may choose.

A learner knows no words and no features. It asks `Examples` for the scores of some sentences under a weight vector, and
hands back amounts, shaped like the scores, by which the features of what was scored are to be added to a weight
vector. `Structures` says what may be chosen, and does the inference. Two kinds are here: trees over arc scores
(B, N+1, N+1), or labelled ones over (B, N+1, N+1, L) (koo2007 section 3.4); and labels of given arcs over (B, N+1, L).
Higher-order models bring their own `Choices`, over the scores of one sentence's parts in a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from headway.inference.batch import Floats, Ints, as_batch, as_function, groups_by_length
from headway.inference.first_order import arc_covariances, arc_marginals, argmax
from headway.inference.labels import LabelledTreeDistribution

# Padded scores of one chunk of sentences: 8 MB
_CHUNK = 1_000_000


class Unannotated(Protocol):
    """Training sentences of which nothing is known but their features."""

    @property
    def lengths(self) -> Ints:
        """Words of each sentence."""
        ...

    @property
    def size(self) -> int:
        """How many weights there are."""
        ...

    def score(self, weights: Floats, which: Ints) -> Floats:
        """w·f of everything that can be chosen in these sentences, padded."""
        ...

    def add(self, weights: Floats, which: Ints, amounts: Floats) -> None:
        """weights += sum of amounts x f."""
        ...


class Examples(Unannotated, Protocol):
    """Training sentences with what is right for them."""

    def gold(self, which: Ints) -> Floats:
        """1 on what is right, 0 elsewhere; shaped like the scores."""
        ...

    def cost(self, which: Ints) -> Floats:
        """What a choice costs while a margin is asked for: 1 on every wrong arc or label; shaped like the scores."""
        ...


class Choices(Protocol):
    """What a learner may choose for a sentence."""

    def best(self, scores: Floats, lengths: Ints, which: Ints) -> Floats:
        """1 on the best choice for the sentences `which`, 0 elsewhere; shaped like the scores."""
        ...


class Structures(Choices, Protocol):
    """Choices that also have probabilities."""

    def marginals(self, scores: Floats, lengths: Ints) -> tuple[Floats, Floats]:
        """log Z (B,), and probabilities shaped like the scores."""
        ...


class Differentiable(Structures, Protocol):
    """Structures whose expectations have gradients."""

    def covariance(self, scores: Floats, lengths: Ints, f: Floats) -> tuple[Floats, Floats, Floats]:
        """log Z (B,), probabilities, and the gradient of E[f] by the scores, Cov(f, what is chosen); f, probabilities
        and gradient are shaped like the scores."""
        ...


@dataclass(frozen=True)
class Trees:
    """Trees of a class; labelled ones when the scores have a fourth axis."""

    projective: bool = False
    single_root: bool = True
    threads: int = 1

    def best(self, scores: Floats, lengths: Ints, which: Ints) -> Floats:
        arcs = scores if scores.ndim == 3 else scores.max(axis=-1)
        heads = argmax(
            arcs, projective=self.projective, single_root=self.single_root, lengths=lengths, threads=self.threads
        )
        chosen = np.zeros_like(scores)
        b, m = np.nonzero(heads >= 0)
        h = heads[b, m]
        if scores.ndim == 3:
            chosen[b, h, m] = 1.0
        else:
            chosen[b, h, m, scores[b, h, m].argmax(axis=-1)] = 1.0
        return chosen

    def marginals(self, scores: Floats, lengths: Ints) -> tuple[Floats, Floats]:
        if scores.ndim == 3:
            return arc_marginals(as_batch(scores, lengths), self.projective, self.single_root, self.threads)
        d = LabelledTreeDistribution(scores, self.projective, self.single_root, lengths, self.threads)
        mu = d.marginals  # before log_partition: one pass gives both
        return d.log_partition, mu

    def covariance(self, scores: Floats, lengths: Ints, f: Floats) -> tuple[Floats, Floats, Floats]:
        if scores.ndim == 3:
            batch = as_batch(scores, lengths)
            return arc_covariances(batch, as_function(f, batch, "f"), self.projective, self.single_root, self.threads)
        d = LabelledTreeDistribution(scores, self.projective, self.single_root, lengths, self.threads)
        mu = d.marginals
        return d.log_partition, mu, d.covariance_with_arcs(f)


@dataclass(frozen=True)
class Labels:
    """One label a word, chosen independently."""

    def best(self, scores: Floats, lengths: Ints, which: Ints) -> Floats:
        chosen = np.zeros_like(scores)
        b, m = np.nonzero(_words(scores, lengths))
        chosen[b, m, scores[b, m].argmax(axis=-1)] = 1.0
        return chosen

    def marginals(self, scores: Floats, lengths: Ints) -> tuple[Floats, Floats]:
        words = _words(scores, lengths)
        top = scores.max(axis=-1, keepdims=True)
        share = np.exp(scores - top)
        total = share.sum(axis=-1, keepdims=True)
        log_z = np.where(words, (top + np.log(total))[..., 0], 0.0).sum(axis=-1)
        return log_z, np.where(words[..., None], share / total, 0.0)


def _words(scores: Floats, lengths: Ints) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Which of the N+1 nodes are words of their sentence."""
    nodes = np.arange(scores.shape[1])
    return (nodes > 0) & (nodes <= lengths[:, None])


def chunks_by_length(examples: Unannotated) -> Iterator[Ints]:
    """Every sentence once, shortest first, in chunks whose padded scores stay small."""
    lengths = examples.lengths
    if not len(lengths):
        return iter(())
    shortest = np.argmin(lengths, keepdims=True)
    scores_an_arc = examples.score(np.zeros(examples.size), shortest).size / (int(lengths[shortest[0]]) + 1) ** 2
    return groups_by_length(lengths, _CHUNK / scores_an_arc)
