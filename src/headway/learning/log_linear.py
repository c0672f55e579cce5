"""Log-linear training: the conditional likelihood of the trees (koo2007 section 4.1).

    L(w) = -C sum_i log P(y_i | x_i; w) + |w|^2 / 2

Its gradient is w - C sum_i sum_arcs (1[gold] - mu) f, with mu the marginals: one pass over the data, in chunks of
sentences of like length. `descent` minimises it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from headway.inference.batch import Floats, Ints
from headway.learning.descent import Descent, Losses
from headway.learning.examples import Examples, Structures, Trees, chunks_by_length
from headway.learning.progress import Report, State


@dataclass(frozen=True)
class LogLinear:
    """`regularisation` is C: the larger, the closer the fit."""

    structures: Structures = field(default_factory=Trees)
    regularisation: float = 0.1
    descent: Descent = field(default_factory=Descent)

    def fit(self, examples: Examples, report: Report, resume: State | None = None) -> Floats:
        """Minimise L, calling `report` after each step or epoch; a report that answers False ends the training."""
        return self.descent.minimise_sum(self._losses(examples), report, resume)

    def objective(self, examples: Examples, weights: Floats) -> tuple[float, Floats]:
        """L(w) and its gradient."""
        return self._losses(examples).objective(weights)

    def add_loss(self, examples: Examples, weights: Floats, which: Ints, gradient: Floats) -> float:
        """C times minus the log-likelihood of these sentences; its gradient is added to `gradient`."""
        scores, gold = examples.score(weights, which), examples.gold(which)
        log_z, mu = self.structures.marginals(scores, examples.lengths[which])
        examples.add(gradient, which, self.regularisation * (mu - gold))
        return self.regularisation * float(np.sum(log_z) - np.vdot(gold, scores))

    def _losses(self, examples: Examples) -> Losses:
        count = len(examples.lengths)
        return Losses(examples.size, count, partial(chunks_by_length, examples), partial(self.add_loss, examples))
