"""A problem cut into shards: sentences that live somewhere, each shard with a learner's view of it.

An objective that is a sum over sentences is a sum over shards of sentences. The weights go to the shards, their sums
come back, and one place adds them up and takes the step; so the result is that of one process, up to the order in
which floating-point numbers are added. Where the shards live (here, in processes, on a cluster) is for a `Held` to say.

Sentences are dealt out like cards: shard k of K has the numbers k, k + K, ... A shard may be empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from headway.arrays import Floats, Ints, dot
from headway.learning.descent import Losses
from headway.learning.line_search import Objective
from headway.learning.problem import Examples
from headway.learning.progress import Report, State
from headway.parallel import Held, R

P = TypeVar("P", bound="Divisible")
L = TypeVar("L")


class Divisible(Examples, Protocol):
    """A problem of which some sentences can be sent elsewhere."""

    def only(self, which: Ints) -> Any:
        """The problem of the sentences with these numbers, which refers to no others."""
        ...


class ShardedLearner(Protocol):
    """A learner that works on shards, too."""

    def part(self, problem: Any, which: Ints) -> tuple[Any, Any]:
        """What a shard with these sentences of a problem gets: the learner as it is to be there, and its problem."""
        ...

    def fit_shards(self, shards: Shards[Any, Any], report: Report, resume: State | None = None) -> Floats:
        """As `fit` does, over the sentences of all shards."""
        ...


@dataclass
class Shard(Generic[L, P]):
    """One shard where it lives. `memory` is what a learner leaves there from one call to the next."""

    learner: L
    problem: P
    numbers: Ints
    memory: State = field(default_factory=dict)

    def own(self, order: Ints) -> Ints:
        """Of sentences numbered as in the whole problem, those of this shard, in the same order and by its numbers."""
        places = np.searchsorted(self.numbers, order)
        found = places < len(self.numbers)
        found[found] = self.numbers[places[found]] == order[found]
        return places[found]


@dataclass(frozen=True)
class Shards(Generic[L, P]):
    """All shards of a problem of so many sentences and weights, and who holds them."""

    held: Held[Shard[L, P]]
    numbers: Sequence[Ints]
    lengths: Ints
    size: int

    def __len__(self) -> int:
        return len(self.numbers)

    def each(self, function: Callable[..., R], *arguments: Any) -> list[R]:
        """function(shard, *arguments) of every shard."""
        return self.held.each(function, *arguments)

    def total(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The sum of function(shard, *arguments), added in the order of the shards."""
        first, *others = self.each(function, *arguments)
        whole = first.copy() if isinstance(first, np.ndarray) else first  # what others hand over may be read-only
        for other in others:
            whole += other
        return whole


def deal(count: int, shards: int) -> list[Ints]:
    """The numbers of each shard's sentences.

    >>> [numbers.tolist() for numbers in deal(5, 3)]
    [[0, 3], [1, 4], [2]]
    """
    return [np.arange(first, count, shards) for first in range(shards)]


def cut(learner: ShardedLearner, problem: Divisible, numbers: Sequence[Ints]) -> list[Shard[Any, Any]]:
    """The shards with these sentences."""
    return [Shard(*learner.part(problem, own), own) for own in numbers]


class SumOfLosses(Protocol):
    """A learner whose objective is a sum over sentences, and |w|^2 / 2."""

    def losses(self, problem: Any) -> Losses: ...


def sum_over_shards(shards: Shards[Any, Any]) -> Objective:
    """L(w) and its gradient, from what the shards' sentences contribute."""

    def objective(weights: Floats) -> tuple[float, Floats]:
        value, gradient = 0.5 * dot(weights, weights), np.array(weights)
        for own_value, own_gradient in shards.each(_contribution, weights):
            value += own_value
            gradient += own_gradient
        return value, gradient

    return objective


def _contribution(shard: Shard[SumOfLosses, Any], weights: Floats) -> tuple[float, Floats]:
    """The losses of a shard's sentences, and their gradient."""
    gradient = np.zeros(len(weights))
    losses = shard.learner.losses(shard.problem)
    return sum(losses.add(weights, which, gradient) for which in losses.chunks()), gradient
