"""All commands together."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from headway import __version__
from headway.cli import (
    annotate,
    constrain,
    coref,
    draw,
    evaluate,
    induce,
    info,
    models,
    package,
    parse,
    parse_corpus,
    reproduce,
    serve,
    train,
    tune,
    warm_up,
)
from headway.cli.failures import in_one_sentence


class _Commands(TyperGroup):
    """Runs a command, and reports any failure in one sentence."""

    def make_context(self, *args: Any, **keywords: Any) -> Any:
        with in_one_sentence():  # here, --help and --version print
            return super().make_context(*args, **keywords)

    def invoke(self, ctx: Any) -> Any:
        with in_one_sentence():
            return super().invoke(ctx)


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help is faster, and can be piped
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _examples(*lines: str) -> str:
    """Examples below a help text; the control character keeps the lines from being wrapped."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headway {__version__}")
        raise typer.Exit


@app.callback(
    epilog=_examples(
        'echo "Dogs bark." | headway parse en -',
        "headway train train.conllu --dev dev.conllu -o model.headway",
        "headway parse model.headway new.conllu -o parsed.conllu",
        "headway evaluate gold.conllu parsed.conllu",
    )
)
def headway(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Headway finds the head of every word: train a dependency parser, parse, evaluate."""


_coref = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Coreference: train, resolve, evaluate.")
_coref.command(epilog=_examples(*coref.TRAIN_EXAMPLES))(coref.train)
_coref.command(epilog=_examples(*coref.RESOLVE_EXAMPLES))(coref.resolve)
_coref.command(epilog=_examples(*coref.EVALUATE_EXAMPLES))(coref.evaluate)

app.command(epilog=_examples(*train.EXAMPLES))(train.train)
app.command(epilog=_examples(*constrain.EXAMPLES))(constrain.constrain)
app.command(epilog=_examples(*induce.EXAMPLES))(induce.induce)
app.command(epilog=_examples(*parse.EXAMPLES))(parse.parse)
app.command("parse-corpus", epilog=_examples(*parse_corpus.EXAMPLES))(parse_corpus.parse_corpus)
app.command(epilog=_examples(*draw.EXAMPLES))(draw.draw)
app.command(epilog=_examples(*evaluate.EXAMPLES))(evaluate.evaluate)
app.command(epilog=_examples(*tune.EXAMPLES))(tune.tune)
app.command(epilog=_examples(*info.EXAMPLES))(info.info)
app.command(epilog=_examples(*models.EXAMPLES))(models.models)
app.command(epilog=_examples(*package.EXAMPLES))(package.package)
app.command(epilog=_examples(*serve.EXAMPLES))(serve.serve)
app.command(epilog=_examples(*annotate.EXAMPLES))(annotate.annotate)
app.command("warm-up", epilog=_examples(*warm_up.EXAMPLES))(warm_up.warm_up)
app.add_typer(_coref, name="coref")
app.command(epilog=_examples(*reproduce.EXAMPLES))(reproduce.reproduce)
