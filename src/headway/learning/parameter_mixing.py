"""Iterative parameter mixing: perceptrons on shards (McDonald, Hall and Mann 2010, section 4).

Every shard goes through its own sentences, starting from the same weights; then the weights of all shards are mixed,
and all start again from the mixture:

    w <- w + sum_k share_k (w_k - w)

The state is that of the averaged perceptron (`averaging`). Shards run at the same time: of a stretch in which all of
them see n sentences, and shard k sees n_k, its j-th sentence counts as seen j n / n_k sentences after the beginning.
One shard is the perceptron itself, bit for bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from headway.arrays import Floats, Ints
from headway.learning.sharded import Shard, Shards

Figures = Mapping[str, float]


class Online(Protocol):
    """A learner that goes from sentence to sentence, as `averaging.RunPass` does."""

    def run(self, problem: Any, order: Ints, weights: Floats, total: Floats, seen: int) -> Figures: ...


class _Change(NamedTuple):
    """What a shard did to weights and total, from 0 on, at the places that it changed; and its figures."""

    sentences: int
    figures: Figures
    places: Ints | slice
    weights: Floats
    total: Floats


MIXES, MODE = 1, "count"


def mixed_pass(shards: Shards[Any, Any], order: Ints, weights: Floats, total: Floats, seen: int) -> Figures:
    """One pass of all shards over their sentences, in this order."""
    sums: Counter[str] = Counter()
    for part in range(MIXES):
        changes = shards.each(_run, order, part, MIXES, weights)
        sentences = sum(change.sentences for change in changes)
        seen_by = np.zeros(len(weights))
        for change in changes:
            seen_by[change.places] += change.sentences
        for change in changes:
            sums.update(change.figures)
            if not change.sentences:
                continue
            share = {
                "sum": 1.0,
                "mean": change.sentences / sentences,
                "count": change.sentences / seen_by[change.places],
            }[MODE]
            weights[change.places] += share * change.weights
            late = seen * change.weights + (sentences / change.sentences) * change.total
            total[change.places] += share * late
        seen += sentences
    return sums


def _run(shard: Shard[Online, Any], order: Ints, part: int, parts: int, weights: Floats) -> _Change:
    """One stretch of a pass over a shard's sentences."""
    own = np.array_split(shard.own(order), parts)[part]
    changed, total = weights.copy(), np.zeros(len(weights))
    figures = shard.learner.run(shard.problem, own, changed, total, 0)
    changed -= weights
    places = np.flatnonzero((changed != 0) | (total != 0))
    if 3 * len(places) > 2 * len(weights):  # a place costs as much as a value
        return _Change(len(own), figures, slice(None), changed, total)
    return _Change(len(own), figures, places, changed[places], total[places])
