"""Numbers of both signs and any size: m 2^e, each a mantissa and a whole exponent of its own.

A number below zero has no logarithm. A sum first finds the largest exponent of its terms, and drops those 2^1022 times
smaller than it; what it comes to, which must be below 2^1022 times that, gets a mantissa in [1/2, 1) again. The entries
of a vector share one exponent, that of the largest.
"""

from __future__ import annotations

import math

import numpy as np

from headway.arrays import Floats, Ints
from headway.inference.fast_exp import fast_exp
from headway.inference.jit import part

LOG_2 = math.log(2.0)
# The exponent of zero: below all others, and the sum of several is still an int64.
ZERO_EXPONENT = -(2**60)


@part
def extended_exp(logs: Floats) -> tuple[Floats, Ints]:
    """Mantissas in [1, 2) and exponents of exp(logs)."""
    values, exponents = np.empty(logs.shape), np.empty(logs.shape, np.int64)
    flat, flat_values, flat_exponents = logs.ravel(), values.ravel(), exponents.ravel()
    for k in range(flat.shape[0]):
        possible = flat[k] > -np.inf
        x = flat[k] if possible else 0.0
        exponent = math.floor(x / LOG_2)
        flat_values[k] = fast_exp(x - exponent * LOG_2) if possible else 0.0
        flat_exponents[k] = np.int64(exponent) if possible else ZERO_EXPONENT
    return values, exponents


@part
def to_common_exponent(factors: Floats, exponents: Ints, count: int) -> int:
    """The largest exponent; the factors are scaled to it."""
    top = ZERO_EXPONENT
    for k in range(count):
        top = max(top, exponents[k])
    for k in range(count):
        factors[k] *= power_of_two(exponents[k] - top)
    return top


@part
def power_of_two(exponent: int) -> float:
    """2^exponent for exponents up to 1023, by its bits; 0 from -1023 down."""
    return np.int64((max(exponent, -1023) + 1023) << 52).view(np.float64)


@part
def _exponent(value: float) -> int:
    """The exponent e of a value m 2^e >= 0 with m in [1/2, 1), from its bits; -1022 for what is smaller, and for 0."""
    return int((np.float64(value).view(np.int64) >> 52) - 1022)


@part
def times_power_of_two(value: float, exponent: int) -> float:
    """value 2^exponent, for any exponent; 0 where that is too small for a float."""
    return math.ldexp(value, min(max(exponent, -4000), 4000))


@part
def normalised(value: float, exponent: int) -> tuple[float, int]:
    """The same number with its mantissa in [1/2, 1), or zero."""
    more = _exponent(abs(value))
    return value * power_of_two(-more), exponent + more if value != 0.0 else ZERO_EXPONENT


@part
def normalise(vectors: Floats, exponents: Ints, row: int, exponent: int) -> None:
    """The same vector with its largest entry in [1/2, 1), or zero. (Without a branch, no references are counted.)"""
    largest = 0.0
    for x in range(vectors.shape[1]):
        largest = max(largest, abs(vectors[row, x]))
    more = _exponent(largest)
    scale = power_of_two(-more)
    for x in range(vectors.shape[1]):
        vectors[row, x] *= scale
    exponents[row] = exponent + more if largest > 0.0 else ZERO_EXPONENT
