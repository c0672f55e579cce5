"""Settings, data, the monitor and checkpoints; the learners on a toy language."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headway.learning.examples import Trees
from headway.models.arc_factored import ArcExamples, ArcScorer, ArcText
from headway.training.material import random_heads
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.archive import Archive, load_archive, save_archive
from headway.errors import ArchiveError, HeadwayError, TemplateError, TrainingError, TreebankError
from headway.features.clusters import NO_CLUSTERS
from headway.features.coding import Coder
from headway.features.rules import Rule, Rules
from headway.inference import TreeDistribution
from headway.learning.descent import Descent
from headway.learning.entropy import EntropyRegularised
from headway.learning.expected_loss import ExpectedLoss
from headway.learning.exponentiated_gradient import ExponentiatedGradient
from headway.learning.generalized_expectation import GeneralizedExpectation
from headway.learning.log_linear import LogLinear
from headway.learning.perceptron import Perceptron
from headway.learning.progress import Pass
from headway.training import (
    Material,
    Monitor,
    Progress,
    RuledText,
    Settings,
    Watch,
    Words,
    arc_development,
    checksum,
    development,
    signature,
    train_arcs,
    train_from_rules,
    training_text,
    training_trees,
)
from headway.treebank import Sentence, is_projective, projectivise, require_tree, roots, write_treebank

from .models.toy_treebank import sentences

Floats = NDArray[np.float64]
LEARNERS: dict[str, dict[str, Any]] = {
    "perceptron": {"learner": "perceptron", "epochs": 4},
    "margin": {"learner": "margin", "epochs": 4, "c": 2.0},
    "lbfgs": {"learner": "loglinear", "epochs": 12, "c": 1.0},
    "cg": {"learner": "loglinear", "epochs": 8, "c": 1.0, "optimiser": "cg"},
    "adagrad": {"learner": "loglinear", "epochs": 4, "c": 1.0, "optimiser": "adagrad"},
    "adam": {"learner": "loglinear", "epochs": 4, "c": 1.0, "optimiser": "adam"},
    "eg": {"learner": "eg", "epochs": 12, "c": 0.1},
    "eg-loglinear": {"learner": "eg-loglinear", "epochs": 8, "c": 1.0},
    "expected-loss": {"learner": "expected-loss", "epochs": 20, "c": 10.0},
    "expected-loss-adagrad": {"learner": "expected-loss", "epochs": 6, "c": 1.0, "optimiser": "adagrad"},
}


def settings_for(name: str, **more: Any) -> Settings:
    return Settings(**{**LEARNERS[name], **more}).complete()


def trained(
    settings: Settings,
    text: list[Sentence],
    dev: list[Sentence] | None = None,
    checkpoint: Path | None = None,
    **more: Any,
) -> Monitor:
    material = Material.of(text, settings, 1)
    held_out = None if dev is None else development(dev, material, settings, 1)
    signed = signature(settings, checksum(text), checksum(dev or []))
    return train_arcs(material, settings, Watch(held_out, more.get("show"), checkpoint, signed))


RULES = Rules(
    (
        Rule(("N",), ("D", "J"), "left", (1, 3), (0.95, 1.0)),
        Rule(("V",), ("N",), None, None, (0.95, 1.0)),
        Rule(("V",), ("A", "S"), "right", None, (0.9, 1.0)),
        Rule(("ROOT",), ("V",), None, None, (0.95, 1.0)),
    )
)


def ruled(text: list[Sentence], **more: Any) -> RuledText:
    settings = Settings(**{"learner": "constraints", "labels": "none", "templates": "rules", **more}).complete()
    return RuledText.of(text, more.get("rules", RULES), settings, 1, NO_CLUSTERS)


# Settings


def test_defaults_are_written_out() -> None:
    margin, loglinear = Settings().complete(), Settings(learner="loglinear").complete()
    assert (margin.learner, margin.labels, margin.epochs) == ("margin", "after", 10)
    assert (margin.tags, margin.clusters) == ("predicted", None)
    assert margin.c is not None
    assert margin.c > 0
    assert loglinear.labels == "joint"
    assert Settings(learner="eg", labels="none", epochs=3, c=2.0).complete() == Settings(
        learner="eg", labels="none", epochs=3, c=2.0
    )
    assert margin.complete() == margin


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"model": "banana"}, "unknown model 'banana'; the models are: arc"),
        (
            {"learner": "svm"},
            "unknown learner 'svm'; the learners are: perceptron, margin, loglinear, eg, eg-loglinear, expected-loss, "
            "constraints",
        ),
        ({"labels": "before"}, "labels is 'before'; expected any of after, joint, none"),
        ({"tags": "silver"}, "tags is 'silver'; expected any of predicted, gold"),
        ({"optimiser": "sgd"}, "unknown optimiser 'sgd'; there are lbfgs, cg, adagrad, adam"),
        ({"epochs": 0}, "epochs is 0; at least one is needed"),
        ({"c": -1.0}, "C is -1.0; expected a number above 0"),
        ({"c": 0.0}, "C is 0.0; expected a number above 0"),
        ({"c": float("nan")}, "C is nan"),
        ({"c": float("inf")}, "C is inf"),
        ({"criterion": "cosine"}, "criterion is 'cosine'; expected any of squared, kl"),
        ({"entropy_weight": -0.1}, "the entropy weight is -0.1; expected 0 or a number above"),
        ({"entropy_weight": float("nan")}, "the entropy weight is nan"),
        ({"entropy_weight": float("inf")}, "the entropy weight is inf"),
        ({"entropy_order": 0.0}, "the entropy's order is 0.0; expected a number above 0, or inf"),
        ({"entropy_order": -1.0}, "the entropy's order is -1.0"),
        ({"entropy_order": float("nan")}, "the entropy's order is nan"),
        ({"model": "sibling", "learner": "expected-loss"}, "the sibling model has no marginals for expected-loss"),
        ({"model": "sibling", "learner": "constraints"}, "the sibling model has no marginals for constraints"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], cause: str) -> None:
    with pytest.raises(TrainingError) as caught:
        Settings(**settings).complete()
    assert cause in str(caught.value)


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("single_root", [False, True])
def test_the_learner_of_the_settings(projective: bool, single_root: bool) -> None:
    flags: dict[str, Any] = {"projective": projective, "single_root": single_root}
    trees = Trees(**flags)
    margin = Settings(learner="margin", c=7.0, epochs=3, seed=5, **flags).learn(trees)
    assert isinstance(margin, Perceptron)
    assert (margin.margin, margin.epochs, margin.seed) == (7.0, 3, 5)
    plain = Settings(learner="perceptron", **flags).learn(trees)
    assert isinstance(plain, Perceptron)
    assert plain.margin == 0.0
    loglinear = Settings(learner="loglinear", c=7.0, epochs=3, optimiser="adam", **flags).learn(trees)
    assert isinstance(loglinear, LogLinear)
    assert (loglinear.regularisation, loglinear.descent) == (7.0, Descent(3, "adam"))
    for name, loss in (("eg", "hinge"), ("eg-loglinear", "log")):
        learner = Settings(learner=name, c=7.0, epochs=3, **flags).learn(trees)  # type: ignore[arg-type]
        assert isinstance(learner, ExponentiatedGradient)
        assert (learner.regularisation, learner.passes, learner.loss) == (7.0, 3, loss)
    least = Settings(learner="expected-loss", c=7.0, epochs=3, optimiser="cg", **flags).learn(trees)
    assert isinstance(least, ExpectedLoss)
    assert (least.regularisation, least.descent) == (7.0, Descent(3, "cg"))
    for each in (margin, plain, loglinear, learner, least):
        assert each.structures is trees  # type: ignore[attr-defined]


def test_the_learner_where_there_is_text() -> None:
    text, trees = ruled(sentences(4, 31)).text, Trees(projective=True)
    settings = Settings(learner="loglinear", c=7.0, epochs=3, entropy_weight=0.3, entropy_order=2.0, seed=5)
    learner = settings.learn(trees, text)
    assert isinstance(learner, EntropyRegularised)
    assert learner.unannotated is text
    assert learner.structures is trees
    assert (learner.regularisation, learner.weight, learner.alpha) == (7.0, 0.3, 2.0)
    assert learner.descent == Descent(3, seed=5)
    for name in ("perceptron", "margin", "eg", "eg-loglinear", "expected-loss"):
        with pytest.raises(TrainingError, match=f"{name} learns from trees alone; text beside them is for loglinear"):
            Settings(learner=name).require_trees(text=True)  # type: ignore[arg-type]


def test_the_learner_where_there_are_rules() -> None:
    data, trees = ruled(sentences(4, 32)), Trees(single_root=False)
    settings = Settings(learner="constraints", c=7.0, epochs=3, criterion="kl", optimiser="cg")
    learner = settings.learn_constraints(trees, data.rules)
    assert isinstance(learner, GeneralizedExpectation)
    assert learner.constraints is data.rules
    assert learner.structures is trees
    assert (learner.criterion, learner.regularisation, learner.descent) == ("kl", 7.0, Descent(3, "cg"))
    defaults = Settings(learner="constraints").complete()
    assert defaults.c is not None
    assert defaults.c > 0
    with pytest.raises(TrainingError, match="constraints need rules, not trees"):
        Settings(learner="constraints").require_trees(text=False)
    for optimiser in ("adagrad", "adam"):
        online = Settings(learner="constraints", optimiser=optimiser)  # type: ignore[arg-type]
        with pytest.raises(TrainingError, match=f"{optimiser} takes some sentences at a time, .*; use lbfgs or cg"):
            online.learn_constraints(trees, data.rules).fit(data.text, lambda done: True)


# Data


def test_trees_from_files_and_from_memory(tmp_path: Path) -> None:
    text = [*sentences(5, 1, crossing=True), Sentence.from_words([], heads=[-1])]
    path = tmp_path / "toy.conllu"
    write_treebank(text[:5], path)
    read = training_trees(path, Settings(), "toy")
    assert [s.forms for s in read] == [s.forms for s in training_trees(iter(text), Settings(), "toy")]
    assert [s.forms for s in read] == [s.forms for s in text[:5]]
    assert checksum(read) == checksum(text[:5])
    with gzip.open(tmp_path / "toy.conllu.gz", "wb") as file:
        file.write(path.read_bytes().replace(b"\n", b"\r\n"))
    assert checksum(training_trees(tmp_path / "toy.conllu.gz", Settings(), "toy")) == checksum(read)


def test_the_checksum_knows_every_head() -> None:
    one = Sentence.from_words(["a", "b"], heads=[-1, 0, 1])
    variants = [one, one.with_tree([-1, 2, 0]), one.with_tree([-1, 0, 1], [None, "x", "y"])]
    variants.append(Sentence.from_words(["a", "c"], heads=[-1, 0, 1]))
    assert len({checksum([sentence]) for sentence in variants}) == 4
    assert len({checksum([one]), checksum([one, one]), checksum([])}) == 3


def test_several_words_on_the_root() -> None:
    text = sentences(9, 2, two_roots=True)
    with pytest.raises(
        TrainingError, match=r"^my\.conllu: 4 of 9 trees have several words on the root; .*--multi-root"
    ):
        training_trees(text, Settings(), "my.conllu")
    assert training_trees(text, Settings(single_root=False), "my.conllu") == text


@pytest.mark.parametrize("single_root", [True, False])
def test_projective_training_projectivises(single_root: bool) -> None:
    text = sentences(12, 3, crossing=True, two_roots=not single_root)
    assert any(not is_projective(require_tree(sentence)) for sentence in text)
    found = training_trees(text, Settings(projective=True, single_root=single_root), "toy")
    for before, after in zip(text, found, strict=True):
        assert after.heads is not None
        assert is_projective(after.heads)
        expected = projectivise(before, single_root=single_root)
        np.testing.assert_array_equal(after.heads, expected.heads)
        assert len(roots(after.heads)) == 1 or not single_root


def test_what_no_model_can_be_trained_from(tmp_path: Path) -> None:
    for nothing in ([], [Sentence.from_words([], heads=[-1])]):
        with pytest.raises(TrainingError, match="the data: has no sentence with words"):
            training_trees(nothing, Settings(), "the data")
    with pytest.raises(TreebankError, match="no heads"):
        training_trees([Sentence.from_words(["a"])], Settings(), "the data")
    with pytest.raises(TreebankError, match="cycle"):
        training_trees([Sentence.from_words(["a", "b"], heads=[-1, 2, 1])], Settings(), "the data")
    with pytest.raises(HeadwayError):
        training_trees(tmp_path / "absent.conllu", Settings(), "the data")
    one_word = [Sentence.from_words(["a"], heads=[-1, 0])]
    with pytest.raises(TemplateError, match="no field of the templates varies"):
        Material.of(one_word, Settings().complete(), 1)


def test_text_needs_no_trees(tmp_path: Path) -> None:
    """Files or sentences, with whatever is in the columns of heads; but some word there must be."""
    text = [Sentence.from_words(["a", "b"]), Sentence.from_words([]), Sentence.from_words(["c"], heads=[-1, 0])]
    found = training_text(iter(text), "the text")
    assert [sentence.forms for sentence in found] == [("a", "b"), ("c",)]
    path = tmp_path / "toy.conllu"
    write_treebank(sentences(5, 33, two_roots=True), path)
    assert [s.forms for s in training_text(path, "toy")] == [s.forms for s in sentences(5, 33, two_roots=True)]
    with pytest.raises(TrainingError, match=r"^my text: has no sentence with words"):
        training_text([Sentence.from_words([])], "my text")


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
    alone, both = Material.of(trees, settings, 1), Material.of(trees, settings, 1, text=text)
    words = {form for sentence in text for form in sentence.forms}
    assert words <= set(both.coder.fields["form"])
    assert not words <= set(alone.coder.fields["form"])
    assert arc_scorer(both).arcs.size > 2 * arc_scorer(alone).arcs.size
    assert both.labels == alone.labels
    assert alone.text is None
    assert isinstance(both.text, ArcText)
    assert not isinstance(both.text, ArcExamples)
    assert both.text.scorer is arc_scorer(both)
    assert both.text.size == both.examples.size
    assert both.text.lengths.tolist() == [len(sentence) for sentence in text]
    assert both.examples.lengths.tolist() == [len(sentence) for sentence in trees]
    every = np.arange(6)
    np.testing.assert_array_equal(both.examples.gold(every), alone.examples.gold(every))
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
    found = [
        train_arcs(Material.of(trees, settings, 1, text=each), settings, Watch()).best
        for each in (text, shuffled(text, 38), bare)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def mean_entropy(material: Material, weights: Floats, text: list[Sentence]) -> float:
    """Of a sentence's trees, under an unlabelled model."""
    scorer, coded = arc_scorer(material), material.coder.code(text)
    every = [scorer.score(weights, coded, np.array([i]))[0] for i in range(len(text))]
    return float(np.mean([TreeDistribution(scores).entropy for scores in every]))


