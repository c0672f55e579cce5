"""Training that goes on from the state of any pass ends where training that was never interrupted does."""

from __future__ import annotations

import numpy as np
import pytest

from headway.learning.descent import Descent
from headway.learning.entropy import EntropyRegularised
from headway.learning.expected_loss import ExpectedLoss
from headway.learning.exponentiated_gradient import ExponentiatedGradient
from headway.learning.generalized_expectation import GeneralizedExpectation
from headway.learning.log_linear import LogLinear
from headway.learning.perceptron import Perceptron
from headway.learning.progress import Learner, Pass, State

from .dense import DenseConstraints, random_examples, random_text

PASSES = 9  # more than L-BFGS has pairs


def learners(labels: int) -> dict[str, Learner]:
    """Each with its name; the text beside the trees has as many labels as they have."""
    text, adagrad = random_text(44, labels=labels, lengths=(3, 2, 1)), Descent(PASSES, "adagrad", batch=2)
    adam = Descent(PASSES, "adam", batch=2, seed=5)
    lbfgs, cg = Descent(PASSES, tolerance=0.0), Descent(PASSES, "cg", tolerance=0.0)
    rng, half = np.random.default_rng(46), np.array([0.4])
    values = [(rng.random((1, n + 1, n + 1)) < 0.5).astype(float) for n in (3, 1, 4, 2, 3)]
    constraints = DenseConstraints(values, half, half, np.ones(1), np.array([11.0]))
    from_rules = {  # rules are about arcs without labels
        "constraints": GeneralizedExpectation(constraints, c=10.0, descent=lbfgs),
        "constraints-cg": GeneralizedExpectation(constraints, "kl", c=10.0, descent=cg),
    }
    return {
        "perceptron": Perceptron(epochs=PASSES, seed=5),
        "margin": Perceptron(epochs=PASSES, margin=2.0),
        "lbfgs": LogLinear(descent=lbfgs),
        "cg": LogLinear(descent=cg),
        "adagrad": LogLinear(descent=adagrad),
        "adam": LogLinear(descent=adam),
        "eg": ExponentiatedGradient(passes=PASSES),
        "eg-loglinear": ExponentiatedGradient(passes=PASSES, loss="log"),
        "expected-loss": ExpectedLoss(descent=lbfgs),
        "expected-loss-cg": ExpectedLoss(descent=cg),
        "expected-loss-adagrad": ExpectedLoss(descent=adagrad),
        "expected-loss-adam": ExpectedLoss(descent=adam),
        "entropy": EntropyRegularised(text, descent=lbfgs),
        "entropy-adagrad": EntropyRegularised(text, descent=adagrad),
        "entropy-adam": EntropyRegularised(text, weight=0.5, alpha=2.0, descent=adam),
        **({} if labels else from_rules),
    }


every_learner = pytest.mark.parametrize("name", list(learners(0)))


@pytest.mark.parametrize(("name", "labels"), [(name, labels) for labels in (0, 2) for name in learners(labels)])
def test_bit_for_bit(name: str, labels: int) -> None:
    examples = random_examples(41, labels=labels)
    learner = learners(labels)[name]
    states: list[State] = []
    seen: list[Pass] = []

    def report(done: Pass) -> bool:
        states.append({key: array.copy() for key, array in done.state.items()})
        seen.append(Pass(done.number, done.weights.copy(), dict(done.figures), {}))
        return True

    whole = learner.fit(examples, report).copy()
    first_time = list(seen)
    assert len(first_time) == PASSES
    assert not np.array_equal(first_time[0].weights, first_time[-1].weights)
    for stop in range(1, PASSES):
        seen.clear()
        np.testing.assert_array_equal(learner.fit(examples, report, states[stop - 1]), whole)
        assert [done.number for done in seen] == list(range(stop + 1, PASSES + 1))
        for again, before in zip(seen, first_time[stop:], strict=True):
            np.testing.assert_array_equal(again.weights, before.weights)
            assert again.figures == before.figures


@every_learner
def test_with_no_pass_left_the_result_is_the_last_passes(name: str) -> None:
    examples, learner = random_examples(42), learners(0)[name]
    states: list[State] = []

    def report(done: Pass) -> bool:
        states.append(done.state)
        return True

    whole = learner.fit(examples, report).copy()
    np.testing.assert_array_equal(learner.fit(examples, report, states[-1]), whole)
    assert len(states) == PASSES
