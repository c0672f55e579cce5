"""The training of labels that are chosen after the tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.features.coding import Coder
from headway.inference.batch import Floats, Ints
from headway.learning.examples import Labels
from headway.learning.monitor import Monitor, Show
from headway.learning.perceptron import Perceptron
from headway.models.arc_factored import CodedTrees
from headway.models.labeller import LabelExamples, LabelScorer
from headway.training.settings import Settings

_EPOCHS, _MARGIN = 8, 30.0


def train_labeller(
    coder: Coder, trees: CodedTrees, labels: tuple[str, ...], settings: Settings, show: Show | None, *, tree: bool
) -> tuple[LabelScorer, Floats]:
    """The classifier that labels the arcs of a tree, from those whose labels are known; `tree` lets it look around."""
    scorer = LabelScorer.learn(coder, trees, labels, tree=tree)
    examples = LabelExamples(scorer, *trees)
    weights, choices = np.zeros(scorer.size), _KnownLabels(trees.labels)
    for seed in range(settings.seed, settings.seed + settings.trainings):
        monitor = Monitor("labels", _EPOCHS, _EPOCHS, show=show)
        weights += Perceptron(choices, _EPOCHS, _MARGIN, seed).fit(examples, monitor)
    return scorer, weights / settings.trainings


@dataclass(frozen=True)
class _KnownLabels:
    """One label for each word whose label is known, chosen independently; none for the others."""

    labels: Ints

    def best(self, scores: Floats, lengths: Ints, which: Ints) -> Floats:
        known = self.labels[which, : scores.shape[1]] >= 0
        return Labels().best(scores, lengths, which) * known[..., None]
