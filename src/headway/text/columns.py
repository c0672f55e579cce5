"""Columns of tags that a sentence lacks, filled with predicted ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headway.treebank import Sentence

COLUMNS = ("lemmas", "upos", "xpos", "feats")
TAGS = frozenset({"upos", "xpos"})

Columns = Mapping[str, Any]
"""A tuple of texts by the name of its column."""


def completed(sentence: Sentence, columns: Columns, *, replace_all: bool = False) -> Sentence:
    """The sentence with these columns where it lacks UPOS or XPOS that they have; with `replace_all`, with all of them.

    >>> given = Sentence.from_words(["Dogs", "bark"], upos=["NOUN", "VERB"])
    >>> completed(given, {"upos": ("X", "X"), "xpos": ("NNS", "VBP")}).upos
    ('NOUN', 'VERB')
    """
    if replace_all:
        return replace(sentence, **columns)
    lacks_tags = any(name in columns and is_absent(getattr(sentence, name)) for name in TAGS)
    return filled(sentence, columns) if lacks_tags else sentence


def filled(sentence: Sentence, columns: Columns) -> Sentence:
    """The sentence with these columns where it has none of its own."""
    return replace(sentence, **{name: own for name, own in columns.items() if is_absent(getattr(sentence, name))})


def is_absent(column: tuple[str, ...]) -> bool:
    return column.count("_") == len(column)
