"""`headway tune`: what is chosen is printed as a command, and trained on all the data when asked for."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.cli import tune as tune_command
from headway.pipeline import Parser
from headway.training.settings import Settings
from headway.training.text_models import TextModels
from headway.training.tuning import GRIDS, Trial, Tuning, tune
from headway.treebank import read_treebank
from tests.cli.conftest import Invoke, one_error
from tests.models.model_parts import weights_of


def test_json_is_what_tune_found(invoke: Invoke, train_file: Path) -> None:
    words = ["--c", 1, "--c", 50, "--epochs", 2, "--held-out", 0.25, "--labels", "none", "--seed", 3]
    found = json.loads(invoke("tune", train_file, *words, "--json").stdout)
    expected = tune(train_file, grid=[1.0, 50.0], epochs=2, held_out=0.25, labels="none", seed=3)
    assert found["settings"] == vars(expected.settings)
    assert found["projective"] == expected.projective
    for trial, right in zip(found["trials"], expected.trials, strict=True):
        assert {**trial, "seconds": 0} == {**vars(right), "seconds": 0}
    assert {trial["c"] for trial in found["trials"]} == {1.0, 50.0}
    assert found["model"] is None
    signature = found["signature"]
    assert signature["seed"] == 3
    assert signature["options"]["c"] == [1.0, 50.0]
    assert signature["options"]["held_out"] == 0.25
    assert signature["data"] == {str(train_file): hashlib.sha256(train_file.read_bytes()).hexdigest()[:16]}


PERCEPTRON = Settings(
    learner="perceptron",
    c=0.0,
    epochs=2,
    single_root=False,
    labels="none",
    templates="mcdonald2005",
    seed=6,
)
MARGIN = Settings(c=1234567.5, epochs=3, projective=True, labels="after", optimiser="adam", patience=2)

SIBLING = Settings(model="sibling", c=50.0, epochs=2, decoding="dual", prune_threshold=0.01, max_heads=4, labels="none")


@pytest.fixture(params=[PERCEPTRON, MARGIN, SIBLING], ids=["perceptron", "margin", "sibling"])
def chosen(request: pytest.FixtureRequest, monkeypatch: Any, model: Path) -> Tuning:
    """A choice, to be decoded projectively; the real search is replaced by it."""
    settings: Settings = request.param
    trials = (Trial(0.5, 1.0, False, 2, 88.123, 1.26), Trial(0.5, 1.0, True, 2, 89.5, 1.26))
    tuning = Tuning(settings, True, trials, Parser.load(model).model, TextModels())
    monkeypatch.setattr("headway.training.tuning.tune", lambda *args, **keywords: tuning)
    return tuning


@pytest.mark.parametrize("with_dev", [False, True])
def test_text_and_the_command_it_prints(
    invoke: Invoke, chosen: Tuning, train_file: Path, test_file: Path, tmp_path: Path, with_dev: bool
) -> None:
    """The printed command trains the model that `-o` writes."""
    tuned, path = tmp_path / "tuned", tmp_path / "by hand"
    dev = ["--dev", test_file] if with_dev else []
    text = invoke("tune", train_file, *dev, "-o", tuned).stdout
    rows = [line.split() for line in text.splitlines()]
    assert rows[1:3] == [["0.5", "non-projective", "2", "88.12", "1.3"], ["0.5", "projective", "2", "89.50", "1.3"]]
    assert f"written: {tuned}\n" in text
    (line,) = (line for line in text.splitlines() if line.startswith("chosen: "))
    command, _, decoding = line.removeprefix("chosen: ").partition("; ")
    assert decoding == ("" if chosen.settings.projective else "parse with --projective")
    program, *words = shlex.split(command)
    assert (program, words[-1]) == ("headway", "MODEL")
    invoke(*words[:-1], path)
    by_tune, by_hand = Parser.load(tuned).model, Parser.load(path).model
    assert np.array_equal(weights_of(by_tune), weights_of(by_hand))
    assert by_hand.about["settings"] == vars(chosen.settings.complete())
    assert (by_tune.trees.projective, by_hand.trees.projective) == (True, chosen.settings.projective)
    assert by_tune.trees.single_root == chosen.settings.single_root


def test_the_command_it_prints_has_tags_and_clusters(
    invoke: Invoke, monkeypatch: Any, model: Path, train_file: Path
) -> None:
    settings = replace(MARGIN, tags="gold", clusters="paths.txt")
    tuning = Tuning(settings, True, (Trial(0.5, 1.0, True, 2, 89.5, 1.26),), Parser.load(model).model, TextModels())
    monkeypatch.setattr("headway.training.tuning.tune", lambda *args, **keywords: tuning)
    (line,) = (line for line in invoke("tune", train_file).stdout.splitlines() if line.startswith("chosen: "))
    assert "--tags gold" in line
    assert "--clusters paths.txt" in line


NUMBERS = st.floats(1e-6, 1e6)
FILES = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]), min_size=1).filter(
    lambda name: not name.startswith("-")
)


@st.composite
def any_settings(draw: st.DrawFn) -> Settings:
    """Complete settings of any learner and model that `tune` may have chosen."""
    learner = draw(st.sampled_from(list(GRIDS)))
    higher = learner in ("perceptron", "margin")
    model = draw(st.sampled_from(["arc", "sibling", "grandsibling"] if higher else ["arc"]))
    with_text = learner == "loglinear" and draw(st.booleans())
    return Settings(
        model=model,
        learner=learner,
        projective=draw(st.booleans()),
        single_root=draw(st.booleans()),
        labels=draw(st.sampled_from([None, "after", "none"])),
        tags=draw(st.sampled_from(["predicted", "gold"])),
        clusters=draw(st.none() | FILES),
        templates=draw(st.sampled_from(["standard", "mcdonald2005"])),
        decoding=draw(st.sampled_from(["automata", "dual"])),
        prune_threshold=draw(st.sampled_from([1e-3, 0.25, 1.0])),
        max_heads=draw(st.integers(1, 30)),
        epochs=draw(st.none() | st.integers(1, 200)),
        c=draw(st.none() | NUMBERS),
        optimiser=draw(st.sampled_from(["lbfgs", "adam"])),
        entropy_weight=draw(st.none() | NUMBERS) if with_text else None,
        entropy_order=draw(st.none() | NUMBERS | st.just(float("inf"))) if with_text else None,
        patience=draw(st.integers(1, 20)),
        seed=draw(st.integers(0, 2**40)),
        runs=draw(st.integers(1, 4)),
    ).complete()


@hypothesis.settings(max_examples=60)
@given(chosen=any_settings(), projective=st.booleans(), train=FILES, dev=st.none() | FILES)
def test_the_command_typed_back_gives_the_settings(
    invoke: Invoke, tmp_path_factory: pytest.TempPathFactory, chosen: Settings, projective: bool, train: str, dev: Any
) -> None:
    """Those chosen, every one of them, whatever the files are called."""
    tuning = Tuning(chosen, projective, (), None, TextModels())  # type: ignore[arg-type]
    text = None if chosen.entropy_weight is chosen.entropy_order is None else "more.conllu"
    line = tune_command._command(train, dev, text, tuning)
    command = line if line.endswith(" -o MODEL") else line.rpartition("; parse with --")[0]
    assert (command == line) == (projective == chosen.projective)
    _, *words = shlex.split(command)
    found: dict[str, Any] = {}

    def keep(cls: Any, /, train: str, dev: str | None, **keywords: Any) -> Parser:
        found.update(keywords, train=train, dev=dev)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Parser, "train", classmethod(keep))
        # No file of these names exists, and the command would look for them first.
        patch.setattr("headway.cli.places.require_inputs", lambda *_: None)
        patch.setattr("headway.cli.train.require_trainable", lambda *_, **__: None)
        invoke(*words[:-1], tmp_path_factory.getbasetemp() / "m", status=130)
    assert (found.pop("train"), found.pop("dev"), found.pop("text")) == (train, dev, text)
    others = [found.pop(name) for name in ("threads", "checkpoint", "show", "workers")]
    assert others[0] == 1
    assert Settings(**found).complete() == chosen


LOGLINEAR = Settings(
    learner="loglinear", c=0.05, epochs=4, labels="none", tags="gold", entropy_weight=0.3, entropy_order=2.0
)


def test_unlabelled_text(
    invoke: Invoke, monkeypatch: Any, model: Path, train_file: Path, test_file: Path, tmp_path: Path
) -> None:
    """It has a column, is in the command that is printed, and in the model that is written."""
    given: dict[str, Any] = {}
    tuning = Tuning(LOGLINEAR, False, (Trial(0.05, 0.3, False, 4, 89.5, 1.26),), Parser.load(model).model, TextModels())

    def found(*args: Any, **keywords: Any) -> Tuning:
        given.update(keywords)
        return tuning

    monkeypatch.setattr("headway.training.tuning.tune", found)
    words = ["--learner", "loglinear", "--text", test_file]
    tuned = tmp_path / "tuned"
    text = invoke("tune", train_file, *words, "--entropy-weight", 0, "--entropy-weight", 0.3, "-o", tuned).stdout
    assert given["entropy_weights"] == [0.0, 0.3]
    assert [sentence.forms for sentence in given["text"]] == [s.forms for s in read_treebank(test_file)]
    header, row = text.splitlines()[:2]
    assert header.split() == ["C", "entropy", "weight", "decoding", "passes", "UAS", "seconds"]
    assert row.split() == ["0.05", "0.3", "non-projective", "4", "89.50", "1.3"]
    assert f"{test_file} sha256 " in text.splitlines()[-1]
    (line,) = (line for line in text.splitlines() if line.startswith("chosen: "))
    _, *command = shlex.split(line.removeprefix("chosen: "))
    invoke(*command[:-1], tmp_path / "by hand")
    by_tune, by_hand = Parser.load(tuned).model, Parser.load(tmp_path / "by hand").model
    assert by_hand.about["settings"] == by_tune.about["settings"] == vars(LOGLINEAR)
    assert by_hand.about["text"]["sentences"] == 20
    assert np.array_equal(weights_of(by_tune), weights_of(by_hand))

    given.clear()
    invoke("tune", train_file, *words)
    assert "entropy_weights" not in given  # the default ones


def test_weights_of_text_are_tried(invoke: Invoke, train_file: Path, test_file: Path) -> None:
    words = ["--learner", "loglinear", "--labels", "none", "--tags", "gold", "--epochs", 2, "--c", 0.1]
    more = ["--text", test_file, "--entropy-weight", 0.2, "--entropy-weight", 2, "--projective"]
    found = json.loads(invoke("tune", train_file, *words, *more, "--json").stdout)
    assert [trial["entropy_weight"] for trial in found["trials"]] == [0.2, 2.0]
    assert found["signature"]["options"]["entropy_weights"] == [0.2, 2.0]
    assert list(found["signature"]["data"]) == [str(train_file), str(test_file)]


def test_the_final_model_sees_all_the_training_data(
    invoke: Invoke, chosen: Tuning, train_file: Path, tmp_path: Path
) -> None:
    result = invoke("tune", "-", "-o", tmp_path / "m", "--json", stdin=train_file.read_bytes())
    assert json.loads(result.stdout)["model"] == str(tmp_path / "m")
    about = Parser.load(tmp_path / "m").model.about
    assert about["train"]["sentences"] == len(list(read_treebank(train_file)))
    assert about["history"][-1]["dev"] is None


def test_higher_order_settings(invoke: Invoke, train_file: Path) -> None:
    words = ["--model", "sibling", "--c", 20, "--epochs", 2, "--labels", "none", "--max-heads", 3, "--held-out", 0.25]
    found = json.loads(invoke("tune", train_file, *words, "--json").stdout)
    expected = tune(train_file, grid=[20.0], held_out=0.25, model="sibling", epochs=2, labels="none", max_heads=3)
    assert found["settings"] == vars(expected.settings)
    assert [trial["uas"] for trial in found["trials"]] == [trial.uas for trial in expected.trials]


def test_errors(invoke: Invoke, train_file: Path, tmp_path: Path) -> None:
    assert "hold out" in one_error(invoke("tune", train_file, "--held-out", 2, status=1))
    missing = tmp_path / "missing.conllu"
    assert one_error(invoke("tune", train_file, "--dev", missing, status=1)).startswith(str(missing))
