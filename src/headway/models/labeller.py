"""Labels after the tree: each arc's label is chosen on its own, by a linear classifier over the arc's features.

    label(h, m) = argmax_l v·g(h, m, l)

Scoring a tree costs O(T n L) for T templates.
`LabelExamples` shows the arcs of training trees to `headway.learning`, whose learners train this like any structure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.features.arc_features import ArcFeatures
from headway.features.coding import Coded
from headway.inference.batch import Floats, Ints


@dataclass(frozen=True)
class LabelScorer:
    """Scores the labels of given arcs."""

    features: ArcFeatures
    labels: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many weights there are."""
        return self.features.size

    def score(self, weights: Floats, coded: Coded, which: Ints, heads: Ints) -> Floats:
        """(B, N+1, L) for the arcs of `heads` (B, N+1)."""
        rows = np.zeros((heads.size, len(self.labels)))
        self.features.score_labels(weights, coded, which, _tree_rows(heads), rows)
        return rows.reshape(*heads.shape, -1)

    def add(self, weights: Floats, coded: Coded, which: Ints, heads: Ints, amounts: Floats) -> None:
        """weights += amounts (B, N+1, L) x features of the arcs of `heads`."""
        rows = amounts.reshape(-1, len(self.labels))
        self.features.add_labels(weights, coded, which, _tree_rows(heads), rows)


@dataclass(frozen=True)
class LabelExamples:
    """The arcs of training trees, heads (B, N+1), and their labels as numbers (B, N+1); -1 pads both."""

    scorer: LabelScorer
    coded: Coded
    heads: Ints
    labels: Ints

    @property
    def lengths(self) -> Ints:
        return self.coded.lengths

    @property
    def size(self) -> int:
        return self.scorer.size

    def score(self, weights: Floats, which: Ints) -> Floats:
        return self.scorer.score(weights, self.coded, which, self._heads(which))

    def add(self, weights: Floats, which: Ints, amounts: Floats) -> None:
        self.scorer.add(weights, self.coded, which, self._heads(which), amounts)

    def gold(self, which: Ints) -> Floats:
        heads = self._heads(which)
        gold = np.zeros((*heads.shape, len(self.scorer.labels)))
        b, m = np.nonzero(heads >= 0)
        gold[b, m, self.labels[which][b, m]] = 1.0
        return gold

    def _heads(self, which: Ints) -> Ints:
        return self.heads[which, : int(self.lengths[which].max(initial=0)) + 1]


def _tree_rows(heads: Ints) -> Ints:
    """The row of every arc of a tree, [b, h, m] -> b * (N+1) + m; -1 for the arcs no tree has."""
    size, width = heads.shape
    rows = np.full((size, width, width), -1, np.int64)
    b, m = np.nonzero(heads >= 0)
    rows[b, heads[b, m], m] = b * width + m
    return rows
