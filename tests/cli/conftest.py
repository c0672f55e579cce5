"""A toy treebank, a model trained on it by the command itself, and ways to run commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import pytest
from typer.testing import CliRunner, Result

from headway.cli.app import app
from tests.cli import toy


class Invoke(Protocol):
    """Runs a command in this process; `status` is the exit status it must have."""

    def __call__(self, *words: Any, status: int = 0, stdin: bytes | None = None) -> Result: ...


class Spawn(Protocol):
    """Runs a command in a process of its own."""

    def __call__(self, *words: Any, **options: Any) -> subprocess.Popen[bytes]: ...


def run(*words: Any, status: int = 0, stdin: bytes | None = None) -> Result:
    runner = CliRunner(env={"HEADWAY_QUIET": "1"})
    result = runner.invoke(app, [str(word) for word in words], input=stdin, prog_name="headway")
    if result.exit_code != status or not isinstance(result.exception, SystemExit | None):
        raise AssertionError(f"exit status {result.exit_code}: {result.output}") from result.exception
    return result


@pytest.fixture(scope="session")
def invoke() -> Invoke:
    return run


@pytest.fixture(scope="session")
def spawn() -> Spawn:
    def start(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "headway", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "HEADWAY_QUIET": "1"},
            **options,
        )

    return start


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="session")
def train_file(folder: Path) -> Path:
    return toy.write(folder / "train.conllu", 40, seed=1)


@pytest.fixture(scope="session")
def test_file(folder: Path) -> Path:
    return toy.write(folder / "test.conllu", 20, seed=2)


@pytest.fixture(scope="session")
def model(folder: Path, train_file: Path) -> Path:
    path = folder / "toy.headway"
    run("train", train_file, "--epochs", 3, "-o", path)
    return path


@pytest.fixture(scope="session", params=["sibling", "grandsibling"])
def higher_order(request: pytest.FixtureRequest, folder: Path, train_file: Path) -> Path:
    """A model of each kind that is decoded with a proof."""
    path = folder / f"{request.param}.headway"
    if not path.exists():
        run("train", train_file, "--model", request.param, "--epochs", 2, "-o", path)
    return path


@pytest.fixture(scope="session")
def random_model(folder: Path, model: Path) -> Path:
    """The same model with random weights: its trees are wrong, unsure, and often not projective."""
    import dataclasses

    import numpy as np

    from headway.models.arc_model import ArcModel
    from headway.models.scorer import Trained
    from headway.pipeline import Parser

    trained = Parser.load(model).model
    assert isinstance(trained, ArcModel)
    scorer = trained.scorer.scorer
    weights = np.random.default_rng(3).normal(size=scorer.size) / 4
    path = folder / "random.headway"
    Parser(dataclasses.replace(trained, scorer=Trained(scorer, weights))).save(path)
    return path


def one_error(result: Result) -> str:
    """The sentence of a failed command, which printed nothing else."""
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("headway: error: ")
    return line.removeprefix("headway: error: ")
