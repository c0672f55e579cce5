"""`headway annotate`: correct the trees of a file in the browser, with a parser that listens.

The page is served by the same server as `headway serve`. Every change is on disk before it is answered
(`headway.annotation`).
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli import places
from headway.cli.failures import note
from headway.cli.reading import require_model
from headway.cli.serve import (
    PORT,
    HostOption,
    OpenOption,
    PortOption,
    ThreadsOption,
    TokenOption,
    cores,
    ready_parser,
    require_server,
    run,
    token_for,
)
from headway.cli.signals import if_interrupted

if TYPE_CHECKING:
    from headway.annotation import Workspace
    from headway.pipeline import Parser

EXAMPLES = (
    "headway annotate new.conllu --model en --open",
    "headway annotate news.txt --model en --open",
    "headway annotate danish.conllu --write pinned",
    "headway annotate new.conllu --model en --dev dev.conllu --host 0.0.0.0",
)


class Write(StrEnum):
    """What is written for words that nobody has pinned."""

    ALL = "all"
    PINNED = "pinned"


def annotate(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CoNLL-U; or a text, which becomes FILE.conllu beside it.")
    ],
    *,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="A model file, or the name of a model.", show_default="none, or one trained on FILE"
        ),
    ] = None,
    write: Annotated[
        Write, typer.Option(help="Write the model's heads of words that nobody has fixed (all), or _ (pinned).")
    ] = Write.ALL,
    dev: Annotated[
        Path | None,
        typer.Option(metavar="DEV", help="Trees to compare models on.", show_default="a tenth of what is done"),
    ] = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = PORT,
    token: TokenOption = None,
    open: OpenOption = False,
    threads: ThreadsOption = None,
) -> None:
    """Annotate a treebank in the browser.

    Each head that you fix stays, and the other words move to their best places given that.
    """
    require_server()
    require_model(model)
    places.require_inputs(str(file), None if dev is None else str(dev))
    from headway.annotation.retraining import model_in_use
    from headway.web.app import Setup

    own = model_in_use(file) or model_in_use(file.with_suffix(".conllu"))
    if own is not None:
        note(f"{own.stem}, trained on this file, is in use; remove {own.parent / 'in-use'} to begin without it")
    chosen = model if own is None else str(own)

    def opened(parser: Parser | None, name: str) -> Workspace:
        from headway.annotation import Workspace

        return Workspace.open(file, parser, write=write.value, name=name, dev=dev)

    setup = Setup(
        [] if chosen is None else [chosen],
        ready_parser,
        open=opened,
        host=host,
        token=token_for(host, token),
        workers=threads or cores(),
    )
    with if_interrupted(lambda: "; all changes are saved"):
        run(setup, port, "/annotate", open=open)
