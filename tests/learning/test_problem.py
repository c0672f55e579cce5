"""The chunks that sentences come in, and that learners ask of a problem only what they declare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from headway.arrays import Ints
from headway.learning import problem as problem_module
from headway.learning.descent import Descent
from headway.learning.entropy import EntropyRegularised
from headway.learning.expected_loss import ExpectedLoss
from headway.learning.exponentiated_gradient import ExponentiatedGradient
from headway.learning.generalized_expectation import GeneralizedExpectation
from headway.learning.log_linear import LogLinear
from headway.learning.perceptron import Perceptron
from headway.learning.problem import ARGMAX, COVARIANCE, MARGINALS, Quantity, chunks_by_length
from headway.learning.progress import Learner

from .dense import DenseConstraints, DenseExamples, DenseText, Enumerated, fitted, random_examples, random_text

METHODS = {"argmax": "best", "marginals": "marginals", "covariance": "covariance"}


class Limited:
    """Instances that can compute some quantities only."""

    def __init__(self, sentences: Any, offers: frozenset[Quantity]) -> None:
        self._sentences = sentences
        self._refused = {method for name, method in METHODS.items() if name not in offers}

    def __getattr__(self, name: str) -> Any:
        if name in self._refused:
            raise AttributeError(f"this problem has no {name}")
        return getattr(self._sentences, name)


@dataclass(frozen=True)
class LimitedExamples(DenseExamples):
    """A problem that offers no more than `quantities`."""

    quantities: frozenset[Quantity]

    @property
    def offers(self) -> frozenset[Quantity]:
        return self.quantities

    def some(self, which: Ints) -> Any:
        return Limited(super().some(which), self.quantities)


def learners() -> dict[str, Learner]:
    descent, half = Descent(2), np.array([0.4])
    values = [np.ones((1, n + 1, n + 1)) for n in (3, 1, 4, 2, 3)]
    constraints = DenseConstraints(values, half, half, np.ones(1), np.array([13.0]))
    return {
        "perceptron": Perceptron(2),
        "margin": Perceptron(2, 1.0),
        "log-linear": LogLinear(1.0, descent),
        "eg": ExponentiatedGradient(1.0, 2),
        "eg-loglinear": ExponentiatedGradient(1.0, 2, "log"),
        "expected-loss": ExpectedLoss(1.0, descent),
        "entropy": EntropyRegularised(random_text(4), descent=descent),
        "constraints": GeneralizedExpectation(constraints, descent=descent),
    }


NEEDS = {
    "perceptron": ARGMAX,
    "margin": ARGMAX,
    "log-linear": MARGINALS,
    "eg": MARGINALS,
    "eg-loglinear": MARGINALS,
    "expected-loss": COVARIANCE,
    "entropy": COVARIANCE,
    "constraints": COVARIANCE,
}


@pytest.mark.parametrize("name", list(learners()))
def test_a_learner_asks_for_nothing_that_it_does_not_declare(name: str) -> None:
    """With exactly what it needs it learns what it learns with everything."""
    whole, learner = random_examples(3), learners()[name]
    assert learner.needs == NEEDS[name]
    limited = LimitedExamples(whole.features, whole.structures, whole.gold_choices, learner.needs)
    assert learner.needs <= limited.offers
    np.testing.assert_array_equal(fitted(learner, limited)[0], fitted(learner, whole)[0])


@pytest.mark.parametrize(("name", "offers"), [("log-linear", ARGMAX), ("eg", ARGMAX), ("expected-loss", MARGINALS)])
def test_with_less_it_cannot(name: str, offers: frozenset[Quantity]) -> None:
    whole, learner = random_examples(3), learners()[name]
    limited = LimitedExamples(whole.features, whole.structures, whole.gold_choices, offers)
    with pytest.raises(AttributeError, match="this problem has no"):
        fitted(learner, limited)


def test_quantities_build_on_each_other() -> None:
    assert ARGMAX < MARGINALS < COVARIANCE == set(METHODS)


@pytest.mark.parametrize("limit", [1, 40, 100, 10**6])
def test_chunks_hold_every_sentence_once_and_stay_small(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(problem_module, "_CHUNK", limit)
    examples = random_examples(1, labels=2, lengths=(3, 1, 4, 2, 3, 1, 1))
    chunks = list(chunks_by_length(examples))
    order = np.concatenate(chunks)
    assert sorted(order.tolist()) == list(range(7))
    assert (np.diff(examples.lengths[order]) >= 0).all()
    for chunk in chunks:
        assert len(chunk) == 1 or examples.some(chunk).score(np.zeros(6)).size <= limit
    if limit == 10**6:
        assert len(chunks) == 1
    if limit == 1:
        assert len(chunks) == 7


@pytest.mark.parametrize("labels", [0, 2])
def test_chunks_of_text(labels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences without trees come as those with trees do."""
    text = random_text(2, labels=labels, lengths=(3, 1, 4, 2, 3, 1, 1))
    with_trees = DenseExamples(text.features, text.structures, [[] for _ in text.features])
    for limit in (1, 40, 100, 10**6):
        monkeypatch.setattr(problem_module, "_CHUNK", limit)
        found, expected = ([which.tolist() for which in chunks_by_length(each)] for each in (text, with_trees))
        assert found == expected
        assert sorted(i for which in found for i in which) == list(range(7))
        assert all(len(which) == 1 or text.some(np.array(which)).score(np.zeros(6)).size <= limit for which in found)


def test_chunks_of_nothing() -> None:
    assert list(chunks_by_length(DenseExamples([], Enumerated(), []))) == []
    assert list(chunks_by_length(DenseText([], Enumerated()))) == []
