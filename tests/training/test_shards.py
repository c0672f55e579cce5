"""Trainings on shards: equal to those on one, resumed, with processes that die; and other work that workers do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest

from headway.archive import CHECKPOINT, load_archive
from headway.errors import TrainingError
from headway.learning import monitor
from headway.learning.monitor import Monitor, Progress
from headway.pipeline import Parser
from headway.processes import Processes
from headway.training.arc_problem import PartialArcProblem
from headway.training.arc_trainer import prepare_arcs
from headway.training.data import TrainingData
from headway.training.rules_trainer import train_from_rules
from headway.training.settings import RULES_DEFAULTS, Settings
from headway.training.stages import Run
from headway.training.tuning import tune
from headway_papers import koo2007
from tests.copying_workers import CopyingWorkers
from tests.models.toy_treebank import sentences
from tests.training.toy_trainings import RULES, settings_for, trained

TWO = CopyingWorkers()
PROCESSES = Processes(2)
TRAIN = sentences(24, 1)
DEV = sentences(8, 2)


def best(found: Monitor) -> np.ndarray:
    assert found.best is not None
    return found.best


@pytest.mark.parametrize("name", ["lbfgs", "cg", "expected-loss"])
def test_gradients_of_shards(name: str) -> None:
    one = trained(settings_for(name), TRAIN, DEV)
    two = trained(settings_for(name, shards=2), TRAIN, DEV, workers=TWO)
    for before, after in zip(one.history, two.history, strict=True):
        assert after["objective"] == pytest.approx(before["objective"], rel=1e-10)
        assert after["dev"] == before["dev"]
    np.testing.assert_allclose(best(two), best(one), atol=1e-7 * float(np.abs(best(one)).max()))


class Interrupting:
    """Progress that is broken off after a pass, by an exception or by the death of a process."""

    def __init__(self, at: int, action: Callable[[], None]) -> None:
        self.at, self.action = at, action

    def __call__(self, progress: Progress) -> None:
        if progress.number == self.at:
            self.at = -1
            self.action()


def interrupt() -> None:
    raise KeyboardInterrupt


def kill_one() -> None:
    child = active_children()[0]
    child.kill()
    child.join()


@pytest.mark.parametrize("name", ["lbfgs", "eg", "eg-loglinear", "margin"])
def test_resumed_bit_for_bit(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "CHECKPOINT_SECONDS", -1.0)
    settings = settings_for(name, shards=3)
    whole = trained(settings, TRAIN, DEV, workers=TWO)
    with pytest.raises(KeyboardInterrupt):
        trained(settings, TRAIN, DEV, tmp_path, Interrupting(2, interrupt), TWO)
    again = trained(settings, TRAIN, DEV, tmp_path, workers=TWO)
    np.testing.assert_array_equal(best(again), best(whole))
    assert again.history == whole.history
    finished = trained(settings, TRAIN, DEV, tmp_path, workers=TWO)
    np.testing.assert_array_equal(best(finished), best(whole))


@pytest.mark.parametrize("name", ["lbfgs", "margin"])
def test_a_process_that_dies_changes_nothing(name: str) -> None:
    settings = settings_for(name, shards=2)
    whole = trained(settings, TRAIN, DEV, workers=TWO)
    attacked = trained(settings, TRAIN, DEV, None, Interrupting(2, kill_one), PROCESSES)
    np.testing.assert_array_equal(best(attacked), best(whole))
    assert attacked.history == whole.history
    assert not active_children()


def test_lost_duals_end_the_training_and_the_checkpoint_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "CHECKPOINT_SECONDS", -1.0)
    settings = settings_for("eg", shards=2)
    whole = trained(settings, TRAIN, DEV, workers=TWO)
    with pytest.raises(TrainingError, match="a worker was lost, and the duals of its sentences with it"):
        trained(settings, TRAIN, DEV, tmp_path, Interrupting(3, kill_one), PROCESSES)
    again = trained(settings, TRAIN, DEV, tmp_path, workers=TWO)
    np.testing.assert_array_equal(best(again), best(whole))


def test_runs_folds_and_trials_are_the_same_with_workers(tmp_path: Path) -> None:
    """Tagger and jack-knife included; and what an earlier training finished is not done again."""
    settings = {"learner": "perceptron", "epochs": 2, "runs": 2, "labels": "after"}
    Parser.train(TRAIN, DEV, **settings).save(tmp_path / "one.headway")
    folder, stages = tmp_path / "checkpoint", []
    both = {"workers": TWO, "checkpoint": folder}
    Parser.train(TRAIN, DEV, **both, **settings).save(tmp_path / "two.headway")
    assert (tmp_path / "one.headway").read_bytes() == (tmp_path / "two.headway").read_bytes()
    kept = {path.name for path in folder.iterdir()}
    assert {"jack-knife-1.stage", "jack-knife-5.stage", "parser-1.stage", "parser-2.stage"} <= kept
    Parser.train(TRAIN, DEV, **both, show=lambda progress: stages.append(progress.stage), **settings)
    assert "jack-knife" not in stages
    assert "tree" not in stages


def test_trials_of_workers_are_those_of_one() -> None:
    settings = {"learner": "loglinear", "epochs": 3, "labels": "none", "tags": "gold"}
    one = tune(TRAIN, DEV, grid=(0.1, 1.0, 10.0), **settings)
    two = tune(TRAIN, DEV, grid=(0.1, 1.0, 10.0), workers=TWO, **settings)
    assert [(t.c, t.projective, t.epochs, t.uas) for t in one.trials] == [
        (t.c, t.projective, t.epochs, t.uas) for t in two.trials
    ]
    assert one.settings == two.settings


@pytest.mark.parametrize("model", ["arc", "sibling"])
def test_a_whole_parser_on_shards(model: str) -> None:
    """Labels included: as good as one trained in one piece, on a language that both learn."""
    settings = {"model": model, "learner": "margin", "epochs": 4, "tags": "gold"}
    one = Parser.train(TRAIN, DEV, **settings)
    two = Parser.train(TRAIN, DEV, shards=2, workers=TWO, **settings)
    scores = [max(entry["dev"] for entry in parser.model.about["history"]) for parser in (one, two)]
    assert abs(scores[0] - scores[1]) < 5
    assert scores[1] > 80
    assert two.model.about["settings"]["shards"] == 2


def test_a_grammar_by_em_on_shards_is_the_same() -> None:
    projective = sentences(20, 3, crossing=False)
    settings = {"method": "em", "states": 2, "iterations": 3, "labels": "none"}
    one = Parser.induce(projective, **settings)
    two = Parser.induce(projective, shards=2, workers=TWO, **settings)
    np.testing.assert_array_equal(one.model.grammar.operators.operators, two.model.grammar.operators.operators)


def test_cells_of_an_experiment(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "toyish"
    folder.mkdir(parents=True)
    for name, some in (("train", sentences(20, 5)), ("test", sentences(6, 6))):
        (folder / f"{name}.conll").write_text("".join(s.to_conllx() for s in some), encoding="utf-8")
    run = {"languages": None, "quick": True, "threads": 1}
    told: list[str] = []
    koo2007.run(tmp_path / "data", tmp_path / "one", say=lambda line: None, **run)
    koo2007.run(tmp_path / "data", tmp_path / "two", say=told.append, workers=TWO, **run)
    assert (tmp_path / "one" / "quick.md").read_text() == (tmp_path / "two" / "quick.md").read_text()
    assert len(told) == 13  # six cells: one C, then the test; and the tables
    koo2007.run(tmp_path / "data", tmp_path / "two", say=told.append, workers=TWO, **run)
    assert len(told) == 14  # the tables alone


def test_rules_over_shards() -> None:
    """Constraints see their own sentences, and the words of all."""
    bare = [replace(sentence, heads=None, labels=None) for sentence in TRAIN]
    settings = Settings(**RULES_DEFAULTS, epochs=6).complete()
    one = train_from_rules(TrainingData(bare), RULES, settings, Run())
    two = train_from_rules(TrainingData(bare), RULES, replace(settings, shards=3), Run(workers=TWO))
    for before, after in zip(one.about["history"], two.about["history"], strict=True):
        assert after["objective"] == pytest.approx(before["objective"], rel=1e-9)


def test_sentences_that_are_cut_out_of_a_problem() -> None:
    """Scores are those of the whole problem, and nothing of the others is left."""
    problem = prepare_arcs(TrainingData(TRAIN), settings_for("perceptron"), Run()).problem
    partial = PartialArcProblem(problem.scorer, problem.structures, problem.coded, problem.gold.heads)
    weights, which = np.random.default_rng(4).normal(size=problem.size), np.array([3, 7, 11])
    for whole in (problem, partial):
        own = whole.only(which)
        np.testing.assert_array_equal(own.lengths, whole.lengths[which])
        np.testing.assert_array_equal(own.some(np.arange(3)).score(weights), whole.some(which).score(weights))
        assert own.coded.nodes.codes.shape[1] < problem.coded.nodes.codes.shape[1] / 4
    scores = partial.some(which).score(weights)
    latent = partial.only(which).some(np.arange(3)).constrained(scores)
    np.testing.assert_array_equal(latent, partial.some(which).constrained(scores))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"learner": "loglinear", "optimiser": "adagrad"}, "adagrad takes a few sentences at a time"),
        ({"learner": "expected-loss", "optimiser": "adam"}, "choose the optimiser lbfgs or cg"),
        ({"model": "neural"}, "shards is for linear models, not for the neural model"),
    ],
)
def test_what_shards_are_not_for(given: dict[str, str], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        Settings(shards=2, **given).complete()  # type: ignore[arg-type]


def test_ctrl_c_on_the_command_line(tmp_path: Path) -> None:
    """The command ends with 130, its processes end with it, and the same command resumes."""
    treebank = tmp_path / "train.conllu"
    treebank.write_text("".join(s.to_conllu() for s in TRAIN), encoding="utf-8")
    settings = "--learner eg --c 0.1 --labels none --tags gold --shards 2"
    words = ["train", str(treebank), *settings.split()]
    code = "from headway.cli import main; import headway.learning.monitor as m; m.CHECKPOINT_SECONDS = -1.0; main()"
    command = [sys.executable, "-c", code, *words, "-o", str(tmp_path / "model.headway")]
    folder = tmp_path / "model.headway.checkpoint"
    with subprocess.Popen([*command, "--epochs", "100000"], stderr=subprocess.PIPE, start_new_session=True) as started:
        _wait_for(lambda: (folder / "parser-1.stage").exists() or started.poll() is not None)
        os.killpg(started.pid, signal.SIGINT)
        _, said = started.communicate(timeout=60)
    assert started.returncode == 130
    assert b"the same command resumes from the checkpoint" in said
    assert b"Traceback" not in said
    _wait_for(lambda: not _is_group(started.pid))
    done = len(load_archive(folder / "parser-1.stage", CHECKPOINT).data["history"])
    subprocess.run([*command, "--epochs", str(done + 1)], check=True, timeout=120)
    history = Parser.load(tmp_path / "model.headway").model.about["history"]
    assert [entry["pass"] for entry in history] == list(range(1, done + 2))
    assert not folder.exists()


def _is_group(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("in vain")
