"""The syntax of `Entity=` in MISC (CorefUD 1.0, UD English-GUM): brackets around the words of each mention.

`(7-person-new` opens a mention of entity 7, `7)` closes it, `(7-person-new)` is a mention of one word. After the name
come the fields that the file's header names; they are kept as they are. A value is a sequence of marks. Among mentions
of one entity, the one opened last is closed first; mentions of different entities may cross. A mention with gaps is
written in parts, each marked `(7[1/2]-person-new` ... `7[1/2])`. A part belongs to the latest incomplete mention of
that entity with that number of parts.

On one word, CorefUD puts closing marks first (innermost first), then opening ones (outermost first), then mentions of
one word; without opening marks, mentions of one word come first. Marks are read in any order, in time linear in the
words and marks. Writing sorts them; mentions are compared with each other only if they are of one entity and cross or
have gaps.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from operator import attrgetter
from typing import NamedTuple

from headway.treebank.conll_reader import shown

_MARK = re.compile(
    r"(?P<opens>\()?(?P<name>[^()\[\]-]+)(?:\[(?P<part>[1-9][0-9]{0,5})/(?P<parts>[1-9][0-9]{0,5})\])?"
    r"(?:-(?P<rest>[^()]*))?(?P<closes>\))?"
)

# Nested mentions repeat words. No real sentence has this many, but a broken or hostile file may.
MOST_WORDS = 1_000_000  # of all mentions of a sentence together


class MarksError(Exception):
    """What is wrong with the marks of a sentence, and the word where it is wrong."""

    def __init__(self, word: int, cause: str) -> None:
        super().__init__(cause)
        self.word = word


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark; `rest` has the fields of an opening mark after the name. Without gaps, `part` is 1 of 1 `parts`."""

    name: str
    opens: bool
    closes: bool
    rest: str = ""
    part: int = 1
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Span:
    """A mention in its sentence: the name of the entity, the words (ascending), the other fields of the mark."""

    name: str
    words: tuple[int, ...]
    rest: str = ""


def parse_marks(value: str, word: int) -> Iterator[Mark]:
    """The marks in one value of `Entity=`, which stands at `word`.

    >>> [(mark.name, mark.opens, mark.closes, mark.rest) for mark in parse_marks("7)(5-person(3)", 1)]
    [('7', False, True, ''), ('5', True, False, 'person'), ('3', True, True, '')]
    """
    position = 0
    while position < len(value) or not value:
        match = _MARK.match(value, position)
        if match is None or not (match["opens"] or match["closes"]):
            raise MarksError(word, f"{shown(value[position:])} is not a mark; write '(NAME-...', 'NAME)', '(NAME-...)'")
        if not match["opens"] and match["rest"] is not None:
            raise MarksError(word, f"the closing mark {shown(match[0])} has more than a name; write 'NAME)'")
        part, parts = int(match["part"] or 1), int(match["parts"] or 1)
        if part > parts:
            raise MarksError(word, f"the mark {shown(match[0])} is part {part} of {parts}; number the parts from 1")
        yield Mark(match["name"], bool(match["opens"]), bool(match["closes"]), match["rest"] or "", part, parts)
        position = match.end()


def read_spans(values: Iterable[tuple[int, str]]) -> list[Span]:
    """The mentions of a sentence, from the values of `Entity=`, each with its word, in ascending order.

    >>> read_spans([(1, "(1-person"), (2, "(2)"), (4, "1)")])
    [Span(name='1', words=(1, 2, 3, 4), rest='person'), Span(name='2', words=(2,), rest='')]
    """
    pieces: list[tuple[Mark, int]] = []  # opening marks with their words
    ends: list[int] = []  # 0 while open
    still_open: defaultdict[tuple[str, int, int], list[int]] = defaultdict(list)
    total = 0
    for word, value in values:
        for mark in parse_marks(value, word):
            key = mark.name, mark.part, mark.parts
            if mark.opens:
                pieces.append((mark, word))
                ends.append(word if mark.closes else 0)
                if not mark.closes:
                    still_open[key].append(len(ends) - 1)
                continue
            if not still_open[key]:
                raise MarksError(word, f"{shown(_label(mark) + ')')} closes a mention that is not open; open it")
            place = still_open[key].pop()
            ends[place] = word
            total += word - pieces[place][1] + 1
            if total > MOST_WORDS:
                raise MarksError(word, f"the mentions of the sentence have over {MOST_WORDS:,} words; remove some")
    for (mark, word), end in zip(pieces, ends, strict=True):
        if not end:
            label = _label(mark)
            cause = f"{shown('(' + label)} is not closed in its sentence; write {shown(label + ')')} at its last word"
            raise MarksError(word, cause)
    return _joined((mark, range(word, end + 1)) for (mark, word), end in zip(pieces, ends, strict=True))


