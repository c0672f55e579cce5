"""Calibration: the probabilities of a higher-order parser's arcs, from those of its pruner.

A higher-order model has no marginals; its pruner, a weaker log-linear model, has. Where the two disagree, the parser is
right far more often than the pruner's probability p of its arc says. So the parser's own arcs have another probability,
whose log-odds are

    alpha + beta log p - gamma log(1 - p),   beta, gamma > 0

(beta calibration, Kull et al. 2017): it grows with p from 0 to 1, so an arc that the pruner rules out is ruled out, and
no arc has a probability that owes nothing to its sentence. All three maximise the likelihood of which arcs of the
development data are right. The other heads of a word share what is left, in proportion to the pruner's probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Floats, Ints
from headway.inference.tree_distribution import TreeDistribution

_FLATTEST, _STEEPEST = 1e-3, 1e3  # of the slopes that are fitted


@dataclass(frozen=True)
class Calibration:
    """alpha, beta and gamma; the defaults leave probabilities as they are."""

    alpha: float = 0.0
    beta: float = 1.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.alpha) and 0 < self.beta < np.inf and 0 < self.gamma < np.inf):
            raise ValueError(
                f"alpha is {self.alpha}, beta {self.beta} and gamma {self.gamma}; "
                "expected a number and two positive ones"
            )

    def calibrated(self, probabilities: ArrayLike) -> Floats:
        """The probabilities of the parser's own arcs.

        >>> Calibration(float(np.log(4))).calibrated([0.0, 0.5, 1.0]).round(6).tolist()
        [0.0, 0.8, 1.0]
        """
        p = np.asarray(probabilities, np.float64)
        with np.errstate(divide="ignore"):  # of 0 and 1, the log-odds are infinite
            log_odds = self.alpha + self.beta * np.log(p) - self.gamma * np.log1p(-p)
        sure: Floats = np.exp(-np.logaddexp(0.0, -log_odds))
        return sure

    def marginals(self, mu: Floats, heads: Ints) -> Floats:
        """P(head -> modifier), (n+1, n+1), every word's column summing to one, from the pruner's `mu`."""
        if self == UNCALIBRATED:
            return mu
        words = np.arange(1, len(heads))
        words = words[mu[heads[1:], words] < 1]  # the others stay as they are
        own = mu[heads[words], words]
        sure = self.calibrated(own)
        result = mu.copy()
        result[:, words] *= (1 - sure) / (1 - own)
        result[heads[words], words] = sure
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
    """Fit to arcs a parser chose: their probabilities under its pruner, and which of them are right.

    Arcs of probability 0 or 1 keep it whatever is fitted, so they are left out. `right` may be probabilities, too.
    """
    from scipy.optimize import minimize

    p, target = np.asarray(probabilities, np.float64), np.asarray(right, np.float64)
    doubtful = (p > 0) & (p < 1)
    if not doubtful.any():
        return UNCALIBRATED
    features = np.stack([np.ones(doubtful.sum()), np.log(p[doubtful]), -np.log1p(-p[doubtful])])
    target = target[doubtful]

    def loss(x: Floats) -> tuple[float, Floats]:
        """Mean cross-entropy, which is convex, and its gradient."""
        log_odds = x @ features
        sure = np.exp(-np.logaddexp(0.0, -log_odds))
        return float((np.logaddexp(0.0, log_odds) - target * log_odds).mean()), features @ (sure - target) / len(target)

    slopes = (_FLATTEST, _STEEPEST)
    found = minimize(loss, [0.0, 1.0, 1.0], jac=True, method="L-BFGS-B", bounds=[(None, None), slopes, slopes])
    return Calibration(*map(float, found.x))


def calibration_of_before(pi: float, kappa: float) -> Calibration:
    """The nearest to pi + (1 - pi) p^kappa, by cross-entropy over all p alike: what models were calibrated by before.

    >>> calibration_of_before(0.0, 1.0) == UNCALIBRATED
    True
    """
    if not (0 <= pi < 1 and 0 < kappa < np.inf):
        raise ValueError(f"pi is {pi} and kappa {kappa}; expected 0 <= pi < 1 and kappa > 0")
    if (pi, kappa) == (0.0, 1.0):
        return UNCALIBRATED
    p = np.arange(1, 1000) / 1000
    return fit_calibration(p, pi + (1 - pi) * p**kappa)
