"""Sums over projective trees for scores of any size: Eisner's spans (`span_chart`) on `exact_numbers`.

Inside and outside in their plainest form; the mass of an arc is outside times inside. Only scores far beyond the
ordinary come here (`any_scale`). O(n^3) operations on numbers, O(n^2) numbers of memory.
"""

from __future__ import annotations

import numpy as np

from headway.inference.exact_numbers import Numbers, add, add_product, copy, multiply, set_one, set_zero, zeros
from headway.inference.jit import part


@part
def spans(
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
    c, arc, q = zeros(n + 1, n + 1, limbs), zeros(n + 1, n + 1, limbs), zeros(n + 1, n + 1, limbs)
    first = 1 if single_root else 0
    work = zeros(1, 1, limbs)
    _inside(weights, n, first, unit, entropic, c, arc, q, work)
    if single_root:
        set_zero(total, 0, 0)
        for m in range(1, n + 1):
            multiply(work, 0, 0, c, m, 1, c, m, n)
            multiply(work, 0, 0, work, 0, 0, weights, 0, m)
            add(total, 0, 0, work, 0, 0, unit, entropic)
    else:
        copy(total, 0, 0, c, 0, n)
    if total.rest[0, 0] == -np.inf:
        return False
    if mass is not None:
        _outside(weights, n, first, unit, entropic, c, arc, q, work, mass)
    return True


@part
def _inside(
    weights: Numbers,
    n: int,
    first: int,
    unit: int,
    entropic: bool,
    c: Numbers,
    arc: Numbers,
    q: Numbers,
    work: Numbers,
) -> None:
    for i in range(first, n + 1):
        set_one(c, i, i)
    for width in range(1, n + 1 - first):
        for i in range(first, n + 1 - width):
            j = i + width
            for k in range(i, j):
                add_product(q, i, j, c, i, k, c, j, k + 1, unit, entropic, work)
            multiply(arc, i, j, weights, i, j, q, i, j)
            for k in range(i + 1, j + 1):
                add_product(c, i, j, arc, i, k, c, k, j, unit, entropic, work)
            if i == 0:
                continue
            multiply(arc, j, i, weights, j, i, q, i, j)
            for k in range(i, j):
                add_product(c, j, i, arc, j, k, c, k, i, unit, entropic, work)


@part
def _outside(
    weights: Numbers,
    n: int,
    first: int,
    unit: int,
    entropic: bool,
    c: Numbers,
    arc: Numbers,
    q: Numbers,
    work: Numbers,
    mass: Numbers,
) -> None:
    """The items above each item (`out_*`), from the widest down."""
    limbs = weights.whole.shape[2]
    out_c, out_arc, out_q = zeros(n + 1, n + 1, limbs), zeros(n + 1, n + 1, limbs), zeros(n + 1, n + 1, limbs)
    if first == 0:
        set_one(out_c, 0, n)
    else:
        for m in range(1, n + 1):
            add_product(out_c, m, 1, weights, 0, m, c, m, n, unit, entropic, work)
            add_product(out_c, m, n, weights, 0, m, c, m, 1, unit, entropic, work)
            multiply(mass, 0, m, c, m, 1, c, m, n)
            multiply(mass, 0, m, mass, 0, m, weights, 0, m)
    for width in range(n - first, 0, -1):
        for i in range(first, n + 1 - width):
            j = i + width
            for h, e in ((i, j), (j, i)):
                if h == j and i == 0:
                    continue
                step = 1 if e > h else -1
                for k in range(h + step, e + step, step):
                    add_product(out_arc, h, k, out_c, h, e, c, k, e, unit, entropic, work)
                    add_product(out_c, k, e, out_c, h, e, arc, h, k, unit, entropic, work)
            for h, e in ((i, j), (j, i)):
                if h == j and i == 0:
                    continue
                # All wider spans are done, and so are those of this width that begin with this arc.
                multiply(mass, h, e, out_arc, h, e, arc, h, e)
                add_product(out_q, i, j, out_arc, h, e, weights, h, e, unit, entropic, work)
            for k in range(i, j):
                add_product(out_c, i, k, out_q, i, j, c, j, k + 1, unit, entropic, work)
                add_product(out_c, j, k + 1, out_q, i, j, c, i, k, unit, entropic, work)
