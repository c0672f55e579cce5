"""Arrays that start with a cache line. numpy's need not, and vectors that lie across two lines are loaded slowly."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_LINE = 64  # bytes
# For fewer bytes, aligning takes as long as it saves.
_SMALL = 2**16


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array that nothing has been written to; small ones start anywhere.

    >>> aligned_empty((200, 300), np.float32).__array_interface__["data"][0] % 64
    0
    """
    count = prod(shape) * np.dtype(dtype).itemsize
    if count < _SMALL:
        return np.empty(shape, dtype)
    room = np.empty(count + _LINE, np.uint8)
    start = -room.__array_interface__["data"][0] % _LINE
    return room[start : start + count].view(dtype).reshape(shape)
