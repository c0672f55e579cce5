"""Minimum Bayes risk: the tree with the largest sum of marginals, by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from headway.inference import TreeDistribution

from .exact import arc_marginals, arcs, in_class, tree_distribution
from .strategies import TREE_CLASSES, Floats, boost_cycle, normal_scores, score_matrices

every_class = pytest.mark.parametrize("flags", TREE_CLASSES)


@every_class
@settings(max_examples=25)
@given(scores=score_matrices(max_words=4))
def test_attains_the_largest_expected_number_of_right_arcs(flags: dict[str, bool], scores: Floats) -> None:
    reference = tree_distribution(scores, **flags)
    marginals = arc_marginals(reference, len(scores) - 1)
    heads = tuple(TreeDistribution(scores, **flags).mbr().tolist())
    assert heads in reference.score_of  # a tree of the class, without forbidden arcs
    gain = {tree: sum(marginals[arc] for arc in arcs(tree)) for tree in reference}
    assert float(max(gain.values()) - gain[heads]) <= 1e-12


@every_class
def test_can_differ_from_the_argmax(flags: dict[str, bool]) -> None:
    """One tree is the best, but the many others agree among themselves on something else."""
    found = 0
    for seed in range(60):
        scores = normal_scores(5, seed, 0.7)
        distribution = TreeDistribution(scores, **flags)
        best, bayes = distribution.argmax(), distribution.mbr()
        words = np.arange(1, 6)
        gain = [distribution.marginals[heads[1:], words].sum() for heads in (best, bayes)]
        assert gain[1] >= gain[0] - 1e-12
        found += (best != bayes).any()
    assert found > 0


@every_class
@pytest.mark.parametrize("boost", [40.0, 600.0])
def test_twenty_words_with_cycles(flags: dict[str, bool], boost: float) -> None:
    scores = boost_cycle(boost_cycle(normal_scores(20, 120), [1, 2], boost), [5, 9, 7], boost)
    distribution = TreeDistribution(scores, **flags)
    heads = distribution.mbr()
    assert heads.dtype == np.int64
    assert in_class(heads.tolist(), **flags)
    gain = distribution.marginals[heads[1:], np.arange(1, 21)].sum()
    for other in distribution.sample(300, rng=0):
        assert gain >= distribution.marginals[other[1:], np.arange(1, 21)].sum() - 1e-12


@every_class
def test_no_word_one_word_and_a_batch(flags: dict[str, bool]) -> None:
    np.testing.assert_array_equal(TreeDistribution(np.zeros((1, 1)), **flags).mbr(), [-1])
    np.testing.assert_array_equal(TreeDistribution(np.zeros((2, 2)), **flags).mbr(), [-1, 0])
    batch = np.full((2, 6, 6), np.nan)
    batch[0], batch[1, :4, :4] = normal_scores(5, 121), normal_scores(3, 122)
    heads = TreeDistribution(batch, **flags, lengths=[5, 3]).mbr()
    np.testing.assert_array_equal(heads[0], TreeDistribution(batch[0], **flags).mbr())
    np.testing.assert_array_equal(heads[1, :4], TreeDistribution(batch[1, :4, :4], **flags).mbr())
    assert (heads[1, 4:] == -1).all()
