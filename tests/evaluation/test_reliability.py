"""Reliability of probabilities: by hand, and against a loop over arcs in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import EvaluationError
from headway.evaluation import reliability


def test_by_hand() -> None:
    """Two bins: 0.25 (wrong) below; 0.5, 0.75 and 1 (right, wrong, right) above: an error of 1/4 and |3/4 - 2/3|."""
    result = reliability([0.5, 0.25, 0.75, 1.0], [True, False, False, True], bins=2)
    low, high = result.bins
    assert (low.low, low.high, low.count, low.confidence, low.accuracy) == (0, 0.5, 1, 0.25, 0)
    assert (high.low, high.high, high.count, high.confidence, high.accuracy) == (0.5, 1, 3, 0.75, pytest.approx(2 / 3))
    assert result.expected_error == pytest.approx((0.25 + 3 * (0.75 - 2 / 3)) / 4)
    assert result.largest_error == 0.25


@pytest.mark.parametrize(("p", "low"), [(0.0, 0), (0.1, 1), (0.3, 3), (0.7, 7), (np.nextafter(0.7, 0), 6), (1.0, 9)])
def test_a_bin_is_closed_below_and_open_above(p: float, low: int) -> None:
    """0.3 * 10 is less than 3, and 0.7 * 10 more than 7, in floats: edges, not products, decide."""
    (only,) = reliability([p], [True]).bins
    assert (only.low, only.high) == (low / 10, (low + 1) / 10)


@given(
    arcs=st.lists(st.tuples(st.integers(0, 60), st.booleans()), min_size=1, max_size=60),
    bins=st.integers(1, 12),
)
def test_agrees_with_a_loop_in_fractions(arcs: list[tuple[int, bool]], bins: int) -> None:
    result = reliability([k / 64 for k, _ in arcs], [right for _, right in arcs], bins=bins)
    # the edges are floats: compare exactly with them
    inside = [
        [(Fraction(k, 64), right) for k, right in arcs if j / bins <= k / 64 < (j + 1) / bins] for j in range(bins)
    ]
    filled = [(j, members) for j, members in enumerate(inside) if members]
    assert [(row.low, row.high, row.count) for row in result.bins] == [
        (j / bins, (j + 1) / bins, len(members)) for j, members in filled
    ]
    gaps = []
    for row, (_, members) in zip(result.bins, filled, strict=True):
        confidence = sum(p for p, _ in members) / len(members)
        accuracy = Fraction(sum(right for _, right in members), len(members))
        assert row.confidence == pytest.approx(float(confidence), abs=1e-14)
        assert row.accuracy == pytest.approx(float(accuracy), abs=1e-14)
        gaps.append((abs(confidence - accuracy), len(members)))
    assert result.expected_error == pytest.approx(float(sum(gap * n for gap, n in gaps) / len(arcs)), abs=1e-14)
    assert result.largest_error == pytest.approx(float(max(gap for gap, _ in gaps)), abs=1e-14)


def test_calibrated_coins_have_a_small_error_and_boastful_ones_a_large_one() -> None:
    rng = np.random.default_rng(5)
    p = rng.random(200_000)
    right = rng.random(200_000) < p
    assert reliability(p, right).expected_error < 0.005
    assert reliability(np.sqrt(p), right).expected_error == pytest.approx(2 / 3 - 1 / 2, abs=0.005)


def test_rounding_above_one_is_kept_not_clipped() -> None:
    (only,) = reliability([1 + 1e-12], [True]).bins
    assert only.confidence == 1 + 1e-12


@pytest.mark.parametrize(
    ("probabilities", "right", "bins", "message"),
    [
        ([1.1], [True], 10, r"probabilities\[0\] is 1.1"),
        ([0.5, float("nan")], [True, True], 10, r"probabilities\[1\] is nan"),
        ([-1e-300], [True], 10, r"probabilities\[0\] is -1e-300"),
        ([0.5], [True, False], 10, "shapes"),
        ([], np.zeros(0, dtype=bool), 10, "shapes"),
        ([0.5], [1], 10, "booleans"),
        ([0.5], [True], 0, "bins is 0"),
    ],
)
def test_errors(probabilities: list[float], right: list[bool], bins: int, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        reliability(probabilities, right, bins=bins)