@pytest.mark.parametrize("order", [0.5, 1.0, 2.0, float("inf")])
def test_the_more_text_counts_the_surer_the_model(order: float) -> None:
    trees, text = sentences(8, 39), sentences(20, 40, crossing=True)
    unsure = []
    for weight in (0.0, 0.1, 1.0):
        settings = settings_for("lbfgs", labels="none", entropy_weight=weight, entropy_order=order, epochs=30, c=0.1)
        material = Material.of(trees, settings, 1, text=text)
        best = train_arcs(material, settings, Watch()).best
        assert best is not None
        unsure.append(mean_entropy(material, best, text))
    assert (np.diff(unsure) < -0.01).all()


@pytest.mark.parametrize("optimiser", ["lbfgs", "adagrad", "adam"])
@pytest.mark.parametrize("labels", ["none", "joint"])
def test_text_beside_trees_with_every_optimiser(optimiser: str, labels: str) -> None:
    settings = settings_for("lbfgs", labels=labels, optimiser=optimiser, epochs=8, entropy_weight=0.2)
    material = Material.of(sentences(24, 41), settings, 1, text=sentences(24, 42))
    monitor = train_arcs(material, settings, Watch())
    assert accuracy(monitor, material, settings, sentences(20, 43)) > 95.0


# Rules instead of trees


