"""Minimum Bayes risk decoding: the tree with the most arcs expected to be right (koo2007 section 3.3, Goodman 1996).

Under a loss that counts wrong heads, that is the tree of the class with the largest sum of marginals. Arcs that the
distribution forbids stay forbidden.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Floats, Ints, TreeClass
from headway.inference.batch import Batch
from headway.inference.first_order import best_heads
from headway.parallel import Executor


def mbr(batch: Batch, mu: Floats, trees: TreeClass, executor: Executor) -> Ints:
    """Heads (B, N+1) maximising the sum of marginals `mu`."""
    expected = np.where(batch.scores == -np.inf, -np.inf, mu)
    return best_heads(batch.with_scores(expected), trees, executor)
