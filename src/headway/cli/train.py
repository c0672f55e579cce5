"""`headway train`: from a treebank to a model file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.atomic import claimed
from headway.cli import options, places
from headway.cli.failures import note, warnings_in_one_line
from headway.cli.progress import training_progress
from headway.cli.signals import if_interrupted
from headway.cli.tables import counted
from headway.errors import CheckpointError, printable
from headway.training.settings import NEURAL, Settings

if TYPE_CHECKING:
    from headway.learning.monitor import Show

EXAMPLES = (
    "headway train train.conllu --dev dev.conllu -o model.headway",
    "headway train train.conllu --dev dev.conllu --model grandsibling -o model.headway",
    "headway train train.conllu --dev dev.conllu --model neural --encoder minilm/ -o model.headway",
    "headway train train.conllu --model neural --teacher large.headway --text plain.conllu -o small.headway",
    "headway train train.conllu --dev dev.conllu --config settings.toml -o model.headway",
    "headway train train.conll.gz --learner loglinear --projective --labels none -o model.headway",
    "headway train few.conllu --text many.conllu --learner loglinear -o model.headway",
    "headway train train.conllu --templates mine.txt --epochs 20 --threads 4 -o model.headway",
    "headway train train.conllu --learner loglinear --shards 4 -o model.headway",
    "headway train train.conllu --learner loglinear --shards 64 --address auto -o model.headway",
)


@options.with_settings(Settings, without=("criterion",))
def train(
    train: options.TrainArgument,
    *,
    output: options.ModelFileOption,
    dev: options.DevOption = None,
    text: options.TextOption = None,
    threads: options.ThreadsOption = 1,
    max_megabytes: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="X", help="Pack the model into a file of at most X megabytes.", show_default="all weights"
        ),
    ] = None,
    checkpoint: options.CheckpointOption = None,
    processes: options.ProcessesOption = None,
    address: options.AddressOption = None,
    config: options.ConfigOption = None,
    settings: dict[str, Any],
) -> None:
    """Train a parser on a treebank.

    Some heads may be unknown ("_"): the parser then learns from the others.

    Ctrl-C is safe: the same command resumes from the checkpoint and repeats nothing that was finished.
    """
    places.require_one_standard_input(train, dev, text)
    places.require_place_for(output, train, dev, text, config, *places.files_in(settings))
    if max_megabytes == 0:
        raise typer.BadParameter("--max-megabytes is 0; expected a number above 0")
    folder = checkpoint_for(output, checkpoint)
    require_trainable(settings, text=text is not None)
    places.require_inputs(train, dev, text)
    from headway.pipeline import Parser

    with resumable(folder) as show, options.workers_at(address, processes) as workers:
        run: dict[str, Any] = {"threads": threads, "checkpoint": folder, "show": show, "workers": workers}
        parser = Parser.train(train, dev, text=text, **run, **settings)
        parser.save(output, max_megabytes=max_megabytes)
    typer.echo(summary(output, parser.model.about))


@contextmanager
def resumable(checkpoint: Path) -> Iterator[Show | None]:
    """Progress of a training that is saved within; afterwards its checkpoint goes. Ctrl-C says how to resume.

    One training at a time has a checkpoint: another that is started meanwhile is refused.
    """
    from headway.learning.checkpoint import CheckpointWarning
    from headway.training.stages import remove_stages

    refusal = CheckpointError(
        f"{checkpoint}: in use by another training; wait for it, or give another -o or --checkpoint"
    )
    with (
        if_interrupted(lambda: _remedy(checkpoint)),
        claimed(checkpoint, refusal),
        warnings_in_one_line(CheckpointWarning),
        training_progress() as show,
    ):
        yield show
    remove_stages(checkpoint)


def require_trainable(settings: dict[str, Any], *, text: bool) -> None:
    """Refuse an unknown model, and settings that cannot be used together, before anything is read."""
    from headway.training import trainers

    chosen = Settings(**settings)
    with options.refusing_settings():
        chosen.require_trees(text=text)
        trainers.require_trainable(chosen.complete())


def checkpoint_for(output: Path, asked: Path | None) -> Path:
    """The folder of a training's checkpoint; a note says if training resumes from it."""
    folder = asked or output.with_name(f"{output.name}.checkpoint")
    if folder.exists() and not folder.is_dir():
        raise typer.BadParameter(f"the checkpoint {folder} is a file; give the name of a folder")
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir():
        raise typer.BadParameter(f"the checkpoint {folder} cannot be a folder, as {there} is a file; give another")
    if folder.is_dir() and any(folder.iterdir()):
        note(f"resuming from {folder}")
    return folder


def summary(output: Path, about: Mapping[str, Any], rules: int | None = None) -> str:
    """What was trained: the model, what its pruner keeps if it has one, and the signature of the figures.

    `rules` is how many rules it was trained with, if any. A model that records less has a shorter summary.
    """
    settings, data = about.get("settings", {}), about.get("train", {})
    name = f"{printable(str(output))}: {settings.get('model', 'a')} model"
    lines = [", ".join([name, *_figures(settings, about, rules)])]
    lines += _pruning(about.get("pruning")) + _known(data.get("heads"))
    signed = [f"headway {about['headway']}"] if "headway" in about else []
    signed += [f"seed {settings['seed']}"] if "seed" in settings else []
    signed += [f"{counted(data['sentences'], 'sentence')} sha256 {data['sha256']}"] if "sha256" in data else []
    return "\n".join([*lines, ", ".join(signed)] if signed else lines)


def _figures(settings: Mapping[str, Any], about: Mapping[str, Any], rules: int | None) -> list[str]:
    if "history" not in about:
        return []
    best = about["best_pass"]
    dev = next(entry["dev"] for entry in about["history"] if entry["pass"] == best)
    given = [] if rules is None else [counted(rules, "rule")]
    score = [] if dev is None else [f"dev UAS {dev:.2f} without punctuation"]
    c = [] if settings["model"] == NEURAL else [f"C {settings['c']:g}"]
    return [settings["learner"], *given, *c, f"pass {best} of {settings['epochs']}", *score]


def _pruning(found: Mapping[str, Any] | None) -> list[str]:
    if found is None:
        return []
    left = f"{found['recall']:.2f}% of the correct heads and {found['heads_per_word']:.1f} heads per word"
    return [f"the pruner keeps {left} of the {found['measured_on']} data"]


def _known(heads: Mapping[str, int] | None) -> list[str]:
    return [] if heads is None else [f"known heads: {heads['known']:,} of {heads['words']:,}"]


def _remedy(checkpoint: Path) -> str:
    """What to do after an interruption."""
    if checkpoint.is_dir() and any(checkpoint.iterdir()):
        return f"; the same command resumes from the checkpoint {checkpoint}"
    return "; there is no checkpoint yet, so the same command starts over"