@pytest.mark.parametrize("criterion", ["squared", "kl"])
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("single_root", [False, True])
def test_rules_teach_the_toy_language(criterion: str, projective: bool, single_root: bool) -> None:
    """Shares come into their ranges, and new sentences get right heads, no tree seen."""
    flags: dict[str, Any] = {"projective": projective, "single_root": single_root, "criterion": criterion}
    text, new = sentences(40, 44), sentences(20, 45)
    settings = Settings(
        learner="constraints", labels="none", templates="rules", epochs=60, c=1000.0, **flags
    ).complete()
    data = ruled([Sentence.from_words(s.forms, upos=s.upos) for s in text], **flags)
    before = settings.learn_constraints(data.structures, data.rules).expectations(data.text, np.zeros(data.text.size))
    best = train_from_rules(data, settings, Watch()).best
    assert best is not None
    after = settings.learn_constraints(data.structures, data.rules).expectations(data.text, best)
    low, high = data.rules.low, data.rules.high
    assert (before < low - 0.1).any()
    assert (after > low - 0.03).all()
    assert (after < high + 0.03).all()
    held_out = arc_development(new, data.text, data.coder, settings, 1)
    assert held_out.uas(np.zeros(data.text.size)) < 60.0
    assert held_out.uas(best) > 90.0


