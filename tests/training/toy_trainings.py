"""Trainings on the toy language: every learner with settings that are quick, and rules that describe the language."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headway.features.rules import Rule, Rules
from headway.learning.monitor import Monitor, Show
from headway.parallel import SERIAL, Workers
from headway.training.arc_trainer import ArcPreparation, prepare_arcs
from headway.training.data import TrainingData, checksum
from headway.training.preparation import fit
from headway.training.settings import Settings
from headway.training.stages import Checkpoint, Run, fingerprint
from headway.treebank import Sentence

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

RULES = Rules(
    (
        Rule(("N",), ("D", "J"), "left", (1, 3), (0.95, 1.0)),
        Rule(("V",), ("N",), None, None, (0.95, 1.0)),
        Rule(("V",), ("A", "S"), "right", None, (0.9, 1.0)),
        Rule(("ROOT",), ("V",), None, None, (0.95, 1.0)),
    )
)


def settings_for(name: str, **more: Any) -> Settings:
    """The complete settings of one of these learners."""
    return Settings(**{**LEARNERS[name], **more}).complete()


def trained(
    settings: Settings,
    text: Sequence[Sentence],
    dev: Sequence[Sentence] | None = None,
    checkpoint: Path | None = None,
    show: Show | None = None,
    workers: Workers | None = None,
) -> Monitor:
    """The stage that fits the weights of an arc model, and nothing else of its training."""
    data = TrainingData(text, dev)
    signed = fingerprint(settings, checksum(text), checksum(dev or []))
    run = Run(SERIAL, show, None if checkpoint is None else Checkpoint(checkpoint, signed), workers)
    return fit(prepare_arcs(data, settings, run), data, settings, run)


def prepared(
    settings: Settings,
    train: Sequence[Sentence],
    dev: Sequence[Sentence] | None = None,
    text: Sequence[Sentence] = (),
    show: Show | None = None,
) -> ArcPreparation:
    """An arc model made ready to be trained."""
    return prepare_arcs(TrainingData(train, dev, text), settings, Run(show=show))


def fitted(made: ArcPreparation, settings: Settings) -> Monitor:
    """What was prepared, trained."""
    return fit(made, made.data, settings, Run())
