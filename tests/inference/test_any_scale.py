"""Scores of any exponent: numbers, sums, best trees, against integers and rationals."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import PrecisionError, ScoresError
from headway.inference import LabelledTreeDistribution, SiblingDistribution, TreeDistribution
from headway.inference.exact_numbers import add, divide, log_of, log_ratio, multiply, set_score, zeros
from headway.inference.jit import part
from tests.fuzz.infer_exponents import enumerate_trees

CLASSES = [{"projective": p, "single_root": s} for p in (False, True) for s in (False, True)]

exponents = st.integers(-320, 300)
digits = st.integers(-9, 9) | st.floats(-9.99, 9.99)
scores_of_any_exponent = st.builds(lambda x, e: max(-1e300, min(1e300, x * float(f"1e{e}"))), digits, exponents)


def matrices(element: st.SearchStrategy[float]) -> st.SearchStrategy[np.ndarray]:
    return st.integers(1, 4).flatmap(
        lambda n: st.lists(element, min_size=(n + 1) ** 2, max_size=(n + 1) ** 2).map(
            lambda cells: np.array(cells, dtype=np.float64).reshape(n + 1, n + 1)
        )
    )


# Few exponents in one matrix, so that large scores meet each other, and cancel; and masks.
few_exponents = st.lists(exponents, min_size=1, max_size=3).flatmap(
    lambda few: matrices(st.builds(lambda x, e: x * float(f"1e{min(e, 299)}"), digits, st.sampled_from(few)))
)
masked = st.sampled_from([-1e9, -1e15, -1e30, float(np.finfo(np.float32).min), -1e300]).flatmap(
    lambda mask: matrices(st.just(mask) | st.floats(-5, 5))
)


@part
def _arithmetic(x: float, y: float, z: float, unit: int) -> tuple[float, float, float, float]:
    numbers = zeros(1, 4, 70)
    for i, score in enumerate((x, y, z)):
        set_score(numbers, 0, i, score, 0.0, 0.0, unit)
    alone = log_of(numbers, 0, 0, unit)
    ratio = log_ratio(numbers, 0, 0, numbers, 0, 1, unit)
    multiply(numbers, 0, 3, numbers, 0, 0, numbers, 0, 1)
    divide(numbers, 0, 3, numbers, 0, 2)
    product = log_of(numbers, 0, 3, unit)
    add(numbers, 0, 0, numbers, 0, 1, unit, False)
    return alone, ratio, product, log_ratio(numbers, 0, 0, numbers, 0, 1, unit)


def as_float(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.copysign(math.inf, x)


@settings(max_examples=300)
@given(x=scores_of_any_exponent, y=scores_of_any_exponent, z=scores_of_any_exponent)
def test_numbers_round_only_differences(x: float, y: float, z: float) -> None:
    alone, ratio, product, total = _arithmetic(x, y, z, -1074 - 53)
    exact = [Fraction(score) for score in (x, y, z)]
    assert alone == x
    assert ratio == pytest.approx(as_float(exact[0] - exact[1]), rel=4e-16, abs=0)
    assert product == pytest.approx(as_float(exact[0] + exact[1] - exact[2]), rel=4e-16, abs=0)
    over = as_float(exact[0] - exact[1])
    assert total == pytest.approx(
        over + math.log1p(math.exp(-over)) if over > 0 else math.log1p(math.exp(over)), rel=4e-16
    )


@pytest.mark.parametrize("flags", CLASSES, ids=str)
@settings(max_examples=60)
@given(scores=few_exponents | masked | matrices(scores_of_any_exponent))
def test_sums_at_any_scale(flags: dict[str, bool], scores: np.ndarray) -> None:
    oracle = enumerate_trees(scores, **flags)
    distribution = TreeDistribution(scores, threads=1, **flags)
    assert oracle is not None
    np.testing.assert_allclose(distribution.marginals, oracle.marginals(), rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(distribution.marginals[:, 1:].sum(axis=0), 1.0, rtol=1e-14)
    assert distribution.log_partition == pytest.approx(oracle.log_partition, rel=1e-14, abs=1e-10)
    assert distribution.entropy == pytest.approx(oracle.entropy, abs=1e-10)
    best = (oracle.heads == distribution.argmax()).all(axis=1)
    assert oracle.below[best] >= -1e-9
    assert distribution.log_prob(distribution.argmax()) == pytest.approx(-oracle.log_sum, abs=1e-9)


def test_masks_where_only_masked_trees_exist() -> None:
    for size in (1e8, 1e9, 1e10, 1e30, 1e300):
        s = -size
        scores = [[0, s, s, s], [0, 0, 0, s], [0, 0, 0, 0], [0, s, s, 0]]
        assert TreeDistribution(scores, single_root=False).entropy == pytest.approx(math.log(2), rel=1e-15)


def test_a_root_that_only_a_mask_lets_in() -> None:
    scores = np.ones((4, 4))
    scores[0] = [0.0, -np.inf, -np.inf, -1e300]
    marginals = TreeDistribution(scores, single_root=False).marginals
    np.testing.assert_allclose(marginals[:, 1:].sum(axis=0), 1.0, rtol=1e-14)


def test_large_scores_without_ties() -> None:
    scores = 1e30 * np.array([[0, -2, -14, 5], [0, 0, 8, -7], [0, 8, 0, -2], [0, -14, -3, 0]])
    assert TreeDistribution(scores).marginals[3, 2] == 1.0


def test_wide_and_ordinary_sentences_in_one_batch() -> None:
    rng = np.random.default_rng(0)
    batch = rng.normal(size=(4, 5, 5))
    batch[1, 0, 2] = batch[3, 1, 3] = -1e12
    lengths = [4, 3, 2, 4]
    for flags in CLASSES:
        together = TreeDistribution(batch, lengths=lengths, **flags)
        for b, n in enumerate(lengths):
            alone = TreeDistribution(batch[b, : n + 1, : n + 1], **flags)
            np.testing.assert_allclose(together.marginals[b, : n + 1, : n + 1], alone.marginals, rtol=1e-13)
            assert together.log_partition[b] == pytest.approx(alone.log_partition, rel=1e-15)
            assert together.entropy[b] == pytest.approx(alone.entropy, abs=1e-13)
            assert together.argmax()[b, : n + 1].tolist() == alone.argmax().tolist()
            assert together.renyi(2)[b] == pytest.approx(alone.renyi(2), abs=1e-12)


def test_labels_count_at_any_scale() -> None:
    """Two labels against one, where adding log 2 to a score changes nothing."""
    scores = np.full((2, 2, 2), 1e20)
    assert LabelledTreeDistribution(scores).marginals[0, 1].tolist() == [0.5, 0.5]
    scores = np.full((3, 3, 2), 1e20)
    scores[0, 1, 1] = -np.inf
    arcs = LabelledTreeDistribution(scores).arc_marginals
    assert arcs[0, 1:] == pytest.approx([1 / 3, 2 / 3], rel=1e-14)


def test_a_divergence_without_digits_is_refused() -> None:
    """Either word on the root, equally likely; the other distribution prefers neither, by scores that cancel."""
    cycle = 1e30 * np.array([[0.0, 0, 0], [0, 0, 1], [0, 1, 0]])
    same, other = TreeDistribution(np.zeros((3, 3))), TreeDistribution(cycle)
    with pytest.raises(PrecisionError, match="forbid arcs by -inf"):
        same.kl(other)
    assert other.kl(TreeDistribution(cycle)) == 0.0


def test_siblings_too_large_to_tell_apart_are_refused() -> None:
    arcs, siblings = np.zeros((4, 4)), np.zeros((4, 4, 4))
    siblings[:, :, 1] = -1e9  # word 1 is masked as a modifier, but must have a head
    with pytest.raises(PrecisionError, match="Subtract a constant"):
        _ = SiblingDistribution(arcs, siblings).marginals
    arcs[0, 2] = -1e9
    assert SiblingDistribution(arcs, np.zeros((4, 4, 4))).marginals[:, 1:].sum(axis=0) == pytest.approx(1.0)


def test_functions_beyond_what_sums_can_hold_are_refused() -> None:
    distribution = TreeDistribution(np.zeros((3, 3)))
    with pytest.raises(ScoresError, match="at most 1e\\+300"):
        distribution.expectation(np.full((3, 3), sys.float_info.max))
    f = np.zeros((3, 3))
    f[0, 1] = 1e200
    with pytest.raises(PrecisionError, match="scale f or g down"):
        distribution.covariance(f, f)
