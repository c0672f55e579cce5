"""The labels of given arcs, and how probable each is among those its arc might have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headway.arrays import Floats, Ints


class NamedLabels(NamedTuple):
    """One sentence's labels by name, n+1 of them, the first being None; and P(label | arc), (n+1,), 1 for the root."""

    names: tuple[str | None, ...] | None = None
    probabilities: Floats | None = None


class ChosenLabels(NamedTuple):
    """The number of every word's label, and P(label | arc); None where scores are no logarithms of probabilities."""

    numbers: Ints
    probabilities: Floats | None

    def named(self, names: Sequence[str], words: Any) -> NamedLabels:
        """Those of one sentence; `words` is the index of its words."""
        own = (None, *(names[number] for number in self.numbers[words].tolist()))
        return NamedLabels(own, None if self.probabilities is None else np.append(1.0, self.probabilities[words]))


def most_probable(scores: Floats) -> ChosenLabels:
    """The best labels by their scores (.., L), and their share of exp(scores).

    >>> most_probable(np.log([[1.0, 3.0], [0.5, 0.5]]))
    ChosenLabels(numbers=array([1, 0]), probabilities=array([0.75, 0.5 ]))
    """
    wide = scores.astype(np.float64)
    below = wide - wide.max(axis=-1, keepdims=True)
    return ChosenLabels(scores.argmax(axis=-1), 1 / np.exp(below).sum(axis=-1))
