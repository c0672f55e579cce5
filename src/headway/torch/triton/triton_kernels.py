"""`Kernels` in Triton: any GPU that it compiles for, where there are no CUDA kernels.

A kernel marks the sentences that it cannot hold, and the host hands them on: numbers in float32, then in float64, then
plain torch operations. The host has to wait for the marks, which the CUDA kernels avoid with lists on the device that
the next kernel reads. Here that would take a kernel for every case, in Triton; this is a few lines, and the last resort
can be what serves any device.

Covariances and the best non-projective trees are plain torch operations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from subprocess import CalledProcessError

import torch
from torch import Tensor

from headway.arrays import TreeClass
from headway.torch.plain_kernels import PlainKernels
from headway.torch.triton import eisner, escape_walks, viterbi

# Results, and at the end which sentences are left to the next.
Tier = Callable[[Tensor, Tensor], tuple[Tensor, ...]]


def kernels_on(device: torch.device) -> TritonKernels | None:
    """The kernels, if Triton can compile and launch anything there: it needs a C compiler and Python's headers."""
    kernels = TritonKernels()
    try:
        kernels.log_partition(torch.zeros(1, 2, 2, device=device), torch.ones(1, device=device).long(), TreeClass())
    except (CalledProcessError, OSError, RuntimeError):
        return None
    return kernels


class TritonKernels:
    """All four classes of trees, in float32 and float64."""

    def log_partition(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
        """log Z (B,)."""
        plain = partial(_log_partition_plainly, trees=trees)
        return _in_turn([*_tiers("log_partition", scores, trees), plain], scores, lengths)[0]

    def marginals(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> tuple[Tensor, Tensor]:
        """log Z (B,) and marginals."""
        plain = partial(PlainKernels().marginals, trees=trees)
        log_z, mu = _in_turn([*_tiers("marginals", scores, trees), plain], scores, lengths)
        return log_z, mu

    def covariance(self, scores: Tensor, lengths: Tensor, f: Tensor, trees: TreeClass) -> Tensor:
        """Cov(f, 1[arc])."""
        return PlainKernels().covariance(scores, lengths, f, trees)

    def argmax(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
        """Heads (B, N+1)."""
        if trees.projective and len(scores) > 0:
            return viterbi.best_heads(scores, lengths, trees.single_root)
        return PlainKernels().argmax(scores, lengths, trees)


def _log_partition_plainly(scores: Tensor, lengths: Tensor, trees: TreeClass) -> tuple[Tensor]:
    return (PlainKernels().log_partition(scores, lengths, trees),)


def _tiers(quantity: str, scores: Tensor, trees: TreeClass) -> list[Tier]:
    batch, nodes = scores.shape[:2]
    if batch == 0 or nodes == 1:
        return []
    if trees.projective:
        return [partial(getattr(eisner, quantity), single_root=trees.single_root)]
    kernel = partial(getattr(escape_walks, quantity), single_root=trees.single_root)
    numbers = [torch.float64] if scores.dtype == torch.float64 else [torch.float32, torch.float64]
    return [partial(kernel, numbers=dtype) for dtype in numbers if nodes - 1 <= escape_walks.MOST_WORDS[dtype]]


def _in_turn(tiers: list[Tier], scores: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    """What the first can do, and the rest by the others."""
    first, *others = tiers
    if not others:
        return first(scores, lengths)
    *results, left = first(scores, lengths)
    rest = left.nonzero().squeeze(1)
    if len(rest):
        for result, part in zip(results, _in_turn(others, scores[rest], lengths[rest]), strict=True):
            result[rest] = part
    return tuple(results)
