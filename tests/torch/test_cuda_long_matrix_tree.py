"""The CUDA kernel of long non-projective sentences, run on the CPU, beside `headway.inference` in float64.

Tables of 32 words stand for those of 128 in most tests: the same source, with fewer columns a lane.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.torch.cuda_on_cpu import check_sums, compiled, padded, pointer, random_scores

WRAPPERS = """
template <class T, int N, bool MULTI>
void run(const T* scores, const long long* lengths, int batch, int nodes, T* log_z, T* mu, int* which, int* rest) {
    int done = 0;
    cuda_on_cpu::launch(long_matrix_tree<T, T, N, MULTI>, 2, 2 * N, long_bytes<T, N>(), scores, lengths, batch, nodes,
                        log_z, mu, which, &done, rest);
}
#define SUMS(T, N, MULTI) \\
    extern "C" void sums_##T##_##N##_##MULTI(const T* scores, const long long* lengths, int batch, int nodes, \\
                                             T* log_z, T* mu, int* which, int* rest) { \\
        run<T, N, MULTI>(scores, lengths, batch, nodes, log_z, mu, which, rest); \\
    }
SUMS(float, 32, false) SUMS(float, 32, true) SUMS(double, 32, false) SUMS(double, 32, true) SUMS(float, 128, false)
"""


def sums(
    sentences: list[Any], words: int, multi_root: bool, dtype: Any = np.float32, which: list[int] | None = None
) -> tuple[Any, Any, list[int]]:
    """log Z, marginals and what is left to others, by the kernel for up to `words` words."""
    scores, lengths = padded(sentences, max(map(len, sentences)), dtype)
    log_z, mu = np.full(len(scores), np.nan, dtype), np.full_like(scores, np.nan)
    kind = "float" if dtype is np.float32 else "double"
    name = f"sums_{kind}_{words // 2}_{str(multi_root).lower()}"
    run = getattr(compiled("long_matrix_tree.cu", WRAPPERS), name)
    alone, left = np.full_like(log_z, np.nan), []
    for results in ((log_z, mu), (alone, None)):
        chosen = None if which is None else np.array([len(which), *which], np.int32)
        rest = np.zeros(1 + len(scores), np.int32)
        arrays = [pointer(array) for array in (*results, chosen, rest)]
        run(pointer(scores), pointer(lengths), len(scores), scores.shape[1], *arrays)
        assert chosen is None or chosen[0] == 0
        left.append(sorted(rest[1 : 1 + rest[0]].tolist()))
    np.testing.assert_array_equal(log_z, alone)
    assert left[0] == left[1]
    return log_z, mu, left[0]


@pytest.mark.parametrize("multi_root", [False, True])
def test_two_halves(multi_root: bool) -> None:
    """Full and half-full second halves, and sentences that have words in the first only."""
    rng = np.random.default_rng(0)
    sentences = [random_scores(rng, n, 1.5) for n in (64, 64, 50, 33, 32, 7, 2, 1, 0, 0)]
    log_z, mu, rest = sums(sentences, 64, multi_root)
    assert rest == []
    for b, own in enumerate(sentences):
        check_sums(own, multi_root, log_z[b], mu[b], 2e-6)


@pytest.mark.parametrize("multi_root", [False, True])
def test_double_numbers(multi_root: bool) -> None:
    sentences = [random_scores(np.random.default_rng(n), n, 20, np.float64) for n in (64, 41)]
    log_z, mu, rest = sums(sentences, 64, multi_root, np.float64)
    assert rest == []
    for b, own in enumerate(sentences):
        check_sums(own, multi_root, log_z[b], mu[b], 1e-12)


@pytest.mark.parametrize("multi_root", [False, True])
def test_masks_with_double_numbers(multi_root: bool) -> None:
    """Forbidden arcs are tiny weights, unless the sentence has no other trees to speak of."""
    rng = np.random.default_rng(11)
    lengths = (64, 64, 40, 40, 40)
    sentences = [
        np.where(rng.random((n + 1, n + 1)) < 0.3, -np.inf, random_scores(rng, n, 3, np.float64)) for n in lengths
    ]
    sentences[1][0, 1:] = -np.inf
    sentences[1][0, 50] = 2.0  # one word may be on the root
    sentences[2][:, 7] = -np.inf  # no tree
    sentences[3][1:, 39] = -np.inf
    sentences[3][0, 39] = 0.0  # one has to
    log_z, mu, rest = sums(sentences, 64, multi_root, np.float64)
    assert rest == [2]
    for b in (0, 1, 3, 4):
        check_sums(sentences[b], multi_root, log_z[b], mu[b], 1e-12)
        size = len(sentences[b])
        assert not mu[b, :size, :size][np.isneginf(sentences[b])].any()


def test_real_size() -> None:
    own = random_scores(np.random.default_rng(3), 200, 1)
    log_z, mu, rest = sums([own], 256, False)
    assert rest == []
    check_sums(own, False, log_z[0], mu[0], 2e-6)


def test_cycles_across_the_halves() -> None:
    own = random_scores(np.random.default_rng(1), 60, 1)
    own[3, 50] = own[50, 3] = 14
    own[20, 40] = own[40, 58] = own[58, 20] = 12
    log_z, mu, rest = sums([own, own], 64, False)
    assert rest == []
    check_sums(own, False, log_z[0], mu[0], 2e-6)
    check_sums(own, False, log_z[1], mu[1], 2e-6)


def test_what_float_numbers_do_not_hold_is_left_over() -> None:
    """Masks, spreads and nan."""
    rng = np.random.default_rng(2)
    plain, masked, wide, not_a_number = (random_scores(rng, 40, 1) for _ in range(4))
    masked[3, 4] = -np.inf
    wide[7, 30] = -60
    not_a_number[0, 5] = np.nan
    log_z, mu, rest = sums([plain, masked, wide, not_a_number, plain], 64, False)
    assert rest == [1, 2, 3]
    for b in (0, 4):
        check_sums(plain, False, log_z[b], mu[b], 2e-6)


def test_only_the_sentences_asked_for_are_written() -> None:
    sentences = [random_scores(np.random.default_rng(n), n, 1) for n in (40, 50, 60)]
    log_z, mu, rest = sums(sentences, 64, False, which=[2])
    assert rest == []
    check_sums(sentences[2], False, log_z[2], mu[2], 2e-6)
    assert np.isnan(mu[:2]).all()
    assert np.isnan(log_z[:2]).all()
