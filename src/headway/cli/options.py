"""Options that several commands share, and the settings they make.

The names of learners and formats are written here once more, as importing them would load the numerical libraries
before a help text is shown; a test keeps both in step.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Model(StrEnum):
    """Models that can be trained."""

    ARC = "arc"


class Learner(StrEnum):
    """Ways to train one."""

    PERCEPTRON = "perceptron"
    MARGIN = "margin"
    LOGLINEAR = "loglinear"
    EG = "eg"
    EG_LOGLINEAR = "eg-loglinear"


class Labels(StrEnum):
    """When labels are chosen."""

    AFTER = "after"
    JOINT = "joint"


class Optimiser(StrEnum):
    """How the log-linear learner descends."""

    LBFGS = "lbfgs"
    CG = "cg"
    ADAGRAD = "adagrad"
    ADAM = "adam"


class Format(StrEnum):
    """Formats of a treebank."""

    CONLLU = "conllu"
    CONLLX = "conllx"


TrainArgument = Annotated[
    str, typer.Argument(metavar="TRAIN", help="The training treebank: CoNLL-U or CoNLL-X, also .gz or .xz; - is stdin.")
]
DevOption = Annotated[
    str | None, typer.Option(metavar="DEV", help="Development treebank: choose the best pass, stop early, calibrate.")
]
ModelOption = Annotated[Model, typer.Option(help="The model: arc scores each arc on its own.")]
LearnerOption = Annotated[Learner, typer.Option(help="How the weights are found.")]
ProjectiveOption = Annotated[bool, typer.Option("--projective", help="Projective trees only.")]
MultiRootOption = Annotated[bool, typer.Option("--multi-root", help="Trees may have several words on the root.")]
UnlabelledOption = Annotated[bool, typer.Option("--unlabelled", help="Heads only, no labels.")]
LabelsOption = Annotated[
    Labels | None,
    typer.Option(
        help="Labels after the tree or jointly with it.", show_default="after for the perceptrons, joint for the others"
    ),
]
TemplatesOption = Annotated[
    str, typer.Option(metavar="NAME|FILE", help="Feature templates: standard, mcdonald2005, mcdonald2006, or a file.")
]
EpochsOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Passes over the data, at most.", show_default="by learner")
]
OptimiserOption = Annotated[Optimiser, typer.Option(help="Of the loglinear learner.")]
PatienceOption = Annotated[
    int, typer.Option(min=1, metavar="N", help="Passes without a better dev score before training stops.")
]
SeedOption = Annotated[int, typer.Option(min=0, metavar="S", help="Seed of everything random.")]
ThreadsOption = Annotated[int, typer.Option(min=1, metavar="T", help="Threads to use.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
SkipBadOption = Annotated[bool, typer.Option("--skip-bad", help="Leave malformed sentences out, and count them.")]


def settings(
    *,
    model: Model,
    learner: Learner,
    projective: bool,
    multi_root: bool,
    unlabelled: bool,
    labels: Labels | None,
    templates: str,
    epochs: int | None,
    optimiser: Optimiser,
    patience: int,
    seed: int,
) -> dict[str, Any]:
    """The fields of `headway.training.Settings`, but for C."""
    if unlabelled and labels is not None:
        raise typer.BadParameter("--unlabelled and --labels exclude each other; give one of them")
    return {
        "model": model.value,
        "learner": learner.value,
        "projective": projective,
        "single_root": not multi_root,
        "labels": "none" if unlabelled else labels and labels.value,
        "templates": templates,
        "epochs": epochs,
        "optimiser": optimiser.value,
        "patience": patience,
        "seed": seed,
    }


def require_place_for(path: Path) -> None:
    """A model must have somewhere to go before hours are spent on it."""
    if str(path) == "-" or path.is_dir():
        raise typer.BadParameter(f"a model cannot be written to {path}; give a file name")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise typer.BadParameter(f"the folder of {path} does not exist; create it first")
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"the folder of {path} cannot be written to; choose another")
