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
    from headway.pipeline import Confidence, Parsed
    from headway.treebank import Format, Sentence

EXAMPLES = (
    "headway parse model.headway new.conllu -o parsed.conllu",
    "headway parse model.headway new.conllu --marginals -o unsure.conllu",
    "headway parse model.headway new.conllu --status -o proven.conllu",
    "zcat news.conllu.gz | headway parse model.headway - | head",
)

_PROBABILITY = "HeadProbability="
_TREE_PROBABILITY = "# tree_probability = "
_STATUS = "# headway_status = "


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
    exact: Annotated[
        bool,
        typer.Option(
            "--exact/--no-exact",
            help="Prove every tree of a higher-order model the best, or stop where dual decomposition stops.",
        ),
    ] = True,
    status: Annotated[bool, typer.Option("--status", help="Say in a comment what is proved of each tree.")] = False,
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
    if status and write_as == "conllx":
        raise TreebankError("CoNLL-X has no comments for --status; write CoNLL-U (--format conllu)")

    from headway.pipeline import Parser

    parser = Parser.load(model)
    if projective is not None:
        parser = Parser(parser.model.with_projective(projective))
    skipped, proofs = Skipped(), Proofs()
    sentences = read_treebank(input, format=read_as, skip_bad=skipped if skip_bad else None)
    parsed: Iterable[Parsed] = proofs.watch(parser.parse(sentences, mbr=mbr, exact=exact, threads=threads))
    if output != "-" or not sys.stdout.isatty():
        parsed = counted(parsed)
    write_treebank(_written(parsed, marginals, status), output, format=write_as)
    skipped.report()
    proofs.report()


class Proofs:
    """Counts the trees that are not proved to be the best under the model."""

    def __init__(self) -> None:
        self._sentences = 0
        self._open = 0

    def watch(self, parsed: Iterable[Parsed]) -> Iterator[Parsed]:
        """The same trees, counted as they pass."""
        for found in parsed:
            self._sentences += 1
            self._open += not _is_proven(found)
            yield found

    def report(self) -> None:
        """Say how many there were, if there were any."""
        if self._open:
            typer.echo(f"headway: {self._open} of {self._sentences} trees not proved to be the best", err=True)


def _is_proven(found: Parsed) -> bool:
    from headway.inference.dual_decomposition import Status

    return found.status is not Status.ITERATION_LIMIT


def _formats(input: str, output: str, format: options.Format | None) -> tuple[Format | None, Format]:
    """What to read and what to write, by the names; `--format` says it where they do not, and decides on the output."""
    from headway.treebank.files import format_of

    given = cast("Format | None", format and format.value)
    read_as = format_of(input) or given
    return read_as, given or format_of(output) or read_as or "conllu"


def _written(parsed: Iterable[Parsed], marginals: bool, status: bool) -> Iterator[Sentence]:
    """Each sentence with what is to be said of its tree; what an earlier parse said is replaced."""
    for found in parsed:
        sentence = found.sentence
        if marginals:
            sentence = _with_probabilities(sentence, found.confidence)
        if status:
            gap = "" if _is_proven(found) else f" gap {found.gap:.3g}"
            sentence = _with_comment(sentence, _STATUS, f"{found.status}{gap}")
        yield sentence


def _with_comment(sentence: Sentence, name: str, value: str) -> Sentence:
    """The comment as the last one, in place of another of that name."""
    comments = [comment for comment in sentence.layout.comments if not comment.startswith(name)]
    layout = dataclasses.replace(sentence.layout, comments=(*comments, f"{name}{value}"))
    return dataclasses.replace(sentence, layout=layout)


def _with_probabilities(sentence: Sentence, confidence: Confidence) -> Sentence:
    layout, absent = sentence.layout, ("_",) * len(sentence)
    # CoNLL-X has PHEAD and PDEPREL in these columns.
    deps, misc = (layout.deps, layout.misc) if layout.format == "conllu" else (absent, absent)
    probabilities = tuple(map(_with_probability, misc, confidence.arcs[1:].tolist()))
    new = dataclasses.replace(layout, format="conllu", deps=deps, misc=probabilities)
    tree = dataclasses.replace(sentence, layout=new)
    return _with_comment(tree, _TREE_PROBABILITY, f"{confidence.tree:.6g}")


def _with_probability(misc: str, probability: float) -> str:
    """The MISC column with the probability behind what it held.

    >>> _with_probability("_", 0.93121), _with_probability("HeadProbability=0.1|SpaceAfter=No", 1.0)
    ('HeadProbability=0.9312', 'SpaceAfter=No|HeadProbability=1.0000')
    """
    kept = [part for part in misc.split("|") if part != "_" and not part.startswith(_PROBABILITY)]
    return "|".join([*kept, f"{_PROBABILITY}{probability:.4f}"])
