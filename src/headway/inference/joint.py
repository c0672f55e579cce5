"""Probabilities of several arcs at once, exact however confident the scores are.

druck2009 (and DESIGN 5.2) write these with the inverse of the Laplacian: with the arcs' kernel K, P(a, b) = K(a, a)
K(b, b) - K(a, b) K(b, a), and a determinant for more arcs. Those differences cancel as soon as two words prefer
each other. Conditioning does not: requiring arcs is forbidding the other heads of their words, so

    P(arcs) = Z(arcs required) / Z,          P(a, b) = P(a) P(b | a required)

each with full relative accuracy, for every class of trees, projective ones included. (The paper's way, forcing one
arc and running the marginals again, is O(n^5) for all pairs, which is affordable as far as n^4 numbers fit in
memory. For gradients use `covariance_with_arcs`, which is O(n^3).)
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from headway.arrays import Floats, Ints, TreeClass
from headway.errors import SizeError
from headway.inference.batch import Batch
from headway.inference.first_order import arc_marginals, tree_sums
from headway.inference.scores import Arc, checked_arcs, require
from headway.parallel import Executor

LARGEST_FOR_PAIRS = 64


def arc_set_probability(sentence: Batch, arcs: Iterable[Arc], trees: TreeClass, executor: Executor) -> float:
    """P(all arcs in the tree) for one sentence; 0 if no tree has them all."""
    scores = sentence.scores[0]
    wanted = checked_arcs(arcs, len(scores) - 1)
    if len({m for _, m in wanted}) < len(set(wanted)):
        return 0.0
    if sentence.wide is not None:
        return _arc_by_arc(sentence, wanted, trees, executor)
    batch = sentence.variants(np.array([scores, require(scores, wanted)]))
    log_z, log_z_required = tree_sums(batch, trees, executor)
    return float(np.exp(log_z_required - log_z))


def _arc_by_arc(sentence: Batch, arcs: list[Arc], trees: TreeClass, executor: Executor) -> float:
    """The same as a product of probabilities, each given the arcs before: for scores too large for differences."""
    probability, scores = 1.0, sentence.scores[0]
    for h, m in arcs:
        probability *= arc_marginals(sentence.variants(scores[None]), trees, executor)[1][0, h, m]
        if probability == 0.0:
            return 0.0
        scores = require(scores, [(h, m)])
    return float(probability)


def pair_marginals(sentence: Batch, mu: Floats, trees: TreeClass, executor: Executor) -> Floats:
    """P(both arcs in the tree) at [h, m, h2, m2] for one sentence, whose marginals are `mu`."""
    n = len(mu) - 1
    pairs = np.zeros((n + 1,) * 4)
    for m in range(1, n + 1):
        heads, given = given_each_head(sentence, mu, m, trees, executor)
        pairs[heads, m] = mu[heads, m, None, None] * given
    return pairs


def given_each_head(sentence: Batch, mu: Floats, m: int, trees: TreeClass, executor: Executor) -> tuple[Ints, Floats]:
    """The possible heads of word m, and for each the marginals given that it is the head."""
    scores = sentence.scores[0]
    heads = np.flatnonzero(mu[:, m] > 0)
    required = np.repeat(scores[None], len(heads), axis=0)
    required[:, :, m] = -np.inf
    required[np.arange(len(heads)), heads, m] = scores[heads, m]
    return heads, arc_marginals(sentence.variants(required), trees, executor)[1]


def require_small(nodes: int) -> None:
    """Refuse what would not fit: n^4 numbers."""
    if nodes - 1 > LARGEST_FOR_PAIRS:
        raise SizeError(
            f"pair_marginals over {nodes - 1} words would hold {nodes**4 * 8 / 1e9:.1f} GB; it is for at most "
            f"{LARGEST_FOR_PAIRS} words. Use covariance_with_arcs or arc_set_probability instead"
        )
