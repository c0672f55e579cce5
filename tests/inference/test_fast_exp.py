"""The vectorisable exponential beside the C library's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headway.inference.fast_exp import fast_exp


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 0.3, 1.0, 40.0, 708.0])
def test_within_two_units_in_the_last_place(scale: float) -> None:
    for x in np.random.default_rng(3).uniform(-scale, min(scale, 700.0), size=4000):
        expected = math.exp(x)
        assert abs(fast_exp(x) - expected) <= 2 * math.ulp(expected)


@pytest.mark.parametrize("k", range(-1020, 1009, 13))
def test_around_every_change_of_exponent(k: int) -> None:
    for x in (k - 0.5) * math.log(2) + np.array([-1e-13, -1e-15, 0.0, 1e-15, 1e-13]):
        if x > -708.0:
            expected = math.exp(x)
            assert abs(fast_exp(x) - expected) <= 2 * math.ulp(expected)


def test_ends_of_the_range() -> None:
    assert fast_exp(0.0) == 1.0
    assert fast_exp(-np.inf) == 0.0
    assert fast_exp(-708.5) == 0.0
    assert fast_exp(-707.9) > 0.0
