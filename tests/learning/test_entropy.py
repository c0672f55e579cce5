"""Entropy regularisation: values from enumerated probabilities, gradients from differences, what training does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headway.arrays import Floats, TreeClass
from headway.learning import problem as problem_module
from headway.learning.descent import Descent
from headway.learning.entropy import EntropyRegularised, entropy
from headway.learning.log_linear import LogLinear
from headway.learning.structures import Trees
from headway.parallel import Threads

from .dense import (
    SINGLE_ROOT,
    TREE_CLASSES,
    DenseExamples,
    Listed,
    assert_gradient,
    central_differences,
    fitted,
    random_examples,
    random_text,
)

C = 0.7
NEAR_ONE = [1 - 1e-5, 1 - 1e-9, 1 + 1e-9, 1 + 1e-5]
every_order = pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 5.0, np.inf])


def enumerated_entropy(log_p: Floats, alpha: float) -> float:
    """From the probabilities of all choices, without loss of digits where alpha is near 1."""
    if alpha == np.inf:
        return -float(log_p.max())
    if alpha == 1.0:
        return -float(np.exp(log_p) @ log_p)
    if abs(alpha - 1.0) < 0.1:
        above_one = float(np.exp(log_p) @ np.expm1((alpha - 1.0) * log_p))  # sum p^alpha, less 1
        return float(np.log1p(above_one) / (1.0 - alpha))
    return float(np.logaddexp.reduce(alpha * log_p) / (1.0 - alpha))


def enumerated_likelihood(examples: DenseExamples, weights: Floats, listed: Listed) -> float:
    total = 0.0
    for i, log_p in enumerate(listed.log_probabilities(weights)):
        total += float(log_p[listed.choices[i].index(examples.gold_choices[i])])
    return total


def text_entropy(listed: Listed, weights: Floats, alpha: float) -> float:
    return sum(enumerated_entropy(log_p, alpha) for log_p in listed.log_probabilities(weights))


def test_the_oracle_is_continuous_at_one() -> None:
    log_p = np.log([0.5, 0.3, 0.2])
    shannon = enumerated_entropy(log_p, 1.0)
    assert enumerated_entropy(log_p, 1.0 + 1e-9) == pytest.approx(shannon, rel=1e-8)
    assert enumerated_entropy(log_p, 2.0) == pytest.approx(-np.log(0.25 + 0.09 + 0.04), rel=1e-14)
    assert enumerated_entropy(log_p, 400.0) == pytest.approx(np.log(2), rel=1e-2)


@every_order
@pytest.mark.parametrize("trees", TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("chunk", [1, 10**6])
def test_objective_and_gradient(
    alpha: float, trees: TreeClass, labels: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four trees and three sentences of text: each of these counts for 4 / 3 times the weight."""
    monkeypatch.setattr(problem_module, "_CHUNK", chunk)
    examples = random_examples(71, trees, labels, lengths=(3, 1, 2, 3))
    text = random_text(72, trees, labels, lengths=(2, 3, 1))
    of_trees, of_text = (Listed(each) for each in (examples, text))
    weights = 0.5 * np.random.default_rng(73).normal(size=examples.size)
    for weight in (0.4, 3.0):

        def expected(weights: Floats, weight: float = weight) -> float:
            unsure = weight * (4 / 3) * text_entropy(of_text, weights, alpha)
            return C * (unsure - enumerated_likelihood(examples, weights, of_trees)) + 0.5 * float(weights @ weights)

        learner = EntropyRegularised(text, C, weight, alpha)
        value, gradient = learner.objective(examples, weights)
        assert value == pytest.approx(expected(weights), rel=1e-12)
        assert_gradient(gradient, expected, weights)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 5.0, np.inf, *NEAR_ONE])
