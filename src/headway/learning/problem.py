"""What a learner sees of the world: arrays for some sentences at a time, and what can be computed from them.

A learner knows no words and no features. It takes some sentences of a `Problem`, asks for their scores under a weight
vector, and hands back amounts, shaped like the scores, by which the features of what was scored are to be added to a
weight vector. Scores are arcs (B, N+1, N+1), labelled arcs (B, N+1, N+1, L) (koo2007 section 3.4), labels of given arcs
(B, N+1, L), or the parts of one sentence in a row (P,); only the problem knows which.

Which quantities a problem can compute is declared (`offers`), as is what a learner `needs`: a learner that does not fit
is refused before anything is read or trained.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol, TypeVar

import numpy as np

from headway.arrays import Floats, Ints
from headway.inference.batch import groups_by_length

Quantity = Literal["argmax", "marginals", "covariance"]
ARGMAX: frozenset[Quantity] = frozenset({"argmax"})
MARGINALS: frozenset[Quantity] = frozenset({"argmax", "marginals"})
COVARIANCE: frozenset[Quantity] = frozenset({"argmax", "marginals", "covariance"})

# Padded scores of one chunk of sentences: 8 MB
_CHUNK = 1_000_000


class Scored(Protocol):
    """Some sentences, or other examples, of a problem; every array is shaped like their scores."""

    def score(self, weights: Floats) -> Floats:
        """w·f of everything that can be chosen, padded."""
        ...

    def add(self, into: Floats, amounts: Floats) -> None:
        """into += amounts x f: the derivative of amounts·scores by the weights."""
        ...

    def best(self, scores: Floats) -> Floats:
        """1 on the best choice, 0 elsewhere."""
        ...


class Instances(Scored, Protocol):
    """Examples of which it is known what is right."""

    def gold(self) -> Floats:
        """1 on what is right, 0 elsewhere."""
        ...

    def cost(self) -> Floats:
        """What each choice costs where a margin is asked for: 1 on every wrong arc or label."""
        ...


class Probabilistic(Instances, Protocol):
    """Instances whose choices have probabilities."""

    def marginals(self, scores: Floats) -> tuple[Floats, Floats]:
        """log Z (B,), and the probability of everything that can be chosen."""
        ...


class Differentiable(Probabilistic, Protocol):
    """Instances whose expectations have gradients."""

    def covariance(self, scores: Floats, f: Floats) -> tuple[Floats, Floats, Floats]:
        """log Z (B,), probabilities, and the gradient of E[f] by the scores: Cov(f, what is chosen)."""
        ...


Some = TypeVar("Some", bound=Instances, covariant=True)


class Examples(Protocol):
    """What is common to all problems."""

    @property
    def lengths(self) -> Ints:
        """Words of each sentence."""
        ...

    @property
    def size(self) -> int:
        """How many weights there are."""
        ...


class Problem(Examples, Protocol[Some]):
    """Training sentences, taken some at a time."""

    @property
    def offers(self) -> frozenset[Quantity]:
        """What its instances can compute."""
        ...

    def some(self, which: Ints) -> Some:
        """The sentences with these numbers."""
        ...


def chunks_by_length(problem: Problem[Instances]) -> Iterator[Ints]:
    """The numbers of all sentences, shortest first, in chunks whose padded scores stay small."""
    lengths = problem.lengths
    if not len(lengths):
        return iter(())
    shortest = np.argmin(lengths, keepdims=True)
    scores = problem.some(shortest).score(np.zeros(problem.size))
    return groups_by_length(lengths, _CHUNK / (scores.size / (int(lengths[shortest[0]]) + 1) ** 2))
