"""Does one class of trees hold every tree of another? What decides whether a cross-entropy between classes is finite.

The answer depends on the forbidden arcs alone, so it is asked of uniform scores, where nothing can underflow: a
tree with two roots exists if the tree with most root arcs has two; a non-projective one exists if some arc,
required, leaves a crossing arc possible. O(n^5) at worst; the first crossing found ends the search.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Floats, Ints, TreeClass
from headway.inference.batch import Batch
from headway.inference.first_order import arc_marginals, best_heads
from headway.inference.joint import given_each_head
from headway.parallel import Executor


def has_tree_outside(allowed: Floats, trees: TreeClass, other: TreeClass, executor: Executor) -> bool:
    """Is there a tree of the class, under one sentence's arcs (0 allowed, -inf not), that the other class lacks?"""
    if other.single_root and not trees.single_root and _has_two_roots(allowed, trees, executor):
        return True
    return other.projective and not trees.projective and _has_crossing(allowed, trees, executor)


def _has_two_roots(allowed: Floats, trees: TreeClass, executor: Executor) -> bool:
    scores = allowed.copy()
    scores[0] += 1.0
    heads = best_heads(_one(scores), trees, executor)[0]
    return int((heads == 0).sum()) > 1


def _has_crossing(allowed: Floats, trees: TreeClass, executor: Executor) -> bool:
    n = len(allowed) - 1
    mu = arc_marginals(_one(allowed), trees, executor)[1][0]
    for m in range(1, n + 1):
        heads, given = given_each_head(_one(allowed), mu, m, trees, executor)
        if ((given > 0) & _crossing(heads, m, n)).any():
            return True
    return False


def _crossing(heads: Ints, m: int, n: int) -> NDArray[np.bool_]:
    """[i, h, e]: does the arc h -> e cross the arc heads[i] -> m?"""
    low, high = np.minimum(heads, m)[:, None, None], np.maximum(heads, m)[:, None, None]
    h, e = np.ogrid[: n + 1, : n + 1]
    left, right = np.minimum(h, e), np.maximum(h, e)
    crossing: NDArray[np.bool_] = ((low < left) & (left < high) & (high < right)) | (
        (left < low) & (low < right) & (right < high)
    )
    return crossing


def _one(scores: Floats) -> Batch:
    return Batch(scores[None], np.array([len(scores) - 1]), single=False)
