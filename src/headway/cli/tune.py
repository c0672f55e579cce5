"""`headway tune`: choose C, the number of passes and the decoding on held-out data (koo2007's protocol)."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.cli import options
from headway.cli.failures import require_one_standard_input
from headway.cli.progress import training_progress
from headway.cli.signature import SummedFile, print_json, signature, signature_line, summed_or_none
from headway.cli.tables import table

if TYPE_CHECKING:
    from headway.tuning import Trial, Tuning

EXAMPLES = (
    "headway tune train.conllu",
    "headway tune train.conllu --learner loglinear --c 0.01 --c 0.1 --c 1 --held-out 0.2",
    "headway tune train.conllu --model sibling --c 100 --c 300 --epochs 10",
    "headway tune train.conllu --dev dev.conllu -o model.headway",
)

_OPTIONS = {"threshold": "--prune-threshold", "max_heads": "--max-heads"}


def tune(
    train: options.TrainArgument,
    *,
    dev: Annotated[
        str | None, typer.Option(metavar="DEV", help="Choose on this treebank rather than on held-out sentences.")
    ] = None,
    held_out: Annotated[
        float, typer.Option(metavar="SHARE", help="The share of TRAIN to hold out, without --dev.")
    ] = 0.1,
    c: Annotated[
        list[float] | None,
        typer.Option(metavar="X", help="A value to try; may be repeated.", show_default="a grid by learner"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="MODEL", help="Train a model on all of TRAIN as chosen, and write it."),
    ] = None,
    model: options.ModelOption = options.Model.ARC,
    learner: options.LearnerOption = options.Learner.MARGIN,
    projective: options.ProjectiveOption = False,
    multi_root: options.MultiRootOption = False,
    unlabelled: options.UnlabelledOption = False,
    labels: options.LabelsOption = None,
    tags: options.TagsOption = options.Tags.PREDICTED,
    clusters: options.ClustersOption = None,
    templates: options.TemplatesOption = "standard",
    parts: options.PartsOption = None,
    decoding: options.DecodingOption = options.Decoding.AUTOMATA,
    prune_threshold: options.PruneThresholdOption = options.PRUNE_THRESHOLD,
    max_heads: options.MaxHeadsOption = options.MAX_HEADS,
    epochs: options.EpochsOption = None,
    optimiser: options.OptimiserOption = options.Optimiser.LBFGS,
    patience: options.PatienceOption = 10,
    seed: options.SeedOption = 0,
    trainings: options.TrainingsOption = 1,
    threads: options.ThreadsOption = 1,
    json: options.JsonOption = False,
) -> None:
    """Choose C, passes and decoding on held-out data.

    Every C is tried; the best pass on the held-out sentences counts, decoded as trained and projectively.
    """
    settings = options.settings(
        model=model,
        learner=learner,
        projective=projective,
        multi_root=multi_root,
        unlabelled=unlabelled,
        labels=labels,
        tags=tags,
        clusters=clusters,
        templates=templates,
        parts=parts,
        decoding=decoding,
        prune_threshold=prune_threshold,
        max_heads=max_heads,
        epochs=epochs,
        optimiser=optimiser,
        patience=patience,
        seed=seed,
        trainings=trainings,
    )
    require_one_standard_input(train, dev)
    if output is not None:
        options.require_place_for(output)
    from headway.pipeline import Parser
    from headway.treebank import read_treebank
    from headway.tuning import tune as run

    with SummedFile(train) as train_file, summed_or_none(dev) as dev_file:
        sentences = list(read_treebank(train_file))
        development = None if dev_file is None else list(read_treebank(dev_file))
    with training_progress() as show:
        tuning = run(sentences, development, grid=c or None, held_out=held_out, threads=threads, show=show, **settings)
        if output is not None:
            chosen = dataclasses.asdict(tuning.settings)
            parser = Parser.train(sentences, development, threads=threads, show=show, **chosen)
            parser.with_projective(tuning.projective).save(output)

    signed = signature(seed, {**settings, "c": c or None, "held_out": held_out}, (train_file, dev_file))
    if json:
        saved = None if output is None else str(output)
        print_json({"signature": signed, **_as_json(tuning), "model": saved})
        return
    typer.echo(_report(tuning))
    typer.echo(f"\nchosen: {_command(train, dev, tuning)}")
    if output is not None:
        typer.echo(f"written: {output}")
    typer.echo(signature_line(signed))


def _as_json(tuning: Tuning) -> dict[str, Any]:
    return {
        "settings": dataclasses.asdict(tuning.settings),
        "projective": tuning.projective,
        "trials": [dataclasses.asdict(trial) for trial in tuning.trials],
    }


def _report(tuning: Tuning) -> str:
    header = ["C", "decoding", "passes", "UAS", "seconds"]
    return table([header, *(_row(trial) for trial in tuning.trials)])


def _row(trial: Trial) -> list[str]:
    return [
        f"{trial.c:g}",
        _decoding(trial.projective),
        str(trial.epochs),
        f"{trial.uas:.2f}",
        f"{trial.seconds:.1f}",
    ]


def _decoding(projective: bool) -> str:
    return "projective" if projective else "non-projective"


def _command(train: str, dev: str | None, tuning: Tuning) -> str:
    """The command that trains what was chosen; what is the default anyway is left out."""
    from headway.training import Settings

    chosen, default = tuning.settings, Settings()
    words = ["headway", "train", train, "--learner", chosen.learner, "--c", f"{chosen.c}"]
    words += ["--epochs", str(chosen.epochs)]
    if dev is not None:
        words += ["--dev", dev]
    if chosen.projective:
        words += ["--projective"]
    if not chosen.single_root:
        words += ["--multi-root"]
    if chosen.labels is not None:
        words += ["--unlabelled"] if chosen.labels == "none" else ["--labels", chosen.labels]
    if chosen.parts not in (None, chosen.model):
        words += ["--parts", str(chosen.parts)]
    for name in (
        "model",
        "tags",
        "clusters",
        "templates",
        "decoding",
        "threshold",
        "max_heads",
        "optimiser",
        "patience",
        "seed",
        "trainings",
    ):
        value = getattr(chosen, name)
        words += [] if value == getattr(default, name) else [_OPTIONS.get(name, f"--{name}"), str(value)]
    decoding = "" if tuning.projective == chosen.projective else f"; parse with --{_decoding(tuning.projective)}"
    return f"{shlex.join(words)} -o MODEL{decoding}"
