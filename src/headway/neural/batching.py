"""Annotated sentences as a network is trained on them, in batches of like sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.arrays import Ints
from headway.errors import TrainingError
from headway.neural.reading import Reading, groups_by_size

T = TypeVar("T")


@dataclass(frozen=True)
class Annotated:
    """Sentences as the network reads them, their heads (S, N+1), and the number of every word's value for each task."""

    reading: Reading
    heads: NDArray[np.int64]
    targets: Mapping[str, NDArray[np.signedinteger[Any]]]

    @property
    def words(self) -> int:
        return int(self.reading.lengths.sum())


@dataclass(frozen=True)
class Batch:
    """Some of them, on a device."""

    inputs: dict[str, Tensor]
    lengths: Tensor
    heads: Tensor
    targets: dict[str, Tensor]


def batch_of(data: Annotated, which: Ints, device: torch.device) -> Batch:
    """Some sentences as tensors."""
    nodes = int(data.reading.lengths[which].max(initial=0)) + 1
    arrays = [
        data.reading.lengths[which],
        data.heads[which, :nodes],
        *(inputs := data.reading.batch(which)).values(),
        *(target[which, :nodes] for target in data.targets.values()),
    ]
    lengths, heads, *others = _sent(arrays, device)
    read, targets = others[: len(inputs)], others[len(inputs) :]
    return Batch(dict(zip(inputs, read, strict=True)), lengths, heads, dict(zip(data.targets, targets, strict=True)))


def _sent(arrays: Sequence[NDArray[np.signedinteger[Any]]], device: torch.device) -> list[Tensor]:
    """All arrays on a device, in the widest of their types; they go there together, as there may be dozens."""
    together = torch.from_numpy(np.concatenate([array.ravel() for array in arrays]))
    if device.type == "cuda":
        together = together.pin_memory().to(device, non_blocking=True)
    parts = together.split([array.size for array in arrays])
    return [part.view(array.shape) for part, array in zip(parts, arrays, strict=True)]


def batches(sizes: Ints, most: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Every sentence's position once, in batches that have about `most` cells with padding, which come in any order.
    Sentences of nearly the same size are mixed."""
    noise = rng.uniform(-0.1, 0.1, len(sizes)) * sizes + rng.uniform(0, 1, len(sizes))
    found = list(groups_by_size(sizes, most, np.argsort(sizes + noise, kind="stable")))
    yield from (found[place] for place in rng.permutation(len(found)))


def as_many_as_fit(compute: Callable[[int], T], most: int) -> T:
    """What `compute` finds in batches of `most` cells, or of fewer where the GPU has too little memory for those."""
    while True:
        try:
            return compute(most)
        except torch.OutOfMemoryError:
            if most == 1:
                raise one_too_large() from None
        most //= 2
        torch.cuda.empty_cache()


def one_too_large() -> TrainingError:
    """The error that remains when every sentence is a batch."""
    return TrainingError(
        "one sentence does not fit the GPU's memory; train with --device cpu, or leave very long sentences out"
    )
