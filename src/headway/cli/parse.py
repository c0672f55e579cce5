"""`headway parse`: a treebank in, the same treebank with the parser's trees out.

Everything is streamed, in the order of the input. All that the input holds is kept but for HEAD and DEPREL.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, cast

import typer

from headway.cli import options
from headway.cli.failures import Skipped
from headway.cli.progress import counted
from headway.errors import TreebankError

if TYPE_CHECKING:
    from headway.pipeline import Parsed
    from headway.treebank import Format, Sentence

EXAMPLES = (
    "headway parse model.headway new.conllu -o parsed.conllu",
    "headway parse model.headway new.conllu --marginals -o unsure.conllu",
    "zcat news.conllu.gz | headway parse model.headway - | head",
)

_PROBABILITY = "HeadProbability="
_TREE_PROBABILITY = "# tree_probability = "


def parse(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that headway train wrote.")],
    input: Annotated[str, typer.Argument(metavar="INPUT", help="The treebank to parse; - is standard input.")],
    *,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="OUTPUT", help="Where to; - is standard output.")
    ] = "-",
    format: Annotated[
        options.Format | None,
        typer.Option(help="Format of the output, and of an input whose name does not say.", show_default="by name"),
    ] = None,
    marginals: Annotated[
        bool, typer.Option("--marginals", help="Add each head's probability to MISC, and the tree's as a comment.")
    ] = False,
    mbr: Annotated[bool, typer.Option("--mbr", help="Maximise the expected number of right heads.")] = False,
    projective: Annotated[
        bool | None,
        typer.Option("--projective/--non-projective", help="Trees to choose from.", show_default="as trained"),
    ] = None,
    threads: options.ThreadsOption = 1,
    skip_bad: options.SkipBadOption = False,
) -> None:
    """Parse a treebank.

    The output is the input, line by line, but for HEAD and DEPREL.
    """
    from headway.treebank import read_treebank, write_treebank

    read_as, write_as = _formats(input, output, format)
    if marginals and write_as == "conllx":
        raise TreebankError("CoNLL-X has no column for probabilities; write CoNLL-U (--format conllu)")

    from headway.pipeline import Parser

    parser = Parser.load(model)
    if projective is not None:
        parser = Parser(dataclasses.replace(parser.model, projective=projective))
    skipped = Skipped()
    sentences = read_treebank(input, format=read_as, skip_bad=skipped if skip_bad else None)
    parsed: Iterable[Parsed] = parser.parse(sentences, mbr=mbr, threads=threads)
    if output != "-" or not sys.stdout.isatty():
        parsed = counted(parsed)
    write_treebank(_with_probabilities(parsed) if marginals else _trees(parsed), output, format=write_as)
    skipped.report()


def _formats(input: str, output: str, format: options.Format | None) -> tuple[Format | None, Format]:
    """What to read and what to write, by the names; `--format` says it where they do not, and decides on the output."""
    from headway.treebank.files import format_of

    given = cast("Format | None", format and format.value)
    read_as = format_of(input) or given
    return read_as, given or format_of(output) or read_as or "conllu"


def _trees(parsed: Iterable[Parsed]) -> Iterator[Sentence]:
    return (found.sentence for found in parsed)


def _with_probabilities(parsed: Iterable[Parsed]) -> Iterator[Sentence]:
    """Each sentence with its probabilities; those of an earlier parse are replaced."""
    for found in parsed:
        sentence, layout, confidence = found.sentence, found.sentence.layout, found.confidence
        absent = ("_",) * len(sentence)
        # CoNLL-X has PHEAD and PDEPREL in these columns.
        deps, misc = (layout.deps, layout.misc) if layout.format == "conllu" else (absent, absent)
        comments = [comment for comment in layout.comments if not comment.startswith(_TREE_PROBABILITY)]
        new = dataclasses.replace(
            layout,
            format="conllu",
            comments=(*comments, f"{_TREE_PROBABILITY}{confidence.tree:.6g}"),
            deps=deps,
            misc=tuple(map(_with_probability, misc, confidence.arcs[1:].tolist())),
        )
        yield dataclasses.replace(sentence, layout=new)


def _with_probability(misc: str, probability: float) -> str:
    """The MISC column with the probability behind what it held.

    >>> _with_probability("_", 0.93121), _with_probability("HeadProbability=0.1|SpaceAfter=No", 1.0)
    ('HeadProbability=0.9312', 'SpaceAfter=No|HeadProbability=1.0000')
    """
    kept = [part for part in misc.split("|") if part != "_" and not part.startswith(_PROBABILITY)]
    return "|".join([*kept, f"{_PROBABILITY}{probability:.4f}"])
