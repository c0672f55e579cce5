"""The stage that learns the labels which are chosen after the tree."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headway.arrays import Floats, Ints
from headway.features.coding import Coder
from headway.learning.perceptron import Perceptron
from headway.learning.problem import MARGINALS
from headway.learning.structures import Labels
from headway.models.labeller import AfterLabels, CodedArcs, LabelScorer
from headway.models.root_labels import roots_among
from headway.training.data import CodedTrees
from headway.training.preparation import bound
from headway.training.settings import Settings
from headway.training.stages import Run

_EPOCHS, _MARGIN = 8, 30.0


@dataclass(frozen=True)
class LabelProblem:
    """The arcs of training trees, and their labels as numbers; -1 pads, and stands for a label that is unknown."""

    scorer: LabelScorer
    trees: CodedTrees

    offers = MARGINALS

    @property
    def lengths(self) -> Ints:
        return self.trees.coded.lengths

    @property
    def size(self) -> int:
        return self.scorer.size

    def some(self, which: Ints) -> LabelInstances:
        """The sentences with these numbers."""
        batch = self.trees.coded.some(which)
        width = int(batch.lengths.max(initial=0)) + 1
        arcs = CodedArcs(batch, self.trees.heads[which, :width])
        return LabelInstances(self.scorer, arcs, self.trees.labels[which, :width])

    def only(self, which: Ints) -> LabelProblem:
        """The problem of these sentences, which refers to no others."""
        return replace(self, trees=self.trees.only(which))


@dataclass(frozen=True)
class LabelInstances:
    """Some of these sentences. Nothing is right for a word of unknown label, and nothing is chosen for it."""

    scorer: LabelScorer
    arcs: CodedArcs
    labels: Ints

    @property
    def lengths(self) -> Ints:
        return self.arcs.coded.lengths

    def score(self, weights: Floats) -> Floats:
        return self.scorer.scores(weights, self.arcs)

    def add(self, into: Floats, amounts: Floats) -> None:
        self.scorer.pullback(into, self.arcs, amounts)

    def gold(self) -> Floats:
        gold = np.zeros((*self.labels.shape, len(self.scorer.labels)))
        b, m = np.nonzero(self.labels >= 0)
        gold[b, m, self.labels[b, m]] = 1.0
        return gold

    def cost(self) -> Floats:
        return 1.0 - self.gold()

    def best(self, scores: Floats) -> Floats:
        return Labels().best(scores, self.lengths) * (self.labels >= 0)[..., None]

    def marginals(self, scores: Floats) -> tuple[Floats, Floats]:
        return Labels().marginals(scores, self.lengths)


def train_labels(
    coder: Coder,
    trees: CodedTrees,
    labels: tuple[str, ...],
    settings: Settings,
    run: Run,
    *,
    roots: tuple[str, ...],
    tree: bool,
) -> AfterLabels:
    """The classifier that labels the arcs of a tree, from those whose labels are known; `tree` lets it look around.

    `roots` are the labels of the root's children alone.
    """
    scorer = LabelScorer.learn(coder, CodedArcs(trees.coded, trees.heads), trees.labels, labels, tree=tree)
    problem, weights = LabelProblem(scorer, trees), np.zeros(scorer.size)
    fitting = replace(settings, epochs=_EPOCHS, patience=_EPOCHS)
    for number in range(settings.runs):
        learner = Perceptron(_EPOCHS, _MARGIN, settings.seed + number)
        fit = bound(learner, problem, settings.shards, run.workers)
        monitor = run.fit(f"labels-{number + 1}", fit, problem.size, fitting, shown="labels")
        assert monitor.best is not None
        weights += monitor.best
    return AfterLabels(scorer, weights / settings.runs, roots_among(labels, roots))
