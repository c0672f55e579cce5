"""A sentence as lines of CoNLL-U or CoNLL-X: ten columns separated by tabs, and a blank line after the sentence.

A sentence written in the format it was read in comes out byte for byte, line ends included. In the other format it
loses what has no place there: CoNLL-X has no comments, multiword tokens or empty nodes, and the last two columns (DEPS
and MISC; PHEAD and PDEPREL) mean different things in the two formats, so they become "_".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headway.treebank.annotations import extra_lines_as_written, misc_as_written

if TYPE_CHECKING:
    from headway.treebank.sentence import Format, Sentence


def to_text(sentence: Sentence, format: Format) -> str:
    """The sentence's lines and the blank line that ends it."""
    layout = sentence.layout
    if format != layout.format:
        absent = ("_",) * len(sentence)
        lines = _word_lines(sentence, absent, absent)
    else:
        lines = _word_lines(sentence, layout.deps, misc_as_written(layout))
    if format == "conllu":
        lines = [*layout.comments, *_with_extra_lines(lines, extra_lines_as_written(layout))]
    lines += "", ""
    return layout.newline.join(lines)


def _word_lines(sentence: Sentence, deps: tuple[str, ...], misc: tuple[str, ...]) -> list[str]:
    n = len(sentence)
    heads = ("_",) * n if sentence.heads is None else _head_column(sentence.heads[1:].tolist())
    labels = ("_",) * n if sentence.labels is None else sentence.labels[1:]
    columns = (
        map(str, range(1, n + 1)),
        sentence.forms,
        sentence.lemmas,
        sentence.upos,
        sentence.xpos,
        sentence.feats,
        heads,
        labels,
        deps,
        misc,
    )
    return list(map("\t".join, zip(*columns, strict=True)))


def _head_column(heads: list[int]) -> Iterable[str]:
    """The heads as text, "_" where one is unknown; the second branch is faster, and nearly always taken."""
    return ["_" if head < 0 else str(head) for head in heads] if -1 in heads else map(str, heads)


def _with_extra_lines(lines: list[str], extra_lines: tuple[tuple[int, str], ...]) -> list[str]:
    if not extra_lines:
        return lines
    merged: list[str] = []
    start = 0
    for words_before, line in extra_lines:
        merged += lines[start:words_before]
        merged.append(line)
        start = words_before
    return merged + lines[start:]
