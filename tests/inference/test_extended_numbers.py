"""Mantissas and exponents, against fractions: nothing is rounded but exponentials."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.inference.extended_numbers import (
    ZERO_EXPONENT,
    extended_exp,
    normalise,
    normalised,
    power_of_two,
    times_power_of_two,
    to_common_exponent,
)

exponents = st.integers(-(2**40), 2**40)
values = st.floats(-(2.0**1021), 2.0**1021, allow_subnormal=False)


@given(values, exponents)
def test_a_number_is_normalised_without_rounding(value: float, exponent: int) -> None:
    mantissa, other = normalised(value, exponent)
    if value == 0.0:
        assert (mantissa, other) == (0.0, ZERO_EXPONENT)
        return
    assert 0.5 <= abs(mantissa) < 1.0
    assert Fraction(mantissa) * Fraction(2) ** (other - exponent) == Fraction(value)


@given(st.lists(st.floats(-1e3, 1e3).filter(lambda x: x == 0.0 or abs(x) > 1e-3), min_size=1, max_size=4), exponents)
def test_a_vector_is_normalised_by_its_largest_entry(row: list[float], exponent: int) -> None:
    vectors, found = np.array([[7.0] * len(row), row]), np.array([5, 5])
    normalise(vectors, found, 1, exponent)
    assert (vectors[0] == 7.0).all()
    assert found[0] == 5
    if not any(row):
        assert found[1] == ZERO_EXPONENT
        return
    assert 0.5 <= np.abs(vectors[1]).max() < 1.0
    assert [Fraction(x) * Fraction(2) ** int(found[1] - exponent) for x in vectors[1]] == list(map(Fraction, row))


def test_terms_get_the_largest_exponent() -> None:
    factors, own = np.array([0.75, -0.5, 0.5, 9.0]), np.array([7, 9, 9 - 1023, 50])
    assert to_common_exponent(factors, own, 3) == 9
    assert factors.tolist() == [0.1875, -0.5, 0.0, 9.0]
    zeros = np.zeros(2)
    assert to_common_exponent(zeros, np.full(2, ZERO_EXPONENT), 2) == ZERO_EXPONENT
    assert zeros.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("exponent", [-1022, -1, 0, 1, 1023])
def test_powers_of_two(exponent: int) -> None:
    assert power_of_two(exponent) == math.ldexp(1.0, exponent)
    assert power_of_two(-1023) == power_of_two(-(2**60)) == 0.0


def test_products_with_powers_beyond_those_of_floats() -> None:
    assert times_power_of_two(2.0**-1000, 1500) == 2.0**500
    assert times_power_of_two(0.75, -(2**50)) == 0.0
    assert times_power_of_two(-0.75, 2**50) == -math.inf


@given(st.floats(-1e6, 1e6))
def test_exponentials_of_any_size(log: float) -> None:
    mantissas, found = extended_exp(np.array([log, -math.inf]))
    assert (mantissas[1], found[1]) == (0.0, ZERO_EXPONENT)
    assert 1.0 - 1e-9 < mantissas[0] < 2.0 + 1e-9
    rest = Fraction(log) - int(found[0]) * Fraction("0.693147180559945309417232")
    assert math.log(mantissas[0]) == pytest.approx(float(rest), abs=4e-16 * max(1.0, abs(log)))
