"""Training sentences as the perceptron of a higher-order model sees them, one at a time: all their parts in a row.

During training, trees are found by the head automata alone, the set Z of koo2010, or by dual decomposition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.arrays import Bools, Floats, Ints, TreeClass
from headway.features.coding import Coded
from headway.inference.dual_decomposition import decode
from headway.inference.head_automata import decode_heads
from headway.inference.part_counts import arcs_of_tree, count_parts
from headway.learning.problem import ARGMAX
from headway.models.part_scorer import PartScorer, PrunedBatch, sentence_parts
from headway.training.settings import Decoding

# Steps of dual decomposition and of branch and bound on a training sentence: the first weights make hard ones, and a
# good tree is enough.
_ITERATIONS, _BUDGET = 300, 1000


@dataclass(frozen=True)
class PartProblem:
    """Coded sentences with their heads (B, N+1), padded with -1, and the arcs kept of each, the right ones included."""

    scorer: PartScorer
    coded: Coded
    heads: Ints
    kept: Sequence[Bools]
    decoding: Decoding
    trees: TreeClass

    offers = ARGMAX

    @property
    def lengths(self) -> Ints:
        return self.coded.lengths

    @property
    def size(self) -> int:
        return self.scorer.size

    def some(self, which: Ints) -> PartInstance:
        """The sentence with this number: one at a time."""
        i = which.item()
        batch = self.scorer.batch(self.coded.some(which), [self.kept[i]])
        n = int(self.lengths[i])
        return PartInstance(self.scorer, batch, self.heads[i, : n + 1], self.decoding, self.trees)

    def only(self, which: Ints) -> PartProblem:
        """The problem of these sentences, which refers to no others."""
        kept = [self.kept[i] for i in which.tolist()]
        return replace(self, coded=self.coded.only(which), heads=self.heads[which], kept=kept)


@dataclass(frozen=True)
class PartInstance:
    """One sentence: its parts and its right heads (n+1,)."""

    scorer: PartScorer
    batch: PrunedBatch
    heads: Ints
    decoding: Decoding
    trees: TreeClass

    @property
    def lengths(self) -> Ints:
        return self.batch.coded.lengths

    def score(self, weights: Floats) -> Floats:
        return self.scorer.scores(weights, self.batch)

    def add(self, into: Floats, amounts: Floats) -> None:
        self.scorer.pullback(into, self.batch, amounts)

    def gold(self) -> Floats:
        return self._count(*arcs_of_tree(self.batch.candidates[0], self.heads))

    def cost(self) -> Floats:
        """1 for every wrong arc; other parts cost nothing."""
        these = self.batch.candidates[0]
        cost = np.zeros(sum(self.batch.sizes()))
        cost[: len(these.heads)] = self.heads[these.modifiers] != these.heads
        return cost

    def best(self, scores: Floats) -> Floats:
        """1 on the parts of the best choice: in the set Z, or among the trees of the class."""
        [parts] = sentence_parts(self.batch, scores)
        if self.decoding == "automata":
            _, taken, above = decode_heads(parts.automata())
        else:
            found = decode(parts, iterations=_ITERATIONS, budget=_BUDGET, **self.trees._asdict())
            taken, above = arcs_of_tree(self.batch.candidates[0], found.heads)
        return self._count(taken, above)

    def _count(self, taken: Bools, above: Ints) -> Floats:
        """1 for every part there is when these arcs are taken, the parts in a row."""
        return count_parts(self.batch.candidates[0], taken, above, self.scorer.kinds)
