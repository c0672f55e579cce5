"""The likelihood and its gradient, against enumeration and finite differences, and what the optimisers make of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway.arrays import Floats, TreeClass
from headway.learning import problem as problem_module
from headway.learning.descent import Descent
from headway.learning.log_linear import LogLinear

from .dense import TREE_CLASSES, DenseExamples, Listed, assert_gradient, fitted, random_examples

C = 0.7


def enumerated_objective(examples: DenseExamples, weights: Floats, listed: Listed) -> float:
    total = 0.5 * float(weights @ weights)
    for i, log_p in enumerate(listed.log_probabilities(weights)):
        total -= C * float(log_p[listed.choices[i].index(examples.gold_choices[i])])
    return total


@pytest.mark.parametrize("trees", TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("chunk", [1, 10**6])
def test_objective_and_gradient(trees: TreeClass, labels: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_module, "_CHUNK", chunk)
    examples = random_examples(51, trees, labels, lengths=(3, 1, 2, 3))
    listed = Listed(examples)
    weights = np.random.default_rng(52).normal(size=examples.size)
    value, gradient = LogLinear(C).objective(examples, weights)
    assert value == pytest.approx(enumerated_objective(examples, weights, listed), rel=1e-12)
    assert_gradient(gradient, lambda w: enumerated_objective(examples, w, listed), weights)


@pytest.mark.parametrize("optimiser", ["lbfgs", "cg"])
@pytest.mark.parametrize("trees", TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
def test_batch_optimisers_fall_to_the_optimum(optimiser: Any, trees: TreeClass, labels: int) -> None:
    """Figures are those of each step's weights; L falls with every step; the gradient ends below 1e-3 of its start."""
    examples = random_examples(53, trees, labels)
    learner = LogLinear(10.0, Descent(optimiser=optimiser))
    weights, passes = fitted(learner, examples)
    start, first_gradient = learner.objective(examples, np.zeros(examples.size))
    values = [start, *(done.figures["objective"] for done in passes)]
    assert (np.diff(values) < 0).all()
    assert [done.number for done in passes] == list(range(1, len(passes) + 1))
    for done in passes:
        value, gradient = learner.objective(examples, done.weights)
        assert done.figures["objective"] == pytest.approx(value, rel=1e-12)
        share = float(np.linalg.norm(gradient) / np.linalg.norm(first_gradient))
        assert done.figures["gradient"] == pytest.approx(share, rel=1e-9)
    assert passes[-1].figures["gradient"] < 1e-3
    assert all(done.figures["gradient"] >= 1e-3 for done in passes[:-1])
    np.testing.assert_array_equal(weights, passes[-1].weights)


@pytest.mark.parametrize("optimiser", ["adagrad", "adam"])
def test_mini_batches_come_near_the_optimum(optimiser: Any) -> None:
    examples = random_examples(54, lengths=(3, 1, 4, 2, 3, 3, 2))
    best, _ = fitted(LogLinear(1.0, Descent(500, tolerance=1e-8)), examples)
    lowest = LogLinear(1.0).objective(examples, best)[0]
    learner = LogLinear(1.0, Descent(400, optimiser, rate=0.05, batch=3))
    weights, passes = fitted(learner, examples)
    start = learner.objective(examples, np.zeros(examples.size))[0]
    reached = learner.objective(examples, weights)[0]
    assert lowest <= reached < lowest + 0.01 * (start - lowest)
    assert len(passes) == 400
