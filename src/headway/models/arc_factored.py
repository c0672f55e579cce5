"""The arc-factored model: the score of a tree is the sum of the scores of its arcs (koo2007 section 2).

    s(h, m) = w·f(h, m)                              an arc
    s(h, m, l) = w·f(h, m) + v·g(h, m, l)            an arc with its label, where labels are chosen with the tree

f are the templates of a table such as `standard`, g those of `joint`, which see the label too. The weights are one
vector: w, and after it v. `ArcExamples` shows training sentences to `headway.learning`; `PartialExamples` those
of which only some heads are known, the rest of the tree being latent (fernandes2012 section 2.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headway.errors import TreebankError
from headway.features.arc_features import ArcFeatures
from headway.features.blocks import Weights
from headway.features.coding import Coded, Coder
from headway.inference.batch import Floats, Ints, as_batch
from headway.inference.first_order import arc_marginals, argmax
from headway.parallel import executor_for
from headway.treebank import Sentence

_NEGLIGIBLE = 1e-4  # probabilities of latent arcs that move no weight worth having


@dataclass(frozen=True)
class ArcScorer:
    """Scores from weights; `joint` is None unless labels are chosen with the tree."""

    arcs: ArcFeatures
    joint: ArcFeatures | None = None
    labels: tuple[str, ...] = ()
    threads: int = 1

    @property
    def size(self) -> int:
        """How many weights there are."""
        return self.arcs.size + (self.joint.size if self.joint else 0)

    @property
    def collisions(self) -> float:
        """The share of the keys of the training trees that share their weight with another, among arc features."""
        return self.arcs.collisions

    def score(self, weights: Weights, coded: Coded, which: Ints) -> Floats:
        """(B, N+1, N+1), or (B, N+1, N+1, L) with labels."""
        width = _width(coded, which)
        arcs = np.zeros((len(which), width, width))
        self.arcs.score(weights[: self.arcs.size], coded.some(which), arcs, executor_for(self.threads))
        if self.joint is None:
            return arcs
        scores = np.repeat(arcs.reshape(-1, 1), len(self.labels), axis=1)
        self.joint.score_labels(weights[self.arcs.size :], coded.some(which), _all_rows(arcs), scores)
        return scores.reshape(*arcs.shape, -1)

    def add(self, weights: Weights, coded: Coded, which: Ints, amounts: Floats) -> None:
        """weights += amounts x features; amounts are shaped like the scores."""
        arcs = amounts if self.joint is None else amounts.sum(axis=-1)
        self.arcs.add(weights[: self.arcs.size], coded.some(which), arcs, executor_for(self.threads))
        if self.joint is not None:
            rows = amounts.reshape(-1, len(self.labels))
            self.joint.add_labels(weights[self.arcs.size :], coded.some(which), _all_rows(arcs), rows)


@dataclass(frozen=True)
class ArcText:
    """Coded sentences without trees."""

    scorer: ArcScorer
    coded: Coded

    @property
    def lengths(self) -> Ints:
        return self.coded.lengths

    @property
    def size(self) -> int:
        return self.scorer.size

    def score(self, weights: Weights, which: Ints) -> Floats:
        return self.scorer.score(weights, self.coded, which)

    def add(self, weights: Weights, which: Ints, amounts: Floats) -> None:
        self.scorer.add(weights, self.coded, which, amounts)


@dataclass(frozen=True)
class ArcExamples(ArcText):
    """Coded sentences with their heads (B, N+1), padded with -1, and labels as numbers (B, N+1)."""

    heads: Ints
    labels: Ints

    def cost(self, which: Ints) -> Floats:
        return 1.0 - self.gold(which)

    def gold(self, which: Ints) -> Floats:
        width = _width(self.coded, which)
        heads = self.heads[which, :width]
        if self.scorer.joint is None:
            return _arcs(heads)
        b, m = np.nonzero(heads >= 0)
        gold = np.zeros((len(which), width, width, len(self.scorer.labels)))
        gold[b, heads[b, m], m, self.labels[which][b, m]] = 1.0
        return gold


@dataclass(frozen=True)
class PartialExamples(ArcText):
    """Coded sentences of which some heads are known, (B, N+1), -1 elsewhere; the trees behind them are latent.

    There must be a tree of the class with the known heads (`headway.treebank.require_partial_tree`). At temperature 0
    the latent tree is the best one with the known arcs, as in the paper. Above, every tree counts in proportion to
    exp(score / temperature), and arcs have marginals: nothing is guessed, and the updates of the latent perceptron are
    the gradient of the log-probability that the known arcs have, in steps of 1 / temperature.

    A margin is asked for between the heads of known words only: if guesses cost as much, the first ones, under weights
    of 0, are what is learnt.
    """

    heads: Ints
    projective: bool = False
    single_root: bool = True
    temperature: float = 0.0

    def best_trees(self, scores: Floats, which: Ints) -> Ints:
        """The heads (B, N+1) of the best trees among those that have every known arc."""
        return self._argmax(self._allowed(scores, which), which)

    def best(self, scores: Floats, lengths: Ints, which: Ints) -> Floats:
        """The best trees, or the marginals of all."""
        return self._shared(scores, which)

    def constrained(self, scores: Floats, which: Ints) -> Floats:
        """The same among the trees that have every known arc."""
        return self._shared(self._allowed(scores, which), which)

    def _allowed(self, scores: Floats, which: Ints) -> Floats:
        known = self._known(which)
        b, m = np.nonzero(known >= 0)
        allowed = scores.copy()
        allowed[b, :, m] = -np.inf
        allowed[b, known[b, m], m] = scores[b, known[b, m], m]
        return allowed

    def _argmax(self, scores: Floats, which: Ints) -> Ints:
        trees = {"projective": self.projective, "single_root": self.single_root}
        return argmax(scores, lengths=self.lengths[which], threads=self.scorer.threads, **trees)

    def _shared(self, scores: Floats, which: Ints) -> Floats:
        if self.temperature == 0:
            return _arcs(self._argmax(scores, which))
        batch = as_batch(scores / self.temperature, self.lengths[which])
        _, shares = arc_marginals(batch, self.projective, self.single_root, self.scorer.threads)
        shares[shares < _NEGLIGIBLE] = 0.0
        return shares

    def cost(self, latent: Floats, which: Ints) -> Floats:
        cost: Floats = (latent == 0) * (self._known(which) >= 0)[:, None, :] * 1.0
        return cost

    def output(self, latent: Floats, which: Ints) -> Ints:
        """The heads of the words whose heads are known, -1 elsewhere."""
        heads: Ints = np.where(self._known(which) >= 0, latent.argmax(axis=1), -1)
        return heads

    def loss(self, output: Ints, which: Ints) -> float:
        """How many of the known heads are wrong."""
        return float((output != self._known(which)).sum())

    def _known(self, which: Ints) -> Ints:
        return self.heads[which, : _width(self.coded, which)]


class CodedTrees(NamedTuple):
    """Coded sentences, their heads and the numbers of their labels (B, N+1), padded with -1.

    A head may be -1 because it is not known, too; so is its label then.
    """

    coded: Coded
    heads: Ints
    labels: Ints

    @property
    def is_partial(self) -> bool:
        """Whether some heads are not known."""
        return int((self.heads >= 0).sum()) < int(self.coded.lengths.sum())


def code_trees(sentences: Sequence[Sentence], coder: Coder, labels: Sequence[str]) -> CodedTrees:
    """Annotated sentences as numbers."""
    number = {label: i for i, label in enumerate(labels)}
    width = max(map(len, sentences), default=0) + 1
    heads, chosen = np.full((2, len(sentences), width), -1, np.int64)
    for i, sentence in enumerate(sentences):
        if sentence.heads is None or sentence.labels is None:
            raise TreebankError(f"{sentence.place}: the sentence has no tree; annotate it or leave it out")
        heads[i, : len(sentence) + 1] = sentence.heads
        if labels:
            numbers = [number.get(str(label), 0) for label in sentence.labels[1:]]
            chosen[i, 1 : len(sentence) + 1] = np.where(sentence.heads[1:] >= 0, numbers, -1)
    return CodedTrees(coder.code(sentences), heads, chosen)


def _arcs(heads: Ints) -> Floats:
    """1 on the arcs of trees (B, N+1), 0 elsewhere: (B, N+1, N+1)."""
    size, width = heads.shape
    arcs = np.zeros((size, width, width))
    b, m = np.nonzero(heads >= 0)
    arcs[b, heads[b, m], m] = 1.0
    return arcs


def _width(coded: Coded, which: Ints) -> int:
    return int(coded.lengths[which].max(initial=0)) + 1


def _all_rows(arcs: Floats) -> Ints:
    return np.arange(arcs.size, dtype=np.int64).reshape(arcs.shape)