@pytest.mark.parametrize("trees", TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
def test_the_entropy_alone(alpha: float, trees: TreeClass, labels: int) -> None:
    """By the scores rather than the weights, where the objective's other parts cannot hide a slip."""
    text = random_text(74, trees, labels, lengths=(3, 1, 2))
    listed = Listed(text)
    weights = 0.5 * np.random.default_rng(75).normal(size=text.size)
    these = text.some(np.arange(3))
    value, slope = entropy(these, these.score(weights), alpha)
    gradient = np.zeros(text.size)
    these.add(gradient, slope)
    assert value == pytest.approx(text_entropy(listed, weights, alpha), rel=1e-6 if alpha in NEAR_ONE else 1e-12)
    assert_gradient(gradient, lambda w: text_entropy(listed, w, alpha), weights)


@pytest.mark.parametrize("alpha", [1 - 9e-8, 1 + 9e-8, 1 - 9e-7, 1 + 9e-7])
def test_the_gradient_where_shannons_entropy_stands_in(alpha: float) -> None:
    text = random_text(74, TreeClass(single_root=False), 2, lengths=(3, 1, 2))
    listed, these = Listed(text), text.some(np.arange(3))
    weights = 0.5 * np.random.default_rng(75).normal(size=text.size)
    _, slope = entropy(these, these.score(weights), alpha)
    gradient = np.zeros(text.size)
    these.add(gradient, slope)
    assert_gradient(gradient, lambda w: text_entropy(listed, w, alpha), weights)


def test_orders_fall() -> None:
    """The entropy of a sentence never rises with its order."""
    text = random_text(76, lengths=(4,))
    these = text.some(np.arange(1))
    scores = these.score(np.random.default_rng(77).normal(size=text.size))
    orders = [0.1, 0.5, *NEAR_ONE, 2.0, 5.0, 50.0, np.inf]
    values = [entropy(these, scores, alpha)[0] for alpha in orders]
    assert (np.diff(values) < 1e-9).all()
    assert values[-1] < values[0]


@every_order
def test_all_trees_alike(alpha: float) -> None:
    """At zero weights the entropy is the logarithm of the number of trees (Cayley), and flat but for alpha = inf."""
    text = random_text(78, lengths=(3, 4))
    these = text.some(np.arange(2))
    scores = these.score(np.zeros(text.size))
    value, slope = entropy(these, scores, alpha)
    assert value == pytest.approx(np.log(3**2) + np.log(4**3), rel=1e-12)
    if alpha == np.inf:
        assert np.abs(slope).max() > 0.1
    else:
        np.testing.assert_allclose(slope, 0.0, atol=1e-12)


@pytest.mark.parametrize("optimiser", ["lbfgs", "cg"])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("labels", [0, 2])
def test_every_step_falls(optimiser: Any, alpha: float, labels: int) -> None:
    examples, text = random_examples(79, labels=labels), random_text(80, labels=labels, lengths=(3, 2, 4))
    learner = EntropyRegularised(text, 2.0, 1.5, alpha, Descent(300, optimiser))
    weights, passes = fitted(learner, examples)
    start, first_gradient = learner.objective(examples, np.zeros(examples.size))
    assert (np.diff([start, *(done.figures["objective"] for done in passes)]) < 0).all()
    for done in passes:
        assert done.figures["objective"] == pytest.approx(learner.objective(examples, done.weights)[0], rel=1e-12)
    _, gradient = learner.objective(examples, weights)
    assert np.linalg.norm(gradient) < 1e-3 * np.linalg.norm(first_gradient)


@every_order
@pytest.mark.parametrize("trees", TREE_CLASSES)
@pytest.mark.parametrize("labels", [0, 2])
def test_training_is_surer_of_the_text(alpha: float, trees: TreeClass, labels: int) -> None:
    """The larger the weight, the lower the entropy of the text; of order inf, L has kinks where a step may end."""
    examples = random_examples(81, trees, labels, lengths=(3, 2, 4, 3))
    text = random_text(82, trees, labels, lengths=(4, 2, 3))
    listed = Listed(text)
    plain, _ = fitted(LogLinear(C, Descent(300)), examples)
    unsure = [text_entropy(listed, plain, alpha)]
    for weight in (0.1, 0.5) if alpha == np.inf else (0.1, 0.5, 2.0):
        weights, _ = fitted(EntropyRegularised(text, C, weight, alpha, Descent(300)), examples)
        unsure.append(text_entropy(listed, weights, alpha))
    assert (np.diff(unsure) < -0.01).all()


@every_order
@pytest.mark.parametrize("labels", [0, 2])
def test_without_weight_it_is_log_linear_training(alpha: float, labels: int) -> None:
    """Bit for bit, by L-BFGS."""
    examples, text = random_examples(83, labels=labels), random_text(84, labels=labels)
    plain, before = fitted(LogLinear(C, Descent(60)), examples)
    weights, passes = fitted(EntropyRegularised(text, C, 0.0, alpha, Descent(60)), examples)
    np.testing.assert_array_equal(weights, plain)
    assert [done.figures for done in passes] == [done.figures for done in before]


@pytest.mark.parametrize("optimiser", ["adagrad", "adam"])
@pytest.mark.parametrize("alpha", [1.0, 2.0])
@pytest.mark.parametrize("labels", [0, 2])
def test_mini_batches_come_near_what_all_sentences_reach(optimiser: Any, alpha: float, labels: int) -> None:
    """Trees and text are mixed in the batches."""
    examples = random_examples(85, labels=labels, lengths=(3, 1, 4, 2, 3))
    text = random_text(86, labels=labels, lengths=(3, 2))
    best, _ = fitted(EntropyRegularised(text, 1.0, 0.2, alpha, Descent(500, tolerance=1e-8)), examples)
    learner = EntropyRegularised(text, 1.0, 0.2, alpha, Descent(400, optimiser, rate=0.05, batch=3))
    weights, passes = fitted(learner, examples)
    lowest, reached, start = (learner.objective(examples, each)[0] for each in (best, weights, np.zeros(examples.size)))
    assert lowest <= reached < lowest + 0.05 * (start - lowest)
    assert len(passes) == 400


def test_an_online_step_is_that_of_its_sentences() -> None:
    """One epoch of one batch: the whole gradient; of many: trees and text each once."""
    examples, text = random_examples(87), random_text(88, lengths=(3, 2))
    learner = EntropyRegularised(text, C, 1.5, 2.0, Descent(1, "adagrad", rate=0.2, batch=7, seed=3))
    weights, _ = fitted(learner, examples)
    gradient = learner.objective(examples, np.zeros(examples.size))[1]
    np.testing.assert_allclose(weights, -0.2 * np.sign(gradient), rtol=1e-12)
    small = EntropyRegularised(text, C, 1.5, 2.0, Descent(1, "adagrad", rate=1e-9, batch=2, seed=3))
    _, (done,) = fitted(small, examples)
    start = learner.objective(examples, np.zeros(examples.size))[0]
    assert done.figures["objective"] == pytest.approx(start, rel=1e-6)


def test_text_of_one_word_sentences_says_nothing() -> None:
    examples, text = random_examples(89), random_text(90, lengths=(1, 1))
    weights = np.random.default_rng(91).normal(size=examples.size)
    for alpha in (0.5, 1.0, np.inf):
        value, gradient = EntropyRegularised(text, C, 5.0, alpha).objective(examples, weights)
        plain, plain_gradient = LogLinear(C).objective(examples, weights)
        assert value == pytest.approx(plain, rel=1e-14)
        np.testing.assert_allclose(gradient, plain_gradient, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_threads_change_nothing(alpha: float) -> None:
    examples, text = random_examples(92), random_text(93)
    weights = np.random.default_rng(94).normal(size=examples.size)
    one, three = (
        EntropyRegularised(replace(text, structures=trees), C, 1.0, alpha).objective(
            replace(examples, structures=trees), weights
        )
        for trees in (Trees(SINGLE_ROOT), Trees(SINGLE_ROOT, Threads(3)))
    )
    assert one[0] == three[0]
    np.testing.assert_array_equal(one[1], three[1])


def test_the_differences_would_see_a_wrong_gradient() -> None:
    """The bar itself: a gradient that is off by a millionth of its size times a few is refused."""
    weights = np.array([0.3, -2.0])
    slopes = central_differences(lambda w: float(w[0] ** 3 + np.exp(w[1])), weights)
    np.testing.assert_allclose(slopes, [0.27, np.exp(-2.0)], rtol=1e-9)
    with pytest.raises(AssertionError):
        assert_gradient(slopes * (1 + 3e-6), lambda w: float(w[0] ** 3 + np.exp(w[1])), weights)
