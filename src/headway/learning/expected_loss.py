"""Expected-loss training: the fewest wrong arcs on average under the model (druck2009 section 1.2).

    L(w) = C sum_i E[loss_i(y)] + |w|^2 / 2,   loss_i(y) = sum of cost_i over the arcs of y

`Examples.cost` says what each arc costs: 1 for a wrong one, or anything else that is a sum over arcs (or labelled
arcs). The gradient by the scores is Cov(loss, 1[arc]), one pass in O(n^3) a sentence (`covariance_with_arcs`), where
the paper sums over pairs of arcs in O(n^4).

L is not convex, and flat where the model is sure of wrong trees. Training from zero weights, where every tree is
as likely as any other, starts where it is not flat.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from headway.inference.batch import Floats, Ints
from headway.learning.descent import Descent, Losses
from headway.learning.examples import Differentiable, Examples, Trees, chunks_by_length
from headway.learning.progress import Report, State


@dataclass(frozen=True)
class ExpectedLoss:
    """`regularisation` is C: the larger, the closer the fit."""

    structures: Differentiable = field(default_factory=Trees)
    regularisation: float = 1.0
    descent: Descent = field(default_factory=Descent)

    def fit(self, examples: Examples, report: Report, resume: State | None = None) -> Floats:
        """Minimise L, calling `report` after each step or epoch; a report that answers False ends the training."""
        return self.descent.minimise_sum(self._losses(examples), report, resume)

    def objective(self, examples: Examples, weights: Floats) -> tuple[float, Floats]:
        """L(w) and its gradient."""
        return self._losses(examples).objective(weights)

    def _add_loss(self, examples: Examples, weights: Floats, which: Ints, gradient: Floats) -> float:
        """C times the expected loss of these sentences; its gradient is added to `gradient`."""
        scores, cost = examples.score(weights, which), self.regularisation * examples.cost(which)
        _, mu, slope = self.structures.covariance(scores, examples.lengths[which], cost)
        examples.add(gradient, which, slope)
        return float(np.vdot(mu, cost))

    def _losses(self, examples: Examples) -> Losses:
        count = len(examples.lengths)
        return Losses(examples.size, count, partial(chunks_by_length, examples), partial(self._add_loss, examples))
