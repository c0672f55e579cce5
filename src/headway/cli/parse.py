"""`headway parse`: text or a treebank in, trees out: as CoNLL-U, CoNLL-X, JSON, or drawn for the terminal.

Everything is streamed, in the order of the input. Of a treebank all is kept but for HEAD and DEPREL (and, with
`--retag`, the tags). Words of a text have their place in it as TokenRange in MISC, in characters.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from headway.cli import options
from headway.cli.failures import Skipped
from headway.cli.progress import counted
from headway.cli.reading import load_parser, portions
from headway.cli.trees_as_text import text_target, tree_as_text
from headway.errors import TrainingError, TreebankError

if TYPE_CHECKING:
    from headway.parsed import Parsed
    from headway.treebank import Format, Sentence
    from headway.treebank.inputs import InputFormat

EXAMPLES = (
    'echo "Dogs bark." | headway parse en -',
    "headway parse en news.txt --format tree --unsure-below 0.6",
    "headway parse en tweets.txt --input-format lines -o tweets.jsonl",
    "headway parse model.headway new.conllu -o parsed.conllu",
    "headway parse model.headway new.conllu --marginals -o unsure.conllu",
    "headway parse model.headway new.conllu --status -o proven.conllu",
    "zcat news.conllu.gz | headway parse model.headway - | head",
)

_TREE_PROBABILITY = "tree_probability"
_STATUS = "headway_status"
_JOINERS = "\u200c\u200d"  # not printable, but of the spelling of words


class Input(StrEnum):
    """What there is to parse: `headway.treebank.inputs.InputFormat`, which would take long to import."""

    TEXT = "text"
    LINES = "lines"
    TOKENS = "tokens"
    CONLLU = "conllu"
    CONLLX = "conllx"


class Output(StrEnum):
    """What comes out."""

    CONLLU = "conllu"
    CONLLX = "conllx"
    JSON = "json"
    TREE = "tree"


@dataclass(frozen=True)
class _Remarks:
    """What is said of each tree besides heads and labels: probabilities, arcs below one, what is proved."""

    marginals: bool
    unsure_below: float | None
    status: bool


def parse(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model that headway train wrote, or en, the one that is included.")
    ],
    input: Annotated[str, typer.Argument(metavar="INPUT", help="The text or treebank to parse; - is standard input.")],
    *,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="OUTPUT", help="Where to; - is standard output.")
    ] = "-",
    input_format: Annotated[
        Input | None,
        typer.Option(
            help="What INPUT is: text; lines: a sentence on each; tokens: the same, spaces between words; a treebank.",
            show_default="by its name or first line",
        ),
    ] = None,
    format: Annotated[
        Output | None,
        typer.Option(help="What to write; json is an object a line, tree a drawing.", show_default="by name, conllu"),
    ] = None,
    unsure_below: Annotated[
        float | None, typer.Option(metavar="P", help="Mark the heads that are less probable than P, and count them.")
    ] = None,
    marginals: Annotated[
        bool, typer.Option("--marginals", help="Add each head's probability to MISC, and the tree's as a comment.")
    ] = False,
    retag: Annotated[bool, typer.Option("--retag", help="Replace the tags that INPUT has by the model's.")] = False,
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
    """Parse a text or a treebank.

    A treebank comes out line by line as it was, but for HEAD and DEPREL.
    """
    if unsure_below is not None and not 0 <= unsure_below <= 1:
        raise typer.BadParameter(f"--unsure-below is {unsure_below}; expected a probability, from 0 to 1")
    known = _input_format(input, input_format)
    write_as = format or _output_of(output) or (Output.CONLLX if known == "conllx" else Output.CONLLU)
    remarks = _Remarks(marginals, unsure_below, status)
    _require_place(remarks, write_as)

    parser = load_parser(model)
    if retag and parser.tagger is None:
        raise TrainingError("--retag needs a tagger, and this model has none; train one with --tags predicted")
    if projective is not None:
        parser = parser.with_projective(projective)
    skipped, proofs, doubts, negatives = Skipped(), Proofs(), Doubts(unsure_below), Negatives()

    def trees() -> Iterator[Parsed]:
        unnamed: Format = "conllx" if write_as is Output.CONLLX else "conllu"
        for portion in portions(parser, input, known, treebank=unnamed, skip_bad=skipped if skip_bad else None):
            yield from parser.parse(portion, mbr=mbr, exact=exact, threads=threads, retag=retag)
            sys.stdout.flush()  # for whoever types the next one

    parsed: Iterable[Parsed] = negatives.watch(doubts.watch(proofs.watch(trees())))
    if output != "-" or not sys.stdout.isatty():
        parsed = counted(parsed)
    _write(parsed, remarks, write_as, output)
    skipped.report()
    proofs.report()
    doubts.report()
    negatives.report()


class Proofs:
    """Counts the trees that are not proved to be the best under the model."""

    def __init__(self) -> None:
        self._sentences = 0
        self._open = 0

    def watch(self, parsed: Iterable[Parsed]) -> Iterator[Parsed]:
        """The same trees, counted as they pass."""
        for found in parsed:
            self._sentences += 1
            self._open += not found.is_proved
            yield found

    def report(self) -> None:
        """Say how many there were, if there were any."""
        if self._open:
            typer.echo(f"headway: {self._open} of {self._sentences} trees not proved to be the best", err=True)


class Doubts:
    """Counts the arcs that are less probable than is asked for; None asks for nothing."""

    def __init__(self, unsure_below: float | None) -> None:
        self._below = unsure_below
        self._arcs = 0
        self._unsure = 0

    def watch(self, parsed: Iterable[Parsed]) -> Iterator[Parsed]:
        """The same trees, their arcs counted as they pass."""
        for found in parsed:
            if self._below is not None:
                self._arcs += len(found.sentence)
                self._unsure += int((found.confidence.arcs < self._below).sum())
            yield found

    def report(self) -> None:
        """Say how many there were, if that was asked for."""
        if self._below is not None:
            typer.echo(f"headway: {self._unsure} of {self._arcs} arcs less probable than {self._below:g}", err=True)


class Negatives:
    """Counts the arcs whose marginal was negative: spectral grammars only come near to probabilities."""

    def __init__(self) -> None:
        self._sentences = self._arcs = self._negative = self._tiny = 0

    def watch(self, parsed: Iterable[Parsed]) -> Iterator[Parsed]:
        """The same trees, counted as they pass."""
        for found in parsed:
            negative, tiny = found.floored
            self._arcs += len(found.sentence) ** 2
            self._negative += negative
            self._tiny += tiny
            self._sentences += negative > 0
            yield found

    def report(self) -> None:
        """Say how many there were, if there were any."""
        if self._negative:
            typer.echo(
                f"headway: {self._negative} of {self._arcs} possible arcs, in {self._sentences} sentences, had a "
                f"negative marginal under the spectral grammar, and {self._tiny} a tiny one; they count as next to "
                "impossible",
                err=True,
            )


def _input_format(name: str, kind: Input | None) -> InputFormat | None:
    """What was asked for or what the name says; None if the content must show it."""
    from headway.treebank.files import format_of

    return format_of(name) if kind is None else kind.value


def _output_of(name: str) -> Output | None:
    """What the name of the output says.

    >>> _output_of("a.jsonl.gz"), _output_of("a.conll"), _output_of("-")
    (<Output.JSON: 'json'>, <Output.CONLLX: 'conllx'>, None)
    """
    from headway.treebank.files import format_of

    path = PurePath(name.lower().removesuffix(".gz").removesuffix(".xz"))
    if path.suffix in (".json", ".jsonl"):
        return Output.JSON
    treebank = format_of(name)
    return None if treebank is None else Output(treebank)


def _require_place(remarks: _Remarks, write_as: Output) -> None:
    """CoNLL-X can hold nothing but the tree."""
    if write_as is not Output.CONLLX:
        return
    if remarks.marginals or remarks.unsure_below is not None:
        raise TreebankError("CoNLL-X has no column for probabilities; write CoNLL-U (--format conllu)")
    if remarks.status:
        raise TreebankError("CoNLL-X has no comments for --status; write CoNLL-U (--format conllu)")


def _write(parsed: Iterable[Parsed], remarks: _Remarks, write_as: Output, output: str) -> None:
    from headway.treebank import write_treebank
    from headway.treebank.streams import open_target

    if write_as is Output.JSON:
        with open_target(output) as write:
            for found in parsed:
                write(json.dumps(_as_data(found, remarks.unsure_below), ensure_ascii=False, allow_nan=False) + "\n")
    elif write_as is Output.TREE:
        with text_target(output) as write:
            for position, found in enumerate(parsed):
                write("\n" * (position > 0) + _as_text(found, remarks, output) + "\n")
    else:
        noted = (_noted(found, remarks) for found in parsed)
        write_treebank(noted, output, format=cast("Format", write_as.value))


def _as_data(found: Parsed, unsure_below: float | None) -> dict[str, Any]:
    """The tree as plain data, with the sentence's name and text where they are known."""
    from headway.treebank.annotations import comment

    known = {name: comment(found.sentence, name) for name in ("sent_id", "text")}
    data = found.to_json()
    if not math.isfinite(data["gap"]):
        data["gap"] = None  # JSON has no infinity
    if unsure_below is not None:
        for word, probability in zip(data["words"], found.confidence.arcs[1:].tolist(), strict=True):
            word["unsure"] = probability < unsure_below
    return {**{name: value for name, value in known.items() if value is not None}, **data}


