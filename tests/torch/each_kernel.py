"""Distributions of `headway.torch` with one chosen implementation behind them, and as `headway.inference` spells them.

The contract of `tests/inference/test_contract.py` reads numpy arrays and floats; `AsArrays` gives it those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.torch import operators, sampling
from headway.torch.kernels import Kernels
from headway.torch.numba_kernels import NumbaKernels
from headway.torch.plain_kernels import PlainKernels

EACH = [pytest.param(NumbaKernels(), id="numba"), pytest.param(PlainKernels(), id="plain")]
each_kernel = pytest.mark.parametrize("kernels", EACH)


@contextmanager
def only(kernels: Kernels) -> Iterator[None]:
    """Every operator is computed by these."""
    with (
        mock.patch.object(operators, "kernels_for", return_value=kernels),
        mock.patch.object(sampling, "kernels_for", return_value=kernels),
    ):
        yield


class AsArrays:
    """A distribution of `headway.torch` that takes and returns arrays and floats."""

    def __init__(self, scores: NDArray[np.float64], kind: type[Any], kernels: Kernels, **options: Any) -> None:
        self._kernels = kernels
        self._distribution = kind(torch.as_tensor(scores), **options)

    def __getattr__(self, name: str) -> Any:
        with only(self._kernels):
            value = getattr(self._distribution, name)
        return self._calling(value) if callable(value) else _as_array(value)

    def sample(self, k: int, rng: int) -> Any:
        with only(self._kernels):
            return _as_array(self._distribution.sample(k, generator=torch.Generator().manual_seed(rng)))

    def _calling(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: NDArray[Any]) -> Any:
            with only(self._kernels):
                return _as_array(method(*(torch.as_tensor(argument) for argument in arguments)))

        return call


def _as_array(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_as_array, value))
    if not isinstance(value, Tensor):
        return value
    return value.item() if value.ndim == 0 else value.numpy()
