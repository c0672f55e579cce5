"""Training arc models: every learner on the toy language, and text without trees beside it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.arrays import Floats, Ints
from headway.features.coding import Coder
from headway.inference import TreeDistribution
from headway.models.arc_scorer import ArcScorer
from headway.training.arc_problem import ArcProblem
from headway.training.arc_trainer import ArcPreparation, random_heads
from headway.training.data import training_trees
from headway.treebank import Sentence

from ..models.toy_treebank import sentences
from .toy_trainings import LEARNERS, fitted, prepared, settings_for


def arc_scorer(made: ArcPreparation) -> ArcScorer:
    return made.problem.scorer


def gold(made: ArcPreparation, which: Ints) -> Floats:
    assert isinstance(made.problem, ArcProblem)
    return made.problem.some(which).gold()


@pytest.mark.parametrize("name", list(LEARNERS))
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("single_root", [False, True])
def test_every_learner_learns_every_class(name: str, projective: bool, single_root: bool) -> None:
    """Crossing arcs are in every training set; a projective model need not get them right on new sentences."""
    settings = settings_for(name, projective=projective, single_root=single_root, labels="none")
    text = training_trees(sentences(36, 4, crossing=True, two_roots=not single_root), settings.trees, "toy")
    new = sentences(30, 5, crossing=not projective, two_roots=not single_root)
    best = fitted(prepared(settings, text), settings).best
    assert best is not None
    made = prepared(settings, text, new)
    assert made.uas(best) > 97.0
    assert made.uas(np.zeros(made.size)) < 60.0


# Text without trees


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8))
def test_random_heads(lengths: list[int]) -> None:
    """Any node of the sentence but the word itself, and -1 where there is no word."""
    text = [Sentence.from_words(["a"] * n) for n in lengths]
    heads = random_heads(Coder.learn(text).code(text))
    assert heads.shape == (len(lengths), max(lengths) + 1)
    assert heads.dtype == np.int64
    for row, n in zip(heads.tolist(), lengths, strict=True):
        assert row[0] == -1
        for m in range(1, n + 1):
            assert 0 <= row[m] <= n
            assert row[m] != m
        assert row[n + 1 :] == [-1] * (max(lengths) - n)


def test_random_heads_are_drawn_evenly() -> None:
    """Of four words in 3,000 sentences, each of the four other nodes is drawn for about a quarter; always the same."""
    text = [Sentence.from_words(["a"] * 4)] * 3000
    coded = Coder.learn(text).code(text)
    heads = random_heads(coded)
    for m in range(1, 5):
        count = np.bincount(heads[:, m], minlength=5)
        assert count[m] == 0
        assert np.abs(np.delete(count, m) - 750).max() < 5 * np.sqrt(3000 * 0.25 * 0.75)
    np.testing.assert_array_equal(random_heads(coded), heads)


@pytest.mark.parametrize("labels", ["none", "after", "joint"])
def test_features_have_room_for_the_text(labels: str) -> None:
    """Words and arcs of the text; what tells labels apart knows the trees' only."""
    settings = settings_for("lbfgs", labels=labels)
    trees, text = sentences(6, 34), sentences(60, 35, crossing=True)
    alone, both = prepared(settings, trees), prepared(settings, trees, text=text)
    words = {form for sentence in text for form in sentence.forms}
    assert words <= set(both.coder.fields["form"])
    assert not words <= set(alone.coder.fields["form"])
    assert arc_scorer(both).arcs.size > 2 * arc_scorer(alone).arcs.size
    assert both.labels == alone.labels
    assert alone.text is None
    assert both.text is not None
    assert both.text.gold is None
    assert both.text.scorer is arc_scorer(both)
    assert both.text.size == both.problem.size
    assert both.text.lengths.tolist() == [len(sentence) for sentence in text]
    assert both.problem.lengths.tolist() == [len(sentence) for sentence in trees]
    every = np.arange(6)
    np.testing.assert_array_equal(gold(both, every), gold(alone, every))
    if labels == "joint":
        joint, joint_alone = arc_scorer(both).joint, arc_scorer(alone).joint
        assert joint is not None
        assert joint_alone is not None
        assert joint.size == joint_alone.size


def shuffled(text: list[Sentence], seed: int) -> list[Sentence]:
    """The same sentences with other trees: each word on the root, or on a word before it."""
    rng = np.random.default_rng(seed)
    return [s.with_tree([-1, *(int(rng.integers(m)) for m in range(1, len(s) + 1))]) for s in text]


def test_heads_of_the_text_are_not_looked_at() -> None:
    settings = settings_for("lbfgs", labels="none", epochs=4)
    trees, text = sentences(6, 36), sentences(10, 37, crossing=True)
    bare = [Sentence.from_words(s.forms, lemmas=s.lemmas, upos=s.upos, xpos=s.xpos) for s in text]
    found = [fitted(prepared(settings, trees, text=each), settings).best for each in (text, shuffled(text, 38), bare)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def mean_entropy(made: ArcPreparation, weights: Floats, text: list[Sentence]) -> float:
    """Of a sentence's trees, under an unlabelled model."""
    scorer, coded = arc_scorer(made), made.coder.code(text)
    every = [scorer.scores(weights, coded.some(np.array([i])))[0] for i in range(len(text))]
    return float(np.mean([TreeDistribution(scores).entropy for scores in every]))


@pytest.mark.parametrize("order", [0.5, 1.0, 2.0, float("inf")])
def test_the_more_text_counts_the_surer_the_model(order: float) -> None:
    trees, text = sentences(8, 39), sentences(20, 40, crossing=True)
    unsure = []
    for weight in (0.0, 0.1, 1.0):
        settings = settings_for("lbfgs", labels="none", entropy_weight=weight, entropy_order=order, epochs=30, c=0.1)
        made = prepared(settings, trees, text=text)
        best = fitted(made, settings).best
        assert best is not None
        unsure.append(mean_entropy(made, best, text))
    assert (np.diff(unsure) < -0.01).all()


@pytest.mark.parametrize("optimiser", ["lbfgs", "adagrad", "adam"])
@pytest.mark.parametrize("labels", ["none", "joint"])
def test_text_beside_trees_with_every_optimiser(optimiser: str, labels: str) -> None:
    settings = settings_for("lbfgs", labels=labels, optimiser=optimiser, epochs=8, entropy_weight=0.2)
    made = prepared(settings, sentences(24, 41), sentences(20, 43), sentences(24, 42))
    best = fitted(made, settings).best
    assert best is not None
    assert made.uas(best) > 95.0
