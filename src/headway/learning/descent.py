"""Minimising C sum_i loss_i(w) + |w|^2 / 2: what the learners with a smooth objective share.

Four optimisers:

* `lbfgs`, SciPy's L-BFGS, the default;
* `cg`, conjugate gradient as in koo2007, SciPy's Polak-Ribiere;
* `adagrad` and `adam`, on mini-batches, where a few epochs are enough. There the regulariser is spread over the
  batches, and the weights reported are averaged over all steps.

The first two report the objective and the norm of its gradient after each step, relative to the first; the objective
falls with every one of them. Training resumes from the weights of the last step; L-BFGS and CG then gather their
curvature anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.arrays import Floats, Ints
from headway.errors import TrainingError
from headway.inference.jit import kernel
from headway.learning.choices import Optimiser
from headway.learning.progress import Pass, Report, State

Objective = Callable[[Floats], tuple[float, Floats]]
"""Weights to L(w) and its gradient, the regulariser included."""


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
        value, gradient = 0.5 * float(weights @ weights), np.array(weights)
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
        if self.optimiser in _SCIPY:
            return self.minimise(losses.objective, losses.size, report, resume)
        return self._online(losses, report, resume or _start(losses.size))

    def minimise(self, objective: Objective, size: int, report: Report, resume: State | None = None) -> Floats:
        """The same for an objective that is no sum over sentences; by L-BFGS or CG only."""
        from scipy.optimize import minimize

        if self.optimiser not in _SCIPY:
            raise TrainingError(
                f"{self.optimiser} takes some sentences at a time, but what is minimised is about all; use lbfgs or cg"
            )
        state = resume or _start(size)
        latest = {"norm": 0.0}
        done = int(state["step"][0])
        if done >= self.iterations:
            return state["weights"]

        def watched(weights: Floats) -> tuple[float, Floats]:
            value, gradient = objective(weights)
            latest["norm"] = float(np.linalg.norm(gradient))
            state.setdefault("start", np.array([latest["norm"]]))
            return value, gradient

        def step(intermediate_result: Any) -> None:
            state["weights"], state["step"] = np.array(intermediate_result.x), state["step"] + 1
            share = latest["norm"] / float(state["start"][0]) if latest["norm"] else 0.0
            figures = {"objective": float(intermediate_result.fun), "gradient": share}
            go_on = report(Pass(int(state["step"][0]), state["weights"], figures, state))
            if not go_on or figures["gradient"] < self.tolerance:
                raise StopIteration

        method, options = _SCIPY[self.optimiser]
        options = {**options, "maxiter": self.iterations - done}
        result = minimize(watched, state["weights"], jac=True, method=method, callback=step, options=options)
        if int(state["step"][0]) == done:  # it started at the optimum, and made no step to report
            with suppress(StopIteration):
                step(result)
        return state["weights"]

    def _online(self, losses: Losses, report: Report, state: State) -> Floats:
        size, count = losses.size, losses.count
        for name in ("total", "first", "second"):
            state.setdefault(name, np.zeros(size))
        weights, gradient = state["weights"], np.empty(size)
        batches, done = -(-count // self.batch), int(state["step"][0])
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
            state["step"][0] = epoch + 1
            figures = {"objective": value + 0.5 * float(weights @ weights)}
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
    return {"weights": np.zeros(size), "step": np.zeros(1, np.int64)}


_SCIPY: dict[str, tuple[str, dict[str, Any]]] = {
    "lbfgs": ("L-BFGS-B", {"maxcor": 6, "ftol": 0.0, "gtol": 0.0, "maxfun": 10**9}),
    "cg": ("CG", {"gtol": 0.0}),
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
