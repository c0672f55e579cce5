"""Queries of addresses that have no scheme: "youtube.com/watch?v=d46_ct&t=42" is one token.

Treebanks have next to no such addresses; those with a scheme ("http://") are learnt. A query is a question mark, a name
and an equals sign. It belongs to an address if a host stands before it, words joined by full stops, and perhaps a path.
All of the address is then one token, up to its last letter or digit before white space, a quote or a bracket.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Ints
from headway.inference.jit import part
from headway.text.characters import ALPHANUMERIC, BREAK, LETTERS, PAD

_QUESTION, _EQUALS, _SLASH, _STOP = map(ord, "?=/.")
_OF_NAMES = tuple(map(ord, "._-%"))
_OF_HOSTS = tuple(map(ord, ".-"))
_OF_PATHS = tuple(map(ord, "/._-~%+,;:@=&"))
_OUTSIDE = tuple(map(ord, "\"'<>()[]{}"))


@part
def joined_by_queries(kind: Ints) -> NDArray[np.bool_]:
    """Whether an address with a query keeps each character, of this class, together with the next. O(n)."""
    held = np.zeros(len(kind), np.bool_)
    i = PAD
    while i < len(kind) - PAD:
        query = i
        i += 1
        if kind[query] != _QUESTION:
            continue
        while kind[i] in ALPHANUMERIC or kind[i] in _OF_NAMES:
            i += 1
        if kind[i] != _EQUALS or i == query + 1:
            continue
        start = query
        while kind[start - 1] in ALPHANUMERIC or kind[start - 1] in _OF_PATHS:
            start -= 1
        host = start
        stops = 0
        while kind[host] in ALPHANUMERIC or (kind[host] in _OF_HOSTS and kind[host - 1] in ALPHANUMERIC):
            stops += kind[host] == _STOP
            host += 1
        if not stops or kind[start] not in ALPHANUMERIC or kind[host - 1] not in LETTERS:
            continue
        if kind[host] not in (_SLASH, _QUESTION):
            continue
        end = i
        while kind[i] > BREAK and kind[i] not in _OUTSIDE:
            if kind[i] in ALPHANUMERIC:
                end = i
            i += 1
        held[start:end] = True
    return held
