"""Training where only some heads are known, from the treebank to the parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.arrays import TreeClass
from headway.drawing import heatmap_drawing, tree_drawing
from headway.drawing.terminal import tree_text
from headway.errors import EvaluationError, TrainingError, TreebankError
from headway.evaluation import evaluate, evaluate_conll2018
from headway.features.coding import Coder
from headway.learning import monitor as monitoring
from headway.learning.monitor import Progress, Show
from headway.models.labeller import AfterLabels
from headway.pipeline import Parser
from headway.training.arc_problem import ArcProblem, PartialArcProblem
from headway.training.arc_trainer import prepare_arcs
from headway.training.data import CodedTrees, TrainingData, code_trees, known_heads, training_trees
from headway.training.higher_order_trainer import prepare_parts
from headway.training.labels import train_labels
from headway.training.learners import latent_learner_of
from headway.training.settings import Settings
from headway.training.stages import Run
from headway.treebank import Sentence, is_projective, require_tree, write_treebank

from ..models.model_parts import weights_of
from ..models.toy_treebank import LABELS, sentences
from .toy_trainings import fitted, prepared

GOLD: dict[str, Any] = {"tags": "gold"}


def hidden(text: list[Sentence], share: float, seed: int = 0) -> list[Sentence]:
    """The sentences with about that share of their heads and labels."""
    rng = np.random.default_rng(seed)
    result = []
    for sentence in text:
        known = rng.random(len(sentence) + 1) < share
        heads = [-1, *(int(h) if k else -1 for h, k in zip(sentence.heads[1:], known[1:], strict=True))]  # type: ignore[index]
        labels = [None, *(x if k else "_" for x, k in zip(sentence.labels[1:], known[1:], strict=True))]  # type: ignore[index]
        result.append(sentence.with_tree(heads, labels, partial=True))
    return result


def uas(parser: Parser, gold: list[Sentence]) -> float:
    return evaluate(gold, [found.sentence for found in parser.parse(iter(gold))]).uas


# Data


def test_trees_with_unknown_heads_are_read_for_training_alone(tmp_path: Path) -> None:
    text = [*hidden(sentences(4, 0), 0.5), Sentence.from_words(["only", "words"])]
    path = tmp_path / "some.conllu"
    write_treebank(text, path)
    settings = Settings().complete()
    found = training_trees(path, settings.trees, "x", partial=True)
    assert [s.forms for s in found] == [s.forms for s in text]
    for one, other in zip(found, text, strict=True):
        np.testing.assert_array_equal(one.heads, other.heads)
    assert found[-1].heads is None
    with pytest.raises(TreebankError, match="has no HEAD but others have"):
        training_trees(path, settings.trees, "x")
    for source in (text, text[-1:]):
        with pytest.raises(TreebankError, match="has no head"):
            training_trees(source, settings.trees, "x")
    with pytest.raises(TreebankError, match="has no heads; annotate it"):
        training_trees(text[-1:], settings.trees, "x", partial=True)


def test_known_heads_that_no_tree_has() -> None:
    cyclic = Sentence.from_words(["a", "b", "c"], heads=[-1, 2, 1, -1], partial=True)
    rooted = Sentence.from_words(["a", "b", "c"], heads=[-1, 0, -1, 0], partial=True)
    fine = Sentence.from_words(["a", "b"], heads=[-1, 0, -1], partial=True)
    bare = Sentence.from_words(["a"])
    with pytest.raises(TreebankError, match="the heads form a cycle"):
        training_trees([fine, cyclic], TreeClass(), "x", partial=True)
    with pytest.raises(TrainingError, match=r"x: 1 of 2 trees have several words on the root.*--multi-root"):
        training_trees([fine, rooted, bare], TreeClass(), "x", partial=True)
    assert training_trees([fine, rooted], TreeClass(single_root=False), "x", partial=True) == [fine, rooted]


def test_projective_training_forgets_known_heads_that_cross() -> None:
    crossing = Sentence.from_words(["a", "b", "c", "d"], heads=[-1, 3, 4, -1, -1], partial=True)
    bare = Sentence.from_words(["a", "b"])
    found, same = training_trees([crossing, bare], TreeClass(projective=True), "x", partial=True)
    assert found.heads is not None
    assert known_heads([found, same]) == (1, 6)
    assert same is bare


def test_known_heads_are_counted() -> None:
    text = sentences(3, 0)
    words = sum(map(len, text))
    assert known_heads(text) == (words, words)
    some = hidden(text, 0.4)
    known = sum(int((s.heads >= 0).sum()) for s in some if s.heads is not None)
    assert 0 < known < words
    assert known_heads(some) == (known, words)


# What each learner gets


@pytest.mark.parametrize("learner", ["perceptron", "margin"])
def test_heads_of_arc_models_stay_hidden(learner: Any) -> None:
    text = hidden(sentences(12, 1), 0.5)
    material = prepared(Settings(learner=learner).complete(), text)
    assert isinstance(material.problem, PartialArcProblem)
    annotated = [s for s in text if s.heads is not None]
    np.testing.assert_array_equal(material.problem.heads, code_trees(annotated, material.coder, ()).heads)
    assert material.labels == LABELS or set(material.labels) < set(LABELS)
    assert "_" not in material.labels


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {"learner": "loglinear", "labels": "none"},
        {"learner": "loglinear"},
        {"learner": "margin", "labels": "joint"},
        {"model": "sibling"},
    ],
    ids=str,
)
def test_others_get_whole_trees_with_the_known_heads(settings: dict[str, Any], projective: bool) -> None:
    whole = sentences(40, 1)
    text = hidden(whole, 0.5)
    chosen = Settings(**settings, projective=projective).complete()
    stages: list[str] = []
    run = Run(show=lambda progress: stages.append(progress.stage))
    prepare = prepare_arcs if chosen.model == "arc" else prepare_parts
    material = prepare(TrainingData(text), chosen, run)
    assert stages.count("hidden heads") <= 10
    assert stages[0] == "hidden heads"
    assert not isinstance(material.problem, PartialArcProblem)
    assert not material.trees.is_partial
    annotated = [(s, gold) for s, gold in zip(text, whole, strict=True) if s.heads is not None]
    right = total = 0
    for i, (sentence, gold) in enumerate(annotated):
        n = len(sentence)
        heads, labels = material.trees.heads[i, : n + 1], material.trees.labels[i, : n + 1]
        filled = require_tree(sentence.with_tree(heads))
        assert (filled == 0).sum() == 1
        assert is_projective(filled) or not projective
        known = sentence.heads >= 0  # type: ignore[operator]
        np.testing.assert_array_equal(filled[known], sentence.heads[known])  # type: ignore[index]
        unknown = ~known[1:]
        right += int((filled[1:] == gold.heads[1:])[unknown].sum())  # type: ignore[index]
        total += int(unknown.sum())
        if chosen.labels == "none":
            continue
        names = [material.labels[x] if x >= 0 else "_" for x in labels[1:].tolist()]
        assert [x for x, k in zip(names, known[1:], strict=True) if k] == [
            x
            for x, k in zip(sentence.labels[1:], known[1:], strict=True)
            if k  # type: ignore[index]
        ]
        assert ("_" in names) <= (chosen.labels == "after")
    assert right / total > 0.9


def test_whole_trees_are_as_they_were() -> None:
    text = sentences(8, 2)
    for labels in ("after", "joint"):
        material = prepared(Settings(labels=labels).complete(), text)  # type: ignore[arg-type]
        assert isinstance(material.problem, ArcProblem)
        assert material.labels == tuple(sorted({x for s in text for x in s.labels[1:]}))  # type: ignore[index, type-var]


def test_the_labeller_learns_from_known_labels_alone() -> None:
    """As from sentences cut down to them: the features of an arc by itself see no other arc."""
    text = sentences(10, 3)
    coder = Coder.learn(text)
    trees = code_trees(text, coder, LABELS)
    unknown = np.random.default_rng(0).random(trees.heads.shape) < 0.6
    some = trees._replace(heads=np.where(unknown, -1, trees.heads), labels=np.where(unknown, -1, trees.labels))
    same_heads = trees._replace(labels=some.labels)

    def labeller(data: CodedTrees, show: Show | None = None) -> AfterLabels:
        return train_labels(coder, data, LABELS, Settings().complete(), Run(show=show), roots=(), tree=False)

    found, other = labeller(some), labeller(same_heads)
    assert found.scorer.features.blocks == other.scorer.features.blocks
    np.testing.assert_array_equal(found.weights, other.weights)
    mistakes: list[float] = []
    labeller(some, lambda p: mistakes.append(p.figures["mistakes"]))
    assert mistakes[0] > 0 == mistakes[-1]  # nothing is missed where nothing is known
    elsewhere = trees._replace(labels=np.where(unknown & (trees.labels >= 0), 0, trees.labels))
    assert not np.array_equal(found.weights, labeller(elsewhere).weights)


# Parsers


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"learner": "perceptron", "tags": "gold"},
        {"projective": True, "tags": "gold", "runs": 2},
        {"learner": "loglinear", "epochs": 15, "tags": "gold"},
        {"model": "sibling", "epochs": 3, "tags": "gold"},
    ],
    ids=str,
)
def test_a_parser_from_a_third_of_the_heads(settings: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "some.conllu"
    text = [*hidden(sentences(80, 1), 0.33), Sentence.from_words(["bare"], upos=["N"])]
    write_treebank(text, path)
    parser = Parser.train(path, **settings)
    gold = sentences(30, 2)
    scores = evaluate(gold, [found.sentence for found in parser.parse(iter(gold), retag=not settings)])
    assert scores.uas > 95
    assert scores.las > 90
    about = parser.model.about["train"]
    known, words = known_heads(training_trees(path, TreeClass("projective" in settings), "", partial=True))
    assert about["heads"] == {"known": known, "words": words}
    assert about["sentences"] == len(text)
    again = tmp_path / "m.headway"
    parser.save(again)
    assert Parser.load(again).model.about["train"] == about


def test_whole_treebanks_say_nothing_of_known_heads() -> None:
    text = sentences(10, 1)
    about = Parser.train(text, epochs=1, **GOLD).model.about["train"]
    assert about.keys() == {"sentences", "sha256"}
    assert about["sentences"] == 10


def test_text_beside_trees_of_which_some_heads_are_known() -> None:
    options = {"learner": "loglinear", "epochs": 10, "labels": "none", **GOLD}
    text, more = hidden(sentences(30, 1), 0.5), sentences(10, 4)
    parser = Parser.train(text, text=more, **options)
    assert parser.model.about["text"]["sentences"] == 10
    assert uas(parser, sentences(20, 2)) > 95


def test_tagger_and_segmenter_learn_from_sentences_without_heads() -> None:
    """ "blue" is in a sentence without heads only."""
    bare = Sentence.from_words(["blue", "blue"], upos=["Q", "Q"], xpos=["Q", "Q"])
    text = [*hidden(sentences(30, 1), 0.5), *[bare] * 5]
    parser = Parser.train(text, epochs=1)
    assert parser.tagger is not None
    (tagged,) = parser.tagger.tag([Sentence.from_words(["blue"])])
    assert tagged.upos == ("Q",)


def test_development_trees_must_be_whole(tmp_path: Path) -> None:
    train, dev = sentences(4, 1), hidden(sentences(4, 2), 0.5)
    with pytest.raises(TreebankError, match="has no head"):
        Parser.train(train, dev, **GOLD)
    path = tmp_path / "dev.conllu"
    write_treebank(dev, path)
    with pytest.raises(TreebankError, match="has no HEAD but others have"):
        Parser.train(train, path, **GOLD)


def test_development_data_choose_the_pass() -> None:
    dev = sentences(10, 2)
    parser = Parser.train(hidden(sentences(40, 1), 0.3), dev, epochs=6, **GOLD)
    history = parser.model.about["history"]
    assert {"pass", "dev", "mistakes", "loss", "objective"} == history[0].keys()
    best = parser.model.about["best_pass"]
    assert history[best - 1]["dev"] == max(entry["dev"] for entry in history)
    assert uas(parser, dev) >= history[0]["dev"] - 20


def test_training_goes_on_from_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "CHECKPOINT_SECONDS", 0.0)
    text, options = hidden(sentences(30, 1, crossing=True), 0.4), {"epochs": 4, "learner": "perceptron", **GOLD}
    whole = Parser.train(text, **options)
    assert len(whole.model.about["history"]) >= 2

    def stop(progress: Progress) -> None:
        if progress.stage == "tree" and progress.number == 2:
            raise KeyboardInterrupt

    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        Parser.train(text, checkpoint=checkpoint, show=stop, **options)
    assert checkpoint.exists()
    resumed = Parser.train(text, checkpoint=checkpoint, **options)
    assert resumed.model.about["history"] == whole.model.about["history"]
    np.testing.assert_array_equal(weights_of(resumed.model), weights_of(whole.model))


def test_several_runs_are_averaged() -> None:
    text, one = hidden(sentences(12, 1), 0.4), Settings(learner="perceptron", epochs=2, labels="none").complete()
    material = prepared(one, text)
    each = [fitted(material, Settings(learner="perceptron", epochs=2, seed=s).complete()).best for s in (0, 1)]
    both = fitted(material, Settings(learner="perceptron", epochs=2, runs=2).complete()).best
    np.testing.assert_allclose(both, (each[0] + each[1]) / 2, rtol=1e-12, atol=1e-12)  # type: ignore[operator]
    assert not np.array_equal(each[0], each[1])


# Where whole trees are needed


def test_what_needs_whole_trees_refuses_others() -> None:
    (gold,) = sentences(1, 1)
    (partial,) = hidden([gold], 0.5)
    assert partial.heads is not None
    for pair in ((partial, gold), (gold, partial)):
        for score in (evaluate, evaluate_conll2018):
            with pytest.raises(EvaluationError, match="some words have no heads; parse it, or annotate the rest"):
                score([pair[0]], [pair[1]])
    square = np.full((len(gold) + 1, len(gold) + 1), 0.1)
    for draw in (tree_drawing, tree_text, lambda s: heatmap_drawing(s, square)):
        with pytest.raises(TreebankError, match="some words have no heads to draw; parse it first"):
            draw(partial)
        draw(gold)
    assert heatmap_drawing(Sentence.from_words(gold.forms), square)  # no tree at all is no mistake there


# The learner


@pytest.mark.parametrize("learner", ["perceptron", "margin"])
@pytest.mark.parametrize("single_root", [False, True])
def test_all_heads_known_is_the_perceptron(learner: Any, single_root: bool) -> None:
    """The latent learner as settings make it, on whole trees and at temperature 0."""
    text = sentences(20, 5, crossing=True, two_roots=not single_root)
    settings = Settings(learner=learner, single_root=single_root, epochs=2, labels="none").complete()
    material = prepared(settings, text)
    problem = material.problem
    assert isinstance(problem, ArcProblem)
    latent = PartialArcProblem(problem.scorer, problem.structures, *material.trees[:2])
    weights = latent_learner_of(settings).fit(latent, lambda _: True)
    np.testing.assert_array_equal(weights, fitted(material, settings).best)
    assert weights.any()
