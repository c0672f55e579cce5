"""An exponential that compilers can vectorise: the scalar call of the C library is what they cannot.

`x = k log 2 + r` with |r| <= log(2) / 2, a Taylor polynomial of degree 13 for exp(r), and k put into the exponent
bits. log 2 is taken in two parts, so that r loses no digits to a large k; that is why operations keep their order
here. Within two units in the last place of `math.exp`.
"""

from __future__ import annotations

import numpy as np

from headway.inference.jit import ordered_part

_LOG2_HIGH = 6.93145751953125e-1  # few enough bits that k * _LOG2_HIGH is exact
_LOG2_LOW = 1.42860682030941723212e-6
_SMALLEST = -708.0


@ordered_part
def fast_exp(x: float) -> float:
    """exp(x) for x <= 700; zero below -708, where exp leaves the normal numbers, and for -inf."""
    y = x if x > _SMALLEST else _SMALLEST
    k = np.floor(y * 1.4426950408889634 + 0.5)
    r = (y - k * _LOG2_HIGH) - k * _LOG2_LOW
    p = 1 / 6227020800
    p = p * r + 1 / 479001600
    p = p * r + 1 / 39916800
    p = p * r + 1 / 3628800
    p = p * r + 1 / 362880
    p = p * r + 1 / 40320
    p = p * r + 1 / 5040
    p = p * r + 1 / 720
    p = p * r + 1 / 120
    p = p * r + 1 / 24
    p = p * r + 1 / 6
    p = p * r + 1 / 2
    p = p * r + 1.0
    p = p * r + 1.0
    power = np.int64((np.int64(k) + 1023) << 52).view(np.float64)
    return p * power if x > _SMALLEST else 0.0
