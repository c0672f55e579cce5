"""A world of its own for the learners: dense random features, and structures chosen by enumeration.

Nothing of headway.features is used. `DenseExamples` keeps the feature vector of every arc (and label) as an array;
`Enumerated` finds the best tree and the marginals by going through every tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from headway.inference.brute_force import all_trees

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Choice = list[tuple[int, ...]]  # the cells (h, m) or (h, m, label) that are chosen

TREE_CLASSES = [
    pytest.param(
        projective,
        single,
        id=f"{'projective' if projective else 'non-projective'}-{'single' if single else 'multi'}-root",
    )
    for projective in (False, True)
    for single in (False, True)
]


@cache
def choices(n: int, projective: bool, single_root: bool, labels: int) -> list[Choice]:
    """Every tree, under every choice of labels; `labels` 0 is without."""
    found: list[Choice] = []
    for heads in all_trees(n, projective=projective, single_root=single_root).tolist():
        arcs = [(heads[m], m) for m in range(1, n + 1)]
        if not labels:
            found.append(list(arcs))
            continue
        for chosen in product(range(labels), repeat=n):
            found.append([(*arc, label) for arc, label in zip(arcs, chosen, strict=True)])
    return found


@dataclass(frozen=True)
class DenseExamples:
    """features[i] is (n+1, n+1, D), or (n+1, n+1, L, D); gold_choices[i] are the right cells."""

    features: list[Floats]
    gold_choices: list[Choice]

    @property
    def lengths(self) -> Ints:
        return np.array([len(f) - 1 for f in self.features], np.int64)

    @property
    def size(self) -> int:
        return int(self.features[0].shape[-1])

    @property
    def labels(self) -> int:
        return int(self.features[0].shape[2]) if self.features[0].ndim == 4 else 0

    def _padded(self, which: Ints) -> Floats:
        width = int(self.lengths[which].max()) + 1
        return np.zeros((len(which), width, width, *self.features[0].shape[2:-1]))

    def score(self, weights: Floats, which: Ints) -> Floats:
        scores = self._padded(which)
        for b, i in enumerate(which.tolist()):
            n = len(self.features[i])
            scores[b, :n, :n] = self.features[i] @ weights
        return scores

    def add(self, weights: Floats, which: Ints, amounts: Floats) -> None:
        for b, i in enumerate(which.tolist()):
            n = len(self.features[i])
            weights += np.tensordot(amounts[b, :n, :n], self.features[i], self.features[i].ndim - 1)

    def gold(self, which: Ints) -> Floats:
        gold = self._padded(which)
        for b, i in enumerate(which.tolist()):
            for cell in self.gold_choices[i]:
                gold[(b, *cell)] = 1.0
        return gold

    def cost(self, which: Ints) -> Floats:
        return 1.0 - self.gold(which)

    def vector(self, i: int, choice: Choice) -> Floats:
        """The features of a whole choice."""
        total: Floats = sum((self.features[i][cell] for cell in choice), np.zeros(self.size))
        return total

    def loss(self, i: int, choice: Choice) -> int:
        """How many of its cells are not right."""
        return len(set(choice) - set(self.gold_choices[i]))


def random_examples(
    seed: int,
    projective: bool,
    single_root: bool,
    labels: int = 0,
    lengths: tuple[int, ...] = (3, 1, 4, 2, 3),
    size: int = 6,
) -> DenseExamples:
    rng = np.random.default_rng(seed)
    shape = (labels,) if labels else ()
    features = [rng.normal(size=(n + 1, n + 1, *shape, size)) for n in lengths]
    gold = []
    for n in lengths:
        every = choices(n, projective, single_root, labels)
        gold.append(every[int(rng.integers(len(every)))])
    return DenseExamples(features, gold)


@dataclass(frozen=True)
class Enumerated:
    """Structures by enumeration, without headway's algorithms; the first of equals is the best."""

    projective: bool = False
    single_root: bool = True

    def _totals(self, scores: Floats, n: int) -> tuple[list[Choice], Floats]:
        labels = scores.shape[2] if scores.ndim == 3 else 0
        every = choices(n, self.projective, self.single_root, labels)
        return every, np.array([sum(scores[cell] for cell in choice) for choice in every], np.float64)

    def best(self, scores: Floats, lengths: Ints, which: Ints) -> Floats:
        chosen = np.zeros_like(scores)
        for b, n in enumerate(lengths.tolist()):
            every, totals = self._totals(scores[b], n)
            for cell in every[int(totals.argmax())]:
                chosen[(b, *cell)] = 1.0
        return chosen

    def marginals(self, scores: Floats, lengths: Ints) -> tuple[Floats, Floats]:
        log_z, mu = np.zeros(len(lengths)), np.zeros_like(scores)
        for b, n in enumerate(lengths.tolist()):
            every, totals = self._totals(scores[b], n)
            log_z[b] = np.logaddexp.reduce(totals)
            for choice, share in zip(every, np.exp(totals - log_z[b]), strict=True):
                for cell in choice:
                    mu[(b, *cell)] += share
        return log_z, mu
