"""`headway tune`: choose C, the number of passes and the decoding on held-out data (koo2007's protocol).

Of a network, the learning rate and the dropout are chosen instead of C.
"""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.cli import options, places
from headway.cli.progress import training_progress
from headway.cli.signature import SummedFile, print_json, signature, signature_line, summed_or_none
from headway.cli.tables import table
from headway.cli.train import require_trainable
from headway.declared import Option
from headway.training.settings import NEURAL, Settings

if TYPE_CHECKING:
    from headway.training.tuning import Trial, Tuning

EXAMPLES = (
    "headway tune train.conllu",
    "headway tune train.conllu --learner loglinear --c 0.01 --c 0.1 --c 1 --held-out 0.2",
    "headway tune train.conllu --model sibling --c 100 --c 300 --epochs 10",
    "headway tune few.conllu --learner loglinear --text many.conllu --entropy-weight 0.1",
    "headway tune train.conllu --dev dev.conllu -o model.headway",
    "headway tune train.conllu --learner loglinear --c 0.01 --c 0.1 --c 1 --processes 3",
    "headway tune train.conllu --model neural --rate 1e-3 --rate 2e-3 --dropout 0.33",
)

_OF_NETWORKS = ("rate", "encoder_rate", "dropout")


@options.with_settings(Settings, without=("criterion", "c", "entropy_weight", "teacher", *_OF_NETWORKS))
def tune(
    train: options.TrainArgument,
    *,
    dev: Annotated[
        str | None, typer.Option(metavar="DEV", help="Choose on this treebank instead of held-out sentences.")
    ] = None,
    held_out: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of TRAIN to hold out if there is no --dev.")
    ] = 0.1,
    c: Annotated[
        list[float] | None,
        typer.Option(metavar="X", help="A value of C to try; may be repeated.", show_default="a grid for each learner"),
    ] = None,
    entropy_weight: Annotated[
        list[float] | None,
        typer.Option(
            metavar="W", help="A weight of the text's entropy to try; may be repeated.", show_default="a grid"
        ),
    ] = None,
    rate: Annotated[
        list[float] | None,
        typer.Option(
            metavar="X", min=0, help="A learning rate of a network to try; may be repeated.", show_default="a grid"
        ),
    ] = None,
    encoder_rate: Annotated[
        list[float] | None,
        typer.Option(
            metavar="X", help="A learning rate of a pretrained encoder to try; may be repeated.", show_default="a grid"
        ),
    ] = None,
    dropout: Annotated[
        list[float] | None,
        typer.Option(metavar="X", min=0, help="A dropout of a network to try; may be repeated.", show_default="a grid"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="MODEL",
            help="Train a model on all of TRAIN with the chosen settings, and write it.",
        ),
    ] = None,
    text: options.TextOption = None,
    threads: options.ThreadsOption = 1,
    json: options.JsonOption = False,
    processes: options.ProcessesOption = None,
    address: options.AddressOption = None,
    settings: dict[str, Any],
) -> None:
    """Choose C, passes and decoding on held-out data.

    Tries every C (of networks every rate and dropout) and, with --text, every weight of the text's entropy. Each is
    scored by its best pass on the held-out sentences, decoded as trained and, unless it is a network, projectively.
    """
    if entropy_weight and text is None:
        raise typer.BadParameter("entropy_weight is about text beside the trees; give some with --text FILE")
    lists = {"rate": rate, "encoder_rate": encoder_rate, "dropout": dropout}
    network_grid = {name: values for name, values in lists.items() if values}
    if c and settings["model"] == NEURAL:
        raise typer.BadParameter("a network has no C to tune; give values of --rate, --encoder-rate or --dropout")
    if network_grid and settings["model"] != NEURAL:
        raise typer.BadParameter("rates and dropouts are tuned for networks; give --model neural with them")
    places.require_one_standard_input(train, dev, text)
    if output is not None:
        places.require_place_for(output, train, dev, text, *places.files_in(settings))
    require_trainable(settings, text=text is not None)
    places.require_inputs(train, dev, text)
    from headway.pipeline import Parser
    from headway.training.tuning import tune as run
    from headway.treebank import read_treebank

    with SummedFile(train) as train_file, summed_or_none(dev) as dev_file, summed_or_none(text) as text_file:
        sentences = list(read_treebank(train_file))
        development = None if dev_file is None else list(read_treebank(dev_file))
        more = None if text_file is None else list(read_treebank(text_file))
    tried: dict[str, Any] = {"entropy_weights": entropy_weight} if entropy_weight else {}
    tried |= {"network_grid": network_grid} if network_grid else {}
    with training_progress() as show, options.workers_at(address, processes) as workers:
        given: dict[str, Any] = {"text": more, "threads": threads, "show": show, "workers": workers}
        tuning = run(sentences, development, grid=c or None, held_out=held_out, **given, **tried, **settings)
        if output is not None:
            parser = Parser.train(sentences, development, **given, **dataclasses.asdict(tuning.settings))
            parser.with_projective(tuning.projective).save(output)

    chosen_from = {**settings, **tried, "c": c or None, "held_out": held_out}
    signed = signature(settings["seed"], chosen_from, (train_file, dev_file, text_file))
    if json:
        saved = None if output is None else str(output)
        print_json({"signature": signed, **_as_json(tuning), "model": saved})
        return
    typer.echo(_report(tuning, with_text=more is not None))
    typer.echo(f"\nchosen: {_command(train, dev, text, tuning)}")
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
    names = [name.replace("_", " ") for name in _of_network(tuning)] or ["C"]
    header = [*names, *entropy, "decoding", "passes", "UAS", "seconds"]
    return table([header, *(_row(trial, with_text=with_text) for trial in tuning.trials)])


def _row(trial: Trial, *, with_text: bool) -> list[str]:
    return [
        *(f"{value:g}" for value in trial.network.values() or (trial.c,)),
        *[f"{trial.entropy_weight:g}"] * with_text,
        _decoding(trial.projective),
        str(trial.epochs),
        f"{trial.uas:.2f}",
        f"{trial.seconds:.1f}",
    ]


def _of_network(tuning: Tuning) -> tuple[str, ...]:
    """The settings of a network that were tried."""
    return tuple(tuning.trials[0].network) if tuning.trials else ()


def _decoding(projective: bool) -> str:
    return "projective" if projective else "non-projective"


def _command(train: str, dev: str | None, text: str | None, tuning: Tuning) -> str:
    """The command that trains with the chosen settings; defaults are omitted."""
    chosen = tuning.settings
    default = dataclasses.replace(Settings(learner=chosen.method, model=chosen.model).complete(), model=Settings.model)
    words = ["headway", "train", train]
    for name, file in (("--dev", dev), ("--text", text)):
        words += [] if file is None else [name, file]
    for each in dataclasses.fields(Settings):
        value = getattr(chosen, each.name)
        asked = each.name in ("learner", "epochs", "entropy_weight", *(_of_network(tuning) or ("c",)))
        if value is not None and (asked or value != getattr(default, each.name)):
            words += _words(each.name, value, each.metadata["option"])
    as_trained = tuning.projective == chosen.projective
    decoding = "" if as_trained else f"; parse with --{_decoding(tuning.projective)}"
    return f"{shlex.join(words)} -o MODEL{decoding}"


def _words(name: str, value: Any, option: Option) -> list[str]:
    if isinstance(value, bool):
        return [f"--{option.off or name}"]
    return [f"--{name.replace('_', '-')}", str(value)]
