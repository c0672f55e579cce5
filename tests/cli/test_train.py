"""`headway train`: settings reach the model, Ctrl-C loses nothing, errors leave what was there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headway
from headway.archive import load_archive
from headway.evaluation import evaluate
from headway.features.templates import table_text
from headway.learning.monitor import Progress, Show
from headway.pipeline import Parser
from headway.training.settings import Settings
from tests.cli import toy
from tests.cli.conftest import Invoke, one_error
from tests.models.model_parts import label_names_of, label_weights_of, weights_of


def settings_of(path: Path) -> dict[str, Any]:
    settings: dict[str, Any] = Parser.load(path).model.about["settings"]
    return settings


def test_train_parse_evaluate(invoke: Invoke, train_file: Path, test_file: Path, tmp_path: Path) -> None:
    model, parsed = tmp_path / "m.headway", tmp_path / "parsed.conllu"
    done = invoke("train", train_file, "--dev", test_file, "--epochs", 3, "-o", model)
    first, second = done.stdout.splitlines()
    assert first.startswith(f"{model}: arc model, margin, C 200, pass ")
    assert float(first.partition("dev UAS ")[2].split()[0]) > 90
    assert second.startswith(f"headway {headway.__version__}, seed 0, 40 sentences sha256 ")
    assert done.stderr == ""
    invoke("parse", model, test_file, "-o", parsed)
    scores = evaluate(test_file, parsed)
    assert scores.uas > 90
    assert scores.las > 90
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.headway", "parsed.conllu"]


@pytest.mark.parametrize(
    ("line", "single_root"),
    [("multi-root = true", False), ("multi_root = false", True), ("single_root = false", False)],
)
def test_a_file_of_settings_has_the_names_of_options(
    line: str, single_root: bool, invoke: Invoke, train_file: Path, tmp_path: Path
) -> None:
    config, model = tmp_path / "settings.toml", tmp_path / "m.headway"
    config.write_text(f"{line}\nepochs = 1\n", encoding="utf-8")
    invoke("train", train_file, "--config", config, "-o", model)
    assert settings_of(model)["single_root"] is single_root


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ('multi-root = "no"', "multi-root is 'no'; expected true or false"),
        ('epochs = "two"', "epochs is 'two'; expected a whole number or None"),
        ("epochs = 0", "epochs is 0; expected 1 or more"),
        ('learner = "svm"', "learner is 'svm'; expected any of perceptron, margin,"),
        ("epoch = 2", "there is no setting 'epoch'; the settings are batch, c,"),
        ("projective = True", "not valid TOML (Invalid value (at line 1, column 14)); write lines such as"),
    ],
)
def test_what_is_wrong_in_a_file_of_settings(
    line: str, cause: str, invoke: Invoke, train_file: Path, tmp_path: Path
) -> None:
    config = tmp_path / "settings.toml"
    config.write_text(f"{line}\n", encoding="utf-8")
    done = invoke("train", train_file, "--config", config, "-o", tmp_path / "m.headway", status=2)
    assert f"settings.toml: {cause}" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("", {}),
        ("--projective", {"projective": True}),
        ("--multi-root --labels none", {"single_root": False, "labels": "none"}),
        ("--learner perceptron --labels after --seed 5", {"learner": "perceptron", "c": 0.0, "seed": 5}),
        ("--learner loglinear --labels joint --c 0.5", {"learner": "loglinear", "labels": "joint", "c": 0.5}),
        ("--learner eg-loglinear --labels none", {"learner": "eg-loglinear", "labels": "none", "c": 0.1}),
        ("--learner loglinear --optimiser adam --labels none", {"learner": "loglinear", "optimiser": "adam", "c": 0.1}),
        ("--templates mcdonald2005 --patience 3 --c 7", {"templates": "mcdonald2005", "patience": 3, "c": 7.0}),
        ("--learner expected-loss --labels none", {"learner": "expected-loss", "labels": "none", "c": 3.0}),
        ("--learner loglinear --text b.conllu", {"learner": "loglinear", "c": 0.1}),
        (
            "--learner loglinear --text b.conllu --entropy-weight 0 --entropy-order inf",
            {"learner": "loglinear", "c": 0.1, "entropy_weight": 0.0, "entropy_order": np.inf},
        ),
        ("--tags gold", {"tags": "gold"}),
        ("--clusters paths.txt --tags predicted", {"clusters": "paths.txt"}),
        ("--model sibling", {"model": "sibling", "parts": "sibling"}),
        (
            "--model grandsibling --parts mine.txt --decoding dual --prune-threshold 0.01 --max-heads 4",
            {"model": "grandsibling", "parts": "mine.txt", "decoding": "dual", "prune_threshold": 0.01, "max_heads": 4},
        ),
    ],
)
def test_settings_reach_the_trainer(
    invoke: Invoke, monkeypatch: Any, tmp_path: Path, words: str, changed: dict[str, Any]
) -> None:
    given: dict[str, Any] = {}

    def train(cls: Any, /, train: str, dev: str | None, **keywords: Any) -> Parser:
        given.update(keywords, train=train, dev=dev)
        raise KeyboardInterrupt

    monkeypatch.setattr(Parser, "train", classmethod(train))
    monkeypatch.chdir(tmp_path)
    Path("mine.txt").write_text(table_text("grandsibling"), encoding="utf-8")
    Path("paths.txt").write_text("01\tdog\n", encoding="utf-8")
    for name in ("a.conllu", "b.conllu"):  # which the command only looks for, as the trainer is a stand-in
        Path(name).touch()
    invoke("train", "a.conllu", "-o", tmp_path / "m", "--epochs", 2, "--threads", 2, *words.split(), status=130)
    others = ("train", "dev", "text", "threads", "checkpoint", "show", "workers")
    text = "b.conllu" if "--text" in words else None
    assert [given.pop(name) for name in others] == ["a.conllu", None, text, 2, tmp_path / "m.checkpoint", None, None]
    chosen = Settings(**given).complete()
    assert (chosen.parts is None) == (chosen.model == "arc")  # arcs are all the parts of an arc-factored model
    may_be_none = ("parts", "clusters", "entropy_weight", "entropy_order", "batch", "rate", "teacher")
    written_out = {name: value for name, value in vars(chosen).items() if value is not None or name not in may_be_none}
    assert all(type(value) in (str, int, float, bool) for value in written_out.values())
    expected = {**vars(Settings(epochs=2).complete()), **changed}
    assert {name: value for name, value in vars(chosen).items() if name != "labels"} == {
        name: value for name, value in expected.items() if name != "labels"
    }
    if "labels" in changed:
        assert chosen.labels == changed["labels"]


@pytest.mark.parametrize("kind", ["sibling", "grandsibling"])
def test_higher_order_models(invoke: Invoke, train_file: Path, test_file: Path, tmp_path: Path, kind: str) -> None:
    model, parsed = tmp_path / "m.headway", tmp_path / "parsed.conllu"
    words = ["--model", kind, "--epochs", 2, "--prune-threshold", 0.01, "--max-heads", 4]
    done = invoke("train", train_file, "--dev", test_file, *words, "-o", model)
    first, pruning, last = done.stdout.splitlines()
    assert first.startswith(f"{model}: {kind} model, margin, C ")
    found = Parser.load(model).model.about["pruning"]
    assert pruning == (
        f"the pruner keeps {found['recall']:.2f}% of the correct heads and {found['heads_per_word']:.1f} heads per "
        "word of the development data"
    )
    assert found["heads_per_word"] <= 4
    assert last.startswith("headway ")
    invoke("parse", model, test_file, "-o", parsed)
    assert evaluate(test_file, parsed).las > 90


def test_settings_no_higher_order_model_can_be_trained_with(invoke: Invoke, train_file: Path, tmp_path: Path) -> None:
    words = ("train", train_file, "-o", tmp_path / "m", "--model", "sibling")
    said = " ".join(invoke(*words, "--learner", "loglinear", status=2).stderr.split())
    assert "the sibling model has no marginals for loglinear; train it with perceptron or margin" in said
    assert "labels after the tree" in invoke(*words, "--labels", "joint", status=2).stderr
    assert "not a table of templates for the sibling" in one_error(invoke(*words, "--parts", "grandsibling", status=1))
    assert list(tmp_path.iterdir()) == []


def test_expected_loss(invoke: Invoke, train_file: Path, test_file: Path, tmp_path: Path) -> None:
    model, parsed = tmp_path / "m.headway", tmp_path / "parsed.conllu"
    done = invoke("train", train_file, "--learner", "expected-loss", "--epochs", 20, "--labels", "none", "-o", model)
    assert done.stdout.startswith(f"{model}: arc model, expected-loss, C 3, pass ")
    invoke("parse", model, test_file, "-o", parsed)
    assert evaluate(test_file, parsed).uas > 90


def test_unlabelled_text(invoke: Invoke, train_file: Path, test_file: Path, tmp_path: Path) -> None:
    """It counts its sentences, changes the weights, and makes the model surer of itself."""
    words = ("train", train_file, "--learner", "loglinear", "--c", 0.01, "--epochs", 20, "--labels", "none")
    more = ("--text", test_file)
    sure = []
    for name, options in (("trees", ("--entropy-weight", 0)), ("both", ("--entropy-weight", 0.5))):
        invoke(*words, *more, *options, "-o", tmp_path / name)
        parser = Parser.load(tmp_path / name)
        assert parser.model.about["text"]["sentences"] == 20
        sure.append(np.mean([found.distribution.entropy for found in parser.parse(headway.read_treebank(test_file))]))
    assert sure[1] < 0.9 * sure[0]
    assert settings_of(tmp_path / "both")["entropy_weight"] == 0.5

    invoke(*words, *more, "--entropy-order", "inf", "-o", tmp_path / "inf")
    assert settings_of(tmp_path / "inf")["entropy_order"] == np.inf

    data = test_file.read_bytes()
    invoke(*words, "--text", "-", "--entropy-weight", 0.5, "-o", tmp_path / "stdin", stdin=data)
    weights = [weights_of(Parser.load(tmp_path / name).model) for name in ("stdin", "both", "inf")]
    assert np.array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])


def test_unlabelled_text_that_cannot_be_used(invoke: Invoke, train_file: Path, tmp_path: Path) -> None:
    words = ("train", train_file, "-o", tmp_path / "m")
    said = invoke(*words, "--text", train_file, status=2).stderr
    assert "margin learns from trees alone; text beside them is for loglinear" in " ".join(said.split())
    for option in ("--entropy-weight", "--entropy-order"):
        said = invoke(*words, "--learner", "loglinear", option, 1, status=2).stderr
        name = option.removeprefix("--").replace("-", "_")
        assert f"{name} is about text beside the trees; give some (text=, --text FILE)" in " ".join(said.split())
    missing = tmp_path / "missing.conllu"
    words = (*words, "--learner", "loglinear", "--text")
    assert str(missing) in one_error(invoke(*words, missing, status=1))
    assert "'--entropy-weight'" in invoke(*words, train_file, "--entropy-weight", -1, status=2).stderr
    assert "entropy_order is 0.0" in invoke(*words, train_file, "--entropy-order", 0, status=2).stderr
    assert list(tmp_path.iterdir()) == []


def test_settings_are_saved(invoke: Invoke, train_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "m"
    invoke(
        "train", train_file, "--projective", "--multi-root", "--labels", "none", "--epochs", 1, "--seed", 4, "-o", path
    )
    model = Parser.load(path).model
    assert model.trees == (True, False)
    assert label_names_of(model) == ()
    assert settings_of(path)["seed"] == 4


def test_a_file_of_a_given_size(invoke: Invoke, train_file: Path, tmp_path: Path) -> None:
    words = ("train", train_file, "--epochs", 1, "--labels", "none", "--max-megabytes")
    invoke(*words, 2, "-o", tmp_path / "packed")
    assert (tmp_path / "packed").stat().st_size <= 2e6
    assert "weights.bytes" in load_archive(tmp_path / "packed", "arc").arrays
    assert weights_of(Parser.load(tmp_path / "packed").model).any()
    assert "ask for more megabytes" in one_error(invoke(*words, 0.01, "-o", tmp_path / "small", status=1))
    # nothing was lost: with more megabytes the training is read back from its checkpoint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["packed", "small.checkpoint"]
    invoke(*words, 2, "-o", tmp_path / "small")
    found, expected = (weights_of(Parser.load(tmp_path / name).model) for name in ("small", "packed"))
    assert np.array_equal(found, expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["packed", "small"]


def test_training_from_standard_input(invoke: Invoke, train_file: Path, model: Path, tmp_path: Path) -> None:
    invoke("train", "-", "--epochs", 3, "-o", tmp_path / "m", stdin=train_file.read_bytes())
    assert np.array_equal(weights_of(Parser.load(tmp_path / "m").model), weights_of(Parser.load(model).model))


@contextmanager
def _interrupting(passes: int) -> Iterator[Show]:
    """A progress bar whose user presses Ctrl-C after so many passes over the trees."""

    def show(progress: Progress) -> None:
        if progress.stage == "tree" and progress.number == passes + 1:
            raise KeyboardInterrupt

    yield show


def test_ctrl_c_and_the_same_command_again(
    invoke: Invoke, monkeypatch: Any, train_file: Path, test_file: Path, tmp_path: Path
) -> None:
    words = ["train", train_file, "--dev", test_file, "--epochs", 4, "--c", 5]
    invoke(*words, "-o", tmp_path / "whole")

    path = tmp_path / "interrupted"
    path.write_bytes(b"an older model")
    with monkeypatch.context() as patch:
        patch.setattr("headway.learning.monitor.CHECKPOINT_SECONDS", -1.0)
        patch.setattr("headway.cli.train.training_progress", lambda: _interrupting(2))
        result = invoke(*words, "-o", path, status=130)
    checkpoint = tmp_path / "interrupted.checkpoint"
    assert result.stdout == ""
    assert result.stderr.strip() == (f"headway: interrupted; the same command resumes from the checkpoint {checkpoint}")
    assert checkpoint.exists()
    assert path.read_bytes() == b"an older model"

    passes: list[tuple[str, int]] = []
    with monkeypatch.context() as patch:
        patch.setattr("headway.cli.train.training_progress", lambda: _watching(passes))
        invoke(*words, "-o", path)
    assert [number for stage, number in passes if stage == "tree"] == [3, 4]
    # what was finished is not trained again, nor shown
    assert {stage for stage, _ in passes} == {"tree", "labels"}
    assert not checkpoint.exists()
    resumed, whole = Parser.load(path).model, Parser.load(tmp_path / "whole").model
    assert np.array_equal(weights_of(resumed), weights_of(whole))
    assert np.array_equal(label_weights_of(resumed), label_weights_of(whole))


@contextmanager
def _watching(passes: list[tuple[str, int]]) -> Iterator[Show]:
    def show(progress: Progress) -> None:
        passes.append((progress.stage, progress.number))

    yield show


def test_ctrl_c_before_the_first_checkpoint(invoke: Invoke, monkeypatch: Any, train_file: Path, tmp_path: Path) -> None:
    def interrupt(*args: Any, **keywords: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headway.text.segmenter.Segmenter.learn", interrupt)  # the first stage of all
    result = invoke("train", train_file, "-o", tmp_path / "m", status=130)
    assert result.stderr.strip() == (
        "headway: interrupted; there is no checkpoint yet, so the same command starts over"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_other_settings_is_refused(
    invoke: Invoke, monkeypatch: Any, train_file: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "state"
    words = ["train", train_file, "--epochs", 3, "--checkpoint", checkpoint, "-o", tmp_path / "m"]
    with monkeypatch.context() as patch:
        patch.setattr("headway.learning.monitor.CHECKPOINT_SECONDS", -1.0)
        patch.setattr("headway.cli.train.training_progress", lambda: _interrupting(1))
        assert str(checkpoint) in invoke(*words, status=130).stderr
    before = {path.name: path.read_bytes() for path in checkpoint.iterdir()}
    assert "parser-1.stage" in before
    for other in (["--seed", 8], ["--dev", train_file]):
        sentence = one_error(invoke(*words, *other, status=1))
        assert sentence.startswith(str(checkpoint / ""))
        assert sentence.endswith(f"a checkpoint of other data or settings; delete {checkpoint}, or name another")
    assert {path.name: path.read_bytes() for path in checkpoint.iterdir()} == before


def test_a_checkpoint_is_a_folder(invoke: Invoke, train_file: Path, tmp_path: Path) -> None:
    """What else is in it stays there; a file in its place is refused."""
    checkpoint = tmp_path / "state"
    checkpoint.mkdir()
    (checkpoint / "mine.txt").write_text("mine")
    words = ["train", train_file, "--epochs", 1, "--labels", "none", "-o", tmp_path / "m", "--checkpoint"]
    invoke(*words, checkpoint)
    assert [path.name for path in checkpoint.iterdir()] == ["mine.txt"]
    said = " ".join(invoke(*words, tmp_path / "m", status=2).stderr.split())
    assert "is a file; give the name of a folder" in said


def test_a_real_ctrl_c(train_file: Path, tmp_path: Path) -> None:
    code = (
        "import headway.learning.monitor as t, sys; t.CHECKPOINT_SECONDS = 0; from headway.cli import main; "
        f"sys.argv = ['headway', 'train', {str(train_file)!r}, '--epochs', '1000000', '-o', 'm']; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "HEADWAY_QUIET": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # tests that run in the background of a shell inherit an ignored SIGINT
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while not list((tmp_path / "m.checkpoint").glob("parser-*")):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert (out, err.strip()) == (
        "",
        "headway: interrupted; the same command resumes from the checkpoint m.checkpoint",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["m.checkpoint"]


def test_data_no_model_can_be_trained_from(invoke: Invoke, tmp_path: Path) -> None:
    empty = tmp_path / "empty.conllu"
    empty.write_bytes(b"")
    assert str(empty) in one_error(invoke("train", empty, "-o", tmp_path / "m", status=1))
    missing = tmp_path / "missing.conllu"
    assert str(missing) in one_error(invoke("train", missing, "-o", tmp_path / "m", status=1))
    roots = tmp_path / "roots.conllu"
    roots.write_text("1\ta\t_\tX\t_\t_\t0\tr\t_\t_\n2\tb\t_\tX\t_\t_\t0\tr\t_\t_\n\n", encoding="utf-8")
    sentence = one_error(invoke("train", roots, "-o", tmp_path / "m", status=1))
    assert str(roots) in sentence
    assert "--multi-root" in sentence
    cycle = tmp_path / "cycle.conllu"
    cycle.write_text("1\ta\t_\tX\t_\t_\t2\tr\t_\t_\n2\tb\t_\tX\t_\t_\t1\tr\t_\t_\n\n", encoding="utf-8")
    assert f"{cycle}, line 1: the heads form a cycle" in one_error(
        invoke("train", cycle, "-o", tmp_path / "m", status=1)
    )
    assert not (tmp_path / "m").exists()


def test_a_folder_that_cannot_be_written_to(invoke: Invoke, monkeypatch: Any, train_file: Path, tmp_path: Path) -> None:
    """Said before training; asked through os.access, as the tests may run as root, who may write anywhere."""
    monkeypatch.setattr(os, "access", lambda path, mode: (Path(path), mode) != (tmp_path, os.W_OK))
    assert "cannot be written to" in invoke("train", train_file, "-o", tmp_path / "m", status=2).stderr
    assert list(tmp_path.iterdir()) == []


def test_settings_no_model_can_be_trained_with(invoke: Invoke, train_file: Path, tmp_path: Path) -> None:
    words = ("train", train_file, "-o", tmp_path / "m")
    assert "C is -1.0; expected a number above 0" in invoke(*words, "--c", -1, status=2).stderr
    assert "no-such-table" in one_error(invoke(*words, "--templates", "no-such-table", status=1))
    table = tmp_path / "table.txt"
    table.write_text("h.xpos | dir\nh.nonsense | dir\n", encoding="utf-8")
    assert f"{table}, line 2" in one_error(invoke(*words, "--templates", table, status=1))


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_line_ends_and_compression_change_nothing(invoke: Invoke, model: Path, tmp_path: Path, suffix: str) -> None:
    import gzip

    path = tmp_path / f"train.conllu{suffix}"
    text = toy.treebank(40, seed=1, newline="\r\n").encode()
    path.write_bytes(gzip.compress(text) if suffix else text)
    invoke("train", path, "--epochs", 3, "-o", tmp_path / "m")
    assert np.array_equal(weights_of(Parser.load(tmp_path / "m").model), weights_of(Parser.load(model).model))


def test_some_heads_unknown(invoke: Invoke, test_file: Path, tmp_path: Path) -> None:
    """Every word but each third has "_" for HEAD and DEPREL; the summary counts what is known."""
    lines, words, known = toy.treebank(60, 1).split("\n"), 0, 0
    for k, line in enumerate(lines):
        if "\t" in line:
            words += 1
            columns = line.split("\t")
            if words % 3:
                columns[6] = columns[7] = "_"
            else:
                known += 1
            lines[k] = "\t".join(columns)
    some, model, parsed = tmp_path / "some.conllu", tmp_path / "m.headway", tmp_path / "parsed.conllu"
    some.write_text("\n".join(lines), encoding="utf-8")
    done = invoke("train", some, "--dev", test_file, "--epochs", 5, "-o", model)
    first, second, third = done.stdout.splitlines()
    assert first.startswith(f"{model}: arc model, margin, C 200, pass ")
    assert second == f"known heads: {known:,} of {words:,}"
    assert third.startswith(f"headway {headway.__version__}, seed 0, 60 sentences sha256 ")
    invoke("parse", model, test_file, "-o", parsed)
    scores = evaluate(test_file, parsed)
    assert scores.uas > 95
    assert scores.las > 90
    assert "has no HEAD but others have" in one_error(invoke("train", test_file, "--dev", some, "-o", model, status=1))
