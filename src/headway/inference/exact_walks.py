"""Sums over non-projective trees for scores of any size: the elimination of `escape_walks` on `exact_numbers`.

`matrix_tree` has the method, `escape_walks` the formulas; here they stand once more in their plainest form, one word
and one arc at a time, since each step is dozens of operations on limbs anyway. Only scores far beyond the ordinary
come here (`any_scale`). O(n^3) operations on numbers, O(n^2) numbers of memory.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Bools, Floats, Ints
from headway.inference.exact_numbers import (
    Numbers,
    add,
    add_product,
    copy,
    divide,
    multiply,
    set_one,
    set_zero,
    zeros,
)
from headway.inference.jit import part
from headway.inference.walk_weights import find_core


@part
def walks(
    scores: Floats,
    weights: Numbers,
    n: int,
    single_root: bool,
    unit: int,
    entropic: bool,
    total: Numbers,
    mass: Numbers | None,
) -> bool:
    """total[0, 0] = Z; mass[h, m] in proportion to P(h -> m) for every m, if wanted; False if there is no tree."""
    limbs = weights.whole.shape[2]
    words, core = np.empty(n + 1, np.int64), np.empty(n + 1, np.bool_)
    if not find_core(scores, n, single_root, words, core):
        return False
    if single_root:
        for m in range(1, n + 1):
            if not core[m]:
                set_zero(weights, 0, m)
    set_one(total, 0, 0)
    for inside in (True, False):
        group = np.array([m for m in range(1, n + 1) if core[m] == inside])
        if len(group) == 0:
            continue
        multi_root = not (single_root and inside)
        table = _load(weights, n, group, core, inside, unit, entropic)
        everything = _reordered(table, np.arange(len(group)))
        _eliminate(everything, len(group), 1, multi_root, unit, entropic, total)
        multiply(total, 0, 0, total, 0, 0, everything, 0, 0)
        if mass is not None:
            escapes = zeros(len(group), len(group), limbs)
            _escape(table, np.arange(len(group)), multi_root, unit, entropic, escapes)
            _collect(weights, n, group, core, inside, escapes, mass)
    return bool(total.rest[0, 0] > -np.inf)


@part
def _load(weights: Numbers, n: int, group: Ints, core: Bools, inside: bool, unit: int, entropic: bool) -> Numbers:
    """[i, 1 + j]: weight of the arc group[j] -> group[i]; column 0: of the root (for the rest, the core)."""
    size = len(group)
    table = zeros(size, size + 1, weights.whole.shape[2])
    for i in range(size):
        copy(table, i, 0, weights, 0, group[i])
        for j in range(size):
            copy(table, i, 1 + j, weights, group[j], group[i])
        if not inside:
            for h in range(1, n + 1):
                if core[h]:
                    add(table, i, 0, weights, h, group[i], unit, entropic)
    return table


@part
def _reordered(table: Numbers, order: Ints) -> Numbers:
    """A copy with the words in this order."""
    size = len(order)
    result = zeros(size, size + 1, table.whole.shape[2])
    for i in range(size):
        copy(result, i, 0, table, order[i], 0)
        for j in range(size):
            copy(result, i, 1 + j, table, order[i], 1 + order[j])
    return result


@part
def _eliminate(
    table: Numbers, size: int, keep: int, multi_root: bool, unit: int, entropic: bool, product: Numbers
) -> None:
    """Eliminate words size-1 .. keep; row k is left as p_k, and product[0, 0] is multiplied by every d_k."""
    pivot, work = zeros(1, 1, table.whole.shape[2]), zeros(1, 1, table.whole.shape[2])
    for k in range(size - 1, keep - 1, -1):
        set_zero(pivot, 0, 0)
        for j in range(0 if multi_root else 1, k + 1):
            add(pivot, 0, 0, table, k, j, unit, entropic)
        multiply(product, 0, 0, product, 0, 0, pivot, 0, 0)
        for j in range(k + 1):
            divide(table, k, j, pivot, 0, 0)
        for i in range(k):
            for j in range(k + 1):
                if j != i + 1:
                    add_product(table, i, j, table, i, k + 1, table, k, j, unit, entropic, work)


@part
def _escape(table: Numbers, words: Ints, multi_root: bool, unit: int, entropic: bool, escapes: Numbers) -> None:
    """Fill escapes[h, m] for all pairs of `words`, the rows of `table`: for each half, the other is eliminated."""
    size = len(words)
    if size == 1:
        return
    half = size // 2
    limbs = table.whole.shape[2]
    ignored, work, escape = zeros(1, 1, limbs), zeros(1, 1, limbs), zeros(1, 1, limbs)
    for left in (True, False):
        order = np.arange(size) if left else np.concatenate((np.arange(half, size), np.arange(half)))
        keep = half if left else size - half
        smaller = _reordered(table, order)
        _eliminate(smaller, size, keep, multi_root, unit, entropic, ignored)
        _escape(_reordered(smaller, np.arange(keep)), words[order[:keep]], multi_root, unit, entropic, escapes)
        for k in range(keep, size):
            for c in range(keep):
                m = words[order[c]]
                copy(escape, 0, 0, smaller, k, 0)
                for j in range(k):
                    add_product(escape, 0, 0, smaller, k, 1 + j, escapes, words[order[j]], m, unit, entropic, work)
                copy(escapes, words[order[k]], m, escape, 0, 0)


@part
def _collect(weights: Numbers, n: int, group: Ints, core: Bools, inside: bool, escapes: Numbers, mass: Numbers) -> None:
    """mass[h, m] = w[h, m] E[h, m] for the words m of a group; a head outside the group has escaped already."""
    place = np.full(n + 1, -1, np.int64)
    for i in range(len(group)):
        place[group[i]] = i
    for i in range(len(group)):
        m = group[i]
        copy(mass, 0, m, weights, 0, m)
        for h in range(1, n + 1):
            if h == m:
                continue
            if place[h] < 0:
                copy(mass, h, m, weights, h, m)
            else:
                multiply(mass, h, m, weights, h, m, escapes, place[h], i)
