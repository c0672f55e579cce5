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

On K shards, theta and mu stay with their sentences. All shards make a pass at the same time, each with weights of its
own to which it adds K times its changes; the changes of all, once each, are then added to w (CoCoA+, Ma et al. 2015:
with their sigma' = K it is safe to add). One shard is the algorithm above. More take another way to the same optimum,
and the gap says how far it still is: |w - w*|^2 / 2 <= primal - dual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Floats, Ints, dot
from headway.errors import TrainingError
from headway.learning.problem import MARGINALS, Probabilistic, Problem, chunks_by_length
from headway.learning.progress import Pass, Report, State, continued
from headway.learning.sharded import Divisible, Shard, Shards

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
        cells = _Cells.of(problem)
        state = self._blank(problem.size, cells)
        if resume is None:
            self.begin(problem, state, state["weights"])
        else:
            state = continued(resume, state)

        def make_pass() -> float:
            return self.make_pass(problem, state, state["weights"], float(state["eta"][0]))

        return self._climb(state, make_pass, partial(self.losses, problem), report, lambda: state)

    def part(self, problem: Divisible, which: Ints) -> tuple[ExponentiatedGradient, Any]:
        """For a shard with these sentences."""
        return self, problem.only(which)

    def fit_shards(self, shards: Shards[Any, Any], report: Report, resume: State | None = None) -> Floats:
        """The same over shards, whose duals stay with them; a state that is reported has those of all."""
        cells = _Cells(shards.lengths, max(shards.each(_labels), key=len))
        state = self._blank(shards.size, cells)
        if resume is None:
            state["weights"] = shards.total(_begin, shards.size)
        else:
            state = continued(resume, state)
            shards.each(_restore, cells, state["theta"], state["mu"])

        def make_pass() -> float:
            dual = 0.0
            for own, change in shards.each(_make_pass, state["weights"], float(state["eta"][0]), len(shards)):
                dual += own
                state["weights"] += change
            return dual

        def losses(weights: Floats) -> float:
            return float(shards.total(_losses, weights))

        return self._climb(state, make_pass, losses, report, lambda: _StateOfShards(shards, cells, state))

    def _climb(
        self,
        state: State,
        make_pass: Callable[[], float],
        losses: Callable[[Floats], float],
        report: Report,
        reported: Callable[[], Mapping[str, NDArray[Any]]],
    ) -> Floats:
        """Passes until there is no reason for another."""
        weights = state["weights"]
        for number in range(int(state["pass"][0]), self.passes):
            dual = make_pass() - 0.5 * dot(weights, weights)
            if dual <= state["dual"][0]:
                state["eta"] /= 2
            state["dual"][0], state["pass"][0] = dual, number + 1
            primal = losses(weights) + 0.5 * dot(weights, weights)
            gap = (primal - dual) / abs(primal) if primal else 0.0
            figures = {"primal": primal, "dual": dual, "gap": gap, "eta": float(state["eta"][0])}
            is_last = gap < self.gap
            if not report(Pass(number + 1, weights, figures, reported(), is_last)) or is_last:
                break
        return weights

    def primal(self, problem: Problem[Probabilistic], weights: Floats) -> float:
        """L(w)."""
        return self.losses(problem, weights) + 0.5 * dot(weights, weights)

    def losses(self, problem: Problem[Probabilistic], weights: Floats) -> float:
        """What the sentences contribute to L(w)."""
        total = 0.0
        for which in chunks_by_length(problem):
            these = problem.some(which)
            scores, gold = these.score(weights), these.gold()
            if self.loss == "hinge":
                augmented = scores + (1.0 - gold)
                total += dot(these.best(augmented) - gold, augmented)
            else:
                total += float(np.sum(these.marginals(scores)[0])) - dot(gold, scores)
        return self.c * total

    def begin(self, problem: Problem[Probabilistic], duals: State, weights: Floats) -> None:
        """The first theta and mu of every sentence, and what they contribute to the weights."""
        cells = _Cells.of(problem)
        for i in range(len(problem.lengths)):
            this = problem.some(np.array([i]))
            gold, mu = this.gold(), cells.of_sentence(duals["mu"], i)
            cells.of_sentence(duals["theta"], i)[:] = self.beta * gold
            mu[:] = this.marginals(self.beta * gold)[1]
            this.add(weights, self.c * (gold - mu))

    def make_pass(
        self, problem: Problem[Probabilistic], duals: State, weights: Floats, eta: float, shards: int = 1
    ) -> float:
        """Update every sentence's theta, and w with it; returns what the sentences contribute to the dual."""
        cells, c, dual = _Cells.of(problem), self.c, 0.0
        for i in range(len(problem.lengths)):
            this = problem.some(np.array([i]))
            theta, mu = cells.of_sentence(duals["theta"], i), cells.of_sentence(duals["mu"], i)
            scores, wrong = this.score(weights), 1.0 - this.gold()
            if self.loss == "hinge":
                theta += eta * c * (wrong + scores)
            else:
                theta += eta * (scores - theta)
            log_z, new = this.marginals(theta)
            this.add(weights, shards * c * (mu - new))
            mu[:] = new
            dual += dot(wrong, new) if self.loss == "hinge" else float(log_z[0]) - dot(new, theta)
        return c * dual

    def _blank(self, size: int, cells: _Cells) -> State:
        """A state of the right shapes, before the duals and the weights are filled in."""
        return {
            "weights": np.zeros(size),
            "theta": np.empty(cells.total),
            "mu": np.empty(cells.total),
            "eta": np.array([1 / self.c if self.loss == "hinge" else 1.0]),
            "dual": np.array([-np.inf]),
            "pass": np.zeros(1, np.int64),
        }


class _Cells:
    """Where each sentence's arcs lie in one long array; `labels` () or (L,)."""

    def __init__(self, lengths: Ints, labels: tuple[int, ...]) -> None:
        self._shapes = [(1, n + 1, n + 1, *labels) for n in lengths.tolist()]
        self._edges = np.concatenate(([0], np.cumsum([int(np.prod(shape)) for shape in self._shapes], dtype=np.int64)))
        self.total = int(self._edges[-1])

    @classmethod
    def of(cls, problem: Problem[Probabilistic]) -> _Cells:
        labels = problem.some(np.array([0])).gold().shape[3:] if len(problem.lengths) else ()
        return cls(problem.lengths, labels)

    def of_sentence(self, array: Floats, i: int) -> Floats:
        """Sentence i's own piece, as a batch of one."""
        return array[self._edges[i] : self._edges[i + 1]].reshape(self._shapes[i])

    def indices(self, which: Ints) -> Ints:
        """Where the pieces of some sentences lie, one after the other."""
        spans = [np.arange(self._edges[i], self._edges[i + 1]) for i in which.tolist()]
        return np.concatenate([np.zeros(0, np.int64), *spans])


_OwnShard = Shard[ExponentiatedGradient, Any]


def _labels(shard: _OwnShard) -> tuple[int, ...]:
    """The shape of a shard's labels; that of an empty one is not known."""
    shape: tuple[int, ...] = shard.problem.some(np.array([0])).gold().shape[3:] if len(shard.numbers) else ()
    return shape


def _begin(shard: _OwnShard, size: int) -> Floats:
    cells, weights = _Cells.of(shard.problem), np.zeros(size)
    shard.memory = {"theta": np.empty(cells.total), "mu": np.empty(cells.total)}
    shard.learner.begin(shard.problem, shard.memory, weights)
    return weights


def _restore(shard: _OwnShard, cells: _Cells, theta: Floats, mu: Floats) -> None:
    own = cells.indices(shard.numbers)
    shard.memory = {"theta": theta[own], "mu": mu[own]}


def _make_pass(shard: _OwnShard, weights: Floats, eta: float, shards: int) -> tuple[float, Floats]:
    """What the shard contributes to the dual, and the change of the weights."""
    own = weights.copy()
    dual = shard.learner.make_pass(shard.problem, _duals(shard), own, eta, shards)
    own -= weights
    own /= shards
    return dual, own


def _losses(shard: _OwnShard, weights: Floats) -> float:
    return shard.learner.losses(shard.problem, weights)


def _duals(shard: _OwnShard) -> State:
    if not shard.memory:
        raise TrainingError(
            "a worker was lost, and the duals of its sentences with it; the same command resumes from the checkpoint"
        )
    return shard.memory


@dataclass(frozen=True)
class _StateOfShards(Mapping[str, NDArray[Any]]):
    """The state after a pass; duals are fetched from the shards when somebody asks for them, and not kept."""

    shards: Shards[Any, Any]
    cells: _Cells
    state: State

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in ("theta", "mu"):
            return self.state[name]
        whole = np.empty(self.cells.total)
        parts = self.shards.each(_dual, name)
        for numbers, part in zip(self.shards.numbers, parts, strict=True):
            whole[self.cells.indices(numbers)] = part
        return whole

    def __iter__(self) -> Iterator[str]:
        return iter(self.state)

    def __len__(self) -> int:
        return len(self.state)


def _dual(shard: _OwnShard, name: str) -> Floats:
    return _duals(shard)[name]
