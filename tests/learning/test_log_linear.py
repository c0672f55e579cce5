"""The likelihood, its gradient and its optimisers, against enumeration and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headway.learning import examples as examples_module
from headway.learning.descent import Descent
from headway.learning.examples import Trees
from headway.learning.log_linear import LogLinear
from headway.learning.progress import Pass, State

from .dense import TREE_CLASSES, DenseExamples, choices, random_examples

Floats = NDArray[np.float64]
C = 0.7


def enumerated_objective(examples: DenseExamples, weights: Floats, projective: bool, single_root: bool) -> float:
    total = 0.5 * float(weights @ weights)
    for i, n in enumerate(examples.lengths.tolist()):
        every = choices(n, projective, single_root, examples.labels)
        totals = [weights @ examples.vector(i, choice) for choice in every]
        total += C * (np.logaddexp.reduce(totals) - weights @ examples.vector(i, examples.gold_choices[i]))
    return float(total)


@pytest.mark.parametrize(("projective", "single_root"), TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("chunk", [1, 10**6])
def test_objective_and_gradient(
    projective: bool, single_root: bool, labels: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examples_module, "_CHUNK", chunk)
    examples = random_examples(51, projective, single_root, labels, lengths=(3, 1, 2, 3))
    weights = np.random.default_rng(52).normal(size=examples.size)
    learner = LogLinear(Trees(projective, single_root), C)
    value, gradient = learner.objective(examples, weights)
    assert value == pytest.approx(enumerated_objective(examples, weights, projective, single_root), rel=1e-12)
    step = 1e-5
    for j in range(examples.size):
        aside = np.eye(examples.size)[j] * step
        up, down = (
            enumerated_objective(examples, weights + sign * aside, projective, single_root) for sign in (1.0, -1.0)
        )
        assert gradient[j] == pytest.approx((up - down) / (2 * step), rel=1e-7, abs=1e-7)


def fitted(learner: LogLinear, examples: DenseExamples) -> tuple[Floats, list[Pass]]:
    passes: list[Pass] = []

    def report(done: Pass) -> bool:
        passes.append(Pass(done.number, done.weights.copy(), dict(done.figures), {}))
        return True

    return learner.fit(examples, report), passes


@pytest.mark.parametrize("optimiser", ["lbfgs", "cg"])
@pytest.mark.parametrize(("projective", "single_root"), TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
def test_batch_optimisers_fall_to_the_optimum(optimiser: Any, projective: bool, single_root: bool, labels: int) -> None:
    """Figures are those of each step's weights; L falls with every step; the gradient ends below 1e-3 of its start."""
    examples = random_examples(53, projective, single_root, labels)
    learner = LogLinear(Trees(projective, single_root), 10.0, Descent(optimiser=optimiser))
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
    examples = random_examples(54, False, True, lengths=(3, 1, 4, 2, 3, 3, 2))
    best, _ = fitted(LogLinear(Trees(), 1.0, Descent(500, tolerance=1e-8)), examples)
    lowest = LogLinear(Trees(), 1.0).objective(examples, best)[0]
    learner = LogLinear(Trees(), 1.0, Descent(400, optimiser, rate=0.05, batch=3))
    weights, passes = fitted(learner, examples)
    start = learner.objective(examples, np.zeros(examples.size))[0]
    reached = learner.objective(examples, weights)[0]
    assert lowest <= reached < lowest + 0.01 * (start - lowest)
    assert len(passes) == 400


@pytest.mark.parametrize("optimiser", ["adagrad", "adam"])
def test_mini_batch_steps_are_the_papers(optimiser: Any) -> None:
    """Two epochs with the update rules written out, the regulariser spread over the batches, the steps averaged."""
    examples = random_examples(55, False, True)
    count, batch, rate = len(examples.lengths), 2, 0.3
    weights, first, second = np.zeros((3, examples.size))
    kept: list[Floats] = []
    for epoch in range(2):
        order = np.random.default_rng((7, epoch)).permutation(count).tolist()
        for start in range(0, count, batch):
            some = order[start : start + batch]
            part = DenseExamples([examples.features[i] for i in some], [examples.gold_choices[i] for i in some])
            gradient = LogLinear(Trees(), C).objective(part, weights)[1] - weights + weights * len(some) / count
            if optimiser == "adagrad":
                second = second + gradient**2
                weights = weights - rate * gradient / np.sqrt(second)
            else:
                step = len(kept) + 1
                first = 0.9 * first + 0.1 * gradient
                second = 0.999 * second + 0.001 * gradient**2
                corrected, spread = first / (1 - 0.9**step), second / (1 - 0.999**step)
                weights = weights - rate * corrected / (np.sqrt(spread) + 1e-8)
            kept.append(weights)
    learner = LogLinear(Trees(), C, Descent(2, optimiser, rate=rate, batch=batch, seed=7))
    np.testing.assert_allclose(fitted(learner, examples)[0], np.mean(kept, axis=0), rtol=1e-10)


@pytest.mark.parametrize("optimiser", ["lbfgs", "cg", "adagrad", "adam"])
def test_a_report_ends_the_training(optimiser: Any) -> None:
    examples = random_examples(56, False, True)
    numbers: list[int] = []
    kept: list[Floats] = []

    def report(done: Pass) -> bool:
        numbers.append(done.number)
        kept.append(done.weights.copy())
        return done.number < 3

    weights = LogLinear(Trees(), 10.0, Descent(optimiser=optimiser)).fit(examples, report)
    assert numbers == [1, 2, 3]
    np.testing.assert_array_equal(weights, kept[-1])


@pytest.mark.parametrize("optimiser", ["lbfgs", "cg"])
def test_iterations_bound_the_steps(optimiser: Any) -> None:
    _, passes = fitted(LogLinear(Trees(), 10.0, Descent(2, optimiser)), random_examples(57, False, True))
    assert len(passes) == 2


@pytest.mark.parametrize("optimiser", ["lbfgs", "cg"])
def test_training_that_starts_at_the_optimum_reports_it(optimiser: Any) -> None:
    """Sentences of one word have one tree: there is nothing to learn, and the zero weights are the result."""
    weights, passes = fitted(
        LogLinear(Trees(), 1.0, Descent(optimiser=optimiser)), random_examples(58, False, True, lengths=(1, 1))
    )
    assert [done.number for done in passes] == [1]
    assert passes[0].figures == {"objective": 0.0, "gradient": 0.0}
    assert not weights.any()


@pytest.mark.parametrize("optimiser", ["lbfgs", "cg"])
def test_after_resuming_the_gradient_is_still_compared_with_its_start(optimiser: Any) -> None:
    examples = random_examples(59, False, True)
    learner = LogLinear(Trees(), 10.0, Descent(optimiser=optimiser))
    states: list[State] = []

    def stop_at_two(done: Pass) -> bool:
        states.append({key: array.copy() for key, array in done.state.items()})
        return done.number < 2

    learner.fit(examples, stop_at_two)
    passes: list[Pass] = []

    def report(done: Pass) -> bool:
        passes.append(done)
        return True

    learner.fit(examples, report, states[-1])
    start = np.linalg.norm(learner.objective(examples, np.zeros(examples.size))[1])
    for done in passes:
        share = np.linalg.norm(learner.objective(examples, done.weights)[1]) / start
        assert done.figures["gradient"] == pytest.approx(share, rel=1e-9)
    assert passes[-1].figures["gradient"] < 1e-3
