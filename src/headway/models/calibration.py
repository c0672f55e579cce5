"""Calibration: the probabilities of a higher-order parser's arcs, from those of its pruner.

A higher-order model has no marginals; its pruner, a weaker log-linear model, has. Where the two disagree, the parser is
right far more often than the pruner's probability p of its arc says. The parser's own arcs therefore have probability

    calibrated(p) = pi + (1 - pi) p^kappa

With probability pi the parser knows better; else the arc is as likely as the pruner says, sharpened by kappa. Both
maximise the likelihood of which arcs of the development data are right. The other heads of a word share what is left,
in proportion to the pruner's probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Floats, Ints
from headway.inference.tree_distribution import TreeDistribution

_MOST_SURE = 1 - 1e-9  # a wrong arc of probability 1, or a right one of 0, would forbid every fit
_LEAST = 1e-12


@dataclass(frozen=True)
class Calibration:
    """pi and kappa; the defaults leave probabilities as they are."""

    pi: float = 0.0
    kappa: float = 1.0

    def __post_init__(self) -> None:
        if not (0 <= self.pi < 1 and 0 < self.kappa < np.inf):
            raise ValueError(f"pi is {self.pi} and kappa {self.kappa}; expected 0 <= pi < 1 and kappa > 0")

    def calibrated(self, probabilities: ArrayLike) -> Floats:
        """The probabilities of the parser's own arcs.

        >>> Calibration(0.5, 1.0).calibrated([0.0, 0.5, 1.0]).tolist()
        [0.5, 0.75, 1.0]
        """
        p: Floats = self.pi + (1 - self.pi) * np.asarray(probabilities, np.float64) ** self.kappa
        return p

    def marginals(self, mu: Floats, heads: Ints) -> Floats:
        """P(head -> modifier), (n+1, n+1), every word's column summing to one, from the pruner's `mu`."""
        if self == UNCALIBRATED:
            return mu
        words = np.arange(1, len(heads))
        own = mu[heads[1:], words]
        sure = self.calibrated(own)
        shared = np.divide(1 - sure, 1 - own, out=np.zeros_like(own), where=own < 1)
        result = mu.copy()
        result[:, 1:] *= shared
        result[heads[1:], words] = np.where(own < 1, sure, own)
        return result


UNCALIBRATED = Calibration()


@dataclass(frozen=True)
class CalibratedDistribution:
    """The distribution of a higher-order parser: its own tree, its pruner's probabilities, its arcs' calibrated."""

    heads: Ints
    pruner: TreeDistribution
    calibration: Calibration

    @cached_property
    def marginals(self) -> Floats:
        """P(head -> modifier), (n+1, n+1)."""
        return self.calibration.marginals(self.pruner.marginals, self.heads)

    def argmax(self) -> Ints:
        """Heads (n+1,) of the parser's tree."""
        return self.heads

    def log_prob(self, heads: ArrayLike) -> Any:
        """log P(tree) under the pruner."""
        return self.pruner.log_prob(heads)


def fit_calibration(probabilities: ArrayLike, right: ArrayLike) -> Calibration:
    """Fit to arcs a parser chose: their probabilities under its pruner, and which of them are right."""
    from scipy.optimize import minimize

    p, correct = np.asarray(probabilities, np.float64), np.asarray(right, np.bool_)

    def loss(x: Floats) -> float:
        sure = np.clip(Calibration(*x).calibrated(p), _LEAST, _MOST_SURE)
        return -float(np.log(np.where(correct, sure, 1 - sure)).sum())

    found = minimize(loss, [0.2, 1.0], method="Nelder-Mead", bounds=[(0.0, 0.99), (0.1, 10.0)])
    return Calibration(*map(float, found.x))
