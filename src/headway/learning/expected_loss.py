"""Expected-loss training: the fewest wrong arcs on average under the model (druck2009 section 1.2).

    L(w) = C sum_i E[loss_i(y)] + |w|^2 / 2,   loss_i(y) = sum of cost_i over the arcs of y

`Instances.cost` says what each arc costs: 1 for a wrong one, or anything else that is a sum over arcs (or labelled
arcs). The gradient by the scores is Cov(loss, 1[arc]), one pass in O(n^3) per sentence (`covariance_with_arcs`), where
the paper sums over pairs of arcs in O(n^4).

L is not convex, and flat where the model is confident of wrong trees. Training from zero weights, where every tree is
as likely as any other, starts where it is not flat.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headway.arrays import Floats, Ints, dot
from headway.learning.descent import Descent, Losses
from headway.learning.problem import COVARIANCE, Differentiable, Problem, chunks_by_length
from headway.learning.progress import Report, State
from headway.learning.sharded import Divisible, Shards, sum_over_shards


@dataclass(frozen=True)
class ExpectedLoss:
    """`c` is the weight of the data against |w|^2 / 2: the larger, the closer the fit."""

    c: float = 1.0
    descent: Descent = field(default_factory=Descent)

    needs = COVARIANCE

    def fit(self, problem: Problem[Differentiable], report: Report, resume: State | None = None) -> Floats:
        """Minimise L, calling `report` after each step or epoch; a report that answers False ends the training."""
        return self.descent.minimise_sum(self.losses(problem), report, resume)

    def part(self, problem: Divisible, which: Ints) -> tuple[ExpectedLoss, Any]:
        """For a shard with these sentences."""
        return self, problem.only(which)

    def fit_shards(self, shards: Shards[Any, Any], report: Report, resume: State | None = None) -> Floats:
        """The same over shards: each step asks all of them, and adds up."""
        return self.descent.minimise(sum_over_shards(shards), shards.size, report, resume)

    def objective(self, problem: Problem[Differentiable], weights: Floats) -> tuple[float, Floats]:
        """L(w) and its gradient."""
        return self.losses(problem).objective(weights)

    def _add_loss(self, problem: Problem[Differentiable], weights: Floats, which: Ints, gradient: Floats) -> float:
        """C times the expected loss of these sentences; its gradient is added to `gradient`."""
        these = problem.some(which)
        cost = self.c * these.cost()
        _, mu, slope = these.covariance(these.score(weights), cost)
        these.add(gradient, slope)
        return dot(mu, cost)

    def losses(self, problem: Problem[Differentiable]) -> Losses:
        """The losses that L is the sum of."""
        count = len(problem.lengths)
        return Losses(problem.size, count, partial(chunks_by_length, problem), partial(self._add_loss, problem))
