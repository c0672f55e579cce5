"""The CUDA kernels of projective trees, run on the CPU, beside `headway.inference` in float64."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from headway.errors import NoTreeError
from headway.inference import TreeDistribution
from tests.torch.cuda_on_cpu import compiled, padded, pointer

# float numbers if the scores are, then double, then Extended, whose charts lie in a workspace.
WRAPPERS = """
constexpr int PARTS = 4, PLACES = 40, BLOCKS = 2, THREADS = 64;


template <class T, class X, bool MULTI, int PLACES_>
void sums(const T* scores, const T* f, const long long* lengths, int batch, int nodes, T* log_z, T* log_z_again, T* mu,
          int* which, int* rest, int* rest_again) {
    using namespace cuda_on_cpu;
    const int p = PLACES_ > 0 ? PLACES_ : nodes - 1 + MULTI;
    const size_t bytes = eisner_bytes(p, PARTS, 4 * sizeof(X) + sizeof(T));
    int done = 0;
    std::vector<int> again(which ? which : &done, which ? which + 1 + which[0] : &done);  // a kernel empties its list
    std::vector<char> workspace(PLACES_ > 0 ? 0 : BLOCKS * bytes, char(0xff));
    launch(eisner_marginals<T, X, MULTI, PLACES_, PARTS>, BLOCKS, THREADS, PLACES_ > 0 ? bytes : 0,
           scores, f, lengths, batch, nodes, log_z, mu, which ? again.data() : nullptr, &done, rest, workspace.data());
    if (done != 0 || (which && again[0] != 0)) std::abort();
    if (log_z_again == nullptr) return;
    again.assign(which ? which : &done, which ? which + 1 + which[0] : &done);
    launch(eisner_log_partition<T, X, MULTI, PLACES_, PARTS>, BLOCKS, THREADS,
           PLACES_ > 0 ? eisner_bytes(p, PARTS, 3 * sizeof(X)) : 0,
           scores, lengths, batch, nodes, log_z_again, which ? again.data() : nullptr, &done, rest_again,
           workspace.data());
}

template <class T, bool MULTI>
void run(const T* scores, const T* f, const long long* lengths, int batch, int nodes, T* log_z, T* log_z_again, T* mu,
         T* covariance, int* to_double, int* to_extended) {
    std::vector<int> again(1 + batch), of_slopes(1 + batch), none(1 + batch);
    to_double[0] = to_extended[0] = 0;
    int* which = nullptr;
    if (sizeof(T) == 4) {
        sums<T, float, MULTI, PLACES>(scores, nullptr, lengths, batch, nodes, log_z, log_z_again, mu, which, to_double,
                                      again.data());
        which = to_double;
        again[0] = 0;
    }
    sums<T, double, MULTI, PLACES>(scores, nullptr, lengths, batch, nodes, log_z, log_z_again, mu, which, to_extended,
                                   again.data());
    sums<T, Extended<double>, MULTI, 0>(scores, nullptr, lengths, batch, nodes, log_z, log_z_again, mu, to_extended,
                                        none.data(), none.data());
    sums<T, Dual<double>, MULTI, PLACES>(scores, f, lengths, batch, nodes, nullptr, nullptr, covariance, nullptr,
                                         of_slopes.data(), nullptr);
    sums<T, Sloped<Extended<double>>, MULTI, 0>(scores, f, lengths, batch, nodes, nullptr, nullptr, covariance,
                                                of_slopes.data(), none.data(), nullptr);
    if (none[0] != 0) std::abort();
}
#define BOTH(T) \\
    extern "C" void run_##T(const T* scores, const T* f, const long long* lengths, int batch, int nodes, T* log_z, \\
                            T* log_z_again, T* mu, T* covariance, int* to_double, int* to_extended, bool multi) { \\
        (multi ? run<T, true> : run<T, false>)(scores, f, lengths, batch, nodes, log_z, log_z_again, mu, covariance, \\
                                               to_double, to_extended); \\
    }
