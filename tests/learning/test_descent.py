"""The optimisers, on functions whose minimum is known, and on losses with update rules written out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headway.errors import TrainingError
from headway.learning.descent import Descent, Losses
from headway.learning.progress import Pass, State

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
C = 0.7
batch_optimisers = pytest.mark.parametrize("optimiser", ["lbfgs", "cg"])
online_optimisers = pytest.mark.parametrize("optimiser", ["adagrad", "adam"])
every_optimiser = pytest.mark.parametrize("optimiser", ["lbfgs", "cg", "adagrad", "adam"])


def regression(seed: int, count: int = 7, size: int = 4) -> tuple[Floats, Floats]:
    """Rows and values of a least-squares problem, whose minimum is a linear system's."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, size)), rng.normal(size=count)


def squares(rows: Floats, values: Floats, portion: int = 3) -> Losses:
    """C (row w - value)^2 / 2 for each row."""

    def chunks() -> Iterator[Ints]:
        for start in range(0, len(rows), portion):
            yield np.arange(start, min(start + portion, len(rows)))

    def add(weights: Floats, which: Ints, gradient: Floats) -> float:
        wrong = rows[which] @ weights - values[which]
        gradient += C * rows[which].T @ wrong
        return 0.5 * C * float(wrong @ wrong)

    return Losses(rows.shape[1], len(rows), chunks, add)


def minimum(rows: Floats, values: Floats) -> Floats:
    found: Floats = np.linalg.solve(np.eye(rows.shape[1]) + C * rows.T @ rows, C * rows.T @ values)
    return found


def rosenbrock(w: Floats) -> tuple[float, Floats]:
    """No sum, not convex; 0 at (1, 1)."""
    value = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
    slope = np.array([2 * (w[0] - 1) - 400 * w[0] * (w[1] - w[0] ** 2), 200 * (w[1] - w[0] ** 2)])
    return float(value), slope


class Reports:
    """What was reported, each with weights of its own; `last` ends the training."""

    def __init__(self, last: int | None = None) -> None:
        self.last = last
        self.passes: list[Pass] = []

    def __call__(self, done: Pass) -> bool:
        state = {name: array.copy() for name, array in done.state.items()}
        self.passes.append(Pass(done.number, done.weights.copy(), dict(done.figures), state))
        return done.number != self.last

    @property
    def numbers(self) -> list[int]:
        return [done.number for done in self.passes]

    @property
    def objectives(self) -> list[float]:
        return [done.figures["objective"] for done in self.passes]


@pytest.mark.parametrize("portion", [1, 3, 100])
def test_the_sum_goes_through_all_portions(portion: int) -> None:
    rows, values = regression(1)
    weights = np.random.default_rng(2).normal(size=4)
    before = weights.copy()
    value, gradient = squares(rows, values, portion).objective(weights)
    wrong = rows @ weights - values
    assert value == pytest.approx(0.5 * C * wrong @ wrong + 0.5 * weights @ weights, rel=1e-13)
    np.testing.assert_allclose(gradient, C * rows.T @ wrong + weights, rtol=1e-12)
    np.testing.assert_array_equal(weights, before)


@batch_optimisers
def test_a_sum_is_minimised(optimiser: Any) -> None:
    """Figures are those of the weights reported; the objective falls with every step, to the known minimum."""
    rows, values = regression(3)
    losses, reports = squares(rows, values), Reports()
    weights = Descent(100, optimiser, tolerance=1e-5).minimise_sum(losses, reports)
    np.testing.assert_allclose(weights, minimum(rows, values), atol=1e-5)
    start, first_gradient = losses.objective(np.zeros(4))
    assert (np.diff([start, *reports.objectives]) < 0).all()
    assert reports.numbers == list(range(1, len(reports.passes) + 1))
    for done in reports.passes:
        value, gradient = losses.objective(done.weights)
        assert done.figures["objective"] == pytest.approx(value, rel=1e-12)
        share = float(np.linalg.norm(gradient) / np.linalg.norm(first_gradient))
        assert done.figures["gradient"] == pytest.approx(share, rel=1e-9)
    np.testing.assert_array_equal(weights, reports.passes[-1].weights)


@batch_optimisers
def test_what_is_no_sum_is_minimised(optimiser: Any) -> None:
    reports = Reports()
    weights = Descent(500, optimiser, tolerance=1e-9).minimise(rosenbrock, 2, reports)
    np.testing.assert_allclose(weights, [1.0, 1.0], atol=1e-6)
    assert (np.diff([1.0, *reports.objectives]) < 0).all()


@online_optimisers
def test_what_is_no_sum_has_no_mini_batches(optimiser: Any) -> None:
    reports = Reports()
    with pytest.raises(TrainingError, match=f"{optimiser} takes some sentences at a time, .* use lbfgs or cg"):
        Descent(5, optimiser).minimise(rosenbrock, 2, reports)
    assert reports.passes == []


@batch_optimisers
@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6])
def test_the_tolerance_ends_the_training(optimiser: Any, tolerance: float) -> None:
    """The first step whose gradient is below that share of the first gradient is the last one."""
    rows, values = regression(4)
    reports = Reports()
    Descent(500, optimiser, tolerance=tolerance).minimise_sum(squares(rows, values), reports)
    shares = [done.figures["gradient"] for done in reports.passes]
    assert shares[-1] < tolerance
    assert all(share >= tolerance for share in shares[:-1])


