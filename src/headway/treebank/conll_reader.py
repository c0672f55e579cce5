"""From bytes to sentences: CoNLL-U and CoNLL-X, one sentence in memory at a time.

A sentence is a block of lines that a blank line or the end of the file ends: comments (`#`), then ten columns per line,
separated by tabs: ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC; in CoNLL-X ID FORM LEMMA CPOSTAG POSTAG FEATS
HEAD DEPREL PHEAD PDEPREL. CoNLL-X has no comments, multiword tokens (1-2) or empty nodes (1.1). Lines end in LF or
CRLF; if a sentence mixes the two, its first line decides. Text is UTF-8 and is not normalised.

Cycles and several roots are accepted here, as CoNLL-X treebanks have them; `require_tree` checks for trees. HEAD is "_"
for every word or for none, unless `partial`: then a word with "_" has an unknown head, -1, and no DEPREL.

A sentence is split into columns in one go; its lines are inspected one by one only to name the one that is wrong.
Numbers are compared as text ("07" and "+7" are malformed), so that what is read is what will be written.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain, takewhile
from sys import intern

import numpy as np

from headway.arrays import Ints
from headway.errors import TreebankError
from headway.treebank.sentence import Format, Layout, Place, Sentence

# No treebank has longer sentences; a file that has lost its blank lines, or is not a treebank, does.
LONGEST_SENTENCE = 100_000  # lines
LARGEST_SENTENCE = 10_000_000  # bytes

_COLUMNS = 10
_BLANK = (b"\n", b"\r\n")
_BYTE_ORDER_MARK = "\ufeff".encode()
_EXTRA_ID = re.compile(r"(0|[1-9][0-9]{0,8})([-.])([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class Block:
    """The lines of one sentence; `line` is the number of the first. If it is too large, its text is dropped."""

    text: bytes
    line: int
    too_large: bool = False


class _MalformedError(Exception):
    """What is wrong with a sentence, and where: `offset` lines after its first."""

    def __init__(self, offset: int, cause: str) -> None:
        super().__init__(cause)
        self.offset = offset


def blocks(stream: BufferedReader) -> Iterator[Block]:
    """Cut a stream at its blank lines, never holding more than one sentence, of bounded size."""
    limit = LARGEST_SENTENCE + 1  # a longer line is read in parts
    start = stream.readline(len(_BYTE_ORDER_MARK) + limit).removeprefix(_BYTE_ORDER_MARK)
    pieces = chain([start] if start else [], iter(functools.partial(stream.readline, limit), b""))
    first = 1
    lines: list[bytes] = []
    size = 0
    for piece in pieces:
        if piece not in _BLANK:
            lines.append(piece)
            size += len(piece)
            if size <= LARGEST_SENTENCE and len(lines) <= LONGEST_SENTENCE:
                continue
            whole = piece.endswith(b"\n")
            count = len(lines) - (not whole)
            lines = []
            yield Block(b"", first, too_large=True)
            count += _skip_past_blank(stream, at_line_start=whole)
        else:
            count = len(lines) + 1
            if lines:
                yield Block(b"".join(lines), first)
        first += count
        lines, size = [], 0
    if lines:
        yield Block(b"".join(lines), first)


def parse_block(block: Block, source: str, format: Format, *, partial: bool = False, trees: bool = True) -> Sentence:
    """The sentence of a block, or a TreebankError that names the line; without `trees`, it has none.

    >>> parse_block(Block(b"1\\tGo\\tgo\\t_\\t_\\t_\\t0\\troot\\t_\\t_\\n", 1), "stream", "conllu").labels
    (None, 'root')
    """
    try:
        return _parse(block, Place(source, block.line), format, partial, trees)
    except _MalformedError as problem:
        raise TreebankError(str(problem), source, block.line + problem.offset) from None


def _skip_past_blank(stream: BufferedReader, *, at_line_start: bool) -> int:
    """Read on past the next blank line; returns the number of lines read."""
    count = 0
    while piece := stream.readline(LARGEST_SENTENCE + 1):
        count += piece.endswith(b"\n")
        if at_line_start and piece in _BLANK:
            break
        at_line_start = piece.endswith(b"\n")
    return count


def _parse(block: Block, place: Place, format: Format, partial: bool, trees: bool) -> Sentence:
    text = _decode(block)
    lines = text.removesuffix("\n").split("\n")
    newline = "\n"
    if "\r" in text:
        newline = "\r\n" if lines[0].endswith("\r") else "\n"
        lines = [line.removesuffix("\r") for line in lines]
    comments = tuple(takewhile(_is_comment, lines))
    if comments and format == "conllx":
        raise _MalformedError(0, "CoNLL-X has no comments; read the file as CoNLL-U (format='conllu')")
    skipped = len(comments)
    rows = [line.split("\t") for line in lines[skipped:]]
    if any(map(_COLUMNS.__ne__, map(len, rows))):
        raise _wrong_columns(lines, skipped)
    # An empty column always shows as one of these; a comment may contain them too.
    if "\t\t" in text or "\t\n" in text or "\t\r" in text or text.endswith("\t"):
        _refuse_empty_columns(lines, skipped)
    ids = list(map(str, range(1, len(rows) + 1)))
    extra_lines: tuple[tuple[int, str], ...] = ()
    if [row[0] for row in rows] != ids:
        extra_lines = _extra_lines(lines, skipped, format)
        rows = [row for row in rows if row[0].isdecimal()]
        ids = ids[: len(rows)]
    columns = tuple(zip(*rows, strict=True)) or ((),) * _COLUMNS
    _, forms, lemmas, upos, xpos, feats, head, deprel, deps, misc = columns
    # One string for each tag rather than one for each word: less memory, and much faster to look up later.
    upos, xpos = tuple(map(intern, upos)), tuple(map(intern, xpos))
    heads = _heads(ids, head, lines, partial or not trees)
    if not trees:
        heads = None
    elif "_" in head:
        _refuse_labels_without_heads(head, deprel, lines)
    labels = None if heads is None else (None, *deprel)
    layout = Layout(format, comments, extra_lines, deps, misc, newline)
    return Sentence(forms, lemmas, upos, xpos, feats, heads, labels, layout, place)


def _decode(block: Block) -> str:
    if block.too_large:
        limits = f"{LONGEST_SENTENCE:,} lines or {LARGEST_SENTENCE:,} bytes"
        raise _MalformedError(0, f"the sentence has more than {limits}; put a blank line after every sentence")
    try:
        return block.text.decode()
    except UnicodeDecodeError as error:
        byte = block.text[error.start]
        offset = block.text.count(b"\n", 0, error.start)
        raise _MalformedError(offset, f"byte 0x{byte:02x} is not valid UTF-8; save the file as UTF-8") from None


def _is_comment(line: str) -> bool:
    return line.startswith("#")


def _heads(ids: Sequence[str], column: Sequence[str], lines: Sequence[str], partial: bool) -> Ints | None:
    """The heads (n+1,), or None if every word has "_"; with `partial`, -1 where only some have it."""
    node = dict(zip(ids, range(1, len(ids) + 1), strict=True))
    node["0"] = 0
    if partial and column.count("_") < len(column):
        node["_"] = -1
    try:
        heads = [-1, *map(node.__getitem__, column)]
    except KeyError:
        if column.count("_") == len(column):
            return None
        raise _wrong_head(column, node, lines) from None
    if any(map(operator.eq, column, ids)):
        raise _wrong_head(column, node, lines)
    return np.array(heads, dtype=np.int64)


def _extra_lines(lines: Sequence[str], skipped: int, format: Format) -> tuple[tuple[int, str], ...]:
    """Multiword tokens and empty nodes, each with the number of words before it. Checks every ID."""
    found: list[tuple[int, str]] = []
    words = empty_nodes = range_end = range_line = 0
    for offset, line in enumerate(lines[skipped:], start=skipped):
        name = line.partition("\t")[0]
        if name == str(words + 1):
            words += 1
            empty_nodes = 0
            continue
        match = _EXTRA_ID.fullmatch(name)
        if match is None:
            raise _wrong_id(offset, line, words)
        if format == "conllx":
            cause = f"CoNLL-X has no ID {shown(name)}; read the file as CoNLL-U (format='conllu')"
            raise _MalformedError(offset, cause)
        start, end = int(match[1]), int(match[3])
        if match[2] == ".":
            empty_nodes += 1
            if (start, end) != (words, empty_nodes):
                raise _MalformedError(offset, f"the empty node is {name}; expected {words}.{empty_nodes} here")
        else:
            if start != words + 1 or end < start or start <= range_end:
                expected = f"a range from word {words + 1} on that overlaps no other"
                raise _MalformedError(offset, f"the multiword token is {name}; expected {expected}")
            range_end, range_line = end, offset
        found.append((words, line))
    if range_end > words:
        raise _MalformedError(range_line, f"the multiword token ends with word {range_end} of {words}; end it earlier")
    return tuple(found)


def _wrong_columns(lines: Sequence[str], skipped: int) -> _MalformedError:
    offset, line = next((i, line) for i, line in enumerate(lines) if i >= skipped and line.count("\t") != _COLUMNS - 1)
    if _is_comment(line):
        return _MalformedError(offset, "a comment stands after the first word; move it before the sentence")
    if not line.strip():
        return _MalformedError(offset, "the line is not empty but has only spaces; remove them")
    tabs = line.count("\t")
    if not tabs:
        cause = (
            f"the line has 1 column; expected {_COLUMNS} with tabs between them; if it is plain text, parse it first"
        )
        return _MalformedError(offset, cause)
    return _MalformedError(offset, f"the line has {tabs + 1} columns; expected {_COLUMNS} with tabs between them")


def _wrong_id(offset: int, line: str, words: int) -> _MalformedError:
    if _is_comment(line):
        return _MalformedError(offset, "a comment stands after the first word; move it before the sentence")
    name = shown(line.partition("\t")[0])
    return _MalformedError(offset, f"the ID is {name}; expected {words + 1}, words are numbered from 1")


def _refuse_empty_columns(lines: Sequence[str], skipped: int) -> None:
    for offset, line in enumerate(lines[skipped:], start=skipped):
        row = line.split("\t")
        if "" in row:
            raise _MalformedError(offset, f"column {row.index('') + 1} is empty; write '_' where there is nothing")


def _wrong_head(column: Sequence[str], node: dict[str, int], lines: Sequence[str]) -> _MalformedError:
    word, head = next((i, head) for i, head in enumerate(column, start=1) if node.get(head, i) == i)
    offset = _offset_of_word(word, lines)
    if head == "_":
        return _MalformedError(offset, f"word {word} has no HEAD but others have; give every word one, or none")
    if head == str(word):
        return _MalformedError(offset, f"word {word} is its own HEAD; give it another head")
    n = len(column)
    return _MalformedError(offset, f"the HEAD of word {word} is {shown(head)}; expected 0 (the root) to {n}")


def _refuse_labels_without_heads(heads: Sequence[str], labels: Sequence[str], lines: Sequence[str]) -> None:
    for word, (head, label) in enumerate(zip(heads, labels, strict=True), start=1):
        if head == "_" != label:
            cause = f"word {word} has a DEPREL but no HEAD; give both, or neither"
            raise _MalformedError(_offset_of_word(word, lines), cause)


def _offset_of_word(word: int, lines: Sequence[str]) -> int:
    return next(i for i, line in enumerate(lines) if line.startswith(f"{word}\t"))


def shown(value: str) -> str:
    """Text from a file, made safe to print: quoted, escaped and shortened."""
    return ascii(value) if len(value) <= 30 else f"{value[:30]!a}..."
