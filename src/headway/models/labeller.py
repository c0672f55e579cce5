"""Labels after the tree: each arc's label is chosen on its own, by a linear classifier.

    label(h, m) = argmax_l v·g(h, m, l) + v'·g'(h, m, tree, l)

g are templates over the arc. g', which the higher-order parsers have too, are templates over what stands around it in
the tree: the head's own head, the neighbouring children of the head, the outermost children of the modifier. The
weights are one vector, v before v'. Scoring a tree costs O(T n L) for T templates.
`LabelExamples` shows the arcs of training trees to `headway.learning`, whose learners train this like any structure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.features.arc_features import ArcFeatures
from headway.features.blocks import Weights
from headway.features.coding import Coded, Coder
from headway.features.part_features import PartFeatures, PartList
from headway.features.templates import load_templates
from headway.inference.batch import Floats, Ints
from headway.inference.jit import kernel
from headway.models.arc_factored import CodedTrees

Nodes = NDArray[np.int32]

# Head, modifier, the head's head, the sibling before and after the modifier, its leftmost and rightmost child.
ROLES = "hmgsncd"


@dataclass(frozen=True)
class LabelScorer:
    """Scores the labels of given arcs; `around` is None where only the arc itself counts."""

    features: ArcFeatures
    around: PartFeatures | None
    labels: tuple[str, ...]

    @classmethod
    def learn(cls, coder: Coder, trees: CodedTrees, labels: tuple[str, ...], *, tree: bool) -> LabelScorer:
        """Size the features from the arcs whose labels are known.

        `tree` asks for features that look around, for which every head must be known.
        """
        coded, heads, numbers = trees
        labelled = np.where(numbers >= 0, heads, -1)
        arcs = ArcFeatures.learn(load_templates("label"), coder, coded, labelled, numbers)
        if not tree:
            return cls(arcs, None, labels)
        parts, templates = _some(surroundings(heads, coded.lengths), labelled[heads >= 0] >= 0), "tree_label"
        known = numbers[labelled >= 0]
        return cls(arcs, PartFeatures.learn(ROLES, load_templates(templates), coder, coded, parts, known), labels)

    @property
    def size(self) -> int:
        """How many weights there are."""
        return self.features.size + (self.around.size if self.around else 0)

    def score(self, weights: Weights, coded: Coded, which: Ints, heads: Ints) -> Floats:
        """(B, N+1, L) for the arcs of `heads` (B, N+1)."""
        rows = np.zeros((heads.size, len(self.labels)))
        own, others = np.split(weights, [self.features.size])
        self.features.score_labels(own, coded.some(which), _tree_rows(heads), rows)
        if self.around is not None:
            parts = surroundings(heads, coded.lengths[which])
            around = np.zeros((len(parts.nodes), len(self.labels)))
            self.around.score_labels(others, coded.some(which), parts, around)
            rows[heads.ravel() >= 0] += around
        return rows.reshape(*heads.shape, -1)

    def add(self, weights: Weights, coded: Coded, which: Ints, heads: Ints, amounts: Floats) -> None:
        """weights += amounts (B, N+1, L) x features of the arcs of `heads`."""
        rows = amounts.reshape(-1, len(self.labels))
        own, others = np.split(weights, [self.features.size])
        self.features.add_labels(own, coded.some(which), _tree_rows(heads), rows)
        if self.around is not None:
            parts = surroundings(heads, coded.lengths[which])
            self.around.add_labels(others, coded.some(which), parts, rows[heads.ravel() >= 0])


@dataclass(frozen=True)
class LabelExamples:
    """The arcs of training trees, heads (B, N+1), and their labels as numbers (B, N+1); -1 pads both.

    A label may also be -1 because it is not known. Nothing is right for such a word, so a learner must choose nothing.
    """

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

    def score(self, weights: Weights, which: Ints) -> Floats:
        return self.scorer.score(weights, self.coded, which, self._heads(which))

    def add(self, weights: Weights, which: Ints, amounts: Floats) -> None:
        self.scorer.add(weights, self.coded, which, self._heads(which), amounts)

    def cost(self, which: Ints) -> Floats:
        return 1.0 - self.gold(which)

    def gold(self, which: Ints) -> Floats:
        heads = self._heads(which)
        gold = np.zeros((*heads.shape, len(self.scorer.labels)))
        labels = self.labels[which, : heads.shape[1]]
        b, m = np.nonzero(labels >= 0)
        gold[b, m, labels[b, m]] = 1.0
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


def surroundings(heads: Ints, lengths: Ints) -> PartList:
    """What stands around each word's arc in trees (B, N+1), as `ROLES` has it; -1 where there is nothing."""
    start = np.concatenate(([0], np.cumsum(lengths)))
    nodes = np.full((int(start[-1]), len(ROLES)), -1, np.int32)
    ways = np.zeros((len(nodes), 2), np.int32)
    _surroundings(heads, lengths, nodes, ways)
    return PartList(start, nodes, ways)


def _some(parts: PartList, wanted: NDArray[np.bool_]) -> PartList:
    """Those of the parts that are wanted."""
    start = np.concatenate(([0], np.cumsum(wanted)))[parts.start]
    return PartList(start, parts.nodes[wanted], parts.ways[wanted])


@kernel
def _surroundings(heads: Ints, lengths: Ints, nodes: Nodes, ways: Nodes) -> None:
    first = -1  # the row of node 0 of the sentence, had it one
    for b in range(len(lengths)):
        n = lengths[b]
        for m in range(1, n + 1):
            h = heads[b, m]
            row = nodes[first + m]
            row[0], row[1] = h, m
            if h > 0:
                row[2] = heads[b, h]
                child = nodes[first + h]
                if child[5] < 0:
                    child[5] = m
                child[6] = m
            ways[first + m] = int(m > h)
        for m in range(1, n + 1):
            h = heads[b, m]
            step = 1 if m > h else -1
            k = m - step
            while k != h and heads[b, k] != h:
                k -= step
            if k != h:
                nodes[first + m, 3] = k
                nodes[first + k, 4] = m
        first += n
