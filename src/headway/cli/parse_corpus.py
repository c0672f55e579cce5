"""`headway parse-corpus`: many documents, on the cores of this machine or on a Ray cluster.

`headway.ray.job` says what it guarantees, `headway.ray.manifest` what the folder holds afterwards.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.cli.failures import note
from headway.cli.options import Device, NewlineMode, NewlinesOption
from headway.cli.progress import corpus_progress
from headway.cli.reading import require_model
from headway.cli.serve import cores
from headway.cli.signals import if_interrupted, time_to_close
from headway.cli.tables import counted
from headway.errors import printable

if TYPE_CHECKING:
    from headway.ray.job import Progress

EXAMPLES = (
    "headway parse-corpus 'news/*.txt' -o trees",
    "headway parse-corpus news.txt --documents paragraph -o trees --local 8",
    "headway parse-corpus 'web/*.jsonl.gz' --field body --id-field url -o trees --format parquet",
    "headway parse-corpus 's3://bucket/web/*.parquet' -o s3://bucket/trees --address auto --format jsonl --gzip",
)

_CLOSING = 3.0  # seconds to end workers and to leave a cluster
_BETWEEN_LINES = 5.0  # seconds


class CorpusInput(StrEnum):
    """What a file holds: the choices of `headway.ray.plan.Kind`, which is slow to import."""

    TEXT = "text"
    JSONL = "jsonl"
    PARQUET = "parquet"
    CONLLU = "conllu"
    CONLLX = "conllx"


class CorpusOutput(StrEnum):
    """What is written: the choices of `headway.ray.outputs.Format`."""

    CONLLU = "conllu"
    JSONL = "jsonl"
    PARQUET = "parquet"


class DocumentUnit(StrEnum):
    """What is a document in a text file: the choices of `headway.ray.plan.Unit`."""

    FILE = "file"
    PARAGRAPH = "paragraph"
    LINE = "line"


class ProgressMode(StrEnum):
    """How progress is shown."""

    BAR = "bar"
    JSON = "json"
    NONE = "none"


def parse_corpus(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT", help="Files, patterns or folders; also addresses such as s3://bucket/*.txt."),
    ],
    *,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="DIR", help="The folder to write, or to go on with.")
    ],
    model: Annotated[str, typer.Option(metavar="MODEL", help="A model file, or the name of a model.")] = "en",
    local: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Parse in N processes of this machine.", show_default="one for each core"
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Parse on the Ray cluster there; auto finds the one this machine is in."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Workers on the cluster.", show_default="one for each core or GPU"),
    ] = None,
    format: Annotated[CorpusOutput, typer.Option(help="What to write.")] = CorpusOutput.CONLLU,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress CoNLL-U or JSON lines.")] = False,
    input_format: Annotated[
        CorpusInput | None, typer.Option(help="What the files hold.", show_default="by name, or text")
    ] = None,
    documents: Annotated[
        DocumentUnit, typer.Option(help="What is a document in a text file: all of it, a paragraph, a line.")
    ] = DocumentUnit.FILE,
    field: Annotated[str, typer.Option(metavar="NAME", help="The field or column that has the text.")] = "text",
    id_field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The field or column that has a document's id.", show_default="file and place"
        ),
    ] = None,
    newlines: NewlinesOption = NewlineMode.AUTO,
    marginals: Annotated[bool, typer.Option("--marginals", help="Add the probability of each head.")] = False,
    shard_megabytes: Annotated[
        float | None,
        typer.Option(
            metavar="MB",
            help="Input that a worker does at once, and again if it is lost.",
            show_default="a 256th of all, 0.25 to 4; more where there would be more than 50,000 shards",
        ),
    ] = None,
    document_seconds: Annotated[
        float, typer.Option(metavar="S", help="Seconds after which a document has taken too long.")
    ] = 300.0,
    device: Annotated[Device, typer.Option(help="Where a neural model computes; with cuda, each worker has a GPU.")] = (
        Device.CPU
    ),
    progress: Annotated[
        ProgressMode | None,
        typer.Option(help="A bar, or lines of JSON on standard output.", show_default="a bar on a terminal"),
    ] = None,
) -> None:
    """Parse a corpus, on this machine or on a Ray cluster.

    Whatever is lost on the way is done again, and the same command goes on after an interruption: every document comes
    out once. Those that cannot be parsed are in DIR/errors, with the reason.
    """
    if local is not None and (address is not None or workers is not None):
        raise typer.BadParameter("--local is for this machine, --address and --workers for a cluster; give one of them")
    if workers is not None and address is None:
        raise typer.BadParameter("--workers is for a cluster; give its --address, or use --local")
    for name, value in (("--shard-megabytes", shard_megabytes), ("--document-seconds", document_seconds)):
        if value is not None and not value > 0:
            raise typer.BadParameter(f"{name} is {value:g}; expected more than 0")
    require_model(model)
    from headway.ray.corpus import parse_corpus as run
    from headway.ray.worker import Settings

    settings = Settings(
        format=format.value,
        gzip=gzip,
        probabilities=marginals,
        unit=documents.value,
        field=field,
        id_field=id_field,
        newlines=newlines.value,
        shard_bytes=None if shard_megabytes is None else max(1, int(shard_megabytes * 1e6)),
    )
    goes_on = "; the same command goes on from here"
    with if_interrupted(lambda: goes_on), time_to_close(_CLOSING), _shown(progress) as show:
        totals = run(
            inputs,
            output,
            model=model,
            settings=settings,
            kind=None if input_format is None else input_format.value,
            address=address,
            workers=workers if address else local or cores(),
            device=device.value,
            document_seconds=document_seconds,
            show=show,
            note=note,
        )
    if progress is ProgressMode.JSON:
        _print_line({"event": "done", **totals})
    else:
        typer.echo(f"headway: {_summary(totals)} in {printable(output)}", err=True)


@contextmanager
def _shown(mode: ProgressMode | None) -> Iterator[Callable[[Progress], None]]:
    """What to call with the progress."""
    if mode is ProgressMode.JSON:
        yield _lines()
    elif mode is ProgressMode.NONE:
        yield lambda _: None
    else:
        with corpus_progress(always=mode is ProgressMode.BAR) as show:
            yield show


def _lines() -> Callable[[Progress], None]:
    """A line of JSON now and then."""
    last = -_BETWEEN_LINES

    def show(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= _BETWEEN_LINES:
            last = time.monotonic()
            rounded = {name: round(v, 1) if isinstance(v, float) else v for name, v in progress._asdict().items()}
            _print_line({"event": "progress", **rounded})

    return show


def _print_line(data: dict[str, Any]) -> None:
    typer.echo(json.dumps(data))
    sys.stdout.flush()


def _summary(totals: dict[str, int]) -> str:
    """What was done, in words.

    >>> _summary({"shards": 2, "documents": 10, "errors": 1, "words": 1234})
    '10 documents, 1,234 words, 1 document with an error'
    """
    errors = f", {counted(totals['errors'], 'document')} with an error" if totals["errors"] else ""
    return f"{counted(totals['documents'], 'document')}, {totals['words']:,} words{errors}"
