"""Settings, data, the monitor and checkpoints; the learners on a toy language."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headway.archive import Archive, load_archive, save_archive
from headway.errors import ArchiveError, HeadwayError, TemplateError, TrainingError, TreebankError
from headway.inference import TreeDistribution
from headway.learning.examples import Trees
from headway.learning.exponentiated_gradient import ExponentiatedGradient
from headway.learning.log_linear import LogLinear
from headway.learning.perceptron import Perceptron
from headway.learning.progress import Pass
from headway.models.arc_factored import ArcExamples, ArcScorer
from headway.training import (
    Material,
    Monitor,
    Progress,
    Settings,
    checksum,
    development,
    signature,
    train_arcs,
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
    return train_arcs(material, settings, held_out, more.get("show"), checkpoint, signed)


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
            "unknown learner 'svm'; the learners are: perceptron, margin, loglinear, eg, eg-loglinear",
        ),
        ({"labels": "before"}, "labels is 'before'; expected any of after, joint, none"),
        ({"tags": "silver"}, "tags is 'silver'; expected any of predicted, gold"),
        ({"optimiser": "sgd"}, "unknown optimiser 'sgd'; there are lbfgs, cg, adagrad, adam"),
        ({"epochs": 0}, "epochs is 0; at least one is needed"),
        ({"c": -1.0}, "C is -1.0; expected a number above 0"),
        ({"c": 0.0}, "C is 0.0; expected a number above 0"),
        ({"c": float("nan")}, "C is nan"),
        ({"c": float("inf")}, "C is inf"),
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
    assert (loglinear.regularisation, loglinear.iterations, loglinear.optimiser) == (7.0, 3, "adam")
    for name, loss in (("eg", "hinge"), ("eg-loglinear", "log")):
        learner = Settings(learner=name, c=7.0, epochs=3, **flags).learn(trees)  # type: ignore[arg-type]
        assert isinstance(learner, ExponentiatedGradient)
        assert (learner.regularisation, learner.passes, learner.loss) == (7.0, 3, loss)
    for each in (margin, plain, loglinear, learner):
        assert each.structures is trees  # type: ignore[attr-defined]


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
    monitor = train_arcs(material, settings, None, None, None, "")
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
    best = train_arcs(material, settings, None, None, None, "").best
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
    monkeypatch.setattr("headway.training.monitor.CHECKPOINT_SECONDS", -1.0)


def interrupted_at(number: int) -> Any:
    def show(progress: Progress) -> None:
        if progress.number == number:
            raise KeyboardInterrupt

    return show


@pytest.mark.usefixtures("every_pass")
@pytest.mark.parametrize("name", ["perceptron", "margin", "adagrad", "adam", "eg", "eg-loglinear"])
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
@pytest.mark.parametrize("name", ["lbfgs", "cg"])
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
