"""Masks by large finite numbers, taken for what they mean: arcs without a chance become forbidden ones.

Scores are first taken relative to each word's best, x <= 0, which changes no probability. If some tree loses L in all,
then the trees with an arc of x < -(L + c), of which there are fewer than (n+1)^n, have less than (n+1)^n exp(-c) of its
weight together. With c = 800 + n log(n+1) that is less than any float64 other than zero: forbidding these arcs changes
no sum and no best tree, and what is left is often small enough for ordinary algorithms. O(n^2) for the tree (O(n^3)
projective).
"""

from __future__ import annotations

import math

import numpy as np

from headway.arrays import Floats, TreeClass
from headway.inference import projective_tree, spanning_tree
from headway.inference.batch import WIDE, Batch, allowed
from headway.parallel import Executor

# Arcs that lose more than this are left out of the tree that is looked for.
_LOSS = 1024.0


def without_hopeless_arcs(batch: Batch, trees: TreeClass, executor: Executor) -> tuple[Batch, Floats]:
    """The same sums, with `shift` (B,) to be added to log Z; a sentence that this made ordinary is no longer wide."""
    shift = np.zeros(len(batch))
    if batch.wide is None:
        return batch, shift
    these = batch.only_wide()
    arcs = allowed(these)
    top = np.where(arcs, these.scores, -np.inf).max(axis=1, keepdims=True)
    top = np.where(np.isneginf(top), 0.0, top)
    relative = np.full(these.scores.shape, -np.inf)
    relative[arcs] = ((these.scores - top) + these.residuals())[arcs]
    close = these.with_scores(np.where(relative >= -_LOSS, relative, -np.inf))
    algorithm = projective_tree.argmax if trees.projective else spanning_tree.argmax
    heads, found = algorithm(close, single_root=trees.single_root, executor=executor)
    words = np.arange(heads.shape[1])
    lost = -np.where(heads >= 0, relative[np.arange(len(these))[:, None], np.maximum(heads, 0), words], 0.0).sum(axis=1)
    hopeless = relative < -(lost + 800.0 + these.lengths * np.log(these.lengths + 1.0))[:, None, None]
    relative[hopeless] = -np.inf
    largest = np.where(np.isneginf(relative), 0.0, np.abs(relative)).max(axis=(1, 2))
    tame = (found > 0) & (largest <= WIDE)
    places = np.flatnonzero(batch.wide)[tame]
    scores, wide = batch.scores.copy(), batch.wide.copy()
    scores[places], wide[places] = relative[tame], False
    shift[places] = [math.fsum(row) for row in top[tame, 0]]
    return Batch(scores, batch.lengths, batch.single, wide if wide.any() else None, batch.residual), shift
