"""A world of its own for the learners: dense random features, and structures chosen by enumeration.

Nothing of headway.features is used. `DenseExamples` is a problem that keeps the feature vector of every arc (and label)
as an array, as does `DenseText` where nothing is known to be right; `DenseConstraints` keeps what every arc counts for
each of K constraints. Both problems choose among the trees of their `structures`: `Trees` of headway, or `Enumerated`,
which finds the best tree and the marginals by going through every tree. `Listed` has every choice of every sentence
with its features, for objectives written out as sums over choices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import product
from typing import Any, Generic, TypeVar

import numpy as np
import pytest

from headway.arrays import Floats, Ints, TreeClass
from headway.inference.brute_force import all_trees
from headway.learning.problem import COVARIANCE, Quantity
from headway.learning.progress import Pass
from headway.learning.structures import Trees

SINGLE_ROOT = TreeClass()  # non-projective
Choice = list[tuple[int, ...]]  # the cells (h, m) or (h, m, label) that are chosen

TREE_CLASSES = [
    pytest.param(
        TreeClass(projective, single),
        id=f"{'projective' if projective else 'non-projective'}-{'single' if single else 'multi'}-root",
    )
    for projective in (False, True)
    for single in (False, True)
]


@cache
def choices(n: int, trees: TreeClass, labels: int) -> list[Choice]:
    """Every tree, under every choice of labels; `labels` 0 is without."""
    found: list[Choice] = []
    for heads in all_trees(n, **trees._asdict()).tolist():
        arcs = [(heads[m], m) for m in range(1, n + 1)]
        if not labels:
            found.append(list(arcs))
            continue
        for chosen in product(range(labels), repeat=n):
            found.append([(*arc, label) for arc, label in zip(arcs, chosen, strict=True)])
    return found


@dataclass(frozen=True)
class Enumerated:
    """Structures by enumeration, without headway's algorithms; the first of equals is the best."""

    trees: TreeClass = SINGLE_ROOT

    def _totals(self, scores: Floats, n: int) -> tuple[list[Choice], Floats]:
        labels = scores.shape[2] if scores.ndim == 3 else 0
        every = choices(n, self.trees, labels)
        return every, np.array([sum(scores[cell] for cell in choice) for choice in every], np.float64)

    def best(self, scores: Floats, lengths: Ints) -> Floats:
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

    def covariance(self, scores: Floats, lengths: Ints, f: Floats) -> tuple[Floats, Floats, Floats]:
        """Cov(f, 1[cell]), from its definition."""
        log_z, mu = self.marginals(scores, lengths)
        slope = np.zeros_like(scores)
        for b, n in enumerate(lengths.tolist()):
            every, totals = self._totals(scores[b], n)
            shares = np.exp(totals - log_z[b])
            values = np.array([sum(f[(b, *cell)] for cell in choice) for choice in every])
            for choice, share, value in zip(every, shares, values, strict=True):
                for cell in choice:
                    slope[(b, *cell)] += share * (value - shares @ values)
        return log_z, mu, slope


@dataclass(frozen=True)
class DenseText:
    """features[i] is (n+1, n+1, D), or (n+1, n+1, L, D)."""

    features: list[Floats]
    structures: Trees | Enumerated

    @property
    def offers(self) -> frozenset[Quantity]:
        return COVARIANCE

    @property
    def trees(self) -> TreeClass:
        return self.structures.trees

    @property
    def lengths(self) -> Ints:
        return np.array([len(f) - 1 for f in self.features], np.int64)

    @property
    def size(self) -> int:
        return int(self.features[0].shape[-1]) if self.features else 0  # a shard may be empty

    @property
    def labels(self) -> int:
        return int(self.features[0].shape[2]) if self.features[0].ndim == 4 else 0

    def some(self, which: Ints) -> DenseSentences[Any]:
        return DenseSentences(self, which)

    def only(self, which: Ints) -> Any:
        """The sentences with these numbers, without the others: whatever is kept sentence by sentence is a list."""
        kept: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        own = {name: [of[i] for i in which.tolist()] for name, of in kept.items() if name != "structures"}
        return type(self)(**{**kept, **own})

    def vector(self, i: int, choice: Choice) -> Floats:
        """The features of a whole choice."""
        total: Floats = sum((self.features[i][cell] for cell in choice), np.zeros(self.size))
        return total


Text = TypeVar("Text", bound=DenseText)


@dataclass(frozen=True)
class DenseSentences(Generic[Text]):
    """Some sentences of a problem; those without trees have no gold and no cost."""

    problem: Text
    which: Ints

    @property
    def features(self) -> list[Floats]:
        return [self.problem.features[i] for i in self.which.tolist()]

    @property
    def lengths(self) -> Ints:
        return self.problem.lengths[self.which]

    def padded(self) -> Floats:
        width = int(self.lengths.max()) + 1
        return np.zeros((len(self.which), width, width, *self.features[0].shape[2:-1]))

    def score(self, weights: Floats) -> Floats:
        scores = self.padded()
        for b, f in enumerate(self.features):
            scores[b, : len(f), : len(f)] = f @ weights
        return scores

    def add(self, into: Floats, amounts: Floats) -> None:
        for b, f in enumerate(self.features):
            into += np.tensordot(amounts[b, : len(f), : len(f)], f, f.ndim - 1)

    def best(self, scores: Floats) -> Floats:
        return self.problem.structures.best(scores, self.lengths)

    def marginals(self, scores: Floats) -> tuple[Floats, Floats]:
        return self.problem.structures.marginals(scores, self.lengths)

    def covariance(self, scores: Floats, f: Floats) -> tuple[Floats, Floats, Floats]:
        return self.problem.structures.covariance(scores, self.lengths, f)

    def gold(self) -> Floats:
        raise AssertionError("text has no trees")

    def cost(self) -> Floats:
        raise AssertionError("text has no trees")


