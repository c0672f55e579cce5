"""Sentences as learners of arc scores see them: what is right, what a mistake costs, text without trees."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headway.arrays import TreeClass
from headway.features.coding import Coder
from headway.features.templates import Template
from headway.learning.problem import COVARIANCE
from headway.learning.structures import Trees
from headway.models.arc_scorer import ArcScorer
from headway.training.arc_problem import ArcProblem
from headway.training.data import code_trees
from headway.treebank import Sentence

from ..features.strategies import sentences, templates
from ..models.scorer_cases import LABELS, arc_mask, features, labelled, whole

tables = st.lists(templates(), min_size=1, max_size=3, unique=True)
texts = st.lists(sentences(4), min_size=1, max_size=3)


def arc_problem(scorer: ArcScorer, coder: Coder, text: list[Sentence]) -> ArcProblem:
    trees = code_trees(text, coder, LABELS)
    return ArcProblem(scorer, Trees(TreeClass()), trees.coded, trees)


def test_it_offers_everything() -> None:
    assert ArcProblem.offers == COVARIANCE


@given(texts, tables, st.booleans())
def test_gold_is_one_on_the_arcs_of_the_tree(text: list[Sentence], table: list[Template], joint: bool) -> None:
    text = labelled(text, 4)
    coder = Coder.learn(text)
    compiled = features(table, coder)
    scorer = ArcScorer(compiled, compiled, LABELS) if joint else ArcScorer(compiled)
    problem = arc_problem(scorer, coder, text)
    assert problem.size == scorer.size
    assert problem.lengths.tolist() == [len(sentence) for sentence in text]
    for which in (np.arange(len(text))[::-1], np.array([0])):
        these = problem.some(which)
        gold = these.gold()
        assert gold.shape == these.score(np.zeros(scorer.size)).shape
        expected = set()
        for b, i in enumerate(which.tolist()):
            heads, labels = text[i].heads, text[i].labels
            assert heads is not None
            assert labels is not None
            for m in range(1, len(text[i]) + 1):
                label = (LABELS.index(str(labels[m])),) if joint else ()
                expected.add((b, int(heads[m]), m, *label))
        assert set(zip(*(axis.tolist() for axis in np.nonzero(gold)), strict=True)) == expected
        assert set(np.unique(gold)) <= {0.0, 1.0}
        np.testing.assert_array_equal(these.cost(), 1.0 - gold)


@given(texts, tables, st.booleans())
def test_text_without_trees_is_scored_as_with_them(text: list[Sentence], table: list[Template], joint: bool) -> None:
    """Heads and labels, which it lacks, are all that tells the one from the other."""
    text = labelled(text, 8)
    coder = Coder.learn(text)
    compiled = features(table, coder)
    scorer = ArcScorer(compiled, compiled, LABELS) if joint else ArcScorer(compiled)
    columns = ("lemmas", "upos", "xpos", "feats")
    bare = [Sentence.from_words(s.forms, **{name: getattr(s, name) for name in columns}) for s in text]
    unannotated = ArcProblem(scorer, Trees(TreeClass()), coder.code(bare))
    assert unannotated.gold is None
    annotated = arc_problem(scorer, coder, text)
    assert unannotated.size == annotated.size == scorer.size
    assert unannotated.lengths.tolist() == annotated.lengths.tolist() == [len(sentence) for sentence in text]
    weights = whole(9, scorer.size)
    for which in (np.arange(len(text))[::-1], np.array([0])):
        without, these = unannotated.some(which), annotated.some(which)
        assert without.heads is None
        scores = without.score(weights)
        np.testing.assert_array_equal(scores, these.score(weights))
        mask = arc_mask([text[i] for i in which.tolist()])
        amounts = whole(10, *scores.shape) * (mask[..., None] if joint else mask)
        added = np.zeros((2, scorer.size))
        without.add(added[0], amounts)
        these.add(added[1], amounts)
        np.testing.assert_array_equal(added[0], added[1])
        assert added[0] @ weights == np.vdot(amounts, scores)