def test_text_that_no_rule_speaks_of() -> None:
    with pytest.raises(TrainingError, match=r"rules: no rule matches anything in the text; are its words tagged\?"):
        ruled([Sentence.from_words(["a", "b", "c"])] * 3)


def test_rules_and_features_are_of_the_same_sentences() -> None:
    text = sentences(9, 46, crossing=True)
    data = ruled(text)
    assert data.text.lengths.tolist() == data.rules.coded.lengths.tolist() == [len(s) for s in text]
    determiners = sum(s.upos.count("D") + s.upos.count("J") for s in text)  # each has a noun close to its right
    assert data.rules.units[0] == determiners
    assert data.rules.units[3] == 9


def test_words_without_trees_are_tagged_alike() -> None:
    """The tags of the text are the tagger's, as those of any text will be; with gold tags they stay."""
    trees, text = sentences(30, 47), sentences(10, 48)
    wrong = [replace(s, upos=("X",) * len(s), xpos=("X",) * len(s)) for s in text]
    predicted = Words.of(trees, None, Settings().complete(), None, wrong)
    assert predicted.tagger is not None
    assert [s.upos for s in predicted.text] == [s.upos for s in predicted.tagger.tag(text)]
    agreed = sum(a == b for s, t in zip(predicted.text, text, strict=True) for a, b in zip(s.upos, t.upos, strict=True))
    assert agreed > 0.9 * sum(map(len, text))
    gold = Words.of(trees, None, Settings(tags="gold").complete(), None, wrong)
    assert gold.tagger is None
    assert list(gold.text) == wrong
    assert list(Words.of(trees, None, Settings().complete(), None).text) == []


