"""Each implementation of `Kernels` on whole batches: any scale, mask and length, in both dtypes."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from headway.arrays import TreeClass
from headway.inference import TreeDistribution as InNumpy
from headway.parallel import Threads
from headway.torch import kernels as choice
from headway.torch.kernels import Kernels
from headway.torch.numba_kernels import NumbaKernels
from headway.torch.plain_kernels import PlainKernels
from tests.inference import exact
from tests.inference.strategies import TREE_CLASSES, Floats, score_matrices, stability_cases
from tests.torch.each_kernel import each_kernel

every_class = pytest.mark.parametrize("flags", TREE_CLASSES)


def padded(matrices: list[Floats]) -> tuple[Any, Any]:
    """A batch with garbage as padding, two words wider than it must be, and its lengths."""
    nodes = max(map(len, matrices)) + 2
    batch = np.full((len(matrices), nodes, nodes), np.nan)
    for row, matrix in zip(batch, matrices, strict=True):
        row[: len(matrix), : len(matrix)] = matrix
    return torch.tensor(batch), torch.tensor([len(matrix) - 1 for matrix in matrices])


@each_kernel
@every_class
@settings(max_examples=20)
@given(matrices=st.lists(score_matrices(max_words=4, solvable=False), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_batches_by_enumeration(kernels: Kernels, flags: dict[str, bool], matrices: list[Floats], seed: int) -> None:
    """Sentences with and without trees side by side."""
    scores, lengths = padded(matrices)
    f = torch.tensor(np.random.default_rng(seed).integers(-8, 9, scores.shape) / 4.0)
    trees = TreeClass(**flags)
    log_z, mu = kernels.marginals(scores, lengths, trees)
    slope = kernels.covariance(scores, lengths, f, trees)
    heads = kernels.argmax(scores, lengths, trees)
    torch.testing.assert_close(kernels.log_partition(scores, lengths, trees), log_z, rtol=1e-14, atol=1e-12)
    for b, matrix in enumerate(matrices):
        n, reference = len(matrix) - 1, exact.tree_distribution(matrix, **flags)
        for padding in (mu[b, n + 1 :], mu[b, :, n + 1 :], slope[b, n + 1 :], slope[b, :, n + 1 :]):
            assert not padding.any()
        assert (heads[b, n + 1 :] == -1).all()
        if len(reference) == 0:
            assert log_z[b] == -torch.inf
            assert not mu[b].any()
            assert not slope[b].any()
            assert (heads[b] == -1).all()
            continue
        assert log_z[b].item() == pytest.approx(reference.log_partition, rel=1e-12, abs=1e-10)
        own = np.s_[b, : n + 1, : n + 1]
        expected = exact.arc_marginals(reference, n).astype(float)
        np.testing.assert_allclose(mu[own].numpy(), expected, rtol=0, atol=1e-10)
        values = np.where(np.isneginf(matrix), 0.0, f[own].numpy())
        expected = exact.covariance_with_arcs(reference, values).astype(float)
        np.testing.assert_allclose(slope[own].numpy(), expected, rtol=0, atol=1e-9)
        best = reference.score_of[tuple(heads[b, : n + 1].tolist())]
        assert float(reference.max - best) <= 1e-11 * max(1.0, abs(float(reference.max)))


@each_kernel
@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("scores", stability_cases(6))
def test_accuracy_in_float32(scores: Floats, single_root: bool, kernels: Kernels) -> None:
    """Confident cycles and large spreads, against exact rationals: float32 is what goes in and out."""
    rounded = scores.astype(np.float32)
    log_z, mu = exact.determinants(rounded.astype(np.float64), single_root=single_root)
    batch, trees = torch.tensor(rounded)[None], TreeClass(projective=False, single_root=single_root)
    got_log_z, got = kernels.marginals(batch, torch.tensor([6]), trees)
    assert got.dtype == got_log_z.dtype == torch.float32
    assert got_log_z.item() == pytest.approx(log_z, rel=1e-7, abs=1e-6)
    np.testing.assert_allclose(got[0].numpy(), mu.astype(float), rtol=0, atol=5e-7)
    assert kernels.covariance(batch, torch.tensor([6]), batch, trees).dtype == torch.float32


@pytest.mark.parametrize("single_root", [False, True])
def test_float32_beside_what_it_cannot_hold(single_root: bool) -> None:
    """Sentences that go different ways come back in their places."""
    rng, trees = np.random.default_rng(4), TreeClass(projective=False, single_root=single_root)
    scores, lengths = rng.normal(size=(12, 8, 8)).astype(np.float32), np.array([7, 3, 5, 7, 0, 1, 2, 7, 6, 4, 7, 1])
    scores[[1, 7, 10]] *= 60.0
    scores[2, 1, 3] = scores[8, 2, 4] = -np.inf
    batch, sizes = torch.tensor(scores), torch.tensor(lengths)
    log_z, mu = NumbaKernels().marginals(batch, sizes, trees)
    expected = InNumpy(scores.astype(np.float64), lengths=lengths, single_root=single_root)
    np.testing.assert_allclose(mu.numpy(), expected.marginals, rtol=0, atol=5e-7)
    for got in (log_z, NumbaKernels().log_partition(batch, sizes, trees)):
        np.testing.assert_allclose(got.numpy(), expected.log_partition, rtol=1e-6, atol=1e-6)


@every_class
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_plain_operations_on_longer_sentences(scale: float, flags: dict[str, bool]) -> None:
    """Many words, few arcs for each, in both implementations."""
    rng, trees = np.random.default_rng(3), TreeClass(**flags)
    scores = scale * rng.normal(size=(5, 24, 24))
    mask = rng.random(scores.shape) < 0.7
    mask[:, np.arange(23), np.arange(1, 24)] = False
    batch, lengths = torch.tensor(np.where(mask, -np.inf, scores)), torch.tensor([23, 22, 12, 1, 17])
    f = torch.tensor(rng.normal(size=scores.shape))
    plain, compiled = PlainKernels(), NumbaKernels()
    close = torch.testing.assert_close
    for got, expected in zip(
        plain.marginals(batch, lengths, trees), compiled.marginals(batch, lengths, trees), strict=True
    ):
        close(got, expected, rtol=1e-12, atol=1e-11)
    close(plain.covariance(batch, lengths, f, trees), compiled.covariance(batch, lengths, f, trees), rtol=0, atol=1e-9)
    close(plain.argmax(batch, lengths, trees), compiled.argmax(batch, lengths, trees))


@each_kernel
@every_class
def test_no_sentences_and_no_words(kernels: Kernels, flags: dict[str, bool]) -> None:
    trees = TreeClass(**flags)
    for shape in ((0, 4, 4), (2, 1, 1)):
        scores, lengths = torch.full(shape, torch.nan), torch.zeros(shape[0], dtype=torch.int64)
        log_z, mu = kernels.marginals(scores, lengths, trees)
        assert log_z.tolist() == [0.0] * shape[0]
        assert torch.equal(kernels.log_partition(scores, lengths, trees), log_z)
        assert torch.equal(mu, torch.zeros(shape))
        assert torch.equal(kernels.covariance(scores, lengths, scores, trees), mu)
        assert torch.equal(kernels.argmax(scores, lengths, trees), torch.full(shape[:2], -1))


@each_kernel
@pytest.mark.parametrize("projective", [False, True])
def test_two_words_that_both_need_the_root(kernels: Kernels, projective: bool) -> None:
    scores = torch.full((1, 3, 3), -torch.inf)
    scores[0, 0] = 1.0
    for single_root, best in ((True, [-1, -1, -1]), (False, [-1, 0, 0])):
        trees = TreeClass(projective=projective, single_root=single_root)
        assert kernels.argmax(scores, torch.tensor([2]), trees).tolist() == [best]
        assert kernels.log_partition(scores, torch.tensor([2]), trees) == (-torch.inf if single_root else 2.0)


def test_scores_on_the_cpu_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Numba reads is the tensor's own memory."""
    from headway.torch import numba_kernels

    seen = []
    as_batch = numba_kernels.as_batch
    monkeypatch.setattr(
        numba_kernels, "as_batch", lambda scores, lengths: seen.append(scores) or as_batch(scores, lengths)
    )
    scores = torch.randn(2, 5, 5, dtype=torch.float64)
    _, mu = NumbaKernels().marginals(scores, torch.tensor([4, 3]), TreeClass())
    assert seen[0].__array_interface__["data"][0] == scores.data_ptr()
    np.testing.assert_array_equal(mu[0].numpy(), InNumpy(scores[0].numpy()).marginals)


def test_which_implementation_serves() -> None:
    assert isinstance(choice.kernels_for(torch.zeros(1)), NumbaKernels)
    assert isinstance(choice.kernels_for(torch.zeros(1, device="meta")), PlainKernels)


@every_class
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_threads_of_torch_change_no_bit(flags: dict[str, bool], dtype: Any) -> None:
    """A batch large enough that two threads really are started."""
    generator, trees = torch.Generator().manual_seed(0), TreeClass(**flags)
    scores, f = torch.randn(2, 48, 41, 41, generator=generator, dtype=torch.float64).to(dtype)
    lengths = torch.randint(20, 41, (48,), generator=generator)
    kernels, allowed, found = NumbaKernels(), torch.get_num_threads(), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        with mock.patch.object(Threads, "map", autospec=True, side_effect=Threads.map) as in_threads:
            log_z, mu = kernels.marginals(scores, lengths, trees)
            slope = kernels.covariance(scores, lengths, f, trees)
            found.append((log_z, mu, slope, kernels.argmax(scores, lengths, trees)))
        torch.set_num_threads(allowed)
        assert in_threads.called == (threads == 2)
    for one, two in zip(*found, strict=True):
        assert torch.equal(one, two)