def _as_text(found: Parsed, remarks: _Remarks, output: str) -> str:
    """The sentence, what is said of its tree, and the tree."""
    from headway.treebank.annotations import comment
    from headway.treebank.raw_text import raw_text

    sentence = found.sentence
    text = comment(sentence, "text") or raw_text([sentence]).text
    lines = ["".join(c if c.isprintable() or c in _JOINERS else ascii(c)[1:-1] for c in text)]
    if remarks.marginals:
        lines.append(f"# {_TREE_PROBABILITY} = {found.confidence.tree:.6g}")
    if remarks.status:
        lines.append(f"# {_STATUS} = {_status(found)}")
    shown = found.confidence.arcs if remarks.marginals or remarks.unsure_below is not None else None
    return "\n".join([*lines, tree_as_text(sentence, shown, remarks.unsure_below, output)])


def _noted(found: Parsed, remarks: _Remarks) -> Sentence:
    """The sentence with what was asked for about its tree; what an earlier parse noted is replaced."""
    from headway.treebank.annotations import with_comment, with_head_probabilities

    sentence = found.sentence
    if remarks.marginals or remarks.unsure_below is not None:
        arcs, below = found.confidence.arcs, remarks.unsure_below or 0.0
        sentence = with_head_probabilities(sentence, arcs, unsure_below=below, only_unsure=not remarks.marginals)
    if remarks.marginals:
        sentence = with_comment(sentence, _TREE_PROBABILITY, f"{found.confidence.tree:.6g}")
    if remarks.status:
        sentence = with_comment(sentence, _STATUS, _status(found))
    return sentence


def _status(found: Parsed) -> str:
    return str(found.status) if found.is_proved else f"{found.status} gap {found.gap:.3g}"