@dataclass(frozen=True)
class DenseExamples(DenseText):
    """gold_choices[i] are the right cells."""

    gold_choices: list[Choice]

    def some(self, which: Ints) -> DenseSentences[Any]:
        return ExampleSentences(self, which)

    def loss(self, i: int, choice: Choice) -> int:
        """How many of its cells are not right."""
        return len(set(choice) - set(self.gold_choices[i]))


class ExampleSentences(DenseSentences[DenseExamples]):
    """Sentences with trees."""

    def gold(self) -> Floats:
        gold = self.padded()
        for b, i in enumerate(self.which.tolist()):
            for cell in self.problem.gold_choices[i]:
                gold[(b, *cell)] = 1.0
        return gold

    def cost(self) -> Floats:
        return 1.0 - self.gold()


@dataclass(frozen=True)
class CostlyExamples(DenseExamples):
    """costs[i], (n+1, n+1) or (n+1, n+1, L), is what each cell costs, right or wrong."""

    costs: list[Floats]

    def some(self, which: Ints) -> DenseSentences[Any]:
        return CostlySentences(self, which)


class CostlySentences(ExampleSentences):
    """Sentences with trees and with costs of their own."""

    problem: CostlyExamples

    def cost(self) -> Floats:
        cost = self.padded()
        for b, i in enumerate(self.which.tolist()):
            n = len(self.problem.costs[i])
            cost[b, :n, :n] = self.problem.costs[i]
        return cost


@dataclass(frozen=True)
class DenseConstraints:
    """values[i], (K, n+1, n+1), is what each arc of sentence i counts for each constraint."""

    values: list[Floats]
    low: Floats
    high: Floats
    weights: Floats
    units: Floats

    def only(self, which: Ints) -> DenseConstraints:
        return replace(self, values=[self.values[i] for i in which.tolist()])

    def totals(self, which: Ints, mu: Floats) -> Floats:
        totals = np.zeros(len(self.units))
        for b, i in enumerate(which.tolist()):
            n = self.values[i].shape[1]
            totals += (self.values[i] * mu[b, :n, :n]).sum(axis=(1, 2))
        return totals

    def combined(self, which: Ints, coefficients: Floats) -> Floats:
        width = max(self.values[i].shape[1] for i in which.tolist())
        sums = np.zeros((len(which), width, width))
        for b, i in enumerate(which.tolist()):
            n = self.values[i].shape[1]
            for value, coefficient in zip(self.values[i], coefficients.tolist(), strict=True):
                sums[b, :n, :n] += coefficient * value
        return sums


def random_text(
    seed: int,
    trees: TreeClass = SINGLE_ROOT,
    labels: int = 0,
    lengths: tuple[int, ...] = (3, 1, 4, 2, 3),
    size: int = 6,
) -> DenseText:
    rng = np.random.default_rng(seed)
    shape = (labels,) if labels else ()
    return DenseText([rng.normal(size=(n + 1, n + 1, *shape, size)) for n in lengths], Trees(trees))


def random_examples(
    seed: int,
    trees: TreeClass = SINGLE_ROOT,
    labels: int = 0,
    lengths: tuple[int, ...] = (3, 1, 4, 2, 3),
    size: int = 6,
) -> DenseExamples:
    rng = np.random.default_rng(seed)
    shape = (labels,) if labels else ()
    features = [rng.normal(size=(n + 1, n + 1, *shape, size)) for n in lengths]
    gold = []
    for n in lengths:
        every = choices(n, trees, labels)
        gold.append(every[int(rng.integers(len(every)))])
    return DenseExamples(features, Trees(trees), gold)


class Listed:
    """Every choice of every sentence of a text, with its features."""

    def __init__(self, text: DenseText) -> None:
        self.choices = [choices(n, text.trees, text.labels) for n in text.lengths.tolist()]
        self._vectors = [np.array([text.vector(i, choice) for choice in every]) for i, every in enumerate(self.choices)]

    def log_probabilities(self, weights: Floats) -> list[Floats]:
        """Of every choice, one array per sentence."""
        scores = [vectors @ weights for vectors in self._vectors]
        return [each - np.logaddexp.reduce(each) for each in scores]

    def sums(self, values: list[Floats]) -> list[Floats]:
        """What each choice's cells sum to, one array per sentence; `values` are shaped like a sentence's scores."""
        return [
            np.array([sum(float(value[cell]) for cell in choice) for choice in every])
            for every, value in zip(self.choices, values, strict=True)
        ]


def central_differences(function: Callable[[Floats], float], weights: Floats, step: float = 1e-5) -> Floats:
    """The gradient of a function, one weight after the other."""
    slopes = np.zeros_like(weights)
    for j in range(len(weights)):
        aside = np.zeros_like(weights)
        aside[j] = step
        slopes[j] = (function(weights + aside) - function(weights - aside)) / (2 * step)
    return slopes


def assert_gradient(found: Floats, function: Callable[[Floats], float], weights: Floats) -> None:
    """Within 1e-6 of the differences, relative to each component and, where one is near zero, to the largest."""
    expected = central_differences(function, weights)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8 * float(np.abs(expected).max()))


def fitted(learner: Any, text: DenseText) -> tuple[Floats, list[Pass]]:
    """The weights a learner finds, and what it reported after each pass."""
    passes: list[Pass] = []

    def report(done: Pass) -> bool:
        passes.append(Pass(done.number, done.weights.copy(), dict(done.figures), {}))
        return True

    return learner.fit(text, report), passes
