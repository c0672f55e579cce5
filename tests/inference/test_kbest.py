"""The k best trees are the first k of the sorted enumeration: distinct, in order, all classes."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from headway.inference import TreeDistribution, forbid

from .exact import arcs, in_class, part_sum, tree_distribution
from .strategies import TREE_CLASSES, Floats, boost_cycle, normal_scores, score_matrices

every_class = pytest.mark.parametrize("flags", TREE_CLASSES)


@every_class
@settings(max_examples=25)
@given(scores=score_matrices(max_words=4))
def test_all_trees_in_order(flags: dict[str, bool], scores: Floats) -> None:
    """Ties may come in any order; everything else is fixed."""
    reference = tree_distribution(scores, **flags)
    listed = TreeDistribution(scores, **flags).kbest(len(reference) + 5)
    found = [tuple(heads.tolist()) for heads, _ in listed]
    assert len(found) == len(set(found))
    assert set(found) == set(reference)
    slack = Fraction(1e-14 * np.abs(scores[np.isfinite(scores)]).max(initial=1.0))
    exact = [reference.score_of[heads] for heads in found]
    for got, best in zip(exact, sorted(exact, reverse=True), strict=True):
        assert abs(got - best) <= slack
    given_scores = [score for _, score in listed]
    assert given_scores == pytest.approx([float(s) for s in exact], rel=1e-13, abs=1e-12)


@every_class
@pytest.mark.parametrize("k", [1, 2, 7, 20])
def test_the_first_k(flags: dict[str, bool], k: int) -> None:
    scores = boost_cycle(normal_scores(5, 110, 2.0), [2, 3], 10.0)
    reference = tree_distribution(scores, **flags)
    expected = sorted(reference, key=reference.score_of.__getitem__, reverse=True)[:k]
    listed = TreeDistribution(scores, **flags).kbest(k)
    assert [tuple(heads.tolist()) for heads, _ in listed] == expected
    assert all(heads.dtype == np.int64 for heads, _ in listed)


@every_class
def test_ties_are_all_found_and_exact(flags: dict[str, bool]) -> None:
    rng = np.random.default_rng(111)
    for _ in range(5):
        scores = rng.integers(0, 2, (5, 5)).astype(np.float64)
        reference = tree_distribution(scores, **flags)
        best = sorted(reference.score_of.values(), reverse=True)
        for k in (3, 10, 25):
            listed = TreeDistribution(scores, **flags).kbest(k)
            assert [score for _, score in listed] == best[:k]
            assert len({tuple(heads.tolist()) for heads, _ in listed}) == min(k, len(best))


@every_class
@pytest.mark.parametrize("seed", range(3))
def test_the_second_best_avoids_an_arc_of_the_best(flags: dict[str, bool], seed: int) -> None:
    """At n = 15: the runner-up is the best of 15 argmaxes, each with one arc of the best gone."""
    scores = normal_scores(15, 112 + seed)
    distribution = TreeDistribution(scores, **flags)
    (best, _), (second, second_score), *_ = distribution.kbest(5)
    np.testing.assert_array_equal(best, distribution.argmax())
    others = [TreeDistribution(forbid(scores, [arc]), **flags) for arc in arcs(best.tolist())]
    runner_up = max(others, key=lambda other: other.max)
    assert second_score == pytest.approx(runner_up.max, rel=1e-13)
    np.testing.assert_array_equal(second, runner_up.argmax())


@every_class
def test_a_hundred_of_thirty_words(flags: dict[str, bool]) -> None:
    scores = normal_scores(30, 115)
    listed = TreeDistribution(scores, **flags).kbest(100)
    found = [tuple(heads.tolist()) for heads, _ in listed]
    assert len(set(found)) == 100
    assert all(in_class(heads, **flags) for heads in found)
    exact = [float(part_sum(scores, arcs(heads))) for heads in found]
    assert [score for _, score in listed] == pytest.approx(exact, rel=1e-12)
    assert all(a >= b - 1e-12 for a, b in itertools.pairwise(exact))


@every_class
def test_no_word_one_word_and_no_tree_wanted(flags: dict[str, bool]) -> None:
    ((heads, score),) = TreeDistribution(np.zeros((1, 1)), **flags).kbest(3)
    assert (heads.tolist(), score) == ([-1], 0.0)
    ((heads, score),) = TreeDistribution(np.full((2, 2), 5.0), **flags).kbest(3)
    assert (heads.tolist(), score) == ([-1, 0], 5.0)
    with pytest.raises(ValueError, match="k is 0"):
        TreeDistribution(np.zeros((3, 3)), **flags).kbest(0)


@every_class
def test_a_batch_is_its_sentences(flags: dict[str, bool]) -> None:
    batch = np.full((3, 6, 6), np.nan)
    lengths = [5, 3, 0]
    for b, n in enumerate(lengths):
        batch[b, : n + 1, : n + 1] = normal_scores(n, 116 + b)
    for b, listed in enumerate(TreeDistribution(batch, **flags, lengths=lengths).kbest(6)):
        n = lengths[b]
        single = TreeDistribution(batch[b, : n + 1, : n + 1], **flags).kbest(6)
        assert [score for _, score in listed] == [score for _, score in single]
        for (heads, _), (alone, _) in zip(listed, single, strict=True):
            np.testing.assert_array_equal(heads[: n + 1], alone)
            assert (heads[n + 1 :] == -1).all()
