"""`headway reproduce`: a paper's tables, from data on this machine."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from headway.cli import options
from headway.errors import HeadwayError

EXAMPLES = (
    "headway reproduce koo2007 --data data/conllx",
    "headway reproduce koo2007 --data data/conllx --language dutch --language danish --threads 4",
    "headway reproduce koo2010 --data data/conllx --language danish",
    "headway reproduce druck2009 --data data/ud --language english",
    "headway reproduce luque2012 --data data --language wsj",
    "headway reproduce english --data data/UD_English-EWT",
    "headway reproduce fernandes2012 --data data/conllx --quick -o /tmp/fernandes2012",
    "headway reproduce fernandes2012/coreference --data data/UD_English-GUM",
)


class Paper(StrEnum):
    """What can be reproduced: a paper's tables, or those of our own parsers; each is a module of `headway_papers`."""

    KOO2007 = "koo2007"
    DRUCK2009 = "druck2009"
    KOO2010 = "koo2010"
    LUQUE2012 = "luque2012"
    FERNANDES2012 = "fernandes2012"
    PARTIAL = "fernandes2012/partial"
    COREFERENCE = "fernandes2012/coreference"
    FIRST_ORDER = "first_order"
    ENGLISH = "english"


def reproduce(
    paper: Annotated[
        Paper,
        typer.Argument(
            metavar="PAPER",
            help="koo2007, druck2009, koo2010, luque2012, fernandes2012 (also /partial, /coreference), first_order or "
            "english.",
        ),
    ],
    *,
    data: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="A folder with one folder per language; druck2009: of UD treebanks; luque2012: with wsj-sample and "
            "ud; english: UD English-EWT's; fernandes2012/coreference: UD English-GUM's.",
        ),
    ],
    language: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LANGUAGE",
            help="One of them (english: one of its parsers; fernandes2012/coreference: kept or removed); may be "
            "repeated.",
            show_default="all that are there",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="OUTDIR", help="Where to write.", show_default="experiments/PAPER"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Little data and few passes: does everything run?")] = False,
    threads: options.ThreadsOption = 1,
) -> None:
    """Make a paper's tables again, on data of yours.

    What is finished is kept: the same command goes on after an interruption.
    """
    _experiment(paper).run(
        data,
        output or Path("experiments") / paper.value,
        languages=language or None,
        quick=quick,
        threads=threads,
        say=typer.echo,
    )


def _experiment(paper: Paper) -> ModuleType:
    """Imported by name: the library never depends on the experiments."""
    if find_spec("headway_papers") is None:
        raise HeadwayError(
            "the experiments are not in this installation; clone Headway's repository and run there: pip install -e ."
        )
    return import_module(f"headway_papers.{paper.value.replace('/', '_')}")
