"""Treebank text laid out in lines, from which the segmenter learns what line ends mean.

A treebank keeps sentences and paragraphs, seldom lines. So its paragraphs are set again, each in a style drawn at
random: prose wrapped at some width, with blank lines or without; long lines; lists, with marks or without; verse. A
sentence without a final mark (a heading, a list item, a line of an e-mail's header, a signature) mostly gets lines of
its own, as it had in print. What ends after each character stays known.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from headway.treebank.raw_text import SENTENCE, TOKEN, RawText

_OPEN = frozenset(",;:-(")  # marks after which a sentence is not over
_LABELS = ("From", "To", "Cc", "Date", "Sent", "Subject", "Name", "Phone", "E", "Web", "Re")
_MARKS = ("-", "*", "\u2022", "\u2013", "\u00b7", ">")

_MOST_SENTENCES = 15  # of a paragraph


class Word(NamedTuple):
    """A stretch between white space, and what ends after each of its characters, one byte each."""

    text: str
    ends: bytes


Line = list[Word]
Style = Callable[[Sequence[Line], random.Random], list[Line]]
"""Sets the sentences of a paragraph in lines."""


def laid_out(source: RawText, seed: int) -> RawText:
    """The text in lines; its paragraphs, in stretches of a few, are set in one style each."""
    rng = random.Random(seed)
    lines: list[Line] = []
    gaps: list[str] = []  # after each line
    left = 0
    for sentences in pieces_of(source):
        if left == 0:
            (style, between), left = _drawn(rng), rng.randint(1, 8)
        own = style(sentences, rng)
        lines += own
        gaps += ["\n"] * (len(own) - 1) + [between if rng.random() < 0.8 else "\n\n"]
        left -= 1
    return joined_lines(lines, gaps)


def run_on(source: RawText) -> RawText:
    """The text without paragraphs: headings, greetings and signatures end sentences that no blank line ends."""
    lines = list(_paragraphs(source))
    return joined_lines(lines, [" "] * len(lines))


def concatenated(texts: Sequence[RawText]) -> RawText:
    """Texts one after the other, a blank line between them."""
    ends = [part for each in texts for part in (each.ends, np.zeros(2, np.int8))][:-1]
    return RawText("\n\n".join(each.text for each in texts), np.concatenate(ends))


def _drawn(rng: random.Random) -> tuple[Style, str]:
    """A style, and what stands between its paragraphs."""
    width = rng.choice([rng.randint(40, 100), rng.randint(60, 80)])
    between = rng.choice(["\n\n", "\n\n", "\n", "\n    "])
    kind = rng.choices(["prose", "long lines", "list", "verse"], [5, 2, 2, 1])[0]
    if kind == "prose":
        return lambda sentences, own: _prose(sentences, own, width), between
    if kind == "long lines":
        return lambda sentences, own: _prose(sentences, own, 1 << 30), "\n"
    if kind == "list":
        mark, wrap = rng.choice(["", "", *_MARKS, "1.", "1)", ":", ":"]), rng.choice([width, 1 << 30])
        return lambda sentences, own: _list(sentences, own, mark, wrap), between
    capital = rng.random() < 0.6
    return lambda sentences, own: _verse(sentences, own, capital), "\n\n"


def _prose(sentences: Sequence[Line], rng: random.Random, width: int) -> list[Line]:
    """Lines as full as they get; most sentences without a final mark on lines of their own."""
    lines: list[Line] = []
    run: Line = []
    for sentence in sentences:
        alone = not _is_closed(sentence) and rng.random() < 0.8
        if alone:
            lines += _wrapped(run, width)
            run = []
        run += sentence
        if alone:
            lines += _wrapped(run, width)
            run = []
    return lines + _wrapped(run, width)


def _list(sentences: Sequence[Line], rng: random.Random, mark: str, width: int) -> list[Line]:
    """Every sentence begins a line, after a mark if there is one; the mark ":" stands for a label, as in headers."""
    lines: list[Line] = []
    for number, sentence in enumerate(sentences, start=1):
        shown = f"{rng.choice(_LABELS)}:" if mark == ":" else mark.replace("1", str(number))
        before = len(shown) - 1  # characters of a number or a label, which is a token
        ends = bytes([0] * (before - 1) + [TOKEN] * (2 if before else 1))
        lines += _wrapped([Word(shown, ends), *sentence] if mark else sentence, width)
    return lines


def _verse(sentences: Sequence[Line], rng: random.Random, capital: bool) -> list[Line]:
    """Short lines that end with a sentence, often after a mark, or after some words.

    With `capital`, every line of a sentence that begins with one does, too.
    """
    lines: list[Line] = []
    for sentence in sentences:
        own: list[Line] = [[]]
        most = rng.randint(4, 9)
        for word in sentence:
            if len(own[-1]) >= most or (len(own[-1]) > 2 and own[-1][-1].text[-1] in _OPEN):
                own.append([])
            own[-1].append(word)
        capitals = capital and sentence[0].text[0].isupper()
        lines += [[_capitalised(line[0]), *line[1:]] for line in own] if capitals else own
    return lines


def _wrapped(words: Line, width: int) -> list[Line]:
    """The words in lines of at most `width` characters; a longer word has a line of its own."""
    lines: list[Line] = []
    room = 0
    for word in words:
        if len(word.text) >= room:
            lines.append([])
            room = width + 1
        lines[-1].append(word)
        room -= len(word.text) + 1
    return lines


def _capitalised(word: Word) -> Word:
    first = word.text[0].upper()
    return word if len(first) != 1 else Word(first + word.text[1:], word.ends)


def _is_closed(sentence: Line) -> bool:
    """Does it end in a final mark, or in a bracket or quote?"""
    last = sentence[-1].text[-1]
    return not last.isalnum() and last not in _OPEN


def _paragraphs(source: RawText) -> Iterator[Line]:
    ends = source.ends.tobytes()
    start = 0
    for paragraph in source.text.split("\n\n"):
        words: Line = []
        for text in paragraph.split(" "):
            if text:
                words.append(Word(text, ends[start : start + len(text)]))
            start += len(text) + 1
        start += 1
        if words:
            yield words


def pieces_of(source: RawText) -> Iterator[list[Line]]:
    """The sentences of each paragraph, a few at a time: some treebanks mark no paragraphs."""
    for sentences in map(_sentences, _paragraphs(source)):
        for start in range(0, len(sentences), _MOST_SENTENCES):
            yield sentences[start : start + _MOST_SENTENCES]


def _sentences(paragraph: Line) -> list[Line]:
    """The paragraph cut after the words that end a sentence."""
    cuts = [k + 1 for k, word in enumerate(paragraph) if word.ends[-1] == SENTENCE]
    edges = [0, *cuts, *([len(paragraph)] if not cuts or cuts[-1] < len(paragraph) else [])]
    return [paragraph[a:b] for a, b in pairwise(edges)]


def joined_lines(lines: Sequence[Line], gaps: Sequence[str]) -> RawText:
    """The lines as one text, each followed by its gap, the last by nothing."""
    pieces: list[str] = []
    ends: list[bytes] = []
    for line, gap in zip(lines, [*gaps[:-1], ""][: len(lines)], strict=True):
        for position, (text, own) in enumerate(line):
            after = gap if position == len(line) - 1 else " "
            pieces += text, after
            ends += own, bytes(len(after))
    return RawText("".join(pieces), np.frombuffer(b"".join(ends), np.int8))
