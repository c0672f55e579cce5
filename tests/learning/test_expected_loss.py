"""The expected loss, its gradient and what its training reaches, against enumeration and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway.arrays import Floats, TreeClass
from headway.learning import problem as problem_module
from headway.learning.descent import Descent
from headway.learning.expected_loss import ExpectedLoss
from headway.learning.log_linear import LogLinear

from .dense import (
    TREE_CLASSES,
    CostlyExamples,
    DenseExamples,
    Listed,
    assert_gradient,
    fitted,
    random_examples,
)

C = 0.7


def with_costs(examples: DenseExamples, seed: int) -> CostlyExamples:
    """Costs of any size and sign, those of right arcs too."""
    rng = np.random.default_rng(seed)
    costs = [rng.normal(1.0, 2.0, each.shape[:-1]) for each in examples.features]
    return CostlyExamples(examples.features, examples.structures, examples.gold_choices, costs)


def enumerated_loss(examples: DenseExamples, weights: Floats, listed: Listed) -> float:
    """The sum over sentences of the mean number of wrong cells."""
    total = 0.0
    for i, log_p in enumerate(listed.log_probabilities(weights)):
        total += float(np.exp(log_p) @ [examples.loss(i, choice) for choice in listed.choices[i]])
    return total


def loss_of(learner: ExpectedLoss, examples: DenseExamples, weights: Floats) -> float:
    """The same, from the learner's objective."""
    return (learner.objective(examples, weights)[0] - 0.5 * float(weights @ weights)) / learner.c


@pytest.mark.parametrize("trees", TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("chunk", [1, 10**6])
def test_wrong_arcs(trees: TreeClass, labels: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_module, "_CHUNK", chunk)
    examples = random_examples(61, trees, labels, lengths=(3, 1, 2, 3))
    listed = Listed(examples)
    weights = 0.5 * np.random.default_rng(62).normal(size=examples.size)

    def expected(weights: Floats) -> float:
        return C * enumerated_loss(examples, weights, listed) + 0.5 * float(weights @ weights)

    value, gradient = ExpectedLoss(C).objective(examples, weights)
    assert value == pytest.approx(expected(weights), rel=1e-12)
    assert_gradient(gradient, expected, weights)


@pytest.mark.parametrize("trees", TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("chunk", [1, 10**6])
def test_any_loss_that_is_a_sum_over_arcs(
    trees: TreeClass, labels: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problem_module, "_CHUNK", chunk)
    examples = with_costs(random_examples(63, trees, labels, lengths=(3, 1, 2, 3)), 64)
    listed = Listed(examples)
    costs = listed.sums(examples.costs)
    weights = 0.5 * np.random.default_rng(65).normal(size=examples.size)

    def expected(weights: Floats) -> float:
        losses = [np.exp(log_p) @ cost for log_p, cost in zip(listed.log_probabilities(weights), costs, strict=True)]
        return float(C * sum(losses) + 0.5 * weights @ weights)

    value, gradient = ExpectedLoss(C).objective(examples, weights)
    assert value == pytest.approx(expected(weights), rel=1e-12)
    assert_gradient(gradient, expected, weights)


@pytest.mark.parametrize("optimiser", ["lbfgs", "cg"])
@pytest.mark.parametrize("trees", TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
def test_every_step_falls(optimiser: Any, trees: TreeClass, labels: int) -> None:
    """Figures are those of each step's weights, and the last gradient is below the tolerance."""
    examples = random_examples(66, trees, labels)
    learner = ExpectedLoss(3.0, Descent(200, optimiser))
    weights, passes = fitted(learner, examples)
    start, first_gradient = learner.objective(examples, np.zeros(examples.size))
    assert (np.diff([start, *(done.figures["objective"] for done in passes)]) < 0).all()
    for done in passes:
        assert done.figures["objective"] == pytest.approx(learner.objective(examples, done.weights)[0], rel=1e-12)
    _, gradient = learner.objective(examples, weights)
    assert np.linalg.norm(gradient) < 1e-3 * np.linalg.norm(first_gradient)


@pytest.mark.parametrize("trees", TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
def test_fewer_wrong_arcs_than_the_likelihood_finds(trees: TreeClass, labels: int) -> None:
    """With C large, on data that no weights fit."""
    examples = random_examples(67, trees, labels, lengths=(3, 2, 4, 3, 4, 3))
    listed = Listed(examples)
    learner = ExpectedLoss(100.0, Descent(300))
    weights, _ = fitted(learner, examples)
    likely, _ = fitted(LogLinear(100.0, Descent(300)), examples)
    start, least, by_likelihood = (
        enumerated_loss(examples, each, listed) for each in (np.zeros(examples.size), weights, likely)
    )
    assert 0.0 < least < by_likelihood < start
    assert loss_of(learner, examples, weights) == pytest.approx(least, rel=1e-10)


@pytest.mark.parametrize("optimiser", ["adagrad", "adam"])
@pytest.mark.parametrize("labels", [0, 2])
def test_mini_batches_come_near_what_all_sentences_reach(optimiser: Any, labels: int) -> None:
    examples = random_examples(68, labels=labels, lengths=(3, 1, 4, 2, 3, 3, 2))
    best, _ = fitted(ExpectedLoss(1.0, Descent(500, tolerance=1e-8)), examples)
    learner = ExpectedLoss(1.0, Descent(400, optimiser, rate=0.05, batch=3))
    weights, passes = fitted(learner, examples)
    lowest, reached, start = (learner.objective(examples, each)[0] for each in (best, weights, np.zeros(examples.size)))
    assert lowest <= reached < lowest + 0.05 * (start - lowest)
    assert len(passes) == 400


def test_no_loss_where_nothing_costs() -> None:
    """The weights go to zero, from anywhere."""
    examples = random_examples(69)
    nothing = [np.zeros(f.shape[:-1]) for f in examples.features]
    free = CostlyExamples(examples.features, examples.structures, examples.gold_choices, nothing)
    weights = np.random.default_rng(70).normal(size=free.size)
    value, gradient = ExpectedLoss(5.0).objective(free, weights)
    assert value == 0.5 * float(weights @ weights)
    np.testing.assert_array_equal(gradient, weights)
