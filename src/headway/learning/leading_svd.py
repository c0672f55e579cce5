"""The leading singular values and vectors of a dense matrix: Golub-Kahan-Lanczos, or LAPACK where that costs no more.

From a vector v_1, each step makes P V = U B and P^T U = V B^T + beta v e^T longer by one column of U and one of V, with
B upper bidiagonal; the leading singular values of B soon are those of P. After j steps, the i-th has a residual of beta
times the last entry of its left vector in B, and is taken when that is rounding. Only V is kept orthogonal explicitly;
U then is orthogonal to rounding times the condition of B (Simon and Zha 2000, "Low-rank matrix approximation using the
Lanczos bidiagonalization process with applications"). A step costs two products with P, in one pass over its rows, and
O(steps columns): O(k rows columns) in all.

Where the rank of P is exhausted, beta vanishes, and B has all singular values that are not zero, but a multiple one
only once. Therefore some steps of the power method look at what is left of P; if anything there is larger than the
smallest singular value found, or if there was no convergence, LAPACK computes all.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Floats
from headway.inference.jit import part

_RANK = 1e-9  # singular values below this share of the first are rounding
_RESIDUAL = 1e-12  # of what is converged, as a share of the first singular value
_NOTHING = 1e-14  # a vector of this share of the first singular value is rounding
_DENSE = 24  # rows or columns beyond 2 k up to which LAPACK is the faster one
_FIRST, _MORE, _MOST = 8, 8, 48  # steps beyond 2 k until the first look at B, then from look to look, and at most
_LOOKS = 6  # steps of the power method
_SURPLUS = 1e-6  # by how much it must find more, relatively, for something to have been missed


@part
def leading_svd(p: Floats, most: int) -> tuple[Floats, Floats, Floats]:
    """U (rows, k), S (k,), V (columns, k) of the k <= most largest singular values that are not zero."""
    if min(p.shape) > 2 * most + _DENSE:
        u, s, v = _lanczos(p, most)
        if len(s) > 0 and not _is_more(p, v, s[most - 1]):
            return u.T.copy(), s, v.T.copy()
    all_u, all_s, all_vt = np.linalg.svd(p, False)
    rank = 0
    while rank < min(most, len(all_s)) and all_s[rank] > _RANK * all_s[0]:
        rank += 1
    own_u, own_v = np.empty((p.shape[0], rank)), np.empty((p.shape[1], rank))
    for q in range(rank):
        own_u[:, q] = all_u[:, q]
        own_v[:, q] = all_vt[q]
    return own_u, all_s[:rank].copy(), own_v


@part
def _lanczos(p: Floats, most: int) -> tuple[Floats, Floats, Floats]:
    """U^T (most, rows), S (most,), V^T (most, columns); all empty where there was no convergence."""
    rows, columns = p.shape
    steps, look = min(rows, columns, 2 * most + _MOST), 2 * most + _FIRST
    left, right = np.empty((steps, rows)), np.empty((steps + 1, columns))
    b = np.zeros((steps, steps))
    none = np.empty((0, 0)), np.empty(0), np.empty((0, 0))
    _fill(left[0], 1)
    right[0] = np.dot(left[0], p)  # nothing of it is lost in products with P, so that beta is what vanishes in the end
    norm = np.sqrt(np.dot(right[0], right[0]))
    if norm == 0.0:
        return none
    right[0] /= norm
    beta, largest = 0.0, 0.0
    for j in range(steps):
        u, v, w = left[j], right[j], right[j + 1]
        _both_products(p, v, beta, left[j - 1], u, w)
        alpha = np.sqrt(np.dot(u, u))
        largest = max(largest, alpha)
        if alpha <= _NOTHING * largest:
            return none
        for i in range(rows):
            u[i] /= alpha
        for i in range(columns):
            w[i] = w[i] / alpha - alpha * v[i]
        beta = _orthogonal(right[: j + 1], w)
        b[j, j] = alpha
        is_last = j + 1 == steps or beta <= _NOTHING * largest
        if not is_last:
            b[j, j + 1] = beta
            for i in range(columns):
                w[i] /= beta
            if j + 1 != look:
                continue
        if j + 1 < most:
            return none
        look += _MORE
        x, s, yt = np.linalg.svd(b[: j + 1, : j + 1].copy())
        worst = 0.0
        for i in range(most):
            worst = max(worst, beta * abs(x[j, i]))
        if worst <= _RESIDUAL * s[0]:
            if s[most - 1] <= _RANK * s[0]:
                return none
            leading_x, leading_y = x[:, :most].T.copy(), yt[:most].copy()
            return np.dot(leading_x, left[: j + 1]), s[:most].copy(), np.dot(leading_y, right[: j + 1])
        if is_last:
            break
    return none


@part
def _both_products(p: Floats, v: Floats, beta: float, before: Floats, u: Floats, w: Floats) -> None:
    """u = P v - beta before, and w = P^T u, while a row of P is at hand."""
    w[:] = 0.0
    for i in range(p.shape[0]):
        row = p[i]
        value = 0.0
        for c in range(len(row)):
            value += row[c] * v[c]
        if beta != 0.0:
            value -= beta * before[i]
        u[i] = value
        for c in range(len(row)):
            w[c] += value * row[c]


@part
def _orthogonal(basis: Floats, w: Floats) -> float:
    """The norm of w after its part in the span of an orthonormal basis is taken away, again if that was most of it."""
    norm = np.sqrt(np.dot(w, w))
    while True:
        for i in range(len(basis)):
            row = basis[i]
            value = 0.0
            for c in range(len(w)):
                value += row[c] * w[c]
            for c in range(len(w)):
                w[c] -= value * row[c]
        before, norm = norm, np.sqrt(np.dot(w, w))
        if not norm <= 0.7 * before or norm == 0.0:  # nan ends it, too
            return float(norm)


@part
def _is_more(p: Floats, vt: Floats, least: float) -> bool:
    """Whether P, without its products with some right singular vectors, is seen to have norm above `least`."""
    x, y, u = np.empty(p.shape[1]), np.empty(p.shape[1]), np.empty(p.shape[0])
    _fill(x, 2)
    for _ in range(_LOOKS):
        norm = _orthogonal(vt, x)
        if norm == 0.0:
            return False
        x /= norm
        _both_products(p, x, 0.0, u, u, y)
        x[:] = y
    return bool(np.sqrt(np.dot(u, u)) > (1 + _SURPLUS) * least)


@part
def _fill(x: Floats, seed: int) -> None:
    """Numbers without pattern between -1/2 and 1/2, always the same."""
    state = seed
    for i in range(len(x)):
        state = (state * 1103515245 + 12345) % 2147483648
        x[i] = state / 2147483648 - 0.5