# Learners


def accuracy(monitor: Monitor, material: Material, settings: Settings, gold: list[Sentence]) -> float:
    assert monitor.best is not None
    return development(gold, material, settings, 1).uas(monitor.best)


@pytest.mark.parametrize("name", list(LEARNERS))
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("single_root", [False, True])
def test_every_learner_learns_every_class(name: str, projective: bool, single_root: bool) -> None:
    """Crossing arcs are in every training set; a projective model need not get them right on new sentences."""
    settings = settings_for(name, projective=projective, single_root=single_root, labels="none")
    text = training_trees(sentences(36, 4, crossing=True, two_roots=not single_root), settings, "toy")
    new = sentences(30, 5, crossing=not projective, two_roots=not single_root)
    material = Material.of(text, settings, 1)
    monitor = train_arcs(material, settings, Watch())
    assert accuracy(monitor, material, settings, new) > 97.0
    untrained = replace(monitor, best=np.zeros(material.examples.size))
    assert accuracy(untrained, material, settings, new) < 60.0


# Development data


def arc_scorer(material: Material) -> ArcScorer:
    assert isinstance(material.examples, ArcExamples)
    return material.examples.scorer


def naive_uas(weights: Floats, material: Material, gold: list[Sentence], **flags: bool) -> float:
    right, total, scorer = 0, 0, arc_scorer(material)
    for sentence in gold:
        assert sentence.heads is not None
        scores = scorer.score(weights, material.coder.code([sentence]), np.array([0]))[0]
        found = TreeDistribution(scores if scores.ndim == 2 else scores.max(axis=-1), **flags).argmax()
        for m, form in enumerate(sentence.forms, start=1):
            if form not in (".", ";"):
                right += int(found[m] == sentence.heads[m])
                total += 1
    return 100 * right / total


