"""Eight sentences at a time in float32, against the float64 kernels, which exact rationals have checked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.inference import TreeDistribution
from headway.inference.side_by_side import SAFE_SPREAD, log_partition, marginals
from headway.parallel import SERIAL, Threads

from .strategies import boost_cycle, with_garbage

Singles = NDArray[np.float32]

both_roots = pytest.mark.parametrize("single_root", [False, True], ids=["multi", "single"])


def batch_of(
    lengths: list[int], seed: int, spread: float = 4.0, level: float = 0.0
) -> tuple[Singles, NDArray[np.int64]]:
    """Scores in a range of `spread`, with nan wherever there is no arc, two words wider than they must be."""
    rng, nodes = np.random.default_rng(seed), max(lengths, default=0) + 3
    scores = np.full((len(lengths), nodes, nodes), np.nan, np.float32)
    for row, n in zip(scores, lengths, strict=True):
        row[: n + 1, : n + 1] = with_garbage(level + rng.uniform(0.0, spread, (n + 1, n + 1)))
    return scores, np.array(lengths, dtype=np.int64)


def check(scores: Singles, lengths: NDArray[np.int64], single_root: bool, error: float = 5e-7) -> None:
    """All sentences are computed, and right."""
    log_z, mu, computed = marginals(scores, lengths, single_root=single_root, executor=SERIAL)
    alone, also_computed = log_partition(scores, lengths, single_root=single_root, executor=SERIAL)
    assert computed.all()
    assert also_computed.all()
    expected = TreeDistribution(scores.astype(np.float64), lengths=lengths, single_root=single_root, threads=1)
    assert mu.dtype == np.float32
    np.testing.assert_allclose(mu, expected.marginals, rtol=0, atol=error)
    np.testing.assert_allclose(log_z, expected.log_partition, rtol=1e-7, atol=1e-6)
    np.testing.assert_allclose(alone, expected.log_partition, rtol=1e-7, atol=1e-6)


@both_roots
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 25])
@pytest.mark.parametrize("count", [1, 8, 11])
def test_equal_lengths(n: int, count: int, single_root: bool) -> None:
    check(*batch_of([n] * count, seed=n), single_root)


@both_roots
@pytest.mark.parametrize("spread", [1.0, 8.0, 16.0])
def test_mixed_lengths(spread: float, single_root: bool) -> None:
    """Groups in which every length is beside every other."""
    lengths = [9, 0, 2, 1, 5, 25, 3, 7, 4, 6, 8, 1, 12, 2, 1, 1, 9, 3, 1, 13]
    check(*batch_of(lengths, 1, spread), single_root)
    check(*batch_of([1, 2, 3, 4, 5, 6, 7, 25], 2, spread), single_root)


@both_roots
@pytest.mark.parametrize("level", [-3000.0, 1e6])
def test_the_level_of_the_scores_is_free(level: float, single_root: bool) -> None:
    check(*batch_of([6, 9, 3], 3, level=level), single_root)


@both_roots
@pytest.mark.parametrize("boost", [10.0, 20.0, 32.0])
def test_tight_cycles(boost: float, single_root: bool) -> None:
    """Cycles that a walk hardly ever leaves: what decides are arcs that differ from the largest by 14 digits."""
    scores, lengths = batch_of([6] * 9, 4)
    for b, row in enumerate(scores):
        cycle = [[1, 2], [6, 5], [2, 4, 6]][b % 3]
        row[:7, :7] = boost_cycle(row[:7, :7].astype(np.float64), cycle, boost)
    check(scores, lengths, single_root, error=1e-6)


@both_roots
def test_marginals_of_a_word_sum_to_one(single_root: bool) -> None:
    scores, lengths = batch_of([50] * 8, 5, spread=30.0)
    _, mu, computed = marginals(scores, lengths, single_root=single_root, executor=SERIAL)
    assert computed.all()
    assert (mu >= 0).all()
    np.testing.assert_allclose(mu[:, :, 1:51].sum(axis=1, dtype=np.float64), 1.0, rtol=0, atol=1e-6)


@both_roots
def test_what_float32_cannot_hold_is_left_alone(single_root: bool) -> None:
    """Forbidden arcs, wide spreads, numbers that are none, lengths beyond the padding; the others are computed."""
    scores, lengths = batch_of([4] * 8, 6)
    scores[1, 2, 3] = -np.inf
    scores[2, 0, 1] -= 2 * SAFE_SPREAD
    scores[3, 3, 1] = scores[3].max(initial=0.0, where=np.isfinite(scores[3])) + 2 * SAFE_SPREAD
    scores[4, 1, 4] = np.nan
    scores[5, 1, 4] = np.inf
    lengths[6], lengths[7] = -1, 99
    fine = np.array([True] + [False] * 7)
    log_z, mu, computed = marginals(scores, lengths, single_root=single_root, executor=SERIAL)
    np.testing.assert_array_equal(computed, fine)
    assert not mu[1:].any()
    expected = TreeDistribution(scores[0, :5, :5].astype(np.float64), single_root=single_root)
    np.testing.assert_allclose(mu[0, :5, :5], expected.marginals, rtol=0, atol=5e-7)
    assert log_z[0] == pytest.approx(expected.log_partition, rel=1e-6)


def test_threads_change_nothing() -> None:
    scores, lengths = batch_of([30] * 65 + [7] * 3, 7)
    alone, together = (marginals(scores, lengths, single_root=True, executor=e) for e in (SERIAL, Threads(2)))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


@both_roots
@settings(max_examples=40)
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=20),
    seed=st.integers(0, 2**31),
    spread=st.floats(0.0, 17.0),
    level=st.floats(-100.0, 100.0),
)
def test_any_batch(single_root: bool, lengths: list[int], seed: int, spread: float, level: float) -> None:
    check(*batch_of(lengths, seed, spread, level), single_root)
