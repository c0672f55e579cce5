"""`headway parse`: from text or a treebank to trees, as CoNLL-U, CoNLL-X, JSON, or drawn for the terminal.

Everything is streamed, in the order of the input. A treebank keeps everything but HEAD and DEPREL (and, with `--retag`,
its tags). With `--keep-heads` it keeps these, too, and only those that are unknown, "_", are found. The words of a text
get TokenRange in MISC: where they stand in it, in characters.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from headway.cli import options, places
from headway.cli.failures import Skipped
from headway.cli.options import Device, NewlineMode
from headway.cli.progress import counted
from headway.cli.reading import load_parser, portions, require_model
from headway.cli.tables import counted as number_of
from headway.cli.trees_as_text import text_target, tree_as_text
from headway.cli.warm_up import Task, compile_side_by_side
from headway.errors import NoTreeError, TrainingError, TreebankError, printable
from headway.named_models import path_of_model

if TYPE_CHECKING:
    from headway.parsed import Parsed
    from headway.pipeline import Parser
    from headway.treebank import Format, Sentence
    from headway.treebank.inputs import InputFormat

EXAMPLES = (
    'echo "Dogs bark." | headway parse en -',
    "headway parse en news.txt --format tree --unsure-below 0.6",
    "headway parse en tweets.txt --input-format lines -o tweets.jsonl",
    "headway parse model.headway new.conllu -o parsed.conllu",
    "headway parse neural.headway new.conllu --device cuda -o parsed.conllu",
    "headway parse model.headway new.conllu --marginals -o unsure.conllu",
    "headway parse model.headway new.conllu --status -o proven.conllu",
    "headway parse model.headway partial.conllu --keep-heads -o complete.conllu",
    "zcat news.conllu.gz | headway parse model.headway - | head",
)

_TREE_PROBABILITY = "tree_probability"
_STATUS = "headway_status"


class Input(StrEnum):
    """What INPUT holds: the choices of `headway.treebank.inputs.InputFormat`, which is slow to import."""

    TEXT = "text"
    LINES = "lines"
    TOKENS = "tokens"
    CONLLU = "conllu"
    CONLLX = "conllx"


class Output(StrEnum):
    """What is written."""

    CONLLU = "conllu"
    CONLLX = "conllx"
    JSON = "json"
    TREE = "tree"


@dataclass(frozen=True)
class _Remarks:
    """What is added to each tree: probabilities, marks on unsure arcs, the proof status."""

    marginals: bool
    unsure_below: float | None
    status: bool


def parse(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model file, or the name of a model; en is included.")
    ],
    input: Annotated[str, typer.Argument(metavar="INPUT", help="The text or treebank to parse; - is standard input.")],
    *,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="OUTPUT", help="The file to write; - is standard output.")
    ] = "-",
    input_format: Annotated[
        Input | None,
        typer.Option(
            help="What INPUT is: text; lines, one sentence each; tokens, lines of words between spaces; a treebank.",
            show_default="by name or first line",
        ),
    ] = None,
    newlines: options.NewlinesOption = NewlineMode.AUTO,
    format: Annotated[
        Output | None,
        typer.Option(
            help="What to write: json is one object per line, tree a drawing.", show_default="by name, or conllu"
        ),
    ] = None,
    unsure_below: Annotated[
        float | None, typer.Option(metavar="P", help="Mark heads less probable than P, and count them.")
    ] = None,
    marginals: Annotated[
        bool,
        typer.Option(
            "--marginals", help="Add each head's and label's probability to MISC, and the tree's as a comment."
        ),
    ] = False,
    keep_heads: Annotated[
        bool,
        typer.Option(
            "--keep-heads", help="Keep the heads and labels that INPUT, a treebank, has; find those that are _."
        ),
    ] = False,
    retag: Annotated[bool, typer.Option("--retag", help="Replace INPUT's tags with the model's.")] = False,
    mbr: Annotated[bool, typer.Option("--mbr", help="Maximise the expected number of correct heads.")] = False,
    projective: Annotated[
        bool | None,
        typer.Option("--projective/--non-projective", help="Which trees to choose from.", show_default="as trained"),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact/--no-exact",
            help="Prove that each tree of a higher-order model is the best, or stop where dual decomposition stops.",
        ),
    ] = True,
    seconds_per_sentence: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Seconds that a higher-order model may search for one tree; then the best found is taken.",
            show_default="a number of steps",
        ),
    ] = None,
    status: Annotated[
        bool, typer.Option("--status", help="Add a comment to each tree: is it proved to be the best?")
    ] = False,
    device: Annotated[Device, typer.Option(help="Where a neural model computes: auto takes a GPU if there is one.")] = (
        Device.CPU
    ),
    threads: options.ThreadsOption = 1,
    skip_bad: options.SkipBadOption = False,
) -> None:
    """Parse a text or a treebank.

    Everything in a treebank is kept, line by line, except HEAD and DEPREL; with --keep-heads, those are kept, too, and
    what is unknown (_) is found given them.
    """
    if unsure_below is not None and not 0 <= unsure_below <= 1:
        raise typer.BadParameter(f"--unsure-below is {unsure_below}; expected a probability, from 0 to 1")
    if seconds_per_sentence is not None and not seconds_per_sentence > 0:
        raise typer.BadParameter(f"--seconds-per-sentence is {seconds_per_sentence:g}; expected more than 0")
    from headway.treebank.files import format_of

    known: InputFormat | None = format_of(input) if input_format is None else input_format.value
    write_as = format or _output_of(output) or (Output.CONLLX if known == "conllx" else Output.CONLLU)
    remarks = _Remarks(marginals, unsure_below, status)
    _require_place(remarks, write_as)
    require_model(model)
    places.require_inputs(input)
    kept = None if _is_in_place(input, known, write_as, output) and not skip_bad else input
    places.require_output(output, path_of_model(model), kept)

    parser = load_parser(model, device.value)
    if retag and not parser.gives_tags:
        raise TrainingError("--retag needs a tagger, and this model has none; train one with --tags predicted")
    if projective is not None:
        parser = parser.with_projective(projective)
    with_text = known not in ("conllu", "conllx", "tokens")
    weighed = marginals or mbr or unsure_below is not None or write_as is Output.JSON
    needed = {Task.TEXT: with_text, Task.TREES: device is Device.CPU, Task.PROBABILITIES: weighed}
    compile_side_by_side(model, parser, [task for task, wanted in needed.items() if wanted])
    skipped, doubts = Skipped(), Doubts(unsure_below, needs_tags=parser.needs_tags)

    def trees() -> Iterator[Parsed]:
        unnamed: Format = "conllx" if write_as is Output.CONLLX else "conllu"
        skip = skipped if skip_bad else None
        read = portions(
            parser,
            input,
            known,
            treebank=unnamed,
            newlines=newlines.value,
            skip_bad=skip,
            trees=keep_heads,
            drafts=True,
        )
        for portion in read:
            yield from parser.parse(
                _without_contradictions(portion, parser, skipped) if keep_heads and skip_bad else portion,
                mbr=mbr,
                exact=exact,
                seconds=seconds_per_sentence,
                threads=threads,
                retag=retag,
                keep_heads=keep_heads,
            )
            sys.stdout.flush()  # for whoever is typing

    parsed: Iterable[Parsed] = doubts.watch(_numbered(trees()))
    if output != "-" or not sys.stdout.isatty():
        parsed = counted(parsed)
    _write(parsed, remarks, write_as, output)
    skipped.report()
    doubts.report()


def _numbered(parsed: Iterable[Parsed]) -> Iterator[Parsed]:
    """The same, numbered where they come from text: only the parser knows how many sentences that is."""
    from headway.treebank.annotations import with_sentence_number

    numbers = count(1)
    for found in parsed:
        from_text = found.sentence.layout.offsets is not None
        yield replace(found, sentence=with_sentence_number(found.sentence, next(numbers))) if from_text else found


def _without_contradictions(portion: Iterable[Sentence], parser: Parser, skipped: Skipped) -> Iterator[Sentence]:
    """The sentences whose known heads some tree of the parser has; the others are counted as malformed."""
    from headway.models.constraints import constraints_of, require_agreement

    for sentence in portion:
        known = constraints_of(sentence)
        try:
            if known is not None:
                require_agreement(sentence, known, parser.model.trees)
        except NoTreeError as error:
            skipped(error)
        else:
            yield sentence


class Doubts:
    """Counts what is doubtful about the trees: those not proved to be the best, those of words without the tags that
    the parser needs, improbable arcs, negative marginals."""

    def __init__(self, unsure_below: float | None, *, needs_tags: bool) -> None:
        self._below = unsure_below
        self._needs_tags = needs_tags
        self._sentences = self._unproved = self._in_stretches = self._untagged = 0
        self._arcs = self._unsure = 0
        self._possible = self._negative = self._tiny = self._with_negative = 0

    def watch(self, parsed: Iterable[Parsed]) -> Iterator[Parsed]:
        """The same trees, counted as they go by."""
        for found in parsed:
            self._sentences += 1
            self._unproved += not found.is_proved
            self._in_stretches += found.status == "IN_STRETCHES"
            if self._needs_tags:
                self._untagged += {*found.sentence.upos, *found.sentence.xpos} == {"_"}
            if self._below is not None:
                self._arcs += len(found.sentence)
                self._unsure += int((found.confidence.arcs < self._below).sum())
            negative, tiny = found.floored
            self._possible += len(found.sentence) ** 2
            self._negative += negative
            self._tiny += tiny
            self._with_negative += negative > 0
            yield found

    def report(self) -> None:
        """Print what there was, and how many unsure arcs if there is a threshold for them."""
        for line in self._lines():
            typer.echo(f"headway: {line}", err=True)

    def _lines(self) -> Iterator[str]:
        if self._unproved:
            yield f"{self._unproved} of {self._sentences} trees are not proved to be the best"
        if self._in_stretches:
            yield f"{number_of(self._in_stretches, 'very long sentence')} parsed in stretches"
        if self._untagged:
            yield (
                f"sentences without tags: {self._untagged} of {self._sentences}; the model was trained on gold tags, "
                "and its trees are worse without them"
            )
        if self._below is not None:
            yield f"{self._unsure} of {self._arcs} arcs are less probable than {self._below:g}"
        if self._negative:  # those of spectral grammars are only approximately probabilities
            yield (
                f"{self._negative} of {self._possible} possible arcs, in {self._with_negative} sentences, had a "
                f"negative marginal under the spectral grammar, and {self._tiny} a tiny one; they are taken as nearly "
                "impossible"
            )


def _is_in_place(input: str, known: InputFormat | None, write_as: Output, output: str) -> bool:
    """Whether a treebank is written where it is, in its format: all that it has is in what replaces it."""
    from headway.treebank.inputs import open_input

    if not places.is_one_of(Path(output), input):
        return False
    with open_input(input, known, treebank="conllx" if write_as is Output.CONLLX else "conllu") as found:
        return found.format == write_as.value


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
    """CoNLL-X has no room for anything but the tree."""
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
    """The tree as plain data, with the sentence's id and text if known."""
    from headway.treebank.annotations import comment

    known = {name: comment(found.sentence, name) for name in ("sent_id", "text")}
    data = found.to_dict()
    if unsure_below is not None:
        for word, probability in zip(data["words"], found.confidence.arcs[1:].tolist(), strict=True):
            word["unsure"] = probability < unsure_below
    return {**{name: value for name, value in known.items() if value is not None}, **data}