@pytest.mark.parametrize("labels", ["none", "joint"])
def test_development_uas_leaves_punctuation_out(labels: str) -> None:
    text, dev = sentences(20, 6, crossing=True), sentences(15, 7, crossing=True, two_roots=True)
    settings = settings_for("perceptron", labels=labels)
    material = Material.of(text, settings, 1)
    weights = np.random.default_rng(8).normal(size=material.examples.size)
    held_out = development(dev, material, settings, 1)
    for projective in (False, True):
        expected = naive_uas(weights, material, dev, projective=projective, single_root=True)
        assert held_out.uas(weights, projective=projective) == pytest.approx(expected, rel=1e-12)
    assert held_out.uas(weights) == held_out.uas(weights, projective=False)
    assert 0.0 < held_out.uas(weights) < 100.0


@pytest.mark.parametrize("labels", ["none", "joint"])
def test_the_scale_makes_the_development_trees_likely(labels: str) -> None:
    """No other factor on a grid is better, and it is far better than none."""
    settings = settings_for("perceptron", labels=labels)
    text, dev = sentences(8, 9), sentences(12, 10, crossing=True)
    material = Material.of(text, settings, 1)
    best = train_arcs(material, settings, Watch()).best
    assert best is not None
    weights = 50.0 * best
    held_out = development(dev, material, settings, 1)
    scorer, coded = arc_scorer(material), material.coder.code(dev)

    def likelihood(factor: float) -> float:
        total = 0.0
        for i, sentence in enumerate(dev):
            assert sentence.heads is not None
            assert sentence.labels is not None
            scores = factor * scorer.score(weights, coded, np.array([i]))[0]
            words = np.arange(1, len(sentence) + 1)
            if labels == "none":
                total += TreeDistribution(scores).log_prob(sentence.heads)
                continue
            number = [material.labels.index(str(x)) if x in material.labels else 0 for x in sentence.labels[1:]]
            total += scores[sentence.heads[1:], words, number].sum()
            total -= TreeDistribution(np.logaddexp.reduce(scores, axis=-1)).log_partition
        return float(total)

    scale = held_out.scale(weights)
    reached = likelihood(scale)
    assert reached > likelihood(1.0) + 1.0
    assert all(reached > likelihood(scale * factor) - 0.05 for factor in (0.25, 0.5, 0.8, 1.25, 2.0, 4.0))
    assert held_out.scale(10.0 * weights) == pytest.approx(scale / 10, rel=0.1)


# The monitor


def watch(scores: list[float], patience: int) -> tuple[Monitor, int]:
    """A monitor that saw passes with these development scores, and how many it let happen."""
    remaining = iter(scores)
    monitor = Monitor("tree", len(scores), patience, lambda _: next(remaining))
    for number in range(1, len(scores) + 1):
        if not monitor(Pass(number, np.full(3, float(number)), {}, {})):
            break
    return monitor, len(monitor.history)


