"""Minimising C sum_i loss_i(w) + |w|^2 / 2: what the learners with a smooth objective share.

Four optimisers:

* `lbfgs`, the default, and `cg`, conjugate gradient as in koo2007: each step goes through all sentences;
* `adagrad` and `adam`, on mini-batches, where a few epochs are enough. There the regulariser is spread over the
  batches, and the weights reported are averaged over all steps.

The first two report the objective and the norm of its gradient after each step, relative to the first; the objective
falls with every one of them. All of them resume where they were, bit for bit: their whole state is in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from headway.arrays import Floats, Ints, dot
from headway.errors import TrainingError
from headway.inference.jit import kernel
from headway.learning.choices import Optimiser
from headway.learning.conjugate_gradient import conjugate_gradient, conjugate_memory
from headway.learning.lbfgs import lbfgs, lbfgs_memory
from headway.learning.line_search import Objective, Point
from headway.learning.progress import Pass, Report, State, continued


@dataclass(frozen=True)
class Losses:
    """A loss for each of `count` sentences: `add(weights, which, gradient)` is that of some, times C, and adds its
    gradient; `chunks()` goes through all of them in portions that fit into memory."""

    size: int
    count: int
    chunks: Callable[[], Iterator[Ints]]
    add: Callable[[Floats, Ints, Floats], float]

    def objective(self, weights: Floats) -> tuple[float, Floats]:
        """L(w) and its gradient."""
        value, gradient = 0.5 * dot(weights, weights), np.array(weights)
        for which in self.chunks():
            value += self.add(weights, which, gradient)
        return value, gradient


@dataclass(frozen=True)
class Descent:
    """`iterations` are steps of L-BFGS and CG, or epochs; `rate` and `batch` are for the mini-batches."""

    iterations: int = 100
    optimiser: Optimiser = "lbfgs"
    rate: float = 0.1
    batch: int = 16
    tolerance: float = 1e-3
    seed: int = 0

    def minimise_sum(self, losses: Losses, report: Report, resume: State | None = None) -> Floats:
        """The weights found, calling `report` after each step or epoch; one that answers False ends the training."""
        if self.optimiser in _BATCH:
            return self.minimise(losses.objective, losses.size, report, resume)
        return self._online(losses, report, continued(resume, _averaged_start(losses.size)))

    def minimise(self, objective: Objective, size: int, report: Report, resume: State | None = None) -> Floats:
        """The same for an objective that is no sum over sentences; by L-BFGS or CG only."""
        if self.optimiser not in _BATCH:
            raise TrainingError(
                f"{self.optimiser} takes some sentences at a time, but what is minimised is about all; use lbfgs or cg"
            )
        steps, memory = _BATCH[self.optimiser]
        state = continued(resume, {**_start(size), "gradient": np.zeros(size), "figures": np.zeros(2), **memory(size)})
        done = int(state["pass"][0])
        if done >= self.iterations:
            return state["weights"]
        if done:
            value, first_norm = state["figures"].tolist()
            start = Point(state["weights"], value, state["gradient"])
        else:
            start = Point(state["weights"], *objective(state["weights"]))
            first_norm = _norm(start)
        for at in steps(objective, start, state):
            done += 1
            if not self._report(done, at, first_norm, state, report) or done == self.iterations:
                break
        if not done:  # it started at the optimum
            self._report(1, start, first_norm, state, report)
        return state["weights"]

    def _report(self, number: int, at: Point, first_norm: float, state: State, report: Report) -> bool:
        """Report a step; is there to be another one?"""
        state["weights"], state["gradient"] = at.weights, at.gradient
        state["figures"], state["pass"] = np.array([at.value, first_norm]), np.array([number])
        share = _norm(at) / first_norm if first_norm else 0.0
        figures = {"objective": at.value, "gradient": share}
        is_last = share < self.tolerance
        return report(Pass(number, at.weights, figures, state, is_last)) and not is_last

    def _online(self, losses: Losses, report: Report, state: State) -> Floats:
        size, count = losses.size, losses.count
        weights, gradient = state["weights"], np.empty(size)
        batches, done = -(-count // self.batch), int(state["pass"][0])
        average = state["total"] / max(1, done * batches)
        for epoch in range(done, self.iterations):
            order = np.random.default_rng((self.seed, epoch)).permutation(count)
            value = 0.0
            for number in range(batches):
                which = order[number * self.batch : (number + 1) * self.batch]
                np.multiply(weights, len(which) / count, out=gradient)
                value += losses.add(weights, which, gradient)
                self._move(state, gradient, epoch * batches + number + 1)
            average = state["total"] / ((epoch + 1) * batches)
            state["pass"][0] = epoch + 1
            figures = {"objective": value + 0.5 * dot(weights, weights)}
            if not report(Pass(epoch + 1, average, figures, state)):
                break
        return average

    def _move(self, state: State, gradient: Floats, step: int) -> None:
        arrays = (state["weights"], state["total"], state["first"], state["second"])
        if self.optimiser == "adagrad":
            _adagrad(gradient, *arrays, self.rate)
        else:
            _adam(gradient, *arrays, self.rate, step)


def _start(size: int) -> State:
    return {"weights": np.zeros(size), "pass": np.zeros(1, np.int64)}


def _averaged_start(size: int) -> State:
    return {**_start(size), "total": np.zeros(size), "first": np.zeros(size), "second": np.zeros(size)}


def _norm(at: Point) -> float:
    return sqrt(dot(at.gradient, at.gradient))


_Steps = Callable[[Objective, Point, State], Iterator[Point]]
_BATCH: dict[str, tuple[_Steps, Callable[[int], State]]] = {
    "lbfgs": (lbfgs, lbfgs_memory),
    "cg": (conjugate_gradient, conjugate_memory),
}


@kernel
def _adagrad(gradient: Floats, weights: Floats, total: Floats, first: Floats, second: Floats, rate: float) -> None:
    """Duchi et al. 2011: each weight's rate falls with its own gradients; `first` is not used."""
    for j in range(len(weights)):
        g = gradient[j]
        if g != 0:
            second[j] += g * g
            weights[j] -= rate * g / np.sqrt(second[j])
        total[j] += weights[j]


@kernel
def _adam(
    gradient: Floats, weights: Floats, total: Floats, first: Floats, second: Floats, rate: float, step: int
) -> None:
    """Kingma and Ba 2015, with their constants."""
    first_bias, second_bias = 1 - 0.9**step, 1 - 0.999**step
    for j in range(len(weights)):
        g = gradient[j]
        first[j] += 0.1 * (g - first[j])
        second[j] += 0.001 * (g * g - second[j])
        if first[j] != 0:
            weights[j] -= rate * (first[j] / first_bias) / (np.sqrt(second[j] / second_bias) + 1e-8)
        total[j] += weights[j]