BOTH(float) BOTH(double)

// Packed charts: small ones, and the largest.
template <bool MULTI, int PLACES_, int THREADS_>
void packed(const float* scores, const long long* lengths, int batch, int nodes, float* log_z, float* mu, int* rest) {
    cuda_on_cpu::launch(eisner_marginals<float, float, MULTI, PLACES_ + MULTI, 2, true>, 2, THREADS_,
                        eisner_packed_bytes(PLACES_ + MULTI, 2, MULTI), scores, (float*)nullptr, lengths, batch, nodes,
                        log_z, mu, (int*)nullptr, (int*)nullptr, rest, (char*)nullptr);
}
extern "C" void packed_8(const float* scores, const long long* lengths, int batch, int nodes, float* log_z, float* mu,
                         int* rest, bool multi) {
    (multi ? packed<true, 8, 32> : packed<false, 8, 32>)(scores, lengths, batch, nodes, log_z, mu, rest);
}
extern "C" void packed_128(const float* scores, const long long* lengths, int batch, int nodes, float* log_z, float* mu,
                           int* rest, bool multi) {
    (multi ? packed<true, 128, 256> : packed<false, 128, 256>)(scores, lengths, batch, nodes, log_z, mu, rest);
}

extern "C" void one_warp(const float* scores, const long long* lengths, int batch, int nodes, float* log_z, float* mu,
                         int* rest) {
    rest[0] = 0;
    cuda_on_cpu::launch(eisner_marginals<float, float, false, 32, 1>, batch, 32, eisner_bytes(32, 1, 20),
                        scores, (float*)nullptr, lengths, batch, nodes, log_z, mu, (int*)nullptr, (int*)nullptr, rest,
                        (char*)nullptr);
}
"""

DECODE = """
template <class T, bool MULTI>
void decode(const T* scores, const long long* lengths, int batch, int nodes, long long* heads) {
    if (nodes > 32) {
        cuda_on_cpu::launch(eisner_argmax<T, MULTI, 40, 2>, 2, 64, eisner_bytes(40, 2, 24),
                            scores, lengths, batch, nodes, heads, (char*)nullptr);
        return;
    }
    const size_t bytes = eisner_bytes(nodes - 1 + MULTI, 4, 24);
    std::vector<char> workspace(2 * bytes, char(0xff));
    cuda_on_cpu::launch(eisner_argmax<T, MULTI, 0, 4>, 2, 32, 0,
                        scores, lengths, batch, nodes, heads, workspace.data());
}
#define BOTH(T) \\
    extern "C" void run_##T(const T* scores, const long long* lengths, int batch, int nodes, long long* heads, \\
                            bool multi) { \\
        (multi ? decode<T, true> : decode<T, false>)(scores, lengths, batch, nodes, heads); \\
    }
