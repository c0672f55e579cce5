"""Array aliases, and the class of trees that everything is computed over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class TreeClass(NamedTuple):
    """Which trees there are: projective ones only, or all; one word on the root, or any number.

    >>> str(TreeClass()), str(TreeClass(projective=True, single_root=False))
    ('non-projective, one word on the root', 'projective, any number of words on the root')
    """

    projective: bool = False
    single_root: bool = True

    def __str__(self) -> str:
        kind = "projective" if self.projective else "non-projective"
        return f"{kind}, {'one word' if self.single_root else 'any number of words'} on the root"
