"""Reliability of arc probabilities: of the arcs with probability p, is a share p right?

Arcs are sorted into `bins` equal ranges of probability. In each bin, the mean probability (confidence) is compared with
the share of right arcs (accuracy). The expected calibration error is their absolute difference, averaged over the arcs
(Naeini et al. 2015). All figures are shares between 0 and 1, not percentages. O(arcs).

A range includes its lower end but not its upper end, except for the last. A probability above 1 by no more than a
rounding error (1e-9) belongs to the last bin and enters the mean as it is; anything larger is an error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headway.errors import EvaluationError

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Bin:
    """The arcs with a probability from `low` to `high`: how many, their mean probability, the share right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """The bins that are not empty, lowest first, and the expected and the largest calibration error."""

    bins: tuple[Bin, ...]
    expected_error: float
    largest_error: float


def reliability(probabilities: ArrayLike, right: ArrayLike, *, bins: int = 10) -> Reliability:
    """Compare the probabilities of predicted arcs with whether they are right; two arrays of the same length.

    >>> result = reliability([0.95, 0.95, 0.6, 0.6], [True, True, True, False])
    >>> [(bin.count, round(bin.confidence, 2), bin.accuracy) for bin in result.bins]
    [(2, 0.6, 0.5), (2, 0.95, 1.0)]
    >>> round(result.expected_error, 3)
    0.075
    """
    p, correct = np.asarray(probabilities, dtype=np.float64), np.asarray(right)
    if bins < 1:
        raise EvaluationError(f"bins is {bins}; expected at least 1")
    if p.ndim != 1 or p.shape != correct.shape or p.size == 0:
        raise EvaluationError(
            f"the shapes are {p.shape} and {correct.shape}; expected two arrays of the same length, at least 1"
        )
    if correct.dtype != np.bool_:
        raise EvaluationError(f"right has dtype {correct.dtype}; expected booleans")
    outside = np.flatnonzero(~((p >= 0) & (p <= 1 + _ROUNDING)))
    if outside.size:
        raise EvaluationError(f"probabilities[{outside[0]}] is {p[outside[0]]}; expected a number from 0 to 1")

    edges = np.arange(bins + 1) / bins
    number = np.searchsorted(edges[1:-1], p, side="right")
    count = np.bincount(number, minlength=bins)
    filled = np.flatnonzero(count)
    confidence = np.bincount(number, weights=p, minlength=bins)[filled] / count[filled]
    accuracy = np.bincount(number, weights=correct, minlength=bins)[filled] / count[filled]
    error = abs(confidence - accuracy)
    rows = zip(edges[filled], edges[filled + 1], count[filled], confidence, accuracy, strict=True)
    return Reliability(
        bins=tuple(Bin(float(low), float(high), int(n), float(c), float(a)) for low, high, n, c, a in rows),
        expected_error=float(error @ count[filled] / p.size),
        largest_error=float(error.max()),
    )
