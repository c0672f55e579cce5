"""Calibrated probabilities of a parser's arcs: columns still sum to one, and the fit recovers what made the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.inference.tree_distribution import TreeDistribution
from headway.models.calibration import UNCALIBRATED, CalibratedDistribution, Calibration, fit_calibration


@given(st.integers(1, 5), st.integers(0, 2**32 - 1), st.floats(0, 0.99), st.floats(0.1, 10))
def test_columns_sum_to_one_and_others_keep_their_proportions(n: int, seed: int, pi: float, kappa: float) -> None:
    trees = TreeDistribution(np.random.default_rng(seed).normal(size=(n + 1, n + 1)) * 3)
    mu, heads = trees.marginals, trees.argmax()
    found = Calibration(pi, kappa).marginals(mu, heads)
    np.testing.assert_allclose(found[:, 1:].sum(axis=0), 1.0, rtol=1e-12)
    for m in range(1, n + 1):
        own = mu[heads[m], m]
        assert found[heads[m], m] == pytest.approx(own if own >= 1 else pi + (1 - pi) * own**kappa, rel=1e-12)
        others = [h for h in range(n + 1) if h != heads[m] and mu[h, m] > 0]
        for h in others[1:]:
            ratio = mu[h, m] / mu[others[0], m]
            assert found[h, m] == pytest.approx(ratio * found[others[0], m], rel=1e-9, abs=1e-300)


def test_the_defaults_change_nothing() -> None:
    mu = np.array([[0.0, 0.25, 1.0], [0.0, 0.0, 0.0], [0.0, 0.75, 0.0]])
    assert UNCALIBRATED.marginals(mu, np.array([-1, 2, 0])) is mu


def test_the_fit_recovers_what_made_the_data() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=200_000)
    right = rng.uniform(size=p.size) < 0.4 + 0.6 * p**1.5
    found = fit_calibration(p, right)
    assert found.pi == pytest.approx(0.4, abs=0.02)
    assert found.kappa == pytest.approx(1.5, abs=0.06)


@pytest.mark.parametrize(("pi", "kappa"), [(-0.1, 1.0), (1.0, 1.0), (0.5, 0.0), (0.5, np.inf), (np.nan, 1.0)])
def test_what_cannot_be(pi: float, kappa: float) -> None:
    with pytest.raises(ValueError, match="expected 0 <= pi < 1"):
        Calibration(pi, kappa)


def test_the_distribution_is_the_pruner_s_with_the_parser_s_tree() -> None:
    """Its own tree, the pruner's probability of any tree, and arcs calibrated around the parser's own."""
    pruner = TreeDistribution(np.random.default_rng(1).normal(size=(5, 5)))
    heads, calibration = np.array([-1, 0, 1, 2, 3]), Calibration(0.3, 2.0)
    found = CalibratedDistribution(heads, pruner, calibration)
    assert found.argmax() is heads
    assert found.log_prob(heads) == pruner.log_prob(heads) < 0
    np.testing.assert_array_equal(found.marginals, calibration.marginals(pruner.marginals, heads))
    assert found.marginals is found.marginals
