"""log Z and marginals of non-projective trees: the stability bar against exact rationals.

Relative error of every marginal above 1e-300 at most 1e-9, columns summing to one within 1e-12,
log Z to a relative 1e-12, never nan: for dominant cycles, every spread of scores, reducible and
pruned matrices. Closed forms where there are too many trees for rationals.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given

from headway.errors import NoTreeError
from headway.inference import TreeDistribution, argmax, forbid, log_partition, marginals, require

from .exact import assert_accurate, determinants
from .strategies import (
    Floats,
    astronomical_scores,
    boost_cycle,
    ladder_scores,
    normal_scores,
    pruned_scores,
    score_matrices,
    stability_cases,
    with_garbage,
)

both_roots = pytest.mark.parametrize("single_root", [False, True], ids=["multi", "single"])


def check(scores: Floats, single_root: bool) -> None:
    assert_accurate(
        log_partition(scores, single_root=single_root),
        marginals(scores, single_root=single_root),
        *determinants(scores, single_root=single_root),
    )


@both_roots
@pytest.mark.parametrize("scores", stability_cases(6))
def test_stability(scores: Floats, single_root: bool) -> None:
    check(scores, single_root)


@both_roots
@pytest.mark.parametrize("std", [1.0, 100.0, 400.0])
def test_stability_of_eight_words(std: float, single_root: bool) -> None:
    scores = boost_cycle(normal_scores(8, 20, std), [3, 1, 4, 8, 5, 2, 6, 7], 600.0)
    check(boost_cycle(scores, [1, 6], 600.0), single_root)


@both_roots
@pytest.mark.parametrize("boost", range(300, 800, 25))
def test_stability_where_float64_runs_out(boost: int, single_root: bool) -> None:
    """exp overflows at 709, underflows at -745, and its square underflows at half of that."""
    scores = boost_cycle(normal_scores(4, boost), [1, 2], float(boost))
    check(boost_cycle(scores, [3, 4], boost / 2.0), single_root)


@both_roots
@pytest.mark.parametrize("root", [-1500.0, -700.0, -350.0, 350.0, 700.0, 1500.0])
def test_stability_of_a_distant_root(root: float, single_root: bool) -> None:
    scores = normal_scores(5, 21)
    scores[0] += root
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
@pytest.mark.parametrize("boost", [0.0, 40.0, 600.0])
def test_a_word_only_the_root_can_head(boost: float, single_root: bool) -> None:
    scores = boost_cycle(normal_scores(6, 23), [1, 2], boost)
    scores[1:, 4] = -np.inf
    check(scores, single_root)
    assert marginals(scores, single_root=single_root)[0, 4] == 1.0


def test_two_words_only_the_root_can_head() -> None:
    scores = normal_scores(6, 24)
    scores[1:, [2, 5]] = -np.inf
    check(scores, single_root=False)
    for function in (log_partition, marginals):
        with pytest.raises(NoTreeError) as caught:
            function(scores, single_root=True)
        assert sorted(caught.value.words) == [2, 5]


@both_roots
@pytest.mark.parametrize("levels", [(0, -1, -2), (0, -40, -80), (0, -165, -330), (0, -300, -600)], ids=str)
def test_pruned_matrices(levels: tuple[int, ...], single_root: bool) -> None:
    """Few heads a word: chains of rare arcs whose product float64 cannot hold, though it holds each."""
    for seed, others in itertools.product(range(12), (1, 3)):
        check(pruned_scores(7, seed, levels, others), single_root)


@both_roots
@pytest.mark.parametrize("gap", [50.0, 100.0, 150.0, 200.0, 250.0, 320.0, 600.0])
def test_ladders(gap: float, single_root: bool) -> None:
    """Numbers that float64 holds one by one, and their products not: the choice of logarithms is forced."""
    for seed in range(3):
        check(ladder_scores(seed, gap), single_root)


@both_roots
def test_a_single_possible_tree(single_root: bool) -> None:
    scores = require(normal_scores(5, 25, 200.0), [(0, 3), (3, 1), (1, 5), (5, 2), (3, 4)])
    score = scores[[0, 3, 1, 5, 3], [3, 1, 5, 2, 4]].sum()
    expected = np.zeros((6, 6))
    expected[[0, 3, 1, 5, 3], [3, 1, 5, 2, 4]] = 1.0
    assert log_partition(scores, single_root=single_root) == pytest.approx(score, rel=1e-14)
    np.testing.assert_array_equal(marginals(scores, single_root=single_root), expected)


@both_roots
def test_astronomical_scores(single_root: bool) -> None:
    """So far apart that only the best tree is left."""
    scores = astronomical_scores(5, 26)
    distribution = TreeDistribution(scores, single_root=single_root)
    heads = argmax(scores, single_root=single_root)
    expected = np.zeros((6, 6))
    expected[heads[1:], np.arange(1, 6)] = 1.0
    np.testing.assert_array_equal(distribution.marginals, expected)
    assert distribution.log_partition == pytest.approx(distribution.max, rel=1e-15)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 37, 100])
def test_uniform_scores_reproduce_cayleys_counts(n: int) -> None:
    zeros = with_garbage(np.zeros((n + 1, n + 1)))
    multi = (n - 1) * math.log(n + 1)
    single = (n - 1) * math.log(n)
    assert log_partition(zeros, single_root=False) == pytest.approx(multi, rel=1e-13, abs=1e-13)
    assert log_partition(zeros, single_root=True) == pytest.approx(single, rel=1e-13, abs=1e-13)

    words = ~np.eye(n + 1, dtype=np.bool_)
    words[:, 0] = words[0] = False
    expected = np.where(words, 1 / (n + 1), 0.0)
    expected[0, 1:] = 2 / (n + 1)
    np.testing.assert_allclose(marginals(zeros, single_root=False), expected, rtol=1e-12, atol=0)
    expected = np.where(words, 1 / n, 0.0)
    expected[0, 1:] = 1 / n
    np.testing.assert_allclose(marginals(zeros, single_root=True), expected, rtol=1e-12, atol=0)


@both_roots
@pytest.mark.parametrize("std", [1.0, 30.0, 1000.0])
def test_two_hundred_words(std: float, single_root: bool) -> None:
    scores = boost_cycle(normal_scores(200, 27, std), list(range(1, 201)), 10.0)
    result = marginals(scores, single_root=single_root)
    assert (result >= 0).all()
    np.testing.assert_allclose(result[:, 1:].sum(axis=0), 1.0, rtol=0, atol=1e-12)
    if single_root:
        assert result[0].sum() == pytest.approx(1.0, rel=0, abs=1e-10)


@both_roots
def test_moderate_scores_equal_the_textbook_inverse(single_root: bool) -> None:
    """n = 40: koo2007's determinant and inverse, good enough at a standard deviation of 1."""
    n = 40
    scores = np.random.default_rng(28).normal(size=(n + 1, n + 1))
    weight = np.exp(scores) * ~np.eye(n + 1, dtype=np.bool_)
    laplacian = -weight[1:, 1:]
    np.fill_diagonal(laplacian, weight[0 if not single_root else 1 :, 1:].sum(axis=0))
    if single_root:
        laplacian[0] = weight[0, 1:]
    sign, expected = np.linalg.slogdet(laplacian)
    assert sign == 1
    assert log_partition(scores, single_root=single_root) == pytest.approx(expected, rel=1e-12)
    inverse = np.linalg.inv(laplacian).T
    if single_root:
        diagonal, inverse_0 = np.diag(inverse).copy(), inverse[0].copy()
        diagonal[0] = 0.0
        inverse[0] = 0.0
        words, root = weight[1:, 1:] * (diagonal - inverse), weight[0, 1:] * inverse_0
    else:
        words, root = (
            weight[1:, 1:] * (np.diag(inverse) - inverse),
            weight[0, 1:] * np.diag(inverse),
        )
    result = marginals(scores, single_root=single_root)
    np.testing.assert_allclose(result[1:, 1:], words, rtol=0, atol=1e-11)
    np.testing.assert_allclose(result[0, 1:], root, rtol=0, atol=1e-11)


