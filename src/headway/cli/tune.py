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
    "headway tune few.conllu --learner loglinear --unlabelled-data many.conllu --entropy-weight 0.1",
    "headway tune train.conllu --dev dev.conllu -o model.headway",
)

_OPTIONS = {"threshold": "--prune-threshold", "max_heads": "--max-heads", "entropy_order": "--entropy-order"}


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
    unlabelled_data: options.UnlabelledDataOption = None,
    entropy_weight: Annotated[
        list[float] | None,
        typer.Option(metavar="W", help="A weight of that text's entropy to try; may be repeated.", show_default="some"),
    ] = None,
    entropy_order: options.EntropyOrderOption = None,
    patience: options.PatienceOption = 10,
    seed: options.SeedOption = 0,
    trainings: options.TrainingsOption = 1,
    threads: options.ThreadsOption = 1,
    json: options.JsonOption = False,
) -> None:
    """Choose C, passes and decoding on held-out data.

    Every C is tried, with --unlabelled-data every weight of its entropy too; the best pass on the held-out sentences
    counts, decoded as trained and projectively.
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
        unlabelled_data=unlabelled_data,
        entropy_weight=entropy_weight or None,
        entropy_order=entropy_order,
    )
    require_one_standard_input(train, dev, unlabelled_data)
    if output is not None:
        options.require_place_for(output)
    from headway.pipeline import Parser
    from headway.treebank import read_treebank
    from headway.tuning import tune as run

    with (
        SummedFile(train) as train_file,
        summed_or_none(dev) as dev_file,
        summed_or_none(unlabelled_data) as text_file,
    ):
        sentences = list(read_treebank(train_file))
        development = None if dev_file is None else list(read_treebank(dev_file))
        text = None if text_file is None else list(read_treebank(text_file))
    tried: dict[str, Any] = {"entropy_weights": entropy_weight} if entropy_weight else {}
    with training_progress() as show:
        given: dict[str, Any] = {"text": text, "threads": threads, "show": show}
        tuning = run(sentences, development, grid=c or None, held_out=held_out, **given, **tried, **settings)
        if output is not None:
            parser = Parser.train(sentences, development, **given, **dataclasses.asdict(tuning.settings))
            parser.with_projective(tuning.projective).save(output)

    chosen_from = {**settings, **tried, "c": c or None, "held_out": held_out}
    signed = signature(seed, chosen_from, (train_file, dev_file, text_file))
    if json:
        saved = None if output is None else str(output)
        print_json({"signature": signed, **_as_json(tuning), "model": saved})
        return
    typer.echo(_report(tuning, with_text=text is not None))
    typer.echo(f"\nchosen: {_command(train, dev, unlabelled_data, tuning)}")
    if output is not None:
        typer.echo(f"written: {output}")
    typer.echo(signature_line(signed))


def _as_json(tuning: Tuning) -> dict[str, Any]:
    return {
        "settings": dataclasses.asdict(tuning.settings),
        "projective": tuning.projective,
        "trials": [dataclasses.asdict(trial) for trial in tuning.trials],
    }


def _report(tuning: Tuning, *, with_text: bool) -> str:
    entropy = ["entropy weight"] * with_text
    header = ["C", *entropy, "decoding", "passes", "UAS", "seconds"]
    return table([header, *(_row(trial, with_text=with_text) for trial in tuning.trials)])


def _row(trial: Trial, *, with_text: bool) -> list[str]:
    return [
        f"{trial.c:g}",
        *[f"{trial.entropy_weight:g}"] * with_text,
        _decoding(trial.projective),
        str(trial.epochs),
        f"{trial.uas:.2f}",
        f"{trial.seconds:.1f}",
    ]


def _decoding(projective: bool) -> str:
    return "projective" if projective else "non-projective"


def _command(train: str, dev: str | None, text: str | None, tuning: Tuning) -> str:
    """The command that trains what was chosen; what is the default anyway is left out."""
    from headway.training import Settings

    chosen, default = tuning.settings, Settings()
    words = ["headway", "train", train, "--learner", chosen.learner, "--c", f"{chosen.c}"]
    words += ["--epochs", str(chosen.epochs)]
    if dev is not None:
        words += ["--dev", dev]
    if text is not None:
        words += ["--unlabelled-data", text, "--entropy-weight", f"{chosen.entropy_weight}"]
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
        "entropy_order",
        "patience",
        "seed",
        "trainings",
    ):
        value = getattr(chosen, name)
        words += [] if value == getattr(default, name) else [_OPTIONS.get(name, f"--{name}"), str(value)]
    decoding = "" if tuning.projective == chosen.projective else f"; parse with --{_decoding(tuning.projective)}"
    return f"{shlex.join(words)} -o MODEL{decoding}"
