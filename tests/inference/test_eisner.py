"""Projective trees: the stability bar, closed-form counts, planted trees and finite differences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given

from headway.inference import TreeDistribution, argmax, log_partition, marginals

from .exact import arc_marginals, assert_accurate, covariance_with_arcs, is_projective, tree_distribution
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
@pytest.mark.parametrize("gap", [150.0, 200.0, 230.0, 260.0, 300.0, 325.0])
def test_rare_arcs_of_one_head(gap: float, single_root: bool) -> None:
    """No single arc's span is out of range, but the words one head takes together are."""
    check(ladder_scores(0, gap), single_root)


@both_roots
@pytest.mark.parametrize("gap", [100.0, 150.0, 200.0, 230.0, 300.0, 325.0])
def test_rare_arcs_within_a_rare_arc(gap: float, single_root: bool) -> None:
    """One tree: each word but 1 and 5 could have a likelier head, but only in a cycle or across the arc 1 -> 4."""
    scores = np.full((6, 6), -np.inf)
    scores[0, 1] = scores[4, 5] = scores[5, 2] = scores[5, 3] = scores[5, 4] = 0.0
    scores[1, 4] = scores[1, 2] = scores[4, 3] = -gap
    check(with_garbage(scores), single_root)
    expected = np.zeros((6, 6))
    expected[[0, 1, 4, 1, 4], [1, 2, 3, 4, 5]] = 1.0
    got = marginals(scores, projective=True, single_root=single_root)
    np.testing.assert_allclose(got, expected, rtol=1e-14, atol=0)


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


# --- covariances ----------------------------------------------------------------------------------


def random_function(n: int, seed: int) -> Floats:
    """Multiples of 1/1024 within [-1, 1]: sums with whole numbers are exact. nan where it must be ignored."""
    return with_garbage(np.random.default_rng(seed).integers(-1024, 1025, (n + 1, n + 1)) / 1024.0)


def covariances(scores: Floats, f: Floats, single_root: bool, **options: object) -> Floats:
    distribution = TreeDistribution(scores, projective=True, single_root=single_root, **options)
    return distribution.covariance_with_arcs(f)


def with_rare_arc(scores: Floats, f: Floats) -> tuple[Floats, Floats]:
    """Two more words, which change nothing for the others but the range: linear numbers refuse an arc of e^-700.

    One is headed by the word before, the other by the two before.
    """
    n = len(scores) - 1
    longer, function = np.full((n + 3, n + 3), -np.inf), np.ones((n + 3, n + 3))
    longer[: n + 1, : n + 1], function[: n + 1, : n + 1] = scores, f
    longer[n, n + 1] = longer[n + 1, n + 2] = 0.0
    longer[n, n + 2] = -700.0
    return with_garbage(longer), with_garbage(function)


def forbid_some(scores: Floats, seed: int) -> Floats:
    """A third of the arcs forbidden; neighbours stay connected both ways."""
    nodes = np.arange(len(scores))
    forbidden = np.random.default_rng(seed).random(scores.shape) < 1 / 3
    forbidden[np.abs(nodes[:, None] - nodes) == 1] = False
    return with_garbage(np.where(forbidden, -np.inf, scores))


@both_roots
@pytest.mark.parametrize("scores", stability_cases(5))
def test_covariances_are_stable(scores: Floats, single_root: bool) -> None:
    f = random_function(5, 40)
    exact = tree_distribution(scores, projective=True, single_root=single_root)
    expected = covariance_with_arcs(exact, f).astype(float)
    np.testing.assert_allclose(covariances(scores, f, single_root), expected, rtol=0, atol=5e-14)


@both_roots
@given(scores=score_matrices(max_words=5))
def test_covariances_with_forbidden_arcs(single_root: bool, scores: Floats) -> None:
    f = random_function(len(scores) - 1, 41)
    exact = tree_distribution(scores, projective=True, single_root=single_root)
    expected = covariance_with_arcs(exact, f).astype(float)
    np.testing.assert_allclose(covariances(scores, f, single_root), expected, rtol=0, atol=5e-14)


