"""The values of words as numbers: what the two coders, of the parser and of the tagger, have in common.

A word is anything that can be hashed; `values_of` says the values of its fields, in the order of the fields. A saved
model lists the values of each field, and their places in the list are their numbers. However long the text, the values
of every distinct word are worked out once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Ints

Codes = NDArray[np.int32]
Word = TypeVar("Word", bound=Hashable)
ValuesOf = Callable[[Word], Sequence[str]]


def values_seen(
    words: Iterable[Word], values_of: ValuesOf[Word], fields: Sequence[str], least: int = 1
) -> dict[str, list[str]]:
    """The values that are seen at least so often, field by field, in the order they are first seen; "" is none."""
    seen: list[Counter[str]] = [Counter() for _ in fields]
    for word, count in Counter(words).items():
        for counts, value in zip(seen, values_of(word), strict=True):
            counts[value] += count
    return {
        field: [value for value, count in counts.items() if value and count >= least]
        for field, counts in zip(fields, seen, strict=True)
    }


def numbered(values: Iterable[str], first: int) -> dict[str, int]:
    """The number of each value.

    >>> numbered(["NN", "VB"], 3)
    {'NN': 3, 'VB': 4}
    """
    return {value: number for number, value in enumerate(values, first)}


def word_columns(start: Ints, lengths: Ints) -> Ints:
    """The columns of all words, sentence by sentence.

    >>> word_columns(np.array([2, 9]), np.array([3, 1])).tolist()
    [2, 3, 4, 9]
    """
    before = np.cumsum(lengths) - lengths
    columns: Ints = np.arange(int(lengths.sum())) + np.repeat(start - before, lengths)
    return columns


def codes_of(
    words: Iterable[Word], values_of: ValuesOf[Word], numbers: Collection[Mapping[str, int]], unknown: int
) -> Codes:
    """The numbers of the words' values, (fields, words)."""
    row: dict[Word, int] = {}
    rows = [row.setdefault(word, len(row)) for word in words]
    table = np.empty((len(numbers), len(row)), np.int32)
    for codes, number, values in zip(table, numbers, zip(*map(values_of, row), strict=True), strict=False):
        codes[:] = np.fromiter(map(number.get, values, repeat(unknown)), np.int32, len(row))
    return table[:, rows]