def test_early_stopping_keeps_the_best_pass() -> None:
    monitor, passes = watch([50.0, 70.0, 60.0, 70.0, 65.0, 90.0], 3)
    assert passes == 5
    assert monitor.best_pass() == 2
    assert monitor.best is not None
    assert monitor.best.tolist() == [2.0] * 3
    assert [entry["dev"] for entry in monitor.history] == [50.0, 70.0, 60.0, 70.0, 65.0]


def test_patience_counts_from_the_best() -> None:
    assert watch([50.0, 40.0, 60.0, 40.0, 70.0, 40.0], 2)[1] == 6
    assert watch([50.0, 40.0, 30.0, 90.0], 2)[1] == 3
    assert watch([50.0, 40.0], 1)[1] == 2


def test_the_best_weights_are_a_copy() -> None:
    weights = np.ones(2)
    monitor = Monitor("tree", 2, 2, lambda _: 1.0)
    monitor(Pass(1, weights, {}, {}))
    weights[:] = 9.0
    assert monitor.best is not None
    assert monitor.best.tolist() == [1.0, 1.0]


def test_without_development_data_the_last_pass_is_kept() -> None:
    monitor = Monitor("tree", 3, 1)
    for number in (1, 2, 3):
        assert monitor(Pass(number, np.full(1, float(number)), {"mistakes": 0.5}, {}))
    assert monitor.best_pass() == 3
    assert monitor.best is not None
    assert monitor.best.tolist() == [3.0]


def test_progress_is_shown() -> None:
    shown: list[Progress] = []
    trained(settings_for("perceptron"), sentences(6, 11), sentences(3, 12), show=shown.append)
    assert [(p.stage, p.number, p.passes) for p in shown] == [("tree", number, 4) for number in (1, 2, 3, 4)]
    for progress in shown:
        assert progress.dev is not None
        assert 0 <= progress.dev <= 100
        assert set(progress.figures) == {"mistakes"}
        assert progress.seconds >= 0


def test_training_ends_when_development_scores_do_not_rise() -> None:
    settings = settings_for("perceptron", epochs=30, patience=2)
    monitor = trained(settings, sentences(20, 13), sentences(10, 14))
    scores = [entry["dev"] for entry in monitor.history]
    best = int(np.argmax(scores))
    assert len(scores) == best + 3
    assert monitor.best_pass() == best + 1


# Checkpoints


