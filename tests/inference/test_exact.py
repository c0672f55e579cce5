"""The references themselves: two independent roads to the same rationals, and known counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from .exact import arc_marginals, determinants, sibling_parts, tree_distribution, trees
from .strategies import BOOSTS, boost_cycle, normal_scores, score_matrices


@pytest.mark.parametrize("single_root", [False, True])
@settings(max_examples=15)
@given(scores=score_matrices(max_words=4))
def test_enumeration_and_determinants_agree(single_root: bool, scores: np.ndarray) -> None:
    exact = tree_distribution(scores, projective=False, single_root=single_root)
    log_partition, marginals = determinants(scores, single_root=single_root)
    assert log_partition == pytest.approx(exact.log_partition, rel=1e-15, abs=1e-15)
    listed = arc_marginals(exact, len(scores) - 1)
    for first, second in zip(listed.flat, marginals.flat, strict=True):
        assert abs(first - second) <= first / 10**60


@pytest.mark.parametrize("boost", BOOSTS)
def test_marginals_are_finite_differences_of_the_log_partition(boost: float) -> None:
    scores = boost_cycle(normal_scores(3, 0), [1, 2], boost)
    _, marginals = determinants(scores, single_root=True)
    step = 2.0**-12
    for h, m in [(0, 1), (1, 2), (2, 1), (3, 1)]:
        up, down = scores.copy(), scores.copy()
        up[h, m] += step
        down[h, m] -= step
        difference = determinants(up, single_root=True)[0] - determinants(down, single_root=True)[0]
        assert difference / (2 * step) == pytest.approx(float(marginals[h, m]), abs=1e-7)


@pytest.mark.parametrize("n", range(1, 6))
def test_counts(n: int) -> None:
    def count(projective: bool, single_root: bool) -> int:
        return len(trees(n, projective=projective, single_root=single_root))

    assert count(False, False) == (n + 1) ** (n - 1)
    assert count(False, True) == n ** (n - 1)
    assert count(True, False) == math.comb(3 * n, n) // (2 * n + 1)
    assert count(True, True) == math.comb(3 * n - 2, n - 1) // n


def test_the_uniform_distribution_over_three_trees() -> None:
    exact = tree_distribution(np.zeros((3, 3)), projective=False, single_root=False)
    assert set(exact) == {(-1, 0, 0), (-1, 0, 1), (-1, 2, 0)}
    assert exact.log_partition == pytest.approx(math.log(3), rel=1e-15)
    assert exact.entropy == pytest.approx(math.log(3), rel=1e-15)
    assert exact.renyi(2) == pytest.approx(math.log(3), rel=1e-15)


def test_sibling_parts_by_hand() -> None:
    # 2 heads 1 on its left, 3 and 5 on its right; 5 heads 4; the root heads 2
    assert sorted(sibling_parts((-1, 2, 0, 2, 5, 2))) == sorted(
        [
            *[(0, 0, 2), (0, 2, 0)],
            *[(2, 2, 1), (2, 1, 2)],
            *[(2, 2, 3), (2, 3, 5), (2, 5, 2)],
            *[(5, 5, 4), (5, 4, 5)],
        ]
    )