BOTH(float) BOTH(double)
"""

NAMES = {np.float32: "float", np.float64: "double"}


@dataclass(frozen=True)
class Results:
    """What the kernels say of a batch, and the direction f of the covariances."""

    log_z: Any
    mu: Any
    f: Any
    covariance: Any
    heads: Any
    by_double: list[int]  # which float numbers did not hold, if the scores are float
    by_extended: list[int]  # which double numbers did not hold


def run(sentences: list[Any], multi_root: bool, dtype: Any) -> Results:
    scores, lengths = padded(sentences, max(map(len, sentences)) + 1, dtype)
    f = np.random.default_rng(len(scores)).normal(size=scores.shape).astype(dtype)
    log_z, log_z_again = np.full((2, len(scores)), np.nan, dtype)
    mu, covariance = np.full_like(scores, np.nan), np.full_like(scores, np.nan)
    heads = np.full(scores.shape[:2], -7)
    to_double, to_extended = np.zeros((2, 1 + len(scores)), np.int32)
    given = [pointer(array) for array in (scores, f, lengths)]
    found = [pointer(array) for array in (log_z, log_z_again, mu, covariance, to_double, to_extended)]
    size, multi = (len(scores), scores.shape[1]), ctypes.c_bool(multi_root)
    getattr(compiled("eisner.cu", WRAPPERS), f"run_{NAMES[dtype]}")(*given, *size, *found, multi)
    np.testing.assert_array_equal(log_z, log_z_again)
    decode = getattr(compiled("eisner_argmax.cu", DECODE), f"run_{NAMES[dtype]}")
    decode(pointer(scores), pointer(lengths), *size, pointer(heads), multi)
    left = [sorted(rest[1 : 1 + rest[0]].tolist()) for rest in (to_double, to_extended)]
    return Results(log_z, mu, f, covariance, heads, *left)


def check(own: Any, multi_root: bool, found: Results, b: int, tolerance: float) -> None:
    """All results of one sentence."""
    size = len(own)
    d = TreeDistribution(np.where(np.eye(size), 0.0, own), projective=True, single_root=not multi_root)
    mu, covariance, heads = found.mu[b], found.covariance[b], found.heads[b]
    for cells in (mu, covariance):
        outside = cells.copy()
        outside[:size, 1:size] = 0
        assert not outside.any()
        assert not np.diagonal(cells).any()
    assert (heads[[0, *range(size, len(heads))]] == -1).all()
    try:
        expected = d.log_partition
    except NoTreeError:
        assert found.log_z[b] == -np.inf
        assert not mu.any()
        assert not covariance.any()
        assert (heads == -1).all()
        return
    np.testing.assert_allclose(found.log_z[b], expected, rtol=tolerance / 4, atol=tolerance / 4)
    np.testing.assert_allclose(mu[:size, :size], d.marginals, rtol=0, atol=tolerance)
    expected = d.covariance_with_arcs(found.f[b, :size, :size])
    np.testing.assert_allclose(covariance[:size, :size], expected, rtol=0, atol=5 * tolerance)
    assert (mu >= 0).all()
    np.testing.assert_array_equal(heads[:size], d.argmax())


def random(rng: Any, n: int, scale: float) -> Any:
    return scale * rng.normal(size=(n + 1, n + 1))


def boosted(rng: Any, n: int) -> Any:
    own = random(rng, n, 3)
    for head, modifier in [(1, 2), (2, 1), (2, 3), (3, 4), (4, 2)]:
        if max(head, modifier) <= n:
            own[head, modifier] += 300
    return own


KINDS = {
    "normal": lambda rng, n: random(rng, n, 1),
    "spread": lambda rng, n: random(rng, n, 30),
    "wide": lambda rng, n: random(rng, n, 100),
    "boosted cycles": boosted,
    "masks": lambda rng, n: np.where(rng.random((n + 1, n + 1)) < 0.4, -np.inf, random(rng, n, 3)),
    "masks by numbers": lambda rng, n: np.where(rng.random((n + 1, n + 1)) < 0.3, -1e9, random(rng, n, 3)),
    "ties": lambda rng, n: np.zeros((n + 1, n + 1)),
}


@pytest.mark.parametrize("multi_root", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_short_sentences_of_every_kind(kind: str, multi_root: bool, dtype: Any) -> None:
    rng = np.random.default_rng(list(KINDS).index(kind))
    sentences = [KINDS[kind](rng, n).astype(dtype).astype(np.float64) for n in (0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 8)]
    found = run(sentences, multi_root, dtype)
    for b, own in enumerate(sentences):
        check(own, multi_root, found, b, 1e-11 if dtype is np.float64 else 1e-6)


@pytest.mark.parametrize("multi_root", [False, True])
def test_long_sentences(multi_root: bool) -> None:
    rng = np.random.default_rng(33)
    sentences = [random(rng, 33, scale).astype(np.float32).astype(np.float64) for scale in (1, 10, 100)]
    found = run(sentences, multi_root, np.float32)
    assert found.by_double == [1, 2]
    assert found.by_extended == [2]
    for b, own in enumerate(sentences):
        check(own, multi_root, found, b, 2e-6)


def test_one_warp_with_a_lane_a_span() -> None:
    sentences = [random(np.random.default_rng(n), n, 2).astype(np.float32).astype(np.float64) for n in (32, 32, 7)]
    scores, lengths = padded(sentences, 33, np.float32)
    log_z, mu, rest = np.empty(3, np.float32), np.empty_like(scores), np.zeros(4, np.int32)
    library = compiled("eisner.cu", WRAPPERS)
    library.one_warp(pointer(scores), pointer(lengths), 3, 33, pointer(log_z), pointer(mu), pointer(rest))
    for b, own in enumerate(sentences):
        d = TreeDistribution(np.where(np.eye(len(own)), 0.0, own), projective=True)
        np.testing.assert_allclose(log_z[b], d.log_partition, rtol=1e-6)
        np.testing.assert_allclose(mu[b, : len(own), : len(own)], d.marginals, rtol=0, atol=1e-6)


@pytest.mark.parametrize("multi_root", [False, True])
@pytest.mark.parametrize(
    ("places", "lengths"), [(8, (8, 8, 7, 7, 6, 5, 4, 3, 2, 1, 1, 0, 0)), (128, (128, 101))], ids=["small", "large"]
)
def test_packed_charts(places: int, lengths: tuple[int, ...], multi_root: bool) -> None:
    """Less memory a place: as the others, and what float numbers do not hold is left over."""
    rng = np.random.default_rng(places)
    sentences = [random(rng, n, 1).astype(np.float32).astype(np.float64) for n in lengths]
    if places == 8:
        sentences += [random(rng, 7, 100), np.where(rng.random((9, 9)) < 0.2, -np.inf, random(rng, 8, 2))]
        sentences[-1][0] = 1.0
    scores, counts = padded(sentences, places + 1, np.float32)
    log_z, mu = np.full(len(scores), np.nan, np.float32), np.full_like(scores, np.nan)
    rest = np.zeros(1 + len(scores), np.int32)
    run_packed = getattr(compiled("eisner.cu", WRAPPERS), f"packed_{places}")
    results = (pointer(log_z), pointer(mu), pointer(rest), ctypes.c_bool(multi_root))
    run_packed(pointer(scores), pointer(counts), len(scores), places + 1, *results)
    left = rest[1 : 1 + rest[0]].tolist()
    assert left == ([len(lengths)] if places == 8 else [])
    for b, own in enumerate(sentences):
        if b in left:
            continue
        size = len(own)
        d = TreeDistribution(np.where(np.eye(size), 0.0, own), projective=True, single_root=not multi_root)
        np.testing.assert_allclose(log_z[b], d.log_partition, rtol=5e-7, atol=5e-7)
        np.testing.assert_allclose(mu[b, :size, :size], d.marginals, rtol=0, atol=2e-6)
        assert not mu[b, size:].any()
        assert not mu[b, :, size:].any()


@pytest.mark.parametrize("multi_root", [False, True])
def test_nan_is_passed_on(multi_root: bool) -> None:
    own = random(np.random.default_rng(6), 4, 1)
    own[2, 3] = np.nan
    found = run([own, random(np.random.default_rng(7), 3, 1)], multi_root, np.float64)
    assert np.isnan(found.log_z[0])
    assert np.isnan(found.mu[0]).any()
    assert np.isnan(found.covariance[0]).any()
    assert not np.isnan(found.mu[1]).any()


def test_no_tree_beside_one_with_a_tree() -> None:
    """Words 1 and 2 have no head but the root, which may have one child."""
    own = random(np.random.default_rng(8), 4, 1)
    own[1:, 1:3] = -np.inf
    sentences = [own, random(np.random.default_rng(9), 4, 1)]
    for multi_root in (False, True):
        found = run(sentences, multi_root, np.float32)
        assert np.isinf(found.log_z).tolist() == [not multi_root, False]
        for b in range(2):
            check(sentences[b].astype(np.float32), multi_root, found, b, 1e-6)
