"""Log-linear training: the conditional likelihood of the trees (koo2007 section 4.1).

    L(w) = -C sum_i log P(y_i | x_i; w) + |w|^2 / 2

Its gradient is w - C sum_i sum_arcs (1[gold] - mu) f, with mu the marginals: one pass over the data, in chunks of
sentences of like length. Four optimisers minimise it:

* `lbfgs`, SciPy's L-BFGS, the default;
* `cg`, conjugate gradient as in the paper, SciPy's Polak-Ribiere;
* `adagrad` and `adam`, on mini-batches, where a few epochs are enough. There the regulariser is spread over the
  batches, and the weights reported are averaged over all steps.

The first two report the objective and the norm of its gradient after each step; L falls with every one of them.
Training resumes from the weights of the last step; L-BFGS and CG then gather their curvature anew.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from headway.inference.batch import Floats, Ints
from headway.inference.jit import kernel
from headway.learning.examples import Examples, Structures, Trees, chunks_by_length
from headway.learning.progress import Pass, Report, State

Optimiser = Literal["lbfgs", "cg", "adagrad", "adam"]


@dataclass(frozen=True)
class LogLinear:
    """`regularisation` is C: the larger, the closer the fit. `iterations` are gradient steps, or epochs."""

    structures: Structures = field(default_factory=Trees)
    regularisation: float = 0.1
    iterations: int = 100
    optimiser: Optimiser = "lbfgs"
    rate: float = 0.1
    batch: int = 16
    tolerance: float = 1e-3
    seed: int = 0

    def fit(self, examples: Examples, report: Report, resume: State | None = None) -> Floats:
        """Minimise L, calling `report` after each step or epoch; a report that answers False ends the training."""
        state = resume or {"weights": np.zeros(examples.size), "step": np.zeros(1, np.int64)}
        if self.optimiser in ("lbfgs", "cg"):
            return self._batch(examples, report, state)
        return self._online(examples, report, state)

    def objective(self, examples: Examples, weights: Floats) -> tuple[float, Floats]:
        """L(w) and its gradient."""
        value, gradient = 0.5 * float(weights @ weights), np.array(weights)
        for which in chunks_by_length(examples):
            value += self._add_loss(examples, weights, which, gradient)
        return value, gradient

    def _add_loss(self, examples: Examples, weights: Floats, which: Ints, gradient: Floats) -> float:
        """C times minus the log-likelihood of these sentences; its gradient is added to `gradient`."""
        scores, gold = examples.score(weights, which), examples.gold(which)
        log_z, mu = self.structures.marginals(scores, examples.lengths[which])
        examples.add(gradient, which, self.regularisation * (mu - gold))
        return self.regularisation * float(np.sum(log_z) - np.vdot(gold, scores))

    def _batch(self, examples: Examples, report: Report, state: State) -> Floats:
        from scipy.optimize import minimize

        latest = {"norm": 0.0}
        done = int(state["step"][0])
        if done >= self.iterations:
            return state["weights"]

        def objective(weights: Floats) -> tuple[float, Floats]:
            value, gradient = self.objective(examples, weights)
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
        result = minimize(objective, state["weights"], jac=True, method=method, callback=step, options=options)
        if int(state["step"][0]) == done:  # it started at the optimum, and made no step to report
            with suppress(StopIteration):
                step(result)
        return state["weights"]

    def _online(self, examples: Examples, report: Report, state: State) -> Floats:
        size, count = examples.size, len(examples.lengths)
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
                value += self._add_loss(examples, weights, which, gradient)
                self._descend(state, gradient, epoch * batches + number + 1)
            average = state["total"] / ((epoch + 1) * batches)
            state["step"][0] = epoch + 1
            figures = {"objective": value + 0.5 * float(weights @ weights)}
            if not report(Pass(epoch + 1, average, figures, state)):
                break
        return average

    def _descend(self, state: State, gradient: Floats, step: int) -> None:
        arrays = (state["weights"], state["total"], state["first"], state["second"])
        if self.optimiser == "adagrad":
            _adagrad(gradient, *arrays, self.rate)
        else:
            _adam(gradient, *arrays, self.rate, step)


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
