"""`headway reproduce`: the tables of a paper, from data on this machine."""

from __future__ import annotations

from contextlib import ExitStack
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from headway.cli import options
from headway.errors import HeadwayError

EXAMPLES = (
    "headway reproduce koo2007 --data data/conllx",
    "headway reproduce koo2007 --data data/conllx --language dutch --language danish --threads 4",
    "headway reproduce koo2007 --data data/conllx --address auto",
    "headway reproduce koo2010 --data data/conllx --language danish",
    "headway reproduce druck2009 --data data/ud --language english",
    "headway reproduce luque2012 --data data --language wsj",
    "headway reproduce english --data data/UD_English-EWT --language linear",
    "headway reproduce english --data data/UD_English-EWT --language en --encoder minilm --teacher mpnet --text t.txt",
    "headway reproduce fernandes2012 --data data/conllx --quick -o /tmp/fernandes2012",
    "headway reproduce fernandes2012/partial --data data --language hungarian",
    "headway reproduce fernandes2012/coreference --data data/UD_English-GUM",
    "headway reproduce neural --data data --encoder minilm --processes 8",
    "headway reproduce annotation --data data --language danish",
)


class Paper(StrEnum):
    """What can be reproduced: a paper's tables, or those of our own parsers. Each is a module of `headway_papers`."""

    KOO2007 = "koo2007"
    DRUCK2009 = "druck2009"
    KOO2010 = "koo2010"
    LUQUE2012 = "luque2012"
    FERNANDES2012 = "fernandes2012"
    PARTIAL = "fernandes2012/partial"
    COREFERENCE = "fernandes2012/coreference"
    FIRST_ORDER = "first_order"
    ENGLISH = "english"
    NEURAL = "neural"
    ANNOTATION = "annotation"


_OPTIONS = {
    "encoder": (Paper.ENGLISH, Paper.NEURAL),
    "teacher": (Paper.ENGLISH,),
    "text": (Paper.ENGLISH,),
    "cells": (Paper.KOO2010, Paper.NEURAL),
    "processes": (Paper.KOO2007, Paper.FIRST_ORDER, Paper.ENGLISH, Paper.NEURAL),
    "address": (Paper.KOO2007, Paper.FIRST_ORDER),
    "seconds": (Paper.NEURAL,),
    "dev_only": (Paper.NEURAL,),
}


def reproduce(
    paper: Annotated[
        Paper,
        typer.Argument(
            metavar="PAPER",
            help="koo2007, druck2009, koo2010, luque2012, fernandes2012 (also /partial, /coreference), first_order, "
            "english, neural or annotation.",
        ),
    ],
    *,
    data: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="A folder with one folder per language; for druck2009, of UD treebanks; for luque2012, with "
            "wsj-sample and ud; for english, UD English-EWT; for fernandes2012/coreference, UD English-GUM; for "
            "fernandes2012/partial, neural and annotation, with conllx and ud.",
        ),
    ],
    language: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LANGUAGE",
            help="A language (english: a parser; fernandes2012/coreference: kept, removed or found; "
            "fernandes2012/partial, neural, annotation: a treebank); may be repeated.",
            show_default="all that are there",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="OUTDIR", help="The folder to write to.", show_default="experiments/PAPER"
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use little data and few passes, to check that everything runs.")
    ] = False,
    threads: options.ThreadsOption = 1,
    encoder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", exists=True, file_okay=False, help="english, neural: a folder with MiniLM."),
    ] = None,
    teacher: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", exists=True, file_okay=False, help="english: a folder with MPNet, for en and en-large."
        ),
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(metavar="FILE", exists=True, dir_okay=False, help="english: plain text that en learns from, too."),
    ] = None,
    cells: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="koo2010, neural: the cells TABLE/NAME to compute, such as 'table2/*'."),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="koo2007, first_order: compute N cells side by side; english, neural: on one GPU."
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="koo2007, first_order: compute the cells on a Ray cluster: auto, or HOST:PORT."
        ),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", min=0, help="neural: begin no cell that would take longer than that.")
    ] = None,
    dev_only: Annotated[
        bool, typer.Option("--dev-only", help="neural: trials of settings, which never read a test file.")
    ] = False,
) -> None:
    """Reproduce the tables of a paper with your data.

    Finished results are kept: after an interruption, the same command continues.
    """
    own = {
        "encoder": encoder,
        "teacher": teacher,
        "text": text,
        "cells": cells,
        "processes": processes,
        "address": address,
        "seconds": seconds,
        "dev_only": dev_only,
    }
    given: dict[str, Any] = {name: value for name, value in own.items() if value}
    for name in given:
        papers = _OPTIONS[name]
        if paper not in papers:
            *first, last = (each.value for each in papers)
            of = f"{', '.join(first)} and {last}" if first else last
            raise HeadwayError(f"{paper.value} has no option --{name.replace('_', '-')}; it is for {of}")
    place = output or Path("experiments") / paper.value
    with ExitStack() as open_workers:
        if paper in _OPTIONS["address"]:  # their cells are independent pieces of work
            asked = given.pop("address", None), given.pop("processes", None)
            workers = open_workers.enter_context(options.workers_at(*asked))
            given |= {"workers": workers} if workers else {}
        shared = {"languages": language or None, "quick": quick, "threads": threads, "say": typer.echo}
        _experiment(paper).run(data, place, **shared, **given)


def _experiment(paper: Paper) -> ModuleType:
    """The module of an experiment, imported by name: the library never depends on the experiments."""
    if find_spec("headway_papers") is None:
        raise HeadwayError(
            "the experiments are not installed; clone Headway's repository and run there: pip install -e ."
        )
    return import_module(f"headway_papers.{paper.value.replace('/', '_')}")
