"""Every tree over up to seven words and the parts it has, as tables: the best tree of a class is one sum over rows.

Nothing is shared with the library. A part is a cell of a dense array: arcs [h, m], siblings [h, s, m] with s = h before
the first child and m = h after the last, grandparents [g, h, m], grand_siblings [g, h, s, m]. A table has a row for
each tree and a column for each place a part may have; the cell after the array's last stands for "no part here".
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

KINDS = ("arcs", "siblings", "grandparents", "grand_siblings")


@cache
def trees(n: int, projective: bool, single_root: bool) -> Ints:
    """(T, n+1) heads of all trees of a class, heads[:, 0] == 0."""
    heads: Ints = np.indices((n + 1,) * n).reshape(n, -1).T
    heads = np.concatenate([np.zeros((len(heads), 1), np.int64), heads], axis=1)
    if single_root:
        heads = heads[(heads[:, 1:] == 0).sum(1) == 1]
    above = heads
    for _ in range(n):  # n + 1 steps up lead to the root, or round a cycle
        above = np.take_along_axis(heads, above, axis=1)
    heads = heads[(above == 0).all(1)]
    if projective:
        heads = heads[_projective(heads)]
    return heads


def best_score(dense: dict[str, Floats], projective: bool, single_root: bool) -> tuple[float, Ints]:
    """The score of the best tree under dense parts, and its heads; -inf if every tree has a forbidden part."""
    n = len(dense["arcs"]) - 1
    found = trees(n, projective, single_root)
    total = np.zeros(len(found))
    for kind, scores in dense.items():
        cells = np.append(scores.ravel(), 0.0)
        for column in _cells(n, projective, single_root, kind):
            total += cells[column]
    best = int(total.argmax())
    return float(total[best]), found[best]


def parts_of(heads: Ints, kind: str) -> list[int]:
    """The cells of one tree's parts of a kind."""
    nothing = len(heads) ** _order(kind)
    return [int(column[0]) for column in _columns(heads[None], kind) if column[0] != nothing]


@cache
def _cells(n: int, projective: bool, single_root: bool, kind: str) -> NDArray[np.int16]:
    """(places, T) cells of the parts of every tree."""
    return np.array(_columns(trees(n, projective, single_root), kind), np.int16)


def _order(kind: str) -> int:
    return {"arcs": 2, "siblings": 3, "grandparents": 3, "grand_siblings": 4}[kind]


def _columns(heads: Ints, kind: str) -> list[Ints]:
    """For each place of a part, the cells of all trees."""
    size = heads.shape[1]
    nothing = size ** _order(kind)
    columns = []
    for m in range(1, size):
        h = heads[:, m]
        g = np.take_along_axis(heads, h[:, None], axis=1)[:, 0]
        s = _before(heads, m)
        if kind == "arcs":
            columns.append(h * size + m)
        elif kind == "siblings":
            columns.append((h * size + s) * size + m)
        elif kind == "grandparents":
            columns.append(np.where(h > 0, (g * size + h) * size + m, nothing))
        else:
            columns.append(np.where(h > 0, ((g * size + h) * size + s) * size + m, nothing))
    if kind in ("siblings", "grand_siblings"):
        columns += [_ends(heads, h, side, kind, nothing) for h in range(size) for side in (-1, 1)]
    return columns


def _before(heads: Ints, m: int) -> Ints:
    """The sibling between m and its head that is nearest to m; the head itself if there is none."""
    h = heads[:, m]
    sibling = h.copy()
    for s in range(1, heads.shape[1]):
        between = (heads[:, s] == h) & (np.minimum(h, m) < s) & (s < np.maximum(h, m))
        sibling[between & (np.abs(s - m) < np.abs(sibling - m))] = s
    return sibling


def _ends(heads: Ints, h: int, side: int, kind: str, nothing: int) -> Ints:
    """The part of the last child of h on a side and the end there."""
    size = heads.shape[1]
    last = np.full(len(heads), -1)
    for m in range(1, size):
        beyond = (heads[:, m] == h) & ((m - h) * side > 0) & ((last < 0) | ((m - last) * side > 0))
        last[beyond] = m
    if kind == "siblings":
        return np.where(last > 0, (h * size + last) * size + h, nothing)
    if h == 0:
        return np.full(len(heads), nothing)
    return np.where(last > 0, ((heads[:, h] * size + h) * size + last) * size + h, nothing)


def _projective(heads: Ints) -> NDArray[np.bool_]:
    """Whether no word strictly inside an arc has its head strictly outside, or the other way round."""
    size = heads.shape[1]
    fine = np.ones(len(heads), np.bool_)
    for m in range(1, size):
        low, high = np.minimum(heads[:, m], m), np.maximum(heads[:, m], m)
        for k in range(1, size):
            inside = (low < k) & (k < high)
            outside = (heads[:, k] < low) | (heads[:, k] > high)
            fine &= ~(inside & outside)
    return fine
