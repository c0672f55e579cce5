"""What a network reads of sentences: arrays of numbers, made once, of which batches are taken.

A reader turns sentences into `Reading`s, once; a batch of some of them is a dictionary of arrays, the network's inputs
by name. Nothing here needs torch: training and parsing read alike.

Words count from 1, as everywhere; row 0 of a word axis stands for the root and holds padding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Ints
from headway.treebank import Sentence

Inputs = Mapping[str, NDArray[np.int64]]


class Reading(Protocol):
    """Sentences as a network's inputs."""

    @property
    def lengths(self) -> Ints:
        """Words of each sentence."""
        ...

    @property
    def sizes(self) -> Ints:
        """What each sentence costs the encoder: its words or subwords."""
        ...

    def batch(self, which: Ints) -> Inputs:
        """The inputs for some of the sentences, padded to the longest of them."""
        ...


class Reader(Protocol):
    """Reads sentences for an encoder."""

    kind: ClassVar[str]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of a batch's arrays."""
        ...

    @property
    def requires(self) -> frozenset[str]:
        """What sentences must have: "words", and "tags" where they are read."""
        ...

    @property
    def description(self) -> str:
        """What is read, in a few words."""
        ...

    def read(self, sentences: Sequence[Sentence]) -> Reading: ...

    def to_data(self) -> dict[str, Any]:
        """Everything there is to know of it, as JSON."""
        ...


def groups_by_size(sizes: Ints, most: int, order: Ints | None = None) -> Iterator[Ints]:
    """Every sentence's position once, in groups that have about `most` cells at most with padding; the smallest come
    first unless an order is given.

    >>> [group.tolist() for group in groups_by_size(np.array([3, 1, 1, 9]), 6)]
    [[1, 2], [0], [3]]
    """
    order = np.argsort(sizes, kind="stable") if order is None else order
    start = 0
    while start < len(order):
        stop, widest = start + 1, int(sizes[order[start]])
        while stop < len(order):
            widest = max(widest, int(sizes[order[stop]]))
            if (stop + 1 - start) * widest > most:
                break
            stop += 1
        yield order[start:stop]
        start = stop


def padded(rows: Sequence[Sequence[int]], width: int, fill: int = 0) -> NDArray[np.int64]:
    """Rows of numbers as one array, filled up at the end."""
    result = np.full((len(rows), width), fill, np.int64)
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    result[np.arange(width) < lengths[:, None]] = np.fromiter(
        (number for row in rows for number in row), np.int64, int(lengths.sum())
    )
    return result
