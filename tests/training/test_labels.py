"""Labels learnt from trees: what is right where some labels are unknown, and what features are sized from."""

from __future__ import annotations

import numpy as np

from headway.features.arc_features import ArcFeatures
from headway.features.coding import Coder
from headway.features.part_features import PartFeatures
from headway.features.templates import load_templates
from headway.learning.problem import MARGINALS
from headway.models.labeller import ROLES, CodedArcs, LabelScorer, surroundings
from headway.training.data import CodedTrees, code_trees
from headway.training.labels import LabelProblem
from headway.treebank import Sentence

from ..models.toy_treebank import LABELS, sentences


def coded(text: list[Sentence]) -> tuple[Coder, CodedTrees]:
    coder = Coder.learn(text)
    return coder, code_trees(text, coder, LABELS)


def scorer_of(coder: Coder, trees: CodedTrees) -> LabelScorer:
    return LabelScorer.learn(coder, CodedArcs(trees.coded, trees.heads), trees.labels, LABELS, tree=True)


def without_labels(trees: CodedTrees, seed: int) -> CodedTrees:
    """The same trees, half of the labels not known."""
    unknown = np.random.default_rng(seed).random(trees.labels.shape) < 0.5
    return CodedTrees(trees.coded, trees.heads, np.where(unknown, -1, trees.labels))


def test_labels_that_are_not_known_are_never_right() -> None:
    coder, whole = coded(sentences(6, 1))
    trees = without_labels(whole, 2)
    examples = LabelProblem(scorer_of(coder, trees), trees)
    assert examples.offers == MARGINALS
    these = examples.some(np.arange(6))
    gold = these.gold()
    chosen = these.best(these.score(np.ones(examples.size)))
    np.testing.assert_array_equal(chosen.sum(axis=-1), trees.labels >= 0)  # nor is anything chosen for them
    assert 0 < gold.sum() == (trees.labels >= 0).sum()
    for b, m in np.ndindex(*trees.labels.shape):
        number = int(trees.labels[b, m])
        assert gold[b, m].sum() == (number >= 0)
        assert number < 0 or gold[b, m, number] == 1.0


def test_features_of_labels_are_sized_from_the_known_ones() -> None:
    """As if the sentences had no other arcs; what stands around these is still the whole tree."""
    coder, whole = coded(sentences(8, 5))
    trees = without_labels(whole, 6)
    scorer = scorer_of(coder, trees)
    alone = np.where(trees.labels >= 0, trees.heads, -1)
    arcs = ArcFeatures.learn(load_templates("label"), coder, trees.coded, alone, trees.labels)
    assert scorer.features.blocks == arcs.blocks
    assert scorer.around is not None
    keys = [block.keys for block in scorer.around.blocks]
    parts = surroundings(whole.heads, whole.coded.lengths)
    every = PartFeatures.learn(
        ROLES, load_templates("tree_label"), coder, whole.coded, parts, whole.labels[whole.heads >= 0]
    )
    assert all(few <= many.keys for few, many in zip(keys, every.blocks, strict=True))
    assert sum(keys) < sum(block.keys for block in every.blocks)
    complete = scorer_of(coder, whole)
    assert complete.around is not None
    assert complete.around.blocks == every.blocks
