"""Generalized expectation: learning from targets for what the trees of a text look like, without any tree.

druck2009 section 1.1, after Druck, Mann and McCallum 2009. A constraint k is a predicate of arcs g_k with a target for
its share: of the units it speaks of (words that could have such a head), the part expected to have one under the model,

    E_k = sum_u E[number of arcs of y with g_k | x_u; w] / units_k
    L(w) = C sum_k weight_k G(target_k, E_k) + |w|^2 / 2

with G either the `squared` distance (target - E)^2, or `kl`, the divergence of a coin that falls on target from one
that falls on E (a straight line from shares next to 0 and 1 on). A target may be a range: G is zero inside, and outside
the distance from its nearer end.

The features of the model and the predicates have nothing to do with each other. With c_k = C weight_k G'(E_k) /
units_k, the gradient by the scores of a sentence is Cov(sum_k c_k g_k, 1[arc]): one covariance in O(n^3) for all
constraints together (the paper: O(n^4) for each). An evaluation of L goes through the text twice, as the c_k must be
known first. So it asks shards of the text twice: for the sums that the shares are made of, and for their gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, cast

import numpy as np

from headway.arrays import Floats, Ints, dot
from headway.learning.choices import Criterion
from headway.learning.descent import Descent
from headway.learning.problem import COVARIANCE, Differentiable, Problem, chunks_by_length
from headway.learning.progress import Report, State
from headway.learning.sharded import Divisible, Shard, Shards

# A share can be 0 or 1, where the divergence is infinite, and on the root of multi-root trees more than 1: from here on
# the divergence goes on straight.
_CERTAIN = 1e-6


class Constraints(Protocol):
    """K predicates of arcs over the sentences of a text, with their targets."""

    @property
    def low(self) -> Floats:
        """(K,), the lower ends of the targets."""
        ...

    @property
    def high(self) -> Floats:
        """(K,), the upper ends."""
        ...

    @property
    def weights(self) -> Floats:
        """(K,), how much each counts."""
        ...

    @property
    def units(self) -> Floats:
        """(K,), of how many words each speaks; 0 where it speaks of none, and is left out."""
        ...

    def totals(self, which: Ints, mu: Floats) -> Floats:
        """(K,), the sum of mu over the arcs of these sentences that each predicate holds for."""
        ...

    def combined(self, which: Ints, coefficients: Floats) -> Floats:
        """sum_k coefficients_k g_k for every arc of these sentences, padded."""
        ...


class DivisibleConstraints(Constraints, Protocol):
    """Constraints of which a shard can be given its own part."""

    def only(self, which: Ints) -> Constraints:
        """The same over the sentences with these numbers; `units` stay those of all."""
        ...


@dataclass(frozen=True)
class GeneralizedExpectation:
    """`c` is the weight of the constraints: the larger, the closer the expectations come to their targets."""

    constraints: Constraints
    criterion: Criterion = "squared"
    c: float = 100.0
    descent: Descent = field(default_factory=Descent)

    needs = COVARIANCE

    def fit(self, problem: Problem[Differentiable], report: Report, resume: State | None = None) -> Floats:
        """Minimise L by L-BFGS (or CG), calling `report` after each step; one that answers False ends the training."""
        return self.descent.minimise(partial(self.objective, problem), problem.size, report, resume)

    def part(self, problem: Divisible, which: Ints) -> tuple[GeneralizedExpectation, Any]:
        """For a shard with these sentences: the constraints over them, of all words' units."""
        own = cast(DivisibleConstraints, self.constraints).only(which)
        return replace(self, constraints=own), problem.only(which)

    def fit_shards(self, shards: Shards[Any, Any], report: Report, resume: State | None = None) -> Floats:
        """The same over shards of the text."""

        def objective(weights: Floats) -> tuple[float, Floats]:
            shares = shards.total(_totals, weights) / self._units
            distance, coefficients = self.distance(shares)
            return distance + 0.5 * dot(weights, weights), weights + shards.total(_slope, weights, coefficients)

        return self.descent.minimise(objective, shards.size, report, resume)

    def objective(self, problem: Problem[Differentiable], weights: Floats) -> tuple[float, Floats]:
        """L(w) and its gradient."""
        distance, coefficients = self.distance(self.expectations(problem, weights))
        gradient = np.array(weights)
        self.add_slope(problem, weights, coefficients, gradient)
        return distance + 0.5 * dot(weights, weights), gradient

    def add_slope(
        self, problem: Problem[Differentiable], weights: Floats, coefficients: Floats, gradient: Floats
    ) -> None:
        """gradient += that of sum_k c_k (the sum that share k is made of)."""
        for which in chunks_by_length(problem):
            these = problem.some(which)
            f = self.constraints.combined(which, coefficients)
            these.add(gradient, these.covariance(these.score(weights), f)[2])

    def distance(self, shares: Floats) -> tuple[float, Floats]:
        """C sum_k weight_k G(target_k, E_k), and the c_k: its derivatives by the sums that the shares are made of."""
        distances, slopes = self._distances(shares)
        importance = self.c * self.constraints.weights * (self.constraints.units > 0)
        return dot(importance, distances), importance * slopes / self._units

    def expectations(self, problem: Problem[Differentiable], weights: Floats) -> Floats:
        """(K,), each constraint's share under the model; 0 where it speaks of nothing."""
        return self.totals(problem, weights) / self._units

    def totals(self, problem: Problem[Differentiable], weights: Floats) -> Floats:
        """(K,), the sums that the shares are made of."""
        totals = np.zeros(len(self.constraints.units))
        for which in chunks_by_length(problem):
            these = problem.some(which)
            totals += self.constraints.totals(which, these.marginals(these.score(weights))[1])
        return totals

    @property
    def _units(self) -> Floats:
        """What sums are divided by; a constraint that speaks of nothing has the sum 0."""
        return np.maximum(self.constraints.units, 1)

    def _distances(self, shares: Floats) -> tuple[Floats, Floats]:
        """G(target, E) and its derivative by E, of every constraint."""
        target = np.clip(shares, self.constraints.low, self.constraints.high)
        if self.criterion == "squared":
            return (target - shares) ** 2, 2 * (shares - target)
        inside = np.clip(shares, _CERTAIN, 1 - _CERTAIN)
        slope = np.where(target == shares, 0.0, (inside - target) / (inside * (1 - inside)))
        divergence = _relative_entropy(target, inside) + _relative_entropy(1 - target, 1 - inside)
        return np.where(target == shares, 0.0, divergence + slope * (shares - inside)), slope


def _totals(shard: Shard[GeneralizedExpectation, Any], weights: Floats) -> Floats:
    return shard.learner.totals(shard.problem, weights)


def _slope(shard: Shard[GeneralizedExpectation, Any], weights: Floats, coefficients: Floats) -> Floats:
    gradient = np.zeros(len(weights))
    shard.learner.add_slope(shard.problem, weights, coefficients, gradient)
    return gradient


def _relative_entropy(p: Floats, q: Floats) -> Floats:
    from scipy.special import rel_entr

    result: Floats = rel_entr(p, q)
    return result
