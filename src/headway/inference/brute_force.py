"""Every tree, one by one: the executable specification that the algorithms are tested against.

Nothing here is shared with the algorithms. O((n+1)^n) by construction; n <= 7.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from headway.arrays import Ints
from headway.errors import SizeError


def all_trees(n: int, *, projective: bool, single_root: bool) -> Ints:
    """All trees over n words, (T, n+1) in lexicographic order of their heads.

    >>> all_trees(2, projective=False, single_root=True).tolist()
    [[-1, 0, 1], [-1, 2, 0]]
    >>> len(all_trees(4, projective=False, single_root=False))  # Cayley: (n+1)^(n-1)
    125
    """
    if n > 7:
        raise SizeError(f"there are too many trees over {n} words to list; n <= 7")
    trees = [
        (-1, *heads)
        for heads in product(range(n + 1), repeat=n)
        if is_tree((-1, *heads))
        and (not single_root or n == 0 or heads.count(0) == 1)
        and (not projective or is_projective((-1, *heads)))
    ]
    return np.array(trees, dtype=np.int64).reshape(len(trees), n + 1)


def is_tree(heads: tuple[int, ...]) -> bool:
    """Does every word reach the root by its heads?"""
    return all(0 in _ancestors(heads, word) for word in range(1, len(heads)))


def is_projective(heads: tuple[int, ...]) -> bool:
    """Does every word between a head and its modifier descend from the head?"""
    return all(
        head in _ancestors(heads, between)
        for word, head in enumerate(heads[1:], start=1)
        for between in range(min(word, head) + 1, max(word, head))
    )


def _ancestors(heads: tuple[int, ...], word: int) -> list[int]:
    found: list[int] = []
    while word > 0 and heads[word] not in found:
        word = heads[word]
        found.append(word)
    return found
