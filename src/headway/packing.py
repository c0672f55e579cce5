"""Weights in few bytes: the smallest are dropped, each of the others is rounded to one byte.

A packed vector of N weights is three small arrays: a bit for every weight that says whether it is there (N / 8 bytes),
a byte for every one that is, and two numbers. The byte holds the sign and k of

    |w| = low * ratio^k,   k = 0 .. 126

so that every weight is right to within ratio^(1/2), a few per cent, whether it is large or small. What is dropped are
the smallest weights, as long as they sum to no more than a given share of all absolute weights: the same share for
every vector of a model, found by bisection so that the file has the size asked for.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.archive import Archive
from headway.errors import ArgumentError, TrainingError
from headway.saved_values import numbers_in_range

Weights = NDArray[np.floating[Any]]
Arrays = dict[str, NDArray[Any]]

_LEVELS = 127
_SIGN = 128
_MOST_DROPPED = 0.6  # of the sum of absolute weights: beyond that, too little is left of a model
_PARTS = ("there", "bytes", "range")
_MEMBERS = 20_000  # bytes that the zip file's own tables take, at most


def pack_all(vectors: Mapping[str, Weights], most_bytes: float) -> Arrays:
    """Pack some vectors into no more than so many bytes together, dropping as little as that takes."""
    profiles = {name: _Profile(weights) for name, weights in vectors.items()}
    dropped, more = 0.0, _MOST_DROPPED
    if sum(profile.size(more) for profile in profiles.values()) > most_bytes:
        raise TrainingError("the model would lose too many weights in so small a file; ask for more megabytes")
    if sum(profile.size(0.0) for profile in profiles.values()) <= most_bytes:
        more = 0.0
    while more - dropped > 1e-4:
        middle = (dropped + more) / 2
        if sum(profile.size(middle) for profile in profiles.values()) <= most_bytes:
            more = middle
        else:
            dropped = middle
    packed: Arrays = {}
    for name, weights in vectors.items():
        packed |= {f"{name}.{part}": array for part, array in pack(weights, profiles[name].least(more)).items()}
    return packed


class _Profile:
    """The absolute weights of a vector in order, and their running sums."""

    def __init__(self, weights: Weights) -> None:
        self._length = len(weights)
        self._sorted = np.sort(np.abs(weights[weights != 0]))
        self._sums = np.cumsum(self._sorted, dtype=np.float64)

    def _first(self, dropped: float) -> int:
        """Of weights of the same size, all stay or none does."""
        if not len(self._sums):
            return 0
        first = int(np.searchsorted(self._sums, dropped * self._sums[-1], "right"))
        return int(np.searchsorted(self._sorted, self._sorted[first])) if first < len(self._sorted) else first

    def least(self, dropped: float) -> float:
        """The smallest weight that stays when this share of the sum is dropped."""
        first = self._first(dropped)
        return float(self._sorted[first]) if first < len(self._sorted) else np.inf

    def size(self, dropped: float) -> int:
        """Bytes when this share of the sum is dropped."""
        return len(self._sorted) - self._first(dropped) + self._length // 8 + 300


def pack(weights: Weights, least: float) -> Arrays:
    """The weights of at least this size, one array per part (see the module's docstring)."""
    size = np.abs(weights)
    there = (size >= least) & (size > 0)
    kept = size[there].astype(np.float64)
    low, high = (float(kept.min()), float(kept.max())) if len(kept) else (1.0, 1.0)
    ratio = (high / low) ** (1 / (_LEVELS - 1))
    levels = np.round(np.log(kept / low) / np.log(ratio)) if ratio > 1 else np.zeros(len(kept))
    codes = levels.astype(np.uint8) | np.where(weights[there] < 0, _SIGN, 0).astype(np.uint8)
    return {"there": np.packbits(there), "bytes": codes, "range": np.array([low, ratio])}


def is_packed(arrays: Mapping[str, NDArray[Any]], name: str) -> bool:
    """Whether the vector of this name is there in packed form."""
    return f"{name}.{_PARTS[0]}" in arrays


def unpack(arrays: Mapping[str, NDArray[Any]], name: str, size: int) -> NDArray[np.float32]:
    """The vector of this name and length; a ValueError where its parts do not fit."""
    there, codes, bounds = (arrays[f"{name}.{part}"] for part in _PARTS)
    if there.dtype != np.uint8 or codes.dtype != np.uint8 or bounds.dtype != np.float64 or bounds.shape != (2,):
        raise ValueError("the packed weights are not packed as they are saved")
    low, ratio = bounds.tolist()
    if there.shape != (-(-size // 8),) or codes.ndim != 1:
        raise ValueError("the packed weights do not fit the templates")
    with np.errstate(over="ignore", invalid="ignore"):  # a damaged range; no byte of a whole one reaches the last value
        value = np.float64(low) * np.float64(ratio) ** np.arange(_LEVELS + 1)
        values = np.concatenate([value, -value]).astype(np.float32)
    mask = np.unpackbits(there, count=size).view(np.bool_)
    if np.count_nonzero(mask) != len(codes):
        raise ValueError("the packed weights are not as many as they say")
    weights = np.zeros(size, np.float32)
    weights[mask] = values[codes]
    return weights


def read_weights(arrays: Mapping[str, NDArray[Any]], name: str, size: int) -> Weights:
    """A vector of weights, packed or not, checked: compiled code indexes it without looking."""
    weights: Weights = unpack(arrays, name, size) if is_packed(arrays, name) else arrays[name]
    if weights.shape != (size,) or weights.dtype.kind != "f":
        raise ValueError("the weights do not fit the templates")
    numbers_in_range(weights, name)
    return weights


def packed(archive: Archive, max_megabytes: float) -> Archive:
    """The archive with its weights packed so that the file has no more than so many million bytes."""
    if not isinstance(max_megabytes, Real):
        raise ArgumentError(f"max_megabytes is {max_megabytes!r}; expected a number")
    vectors = {name: array for name, array in archive.arrays.items() if name.endswith("weights")}
    others = {name: array for name, array in archive.arrays.items() if name not in vectors}
    text = json.dumps(archive.data, ensure_ascii=False).encode()
    rest = _MEMBERS + sum(
        len(zlib.compress(content, 4)) for content in (text, *map(np.ndarray.tobytes, others.values()))
    )
    return Archive(archive.kind, archive.data, {**others, **pack_all(vectors, max_megabytes * 1e6 - rest)})
