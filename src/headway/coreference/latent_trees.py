"""Coreference as latent trees (fernandes2012 section 2.3): what the latent structure perceptron learns from.

The mentions of a document are the nodes of a tree below an artificial root. What hangs below one child of the root is a
cluster, so each tree h stands for clusters y, and many trees stand for the same clusters. Arcs have scores w·f.

    best          h^ = each mention's best arc (arcs go forward, so there are no cycles)
    constrained   h~ = each mention's best arc among those that fit the gold clusters

An arc that is not in h~ costs 1, or `root_weight` if it comes from the root, as in Fernandes, dos Santos and Milidiú.
Above 1, starting a cluster by mistake is worse than joining a wrong one.

With a `temperature` T above 0, every tree counts in proportion to exp(score / T), among all trees for h^ and among
those of the gold clusters for h~. The perceptron's update is then the gradient, in steps of 1 / T, of the
log-probability of the gold clusters, summed over all their trees: averaged stochastic gradient for a log-linear model.
The perceptron is the limit T = 0. Shares below `NEGLIGIBLE` are left out.

Since each mention chooses its arc independently, an example need not be a document. It is a stretch of a limited number
of mentions, each of which joins an earlier cluster or starts one. Weights are updated after each stretch, so shorter
ones learn from newer weights. Without a limit, stretches are whole documents, as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from headway.arrays import Bools, Floats, Ints
from headway.coreference.antecedents import Antecedents, right_arcs
from headway.coreference.coding import CodedDocument
from headway.coreference.pair_features import PairFeatures, Stretch, stretch
from headway.features.blocks import Weights
from headway.inference.jit import kernel, ordered_part

# Too small a probability to matter. Most arcs have less, and updating for an arc costs as much as scoring it.
NEGLIGIBLE = 1e-4


@dataclass(frozen=True)
class MentionTrees:
    """Stretches of training documents, with the arcs that gold clusters may have: a latent problem."""

    features: PairFeatures
    stretches: Sequence[Stretch]
    right: Sequence[Bools]
    root_weight: float = 1.0
    temperature: float = 0.0

    @cached_property
    def lengths(self) -> Ints:
        """How many mentions each stretch has."""
        return np.array([len(each.start) - 1 for each in self.stretches], np.int64)

    @property
    def size(self) -> int:
        return self.features.size

    def some(self, which: Ints) -> MentionStretch:
        """The stretch with this number: one at a time."""
        i = which.item()
        return MentionStretch(self.features, self.stretches[i], self.right[i], self.root_weight, self.temperature)


@dataclass(frozen=True)
class MentionStretch:
    """One stretch; scores are those of its candidate arcs, (K,)."""

    features: PairFeatures
    arcs: Stretch
    right: Bools
    root_weight: float
    temperature: float

    def score(self, weights: Weights) -> Floats:
        return self.features.score(weights, self.arcs)

    def add(self, into: Weights, amounts: Floats) -> None:
        self.features.add(into, self.arcs, amounts)

    def best(self, scores: Floats) -> Floats:
        """The best tree, or the share of each arc in all of them."""
        return _shared(scores, self.arcs.start, self.temperature)

    def constrained(self, scores: Floats) -> Floats:
        """The same among the trees of the gold clusters."""
        return _shared(np.where(self.right, scores, -np.inf), self.arcs.start, self.temperature)

    def cost(self, latent: Floats) -> Floats:
        cost = np.where(latent > 0, 0.0, 1.0)
        cost[self.arcs.antecedent == 0] *= self.root_weight
        return cost

    def output(self, latent: Floats) -> Ints:
        """The arcs chosen, one for each mention: what each of them joins."""
        return np.flatnonzero(_chosen(latent, self.arcs.start))

    def loss(self, output: Ints) -> float:
        """How many mentions join a wrong cluster, or start one that is none, or do not start their own."""
        return float((~self.right[output]).sum())


def mention_trees(
    features: PairFeatures,
    documents: Sequence[tuple[CodedDocument, Antecedents, Ints]],
    longest: int | None,
    root_weight: float = 1.0,
    temperature: float = 0.0,
) -> MentionTrees:
    """Documents and their gold clusters, cut into stretches of at most `longest` mentions."""
    stretches, right = [], []
    for coded, antecedents, clusters in documents:
        count = len(clusters)
        allowed = right_arcs(antecedents, clusters)
        for first in range(1, count + 1, longest or max(1, count)):
            last = min(count, first + longest - 1) if longest else count
            stretches.append(stretch(coded, antecedents, first, last))
            right.append(allowed[antecedents.start[first - 1] : antecedents.start[last]])
    return MentionTrees(features, stretches, right, root_weight, temperature)


def closest_trees(trees: MentionTrees) -> MentionTrees:
    """The same stretches with one tree for the gold clusters: each mention below its closest right antecedent."""
    pairs = zip(trees.stretches, trees.right, strict=True)
    closest = [_chosen(np.where(right, arcs.antecedent, -np.inf), arcs.start) > 0 for arcs, right in pairs]
    return replace(trees, right=closest)


def best_heads(scores: Floats, antecedents: Antecedents) -> Ints:
    """The best tree of a document, heads (M+1,) with heads[0] == -1."""
    arcs = np.flatnonzero(_chosen(scores, antecedents.start))
    return np.concatenate(([-1], antecedents.antecedent[arcs]))


def clusters_of(heads: Ints) -> Ints:
    """The clusters (M,) that a tree (M+1,) stands for, numbered from 0 by their first mentions.

    >>> clusters_of(np.array([-1, 0, 0, 1, 2]))
    array([0, 1, 0, 1])
    """
    clusters = np.zeros(len(heads), np.int64)
    found = 0
    for m in range(1, len(heads)):
        if heads[m] == 0:
            clusters[m] = found
            found += 1
        else:
            clusters[m] = clusters[heads[m]]
    return clusters[1:]


def _shared(scores: Floats, start: Ints, temperature: float) -> Floats:
    if temperature == 0:
        return _chosen(scores, start)
    shares = np.zeros(len(scores))
    _share(scores, start, temperature, shares)
    return shares


def _chosen(scores: Floats, start: Ints) -> Floats:
    chosen = np.zeros(len(scores))
    _choose(scores, start, chosen)
    return chosen


@kernel
def _share(scores: Floats, start: Ints, temperature: float, shares: Floats) -> None:
    """The probability of each arc of a mention, exp(score / temperature) over their sum."""
    for i in range(len(start) - 1):
        _share_out(scores, start[i], start[i + 1], temperature, shares)


@ordered_part  # otherwise the last bits would depend on where the arrays are in memory
def _share_out(scores: Floats, first: int, end: int, temperature: float, shares: Floats) -> None:
    top = -np.inf
    for k in range(first, end):
        top = max(top, scores[k])
    total = 0.0
    for k in range(first, end):
        shares[k] = np.exp((scores[k] - top) / temperature)
        total += shares[k]
    for k in range(first, end):
        share = shares[k] / total
        shares[k] = share if share >= NEGLIGIBLE else 0.0


@kernel
def _choose(scores: Floats, start: Ints, chosen: Floats) -> None:
    """1 on the best arc of each mention, the nearest if there are several."""
    for i in range(len(start) - 1):
        best = start[i]
        for k in range(start[i] + 1, start[i + 1]):
            if scores[k] >= scores[best]:
                best = k
        chosen[best] = 1.0
