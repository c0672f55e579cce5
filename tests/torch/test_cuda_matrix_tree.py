"""The CUDA kernels of non-projective trees, run on the CPU, beside `headway.inference` in float64."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from headway.inference import TreeDistribution
from tests.torch.cuda_on_cpu import check_sums, compiled, padded, pointer, random_scores

WRAPPERS = """
template <class T, class X, int N, bool MULTI>
void registers(const T* scores, const T* f, const long long* lengths, int batch, int nodes, T* log_z, T* mu,
               int* which, int* rest) {
    int done = 0;
    constexpr int GROUPS = threads_of_block(N, 2) / (2 * N);
    constexpr bool MAY_BE_FULL = sizeof(X) == 4 && (N == 8 || N == 32);
    const bool full = MAY_BE_FULL && nodes == N + 1 && !which;
    const auto kernel = full ? matrix_tree_marginals<T, X, N, MULTI, MAY_BE_FULL>
                             : matrix_tree_marginals<T, X, N, MULTI, false>;
    cuda_on_cpu::launch(kernel, full ? (batch + GROUPS - 1) / GROUPS : 2, threads_of_block(N, 2),
                        sizeof(X) * workspace_size(N, 2) * GROUPS,
                        scores, f, lengths, batch, nodes, log_z, mu, which, &done, rest);
}
template <class T, class X, int N, bool MULTI>
void alone(const T* scores, const long long* lengths, int batch, int nodes, T* log_z, int* which, int* rest) {
    int done = 0;
    const size_t bytes = sizeof(X) * workspace_size(N, 1) * threads_of_block(N, 1) / N;
    cuda_on_cpu::launch(matrix_tree_log_partition<T, X, N, MULTI>, 2, threads_of_block(N, 1), bytes,
                        scores, lengths, batch, nodes, log_z, which, &done, rest);
}
#define BOTH(T, X, NAME, N) \\
    extern "C" void registers_##T##_##NAME##_##N( \\
        const T* scores, const T* f, const long long* lengths, int batch, int nodes, T* log_z, T* mu, \\
        int* which, int* rest, bool multi) { \\
        (multi ? registers<T, X, N, true> : registers<T, X, N, false>)( \\
            scores, f, lengths, batch, nodes, log_z, mu, which, rest); \\
    } \\
    extern "C" void sums_##T##_##NAME##_##N( \\
        const T* scores, const long long* lengths, int batch, int nodes, T* log_z, int* which, int* rest, \\
        bool multi) { \\
        (multi ? alone<T, X, N, true> : alone<T, X, N, false>)(scores, lengths, batch, nodes, log_z, which, rest); \\
    }
extern "C" void rest(const float* scores, const long long* lengths, int nodes, float* log_z, float* mu, int* which,
                     bool multi) {
    int done = 0;
    const size_t bytes = std::max<size_t>(8 * workspace_size(32, 2), 16 * walks::walk_numbers(nodes - 1));
    cuda_on_cpu::launch(multi ? matrix_tree_rest<float, 32, true> : matrix_tree_rest<float, 32, false>, 2, 64, bytes,
                        scores, lengths, nodes, log_z, mu, which, &done);
}
BOTH(float, float, float, 8) BOTH(float, float, float, 16) BOTH(float, float, float, 32) BOTH(float, float, float, 64)
BOTH(float, double, double, 8) BOTH(double, double, double, 32) BOTH(double, Dual<double>, dual, 16)
"""

WALKS = """
template <class T, bool MULTI>
void all(const T* scores, const T* f, const long long* lengths, int batch, int nodes, T* log_z, T* mu, T* covariance,
           int* which) {
    int done = 0;
    std::vector<int> again(which ? which : &done, which ? which + 1 + which[0] : &done);
    cuda_on_cpu::launch(escape_walks_marginals<T, MULTI>, 2, 64, sizeof(Extended<T>) * walks::walk_numbers(nodes - 1),
                        scores, lengths, batch, nodes, log_z, mu, which, &done, (char*)nullptr);
    std::vector<char> workspace(2 * sizeof(Sloped<Extended<T>>) * walks::walk_numbers(nodes - 1));
    cuda_on_cpu::launch(escape_walks_covariance<T, MULTI>, 2, 64, 0,
                        scores, f, lengths, batch, nodes, covariance, which ? again.data() : nullptr, &done,
                        workspace.data());
}
#define BOTH(T) \\
    extern "C" void walks_##T(const T* scores, const T* f, const long long* lengths, int batch, int nodes, T* log_z, \\
                              T* mu, T* covariance, int* which, bool multi) { \\
        (multi ? all<T, true> : all<T, false>)(scores, f, lengths, batch, nodes, log_z, mu, covariance, which); \\
    }
