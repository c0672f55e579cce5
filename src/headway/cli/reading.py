"""Input of the commands that parse: a model by name or path, and the sentences of a file or of standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import IO, TYPE_CHECKING, cast

from headway.cli.pipes import pipe_of
from headway.errors import MissingFileError, TreebankError
from headway.named_models import is_name, path_of_model

if TYPE_CHECKING:
    from headway.pipeline import Parser
    from headway.treebank import Format, Sentence
    from headway.treebank.inputs import InputFormat
    from headway.treebank.raw_text import Newlines


def require_model(model: str | None) -> None:
    """Refuse a model that is not there, before anything else is read."""
    if model is not None and not os.path.exists(path_of_model(model)):  # noqa: PTH110  (any name may be asked for)
        load_parser(model)  # its error says what there is


def load_parser(model: str, device: str = "cpu") -> Parser:
    """The parser of that name or path; of a path that leads nowhere, an error says that there are names."""
    from headway.pipeline import Parser

    try:
        return Parser.load(model, device=device)
    except MissingFileError as error:
        if is_name(model):
            raise
        raise MissingFileError(f"{error}, or a name that headway models lists") from None


@dataclass(frozen=True)
class _Drafting:
    """Splits text into drafts."""

    parser: Parser

    def sentences(self, text: str, offset: int, *, newlines: Newlines) -> list[Sentence]:
        return self.parser.drafts(text, offset, newlines=newlines)

    def sentence(self, text: str, offset: int) -> Sentence:
        return self.parser.sentence(text, offset)


def sentences(parser: Parser, input: str) -> Iterator[Sentence]:
    """The sentences of a file or of standard input ("-")."""
    return chain.from_iterable(portions(parser, input, None))


def portions(
    parser: Parser,
    input: str,
    format: InputFormat | None,
    *,
    treebank: Format = "conllu",
    newlines: Newlines = "auto",
    skip_bad: Callable[[TreebankError], None] | None = None,
    trees: bool = False,
    drafts: bool = False,
) -> Iterator[Iterable[Sentence]]:
    """The sentences in portions to be parsed together: each paragraph or line typed at a terminal, what a pipe gave
    before a pause, otherwise all.

    Nothing is opened before the first portion is asked for. `treebank` is the format to assume where only the content
    shows that the input is a treebank. Its sentences come without trees, unless these are asked for, whole or partial.
    Text is split into sentences, or into `drafts` of them without numbers, for the parser to make sentences of.
    """
    from headway.treebank.inputs import open_input

    with pipe_of(input) as pipe, open_input(cast(IO[bytes], pipe) or input, format, treebank=treebank) as found:
        if found.format in ("text", "lines", "tokens"):
            if trees:
                name = "standard input" if input == "-" else input
                raise TreebankError(f"{name} has no heads to keep, as it is text; give a treebank, or no --keep-heads")
            parser.require_text(split=found.format != "tokens")
        typed = input == "-" and sys.stdin.isatty()
        read = found.portions(
            _Drafting(parser) if drafts else parser,
            typed=typed,
            newlines=newlines,
            skip_bad=skip_bad,
            trees=trees,
            drafts=drafts,
        )
        for portion in read:
            if pipe is None:
                yield portion
            else:
                yield from pipe.as_they_come(portion)
