"""The arc-factored scorer: the score of a tree is the sum of the scores of its arcs (koo2007 section 2).

    s(h, m) = w·f(h, m)                              an arc
    s(h, m, l) = w·f(h, m) + v·g(h, m, l)            an arc with its label, where labels are chosen with the tree

f are the templates of a table such as `standard`, g those of `joint`, which see the label too. The weights are one
vector: w, and after it v.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.arrays import Floats, Ints
from headway.features.arc_features import ArcFeatures
from headway.features.blocks import Weights
from headway.features.coding import Coded
from headway.parallel import SERIAL, Executor


@dataclass(frozen=True, repr=False)
class ArcScorer:
    """Scores of arcs; `joint` is None unless labels are chosen with the tree."""

    arcs: ArcFeatures
    joint: ArcFeatures | None = None
    labels: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many weights there are."""
        return self.arcs.size + (self.joint.size if self.joint else 0)

    @property
    def collisions(self) -> float:
        """The share of the keys of the training trees that share their weight with another, among arc features."""
        return self.arcs.collisions

    def scores(self, weights: Weights, batch: Coded, executor: Executor = SERIAL) -> Floats:
        """(B, N+1, N+1), or (B, N+1, N+1, L) with labels."""
        width = int(batch.lengths.max(initial=0)) + 1
        arcs = np.zeros((len(batch), width, width))
        self.arcs.score(weights[: self.arcs.size], batch, arcs, executor)
        if self.joint is None:
            return arcs
        scores = np.repeat(arcs.reshape(-1, 1), len(self.labels), axis=1)
        self.joint.score_labels(weights[self.arcs.size :], batch, _all_rows(arcs), scores)
        return scores.reshape(*arcs.shape, -1)

    def pullback(self, into: Weights, batch: Coded, amounts: Floats, executor: Executor = SERIAL) -> None:
        """into += amounts x features; amounts are shaped like the scores."""
        arcs = amounts if self.joint is None else amounts.sum(axis=-1)
        self.arcs.add(into[: self.arcs.size], batch, arcs, executor)
        if self.joint is not None:
            rows = amounts.reshape(-1, len(self.labels))
            self.joint.add_labels(into[self.arcs.size :], batch, _all_rows(arcs), rows)


def _all_rows(arcs: Floats) -> Ints:
    return np.arange(arcs.size, dtype=np.int64).reshape(arcs.shape)
