"""Array aliases, the class of trees that everything is computed over, and arithmetic with long vectors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.errors import ArgumentError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_BLOCK = 1 << 15  # numbers: what is between two operations stays in the cache of one core


class TreeClass(NamedTuple):
    """Which trees there are: projective ones only, or all; one word on the root, or any number.

    >>> str(TreeClass()), str(TreeClass(projective=True, single_root=False))
    ('non-projective, one word on the root', 'projective, any number of words on the root')
    """

    projective: bool = False
    single_root: bool = True

    @classmethod
    def of(cls, projective: bool, single_root: bool) -> TreeClass:
        """The class of two flags that a user gave; anything but true or false is an error, "no" among them."""
        for name, flag in (("projective", projective), ("single_root", single_root)):
            if not isinstance(flag, bool | np.bool_):
                raise ArgumentError(f"{name} is {flag!r}; expected True or False")
        return cls(bool(projective), bool(single_root))

    def __str__(self) -> str:
        kind = "projective" if self.projective else "non-projective"
        return f"{kind}, {'one word' if self.single_root else 'any number of words'} on the root"


def dot(x: NDArray[Any], y: NDArray[Any]) -> float:
    """The sum of the products of two arrays of one shape, always in the same order.

    BLAS, which `@` and `np.vdot` call, shares long sums among threads, so that the last digits depend on their number.

    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(np.einsum("i,i->", x.ravel(), y.ravel()))


def add_scaled(into: Floats, factor: float, x: Floats) -> None:
    """into += factor * x, to the same bits, but without another vector for the product.

    >>> into = np.array([1.0, 2.0])
    >>> add_scaled(into, 0.5, np.array([3.0, 4.0]))
    >>> into.tolist()
    [2.5, 4.0]
    """
    product = np.empty(min(_BLOCK, len(x)))
    for start in range(0, len(x), _BLOCK):
        part = x[start : start + _BLOCK]
        into[start : start + _BLOCK] += np.multiply(part, factor, out=product[: len(part)])
