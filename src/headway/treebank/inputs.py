"""What an input holds (text, one sentence per line, tokens or a treebank), and its sentences.

The name of a treebank says that it is one. Any other input is recognised by its first line that is neither blank nor a
comment: with ten columns it is a treebank, otherwise text. No more than that line is waited for, and everything is
streamed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Literal, Protocol

from headway.errors import ArgumentError, TreebankError
from headway.treebank.annotations import with_first_comments, with_sentence_number
from headway.treebank.files import format_of, read_treebank
from headway.treebank.raw_text import Newlines, one_sentence_per_line, paragraphs, pretokenised, split_paragraphs
from headway.treebank.sentence import Format, Sentence
from headway.treebank.streams import READ_ERRORS, PathOrStream, Source, name_of, open_source

InputFormat = Literal["text", "lines", "tokens", "conllu", "conllx"]

_PEEKED = 1 << 20  # bytes at most; no treebank has so many comments before its first word
_TABS = 9  # between ten columns
_BYTE_ORDER_MARK = "\ufeff".encode()


class Splitter(Protocol):
    """What splits text into words; `offset` is where the text begins in a larger one."""

    def sentences(self, text: str, offset: int, *, newlines: Newlines) -> Sequence[Sentence]:
        """The sentences of a text; `newlines` says what a single line end is."""

    def sentence(self, text: str, offset: int) -> Sentence:
        """The whole text as one sentence."""


@dataclass(frozen=True)
class Input:
    """An input that is open, to be read once."""

    format: InputFormat
    source: Source

    def portions(
        self,
        splitter: Splitter | None,
        *,
        typed: bool = False,
        newlines: Newlines = "auto",
        skip_bad: Callable[[TreebankError], None] | None = None,
        trees: bool = False,
        drafts: bool = False,
    ) -> Iterator[Iterable[Sentence]]:
        """The sentences, in portions to be parsed together: each paragraph or line that is `typed`, otherwise one.

        The sentences of a treebank come without its trees, or with `trees`, whole or partial. Text and lines need
        a splitter. `newlines` says what a single line end of text is; `skip_bad` is as for `read_treebank`. Sentences
        of text are numbered, unless they are `drafts`, which may become more.
        """
        if self.format == "conllu" or self.format == "conllx":
            yield read_treebank(self.source, format=self.format, skip_bad=skip_bad, partial=trees, trees=trees)
        elif typed:
            yield from self._groups(splitter, newlines, drafts, typed=True)
        else:
            yield chain.from_iterable(self._groups(splitter, newlines, drafts, typed=False))

    def _groups(
        self, splitter: Splitter | None, newlines: Newlines, drafts: bool, typed: bool
    ) -> Iterator[list[Sentence]]:
        """The sentences of each paragraph, or of each line, numbered over the whole input."""
        first = ["# newpar"] if self.format == "text" else []
        number = 0
        for group in self._split(splitter, newlines, typed):
            started = [with_first_comments(sentence, *first) for sentence in group[:1]] + list(group[1:])
            yield (
                started
                if drafts
                else [with_sentence_number(sentence, number) for number, sentence in enumerate(started, number + 1)]
            )
            number += len(group)

    def _split(self, splitter: Splitter | None, newlines: Newlines, typed: bool) -> Iterator[Sequence[Sentence]]:
        if self.format == "tokens":
            yield from ([sentence] for sentence in pretokenised(self.source))
            return
        if splitter is None:
            raise ArgumentError(f"an input of {self.format} has to be split into words; give a splitter")
        if self.format == "lines":
            yield from ([splitter.sentence(line, offset)] for offset, line in one_sentence_per_line(self.source))
            return
        found = _paragraphs_as_typed(self.source) if typed else paragraphs(self.source)
        yield from (splitter.sentences(paragraph, offset, newlines=newlines) for offset, paragraph in found)


@contextmanager
def open_input(
    source: PathOrStream, format: InputFormat | None = None, *, treebank: Format = "conllu"
) -> Iterator[Input]:
    """Open an input and find out what it holds, unless `format` or its name says so.

    `treebank` is the format of a treebank that only its content shows to be one.
    """
    with ExitStack() as opened:
        try:
            stream = opened.enter_context(open_source(source))
            found = format or format_of(source) or (treebank if _is_treebank(stream) else "text")
        except READ_ERRORS as error:
            cause = f"the data break off ({error}); get a complete copy"
            raise TreebankError(cause, name_of(source, "standard input"), 1) from None
        yield Input(found, stream)


def _is_treebank(source: Source) -> bool:
    """Whether the first line that is neither blank nor a comment has ten columns."""
    for number, line in enumerate(source.peek_lines(_PEEKED)):
        shown = line if number else line.removeprefix(_BYTE_ORDER_MARK)
        if shown.strip() and not shown.startswith(b"#"):
            return shown.count(b"\t") == _TABS
    return False


def _paragraphs_as_typed(source: Source) -> Iterator[tuple[int, str]]:
    """The paragraphs as `raw_text.paragraphs` gives them, each as soon as a blank line ends it."""
    offset, text = 0, ""
    for number, line in enumerate(chain(source, [b""]), start=1):
        try:
            text += line.decode()
        except UnicodeDecodeError:
            raise TreebankError("the line is not valid UTF-8; type UTF-8", source.name, number) from None
        if not line.strip():
            yield from ((offset + start, paragraph) for start, paragraph in split_paragraphs([text]))
            offset, text = offset + len(text), ""