def _as_text(found: Parsed, remarks: _Remarks, output: str) -> str:
    """The sentence, what was asked for about its tree, and the tree."""
    lines = [printable(found.text)]
    if remarks.marginals:
        lines.append(f"# {_TREE_PROBABILITY} = {found.confidence.tree:.6g}")
    if remarks.status:
        lines.append(f"# {_STATUS} = {_status(found)}")
    shown = found.confidence.arcs if remarks.marginals or remarks.unsure_below is not None else None
    return "\n".join([*lines, tree_as_text(found.sentence, shown, remarks.unsure_below, output)])


def _noted(found: Parsed, remarks: _Remarks) -> Sentence:
    """The sentence with what was asked for about its tree, in place of what an earlier parse added."""
    from headway.treebank.annotations import with_comment, with_head_probabilities

    sentence = found.sentence
    if remarks.marginals or remarks.unsure_below is not None:
        arcs, below = found.confidence.arcs, remarks.unsure_below or 0.0
        sentence = with_head_probabilities(
            sentence, arcs, found.label_probabilities, unsure_below=below, only_unsure=not remarks.marginals
        )
    if remarks.marginals:
        sentence = with_comment(sentence, _TREE_PROBABILITY, f"{found.confidence.tree:.6g}")
    if remarks.status:
        sentence = with_comment(sentence, _STATUS, _status(found))
    return sentence


def _status(found: Parsed) -> str:
    return f"{found.status} gap {found.gap:.3g}" if 0 < found.gap < math.inf else str(found.status)