@pytest.fixture
def every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save a checkpoint after every pass."""
    monkeypatch.setattr("headway.learning.monitor.CHECKPOINT_SECONDS", -1.0)


def interrupted_at(number: int) -> Any:
    def show(progress: Progress) -> None:
        if progress.number == number:
            raise KeyboardInterrupt

    return show


@pytest.mark.usefixtures("every_pass")
@pytest.mark.parametrize(
    "name", ["perceptron", "margin", "adagrad", "adam", "eg", "eg-loglinear", "expected-loss-adagrad"]
)
def test_an_interrupted_training_ends_like_one_that_was_not(name: str, tmp_path: Path) -> None:
    settings = settings_for(name, epochs=4, labels="none")
    text, dev = sentences(12, 15, crossing=True), sentences(6, 16, crossing=True)
    whole = trained(settings, text, dev)
    file = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        trained(settings, text, dev, file, show=interrupted_at(3))
    assert file.exists()
    again = trained(settings, text, dev, file)
    assert again.history == whole.history
    assert again.best is not None
    assert whole.best is not None
    np.testing.assert_array_equal(again.best, whole.best)
    finished = trained(settings, text, dev, file)
    np.testing.assert_array_equal(finished.best, whole.best)
    assert finished.history == whole.history


@pytest.mark.usefixtures("every_pass")
@pytest.mark.parametrize("name", ["lbfgs", "cg", "expected-loss"])
def test_batch_learners_go_on_falling(name: str, tmp_path: Path) -> None:
    settings = settings_for(name, labels="none")
    text, file = sentences(12, 17), tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        trained(settings, text, None, file, show=interrupted_at(3))
    monitor = trained(settings, text, None, file)
    values = [entry["objective"] for entry in monitor.history]
    assert [entry["pass"] for entry in monitor.history] == list(range(1, len(values) + 1))
    assert (np.diff(values) < 0).all()


@pytest.mark.usefixtures("every_pass")
def test_more_passes_may_be_asked_for(tmp_path: Path) -> None:
    text, file = sentences(12, 18), tmp_path / "checkpoint"
    trained(settings_for("perceptron", epochs=2), text, None, file)
    longer = trained(settings_for("perceptron", epochs=4), text, None, file)
    whole = trained(settings_for("perceptron", epochs=4), text)
    np.testing.assert_array_equal(longer.best, whole.best)


@pytest.mark.usefixtures("every_pass")
@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"c": 3.0}, {"projective": True}, {"labels": "none"}, {"tags": "gold"}, {"clusters": "x"}]
)
def test_checkpoints_of_other_settings_or_data(change: dict[str, Any], tmp_path: Path) -> None:
    text, file = sentences(6, 19), tmp_path / "checkpoint"
    trained(settings_for("margin"), text, None, file)
    before = file.read_bytes()
    for settings, data in ((settings_for("margin", **change), text), (settings_for("margin"), text[1:])):
        with pytest.raises(ArchiveError, match="a checkpoint of other data or settings; delete it"):
            trained(settings, data, None, file)
    with pytest.raises(ArchiveError, match="a checkpoint of other data or settings; delete it"):
        trained(settings_for("margin"), text, text, file)
    assert file.read_bytes() == before


@pytest.mark.usefixtures("every_pass")
def test_checkpoints_of_other_templates(tmp_path: Path) -> None:
    """A table of the same name whose lines have changed."""
    text, file, table = sentences(6, 19), tmp_path / "checkpoint", tmp_path / "table.txt"
    table.write_text("h.xpos m.xpos | dir\n", "utf-8")
    trained(settings_for("perceptron", templates=str(table)), text, None, file)
    table.write_text("h.xpos m.xpos | dist\n", "utf-8")
    with pytest.raises(ArchiveError, match="a checkpoint of other data or settings"):
        trained(settings_for("perceptron", templates=str(table)), text, None, file)


def test_checkpoints_are_not_saved_all_the_time(tmp_path: Path) -> None:
    trained(settings_for("perceptron"), sentences(6, 20), None, tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()


def test_damaged_checkpoints(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    file.write_bytes(b"PK")
    with pytest.raises(ArchiveError, match="not a checkpoint, or a damaged one"):
        trained(settings_for("perceptron"), sentences(6, 21), None, file)
    save_archive(Archive("parser", {}, {}), file)
    with pytest.raises(ArchiveError, match="holds a 'parser', not a checkpoint"):
        trained(settings_for("perceptron"), sentences(6, 21), None, file)


@pytest.mark.usefixtures("every_pass")
@pytest.mark.parametrize("lost", ["best", "history", "state_weights", "state_total"])
def test_checkpoints_with_something_missing(lost: str, tmp_path: Path) -> None:
    text, file = sentences(6, 22), tmp_path / "checkpoint"
    trained(settings_for("perceptron", epochs=2), text, None, file)
    whole = load_archive(file, "checkpoint")
    data = {key: value for key, value in whole.data.items() if key != lost}
    arrays = {key: value for key, value in whole.arrays.items() if key != lost}
    save_archive(Archive("checkpoint", data, arrays), file)
    with pytest.raises(ArchiveError, match="damaged"):
        trained(settings_for("perceptron", epochs=4), text, None, file)


@pytest.mark.usefixtures("every_pass")
@pytest.mark.parametrize("name", ["best", "state_weights", "state_total"])
def test_checkpoints_of_other_sizes(name: str, tmp_path: Path) -> None:
    """Compiled code would read and write beyond them."""
    text, file = sentences(6, 23), tmp_path / "checkpoint"
    trained(settings_for("perceptron", epochs=2), text, None, file)
    whole = load_archive(file, "checkpoint")
    save_archive(Archive("checkpoint", whole.data, {**whole.arrays, name: np.zeros(3)}), file)
    with pytest.raises(ArchiveError, match="damaged"):
        trained(settings_for("perceptron", epochs=4), text, None, file)
