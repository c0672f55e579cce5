"""The CUDA kernels of non-projective trees, run on the CPU, beside `headway.inference` in float64."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from headway.inference import TreeDistribution
from tests.torch.cuda_on_cpu import compiled

WRAPPERS = """
template <class T, int N, bool MULTI>
void registers(const T* scores, const long long* lengths, int batch, int nodes, T* log_z, T* mu, int* rest) {
    constexpr int GROUPS = threads(N) / (2 * N);
    const size_t bytes = sizeof(T) * GROUPS * workspace_size(N);
    cuda_on_cpu::launch(matrix_tree_marginals<T, N, MULTI>, (batch + GROUPS - 1) / GROUPS, threads(N), bytes,
                        scores, lengths, batch, nodes, log_z, mu, rest);
}
#define BOTH(T, N) \\
    extern "C" void registers_##T##_##N(const T* scores, const long long* lengths, int batch, int nodes, T* log_z, T* mu, \\
                                        int* rest, bool multi) { \\
        (multi ? registers<T, N, true> : registers<T, N, false>)(scores, lengths, batch, nodes, log_z, mu, rest); \\
    }
BOTH(float, 8) BOTH(float, 16) BOTH(float, 32) BOTH(float, 64) BOTH(float, 128) BOTH(double, 8) BOTH(double, 32)
"""

WALKS = """
template <class T, bool MULTI>
void walks(const T* scores, const T* f, const long long* lengths, int batch, int nodes, T* log_z, T* mu, T* covariance,
           const int* rest) {
    cuda_on_cpu::launch(escape_walks_marginals<T, MULTI>, 2, 64, sizeof(Extended<T>) * walk_numbers(nodes - 1),
                        scores, lengths, batch, nodes, log_z, mu, rest, (char*)nullptr);
    std::vector<char> workspace(2 * sizeof(Sloped<Extended<T>>) * walk_numbers(nodes - 1));
    cuda_on_cpu::launch(escape_walks_covariance<T, MULTI>, 2, 64, 0,
                        scores, f, lengths, batch, nodes, covariance, workspace.data());
}
#define BOTH(T) \\
    extern "C" void walks_##T(const T* scores, const T* f, const long long* lengths, int batch, int nodes, T* log_z, T* mu, \\
                              T* covariance, const int* rest, bool multi) { \\
        (multi ? walks<T, true> : walks<T, false>)(scores, f, lengths, batch, nodes, log_z, mu, covariance, rest); \\
    }
