"""Arithmetic with long vectors, to the bit what NumPy's plain expressions give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import arrays
from headway.arrays import add_scaled

BLOCK = 16
sizes = st.integers(0, 3 * BLOCK + 1)
factors = st.floats(-1e3, 1e3) | st.sampled_from([0.0, -0.0, np.inf, 1e-310])


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "_BLOCK", BLOCK)
        yield


def some(rng: np.random.Generator, size: int) -> np.ndarray:
    """Numbers of any size, zeros of both signs among them."""
    return rng.choice([0.0, -0.0, 1.0], size) * rng.normal(size=size) * 10.0 ** rng.integers(-300, 300, size)


@given(sizes, factors, st.integers(0, 99))
def test_add_scaled(size: int, factor: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    into, x = some(rng, size), some(rng, size)
    with np.errstate(all="ignore"):
        expected = into + factor * x
        add_scaled(into, factor, x)
    assert into.tobytes() == expected.tobytes()
