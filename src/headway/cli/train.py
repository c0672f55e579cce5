"""`headway train`: from a treebank to a model file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from headway.cli import options
from headway.cli.failures import interrupted, note, require_one_standard_input
from headway.cli.progress import training_progress
from headway.cli.tables import printable

EXAMPLES = (
    "headway train train.conllu --dev dev.conllu -o model.headway",
    "headway train train.conllu --dev dev.conllu --model grandsibling -o model.headway",
    "headway train train.conll.gz --learner loglinear --projective --unlabelled -o model.headway",
    "headway train few.conllu --unlabelled-data many.conllu --learner loglinear -o model.headway",
    "headway train train.conllu --templates mine.txt --epochs 20 --threads 4 -o model.headway",
)


def train(
    train: options.TrainArgument,
    *,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="MODEL", help="The model file to write.")],
    dev: options.DevOption = None,
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
    c: options.COption = None,
    optimiser: options.OptimiserOption = options.Optimiser.LBFGS,
    unlabelled_data: options.UnlabelledDataOption = None,
    entropy_weight: Annotated[
        float | None, typer.Option(metavar="W", help="Weight of that text's entropy beside C.", show_default="0.03")
    ] = None,
    entropy_order: options.EntropyOrderOption = None,
    patience: options.PatienceOption = 10,
    seed: options.SeedOption = 0,
    trainings: options.TrainingsOption = 1,
    threads: options.ThreadsOption = 1,
    megabytes: Annotated[
        float | None,
        typer.Option(min=0, metavar="X", help="Pack the model into a file of this size.", show_default="all weights"),
    ] = None,
    checkpoint: options.CheckpointOption = None,
) -> None:
    """Train a parser on a treebank.

    Words without a head ("_") are learnt from as far as the others' heads tell.

    Ctrl-C is safe: the same command goes on from the checkpoint.
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
        entropy_weight=entropy_weight,
        entropy_order=entropy_order,
    )
    if entropy_weight is not None:
        settings["entropy_weight"] = entropy_weight
    require_one_standard_input(train, dev, unlabelled_data)
    options.require_place_for(output)
    state = checkpoint or output.with_name(f"{output.name}.checkpoint")
    from headway.pipeline import Parser

    if state.exists():
        note(f"going on from {state}")
    try:
        with training_progress() as show:
            parser = Parser.train(
                train, dev, text=unlabelled_data, threads=threads, checkpoint=state, show=show, c=c, **settings
            )
    except KeyboardInterrupt:
        raise interrupted(remedy(state)) from None
    parser.save(output, megabytes=megabytes)
    state.unlink(missing_ok=True)
    typer.echo(summary(output, parser.model.about))


def summary(output: Path, about: Mapping[str, Any], rules: int | None = None) -> str:
    """What was trained: the model, what its pruner leaves where there is one, and the signature of its figures.

    `rules` is how many it was trained with, if with any.
    """
    settings, data, best = about["settings"], about["train"], about["best_pass"]
    passes = f"pass {best} of {settings['epochs']}"
    dev = next(entry["dev"] for entry in about["history"] if entry["pass"] == best)
    told = "" if rules is None else f"{rules} rule{'s' * (rules != 1)}, "
    score = "" if dev is None else f", dev UAS {dev:.2f} without punctuation"
    return (
        f"{printable(str(output))}: {settings['model']} model, {settings['learner']}, {told}C {settings['c']:g}, "
        f"{passes}{score}\n{_pruning(about.get('pruning'))}{_known(data.get('heads'))}"
        f"headway {about['headway']}, seed {settings['seed']}, {data['sentences']} sentences sha256 {data['sha256']}"
    )


def _pruning(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    left = f"{found['recall']:.2f}% of the right heads and {found['heads_per_word']:.1f} heads a word"
    return f"pruning leaves {left} of the {found['measured_on']} data\n"


def _known(heads: Mapping[str, int] | None) -> str:
    return "" if heads is None else f"known heads: {heads['known']:,} of {heads['words']:,}\n"


def remedy(checkpoint: Path) -> str:
    """What to do after an interruption."""
    if checkpoint.exists():
        return f"; the checkpoint is {checkpoint}, the same command goes on from there"
    return "; there was no checkpoint yet, the same command starts again"
