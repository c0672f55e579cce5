"""What commands parse: text, sentences on lines, tokens, or a treebank, and how to tell which.

Names of treebanks say what the files hold. Everything else is looked at: where the first line that is neither blank nor
a comment has ten columns it is a treebank, else text. No more than that line is waited for, and all is streamed.
"""

from __future__ import annotations

import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from headway.embedded import embedded_model
from headway.errors import ArchiveError, TrainingError, TreebankError

if TYPE_CHECKING:
    from headway.pipeline import Parser
    from headway.treebank import Format, Sentence
    from headway.treebank.streams import PathOrStream

_LOOKED_AT = 1 << 20  # bytes at most; no treebank has so many comments before its first word
_TABS = 9  # between ten columns
_BYTE_ORDER_MARK = "\ufeff".encode()


class Input(StrEnum):
    """What there is to parse."""

    TEXT = "text"
    LINES = "lines"
    TOKENS = "tokens"
    CONLLU = "conllu"
    CONLLX = "conllx"


_TREEBANKS = (Input.CONLLU, Input.CONLLX)


def load_parser(model: str) -> Parser:
    """The model of that name or path; an error says which names there are."""
    from headway.pipeline import Parser

    try:
        return Parser.load(model)
    except ArchiveError as error:
        if ": no such file" in str(error) and embedded_model("en"):
            raise ArchiveError(f"{error}, or en, the model that comes with Headway") from None
        raise


def input_of(name: str) -> Input | None:
    """What the name of a file says; None if it must be looked at.

    >>> input_of("a.conllu"), input_of("a.conll.gz"), input_of("a.txt"), input_of("-")
    (<Input.CONLLU: 'conllu'>, <Input.CONLLX: 'conllx'>, None, None)
    """
    from headway.treebank.files import format_of

    format = format_of(name)
    return None if format is None else Input(format)


def sentences(parser: Parser, input: str) -> Iterator[Sentence]:
    """The sentences of a file or of standard input ("-")."""
    return chain.from_iterable(portions(parser, input, input_of(input)))


def portions(
    parser: Parser,
    input: str,
    kind: Input | None,
    *,
    treebank: Format = "conllu",
    skip_bad: Callable[[TreebankError], None] | None = None,
) -> Iterator[Iterable[Sentence]]:
    """The sentences in what should be parsed at once: each paragraph or line that is typed, else all of them.

    Nothing is opened before the first is asked for. `treebank` is the format of a treebank that had to be looked at.
    """
    from headway.treebank import read_treebank

    with _opened(input, kind, Input(treebank)) as (found, source):
        if found in _TREEBANKS:
            yield read_treebank(source, format=cast("Format", found.value), skip_bad=skip_bad)
            return
        _require_words(parser, found)
        typed = input == "-" and sys.stdin.isatty()
        groups = _numbered(_groups(parser, found, source, typed))
        if typed:
            yield from groups
        else:
            yield chain.from_iterable(groups)


@contextmanager
def _opened(input: str, kind: Input | None, treebank: Input) -> Iterator[tuple[Input, PathOrStream]]:
    """What the input is, and where to read it from its beginning on."""
    if kind is not None:
        yield kind, input
        return
    from headway.treebank.streams import name_of, open_source

    name = name_of(input, "standard input")
    with open_source(input) as stream:
        try:
            start, is_treebank = _beginning(stream)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise TreebankError(f"the data break off ({error}); get a complete copy", name, 1) from None
        yield treebank if is_treebank else Input.TEXT, io.BufferedReader(_Again(stream, start, name))


def _beginning(stream: io.BufferedReader) -> tuple[bytes, bool]:
    """What had to be read to tell, and whether it is a treebank.

    >>> _beginning(io.BufferedReader(io.BytesIO(b"# Dogs\\n\\nbark.\\nCats\\n")))
    (b'# Dogs\\n\\nbark.\\n', False)
    """
    start = b""
    while len(start) < _LOOKED_AT and (line := stream.readline(_LOOKED_AT - len(start))):
        first, start = not start, start + line
        shown = line.removeprefix(_BYTE_ORDER_MARK) if first else line
        if shown.strip() and not shown.startswith(b"#"):
            return start, line.count(b"\t") == _TABS and len(start) < _LOOKED_AT
    return start, False


class _Again(io.RawIOBase):
    """A stream with what was read from it back in its place, under the name that errors should say."""

    def __init__(self, stream: io.BufferedReader, start: bytes, name: str) -> None:
        self._stream = stream
        self._rest = start
        self.name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = len(buffer)
        piece = self._rest or self._stream.read1(size)
        taken, self._rest = piece[:size], piece[size:]
        buffer[: len(taken)] = taken
        return len(taken)


def _require_words(parser: Parser, kind: Input) -> None:
    """Can the parser make of it what it was trained on? Said before anything is parsed."""
    if parser.segmenter is None and kind is not Input.TOKENS:
        parser.sentences("")  # its error says why it cannot
    if parser.needs_tags:
        raise TrainingError(
            "the model has no tagger, as it was trained on gold tags; give it a treebank with tags, or train a model "
            "with --tags predicted"
        )


def _groups(parser: Parser, kind: Input, source: PathOrStream, typed: bool) -> Iterator[list[Sentence]]:
    """The sentences of each paragraph, or of each line."""
    from headway.treebank.raw_text import one_sentence_per_line, paragraphs, pretokenised

    if kind is Input.TOKENS:
        yield from ([sentence] for sentence in pretokenised(source))
    elif kind is Input.LINES:
        assert parser.segmenter is not None
        yield from ([parser.segmenter.sentence(line, offset)] for offset, line in one_sentence_per_line(source))
    else:
        for offset, paragraph in _typed_paragraphs(source) if typed else paragraphs(source):
            found = parser.sentences(paragraph, offset)
            yield [_with_comment(sentence, "# newpar") for sentence in found[:1]] + found[1:]


def _typed_paragraphs(source: PathOrStream) -> Iterator[tuple[int, str]]:
    """The paragraphs as `raw_text.paragraphs` gives them, each as soon as a blank line ends it."""
    from headway.treebank.raw_text import split_paragraphs
    from headway.treebank.streams import open_source

    offset, text = 0, ""
    with open_source(source) as stream:
        for number, line in enumerate(chain(stream, [b""]), start=1):
            try:
                text += line.decode()
            except UnicodeDecodeError:
                raise TreebankError("the line is not valid UTF-8; type UTF-8", "standard input", number) from None
            if not line.strip():
                yield from ((offset + start, paragraph) for start, paragraph in split_paragraphs([text]))
                offset, text = offset + len(text), ""


def _numbered(groups: Iterable[list[Sentence]]) -> Iterator[list[Sentence]]:
    """Each sentence with its number in the whole input, before its text."""
    number = 0
    for group in groups:
        yield [_with_comment(sentence, f"# sent_id = {number + i}") for i, sentence in enumerate(group, start=1)]
        number += len(group)


def _with_comment(sentence: Sentence, comment: str) -> Sentence:
    """The comment before that with the text, behind others."""
    comments = sentence.layout.comments
    return replace(sentence, layout=replace(sentence.layout, comments=(*comments[:-1], comment, *comments[-1:])))
