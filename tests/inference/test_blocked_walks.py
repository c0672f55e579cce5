"""Groups of words side by side, against the exact inverse of the Laplacian, for numbers of words on every border."""

from __future__ import annotations

from fractions import Fraction
from math import log

import numpy as np
import pytest
from numpy.typing import NDArray

from headway.inference import log_partition, marginals
from headway.inference.escape_walks import FEW_WORDS
from headway.inference.jit import kernel
from headway.inference.lanes import LANES, fill, first_lanes, load_row, store_row, total

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# One group, then two, four and eight of a few words and of one more; and more groups than there are lanes.
SIZES = [*range(1, FEW_WORDS + 3), 2 * FEW_WORDS, 2 * FEW_WORDS + 1, 4 * FEW_WORDS + 1, 8 * FEW_WORDS + 1]

both_roots = pytest.mark.parametrize("single_root", [False, True], ids=["multi", "single"])


def whole_weights(n: int) -> Ints:
    """Weights of all arcs [head, modifier], most of them small, some a thousand times as large."""
    rng = np.random.default_rng(n)
    return rng.integers(1, 10, (n + 1, n + 1)) * np.where(rng.random((n + 1, n + 1)) < 0.1, 1000, 1)


def exact_marginals(weights: Ints, single_root: bool) -> tuple[int, list[list[Fraction]]]:
    """Z, and P(head -> modifier), from the Laplacian with rows for modifiers and its inverse, all in fractions."""
    n = len(weights) - 1
    rows = [[Fraction(0)] * (2 * n) for _ in range(n)]
    for m in range(n):
        for h in range(n):
            if h != m:
                rows[m][h] = Fraction(-int(weights[h + 1, m + 1]))
        rows[m][m] = -sum(rows[m][:n], Fraction(0)) + (0 if single_root else int(weights[0, m + 1]))
        if single_root:
            rows[m][0] = Fraction(int(weights[0, m + 1]))
        rows[m][n + m] = Fraction(1)
    determinant = Fraction(1)
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k])
        if pivot != k:
            rows[k], rows[pivot], determinant = rows[pivot], rows[k], -determinant
        determinant *= rows[k][k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k and rows[i][k]:
                factor = rows[i][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    inverse = [row[n:] for row in rows]
    found = [[Fraction(0)] * (n + 1) for _ in range(n + 1)]
    for m in range(n):
        found[0][m + 1] = int(weights[0, m + 1]) * inverse[0 if single_root else m][m]
        for h in range(n):
            if h != m:
                own = Fraction(0) if single_root and m == 0 else inverse[m][m]
                other = Fraction(0) if single_root and h == 0 else inverse[h][m]
                found[h + 1][m + 1] = int(weights[h + 1, m + 1]) * (own - other)
    return int(determinant), found


@both_roots
@pytest.mark.parametrize("n", SIZES)
def test_every_marginal_is_accurate(n: int, single_root: bool) -> None:
    weights = whole_weights(n)
    z, expected = exact_marginals(weights, single_root)
    scores = np.log(weights)
    assert log_partition(scores, single_root=single_root) == pytest.approx(log(z), rel=1e-14, abs=1e-14)
    found = marginals(scores, single_root=single_root)
    for h in range(n + 1):
        for m in range(n + 1):
            truth = expected[h][m] if m else Fraction(0)
            assert abs(Fraction(float(found[h, m])) - truth) <= truth * Fraction(3, 10**14), (h, m)


@both_roots
def test_a_sentence_does_not_depend_on_its_batch(single_root: bool) -> None:
    lengths = [*SIZES, *reversed(SIZES)]
    scores = np.random.default_rng(0).normal(size=(len(lengths), max(lengths) + 1, max(lengths) + 1))
    together = marginals(scores, single_root=single_root, lengths=lengths)
    for b, n in enumerate(lengths):
        alone = marginals(scores[b, : n + 1, : n + 1].copy(), single_root=single_root)
        np.testing.assert_array_equal(together[b, : n + 1, : n + 1], alone)


@kernel
def _mixed(a: Floats, i: int, j: int, count: int, out: Floats) -> float:
    x = first_lanes(count, load_row(a, i, j), fill(-1.0))
    store_row(out, i, j, x * fill(2.0))
    return total(x)


@pytest.mark.parametrize("count", range(-1, LANES + 2))
def test_lanes_of_a_row(count: int) -> None:
    a, out = np.arange(60.0).reshape(3, 20), np.zeros((3, 20))
    own = [a[1, 5 + lane] if lane < count else -1.0 for lane in range(LANES)]
    assert _mixed(a, 1, 5, count, out) == sum(own)
    expected = np.zeros((3, 20))
    expected[1, 5 : 5 + LANES] = 2.0 * np.array(own)
    np.testing.assert_array_equal(out, expected)
