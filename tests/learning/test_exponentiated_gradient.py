"""Exponentiated gradient against the same steps on explicit distributions over every tree, and its certificate."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from headway.arrays import Floats, TreeClass
from headway.learning.descent import Descent
from headway.learning.exponentiated_gradient import ExponentiatedGradient
from headway.learning.log_linear import LogLinear
from headway.learning.progress import Pass

from .dense import TREE_CLASSES, DenseExamples, choices, random_examples

C, BETA = 0.3, 9.0
both_losses = pytest.mark.parametrize("loss", ["hinge", "log"])


@dataclass
class Naive:
    """The dual as it is defined: one probability per tree and sentence, q ∝ exp(exponent)."""

    examples: DenseExamples
    loss: str

    def __post_init__(self) -> None:
        self.every = [choices(n, self.examples.trees, self.examples.labels) for n in self.examples.lengths.tolist()]
        self.vectors = [np.array([self.examples.vector(i, c) for c in every]) for i, every in enumerate(self.every)]
        self.losses = [np.array([self.examples.loss(i, c) for c in every], float) for i, every in enumerate(self.every)]
        words = self.examples.lengths
        self.exponents = [BETA * (n - losses) for n, losses in zip(words.tolist(), self.losses, strict=True)]
        self.eta = 1 / C if self.loss == "hinge" else 1.0
        self.last = -np.inf

    def q(self, i: int) -> Floats:
        share: Floats = np.exp(self.exponents[i] - np.logaddexp.reduce(self.exponents[i]))
        return share

    def weights(self) -> Floats:
        """w = C sum_i (f(gold) - E f), from scratch."""
        total = np.zeros(self.examples.size)
        for i, gold in enumerate(self.examples.gold_choices):
            total += C * (self.examples.vector(i, gold) - self.q(i) @ self.vectors[i])
        return total

    def dual(self) -> float:
        w = self.weights()
        total = -0.5 * float(w @ w)
        for i in range(len(self.every)):
            q = self.q(i)
            total += C * float(q @ (self.losses[i] if self.loss == "hinge" else -np.log(q)))
        return total

    def primal(self, w: Floats) -> float:
        total = 0.5 * float(w @ w)
        for i, gold in enumerate(self.examples.gold_choices):
            margins = self.vectors[i] @ w - self.examples.vector(i, gold) @ w
            if self.loss == "hinge":
                total += C * float((margins + self.losses[i]).max())
            else:
                total += C * float(np.logaddexp.reduce(margins))
        return total

    def step(self) -> float:
        for i in range(len(self.every)):
            scores = self.vectors[i] @ self.weights()
            if self.loss == "hinge":
                self.exponents[i] = self.exponents[i] + self.eta * C * (self.losses[i] + scores)
            else:
                self.exponents[i] = (1 - self.eta) * self.exponents[i] + self.eta * scores
        dual = self.dual()
        if dual <= self.last:
            self.eta /= 2
        self.last = dual
        return dual


def fitted(learner: ExponentiatedGradient, examples: DenseExamples) -> tuple[Floats, list[Pass]]:
    passes: list[Pass] = []

    def report(done: Pass) -> bool:
        state = {key: array.copy() for key, array in done.state.items()}
        passes.append(Pass(done.number, done.weights.copy(), dict(done.figures), state))
        return True

    return learner.fit(examples, report), passes


@both_losses
@pytest.mark.parametrize("trees", TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
def test_every_pass_is_that_of_explicit_distributions(loss: Any, trees: TreeClass, labels: int) -> None:
    """Weights, dual, primal, gap and eta of each pass; this includes w = C sum (gold - mu) f throughout."""
    examples = random_examples(61, trees, labels, lengths=(3, 1, 2, 3))
    naive = Naive(examples, loss)
    _, passes = fitted(ExponentiatedGradient(C, 6, loss), examples)
    assert len(passes) == 6
    for done in passes:
        dual = naive.step()
        primal = naive.primal(naive.weights())
        np.testing.assert_allclose(done.weights, naive.weights(), rtol=0, atol=1e-9)
        assert done.figures["dual"] == pytest.approx(dual, rel=1e-9, abs=1e-9)
        assert done.figures["primal"] == pytest.approx(primal, rel=1e-9)
        assert done.figures["gap"] == pytest.approx((primal - dual) / primal, rel=1e-6, abs=1e-9)
        assert done.figures["eta"] == naive.eta


@both_losses
def test_the_weights_are_the_missing_features(loss: Any) -> None:
    """w = C sum (gold - mu) f, with the mu that the state keeps, after many passes of additions."""
    examples = random_examples(62)
    _, passes = fitted(ExponentiatedGradient(C, 60, loss), examples)
    state, expected, start = passes[-1].state, np.zeros(examples.size), 0
    for i, n in enumerate(examples.lengths.tolist()):
        cells = (n + 1) ** 2
        mu = state["mu"][start : start + cells].reshape(1, n + 1, n + 1)
        this = examples.some(np.array([i]))
        this.add(expected, C * (this.gold() - mu))
        start += cells
    assert start == len(state["mu"])
    np.testing.assert_allclose(state["weights"], expected, rtol=0, atol=1e-10)


@both_losses
@pytest.mark.parametrize("trees", TREE_CLASSES)
def test_toy_problem_to_a_gap_below_a_thousandth(loss: Any, trees: TreeClass) -> None:
    """The dual rises (or eta is halved), never passes the primal, and meets it; enumeration certifies both."""
    examples = random_examples(63, trees)
    learner = ExponentiatedGradient(C, 3000, loss, gap=1e-3)
    weights, passes = fitted(learner, examples)
    assert len(passes) < 3000
    assert passes[-1].figures["gap"] < 1e-3
    assert all(done.figures["gap"] >= 1e-3 for done in passes[:-1])
    highest = max(done.figures["dual"] for done in passes)
    assert all(done.figures["primal"] >= highest - 1e-12 for done in passes)
    rises = []
    for before, after in pairwise(passes):
        rises.append(after.figures["dual"] > before.figures["dual"])
        assert after.figures["eta"] == before.figures["eta"] * (1.0 if rises[-1] else 0.5)
    assert all(rises[len(rises) // 2 :])
    primal = Naive(examples, loss).primal(weights)
    assert passes[-1].figures["primal"] == pytest.approx(primal, rel=1e-12)


@pytest.mark.parametrize("trees", TREE_CLASSES)
def test_the_log_variant_finds_the_optimum_of_lbfgs(trees: TreeClass) -> None:
    examples = random_examples(64, trees)
    direct = LogLinear(C, Descent(tolerance=1e-8))
    best = direct.objective(examples, direct.fit(examples, lambda _: True))[0]
    learner = ExponentiatedGradient(C, 500, "log", gap=1e-4)
    found = direct.objective(examples, learner.fit(examples, lambda _: True))[0]
    assert best <= found + 1e-9
    assert found == pytest.approx(best, rel=1e-3)


def test_the_hinge_optimum_is_a_minimum() -> None:
    """No step in any direction lowers the primal by more than the gap allows."""
    examples = random_examples(65)
    learner = ExponentiatedGradient(C, 5000, gap=1e-4)
    weights, passes = fitted(learner, examples)
    naive = Naive(examples, "hinge")
    primal, dual = naive.primal(weights), passes[-1].figures["dual"]
    rng = np.random.default_rng(66)
    others = [
        naive.primal(weights + rng.normal(0.0, size, examples.size)) for size in (0.01, 0.1, 1.0) for _ in range(100)
    ]
    assert dual <= min(primal, *others)


def test_a_report_ends_the_training() -> None:
    numbers: list[int] = []

    def report(done: Pass) -> bool:
        numbers.append(done.number)
        return done.number < 3

    ExponentiatedGradient(passes=10).fit(random_examples(67), report)
    assert numbers == [1, 2, 3]
