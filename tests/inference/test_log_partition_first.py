"""Reading log Z before marginals, or after, or alone: the same bits, though what log Z has computed is not repeated."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import NoTreeError
from headway.inference import TreeDistribution, eisner, exact_trees, log_partition, marginals, matrix_tree
from headway.inference.batch import as_batch
from headway.inference.escape_walks import FEW_WORDS, pack, packed_size, unpack
from headway.inference.jit import kernel
from headway.parallel import SERIAL

from . import exact
from .strategies import (
    TREE_CLASSES,
    Floats,
    boost_cycle,
    ladder_scores,
    normal_scores,
    pruned_scores,
    score_matrices,
    stability_cases,
)

every_class = pytest.mark.parametrize("flags", TREE_CLASSES)
both_roots = pytest.mark.parametrize("single_root", [False, True], ids=["multi", "single"])


def padded(matrices: list[Floats]) -> dict[str, Any]:
    """A batch with nan as padding, two words wider than it must be."""
    nodes = max(map(len, matrices)) + 2
    scores = np.full((len(matrices), nodes, nodes), np.nan)
    for row, matrix in zip(scores, matrices, strict=True):
        row[: len(matrix), : len(matrix)] = matrix
    return {"scores": scores, "lengths": [len(matrix) - 1 for matrix in matrices]}


def check(threads: int = 1, **arguments: Any) -> TreeDistribution:
    """Every order gives the same bits; returns what has been asked for log Z first."""
    first, last = (TreeDistribution(threads=threads, **arguments) for _ in range(2))
    log_z, mu = first.log_partition, first.marginals
    np.testing.assert_array_equal(mu, last.marginals)
    np.testing.assert_array_equal(log_z, last.log_partition)
    np.testing.assert_array_equal(log_z, first.log_partition)
    np.testing.assert_array_equal(log_z, log_partition(threads=threads, **arguments))
    np.testing.assert_array_equal(mu, marginals(threads=threads, **arguments))
    return first


@every_class
@settings(max_examples=30)
@given(matrices=st.lists(score_matrices(max_words=5), min_size=1, max_size=4))
def test_any_batch(flags: dict[str, bool], matrices: list[Floats]) -> None:
    """Forbidden arcs, ties, cycles, spreads that linear numbers do not hold; and right by enumeration."""
    found = check(**padded(matrices), **flags)
    for b, matrix in enumerate(matrices):
        n, reference = len(matrix) - 1, exact.tree_distribution(matrix, **flags)
        mu = exact.arc_marginals(reference, n).astype(np.float64)
        np.testing.assert_allclose(found.marginals[b, : n + 1, : n + 1], mu, rtol=1e-9, atol=1e-300)
        assert found.log_partition[b] == pytest.approx(reference.log_partition, rel=1e-12, abs=1e-10)
        assert not found.marginals[b, n + 1 :].any()
        assert not found.marginals[b, :, n + 1 :].any()


@every_class
@pytest.mark.parametrize("threads", [1, 2])
def test_long_batch(flags: dict[str, bool], threads: int) -> None:
    """Several groups, all lengths, and more than one worker."""
    lengths = [40, 0, 3, 1, 17, 2, 33, 4, 5, 6, 7, 8, 9, 16, 15, 21] * 5
    check(threads, **padded([normal_scores(n, seed) for seed, n in enumerate(lengths)]), **flags)


@both_roots
@pytest.mark.parametrize("scores", stability_cases(6))
def test_stability(scores: Floats, single_root: bool) -> None:
    found = check(scores=scores, single_root=single_root)
    exact.assert_accurate(found.log_partition, found.marginals, *exact.determinants(scores, single_root=single_root))


@both_roots
@pytest.mark.parametrize("gap", range(60, 380, 20))
def test_escapes_out_of_range(gap: int, single_root: bool) -> None:
    """log Z on linear numbers, marginals on logarithms."""
    scores = ladder_scores(gap, gap)
    found = check(scores=scores, single_root=single_root)
    exact.assert_accurate(found.log_partition, found.marginals, *exact.determinants(scores, single_root=single_root))


@every_class
@pytest.mark.parametrize("mask", [-1e9, -1e30])
def test_wide_scores(flags: dict[str, bool], mask: float) -> None:
    scores = normal_scores(5, 1)
    scores[2:4, 1:3] = mask
    large = normal_scores(5, 2, exact_trees.VAST / 100)
    check(**padded([scores, normal_scores(5, 3), large]), **flags)


@pytest.mark.parametrize("flags", TREE_CLASSES)
def test_what_can_be_gone_on_with(flags: dict[str, bool]) -> None:
    """Non-projective: reducible single-root graphs begin afresh (0), and so do logarithms; where arcs are forbidden,
    factors are watched (2). Projective: all can be gone on with, some in logarithms (2)."""
    masked = normal_scores(6, 1)
    masked[5, 3] = -np.inf
    matrices = [
        normal_scores(6, 2),
        masked,
        pruned_scores(6, 3, (0,), 1),
        boost_cycle(normal_scores(6, 4), [1, 2], 800.0),
    ]
    batch = as_batch(**padded(matrices))
    single_root = flags["single_root"]
    algorithm: Any = eisner if flags["projective"] else matrix_tree
    begun = algorithm.begin(batch, single_root=single_root, executor=SERIAL)
    expected = [1, 1, 1, 2] if flags["projective"] else [1, 2, 0 if single_root else 2, 0]
    np.testing.assert_array_equal(begun.resume, expected)
    algorithm.marginals(batch, single_root=single_root, executor=SERIAL, begun=begun)
    assert not begun.resume.any()


@pytest.mark.parametrize("watch", [False, True])
def test_room_for_what_is_kept(watch: bool) -> None:
    """Every number of the tables is another one; what lies behind the room is not written to."""
    for n in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 31, 33, 63, 65, 100):
        shape = n.bit_length() + 3, n + 1, -(-(n + 1) // 8) * 8
        table, packed = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape), np.zeros(2 * packed_size(n + 1))
        found = np.zeros(shape)
        _pack_and_unpack(table, n, watch, packed, found)
        assert not packed[packed_size(n + 1) :].any()
        level, size = 1, n
        while size > (1 if watch else FEW_WORDS):
            for i in range(size):
                kept = np.s_[level, i, : max(i, size // 2) + 1]
                np.testing.assert_array_equal(found[kept], table[kept])
            level, size = level + 1, size // 2


@kernel
def _pack_and_unpack(table: Floats, n: int, watch: bool, packed: Floats, found: Floats) -> None:
    pack(table, n, watch, packed)
    unpack(packed, n, watch, found)


@every_class
def test_nothing_is_used_twice(flags: dict[str, bool]) -> None:
    """Copies share what was kept, and threads may ask at the same time."""
    arguments = padded([normal_scores(n, n) for n in (5, 30, 17, 8)])
    expected = TreeDistribution(**arguments, **flags).marginals
    found = TreeDistribution(**arguments, **flags)
    found.log_partition  # noqa: B018
    also, stored = copy.copy(found), pickle.dumps(found)
    with ThreadPoolExecutor(4) as pool:
        for mu in pool.map(lambda _: found.marginals.copy(), range(8)):
            np.testing.assert_array_equal(mu, expected)
    assert len(pickle.dumps(found)) < len(stored)
    for other in (also, pickle.loads(stored)):
        np.testing.assert_array_equal(other.marginals, expected)
        np.testing.assert_array_equal(other.log_partition, found.log_partition)


@every_class
def test_results_belong_to_the_caller(flags: dict[str, bool]) -> None:
    arguments = padded([normal_scores(6, 1), normal_scores(4, 2)])
    found, expected = (TreeDistribution(**arguments, **flags) for _ in range(2))
    log_z = found.log_partition.copy()
    found.log_partition[:] = np.nan
    np.testing.assert_array_equal(found.marginals, expected.marginals)
    np.testing.assert_array_equal(log_z, expected.log_partition)


@every_class
def test_no_tree(flags: dict[str, bool]) -> None:
    scores = normal_scores(4, 1)
    scores[:, 2] = -np.inf
    found = TreeDistribution(**padded([normal_scores(4, 2), scores]), **flags)
    for _ in range(2):
        with pytest.raises(NoTreeError, match="sentence 1"):
            found.log_partition  # noqa: B018
        with pytest.raises(NoTreeError, match="sentence 1"):
            found.marginals  # noqa: B018
