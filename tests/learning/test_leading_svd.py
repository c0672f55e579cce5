"""Leading singular values and vectors against LAPACK's, where Lanczos' method does well and where it must give up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.learning.leading_svd import _is_more, _lanczos, leading_svd

Floats = NDArray[np.float64]


def with_singular_values(seed: int, rows: int, columns: int, values: Floats) -> Floats:
    """A matrix with random singular vectors."""
    rng = np.random.default_rng(seed)
    u, v = (np.linalg.qr(rng.normal(size=(size, len(values))))[0] for size in (rows, columns))
    return np.ascontiguousarray((u * values) @ v.T)


def assert_leading(p: Floats, most: int) -> None:
    """Singular triplets, orthonormal, of as many of LAPACK's largest singular values as are wanted and not zero."""
    u, s, v = leading_svd(p, most)
    expected = np.linalg.svd(p, compute_uv=False)[:most]
    expected = expected[expected > 1e-9 * expected[0]]
    size = max(expected, default=1.0)
    np.testing.assert_allclose(s, expected, rtol=0, atol=1e-12 * size)
    assert u.shape == (p.shape[0], len(s))
    assert v.shape == (p.shape[1], len(s))
    np.testing.assert_allclose(p @ v, u * s, rtol=0, atol=1e-11 * size)
    np.testing.assert_allclose(p.T @ u, v * s, rtol=0, atol=1e-11 * size)
    np.testing.assert_allclose(v.T @ v, np.eye(len(s)), rtol=0, atol=1e-11)
    np.testing.assert_allclose(u.T @ u, np.eye(len(s)), rtol=0, atol=1e-8)  # to rounding times the condition


@given(st.integers(0, 2**32), st.integers(1, 80), st.integers(1, 80), st.integers(1, 6), st.floats(0.3, 1.0))
def test_triplets_are_those_of_lapack(seed: int, rows: int, columns: int, most: int, decay: float) -> None:
    values = decay ** np.arange(min(rows, columns))
    assert_leading(with_singular_values(seed, rows, columns, values), most)


@given(st.integers(0, 2**32), st.integers(30, 90), st.integers(30, 90), st.integers(1, 6))
def test_triplets_of_sparse_counts(seed: int, rows: int, columns: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    assert_leading(rng.poisson(0.1 * rng.pareto(1.0, (rows, columns))).astype(float) + np.eye(rows, columns), most)


@given(st.integers(0, 2**32), st.integers(20, 40), st.integers(1, 6), st.floats(0.0, 2.0))
def test_multiple_singular_values_are_found_as_often_as_they_are_there(
    seed: int, size: int, most: int, other: float
) -> None:
    """Two blocks, alike or one the multiple of the other: Lanczos' method sees one vector of a value that both have."""
    block = with_singular_values(seed, size, size, 0.5 ** np.arange(size))
    p = np.zeros((2 * size, 2 * size))
    p[:size, :size], p[size:, size:] = block, other * block
    assert_leading(p, most)


@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize("size", [3, 60])
def test_equal_singular_values(size: int, most: int) -> None:
    assert_leading(np.eye(size), most)


@pytest.mark.parametrize("rank", [1, 2, 5, 9])
@pytest.mark.parametrize("most", [1, 4, 7])
def test_singular_values_that_are_zero_are_left_out(rank: int, most: int) -> None:
    p = with_singular_values(rank, 70, 60, np.linspace(1.0, 0.5, rank))
    assert len(leading_svd(p, most)[1]) == min(rank, most)
    assert_leading(p, most)


def test_a_matrix_of_zeros_has_no_singular_values() -> None:
    for size in (3, 60):
        assert leading_svd(np.zeros((size, size)), 2)[1].shape == (0,)


def test_lanczos_converges_where_singular_values_decay_and_says_so_where_not() -> None:
    fast, flat = (with_singular_values(1, 90, 80, values) for values in (0.8 ** np.arange(80), np.ones(80)))
    assert _lanczos(fast, 5)[1] == pytest.approx(0.8 ** np.arange(5), rel=1e-12)
    assert len(_lanczos(flat, 5)[1]) == 0
    few = with_singular_values(2, 90, 80, 0.5 ** np.arange(4))  # four at most, after which nothing is left
    assert _lanczos(few, 4)[1] == pytest.approx(0.5 ** np.arange(4), rel=1e-12)
    assert len(_lanczos(few, 5)[1]) == 0


def test_what_was_missed_is_seen() -> None:
    """Without the second vector, what is left of the matrix is larger than the third singular value."""
    p = with_singular_values(3, 90, 80, 0.6 ** np.arange(80))
    _, s, vt = _lanczos(p, 4)
    assert not _is_more(p, vt, s[3])
    assert _is_more(p, np.ascontiguousarray(vt[[0, 2, 3]]), s[3])


def test_runs_repeat_to_the_last_bit() -> None:
    p = with_singular_values(4, 90, 80, 0.9 ** np.arange(80))
    for one, two in zip(leading_svd(p, 5), leading_svd(p, 5), strict=True):
        np.testing.assert_array_equal(one, two)
