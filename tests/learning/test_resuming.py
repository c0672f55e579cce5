"""Training that goes on from the state of any pass ends where training that was never interrupted does."""

from __future__ import annotations

import numpy as np
import pytest

from headway.learning.descent import Descent
from headway.learning.examples import Trees
from headway.learning.exponentiated_gradient import ExponentiatedGradient
from headway.learning.log_linear import LogLinear
from headway.learning.perceptron import Perceptron
from headway.learning.progress import Learner, Pass, State

from .dense import random_examples

PASSES = 4
LEARNERS: dict[str, Learner] = {
    "perceptron": Perceptron(epochs=PASSES, seed=5),
    "margin": Perceptron(epochs=PASSES, margin=2.0),
    "adagrad": LogLinear(descent=Descent(PASSES, "adagrad", batch=2)),
    "adam": LogLinear(descent=Descent(PASSES, "adam", batch=2, seed=5)),
    "eg": ExponentiatedGradient(passes=PASSES),
    "eg-loglinear": ExponentiatedGradient(passes=PASSES, loss="log"),
}
every_learner = pytest.mark.parametrize("name", list(LEARNERS))


@every_learner
@pytest.mark.parametrize("labels", [0, 2])
def test_bit_for_bit(name: str, labels: int) -> None:
    examples = random_examples(41, False, True, labels)
    states: list[State] = []
    seen: list[Pass] = []

    def report(done: Pass) -> bool:
        states.append({key: array.copy() for key, array in done.state.items()})
        seen.append(Pass(done.number, done.weights.copy(), dict(done.figures), {}))
        return True

    whole = LEARNERS[name].fit(examples, report).copy()
    first_time = list(seen)
    assert len(first_time) == PASSES
    assert not np.array_equal(first_time[0].weights, first_time[-1].weights)
    for stop in range(1, PASSES):
        seen.clear()
        np.testing.assert_array_equal(LEARNERS[name].fit(examples, report, states[stop - 1]), whole)
        assert [done.number for done in seen] == list(range(stop + 1, PASSES + 1))
        for again, before in zip(seen, first_time[stop:], strict=True):
            np.testing.assert_array_equal(again.weights, before.weights)
            assert again.figures == before.figures


@every_learner
def test_with_no_pass_left_the_result_is_the_last_passes(name: str) -> None:
    examples = random_examples(42, False, True)
    states: list[State] = []

    def report(done: Pass) -> bool:
        states.append(done.state)
        return True

    whole = LEARNERS[name].fit(examples, report).copy()
    np.testing.assert_array_equal(LEARNERS[name].fit(examples, report, states[-1]), whole)
    assert len(states) == PASSES


@pytest.mark.parametrize("optimiser", ["lbfgs", "cg"])
def test_batch_optimisers_go_on_from_the_weights(optimiser: str) -> None:
    """They gather their curvature anew, so the way differs, but not the number of steps nor the optimum."""
    examples = random_examples(43, False, True)
    states: list[State] = []

    def stop_at_two(done: Pass) -> bool:
        states.append({key: array.copy() for key, array in done.state.items()})
        return done.number < 2

    learner = LogLinear(Trees(), 1.0, Descent(100, optimiser, tolerance=1e-9))  # type: ignore[arg-type]
    learner.fit(examples, stop_at_two)
    assert [int(state["step"][0]) for state in states] == [1, 2]
    numbers: list[int] = []

    def count(done: Pass) -> bool:
        numbers.append(done.number)
        return True

    resumed = learner.fit(examples, count, states[-1])
    assert numbers[0] == 3
    np.testing.assert_allclose(resumed, learner.fit(examples, lambda _: True), atol=1e-6)
