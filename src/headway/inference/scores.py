"""Preparing scores: other people's layouts into ours, and required or forbidden arcs.

Every function returns a new array and leaves its input alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Floats
from headway.errors import ArcError, ShapeError
from headway.inference.batch import as_scores

Arc = tuple[int, int]


def from_modifier_head(scores: ArrayLike) -> Floats:
    """Scores (or a batch) indexed [modifier, head], root included, into [head, modifier].

    >>> from_modifier_head([[0, 0], [7, 0]])
    array([[0., 7.],
           [0., 0.]])
    """
    array = as_scores(scores)
    _require_square(array)
    return np.ascontiguousarray(np.swapaxes(array, -1, -2))


def from_root_on_diagonal(scores: ArrayLike) -> Floats:
    """Scores (n, n) (or a batch) over words alone, root scores on the diagonal, into [head, modifier] with root row 0.

    >>> from_root_on_diagonal([[5, 1], [2, 6]])
    array([[0., 5., 6.],
           [0., 0., 1.],
           [0., 2., 0.]])
    """
    array = as_scores(scores)
    _require_square(array)
    n = array.shape[-1]
    result = np.zeros((*array.shape[:-2], n + 1, n + 1))
    result[..., 1:, 1:] = array
    result[..., 0, 1:] = np.diagonal(array, axis1=-2, axis2=-1)
    result[..., np.arange(n + 1), np.arange(n + 1)] = 0.0
    return result


def require(scores: ArrayLike, arcs: Iterable[Arc]) -> Floats:
    """Forbid every other head of the words these arcs (head, modifier) go to.

    >>> require([[0, 1, 5], [0, 0, 4], [0, 9, 0]], [(1, 2)])
    array([[  0.,   1., -inf],
           [  0.,   0.,   4.],
           [  0.,   9., -inf]])
    """
    array = _one_sentence(scores)
    chosen: dict[int, int] = {}
    for h, m in checked_arcs(arcs, len(array) - 1):
        if chosen.setdefault(m, h) != h:
            raise ArcError(f"word {m} is required to have two heads, {chosen[m]} and {h}")
    result = array.copy()
    for m, h in chosen.items():
        result[:, m] = -np.inf
        result[h, m] = array[h, m]
    return result


def forbid(scores: ArrayLike, arcs: Iterable[Arc]) -> Floats:
    """Forbid these arcs (head, modifier).

    >>> forbid([[0, 1, 5], [0, 0, 4], [0, 9, 0]], [(1, 2), (0, 1)])
    array([[  0., -inf,   5.],
           [  0.,   0., -inf],
           [  0.,   9.,   0.]])
    """
    result = _one_sentence(scores).copy()
    for h, m in checked_arcs(arcs, len(result) - 1):
        result[h, m] = -np.inf
    return result


def checked_arcs(arcs: Iterable[Arc], n: int) -> list[Arc]:
    """The arcs as pairs of ints, or an error naming the one that no tree over n words can have."""
    try:
        pairs = [(index(h), index(m)) for h, m in arcs]
    except (TypeError, ValueError):
        raise ArcError("expected arcs as pairs of whole numbers, (head, modifier)") from None
    for h, m in pairs:
        if not (0 <= h <= n and 1 <= m <= n and h != m):
            raise ArcError(
                f"({h}, {m}) is not an arc of a sentence of {n} words: expected (head, modifier) with "
                f"head 0 (the root) to {n}, modifier 1 to {n}, and the two different"
            )
    return pairs


def _one_sentence(scores: ArrayLike) -> Floats:
    array = as_scores(scores)
    if array.ndim != 2:
        raise ShapeError(f"scores have shape {array.shape}; arcs are required or forbidden one sentence at a time")
    _require_square(array)
    return array


def _require_square(array: Floats) -> None:
    if array.ndim not in (2, 3) or array.shape[-1] != array.shape[-2]:
        raise ShapeError(f"scores have shape {array.shape}; expected a square matrix or a batch of them")
