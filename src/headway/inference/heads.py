"""Trees as arrays of heads: checking what users hand in, and which class a tree belongs to."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Ints, TreeClass
from headway.errors import HeadsError
from headway.inference.batch import as_array
from headway.inference.jit import kernel, part


def as_heads(heads: ArrayLike, n: int) -> Ints:
    """An int64 array (n+1,) with a head 0..n for every word; anything else is an error that names the word."""
    array = as_array(heads, "heads", HeadsError)
    if array.dtype.kind not in "iu":
        raise HeadsError(f"heads have dtype {array.dtype}; expected integers")
    if array.shape != (n + 1,):
        raise HeadsError(f"heads have shape {array.shape}; expected ({n + 1},): one head per word after heads[0] == -1")
    array = array.astype(np.int64)
    outside = np.flatnonzero((array[1:] < 0) | (array[1:] > n)) + 1
    if array[0] != -1 or outside.size:
        m = int(outside[0]) if array[0] == -1 else 0
        raise HeadsError(f"heads[{m}] is {array[m]}; expected {'-1' if m == 0 else f'0 (the root) to {n}'}")
    return array


def is_in_class(heads: Ints, trees: TreeClass) -> bool:
    """Is this choice of heads a tree, of the class?"""
    return bool(_is_in_class(heads, *trees))


@kernel
def _is_in_class(heads: Ints, projective: bool, single_root: bool) -> bool:
    return tree_in_class(heads, projective, single_root, np.empty(len(heads), np.int64))


@part
def tree_in_class(heads: Ints, projective: bool, single_root: bool, mark: Ints) -> bool:
    """Whether every word reaches the root, and the tree is of the class; `mark` (n+1,) is workspace."""
    n = heads.shape[0] - 1
    if single_root and n > 0 and np.sum(heads[1:] == 0) != 1:
        return False
    mark[:] = 0
    mark[0] = -1  # reaches the root
    for m in range(1, n + 1):
        word = m
        while mark[word] == 0:
            mark[word] = m
            word = heads[word]
        if mark[word] == m:
            return False
        word = m
        while mark[word] == m:
            mark[word] = -1
            word = heads[word]
    if not projective:
        return True
    # In a tree, arcs that do not cross (the root standing left of all) are exactly what projectivity asks for.
    for m in range(1, n + 1):
        low, high = min(m, heads[m]), max(m, heads[m])
        for k in range(low + 1, high):
            if heads[k] < low or heads[k] > high:
                return False
    return True
