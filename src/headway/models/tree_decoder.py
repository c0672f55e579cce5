"""Decoding arc scores: the best tree of a class, or the one with the fewest heads expected to be wrong (MBR).

Scores are (B, N+1, N+1), or with labels (B, N+1, N+1, L): the best tree then takes every arc's best label, and
probabilities sum over the labels. The distribution of a tree is computed when first asked for, unless
MBR has computed it already.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.arrays import Bools, Floats, Ints, TreeClass
from headway.features.coding import Coded
from headway.inference.batch import as_batch, one_sentence
from headway.inference.first_order import arc_marginals, best_heads
from headway.inference.tree_distribution import TreeDistribution
from headway.models.arc_scorer import ArcScorer
from headway.models.composed import DecodedTree
from headway.models.constraints import mask_arcs
from headway.models.labelling import ChosenLabels, most_probable
from headway.models.protocol import Options
from headway.models.root_labels import mask_arc_labels
from headway.models.scorer import Trained
from headway.parallel import Executor

# Cells of the padded arc scores of one batch: 2 MB
BATCH_CELLS = 250_000


@dataclass(frozen=True)
class TreeDecoder:
    """Trees of a class by their arcs."""

    trees: TreeClass
    cells: int = BATCH_CELLS

    def decode(self, scores: Floats, lengths: Ints, options: Options, executor: Executor) -> list[DecodedTree]:
        """The trees of a batch."""
        arcs = scores if scores.ndim == 3 else _sum_labels(scores)
        known = arc_marginals(as_batch(arcs, lengths), self.trees, executor) if options.mbr else None
        if known is not None:
            best = np.where(arcs > -np.inf, known[1], -np.inf)  # what is ruled out stays so, however unlikely the rest
        else:
            best = scores if scores.ndim == 3 else scores.max(axis=-1)
        heads = best_heads(as_batch(best, lengths), self.trees, executor)
        return [
            DecodedTree(heads[b, : n + 1].copy(), self._distribution(arcs, b, n, known))
            for b, n in enumerate(lengths.tolist())
        ]

    def _distribution(self, arcs: Floats, b: int, n: int, known: tuple[Floats, Floats] | None) -> TreeDistribution:
        """That of sentence b of a batch, of n words; its marginals are kept where MBR computed them."""
        own = None if known is None else (known[0][b : b + 1], known[1][b : b + 1, : n + 1, : n + 1].copy())
        return TreeDistribution.of_batch(one_sentence(arcs, b, n), self.trees, own)


@dataclass(frozen=True)
class TrainedArcs:
    """Scores of arcs, or of labelled arcs, -inf on what is ruled out: an arc by constraints, a label by the arc's head.

    `roots` are the labels for the root's arcs alone.
    """

    scorer: Trained[ArcScorer]
    roots: tuple[str, ...]

    def scores(self, batch: Coded, executor: Executor, allowed: Bools | None = None) -> Floats:
        """(B, N+1, N+1), or with labels (B, N+1, N+1, L)."""
        scores = self.scorer.scores(batch, executor)
        if self.scorer.scorer.joint is not None:
            scores = mask_arc_labels(scores, self.scorer.scorer.labels, self.roots)
        return mask_arcs(scores, allowed)


@dataclass(frozen=True)
class JointLabels:
    """Labels chosen with the tree: the best of each arc by the scores the tree was chosen by."""

    names: tuple[str, ...]

    def choose(self, batch: Coded, heads: Ints, scores: Floats) -> ChosenLabels:
        """Every word's label, and its probability in the distribution over labelled trees."""
        b, m = np.indices(heads.shape)
        return most_probable(scores[b, heads, m])


def _sum_labels(scores: Floats) -> Floats:
    top = scores.max(axis=-1)
    top[top == -np.inf] = 0.0
    with np.errstate(divide="ignore"):  # an arc that is ruled out with all its labels sums to 0
        summed: Floats = top + np.log(np.exp(scores - top[..., None]).sum(axis=-1))
    return summed