def write_spans(spans: Iterable[Span]) -> dict[int, str]:
    """The values of `Entity=`, by word, that `read_spans` reads as these spans.

    >>> write_spans([Span("1", (1, 2, 3), "person"), Span("2", (3,))])
    {1: '(1-person', 3: '(2)1)'}
    """
    by_name = attrgetter("name")
    pieces = [piece for _, group in groupby(sorted(spans, key=by_name), by_name) for piece in _pieces(list(group))]
    pieces.sort(key=lambda piece: (piece.start, -piece.end))
    opening: defaultdict[int, list[str]] = defaultdict(list)
    single: defaultdict[int, list[str]] = defaultdict(list)
    closing: defaultdict[int, list[str]] = defaultdict(list)
    for piece in pieces:
        opener = f"({piece.label}-{piece.rest}" if piece.rest else f"({piece.label}"
        if piece.start == piece.end:
            single[piece.start].append(f"{opener})")
        else:
            opening[piece.start].append(opener)
            closing[piece.end].append(f"{piece.label})")
    result = {}
    for word in sorted({*opening, *single, *closing}):
        closers = closing[word][::-1]
        marks = closers + opening[word] + single[word] if opening[word] else single[word] + closers
        result[word] = "".join(marks)
    return result


class _Piece(NamedTuple):
    """Adjacent words between two marks."""

    start: int
    end: int
    label: str
    rest: str


class _Begun(NamedTuple):
    """A mention of which some parts have been read; its `rest` is that of the first part."""

    rest: str
    last: Mark
    words: list[int]


def _joined(pieces: Iterable[tuple[Mark, range]]) -> list[Span]:
    """Put mentions with gaps together; the pieces are in the order of their opening marks."""
    spans: list[Span] = []
    begun: defaultdict[tuple[str, int], list[_Begun]] = defaultdict(list)
    for mark, words in pieces:
        stack = begun[mark.name, mark.parts]
        if mark.part == 1:
            stack.append(_Begun(mark.rest, mark, list(words)))
        else:
            before = stack.pop() if stack else None
            if before is None or before.last.part != mark.part - 1 or before.words[-1] >= words[0]:
                cause = f"part {shown(_label(mark))} does not follow part {mark.part - 1}; write the parts in order"
                raise MarksError(words[0], cause)
            before.words.extend(words)
            stack.append(before._replace(last=mark))
        if mark.part == mark.parts:
            done = stack.pop()
            spans.append(Span(mark.name, tuple(done.words), done.rest))
    for incomplete in chain.from_iterable(begun.values()):
        mark = incomplete.last
        cause = f"part {shown(_label(mark))} is not followed by part {mark.part + 1}; add it"
        raise MarksError(incomplete.words[-1], cause)
    return spans


def _pieces(spans: list[Span]) -> Iterator[_Piece]:
    """The pieces of one entity's mentions in one sentence, cut so that reading puts the right ones together.

    Mentions without parts must not cross. Of two mentions with the same number of parts, one must lie in a gap of the
    other or beside it. Otherwise the larger one is cut into more parts, because it has more words to cut between.
    """
    if not _needs_parts(spans):
        yield from (_Piece(span.words[0], span.words[-1], span.name, span.rest) for span in spans)
        return
    chosen: list[tuple[int, Span]] = []
    for span in sorted(spans, key=lambda span: len(span.words)):
        runs = _runs(span.words)
        possible = range(len(runs), len(span.words) + 1)
        taken = {parts for parts, other in chosen if _confused(span, other, parts)}
        parts = next((parts for parts in possible if parts not in taken), None)
        if parts is None:
            cause = (
                f"mentions of {shown(span.name)} interleave so that no marks can tell them apart; remove one of them"
            )
            raise MarksError(span.words[0], cause)
        chosen.append((parts, span))
        for part, run in enumerate(_cut(runs, parts), start=1):
            label = span.name if parts == 1 else f"{span.name}[{part}/{parts}]"
            yield _Piece(run[0], run[-1], label, span.rest)


def _needs_parts(spans: Sequence[Span]) -> bool:
    """Does one have a gap, or do two cross? Linear except for sorting."""
    ends: list[int] = []
    for first, last, count in sorted((span.words[0], -span.words[-1], len(span.words)) for span in spans):
        while ends and ends[-1] <= first:
            ends.pop()
        if count != -last - first + 1 or (ends and ends[-1] < -last):
            return True
        ends.append(-last)
    return False


def _confused(one: Span, other: Span, parts: int) -> bool:
    """Would the marks of these two mentions, each in this many parts, be read as other mentions?"""
    if parts > 1:
        return _reaches_into(one, other) and _reaches_into(other, one)
    (left, left_end), (right, right_end) = sorted((span.words[0], span.words[-1]) for span in (one, other))
    return left < right < left_end < right_end  # where one ends and the other begins, the end is written first


def _reaches_into(one: Span, other: Span) -> bool:
    """Is a word of one between the first and the last of the other? If not, it lies beside it or around it."""
    return any(other.words[0] <= word <= other.words[-1] for word in one.words)


def _runs(words: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The words, cut at gaps."""
    cuts = [0, *(i for i in range(1, len(words)) if words[i] != words[i - 1] + 1), len(words)]
    return [words[start:end] for start, end in pairwise(cuts)]


def _cut(runs: list[tuple[int, ...]], parts: int) -> list[tuple[int, ...]]:
    """The runs cut into this many parts, by cutting single words off the front."""
    result: list[tuple[int, ...]] = []
    spare = parts - len(runs)
    for run in runs:
        cuts = min(spare, len(run) - 1)
        spare -= cuts
        result += ((word,) for word in run[:cuts])
        result.append(run[cuts:])
    return result


def _label(mark: Mark) -> str:
    return mark.name if mark.parts == 1 else f"{mark.name}[{mark.part}/{mark.parts}]"
