"""Brackets within addresses: of "(http://a.org/Python_(language))", the first and the last are tokens, the others not.

Treebanks have next to no addresses with brackets, so there is nothing to learn this from. A bracket belongs to an
address if it stands behind the host and is closed before the next white space; so does what follows it, if that is a
letter or digit, or a mark and then one of these. An address ends at a quote or at a bracket that it did not open.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Ints
from headway.inference.jit import part
from headway.text.characters import ALPHANUMERIC, BREAK, LOWER, PAD, UPPER

_COLON, _SLASH, _OPENING, _CLOSING = map(ord, ":/()")
_OUTSIDE = tuple(map(ord, '"<>'))  # never part of an address
_JOINTS = tuple(map(ord, "./?#&_"))


@part
def bracketed_in_addresses(kind: Ints) -> NDArray[np.bool_]:
    """Whether a bracket within an address keeps each character, of this class, together with the next."""
    held = np.zeros(len(kind), np.bool_)
    i = PAD
    while i < len(kind) - PAD:
        if kind[i] != _COLON or kind[i + 1] != _SLASH or kind[i + 2] != _SLASH or kind[i - 1] not in (UPPER, LOWER):
            i += 1
            continue
        i += 3
        while kind[i] > BREAK and kind[i] != _SLASH:
            i += 1
        depth = opened = 0
        while kind[i] > BREAK and kind[i] not in _OUTSIDE:
            if kind[i] == _OPENING:
                opened = i if depth == 0 else opened
                depth += 1
            elif kind[i] == _CLOSING:
                depth -= 1
                if depth < 0:
                    break
                if depth == 0:
                    held[opened - 1 : i] = True
                    stop = i + 1 + (kind[i + 1] in _JOINTS)
                    held[i:stop] = kind[stop] in ALPHANUMERIC
            i += 1
    return held