BOTH(float) BOTH(double)
"""

Results = tuple[Any, ...]


def in_registers(
    sentences: list[Any],
    size: int,
    multi_root: bool,
    *,
    dtype: Any = np.float32,
    numbers: str = "float",
    f: Any = None,
    which: list[int] | None = None,
) -> Results:
    """log Z, marginals or their derivatives, and what was left to others, by the kernel for `size` words."""
    scores, lengths = padded(sentences, max(map(len, sentences)), dtype)
    log_z, mu = np.full(len(scores), np.nan, dtype), np.full_like(scores, np.nan)
    rest = np.zeros(1 + len(scores), np.int32)
    chosen = None if which is None else np.array([len(which), *which], np.int32)
    again = None if chosen is None else chosen.copy()  # a kernel empties the list it reads
    library = compiled("matrix_tree.cu", WRAPPERS)
    name = f"{'float' if dtype is np.float32 else 'double'}_{numbers}_{size}"
    arrays = [pointer(array) for array in (scores, f, lengths)]
    results = [pointer(array) for array in (log_z, mu, chosen, rest)]
    shape = (len(scores), scores.shape[1])
    getattr(library, f"registers_{name}")(*arrays, *shape, *results, ctypes.c_bool(multi_root))
    left = sorted(rest[1 : 1 + rest[0]].tolist())
    assert chosen is None or chosen[0] == 0
    if f is None:
        check_sums_alone(getattr(library, f"sums_{name}"), scores, lengths, again, log_z, left, multi_root)
    return log_z, mu, left


def check_sums_alone(
    run: Any, scores: Any, lengths: Any, chosen: Any, expected: Any, left: list[int], multi_root: bool
) -> None:
    """The kernel for log Z alone finds the same, and leaves the same sentences."""
    log_z, rest = np.full_like(expected, np.nan), np.zeros(1 + len(scores), np.int32)
    given, shape = (pointer(scores), pointer(lengths)), (len(scores), scores.shape[1])
    run(*given, *shape, pointer(log_z), pointer(chosen), pointer(rest), ctypes.c_bool(multi_root))
    np.testing.assert_allclose(log_z, expected, rtol=5e-7)
    assert sorted(rest[1 : 1 + rest[0]].tolist()) == left


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


@pytest.mark.parametrize("multi_root", [False, True])
@pytest.mark.parametrize(("size", "lengths"), [(8, [1, 2, 5, 8, 3]), (16, [16, 9]), (32, [32, 17, 1]), (64, [50])])
def test_tables_in_registers(size: int, lengths: list[int], multi_root: bool) -> None:
    rng = np.random.default_rng(size)
    sentences = [random_scores(rng, n, 1.5) for n in lengths]
    log_z, mu, rest = in_registers(sentences, size, multi_root)
    assert rest == []
    for b, own in enumerate(sentences):
        check_sums(own, multi_root, log_z[b], mu[b], 2e-6)


@pytest.mark.parametrize("multi_root", [False, True])
def test_in_registers_with_double_numbers(multi_root: bool) -> None:
    sentences = [random_scores(np.random.default_rng(n), n, 20, np.float64) for n in (7, 20)]
    log_z, mu, rest = in_registers(sentences, 32, multi_root, dtype=np.float64, numbers="double")
    assert rest == []
    for b, own in enumerate(sentences):
        check_sums(own, multi_root, log_z[b], mu[b], 1e-12)


@pytest.mark.parametrize("multi_root", [False, True])
def test_masks_in_registers_with_double_numbers(multi_root: bool) -> None:
    """Forbidden arcs are tiny weights, unless the sentence has no other trees to speak of."""
    rng = np.random.default_rng(11)
    sentences = [np.where(rng.random((n + 1, n + 1)) < 0.3, -np.inf, random_scores(rng, n, 3)) for n in (8, 5, 3, 8, 8)]
    sentences[1][:, 2] = -np.inf  # no tree
    log_z, mu, rest = in_registers(sentences, 8, multi_root, numbers="double", which=[0, 1, 3, 4])
    assert rest == [1]
    for b in (0, 3, 4):
        check_sums(sentences[b], multi_root, log_z[b], mu[b], 1e-6)
        assert not mu[b][np.isneginf(sentences[b])].any()
    assert np.isnan(mu[2]).all()  # not asked for


@pytest.mark.parametrize("multi_root", [False, True])
def test_derivatives_in_registers(multi_root: bool) -> None:
    rng = np.random.default_rng(12)
    sentences = [np.where(rng.random((n + 1, n + 1)) < 0.2, -np.inf, random_scores(rng, n, 3)) for n in (8, 16, 1)]
    sentences[2][0, 1] = 1.0
    f = rng.normal(size=(3, 17, 17))
    _, slope, rest = in_registers(sentences, 16, multi_root, dtype=np.float64, numbers="dual", f=f)
    assert rest == []
    for b, own in enumerate(sentences):
        size = len(own)
        d = TreeDistribution(np.where(np.eye(size), 0.0, own), single_root=not multi_root)
        np.testing.assert_allclose(
            slope[b, :size, :size], d.covariance_with_arcs(f[b, :size, :size]), rtol=0, atol=1e-11
        )


def test_tight_cycles_in_registers() -> None:
    own = random_scores(np.random.default_rng(0), 30, 1)
    own[3, 7] = own[7, 3] = 14
    own[20, 21] = own[21, 22] = own[22, 20] = 12
    log_z, mu, rest = in_registers([own], 32, False)
    assert rest == []
    check_sums(own, False, log_z[0], mu[0], 2e-6)


def test_what_registers_cannot_hold_is_left_to_others() -> None:
    rng = np.random.default_rng(1)
    sentences = [random_scores(rng, 6, 1) for _ in range(6)]
    sentences[1][2, 3] = -np.inf
    sentences[4][3, 5] = -60
    sentences[5][0, 1] = np.nan
    log_z, mu, rest = in_registers(sentences, 8, False)
    assert rest == [1, 4, 5]
    for b in (0, 2, 3):
        check_sums(sentences[b], False, log_z[b], mu[b], 2e-6)
    assert np.isnan(mu[rest]).all()  # as it was
    assert np.isnan(log_z[rest]).all()


@pytest.mark.parametrize("multi_root", [False, True])
def test_one_kernel_for_all_that_is_left(multi_root: bool) -> None:
    """Double numbers for masks and some width, walks for more; the list is empty afterwards."""
    rng = np.random.default_rng(13)
    sentences = [
        random_scores(rng, 7, 1),
        np.where(rng.random((9, 9)) < 0.3, -np.inf, random_scores(rng, 8, 3)),
        random_scores(rng, 8, 200),
    ]
    sentences[1][0] = random_scores(rng, 8, 1)[0]
    scores, lengths = padded(sentences, 9, np.float32)
    log_z, mu, which = np.full(3, np.nan, np.float32), np.full_like(scores, np.nan), np.array([2, 2, 1], np.int32)
    arrays = [pointer(array) for array in (log_z, mu, which)]
    compiled("matrix_tree.cu", WRAPPERS).rest(pointer(scores), pointer(lengths), 9, *arrays, ctypes.c_bool(multi_root))
    assert which[0] == 0
    assert np.isnan(log_z[0])
    for b in (1, 2):
        check_sums(sentences[b], multi_root, log_z[b], mu[b], 2e-6)


HARD = {
    "normal": lambda rng, n: random_scores(rng, n, 1),
    "wide": lambda rng, n: random_scores(rng, n, 100),
    "masks": lambda rng, n: np.where(rng.random((n + 1, n + 1)) < 0.4, -np.inf, random_scores(rng, n, 3)),
    "masks by numbers": lambda rng, n: np.where(rng.random((n + 1, n + 1)) < 0.3, -1e9, random_scores(rng, n, 3)),
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
        check_sums(own, multi_root, log_z[b], mu[b], tolerance)
        expected = TreeDistribution(clean, single_root=not multi_root).covariance_with_arcs(f[b, :size, :size])
        np.testing.assert_allclose(covariance[b, :size, :size], expected, rtol=0, atol=5 * tolerance)


def test_cycles_boosted_by_hundreds_of_nats() -> None:
    rng = np.random.default_rng(3)
    sentences = []
    for boost in (10, 100, 300):
        own = random_scores(rng, 12, 3)
        own[3, 7] += boost
        own[7, 3] += boost
        own[4, 5] += boost
        own[5, 6] += boost
        own[6, 4] += boost
        sentences.append(own.astype(np.float32).astype(np.float64))
    log_z, mu, _, _ = in_memory(sentences, False, np.float32)
    for b, own in enumerate(sentences):
        check_sums(own, False, log_z[b], mu[b], 2e-6)


def test_only_the_sentences_asked_for_are_written() -> None:
    sentences = [random_scores(np.random.default_rng(n), n, 1) for n in (3, 4, 5)]
    log_z, mu, _, _ = in_memory(sentences, False, np.float64, rest=[1])
    check_sums(sentences[1], False, log_z[1], mu[1], 1e-12)
    assert np.isnan(mu[[0, 2]]).all()
    assert np.isnan(log_z[[0, 2]]).all()


def test_words_that_must_be_below_others() -> None:
    """The walk cannot leave words 1 and 2, so the root's child is one of them: a reducible graph."""
    own = random_scores(np.random.default_rng(5), 5, 1)
    own[3:, 1:3] = -np.inf
    log_z, mu, _, _ = in_memory([own], False, np.float32)
    check_sums(own, False, log_z[0], mu[0], 2e-6)


def test_nan_is_passed_on_and_an_empty_sentence_has_one_tree() -> None:
    own = random_scores(np.random.default_rng(6), 4, 1)
    own[2, 3] = np.nan
    log_z, mu, _, _ = in_memory([own, np.zeros((1, 1))], False, np.float64)
    assert np.isnan(log_z[0])
    assert np.isnan(mu[0]).any()
    assert log_z[1] == 0
    assert not mu[1].any()
