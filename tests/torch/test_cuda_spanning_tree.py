"""The CUDA kernel of the best non-projective tree, run on the CPU, beside `headway.inference`."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from headway.errors import NoTreeError
from headway.inference import TreeDistribution
from tests.torch.cuda_on_cpu import compiled, padded, pointer

WRAPPERS = """
template <class T, bool MULTI>
void run(const T* scores, const long long* lengths, int batch, int nodes, long long* heads, bool in_workspace) {
    const long long bytes = spanning_tree_bytes(nodes);
    std::vector<char> workspace(2 * bytes, char(0xff));
    cuda_on_cpu::launch(spanning_tree_argmax<T, MULTI>, 2, 32, in_workspace ? 0 : bytes,
                        scores, lengths, batch, nodes, heads, in_workspace ? workspace.data() : (char*)nullptr);
}
#define BOTH(T) \\
    extern "C" void run_##T(const T* scores, const long long* lengths, int batch, int nodes, long long* heads, \\
                            bool multi, bool in_workspace) { \\
        (multi ? run<T, true> : run<T, false>)(scores, lengths, batch, nodes, heads, in_workspace); \\
    }
BOTH(float) BOTH(double)
"""

NAMES = {np.float32: "float", np.float64: "double"}


def best_heads(sentences: list[Any], multi_root: bool, dtype: Any, in_workspace: bool = False) -> Any:
    """By the kernel, in a batch with nan wherever no arc is."""
    scores, lengths = padded(sentences, max(map(len, sentences)) + 1, dtype)
    heads = np.full(scores.shape[:2], -7)
    run = getattr(compiled("spanning_tree.cu", WRAPPERS), f"run_{NAMES[dtype]}")
    flags = ctypes.c_bool(multi_root), ctypes.c_bool(in_workspace)
    run(pointer(scores), pointer(lengths), *scores.shape[:2], pointer(heads), *flags)
    return heads


def expected_heads(own: Any, multi_root: bool, nodes: int) -> Any:
    heads = np.full(nodes, -1)
    try:
        best = TreeDistribution(np.where(np.eye(len(own)), 0.0, own), single_root=not multi_root).argmax()
    except NoTreeError:
        return heads
    heads[: len(own)] = best
    return heads


def random(rng: Any, n: int, scale: float) -> Any:
    return scale * rng.normal(size=(n + 1, n + 1))


def boosted(rng: Any, n: int) -> Any:
    """Cycles within cycles, far better than the arcs that break them."""
    own = random(rng, n, 3)
    for head, modifier in [(1, 2), (2, 1), (3, 4), (4, 3), (2, 3), (4, 1), (5, 6), (6, 7), (7, 5)]:
        if max(head, modifier) <= n:
            own[head, modifier] += 300
    return own


KINDS = {
    "normal": lambda rng, n: random(rng, n, 1),
    "wide": lambda rng, n: random(rng, n, 100),
    "boosted cycles": boosted,
    "masks": lambda rng, n: np.where(rng.random((n + 1, n + 1)) < 0.5, -np.inf, random(rng, n, 3)),
    "masks by numbers": lambda rng, n: np.where(rng.random((n + 1, n + 1)) < 0.4, -1e9, random(rng, n, 3)),
    "ties": lambda rng, n: np.zeros((n + 1, n + 1)),
    "many ties": lambda rng, n: rng.integers(0, 3, (n + 1, n + 1)).astype(np.float64),
    "eager root": lambda rng, n: random(rng, n, 1) + 10 * (np.arange(n + 1) == 0)[:, None],
}


@pytest.mark.parametrize("multi_root", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_trees_as_on_the_cpu(kind: str, multi_root: bool, dtype: Any) -> None:
    rng = np.random.default_rng(list(KINDS).index(kind))
    lengths = [0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 8, 8, 8, 20]
    sentences = [KINDS[kind](rng, n).astype(dtype).astype(np.float64) for n in lengths]
    found = best_heads(sentences, multi_root, dtype)
    for b, own in enumerate(sentences):
        np.testing.assert_array_equal(found[b], expected_heads(own, multi_root, found.shape[1]))


@pytest.mark.parametrize("multi_root", [False, True])
def test_long_sentences(multi_root: bool) -> None:
    rng = np.random.default_rng(0)
    sentences = [boosted(rng, n) for n in (33, 70, 33, 64, 65)]
    for in_workspace in (False, True):
        found = best_heads(sentences, multi_root, np.float64, in_workspace)
        for b, own in enumerate(sentences):
            np.testing.assert_array_equal(found[b], expected_heads(own, multi_root, found.shape[1]))


@pytest.mark.parametrize("multi_root", [False, True])
def test_ties_between_heads_of_different_lanes(multi_root: bool) -> None:
    rng = np.random.default_rng(1)
    sentences = [rng.integers(0, 3, (n + 1, n + 1)).astype(np.float64) for n in (28, 31, 32, 40, 70, 70)]
    found = best_heads(sentences, multi_root, np.float32)
    for b, own in enumerate(sentences):
        np.testing.assert_array_equal(found[b], expected_heads(own, multi_root, found.shape[1]))


def test_the_root_is_not_shared_by_words_that_need_it() -> None:
    """Words 1 and 2 have no head but the root: a tree of two roots, and none of one."""
    own = random(np.random.default_rng(8), 4, 1)
    own[1:, 1:3] = -np.inf
    sentences = [own, random(np.random.default_rng(9), 4, 1)]
    assert (best_heads(sentences, False, np.float32)[0] == -1).all()
    assert (best_heads(sentences, True, np.float32)[0, 1:3] == 0).all()


def test_nan_ends_in_some_heads() -> None:
    own = np.full((6, 6), np.nan)
    heads = best_heads([own, own], True, np.float32)
    assert ((heads >= -1) & (heads < 6)).all()
