"""Calibrated probabilities of a parser's arcs: columns still sum to one, and the fit recovers what made the data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.inference.tree_distribution import TreeDistribution
from headway.models.calibration import (
    UNCALIBRATED,
    CalibratedDistribution,
    Calibration,
    calibration_of_before,
    fit_calibration,
)

SLOPES = st.floats(0.1, 10)


@given(st.integers(1, 5), st.integers(0, 2**32 - 1), st.floats(-5, 5), SLOPES, SLOPES)
def test_columns_sum_to_one_and_others_keep_their_proportions(
    n: int, seed: int, alpha: float, beta: float, gamma: float
) -> None:
    trees = TreeDistribution(np.random.default_rng(seed).normal(size=(n + 1, n + 1)) * 3)
    mu, heads = trees.marginals, trees.argmax()
    found = Calibration(alpha, beta, gamma).marginals(mu, heads)
    np.testing.assert_allclose(found[:, 1:].sum(axis=0), 1.0, rtol=1e-12)
    for m in range(1, n + 1):
        own = mu[heads[m], m]
        odds = math.inf if own >= 1 else math.exp(alpha) * own**beta / (1 - own) ** gamma
        assert found[heads[m], m] == pytest.approx(1.0 if math.isinf(odds) else odds / (1 + odds), rel=1e-9)
        others = [h for h in range(n + 1) if h != heads[m] and mu[h, m] > 0]
        for h in others[1:]:
            ratio = mu[h, m] / mu[others[0], m]
            assert found[h, m] == pytest.approx(ratio * found[others[0], m], rel=1e-9, abs=1e-300)


def test_the_defaults_change_nothing() -> None:
    mu = np.array([[0.0, 0.25, 1.0], [0.0, 0.0, 0.0], [0.0, 0.75, 0.0]])
    assert UNCALIBRATED.marginals(mu, np.array([-1, 2, 0])) is mu


def test_certain_arcs_stay_certain() -> None:
    mu = np.array([[0.0, 0.25, 1.0], [0.0, 0.0, 0.0], [0.0, 0.75, 0.0]])
    found = Calibration(1.0, 2.0, 3.0).marginals(mu, np.array([-1, 2, 0]))
    np.testing.assert_array_equal(found[:, 2], mu[:, 2])
    assert 0.75 < found[2, 1] < 1


@given(st.floats(-5, 5), SLOPES, SLOPES)
def test_there_is_no_floor(alpha: float, beta: float, gamma: float) -> None:
    """What the pruner rules out is ruled out, what it is certain of is certain, and in between it only grows."""
    found = Calibration(alpha, beta, gamma).calibrated([0.0, 1e-100, 1e-6, 0.1, 0.5, 0.9, 1.0])
    assert found[0] == 0.0
    assert found[1] < 1e-7
    assert found[-1] == 1.0
    assert (np.diff(found) >= 0).all()


def test_the_fit_recovers_what_made_the_data() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=200_000)
    right = rng.uniform(size=p.size) < Calibration(0.7, 0.4, 1.3).calibrated(p)
    found = fit_calibration(p, right)
    assert found.alpha == pytest.approx(0.7, abs=0.05)
    assert found.beta == pytest.approx(0.4, abs=0.03)
    assert found.gamma == pytest.approx(1.3, abs=0.05)


def test_certain_arcs_do_not_count() -> None:
    """A wrong arc of probability 1, or a right one of 0, would otherwise forbid every fit."""
    p, right = np.linspace(0.05, 0.95, 19), np.arange(19) % 4 > 0
    found = fit_calibration([*p, 0.0, 1.0], [*right, True, False])
    assert found == fit_calibration(p, right)
    assert fit_calibration([0.0, 1.0], [True, False]) == UNCALIBRATED


def test_slopes_stay_positive() -> None:
    """Arcs that are right the less, the surer the pruner is: nothing to be made of."""
    p = np.linspace(0.01, 0.99, 99)
    found = fit_calibration(p, p < 0.5)
    assert found.beta > 0
    assert found.gamma > 0


def test_an_older_calibration_becomes_the_nearest() -> None:
    """The same in the middle; only the constant goes."""
    p = np.arange(0.1, 1.0, 0.1)
    found = calibration_of_before(0.5, 1.5)
    np.testing.assert_allclose(found.calibrated(p), 0.5 + 0.5 * p**1.5, atol=0.05)
    assert found.calibrated(0.0) == 0.0


@pytest.mark.parametrize(("pi", "kappa"), [(-0.1, 1.0), (1.0, 1.0), (0.5, 0.0), (0.5, np.inf), (np.nan, 1.0)])
def test_what_an_older_one_cannot_be(pi: float, kappa: float) -> None:
    with pytest.raises(ValueError, match="expected 0 <= pi < 1"):
        calibration_of_before(pi, kappa)


@pytest.mark.parametrize(
    "numbers", [(np.nan, 1.0, 1.0), (np.inf, 1.0, 1.0), (0.0, 0.0, 1.0), (0.0, 1.0, -1.0), (0.0, np.inf, 1.0)]
)
def test_what_cannot_be(numbers: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="two positive ones"):
        Calibration(*numbers)


def test_the_distribution_is_the_pruner_s_with_the_parser_s_tree() -> None:
    """Its own tree, the pruner's probability of any tree, and arcs calibrated around the parser's own."""
    pruner = TreeDistribution(np.random.default_rng(1).normal(size=(5, 5)))
    heads, calibration = np.array([-1, 0, 1, 2, 3]), Calibration(0.3, 2.0, 0.5)
    found = CalibratedDistribution(heads, pruner, calibration)
    assert found.argmax() is heads
    assert found.log_prob(heads) == pruner.log_prob(heads) < 0
    np.testing.assert_array_equal(found.marginals, calibration.marginals(pruner.marginals, heads))
    assert found.marginals is found.marginals
