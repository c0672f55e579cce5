"""Training sentences as learners of arc scores see them: with trees, without, or with some of their heads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headway.arrays import Floats, Ints
from headway.features.coding import Coded
from headway.inference.batch import as_batch
from headway.inference.first_order import arc_marginals, best_heads
from headway.learning.problem import COVARIANCE
from headway.learning.structures import Trees
from headway.models.arc_scorer import ArcScorer
from headway.training.data import CodedTrees

_NEGLIGIBLE = 1e-4  # probabilities of latent arcs that move no weight worth having


@dataclass(frozen=True)
class ArcProblem:
    """Coded sentences, the trees they may have, and the right ones, where there are any."""

    scorer: ArcScorer
    structures: Trees
    coded: Coded
    gold: CodedTrees | None = None

    offers = COVARIANCE

    @property
    def lengths(self) -> Ints:
        return self.coded.lengths

    @property
    def size(self) -> int:
        return self.scorer.size

    def some(self, which: Ints) -> ArcInstances:
        """The sentences with these numbers."""
        batch = self.coded.some(which)
        if self.gold is None:
            return ArcInstances(self.scorer, self.structures, batch)
        width = int(batch.lengths.max(initial=0)) + 1
        heads, labels = self.gold.heads[which, :width], self.gold.labels[which, :width]
        return ArcInstances(self.scorer, self.structures, batch, heads, labels)

    def only(self, which: Ints) -> ArcProblem:
        """The problem of these sentences, which refers to no others."""
        gold = None if self.gold is None else self.gold.only(which)
        return replace(self, coded=self.coded.only(which) if gold is None else gold.coded, gold=gold)


@dataclass(frozen=True)
class ArcInstances:
    """Some of these sentences; heads (B, N+1) and the numbers of labels where there are trees."""

    scorer: ArcScorer
    structures: Trees
    batch: Coded
    heads: Ints | None = None
    labels: Ints | None = None

    @property
    def lengths(self) -> Ints:
        return self.batch.lengths

    def score(self, weights: Floats) -> Floats:
        return self.scorer.scores(weights, self.batch, self.structures.executor)

    def add(self, into: Floats, amounts: Floats) -> None:
        self.scorer.pullback(into, self.batch, amounts, self.structures.executor)

    def gold(self) -> Floats:
        assert self.heads is not None
        if self.scorer.joint is None:
            return arcs_of(self.heads)
        assert self.labels is not None
        size, width = self.heads.shape
        b, m = np.nonzero(self.heads >= 0)
        gold = np.zeros((size, width, width, len(self.scorer.labels)))
        gold[b, self.heads[b, m], m, self.labels[b, m]] = 1.0
        return gold

    def cost(self) -> Floats:
        return 1.0 - self.gold()

    def best(self, scores: Floats) -> Floats:
        return self.structures.best(scores, self.lengths)

    def marginals(self, scores: Floats) -> tuple[Floats, Floats]:
        return self.structures.marginals(scores, self.lengths)

    def covariance(self, scores: Floats, f: Floats) -> tuple[Floats, Floats, Floats]:
        return self.structures.covariance(scores, self.lengths, f)


@dataclass(frozen=True)
class PartialArcProblem:
    """Coded sentences of which some heads are known, (B, N+1), -1 elsewhere; the trees behind them are latent.

    There must be a tree of the class with the known heads (`headway.treebank.require_partial_tree`). At temperature 0
    the latent tree is the best one with the known arcs, as in fernandes2012 section 2.3. Above 0, every tree counts in
    proportion to exp(score / temperature), and arcs have marginals: nothing is guessed, and the updates of the latent
    perceptron are the gradient of the log-probability of the known arcs, in steps of 1 / temperature.

    A margin is asked for between the heads of known words only: if guesses cost as much, the first ones, under weights
    of 0, are what is learnt.
    """

    scorer: ArcScorer
    structures: Trees
    coded: Coded
    heads: Ints
    temperature: float = 0.0

    offers = COVARIANCE

    @property
    def lengths(self) -> Ints:
        return self.coded.lengths

    @property
    def size(self) -> int:
        return self.scorer.size

    def some(self, which: Ints) -> PartialArcInstances:
        """The sentences with these numbers."""
        batch = self.coded.some(which)
        known = self.heads[which, : int(batch.lengths.max(initial=0)) + 1]
        return PartialArcInstances(self.scorer, self.structures, batch, known, self.temperature)

    def only(self, which: Ints) -> PartialArcProblem:
        """The problem of these sentences, which refers to no others."""
        return replace(self, coded=self.coded.only(which), heads=self.heads[which])


@dataclass(frozen=True)
class PartialArcInstances:
    """Some of these sentences, and the heads (B, N+1) that are known of them."""

    scorer: ArcScorer
    structures: Trees
    batch: Coded
    known: Ints
    temperature: float

    def score(self, weights: Floats) -> Floats:
        return self.scorer.scores(weights, self.batch, self.structures.executor)

    def add(self, into: Floats, amounts: Floats) -> None:
        self.scorer.pullback(into, self.batch, amounts, self.structures.executor)

    def best_trees(self, scores: Floats) -> Ints:
        """The heads (B, N+1) of the best trees among those that have every known arc."""
        return self._argmax(self._allowed(scores))

    def best(self, scores: Floats) -> Floats:
        """The best trees, or the marginals of all."""
        return self._shared(scores)

    def constrained(self, scores: Floats) -> Floats:
        """The same among the trees that have every known arc."""
        return self._shared(self._allowed(scores))

    def cost(self, latent: Floats) -> Floats:
        cost: Floats = (latent == 0) * (self.known >= 0)[:, None, :] * 1.0
        return cost

    def output(self, latent: Floats) -> Ints:
        """The heads of the words whose heads are known, -1 elsewhere."""
        heads: Ints = np.where(self.known >= 0, latent.argmax(axis=1), -1)
        return heads

    def loss(self, output: Ints) -> float:
        """How many of the known heads are wrong."""
        return float((output != self.known).sum())

    def _allowed(self, scores: Floats) -> Floats:
        b, m = np.nonzero(self.known >= 0)
        allowed = scores.copy()
        allowed[b, :, m] = -np.inf
        allowed[b, self.known[b, m], m] = scores[b, self.known[b, m], m]
        return allowed

    def _argmax(self, scores: Floats) -> Ints:
        return best_heads(as_batch(scores, self.batch.lengths), self.structures.trees, self.structures.executor)

    def _shared(self, scores: Floats) -> Floats:
        if self.temperature == 0:
            return arcs_of(self._argmax(scores))
        batch = as_batch(scores / self.temperature, self.batch.lengths)
        _, shares = arc_marginals(batch, self.structures.trees, self.structures.executor)
        shares[shares < _NEGLIGIBLE] = 0.0
        return shares


def arcs_of(heads: Ints) -> Floats:
    """1 on the arcs of trees (B, N+1), 0 elsewhere: (B, N+1, N+1)."""
    size, width = heads.shape
    arcs = np.zeros((size, width, width))
    b, m = np.nonzero(heads >= 0)
    arcs[b, heads[b, m], m] = 1.0
    return arcs
