"""Projective trees: the stability bar, closed-form counts, planted trees and finite differences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given

from headway.inference import TreeDistribution, argmax, log_partition, marginals

from .exact import arc_marginals, assert_accurate, is_projective, tree_distribution
from .strategies import (
    Floats,
    astronomical_scores,
    boost_cycle,
    normal_scores,
    pruned_scores,
    score_matrices,
    stability_cases,
    with_garbage,
)

both_roots = pytest.mark.parametrize("single_root", [False, True], ids=["multi", "single"])


def check(scores: Floats, single_root: bool) -> None:
    reference = tree_distribution(scores, projective=True, single_root=single_root)
    assert_accurate(
        log_partition(scores, projective=True, single_root=single_root),
        marginals(scores, projective=True, single_root=single_root),
        reference.log_partition,
        arc_marginals(reference, len(scores) - 1),
    )


@both_roots
@pytest.mark.parametrize("scores", stability_cases(5))
def test_stability(scores: Floats, single_root: bool) -> None:
    check(scores, single_root)


@both_roots
@pytest.mark.parametrize("level", [-5000.0, 5000.0])
def test_the_level_of_the_scores_is_free(level: float, single_root: bool) -> None:
    check(normal_scores(5, 22) + level, single_root)


@both_roots
@given(scores=score_matrices(max_words=5))
def test_stability_with_forbidden_arcs(single_root: bool, scores: Floats) -> None:
    check(scores, single_root)


@both_roots
@pytest.mark.parametrize("levels", [(0, -1, -2), (0, -40, -80), (0, -165, -330), (0, -300, -600)], ids=str)
def test_pruned_matrices(levels: tuple[int, ...], single_root: bool) -> None:
    """Few heads a word: spans of rare arcs whose product float64 cannot hold, though it holds each."""
    for seed, others in itertools.product(range(12), (1, 3)):
        check(pruned_scores(6, seed, levels, others), single_root)


@both_roots
def test_six_words(single_root: bool) -> None:
    check(boost_cycle(normal_scores(6, 31, 20.0), [2, 5], 100.0), single_root)


@both_roots
def test_astronomical_scores(single_root: bool) -> None:
    scores = astronomical_scores(5, 32)
    distribution = TreeDistribution(scores, projective=True, single_root=single_root)
    heads = distribution.argmax()
    expected = np.zeros((6, 6))
    expected[heads[1:], np.arange(1, 6)] = 1.0
    np.testing.assert_array_equal(distribution.marginals, expected)
    assert distribution.log_partition == pytest.approx(distribution.max, rel=1e-15)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 37, 100])
def test_uniform_scores_count_the_trees(n: int) -> None:
    zeros = with_garbage(np.zeros((n + 1, n + 1)))
    multi = math.log(math.comb(3 * n, n) // (2 * n + 1))
    single = math.log(math.comb(3 * n - 2, n - 1) // n)
    for single_root, expected in ((False, multi), (True, single)):
        got = log_partition(zeros, projective=True, single_root=single_root)
        assert got == pytest.approx(expected, rel=1e-13, abs=1e-13)


@both_roots
@pytest.mark.parametrize("std", [1.0, 30.0, 1000.0])
def test_sixty_words(std: float, single_root: bool) -> None:
    scores = normal_scores(60, 33, std)
    distribution = TreeDistribution(scores, projective=True, single_root=single_root)
    result = distribution.marginals
    assert (result >= 0).all()
    np.testing.assert_allclose(result[:, 1:].sum(axis=0), 1.0, rtol=0, atol=1e-12)
    if single_root:
        assert result[0].sum() == pytest.approx(1.0, rel=0, abs=1e-10)
    assert distribution.max <= distribution.log_partition
    assert is_projective(distribution.argmax().tolist())


def random_projective_tree(n: int, rng: np.random.Generator) -> np.ndarray:
    """One root; each span of words picks a head, which takes the heads of what lies either side."""
    heads = np.full(n + 1, -1, dtype=np.int64)
    spans = [(1, n, 0)]
    while spans:
        first, last, parent = spans.pop()
        if first <= last:
            head = int(rng.integers(first, last + 1))
            heads[head] = parent
            spans += [(first, head - 1, head), (head + 1, last, head)]
    return heads


@both_roots
@pytest.mark.parametrize("seed", range(3))
def test_finds_a_planted_tree(seed: int, single_root: bool) -> None:
    n = 80
    heads = random_projective_tree(n, np.random.default_rng(seed))
    scores = normal_scores(n, seed)
    scores[heads[1:], np.arange(1, n + 1)] += 30.0
    np.testing.assert_array_equal(argmax(scores, projective=True, single_root=single_root), heads)
    result = marginals(scores, projective=True, single_root=single_root)
    assert (result[heads[1:], np.arange(1, n + 1)] > 1 - 1e-6).all()


@both_roots
def test_marginals_are_the_gradient_of_the_log_partition(single_root: bool) -> None:
    scores = normal_scores(10, 29, 2.0)
    result = marginals(scores, projective=True, single_root=single_root)
    step = 1e-4
    for h, m in [(0, 1), (0, 7), (3, 8), (8, 3), (10, 1), (1, 10), (5, 6)]:
        up, down = scores.copy(), scores.copy()
        up[h, m] += step
        down[h, m] -= step
        difference = log_partition(up, projective=True, single_root=single_root) - log_partition(
            down, projective=True, single_root=single_root
        )
        assert difference / (2 * step) == pytest.approx(result[h, m], rel=0, abs=1e-8)


@both_roots
def test_never_more_than_all_trees(single_root: bool) -> None:
    scores = normal_scores(40, 34)
    projective = log_partition(scores, projective=True, single_root=single_root)
    assert projective < log_partition(scores, projective=False, single_root=single_root)
    best = [TreeDistribution(scores, projective=flag, single_root=single_root).max for flag in (True, False)]
    assert best[0] <= best[1]