BOTH(float) BOTH(double)
"""

Results = tuple[Any, ...]


def pointer(array: Any) -> Any:
    return None if array is None else array.ctypes.data_as(ctypes.c_void_p)


def padded(sentences: list[Any], nodes: int, dtype: Any) -> tuple[Any, Any]:
    """A batch with nan wherever no arc is."""
    scores = np.full((len(sentences), nodes, nodes), np.nan, dtype)
    for b, own in enumerate(sentences):
        size = len(own)
        scores[b, :size, :size] = own
        scores[b, np.arange(size), np.arange(size)] = np.nan
        scores[b, :, 0] = np.nan
    return scores, np.array([len(own) - 1 for own in sentences])


def in_registers(sentences: list[Any], size: int, multi_root: bool, dtype: Any = np.float32) -> Results:
    """log Z, marginals, and which sentences were left to others, by the kernel for `size` words."""
    scores, lengths = padded(sentences, max(map(len, sentences)), dtype)
    log_z, mu = np.full(len(scores), np.nan, dtype), np.full_like(scores, np.nan)
    rest = np.zeros(1 + len(scores), np.int32)
    library = compiled("matrix_tree.cu", WRAPPERS)
    name = {np.float32: "float", np.float64: "double"}[dtype]
    run = getattr(library, f"registers_{name}_{size}")
    arrays = [pointer(array) for array in (log_z, mu, rest)]
    run(pointer(scores), pointer(lengths), len(scores), scores.shape[1], *arrays, ctypes.c_bool(multi_root))
    return log_z, mu, sorted(rest[1 : 1 + rest[0]].tolist())


def in_memory(sentences: list[Any], multi_root: bool, dtype: Any, rest: list[int] | None = None) -> Results:
    """log Z, marginals, a direction f and the covariances with it, by the kernel for any scale."""
    scores, lengths = padded(sentences, max(map(len, sentences)) + 1, dtype)
    f = np.random.default_rng(len(scores)).normal(size=scores.shape).astype(dtype)
    log_z, mu, covariance = (
        np.full(len(scores), np.nan, dtype),
        np.full_like(scores, np.nan),
        np.full_like(scores, np.nan),
    )
    chosen = None if rest is None else np.array([len(rest), *rest], np.int32)
    run = getattr(compiled("escape_walks.cu", WALKS), {np.float32: "walks_float", np.float64: "walks_double"}[dtype])
    arrays = [pointer(array) for array in (log_z, mu, covariance, chosen)]
    run(pointer(scores), pointer(f), pointer(lengths), len(scores), scores.shape[1], *arrays, ctypes.c_bool(multi_root))
    return log_z, mu, f, covariance


def check(scores: Any, multi_root: bool, log_z: Any, mu: Any, tolerance: float) -> None:
    d = TreeDistribution(np.where(np.eye(len(scores)), 0.0, scores), single_root=not multi_root)
    size = len(scores)
    np.testing.assert_allclose(log_z, d.log_partition, rtol=tolerance / 4, atol=tolerance / 4)
    np.testing.assert_allclose(mu[:size, :size], d.marginals, rtol=0, atol=tolerance)
    assert not mu[size:].any()
    assert not mu[:, size:].any()


def random(rng: Any, n: int, scale: float, dtype: Any = np.float32) -> Any:
    return (scale * rng.normal(size=(n + 1, n + 1))).astype(dtype).astype(np.float64)


@pytest.mark.parametrize("multi_root", [False, True])
@pytest.mark.parametrize(("size", "lengths"), [(8, [1, 2, 5, 8, 3]), (16, [16, 9]), (32, [32, 17, 1]), (64, [50])])
def test_tables_in_registers(size: int, lengths: list[int], multi_root: bool) -> None:
    rng = np.random.default_rng(size)
    sentences = [random(rng, n, 1.5) for n in lengths]
    log_z, mu, rest = in_registers(sentences, size, multi_root)
    assert rest == []
    for b, own in enumerate(sentences):
        check(own, multi_root, log_z[b], mu[b], 2e-6)


@pytest.mark.parametrize("multi_root", [False, True])
def test_in_registers_with_double_numbers(multi_root: bool) -> None:
    sentences = [random(np.random.default_rng(n), n, 20, np.float64) for n in (7, 20)]
    log_z, mu, rest = in_registers(sentences, 32, multi_root, np.float64)
    assert rest == []
    for b, own in enumerate(sentences):
        check(own, multi_root, log_z[b], mu[b], 1e-12)


def test_tight_cycles_in_registers() -> None:
    own = random(np.random.default_rng(0), 30, 1)
    own[3, 7] = own[7, 3] = 14
    own[20, 21] = own[21, 22] = own[22, 20] = 12
    log_z, mu, rest = in_registers([own], 32, False)
    assert rest == []
    check(own, False, log_z[0], mu[0], 2e-6)


def test_what_registers_cannot_hold_is_left_to_others() -> None:
    rng = np.random.default_rng(1)
    sentences = [random(rng, 6, 1) for _ in range(6)]
    sentences[1][2, 3] = -np.inf
    sentences[4][3, 5] = -60
    sentences[5][0, 1] = np.nan
    log_z, mu, rest = in_registers(sentences, 8, False)
    assert rest == [1, 4, 5]
    for b in (0, 2, 3):
        check(sentences[b], False, log_z[b], mu[b], 2e-6)
    assert np.isnan(mu[rest]).all()  # as it was
    assert np.isnan(log_z[rest]).all()


HARD = {
    "normal": lambda rng, n: random(rng, n, 1),
    "wide": lambda rng, n: random(rng, n, 100),
    "masks": lambda rng, n: np.where(rng.random((n + 1, n + 1)) < 0.4, -np.inf, random(rng, n, 3)),
    "masks by numbers": lambda rng, n: np.where(rng.random((n + 1, n + 1)) < 0.3, -1e9, random(rng, n, 3)),
    "ties": lambda rng, n: np.zeros((n + 1, n + 1)),
}


@pytest.mark.parametrize("multi_root", [False, True])
@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_scale_in_memory(kind: str, multi_root: bool, dtype: Any) -> None:
    rng = np.random.default_rng(list(HARD).index(kind))
    sentences = [HARD[kind](rng, n).astype(dtype).astype(np.float64) for n in (1, 2, 3, 4, 5, 6, 7, 8, 13)]
    log_z, mu, f, covariance = in_memory(sentences, multi_root, dtype)
    tolerance = 1e-12 if dtype is np.float64 else 2e-6
    for b, own in enumerate(sentences):
        size = len(own)
        clean = np.where(np.eye(size), 0.0, own)
        if log_z[b] == -np.inf:
            with pytest.raises(ValueError, match="tree"):
                TreeDistribution(clean, single_root=not multi_root).log_partition  # noqa: B018
            assert not mu[b].any()
            assert not covariance[b].any()
            continue
        check(own, multi_root, log_z[b], mu[b], tolerance)
        expected = TreeDistribution(clean, single_root=not multi_root).covariance_with_arcs(f[b, :size, :size])
        np.testing.assert_allclose(covariance[b, :size, :size], expected, rtol=0, atol=5 * tolerance)


def test_cycles_boosted_by_hundreds_of_nats() -> None:
    rng = np.random.default_rng(3)
    sentences = []
    for boost in (10, 100, 300):
        own = random(rng, 12, 3)
        own[3, 7] += boost
        own[7, 3] += boost
        own[4, 5] += boost
        own[5, 6] += boost
        own[6, 4] += boost
        sentences.append(own.astype(np.float32).astype(np.float64))
    log_z, mu, _, _ = in_memory(sentences, False, np.float32)
    for b, own in enumerate(sentences):
        check(own, False, log_z[b], mu[b], 2e-6)


def test_only_the_sentences_asked_for_are_written() -> None:
    sentences = [random(np.random.default_rng(n), n, 1) for n in (3, 4, 5)]
    log_z, mu, _, _ = in_memory(sentences, False, np.float64, rest=[1])
    check(sentences[1], False, log_z[1], mu[1], 1e-12)
    assert np.isnan(mu[[0, 2]]).all()
    assert np.isnan(log_z[[0, 2]]).all()


def test_words_that_must_be_below_others() -> None:
    """The walk cannot leave words 1 and 2, so the root's child is one of them: a reducible graph."""
    own = random(np.random.default_rng(5), 5, 1)
    own[3:, 1:3] = -np.inf
    log_z, mu, _, _ = in_memory([own], False, np.float32)
    check(own, False, log_z[0], mu[0], 2e-6)


def test_nan_is_passed_on_and_an_empty_sentence_has_one_tree() -> None:
    own = random(np.random.default_rng(6), 4, 1)
    own[2, 3] = np.nan
    log_z, mu, _, _ = in_memory([own, np.zeros((1, 1))], False, np.float64)
    assert np.isnan(log_z[0])
    assert np.isnan(mu[0]).any()
    assert log_z[1] == 0
    assert not mu[1].any()
