"""Positive numbers whose logarithms may be of any size: exp(whole + rest), with `whole` exact.

A float64 of 1e15 has no room for the digits that tell two trees apart. Here the large part of a logarithm is a sum of
scores, which is kept exactly: as an integer multiple of 2^unit in limbs of 32 bits, enough of them for the largest
and the smallest score of the sentence (three for ordinary ones beside a mask of -1e9, 68 from 1e300 to the subnormal
numbers). What sums add to it, `rest`, is the logarithm of a ratio of counts and small. So

    product   whole + whole,  rest + rest
    quotient  whole - whole,  rest - rest
    sum       the larger term's whole;  its rest + log(1 + exp(d)),  d <= 0 the difference of the two logarithms

and no operation loses more than the last bits of `rest`, whatever the magnitudes: only differences are ever rounded.

`mean` follows every number and is one of two things. For a direction f of the scores it is the derivative of the
logarithm, a mean of f (first-order expectation semiring, Li and Eisner 2009). With `entropic`, it is the logarithm
less the mean of the scores: the entropy of a sum whose terms have been drawn in proportion. A product adds either of
them, a sum averages them, and the second also gains the entropy of the choice between the two terms.

Shapes: `whole` (rows, columns, limbs), lowest limb first, normalised: limbs in [0, 2^32), the last one signed; `rest`
and `mean` (rows, columns); a zero has rest -inf.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from headway.arrays import Floats, Ints
from headway.inference.jit import part

_BITS = 32
_MASK = (1 << _BITS) - 1
_MANTISSA = 53
# exp of anything less is zero.
_LOG_SMALLEST = -746.0
# Below this a limb more can be appended without leaving int64.
_ROOM = 1 << 30


class Numbers(NamedTuple):
    """A table of numbers exp(whole * 2^unit + rest), each with its mean."""

    whole: Ints
    rest: Floats
    mean: Floats


@part
def zeros(rows: int, columns: int, limbs: int) -> Numbers:
    """A table of zeros."""
    return Numbers(
        np.zeros((rows, columns, limbs), np.int64), np.full((rows, columns), -np.inf), np.zeros((rows, columns))
    )


@part
def limbs_and_unit(scores: Floats, residual: Floats, n: int) -> tuple[int, int]:
    """How many limbs the scores of a sentence take, and the exponent of their lowest bit."""
    low, high = 0, 1
    for h in range(n + 1):
        for m in range(1, n + 1):
            if h == m or scores[h, m] == -np.inf:
                continue
            for x in (scores[h, m], residual[h, m]):
                if x != 0.0:
                    exponent = math.frexp(x)[1]
                    low, high = min(low, exponent), max(high, exponent)
    return (high - low) // _BITS + 3, low - _MANTISSA


@part
def set_score(to: Numbers, i: int, j: int, score: float, residual: float, mean: float, unit: int) -> None:
    """to[i, j] = exp(score + residual)."""
    to.whole[i, j] = 0
    to.rest[i, j] = 0.0 if score > -np.inf else -np.inf
    to.mean[i, j] = mean
    if score > -np.inf:
        _add_float(to, i, j, score, unit)
        _add_float(to, i, j, residual, unit)


@part
def _add_float(to: Numbers, i: int, j: int, x: float, unit: int) -> None:
    if x == 0.0:
        return
    fraction, exponent = math.frexp(abs(x))
    mantissa = np.int64(math.ldexp(fraction, _MANTISSA))
    place = exponent - _MANTISSA - unit
    limb, shift = place // _BITS, place % _BITS
    low, high = (mantissa & _MASK) << shift, (mantissa >> _BITS) << shift
    sign = 1 if x > 0.0 else -1
    to.whole[i, j, limb] += sign * (low & _MASK)
    to.whole[i, j, limb + 1] += sign * ((low >> _BITS) + (high & _MASK))
    to.whole[i, j, limb + 2] += sign * (high >> _BITS)
    _carry(to, i, j)


@part
def _carry(to: Numbers, i: int, j: int) -> None:
    for limb in range(to.whole.shape[2] - 1):
        over = to.whole[i, j, limb] >> _BITS
        to.whole[i, j, limb] -= over << _BITS
        to.whole[i, j, limb + 1] += over


@part
def set_zero(to: Numbers, i: int, j: int) -> None:
    """to[i, j] = 0."""
    to.rest[i, j] = -np.inf


@part
def set_one(to: Numbers, i: int, j: int) -> None:
    """to[i, j] = 1."""
    to.whole[i, j] = 0
    to.rest[i, j] = 0.0
    to.mean[i, j] = 0.0


@part
def copy(to: Numbers, i: int, j: int, x: Numbers, a: int, b: int) -> None:
    """to[i, j] = x[a, b]."""
    _copy_whole(to, i, j, x, a, b)
    to.rest[i, j] = x.rest[a, b]
    to.mean[i, j] = x.mean[a, b]


@part
def _copy_whole(to: Numbers, i: int, j: int, x: Numbers, a: int, b: int) -> None:
    # A loop, as elsewhere here: Numba counts references to slices and allocates their sums.
    for limb in range(to.whole.shape[2]):
        to.whole[i, j, limb] = x.whole[a, b, limb]


@part
def multiply(to: Numbers, i: int, j: int, x: Numbers, a: int, b: int, y: Numbers, c: int, d: int) -> None:
    """to[i, j] = x[a, b] y[c, d]."""
    for limb in range(to.whole.shape[2]):
        to.whole[i, j, limb] = x.whole[a, b, limb] + y.whole[c, d, limb]
    _carry(to, i, j)
    to.rest[i, j] = x.rest[a, b] + y.rest[c, d]
    to.mean[i, j] = x.mean[a, b] + y.mean[c, d]


@part
def divide(to: Numbers, i: int, j: int, x: Numbers, a: int, b: int) -> None:
    """to[i, j] /= x[a, b]; anything by zero is zero."""
    if to.rest[i, j] == -np.inf or x.rest[a, b] == -np.inf:
        set_zero(to, i, j)
        return
    for limb in range(to.whole.shape[2]):
        to.whole[i, j, limb] -= x.whole[a, b, limb]
    _carry(to, i, j)
    to.rest[i, j] -= x.rest[a, b]
    to.mean[i, j] -= x.mean[a, b]


@part
def add(to: Numbers, i: int, j: int, x: Numbers, a: int, b: int, unit: int, entropic: bool) -> None:
    """to[i, j] += x[a, b]."""
    if x.rest[a, b] == -np.inf:
        return
    if to.rest[i, j] == -np.inf:
        copy(to, i, j, x, a, b)
        return
    d = log_ratio(x, a, b, to, i, j, unit)
    if d < _LOG_SMALLEST:
        return
    ratio = np.exp(-abs(d))
    share = ratio / (1.0 + ratio)
    gain = np.log1p(ratio)
    choice = gain + share * abs(d) if entropic and share > 0.0 else 0.0
    if d <= 0.0:
        to.mean[i, j] += share * (x.mean[a, b] - to.mean[i, j]) + choice
        to.rest[i, j] += gain
    else:
        to.mean[i, j] = x.mean[a, b] + share * (to.mean[i, j] - x.mean[a, b]) + choice
        to.rest[i, j] = x.rest[a, b] + gain
        _copy_whole(to, i, j, x, a, b)


@part
def add_product(
    to: Numbers,
    i: int, j: int,
    x: Numbers, a: int, b: int,
    y: Numbers, c: int, d: int,
    unit: int,
    entropic: bool,
    work: Numbers,
) -> None:  # fmt: skip
    """to[i, j] += x[a, b] y[c, d]; `work` has room for the product."""
    if x.rest[a, b] == -np.inf or y.rest[c, d] == -np.inf:
        return
    multiply(work, 0, 0, x, a, b, y, c, d)
    add(to, i, j, work, 0, 0, unit, entropic)


@part
def log_ratio(x: Numbers, a: int, b: int, y: Numbers, c: int, d: int, unit: int) -> float:
    """log(x[a, b] / y[c, d]) of two numbers that are not zero.

    Limbs that cancel are passed over exactly; the next two or three are all that float64 holds.
    """
    limb = x.whole.shape[2] - 1
    exact = x.whole[a, b, limb] - y.whole[c, d, limb]
    while limb > 0 and -_ROOM < exact < _ROOM:
        limb -= 1
        exact = (exact << _BITS) + (x.whole[a, b, limb] - y.whole[c, d, limb])
    value = np.float64(exact)
    for _ in range(2):
        if limb > 0:
            limb -= 1
            value = value * 2.0**_BITS + np.float64(x.whole[a, b, limb] - y.whole[c, d, limb])
    return float(math.ldexp(value, _BITS * limb + unit) + (x.rest[a, b] - y.rest[c, d]))


@part
def log_of(x: Numbers, a: int, b: int, unit: int) -> float:
    """log x[a, b]; -inf for zero."""
    if x.rest[a, b] == -np.inf:
        return -np.inf
    one = zeros(1, 1, x.whole.shape[2])
    set_one(one, 0, 0)
    return log_ratio(x, a, b, one, 0, 0, unit)
