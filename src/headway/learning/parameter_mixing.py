"""Iterative parameter mixing: perceptrons on shards (McDonald, Hall and Mann 2010, section 4).

Every shard goes through sentences of its own, starting from the same weights w; then what the shards have made of them,
w_k, is mixed, and all go on from the mixture. Where we differ from the paper:

* A weight is averaged over the shards that changed it, K_j = {k: w_kj != w_j}, rather than over all:

      w_j <- w_j + sum over k in K_j of n_k (w_kj - w_j) / sum over k in K_j of n_k        (n_k: sentences of shard k)

  A weight that one shard alone has met, as those of rare words, moves as far as in one process; on average over all
  shards it would move 1/K as far.
* Shards mix `MIXES` times in a pass, not once.

`benchmarks/sharding.py` compares it with one process. The state is that of the averaged perceptron (`averaging`).
Shards run at the same time: of a stretch in which all of them see n sentences, the j-th of the n_k that shard k sees
counts as seen j n / n_k sentences after the beginning. One shard is the perceptron itself, bit for bit.

A shard keeps a copy of the weights. It is sent all of them at the beginning of a pass, and after that what has changed,
and sends back what it has changed: with some hundred sentences between two mixtures, a small part. A pass in which a
shard lost its copy, with its worker, is made again from its beginning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from headway.arrays import Floats, Ints
from headway.inference.jit import kernel
from headway.learning.sharded import Shard, Shards

MIXES = 16  # on held-out Danish sentences 8 and 32 were alike, and 1 was worse (`benchmarks/sharding.py --mixes`)

Figures = Mapping[str, float]


class Online(Protocol):
    """A learner that goes from sentence to sentence, as `averaging.RunPass` does."""

    def run(self, problem: Any, order: Ints, weights: Floats, total: Floats, seen: int) -> Figures: ...


class _Stretch(NamedTuple):
    """One stretch of a pass: the order of the whole pass, which part of it this is, and what the weights are now.

    `places` None: `weights` are all of them; otherwise those that have changed since the stretch before.
    """

    order: Ints
    part: int
    places: Ints | None
    weights: Floats


class _Change(NamedTuple):
    """What a shard did to weights and total, from 0 on, at the places that it changed; and its figures."""

    sentences: int
    figures: Figures
    places: Ints
    weights: Floats
    total: Floats


def mixed_pass(shards: Shards[Any, Any], order: Ints, weights: Floats, total: Floats, seen: int) -> Figures:
    """One pass of all shards over their sentences, in this order."""
    before = weights.copy(), total.copy()
    figures = _try_pass(shards, order, weights, total, seen)
    while figures is None:
        weights[:], total[:] = before
        figures = _try_pass(shards, order, weights, total, seen)
    return figures


def _try_pass(shards: Shards[Any, Any], order: Ints, weights: Floats, total: Floats, seen: int) -> Figures | None:
    """None where a shard has no copy of the weights any more."""
    sums: Counter[str] = Counter()
    stretch = _Stretch(order, 0, None, weights)
    for part in range(1, MIXES + 1):
        changes: list[_Change | None] = shards.each(_run, stretch)
        made = [change for change in changes if change is not None]
        if len(made) < len(changes):
            return None
        _mix(made, weights, total, seen)
        for change in made:
            sums.update(change.figures)
            seen += change.sentences
        places = np.unique(np.concatenate([change.places for change in made]))
        stretch = _Stretch(order, part, places, weights[places])
    return sums


def _mix(changes: list[_Change], weights: Floats, total: Floats, seen: int) -> None:
    """Add what the shards did, each weight by the shares of those who changed it."""
    sentences = sum(change.sentences for change in changes)
    by = np.zeros(len(weights))
    for change in changes:
        by[change.places] += change.sentences
    for change in changes:
        if not change.sentences:
            continue
        share = change.sentences / by[change.places]
        weights[change.places] += share * change.weights
        later = seen * change.weights + (sentences / change.sentences) * change.total
        total[change.places] += share * later


def _run(shard: Shard[Online, Any], stretch: _Stretch) -> _Change | None:
    """One stretch of a pass over a shard's sentences."""
    memory = shard.memory
    if stretch.places is None:
        memory["before"], memory["weights"] = stretch.weights.copy(), stretch.weights.copy()
        memory["total"] = np.zeros(len(stretch.weights))
    elif not memory or memory["part"][0] != stretch.part:
        return None
    else:
        memory["before"][stretch.places] = stretch.weights
        memory["weights"][stretch.places] = stretch.weights
    memory["part"] = np.array([stretch.part + 1])
    own = np.array_split(shard.own(stretch.order), MIXES)[stretch.part]
    figures = shard.learner.run(shard.problem, own, memory["weights"], memory["total"], 0)
    return _Change(len(own), figures, *_changes(memory["before"], memory["weights"], memory["total"]))


@kernel
def _changes(before: Floats, weights: Floats, total: Floats) -> tuple[Ints, Floats, Floats]:
    """Where weights or total have changed, and by how much; total is 0 again after that."""
    count = 0
    for j in range(len(weights)):
        if weights[j] != before[j] or total[j] != 0:
            count += 1
    places, moved, later = np.empty(count, np.int64), np.empty(count), np.empty(count)
    i = 0
    for j in range(len(weights)):
        if weights[j] != before[j] or total[j] != 0:
            places[i], moved[i], later[i] = j, weights[j] - before[j], total[j]
            total[j] = 0
            i += 1
    return places, moved, later
