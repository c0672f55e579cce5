"""Exponentiated gradient: max-margin (koo2007 section 4.2, figure 2) and log-linear (Globerson et al. 2007) training.

Both minimise a convex L(w) through its dual, whose variables are one distribution over trees per sentence, kept as
arc scores `theta[i]`. With mu_i the marginals of theta_i, the weights are always

    w = C sum_i sum_arcs (1[gold] - mu_i) f

| | max-margin (`hinge`) | log-linear (`log`) |
| --- | --- | --- |
| primal | C sum_i max_y (loss(y) + w.f(y) - w.f(y_i)) + w.w/2 | -C sum_i log P(y_i; w) + w.w/2 |
| dual | C sum_i sum_arcs l mu_i - w.w/2 | C sum_i entropy(theta_i) - w.w/2 |
| update | theta + eta C (l + w.f) | (1 - eta) theta + eta w.f |

where l is 0 on gold arcs and 1 elsewhere. Theta starts as `beta` on gold arcs and 0 elsewhere, eta as 1/C (1 for `log`,
where the update then jumps to the best response), and eta is halved whenever the dual did not rise over a pass. The
dual bounds the primal from below, so their gap certifies how near the optimum is; all three are reported after
each pass.

Per sentence, a pass infers once, scores once and adds once, and scores again for the primal. Memory: theta and mu,
16 bytes per arc (and label).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from headway.arrays import Floats, dot
from headway.learning.problem import MARGINALS, Probabilistic, Problem, chunks_by_length
from headway.learning.progress import Pass, Report, State, continued

Loss = Literal["hinge", "log"]


@dataclass(frozen=True)
class ExponentiatedGradient:
    """`c` is the weight of the data; training ends after `passes`, or when (primal - dual) / primal is below `gap`."""

    c: float = 0.1
    passes: int = 100
    loss: Loss = "hinge"
    beta: float = 9.0
    gap: float = 0.0

    needs = MARGINALS

    def fit(self, problem: Problem[Probabilistic], report: Report, resume: State | None = None) -> Floats:
        """Train, calling `report` after each pass; a report that answers False ends the training."""
        cells = _Cells(problem)
        state = self._start(problem, cells) if resume is None else continued(resume, _blank(problem.size, cells))
        for number in range(int(state["pass"][0]), self.passes):
            dual = self._pass(problem, state, cells)
            if dual <= state["dual"][0]:
                state["eta"] /= 2
            state["dual"][0], state["pass"][0] = dual, number + 1
            primal = self.primal(problem, state["weights"])
            gap = (primal - dual) / abs(primal) if primal else 0.0
            figures = {"primal": primal, "dual": dual, "gap": gap, "eta": float(state["eta"][0])}
            is_last = gap < self.gap
            if not report(Pass(number + 1, state["weights"], figures, state, is_last)) or is_last:
                break
        return state["weights"]

    def primal(self, problem: Problem[Probabilistic], weights: Floats) -> float:
        """L(w)."""
        total = 0.0
        for which in chunks_by_length(problem):
            these = problem.some(which)
            scores, gold = these.score(weights), these.gold()
            if self.loss == "hinge":
                augmented = scores + (1.0 - gold)
                total += dot(these.best(augmented) - gold, augmented)
            else:
                total += float(np.sum(these.marginals(scores)[0])) - dot(gold, scores)
        return self.c * total + 0.5 * dot(weights, weights)

    def _start(self, problem: Problem[Probabilistic], cells: _Cells) -> State:
        state = _blank(problem.size, cells)
        weights, theta, mu = state["weights"], state["theta"], state["mu"]
        for i in range(len(problem.lengths)):
            this = problem.some(np.array([i]))
            gold = this.gold()
            cells.of(theta, i)[:] = self.beta * gold
            cells.of(mu, i)[:] = this.marginals(self.beta * gold)[1]
            this.add(weights, self.c * (gold - cells.of(mu, i)))
        state["eta"][0] = 1 / self.c if self.loss == "hinge" else 1.0
        return state

    def _pass(self, problem: Problem[Probabilistic], state: State, cells: _Cells) -> float:
        """Update every sentence's theta, and w with it; returns the dual."""
        c, eta, weights = self.c, float(state["eta"][0]), state["weights"]
        dual = 0.0
        for i in range(len(problem.lengths)):
            this = problem.some(np.array([i]))
            theta, mu = cells.of(state["theta"], i), cells.of(state["mu"], i)
            scores, wrong = this.score(weights), 1.0 - this.gold()
            if self.loss == "hinge":
                theta += eta * c * (wrong + scores)
            else:
                theta += eta * (scores - theta)
            log_z, new = this.marginals(theta)
            this.add(weights, c * (mu - new))
            mu[:] = new
            dual += dot(wrong, new) if self.loss == "hinge" else float(log_z[0]) - dot(new, theta)
        return c * dual - 0.5 * dot(weights, weights)


def _blank(size: int, cells: _Cells) -> State:
    """A state of the right shapes, before anything is filled in."""
    return {
        "weights": np.zeros(size),
        "theta": np.empty(cells.total),
        "mu": np.empty(cells.total),
        "eta": np.empty(1),
        "dual": np.array([-np.inf]),
        "pass": np.zeros(1, np.int64),
    }


class _Cells:
    """Where each sentence's arcs lie in one long array."""

    def __init__(self, problem: Problem[Probabilistic]) -> None:
        labels = problem.some(np.array([0])).gold().shape[3:] if len(problem.lengths) else ()
        self._shapes = [(1, n + 1, n + 1, *labels) for n in problem.lengths.tolist()]
        self._edges = np.concatenate(([0], np.cumsum([int(np.prod(shape)) for shape in self._shapes], dtype=np.int64)))
        self.total = int(self._edges[-1])

    def of(self, array: Floats, i: int) -> Floats:
        """Sentence i's own piece, as a batch of one."""
        return array[self._edges[i] : self._edges[i + 1]].reshape(self._shapes[i])