@both_roots
@pytest.mark.parametrize("std", [0.0, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("sparse", [False, True], ids=["all arcs", "some arcs"])
def test_covariances_are_those_in_logarithms(sparse: bool, std: float, single_root: bool) -> None:
    for n in (1, 2, 3, 8, 15, 16, 17, 40):
        scores, f = normal_scores(n, 42 + n, std), random_function(n, 43 + n)
        scores = forbid_some(scores, n) if sparse else scores
        in_logarithms = covariances(*with_rare_arc(scores, f), single_root)[: n + 1, : n + 1]
        got = covariances(scores, f, single_root)
        np.testing.assert_allclose(got, in_logarithms, rtol=0, atol=1e-13)
        np.testing.assert_allclose(got[:, 1:].sum(axis=0), 0.0, rtol=0, atol=1e-13)
        assert n < 8 or np.abs(got).max() > 0.05


def mixed_batch() -> tuple[Floats, Floats, list[int]]:
    """More sentences than a group has, of all lengths up to 30, in no order: empty, sparse, and out of range."""
    rng = np.random.default_rng(44)
    sentences = []
    for length in rng.permutation(np.repeat(np.arange(31), 2)).tolist():
        scores = normal_scores(length, 45 + len(sentences), float(rng.choice([1.0, 5.0])))
        sentences.append(forbid_some(scores, length) if rng.random() < 0.3 else scores)
    sentences[10:10] = [ladder_scores(0, 150.0), normal_scores(20, 46, 400.0), ladder_scores(0, 320.0)]
    lengths = [len(scores) - 1 for scores in sentences]
    batch, f = np.full((2, len(sentences), 31, 31), np.nan)
    for b, scores in enumerate(sentences):
        batch[b, : len(scores), : len(scores)] = scores
        f[b, : len(scores), : len(scores)] = random_function(len(scores) - 1, 47 + b)
    return batch, f, lengths


@both_roots
def test_a_batch_is_its_sentences(single_root: bool) -> None:
    batch, f, lengths = mixed_batch()
    distribution = TreeDistribution(batch, projective=True, single_root=single_root, lengths=lengths)
    together = distribution.covariance_with_arcs(f)
    for b, n in enumerate(lengths):
        inside = np.s_[b, : n + 1, : n + 1]
        alone = TreeDistribution(batch[inside], projective=True, single_root=single_root)
        np.testing.assert_allclose(distribution.marginals[inside], alone.marginals, rtol=0, atol=1e-14)
        np.testing.assert_allclose(together[inside], alone.covariance_with_arcs(f[inside]), rtol=0, atol=1e-14)
        assert np.count_nonzero(together[b]) == np.count_nonzero(together[inside])
    assert np.count_nonzero(np.abs(together).max(axis=(1, 2)) > 0.05) > 50


@both_roots
def test_threads_change_nothing(single_root: bool) -> None:
    batch, f, lengths = mixed_batch()
    one, three = (covariances(batch, f, single_root, lengths=lengths, threads=threads) for threads in (1, 3))
    np.testing.assert_array_equal(one, three)


@both_roots
@pytest.mark.parametrize("std", [1.0, 10.0])
def test_what_f_adds_to_every_tree_does_not_matter(std: float, single_root: bool) -> None:
    """Not even for rounding."""
    scores, f = normal_scores(40, 48, std), random_function(40, 49)
    constants = np.random.default_rng(50).integers(-(2**30), 2**30, 41).astype(float)
    expected = covariances(scores, f, single_root)
    np.testing.assert_allclose(covariances(scores, f + constants, single_root), expected, rtol=0, atol=1e-15)
    assert np.abs(expected).max() > 0.01


@both_roots
@pytest.mark.parametrize("size", [1e-290, 1e-30, 1e30, 1e290])
def test_covariances_have_the_size_of_f(size: float, single_root: bool) -> None:
    """Of a sentence so long that its chart comes near the end of the range."""
    scores, f = normal_scores(90, 51, 4.0), random_function(90, 52)
    expected = covariances(scores, f, single_root)
    np.testing.assert_allclose(covariances(scores, f * size, single_root) / size, expected, rtol=0, atol=1e-14)
    assert np.abs(expected).max() > 0.01
