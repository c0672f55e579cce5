"""Passes of a perceptron over its examples in random order, and the average of the weights after each example.

The average needs no second pass: with `total` the sum of every update times the number of examples seen before it,
the average after t examples is `weights - total / t`. What a pass does with an example is for its function to say, so
that a whole pass can be one compiled kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from headway.arrays import Floats, Ints

if TYPE_CHECKING:
    from headway.learning.progress import State

Figures = TypeVar("Figures")
RunPass = Callable[[Ints, Floats, Floats, int], Figures]
"""run(order, weights, total, seen) makes one pass, changing both arrays; `seen` is how many examples came before."""


def untrained(shape: int | tuple[int, ...]) -> State:
    """Where training starts; the same arrays, changed by every pass, are where it resumes."""
    return {"weights": np.zeros(shape), "total": np.zeros(shape), "pass": np.zeros(1, np.int64)}


def average(state: State, seen: int) -> Floats:
    """The average of the weights after each of the examples seen."""
    mean: Floats = state["weights"] - state["total"] / max(1, seen)
    return mean


def run_passes(
    run: RunPass[Figures], examples: Ints, state: State, epochs: int, seed: int
) -> Iterator[tuple[int, Figures]]:
    """The passes that are still to be made: after each, its number and figures. Pass k has an order of its own."""
    for epoch in range(int(state["pass"][0]), epochs):
        order = np.random.default_rng((seed, epoch)).permutation(examples)
        figures = run(order, state["weights"], state["total"], epoch * len(examples))
        state["pass"][0] = epoch + 1
        yield epoch + 1, figures


def averaged_weights(
    run: RunPass[Figures],
    examples: Ints,
    shape: int | tuple[int, ...],
    epochs: int,
    seed: int,
    report: Callable[[int, Figures], None] | None = None,
) -> Floats:
    """All passes from the start, and the average of the weights; `report` is called after each pass."""
    state = untrained(shape)
    for epoch, figures in run_passes(run, examples, state, epochs, seed):
        if report:
            report(epoch, figures)
    return average(state, epochs * len(examples))
