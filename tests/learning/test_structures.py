"""What may be chosen: trees and labels against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from headway.arrays import Floats, TreeClass
from headway.learning.structures import Labels, Trees
from headway.parallel import Threads

from .dense import SINGLE_ROOT, TREE_CLASSES, Enumerated

LENGTHS = np.array([3, 1, 4, 2])


def random_scores(*shape: int) -> Floats:
    return np.random.default_rng(11).normal(size=shape)


@pytest.mark.parametrize("trees", TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
def test_trees(trees: TreeClass, labels: int) -> None:
    scores = random_scores(4, 5, 5, *[labels] * bool(labels))
    structures, twin = Trees(trees), Enumerated(trees)
    np.testing.assert_array_equal(structures.best(scores, LENGTHS), twin.best(scores, LENGTHS))
    log_z, mu = structures.marginals(scores, LENGTHS)
    expected_log_z, expected_mu = twin.marginals(scores, LENGTHS)
    np.testing.assert_allclose(log_z, expected_log_z, rtol=1e-12)
    np.testing.assert_allclose(mu, expected_mu, rtol=0, atol=1e-12)


@pytest.mark.parametrize("trees", TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
def test_covariance_with_what_is_chosen(trees: TreeClass, labels: int) -> None:
    """Cov(f, 1[cell]) over all trees and labels, and the marginals beside it; f is anything where nothing can be."""
    scores, f = random_scores(2, 4, 5, 5, *[labels] * bool(labels))
    found, expected = (each.covariance(scores, LENGTHS, f) for each in (Trees(trees), Enumerated(trees)))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    for mine, theirs in zip(found[1:], expected[1:], strict=True):
        assert mine.shape == scores.shape
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12)
    for b, n in enumerate(LENGTHS.tolist()):
        assert n == 1 or np.abs(expected[2][b]).max() > 1e-2


@pytest.mark.parametrize("trees", TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
def test_threads_change_nothing(trees: TreeClass, labels: int) -> None:
    scores, f = random_scores(2, 4, 5, 5, *[labels] * bool(labels))
    one, three = Trees(trees), Trees(trees, Threads(3))
    np.testing.assert_array_equal(one.best(scores, LENGTHS), three.best(scores, LENGTHS))
    for mine, theirs in zip(one.covariance(scores, LENGTHS, f), three.covariance(scores, LENGTHS, f), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("labels", [0, 2])
def test_covariance_with_forbidden_choices(labels: int) -> None:
    """Arcs and single labels of score -inf covary with nothing, whatever f is there."""
    scores, f = random_scores(2, 1, 4, 4, *[labels] * bool(labels))
    open_slope = Trees(SINGLE_ROOT).covariance(scores, np.array([3]), f)[2]
    scores[0, 1, 2] = -np.inf
    if labels:
        scores[0, 2, 3, 1] = -np.inf
    _, mu, slope = Trees(SINGLE_ROOT).covariance(scores, np.array([3]), f)
    assert not slope[np.isneginf(scores)].any()
    assert not mu[np.isneginf(scores)].any()
    assert np.isfinite(slope).all()
    assert np.abs(slope - open_slope).max() > 1e-3
    columns = slope.sum(axis=(1, 3)) if labels else slope.sum(axis=1)
    np.testing.assert_allclose(columns, 0.0, atol=1e-12)  # every word has one head


def test_labels_are_chosen_word_by_word() -> None:
    """The best labels and their probabilities, by going through every choice for the whole sentence."""
    scores = 3.0 * random_scores(4, 5, 3)
    best, (log_z, mu) = Labels().best(scores, LENGTHS), Labels().marginals(scores, LENGTHS)
    for b, n in enumerate(LENGTHS.tolist()):
        every = list(product(range(3), repeat=n))
        totals = np.array([sum(scores[b, m, label] for m, label in enumerate(c, start=1)) for c in every])
        assert log_z[b] == pytest.approx(np.logaddexp.reduce(totals), rel=1e-13)
        expected_best, expected_mu = np.zeros((5, 3)), np.zeros((5, 3))
        for choice, share in zip(every, np.exp(totals - log_z[b]), strict=True):
            for m, label in enumerate(choice, start=1):
                expected_mu[m, label] += share
        for m, label in enumerate(every[int(totals.argmax())], start=1):
            expected_best[m, label] = 1.0
        np.testing.assert_array_equal(best[b], expected_best)
        np.testing.assert_allclose(mu[b], expected_mu, rtol=0, atol=1e-13)


def test_labels_far_apart_do_not_overflow() -> None:
    scores = np.array([[[0.0, 0.0], [1000.0, -1000.0]]])
    log_z, mu = Labels().marginals(scores, np.array([1]))
    assert log_z[0] == 1000.0
    np.testing.assert_array_equal(mu[0, 1], [1.0, 0.0])
