"""What may be chosen: trees and labels against enumeration, and the chunks that sentences come in."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from headway.learning.examples import Labels, Trees, chunks_by_length
from numpy.typing import NDArray

from headway.learning import examples as module

from .dense import TREE_CLASSES, DenseExamples, DenseText, Enumerated, choices, random_examples, random_text

Floats = NDArray[np.float64]
LENGTHS = np.array([3, 1, 4, 2])
WHICH = np.arange(4)


def random_scores(*shape: int) -> Floats:
    return np.random.default_rng(11).normal(size=shape)


@pytest.mark.parametrize(("projective", "single_root"), TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
def test_trees(projective: bool, single_root: bool, labels: int) -> None:
    scores = random_scores(4, 5, 5, *[labels] * bool(labels))
    trees, twin = Trees(projective, single_root), Enumerated(projective, single_root)
    np.testing.assert_array_equal(trees.best(scores, LENGTHS, WHICH), twin.best(scores, LENGTHS, WHICH))
    log_z, mu = trees.marginals(scores, LENGTHS)
    expected_log_z, expected_mu = twin.marginals(scores, LENGTHS)
    np.testing.assert_allclose(log_z, expected_log_z, rtol=1e-12)
    np.testing.assert_allclose(mu, expected_mu, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("projective", "single_root"), TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
def test_covariance_with_what_is_chosen(projective: bool, single_root: bool, labels: int) -> None:
    """Cov(f, 1[cell]) over all trees and labels, and the marginals beside it; f is anything where nothing can be."""
    scores, f = random_scores(2, 4, 5, 5, *[labels] * bool(labels))
    log_z, mu, slope = Trees(projective, single_root).covariance(scores, LENGTHS, f)
    expected_log_z, expected_mu = Enumerated(projective, single_root).marginals(scores, LENGTHS)
    np.testing.assert_allclose(log_z, expected_log_z, rtol=1e-12)
    np.testing.assert_allclose(mu, expected_mu, rtol=0, atol=1e-12)
    assert slope.shape == scores.shape
    for b, n in enumerate(LENGTHS.tolist()):
        every = choices(n, projective, single_root, labels)
        shares = np.exp([sum(scores[(b, *cell)] for cell in choice) - log_z[b] for choice in every])
        values = np.array([sum(f[(b, *cell)] for cell in choice) for choice in every])
        expected = np.zeros_like(scores[b])
        for choice, share, value in zip(every, shares, values, strict=True):
            for cell in choice:
                expected[cell] += share * (value - shares @ values)
        np.testing.assert_allclose(slope[b], expected, rtol=0, atol=1e-12)
        assert n == 1 or np.abs(expected).max() > 1e-2


@pytest.mark.parametrize("labels", [0, 2])
def test_covariance_with_forbidden_choices(labels: int) -> None:
    """Arcs and single labels of score -inf covary with nothing, whatever f is there."""
    scores, f = random_scores(2, 1, 4, 4, *[labels] * bool(labels))
    open_slope = Trees().covariance(scores, np.array([3]), f)[2]
    scores[0, 1, 2] = -np.inf
    if labels:
        scores[0, 2, 3, 1] = -np.inf
    _, mu, slope = Trees().covariance(scores, np.array([3]), f)
    assert not slope[np.isneginf(scores)].any()
    assert not mu[np.isneginf(scores)].any()
    assert np.isfinite(slope).all()
    assert np.abs(slope - open_slope).max() > 1e-3
    columns = slope.sum(axis=(1, 3)) if labels else slope.sum(axis=1)
    np.testing.assert_allclose(columns, 0.0, atol=1e-12)  # every word has one head


def test_labels_are_chosen_word_by_word() -> None:
    """The best labels and their probabilities, by going through every choice for the whole sentence."""
    scores = 3.0 * random_scores(4, 5, 3)
    best, (log_z, mu) = Labels().best(scores, LENGTHS, WHICH), Labels().marginals(scores, LENGTHS)
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


@pytest.mark.parametrize("limit", [1, 40, 100, 10**6])
def test_chunks_hold_every_sentence_once_and_stay_small(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(module, "_CHUNK", limit)
    examples = random_examples(1, False, True, labels=2, lengths=(3, 1, 4, 2, 3, 1, 1))
    chunks = list(chunks_by_length(examples))
    order = np.concatenate(chunks)
    assert sorted(order.tolist()) == list(range(7))
    assert (np.diff(examples.lengths[order]) >= 0).all()
    for chunk in chunks:
        assert len(chunk) == 1 or examples.score(np.zeros(6), chunk).size <= limit
    if limit == 10**6:
        assert len(chunks) == 1
    if limit == 1:
        assert len(chunks) == 7


@pytest.mark.parametrize("labels", [0, 2])
def test_chunks_of_text(labels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences without trees come as those with trees do."""
    text = random_text(2, labels, lengths=(3, 1, 4, 2, 3, 1, 1))
    with_trees = DenseExamples(text.features, [[] for _ in text.features])
    for limit in (1, 40, 100, 10**6):
        monkeypatch.setattr(module, "_CHUNK", limit)
        found, expected = ([which.tolist() for which in chunks_by_length(each)] for each in (text, with_trees))
        assert found == expected
        assert sorted(i for which in found for i in which) == list(range(7))
        assert all(len(which) == 1 or text.score(np.zeros(6), np.array(which)).size <= limit for which in found)


def test_chunks_of_nothing() -> None:
    assert list(chunks_by_length(DenseExamples([], []))) == []
    assert list(chunks_by_length(DenseText([]))) == []
