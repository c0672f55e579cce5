"""A temperature for each sentence: a network is too sure of text that is none, and not sure enough of hard text.

One temperature for all sentences makes probabilities right on average only. With it, arcs of sentences that the network
finds hard are right more often than it says, and arcs of words in random order far less often. So arc scores are
divided by T(s) besides, with

    log T(s)  =  constant + doubt u(s) + disorder g(s)

where u is the mean over words of 1 - the share of the word's best head, each word for itself, and g the probability
that the words are in random order, logistic in the mean of their vectors (`direction`, `bias`), as modifiers for the
labels. The best tree stays the best. All is fitted by likelihood (headway_papers/english_temperatures.py).
O(n^2) for n words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Floats, Ints
from headway.errors import ArchiveError
from headway.saved_values import number

_NUMBERS = ("constant", "doubt", "disorder", "bias")
LOWEST, HIGHEST = -5.0, 5.0  # of the logarithm: whatever a file says, scores stay numbers
_MOST_WEIGHTS = 10_000


@dataclass(frozen=True, repr=False)
class SentenceTemperature:
    """`direction` has a weight for every dimension of the words' vectors."""

    constant: float
    doubt: float
    disorder: float
    bias: float
    direction: tuple[float, ...]

    def temperatures(self, arcs: Floats, vectors: NDArray[np.float32], lengths: Ints) -> Floats:
        """T of each sentence (B,), from arc scores (B, N+1, N+1) and vectors (B, N+1, D) of batches with padding."""
        doubts, means = doubts_of(arcs, lengths), means_of(vectors, lengths)
        if means.shape[1] != len(self.direction):
            raise ArchiveError("the sentence temperature of the model does not fit its network; save it again")
        odds = (means * np.array(self.direction)).sum(axis=1) + self.bias
        disorders = 1 / (1 + np.exp(-np.clip(odds, -50, 50)))
        exponents = self.constant + self.doubt * doubts + self.disorder * disorders
        found: Floats = np.exp(np.clip(exponents, LOWEST, HIGHEST))
        return found

    def to_data(self) -> dict[str, Any]:
        return {**{name: getattr(self, name) for name in _NUMBERS}, "direction": list(self.direction)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> SentenceTemperature:
        """What `to_data` gave; a ValueError or KeyError if it is damaged."""
        direction = data["direction"]
        if not isinstance(direction, list) or len(direction) > _MOST_WEIGHTS:
            raise ValueError("the sentence temperature is damaged")
        weights = tuple(number(weight, "a weight of the sentence temperature") for weight in direction)
        return cls(**{name: number(data[name], name) for name in _NUMBERS}, direction=weights)


def doubts_of(arcs: Floats, lengths: Ints) -> Floats:
    """u (B,): how unsure the heads of a sentence's words are, each word for itself."""
    places = np.arange(arcs.shape[1])
    there = places <= lengths[:, None]
    possible = there[:, :, None] & (places[:, None] != places[1:])
    own = np.where(possible, arcs[:, :, 1:], -np.inf)
    unsure = 1 - 1 / np.exp(own - own.max(axis=1, keepdims=True)).sum(axis=1)
    return _mean(unsure[..., None], lengths)[:, 0]


def means_of(vectors: NDArray[np.float32], lengths: Ints) -> Floats:
    """The means (B, D) of the vectors of a sentence's words."""
    return _mean(vectors[:, 1:].astype(np.float64), lengths)


def _mean(values: Floats, lengths: Ints) -> Floats:
    """Over the words of each sentence (B, N, D)."""
    there = np.arange(values.shape[1]) < lengths[:, None]
    total: Floats = np.where(there[..., None], values, 0.0).sum(axis=1) / np.maximum(lengths, 1)[:, None]
    return total
