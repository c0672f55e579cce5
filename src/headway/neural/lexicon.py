"""Words as numbers for an encoder that is trained from scratch: the word, its characters, tags where they are given.

Number 0 is padding, and 1 is what is not known: what was not seen in training, and words and lemmas seen there once.
Training also replaces others by the unknown one now and then, so that the network knows what to do with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Ints
from headway.neural.reading import Inputs, padded
from headway.saved_values import column_values, mapping
from headway.treebank import Sentence

PADDING, UNKNOWN, FIRST = 0, 1, 2
MOST_CHARACTERS = 20  # of a word: its first and its last ones
_MOST_FEATS = 12
WIDTHS = {"characters": MOST_CHARACTERS, "feats": _MOST_FEATS}  # of the columns that have several numbers for a word
COLUMNS = ("words", "characters", "lemmas", "upos", "xpos", "feats")


@dataclass(frozen=True, repr=False)
class LexiconReader:
    """The values of each column that is read, in the order of their numbers, from `FIRST` on."""

    values: Mapping[str, tuple[str, ...]]

    kind: ClassVar[str] = "lexicon"

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(self.values)

    @property
    def requires(self) -> frozenset[str]:
        """Tags are needed where training saw any."""
        return frozenset({"words", "tags"} if self.values.keys() & {"upos", "xpos"} else {"words"})

    @property
    def description(self) -> str:
        return ", ".join(f"{len(values)} {name}" for name, values in self.values.items())

    @classmethod
    def learn(cls, sentences: Sequence[Sentence], *, tags: bool) -> LexiconReader:
        """Number the words and lemmas that occur more than once, and all characters, tags and features."""
        counts = {name: Counter[str]() for name in (COLUMNS if tags else COLUMNS[:2])}
        for sentence in sentences:
            for name, column in _columns(sentence, counts):
                counts[name].update(column)
        kept = {
            name: tuple(value for value, n in count.most_common() if n > (name in ("words", "lemmas")))
            for name, count in counts.items()
        }
        return cls({name: values for name, values in kept.items() if len(values) > 1 or name in COLUMNS[:2]})

    @cached_property
    def _numbers(self) -> Mapping[str, Mapping[str, int]]:
        return {name: {v: i for i, v in enumerate(values, start=FIRST)} for name, values in self.values.items()}

    @property
    def sizes(self) -> dict[str, int]:
        """How many numbers each column has."""
        return {name: len(values) + FIRST for name, values in self.values.items()}

    def read(self, sentences: Sequence[Sentence]) -> LexiconReading:
        """Sentences as numbers, every column padded to the longest of them."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        nodes = int(lengths.max(initial=0)) + 1
        inside = (np.arange(nodes) <= lengths[:, None]) & (np.arange(nodes) > 0)
        columns: dict[str, NDArray[np.int64]] = {}
        for name, number in self._numbers.items():
            values = [value for sentence in sentences for value in _column(sentence, name)]
            if name in WIDTHS:
                width = WIDTHS[name]
                coded = {v: [number.get(part, UNKNOWN) for part in _parts(name, v)] for v in set(values)}
                rows = padded([coded[value] for value in values], width)
                column = np.zeros((len(sentences), nodes, width), np.int64)
            else:
                rows = np.fromiter((number.get(value, UNKNOWN) for value in values), np.int64, len(values))
                column = np.zeros((len(sentences), nodes), np.int64)
            column[inside] = rows
            columns[name] = column
        return LexiconReading(columns, lengths)

    def to_data(self) -> dict[str, Any]:
        return {"values": {name: list(values) for name, values in self.values.items()}}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> LexiconReader:
        """The reader that was saved."""
        columns = mapping(data["values"], "the values")
        if not {"words"} <= columns.keys() <= set(COLUMNS):
            raise ValueError("the values are of columns that no reader has")
        return cls({name: column_values(values, f"a value of {name}") for name, values in columns.items()})


@dataclass(frozen=True)
class LexiconReading:
    """Columns (S, N+1), with characters and features (S, N+1, K)."""

    columns: Mapping[str, NDArray[np.int64]]
    lengths: Ints

    @property
    def sizes(self) -> Ints:
        """Words of each sentence."""
        return self.lengths

    def batch(self, which: Ints) -> Inputs:
        """Some of the rows, cut to the longest of these sentences."""
        nodes = int(self.lengths[which].max(initial=0)) + 1
        return {name: column[which, :nodes] for name, column in self.columns.items()}


def _columns(sentence: Sentence, names: Iterable[str]) -> Iterable[tuple[str, Iterable[str]]]:
    """What is counted of each column."""
    for name in names:
        values = _column(sentence, name)
        yield (
            name,
            (part for value in values for part in _parts(name, value)) if name in WIDTHS else values,
        )


def _column(sentence: Sentence, name: str) -> Sequence[str]:
    if name == "words":
        return [form.lower() for form in sentence.forms]
    return sentence.forms if name == "characters" else getattr(sentence, name)


def _parts(name: str, value: str) -> Sequence[str]:
    """The characters of a word, or the features of a word."""
    if name == "feats":
        return () if value == "_" else value.split("|")[:_MOST_FEATS]
    half = MOST_CHARACTERS // 2
    return value if len(value) <= MOST_CHARACTERS else value[:half] + value[-half:]