@every_optimiser
@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_iterations_bound_the_steps(optimiser: Any, iterations: int) -> None:
    reports = Reports()
    Descent(iterations, optimiser, tolerance=0.0).minimise_sum(squares(*regression(5)), reports)
    assert reports.numbers == list(range(1, iterations + 1))


@every_optimiser
def test_a_report_ends_the_training(optimiser: Any) -> None:
    reports = Reports(last=3)
    weights = Descent(100, optimiser, tolerance=0.0).minimise_sum(squares(*regression(6)), reports)
    assert reports.numbers == [1, 2, 3]
    np.testing.assert_array_equal(weights, reports.passes[-1].weights)


@batch_optimisers
def test_training_that_starts_at_the_optimum_reports_it(optimiser: Any) -> None:
    reports = Reports()
    losses = squares(np.zeros((3, 4)), np.zeros(3))
    weights = Descent(optimiser=optimiser).minimise_sum(losses, reports)
    assert reports.numbers == [1]
    assert reports.passes[0].figures == {"objective": 0.0, "gradient": 0.0}
    assert not weights.any()


@batch_optimisers
def test_after_resuming_the_gradient_is_still_compared_with_its_start(optimiser: Any) -> None:
    losses = squares(*regression(7, 30, 12))
    descent, first, second = Descent(100, optimiser), Reports(last=2), Reports()
    descent.minimise_sum(losses, first)
    descent.minimise_sum(losses, second, first.passes[-1].state)
    start = np.linalg.norm(losses.objective(np.zeros(12))[1])
    assert second.numbers[0] == 3
    for done in second.passes:
        share = np.linalg.norm(losses.objective(done.weights)[1]) / start
        assert done.figures["gradient"] == pytest.approx(share, rel=1e-9)
    assert second.passes[-1].figures["gradient"] < 1e-3


@batch_optimisers
def test_resuming_has_the_steps_that_are_left(optimiser: Any) -> None:
    first, second, third = Reports(last=2), Reports(), Reports()
    descent = Descent(5, optimiser, tolerance=0.0)
    descent.minimise(rosenbrock, 2, first)
    descent.minimise(rosenbrock, 2, second, first.passes[-1].state)
    assert second.numbers == [3, 4, 5]
    assert second.objectives[0] < first.objectives[-1]
    weights = descent.minimise(rosenbrock, 2, third, second.passes[-1].state)
    assert third.passes == []
    np.testing.assert_array_equal(weights, second.passes[-1].weights)


@online_optimisers
def test_mini_batches_come_near_the_minimum(optimiser: Any) -> None:
    rows, values = regression(8)
    losses = squares(rows, values)
    weights = Descent(600, optimiser, rate=0.05, batch=3).minimise_sum(losses, Reports())
    lowest, reached, start = (losses.objective(w)[0] for w in (minimum(rows, values), weights, np.zeros(4)))
    assert lowest <= reached < lowest + 0.02 * (start - lowest)


@online_optimisers
def test_mini_batch_steps_are_the_papers(optimiser: Any) -> None:
    """Three epochs with the update rules written out, the regulariser spread over the batches, the steps averaged."""
    rows, values = regression(9)
    count, batch, rate = len(rows), 3, 0.3
    weights, first, second = np.zeros((3, rows.shape[1]))
    kept: list[Floats] = []
    objectives: list[float] = []
    for epoch in range(3):
        order = np.random.default_rng((7, epoch)).permutation(count).tolist()
        value = 0.0
        for start in range(0, count, batch):
            some = order[start : start + batch]
            wrong = [float(rows[i] @ weights) - float(values[i]) for i in some]
            value += sum(C * each**2 / 2 for each in wrong)
            gradient = weights * len(some) / count
            for i, each in zip(some, wrong, strict=True):
                gradient = gradient + C * each * rows[i]
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
        objectives.append(value + 0.5 * float(weights @ weights))
    reports = Reports()
    found = Descent(3, optimiser, rate=rate, batch=batch, seed=7).minimise_sum(squares(rows, values), reports)
    np.testing.assert_allclose(found, np.mean(kept, axis=0), rtol=1e-10)
    np.testing.assert_allclose(reports.passes[0].weights, np.mean(kept[:3], axis=0), rtol=1e-10)
    np.testing.assert_allclose(reports.objectives, objectives, rtol=1e-10)


@online_optimisers
def test_the_seed_is_the_order_of_the_sentences(optimiser: Any) -> None:
    losses = squares(*regression(10))
    one, same, other = (Descent(3, optimiser, batch=2, seed=seed).minimise_sum(losses, Reports()) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


@every_optimiser
def test_weights_that_nothing_moves_stay_at_zero(optimiser: Any) -> None:
    """A feature that no sentence has: no division of zero by zero."""
    rows, values = regression(11)
    rows[:, 2] = 0.0
    weights = Descent(20, optimiser).minimise_sum(squares(rows, values), Reports())
    assert weights[2] == 0.0
    assert np.isfinite(weights).all()
    assert weights[0] != 0.0


@online_optimisers
def test_resuming_is_bit_for_bit(optimiser: Any) -> None:
    losses, whole = squares(*regression(12)), Reports()
    descent = Descent(5, optimiser, batch=2, seed=3)
    weights = descent.minimise_sum(losses, whole)
    state: State = whole.passes[1].state
    again = Reports()
    np.testing.assert_array_equal(descent.minimise_sum(losses, again, state), weights)
    assert again.objectives == whole.objectives[2:]
