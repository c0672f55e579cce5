"""The Triton kernels beside enumeration and `headway.inference`; run by `test_triton.py`, with TRITON_INTERPRET=1.

The interpreter needs some milliseconds for each operation, so everything is small.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.arrays import TreeClass
from headway.inference import TreeDistribution, argmax
from headway.torch import TreeDistribution as OnTensors
from headway.torch.plain_kernels import PlainKernels
from headway.torch.triton import eisner, viterbi
from headway.torch.triton.triton_kernels import TritonKernels
from tests.inference import exact
from tests.inference.strategies import TREE_CLASSES
from tests.torch.each_kernel import only

every_class = pytest.mark.parametrize("flags", TREE_CLASSES)
KERNELS = TritonKernels()
TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-12}


class NoRest(PlainKernels):
    """Nothing may be left to plain operations."""

    def marginals(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> tuple[Tensor, Tensor]:
        raise AssertionError(f"{len(scores)} sentences are left")


def alone() -> Any:
    """The kernels without what takes care of the rest."""
    return mock.patch("headway.torch.triton.triton_kernels.PlainKernels", NoRest)


@contextmanager
def small_tiles() -> Iterator[None]:
    with mock.patch.multiple(eisner, _SPANS=8, _TERMS=8), mock.patch.multiple(viterbi, _SPANS=8, _TERMS=8):
        yield


def padded(lengths: list[int], scale: float, dtype: torch.dtype, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Random scores with garbage where there is no arc."""
    generator, count = torch.Generator().manual_seed(seed), max(lengths) + 1
    scores = scale * torch.randn(len(lengths), count, count, generator=generator, dtype=torch.float64)
    for sentence, n in zip(scores, lengths, strict=True):
        sentence[n + 1 :] = sentence[:, n + 1 :] = sentence[:, 0] = torch.nan
        sentence.fill_diagonal_(torch.nan)
    return scores.to(dtype), torch.tensor(lengths)


def reference(scores: NDArray[np.float64], flags: dict[str, bool]) -> tuple[float, NDArray[np.float64]]:
    """log Z and marginals: of few words by enumeration, of many in float64."""
    n = len(scores) - 1
    if n > 3:
        d = TreeDistribution(scores, **flags)
        return float(d.log_partition), d.marginals
    trees = exact.tree_distribution(scores, **flags)
    if len(trees) == 0:
        return -np.inf, np.zeros_like(scores)
    return trees.log_partition, exact.arc_marginals(trees, n).astype(float)


def check(scores: Tensor, lengths: Tensor, flags: dict[str, bool]) -> None:
    trees, tolerance = TreeClass(**flags), TOLERANCE[scores.dtype]
    log_z, mu = KERNELS.marginals(scores, lengths, trees)
    again = KERNELS.log_partition(scores, lengths, trees)
    assert log_z.dtype == mu.dtype == again.dtype == scores.dtype
    for b, n in enumerate(lengths.tolist()):
        expected_log_z, expected = reference(without_garbage(scores[b], n), flags)
        np.testing.assert_allclose(mu[b, : n + 1, : n + 1].double().numpy(), expected, rtol=0, atol=tolerance)
        assert not mu[b, n + 1 :].any()
        assert not mu[b, :, n + 1 :].any()
        for value in (log_z[b].item(), again[b].item()):
            assert value == pytest.approx(expected_log_z, rel=tolerance / 2, abs=tolerance)


def without_garbage(scores: Tensor, n: int) -> NDArray[np.float64]:
    own = scores[: n + 1, : n + 1].double().numpy().copy()
    own[:, 0] = own[np.diag_indices(n + 1)] = 0.0
    return own


@every_class
def test_lengths_of_all_sizes(flags: dict[str, bool]) -> None:
    """None is left to plain operations. A chart of 9 words takes more than one small tile."""
    with alone(), small_tiles():
        check(*padded([9, 0, 1, 2], 2.0, torch.float32), flags)


@every_class
def test_float64_and_forbidden_arcs(flags: dict[str, bool]) -> None:
    """Some arcs, a chain, and no tree at all side by side."""
    scores, lengths = padded([3, 3, 3, 1], 1.0, torch.float64)
    scores[0, 1, 2] = scores[0, 0, 3] = -torch.inf
    scores[1] = torch.full_like(scores[1], -torch.inf)
    scores[1, 0, 1] = scores[1, 1, 2] = scores[1, 2, 3] = 1.0
    scores[2, :, 2] = -torch.inf
    scores[3, 0, 1] = -torch.inf
    check(scores, lengths, flags)


@every_class
def test_what_float32_cannot_hold(flags: dict[str, bool]) -> None:
    """Each sentence goes through another number of tiers, and all come back in their places. The third has ties."""
    scores, lengths = padded([4, 2, 2, 4, 4], 1.0, torch.float32)
    scores[0] *= 60
    scores[1, 1, 2] = -torch.inf
    scores[2] = 0.0
    scores[3, 1, 2] = scores[3, 2, 1] = 70.0
    scores[4, 1, 2] = -1e9
    check(scores, lengths, flags)


@pytest.mark.parametrize("single_root", [False, True])
def test_best_projective_trees(single_root: bool) -> None:
    """The same as on the CPU, ties included, and of enumeration the best."""
    lengths = torch.tensor([9, 0, 3, 1, 3, 2, 3])
    scores = padded(lengths.tolist(), 1.0, torch.float32)[0]
    scores[2] = 0.0
    scores[4] = (3 * scores[4]).round()  # some ties
    scores[5, 1:, 1:] = -torch.inf  # both words on the root, or no tree
    scores[6, 1, 2] = scores[6, 0, 3] = -torch.inf
    with small_tiles():
        found = KERNELS.argmax(scores, lengths, TreeClass(projective=True, single_root=single_root))
    for b, n in enumerate(lengths.tolist()):
        own = without_garbage(scores[b], n)
        assert (found[b, n + 1 :] == -1).all()
        trees = exact.tree_distribution(own, projective=True, single_root=single_root) if n <= 3 else None
        if trees is not None and len(trees) == 0:
            assert (found[b] == -1).all()
            continue
        np.testing.assert_array_equal(found[b, : n + 1], argmax(own, projective=True, single_root=single_root))
        assert trees is None or trees.score_of[tuple(found[b, : n + 1].tolist())] == trees.max


@every_class
def test_gradients(flags: dict[str, bool]) -> None:
    """Of log Z and of the entropy, through the operators."""
    scores, lengths = padded([3, 2], 1.0, torch.float64)
    scores = scores.nan_to_num(0.0)
    found = []
    for kernels in (KERNELS, PlainKernels()):
        given = scores.clone().requires_grad_()
        with only(kernels):
            d = OnTensors(given, lengths, **flags)
            (d.log_partition.sum() + d.entropy.sum()).backward()
        found.append(given.grad)
    torch.testing.assert_close(*found, rtol=0, atol=1e-10)


@every_class
def test_no_sentences_and_no_words(flags: dict[str, bool]) -> None:
    for shape in ((0, 4, 4), (2, 1, 1)):
        scores, lengths = torch.full(shape, torch.nan), torch.zeros(shape[0], dtype=torch.int64)
        log_z, mu = KERNELS.marginals(scores, lengths, TreeClass(**flags))
        assert log_z.tolist() == KERNELS.log_partition(scores, lengths, TreeClass(**flags)).tolist() == [0.0] * shape[0]
        assert torch.equal(mu, torch.zeros(shape))
        assert torch.equal(KERNELS.argmax(scores, lengths, TreeClass(**flags)), torch.full(shape[:2], -1))
