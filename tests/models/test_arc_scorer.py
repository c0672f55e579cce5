"""Scores of arcs, against features enumerated one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.features.coding import Coder
from headway.features.templates import Atom, Template
from headway.models.arc_scorer import ArcScorer
from headway.parallel import Threads
from headway.treebank import Sentence

from ..features import naive
from ..features.strategies import sentences, templates
from .scorer_cases import LABELS, arc_mask, features, whole

tables = st.lists(templates(), min_size=1, max_size=3, unique=True)
texts = st.lists(sentences(4), min_size=1, max_size=3)


@given(texts, tables, tables)
def test_joint_scores_are_those_of_the_arc_and_of_its_label(
    text: list[Sentence], first: list[Template], second: list[Template]
) -> None:
    """The weights are one vector: the arcs', then the labels'."""
    coder = Coder.learn(text)
    arcs, joint = features(first, coder), features(second, coder, 3)
    scorer = ArcScorer(arcs, joint, LABELS)
    assert scorer.size == arcs.size + joint.size
    weights, coded = whole(1, scorer.size), coder.code(text)
    scores, mask = scorer.scores(weights, coded), arc_mask(text)
    expected = naive.score(arcs, text, coder, weights[: arcs.size])[..., None]
    expected = expected + naive.score_labels(joint, text, coder, weights[arcs.size :], 3)
    np.testing.assert_array_equal(scores[mask], expected[mask])
    amounts = whole(2, *scores.shape) * mask[..., None]
    added = np.zeros(scorer.size)
    scorer.pullback(added, coded, amounts)
    np.testing.assert_array_equal(added[: arcs.size], naive.add(arcs, text, coder, amounts.sum(axis=-1)))
    np.testing.assert_array_equal(added[arcs.size :], naive.add_labels(joint, text, coder, amounts))
    assert np.vdot(amounts, scores) == added @ weights


@given(texts, tables)
def test_arc_scores_without_labels(text: list[Sentence], table: list[Template]) -> None:
    coder = Coder.learn(text)
    arcs = features(table, coder)
    scorer = ArcScorer(arcs)
    weights, mask = whole(3, scorer.size), arc_mask(text)
    scores = scorer.scores(weights, coder.code(text))
    np.testing.assert_array_equal(scores[mask], naive.score(arcs, text, coder, weights)[mask])


@pytest.mark.parametrize("joint", [False, True])
def test_threads_change_nothing(joint: bool) -> None:
    rng = np.random.default_rng(7)
    text = [Sentence.from_words(rng.choice(["a", "b", "c"], 6).tolist()) for _ in range(12)]
    coder = Coder.learn(text)
    table = [Template((Atom(node, offset, "form"),), "dist") for node in "hm" for offset in (-1, 0, 1)]
    compiled = features(table, coder)
    scorer = ArcScorer(compiled, compiled if joint else None, LABELS if joint else ())
    coded, weights = coder.code(text), rng.normal(size=scorer.size)
    scores = scorer.scores(weights, coded)
    np.testing.assert_array_equal(scorer.scores(weights, coded, Threads(4)), scores)
    amounts = rng.normal(size=scores.shape)
    added = np.zeros((2, scorer.size))
    scorer.pullback(added[0], coded, amounts)
    scorer.pullback(added[1], coded, amounts, Threads(4))
    np.testing.assert_array_equal(added[0], added[1])
