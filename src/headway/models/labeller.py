"""Labels after the tree: each arc's label is chosen on its own, by a linear classifier.

    label(h, m) = argmax_l v·g(h, m, l) + v'·g'(h, m, tree, l)

g are templates over the arc. g', which the higher-order parsers have too, are templates over what stands around it in
the tree: the head's own head, the neighbouring children of the head, the outermost children of the modifier. The
weights are one vector, v before v'. Scoring a tree costs O(T n L) for T templates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Floats, Ints
from headway.features.arc_features import ArcFeatures
from headway.features.blocks import Weights
from headway.features.coding import Coded, Coder
from headway.features.part_features import PartFeatures, PartList
from headway.features.templates import load_templates
from headway.inference.jit import kernel
from headway.models.labelling import ChosenLabels
from headway.models.root_labels import mask_labels
from headway.parallel import SERIAL, Executor

# Head, modifier, the head's head, the sibling before and after the modifier, its leftmost and rightmost child.
ROLES = "hmgsncd"


class CodedArcs(NamedTuple):
    """Coded sentences and the heads of their words, (B, N+1), padded with -1."""

    coded: Coded
    heads: Ints


@dataclass(frozen=True, repr=False)
class LabelScorer:
    """Scores the labels of given arcs; `around` is None where only the arc itself counts."""

    features: ArcFeatures
    around: PartFeatures | None
    labels: tuple[str, ...]

    @classmethod
    def learn(cls, coder: Coder, arcs: CodedArcs, numbers: Ints, labels: tuple[str, ...], *, tree: bool) -> LabelScorer:
        """Size the features from the arcs whose labels are known: `numbers` (B, N+1), -1 elsewhere.

        `tree` asks for features that look around, for which every head must be known.
        """
        coded, heads = arcs
        labelled = np.where(numbers >= 0, heads, -1)
        features = ArcFeatures.learn(load_templates("label"), coder, coded, labelled, numbers)
        if not tree:
            return cls(features, None, labels)
        parts = surroundings(heads, coded.lengths).some(np.flatnonzero(labelled[heads >= 0] >= 0))
        known = numbers[labelled >= 0]
        return cls(
            features, PartFeatures.learn(ROLES, load_templates("tree_label"), coder, coded, parts, known), labels
        )

    @property
    def size(self) -> int:
        """How many weights there are."""
        return self.features.size + (self.around.size if self.around else 0)

    def scores(self, weights: Weights, batch: CodedArcs, executor: Executor = SERIAL) -> Floats:
        """(B, N+1, L) for the arcs of a batch."""
        coded, heads = batch
        rows = np.zeros((heads.size, len(self.labels)))
        own, others = np.split(weights, [self.features.size])
        self.features.score_labels(own, coded, _tree_rows(heads), rows)
        if self.around is not None:
            parts = surroundings(heads, coded.lengths)
            around = np.zeros((len(parts.nodes), len(self.labels)))
            self.around.score(others, coded, parts, around)
            rows[heads.ravel() >= 0] += around
        return rows.reshape(*heads.shape, -1)

    def pullback(self, into: Weights, batch: CodedArcs, amounts: Floats, executor: Executor = SERIAL) -> None:
        """into += amounts (B, N+1, L) x features of the arcs."""
        coded, heads = batch
        rows = amounts.reshape(-1, len(self.labels))
        own, others = np.split(into, [self.features.size])
        self.features.add_labels(own, coded, _tree_rows(heads), rows)
        if self.around is not None:
            parts = surroundings(heads, coded.lengths)
            self.around.add(others, coded, parts, rows[heads.ravel() >= 0])


@dataclass(frozen=True, repr=False)
class AfterLabels:
    """Labels chosen after the tree, arc by arc; those of `roots` on the root's children, and only there."""

    scorer: LabelScorer
    weights: Weights
    roots: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.scorer.labels

    def choose(self, batch: Coded, heads: Ints, scores: Any) -> ChosenLabels:
        """Every word's label; the scores that the tree was chosen by do not matter.

        A perceptron's scores only order the labels, on no scale: they are not made into probabilities.
        """
        found = self.scorer.scores(self.weights, CodedArcs(batch, heads))
        return ChosenLabels(mask_labels(found, heads, self.names, self.roots).argmax(axis=-1), None)


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


@kernel
def _surroundings(heads: Ints, lengths: Ints, nodes: NDArray[np.int32], ways: NDArray[np.int32]) -> None:
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
