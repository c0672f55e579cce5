"""Options that several commands share, and the settings they make.

The names of models and learners, and the pruner's defaults, are written here once more, as importing them
would load the numerical libraries before a help text is shown; a test keeps both in step.
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
    SIBLING = "sibling"
    GRANDSIBLING = "grandsibling"


class Learner(StrEnum):
    """Ways to train one on trees."""

    PERCEPTRON = "perceptron"
    MARGIN = "margin"
    LOGLINEAR = "loglinear"
    EG = "eg"
    EG_LOGLINEAR = "eg-loglinear"
    EXPECTED_LOSS = "expected-loss"


class Labels(StrEnum):
    """When labels are chosen."""

    AFTER = "after"
    JOINT = "joint"


class Tags(StrEnum):
    """Tags a parser is trained on."""

    PREDICTED = "predicted"
    GOLD = "gold"


class Optimiser(StrEnum):
    """How the log-linear and the expected-loss learner descend."""

    LBFGS = "lbfgs"
    CG = "cg"
    ADAGRAD = "adagrad"
    ADAM = "adam"


class Criterion(StrEnum):
    """How far an expectation is from its target."""

    SQUARED = "squared"
    KL = "kl"


class Decoding(StrEnum):
    """What a higher-order model is decoded with while it is trained."""

    AUTOMATA = "automata"
    DUAL = "dual"


class Method(StrEnum):
    """How a grammar is induced."""

    SPECTRAL = "spectral"
    EM = "em"
    DET = "det"


class Lexical(StrEnum):
    """Lexicalised grammars beside the one over tags."""

    LEX = "LEX"
    LEX_F = "LEX+F"
    LEX_FCP = "LEX+FCP"


class Column(StrEnum):
    """Where the tags are."""

    XPOS = "xpos"
    UPOS = "upos"


PRUNE_THRESHOLD, MAX_HEADS = 1e-3, 20

TrainArgument = Annotated[
    str, typer.Argument(metavar="TRAIN", help="The training treebank: CoNLL-U or CoNLL-X, also .gz or .xz; - is stdin.")
]
DevOption = Annotated[
    str | None, typer.Option(metavar="DEV", help="Development treebank: choose the best pass, stop early, calibrate.")
]
ModelOption = Annotated[
    Model,
    typer.Option(
        help="What is scored: each arc; sibling: also neighbouring children of a head; grandsibling: also their "
        "grandparents."
    ),
]
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
    str,
    typer.Option(
        metavar="NAME|FILE", help="Feature templates: standard, mcdonald2005, mcdonald2006, rules, or a file."
    ),
]
TagsOption = Annotated[
    Tags, typer.Option(help="Train a tagger too, and the parser on tags like its own; or on the treebank's tags.")
]
ClustersOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Word clusters for the features: a line has bits, a tab and a word."),
]
PartsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Templates of siblings and grandparents: sibling, grandsibling, or a file.",
        show_default="by model",
    ),
]
DecodingOption = Annotated[
    Decoding,
    typer.Option(help="While a higher-order model is trained: each head automaton alone, or dual decomposition."),
]
PruneThresholdOption = Annotated[
    float, typer.Option(metavar="X", help="Of a higher-order model: leave out heads below X times a word's likeliest.")
]
MaxHeadsOption = Annotated[
    int, typer.Option(min=1, metavar="N", help="Of a higher-order model: leave a word no more than N heads.")
]
UnlabelledDataOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="More sentences, without trees, that the loglinear learner is to be sure of."),
]
EntropyOrderOption = Annotated[
    float | None,
    typer.Option(metavar="A", help="Order of that entropy: 1 Shannon's, inf the best tree's.", show_default="1"),
]
COption = Annotated[
    float | None, typer.Option(metavar="X", help="The margin, or the data's weight.", show_default="by learner")
]
CheckpointOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Where to go on after Ctrl-C.", show_default="MODEL.checkpoint"),
]
EpochsOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Passes over the data, at most.", show_default="by learner")
]
OptimiserOption = Annotated[Optimiser, typer.Option(help="Of the learners loglinear and expected-loss.")]
PatienceOption = Annotated[
    int, typer.Option(min=1, metavar="N", help="Passes without a better dev score before training stops.")
]
SeedOption = Annotated[int, typer.Option(min=0, metavar="S", help="Seed of everything random.")]
TrainingsOption = Annotated[
    int, typer.Option(min=1, metavar="N", help="Average N trainings, which differ in the order of the sentences.")
]
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
    tags: Tags,
    clusters: str | None,
    templates: str,
    parts: str | None,
    decoding: Decoding,
    prune_threshold: float,
    max_heads: int,
    epochs: int | None,
    optimiser: Optimiser,
    patience: int,
    seed: int,
    trainings: int,
    unlabelled_data: str | None,
    entropy_weight: object,
    entropy_order: float | None,
) -> dict[str, Any]:
    """The fields of `headway.training.Settings`, but for C and the weight of the entropy."""
    entropy = {"--entropy-weight": entropy_weight, "--entropy-order": entropy_order}
    for name, value in entropy.items():
        if unlabelled_data is None and value is not None:
            raise typer.BadParameter(f"{name} is about unlabelled text; give some with --unlabelled-data")
    if unlabelled_data is not None and learner is not Learner.LOGLINEAR:
        raise typer.BadParameter(
            f"{learner.value} learns from trees alone; with --unlabelled-data, give --learner loglinear"
        )
    if unlabelled and labels is not None:
        raise typer.BadParameter("--unlabelled and --labels exclude each other; give one of them")
    if model is Model.ARC and parts is not None:
        raise typer.BadParameter("the arc model has no parts beside arcs; give --model sibling or grandsibling")
    if not 0 < prune_threshold <= 1:
        raise typer.BadParameter(f"--prune-threshold is {prune_threshold}; expected a number above 0, at most 1")
    return {
        "model": model.value,
        "learner": learner.value,
        "projective": projective,
        "single_root": not multi_root,
        "labels": "none" if unlabelled else labels and labels.value,
        "tags": tags.value,
        "clusters": clusters,
        "templates": templates,
        "parts": parts,
        "decoding": decoding.value,
        "threshold": prune_threshold,
        "max_heads": max_heads,
        "epochs": epochs,
        "optimiser": optimiser.value,
        "patience": patience,
        "seed": seed,
        "trainings": trainings,
        **({} if entropy_order is None else {"entropy_order": entropy_order}),
    }


def require_place_for(path: Path, what: str = "a model") -> None:
    """What is written must have somewhere to go before hours are spent on it."""
    if str(path) == "-" or path.is_dir():
        raise typer.BadParameter(f"{what} cannot be written to {path}; give a file name")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise typer.BadParameter(f"the folder of {path} does not exist; create it first")
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"the folder of {path} cannot be written to; choose another")