@both_roots
def test_marginals_are_the_gradient_of_the_log_partition(single_root: bool) -> None:
    scores = normal_scores(10, 29, 2.0)
    result = marginals(scores, single_root=single_root)
    step = 1e-4
    for h, m in [(0, 1), (0, 7), (3, 8), (8, 3), (10, 1), (1, 10), (5, 6)]:
        up, down = scores.copy(), scores.copy()
        up[h, m] += step
        down[h, m] -= step
        difference = log_partition(up, single_root=single_root) - log_partition(down, single_root=single_root)
        assert difference / (2 * step) == pytest.approx(result[h, m], rel=0, abs=1e-8)


@both_roots
def test_forbidding_an_arc_removes_its_trees(single_root: bool) -> None:
    """Z = Z without the arc + P(arc) Z: at n = 30, and log Z - log Z' = -log(1 - P)."""
    scores = normal_scores(30, 30, 2.0)
    result = marginals(scores, single_root=single_root)
    heads = argmax(scores, single_root=single_root)
    for m in (1, 9, 30):
        without = log_partition(forbid(scores, [(int(heads[m]), m)]), single_root=single_root)
        change = without - log_partition(scores, single_root=single_root)
        assert change == pytest.approx(math.log1p(-result[heads[m], m]), rel=1e-9)
