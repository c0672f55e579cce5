"""Log-linear training: the conditional likelihood of the trees (koo2007 section 4.1).

    L(w) = -C sum_i log P(y_i | x_i; w) + |w|^2 / 2

Its gradient is w - C sum_i sum_arcs (1[gold] - mu) f, with mu the marginals: one pass over the data, in chunks of
sentences of like length. `descent` minimises it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from headway.arrays import Floats, Ints, dot
from headway.learning.descent import Descent, Losses
from headway.learning.problem import MARGINALS, Probabilistic, Problem, chunks_by_length
from headway.learning.progress import Report, State
from headway.learning.sharded import Divisible, Shards, sum_over_shards


@dataclass(frozen=True)
class LogLinear:
    """`c` is the weight of the data against |w|^2 / 2: the larger, the closer the fit."""

    c: float = 0.1
    descent: Descent = field(default_factory=Descent)

    needs = MARGINALS

    def fit(self, problem: Problem[Probabilistic], report: Report, resume: State | None = None) -> Floats:
        """Minimise L, calling `report` after each step or epoch; a report that answers False ends the training."""
        return self.descent.minimise_sum(self.losses(problem), report, resume)

    def part(self, problem: Divisible, which: Ints) -> tuple[LogLinear, Any]:
        """For a shard with these sentences."""
        return self, problem.only(which)

    def fit_shards(self, shards: Shards[Any, Any], report: Report, resume: State | None = None) -> Floats:
        """The same over shards: each step asks all of them, and adds up."""
        return self.descent.minimise(sum_over_shards(shards), shards.size, report, resume)

    def objective(self, problem: Problem[Probabilistic], weights: Floats) -> tuple[float, Floats]:
        """L(w) and its gradient."""
        return self.losses(problem).objective(weights)

    def add_loss(self, problem: Problem[Probabilistic], weights: Floats, which: Ints, gradient: Floats) -> float:
        """C times minus the log-likelihood of these sentences; its gradient is added to `gradient`."""
        these = problem.some(which)
        scores, gold = these.score(weights), these.gold()
        log_z, mu = these.marginals(scores)
        these.add(gradient, self.c * (mu - gold))
        return self.c * (float(np.sum(log_z)) - dot(gold, scores))

    def losses(self, problem: Problem[Probabilistic]) -> Losses:
        """The losses that L is the sum of."""
        count = len(problem.lengths)
        return Losses(problem.size, count, partial(chunks_by_length, problem), partial(self.add_loss, problem))
