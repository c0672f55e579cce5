"""Projective trees with sibling scores: against enumeration, and against first order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from headway.errors import NoTreeError, ScoresError, ShapeError
from headway.inference import SiblingDistribution, TreeDistribution

from .exact import (
    arc_marginals,
    arcs,
    assert_accurate,
    is_projective,
    part_sum,
    sibling_distribution,
    sibling_parts,
)
from .strategies import (
    BOOSTS,
    SPREADS,
    Floats,
    astronomical_scores,
    boost_cycle,
    normal_scores,
    sibling_scores,
)

both_roots = pytest.mark.parametrize("single_root", [False, True], ids=["multi", "single"])


def random_siblings(n: int, seed: int, std: float = 1.0) -> Floats:
    siblings = np.random.default_rng(seed).normal(0.0, std, (n + 1,) * 3)
    nodes = np.arange(n + 1)
    siblings[nodes, nodes, nodes] = np.nan
    return siblings


def check(arc_scores: Floats, siblings: Floats, single_root: bool) -> None:
    distribution = SiblingDistribution(arc_scores, siblings, single_root=single_root)
    reference = sibling_distribution(arc_scores, siblings, single_root=single_root)
    assert_accurate(
        distribution.log_partition,
        distribution.marginals,
        reference.log_partition,
        arc_marginals(reference, len(arc_scores) - 1),
    )
    np.testing.assert_allclose(
        distribution.sibling_marginals,
        reference.marginals(siblings.shape, sibling_parts).astype(float),
        rtol=1e-9,
        atol=1e-300,
    )
    # the entropy is a difference of numbers as large as the scores, and cannot be more exact than they are
    largest = max(100.0, *(np.abs(scores[np.isfinite(scores)]).max(initial=0.0) for scores in (arc_scores, siblings)))
    assert distribution.entropy == pytest.approx(reference.entropy, rel=0, abs=1e-12 * largest)


@both_roots
@pytest.mark.parametrize("std", SPREADS)
def test_stability_of_spreads(std: float, single_root: bool) -> None:
    check(normal_scores(5, 40, std), random_siblings(5, 41, std), single_root)


@both_roots
@pytest.mark.parametrize("boost", BOOSTS)
def test_stability_of_cycles(boost: float, single_root: bool) -> None:
    scores = boost_cycle(normal_scores(5, 42), [1, 2, 3], boost)
    check(boost_cycle(scores, [4, 5], boost), random_siblings(5, 43), single_root)


@both_roots
@given(scores=sibling_scores(max_words=5))
def test_marginals_with_forbidden_parts(single_root: bool, scores: tuple[Floats, Floats]) -> None:
    check(*scores, single_root)


@both_roots
def test_astronomical_scores(single_root: bool) -> None:
    arc_scores = astronomical_scores(5, 52)
    distribution = SiblingDistribution(arc_scores, np.zeros((6, 6, 6)), single_root=single_root)
    heads = distribution.argmax()
    expected = np.zeros((6, 6))
    expected[heads[1:], np.arange(1, 6)] = 1.0
    np.testing.assert_array_equal(distribution.marginals, expected)
    assert distribution.log_partition == pytest.approx(distribution.max, rel=1e-15)


@both_roots
def test_score_is_the_sum_of_the_parts(single_root: bool) -> None:
    arc_scores, siblings = normal_scores(5, 44), random_siblings(5, 45)
    distribution = SiblingDistribution(arc_scores, siblings, single_root=single_root)
    heads = (-1, 2, 0, 2, 5, 2)
    expected = part_sum(arc_scores, arcs(heads)) + part_sum(siblings, sibling_parts(heads))
    assert distribution.score(np.array(heads)) == pytest.approx(float(expected), rel=1e-14)


@both_roots
@pytest.mark.parametrize("n", [1, 2, 7, 25])
def test_zero_siblings_are_first_order(n: int, single_root: bool) -> None:
    scores = normal_scores(n, n, 3.0)
    second = SiblingDistribution(scores, np.zeros((n + 1,) * 3), single_root=single_root)
    first = TreeDistribution(scores, projective=True, single_root=single_root)
    assert second.log_partition == pytest.approx(first.log_partition, rel=1e-13)
    np.testing.assert_allclose(second.marginals, first.marginals, rtol=0, atol=1e-12)
    assert second.entropy == pytest.approx(first.entropy, rel=0, abs=1e-10)
    assert second.max == pytest.approx(first.max, rel=1e-13)
    np.testing.assert_array_equal(second.argmax(), first.argmax())


@pytest.mark.parametrize("n", [1, 4, 30])
def test_zero_scores_count_the_trees(n: int) -> None:
    zeros = np.zeros((n + 1, n + 1)), np.zeros((n + 1,) * 3)
    multi = math.log(math.comb(3 * n, n) // (2 * n + 1))
    single = math.log(math.comb(3 * n - 2, n - 1) // n)
    for single_root, expected in ((False, multi), (True, single)):
        got = SiblingDistribution(*zeros, single_root=single_root).log_partition
        assert got == pytest.approx(expected, rel=1e-13, abs=1e-13)


@both_roots
def test_marginals_are_gradients_of_the_log_partition(single_root: bool) -> None:
    arc_scores, siblings = normal_scores(8, 46), random_siblings(8, 47)

    def log_partition(a: Floats, s: Floats) -> float:
        return SiblingDistribution(a, s, single_root=single_root).log_partition

    distribution = SiblingDistribution(arc_scores, siblings, single_root=single_root)
    step = 1e-4
    for part in [(0, 0, 3), (0, 3, 0), (4, 4, 5), (4, 5, 8), (4, 2, 1), (6, 1, 6), (8, 7, 3)]:
        up, down = siblings.copy(), siblings.copy()
        up[part] += step
        down[part] -= step
        difference = log_partition(arc_scores, up) - log_partition(arc_scores, down)
        got = distribution.sibling_marginals[part]
        assert difference / (2 * step) == pytest.approx(got, rel=0, abs=1e-8)
        assert got > 0
    for arc in [(0, 3), (4, 5), (8, 1), (1, 8)]:
        up, down = arc_scores.copy(), arc_scores.copy()
        up[arc] += step
        down[arc] -= step
        difference = log_partition(up, siblings) - log_partition(down, siblings)
        got = distribution.marginals[arc]
        assert difference / (2 * step) == pytest.approx(got, rel=0, abs=1e-8)


@both_roots
@pytest.mark.parametrize("seed", range(3))
def test_forty_words(seed: int, single_root: bool) -> None:
    arc_scores, siblings = normal_scores(40, seed, 5.0), random_siblings(40, seed, 5.0)
    distribution = SiblingDistribution(arc_scores, siblings, single_root=single_root)
    marginals, parts = distribution.marginals, distribution.sibling_marginals
    np.testing.assert_allclose(marginals[:, 1:].sum(axis=0), 1.0, rtol=0, atol=1e-12)
    # every child is reached by one part on its inner side and left by one on its outer side
    nodes = np.arange(41)
    inner, outer = parts.copy(), parts.copy()
    inner[nodes, :, nodes] = 0.0
    outer[nodes, nodes, :] = 0.0
    np.testing.assert_allclose(inner.sum(axis=1), marginals, rtol=0, atol=1e-12)
    np.testing.assert_allclose(outer.sum(axis=2), marginals, rtol=0, atol=1e-12)
    heads = distribution.argmax()
    assert is_projective(heads.tolist())
    assert distribution.score(heads) == pytest.approx(distribution.max, rel=1e-13)
    assert distribution.max <= distribution.log_partition


def test_forbidden_parts_can_leave_no_tree() -> None:
    arc_scores, siblings = normal_scores(3, 48), random_siblings(3, 49)
    siblings[:, :, 2] = -np.inf  # word 2 is nobody's first or later child
    with pytest.raises(NoTreeError):
        SiblingDistribution(arc_scores, siblings).log_partition  # noqa: B018
    with pytest.raises(NoTreeError):
        SiblingDistribution(arc_scores, siblings).argmax()


def test_errors_name_the_cell() -> None:
    arc_scores, siblings = normal_scores(3, 50), random_siblings(3, 51)
    bad = siblings.copy()
    bad[1, 2, 3] = np.nan
    with pytest.raises(ScoresError, match=r"1, 2, 3"):
        SiblingDistribution(arc_scores, bad)
    bad = arc_scores.copy()
    bad[2, 3] = np.inf
    with pytest.raises(ScoresError, match=r"2, 3"):
        SiblingDistribution(bad, siblings)
    with pytest.raises(ShapeError, match=r"3, 3, 3"):
        SiblingDistribution(arc_scores, siblings[:3, :3, :3])
