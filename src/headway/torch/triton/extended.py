"""Non-negative numbers m 2^e of any size for Triton's kernels: 1 <= m < 2 a float, e an integer of 32 bits.

Zero has m = 0 and e = ZERO. Exponents of other numbers must stay within a quarter of that, so that sums of two of them
are above it. Powers of two are put together from their bits, and are exact.
"""

from __future__ import annotations

import triton
import triton.language as tl

ZERO = tl.constexpr(-(1 << 28))
LARGEST_EXPONENT = 1 << 26


@triton.jit
def power_of_two(e, DOUBLE: tl.constexpr):
    """2^e, or 0 if that is below the smallest float."""
    if DOUBLE:
        return (tl.maximum(e + 1023, 0).to(tl.int64) << 52).to(tl.float64, bitcast=True)
    else:
        return (tl.maximum(e + 127, 0) << 23).to(tl.float32, bitcast=True)


@triton.jit
def normal(x, e, DOUBLE: tl.constexpr):
    """x 2^e as such a number."""
    if DOUBLE:
        bits = x.to(tl.int64, bitcast=True)
        more = (bits >> 52).to(tl.int32) - 1023
        m = ((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000).to(tl.float64, bitcast=True)
    else:
        bits = x.to(tl.int32, bitcast=True)
        more = (bits >> 23) - 127
        m = ((bits & 0x7FFFFF) | 0x3F800000).to(tl.float32, bitcast=True)
    return tl.where(x > 0, m, 0), tl.where(x > 0, e + more, ZERO)


@triton.jit
def exponential(x, DOUBLE: tl.constexpr):
    """exp(x) of float64 numbers, with m as accurate as its type; zero for -inf."""
    y = x * tl.full((), 1.4426950408889634, tl.float64)  # a mere literal would be a float32
    e = tl.floor(tl.maximum(y, ZERO))
    fraction = y - e if DOUBLE else (y - e).to(tl.float32)
    return normal(tl.exp2(fraction), e.to(tl.int32), DOUBLE)


@triton.jit
def times(am, ae, bm, be, DOUBLE: tl.constexpr):
    """a b."""
    return normal(am * bm, ae + be, DOUBLE)


@triton.jit
def plus(am, ae, bm, be, DOUBLE: tl.constexpr):
    """a + b."""
    top = tl.maximum(ae, be)
    return normal(am * power_of_two(ae - top, DOUBLE) + bm * power_of_two(be - top, DOUBLE), top, DOUBLE)


@triton.jit
def plus_sum(sm, se, m, e, DOUBLE: tl.constexpr):
    """s, plus the sums over the second dimension of numbers whose m need not be below 2."""
    top = tl.max(e, 1)
    m, e = normal(tl.sum(m * power_of_two(e - top[:, None], DOUBLE), 1), top, DOUBLE)
    return plus(sm, se, m, e, DOUBLE)


@triton.jit
def logarithm(m, e):
    """log(m 2^e) in float64; -inf of zero."""
    value = tl.log(tl.where(m > 0, m, 1).to(tl.float64)) + e * tl.full((), 0.6931471805599453, tl.float64)
    return tl.where(m > 0, value, float("-inf"))
