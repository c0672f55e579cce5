"""Who computes: the four quantities behind every operator, and which implementation serves which tensors.

Tensors are on one device, contiguous, float32 or float64: scores (B, N+1, N+1), lengths (B,) int64. A kernel checks
nothing and raises nothing. Where a sentence has no tree, log Z is -inf, marginals are zero and heads -1.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from headway.arrays import TreeClass
from headway.torch.plain_kernels import PlainKernels

_GPUS = ("cuda", "xpu")  # torch calls AMD's cuda, too


class Kernels(Protocol):
    """The quantities of a batch of sentences over one class of trees."""

    def log_partition(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
        """log Z (B,)."""
        ...

    def marginals(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> tuple[Tensor, Tensor]:
        """log Z (B,), and P(head -> modifier) shaped like the scores."""
        ...

    def covariance(self, scores: Tensor, lengths: Tensor, f: Tensor, trees: TreeClass) -> Tensor:
        """Cov(f, 1[arc]) shaped like the scores; f may hold anything where there is no arc."""
        ...

    def argmax(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
        """Heads (B, N+1) int64 of the best trees, padding -1."""
        ...


class Begun(Protocol):
    """log Z of a batch, and how far its marginals have got."""

    @property
    def log_z(self) -> Tensor:
        """log Z (B,)."""
        ...

    def marginals(self) -> Tensor:
        """The marginals, to the bits that `Kernels.marginals` gives. What was kept is used up."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """Kernels whose marginals can go on from log Z."""

    def begin(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Begun:
        """log Z (B,), and what its marginals can go on from."""
        ...


def kernels_for(scores: Tensor) -> Kernels:
    """The fastest implementation at hand for a tensor's device."""
    if scores.device.type == "cpu":
        return _numba_kernels() or PlainKernels()
    if scores.device.type in _GPUS:
        return _cuda_kernels(scores.device) or _triton_kernels(scores.device) or PlainKernels()
    return PlainKernels()


@cache
def _numba_kernels() -> Kernels | None:
    try:
        from headway.torch.numba_kernels import NumbaKernels
    except ImportError:
        return None
    return NumbaKernels()


@cache
def _cuda_kernels(device: torch.device) -> Kernels | None:
    """Fused kernels, if there are some for this device."""
    if device.type != "cuda":
        return None
    try:
        module = import_module("headway.torch.cuda.cuda_kernels")
    except ImportError:
        return None
    kernels: Kernels | None = module.kernels_on(device.index)
    return kernels


@cache
def _triton_kernels(device: torch.device) -> Kernels | None:
    """What serves other GPUs, if Triton is there and works."""
    try:
        module = import_module("headway.torch.triton.triton_kernels")
    except ImportError:
        return None
    kernels: Kernels | None = module.kernels_on(device)
    return kernels
