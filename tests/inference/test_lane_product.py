"""Products in vector registers: NumPy's, for every number of rows and columns, and nothing beside them is written."""

from __future__ import annotations

import numpy as np
import pytest

from headway.arrays import Floats
from headway.inference.jit import kernel
from headway.inference.lane_product import product
from headway.inference.lanes import LANES


@kernel
def _product(a: Floats, count: int, start: int, keep: int, terms: int, b: Floats, out: Floats, width: int) -> None:
    product(a, 2, count, start, keep, terms, b, 1, 20, out, 3, 4, width)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("start", [0, 1])
def test_it_is_that_of_numpy(count: int, start: int) -> None:
    """Of b, the rows from 1 on are taken, and after `keep` of them those from 20 on; with start 1, a[:, 0] is added."""
    rng = np.random.default_rng(count)
    for width in range(1, 5 * LANES + 2):
        terms = int(rng.integers(1, 15))
        keep = int(rng.integers(0, terms + 1))
        a, b = rng.normal(size=(8, 20)), rng.normal(size=(40, 60))
        b[:, 4 + width :] = np.nan  # what another sentence has left
        out = np.full((8, 60), 7.0)
        _product(a, count, start, keep, terms, b, out, width)
        taken = b[[*range(1, 1 + keep), *range(20, 20 + terms - keep)], 4 : 4 + width]
        expected = np.full((8, 60), 7.0)
        rows = a[2 : 2 + count]
        expected[3 : 3 + count, 4 : 4 + width] = rows[:, start : start + terms] @ taken + start * rows[:, :1]
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)
