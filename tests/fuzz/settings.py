"""Settings and commands: values that do not fit, in Python and on the command line, in any combination."""

from __future__ import annotations

from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from headway.cli.app import app
from headway.coreference.settings import ResolverSettings
from headway.declared import choices_of
from headway.training.grammar_settings import GrammarSettings
from headway.training.settings import Settings
from tests.fuzz.harness import Draw
from tests.fuzz.mutations import ODD, damaged, pick
from tests.fuzz.read_treebanks import TINY

KINDS = (Settings, GrammarSettings, ResolverSettings)
VALUES: tuple[Any, ...] = (
    None,
    0,
    1,
    -1,
    2,
    0.5,
    1e308,
    -0.0,
    10**30,
    -(10**30),
    float("nan"),
    float("inf"),
    True,
    False,
    "",
    "x",
    [],
    {},
    b"",
)
NAMES = (
    "arc",
    "sibling",
    "margin",
    "perceptron",
    "loglinear",
    "joint",
    "none",
    "gold",
    "spectral",
    "em",
    "det",
    "upos",
)
NUMBERS = ("0", "1", "-1", "0.5", "1e9", "nan", "inf", "-inf", "9" * 30, "1e400", "0x1", "", " ", "1_0")

# Of every command, what it needs and the options it may get; FILE is a damaged treebank, OUT a file to write.
COMMANDS: dict[str, tuple[str, ...]] = {
    "evaluate FILE GOOD": ("--json", "--conll2018", "--by-label", "--no-punctuation", "--bootstrap"),
    "evaluate GOOD GOOD GOOD": ("--json", "--samples", "--seed"),
    "info FILE": ("--json",),
    "info GOOD": ("--json",),
    "draw GOOD": ("--sentence", "--width", "--unsure-below", "--format", "-o"),
    "draw FILE": ("--sentence", "--width", "--theme", "-o"),
    "coref evaluate FILE FILE": ("--json",),
    "coref train NONE -o OUT": ("--epochs", "--margin", "--temperature", "--seed", "--stretch"),
    "train NONE -o OUT": ("--epochs", "-c", "--c", "--learner", "--model", "--labels", "--seed", "--threads", "--runs"),
    "induce NONE -o OUT": ("--states", "--method", "--ridge", "--scale", "--backed-off", "--context", "--seed"),
    "constrain NONE NONE -o OUT": ("--epochs", "--c", "--criterion", "--templates", "--seed"),
    "tune NONE": ("--trials", "--folds", "--seed", "--threads"),
    "parse FILE FILE": ("--format", "--input-format", "--unsure-below", "--threads", "--status", "--marginals"),
}


def settings(folder: Path) -> Draw:
    """Draws of settings in Python: complete, or refused by name."""

    def draw(rng: np.random.Generator) -> str | None:
        kind: Any = pick(rng, KINDS)
        chosen = [pick(rng, fields(kind)) for _ in range(rng.integers(1, 4))]
        kind(**{each.name: _value(rng, kind, each) for each in chosen}).complete()
        return None

    return draw


def _value(rng: np.random.Generator, kind: Any, setting: Field[Any]) -> Any:
    """Mostly a value of the setting's type, which may still not fit."""
    if rng.random() < 0.2:
        return pick(rng, (*VALUES, *NAMES))
    like = [value for value in (*VALUES, *NAMES) if type(value) is type(setting.default)]
    return pick(rng, (setting.default, *choices_of(kind, setting.name), *like))


def commands(folder: Path) -> Draw:
    """Draws of command lines: exit 0, 1 with one sentence, or 2 with a hint; never another exception."""
    good = TINY.read_bytes()
    names = {"FILE": folder / "drawn.conllu", "GOOD": TINY, "NONE": folder / "none.conllu", "OUT": folder / "out"}
    runner = CliRunner()

    def draw(rng: np.random.Generator) -> str | None:
        start = int(rng.integers(len(good)))
        names["FILE"].write_bytes(damaged(rng, good[start : start + 2000]))
        command = pick(rng, tuple(COMMANDS))
        line = [str(names.get(word, word)) for word in command.split()]
        for _ in range(rng.integers(4)):
            line.append(pick(rng, COMMANDS[command]))
            line += [pick(rng, (*NUMBERS, *NAMES, *ODD))] if rng.random() < 0.7 else []
        result = runner.invoke(app, line)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code in (0, 1, 2), f"exit {result.exit_code} of {line}"
        assert result.exit_code == 0 or "error" in result.output.lower(), f"no error is shown by {line}"
        return f"exit {result.exit_code}"

    return draw
