"""The perceptron against one that keeps every weight vector it ever had, and averages them at the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.arrays import Floats
from headway.learning.perceptron import Perceptron
from headway.learning.progress import Pass, State

from .dense import SINGLE_ROOT, DenseExamples, Enumerated, choices, random_examples


def naive_averages(examples: DenseExamples, epochs: int, margin: float, seed: int) -> tuple[list[Floats], list[float]]:
    """The average after each epoch, and the share of words that got a wrong head in it."""
    weights, kept = np.zeros(examples.size), []
    averages, mistakes = [], []
    for epoch in range(epochs):
        wrong = 0
        for i in np.random.default_rng((seed, epoch)).permutation(len(examples.lengths)).tolist():
            every = choices(int(examples.lengths[i]), SINGLE_ROOT, examples.labels)
            totals = [weights @ examples.vector(i, c) + margin * examples.loss(i, c) for c in every]
            found = every[int(np.argmax(totals))]
            weights = weights + examples.vector(i, examples.gold_choices[i]) - examples.vector(i, found)
            wrong += examples.loss(i, found)
            kept.append(weights)
        averages.append(np.mean(kept, axis=0))
        mistakes.append(wrong / int(examples.lengths.sum()))
    return averages, mistakes


@pytest.mark.parametrize("margin", [0.0, 2.5])
@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("seed", [0, 3])
def test_the_average_is_of_the_weights_after_each_sentence(margin: float, labels: int, seed: int) -> None:
    examples = random_examples(21 + seed, labels=labels, lengths=(3, 1, 2, 3))
    examples = replace(examples, structures=Enumerated())
    averages, mistakes = naive_averages(examples, 4, margin, seed)
    passes: list[Pass] = []

    def report(done: Pass) -> bool:
        passes.append(Pass(done.number, done.weights.copy(), done.figures, {}))
        return True

    final = Perceptron(4, margin, seed).fit(examples, report)
    assert [done.number for done in passes] == [1, 2, 3, 4]
    for done, average, wrong in zip(passes, averages, mistakes, strict=True):
        np.testing.assert_allclose(done.weights, average, rtol=1e-12, atol=1e-12)
        assert done.figures["mistakes"] == pytest.approx(wrong, rel=1e-15)
    np.testing.assert_allclose(final, averages[-1], rtol=1e-12, atol=1e-12)
    assert sum(mistakes) > 0


def separable(seed: int) -> DenseExamples:
    """Right arcs stand out in one dimension, among noise."""
    examples = random_examples(seed, lengths=(4, 3, 4, 2, 3, 4))
    for i, f in enumerate(examples.features):
        f *= 0.2
        for cell in examples.gold_choices[i]:
            f[cell][0] += 1.0
    return examples


def test_it_stops_making_mistakes_on_what_can_be_separated() -> None:
    examples = separable(31)
    mistakes: list[float] = []

    def report(done: Pass) -> bool:
        mistakes.append(done.figures["mistakes"])
        return True

    weights = Perceptron(20).fit(examples, report)
    assert mistakes[-1] == 0.0
    these = examples.some(np.arange(len(examples.lengths)))
    np.testing.assert_array_equal(these.best(these.score(weights)), these.gold())


def test_with_a_margin_the_right_tree_wins_by_it() -> None:
    """When an epoch of loss-augmented decoding is free of mistakes, every tree loses by C an arc that is wrong."""
    examples = separable(32)
    state: State = {}

    def report(done: Pass) -> bool:
        state.update(done.state)
        return done.figures["mistakes"] > 0

    margin = 3.0
    Perceptron(1000, margin).fit(examples, report)
    for i, n in enumerate(examples.lengths.tolist()):
        right = state["weights"] @ examples.vector(i, examples.gold_choices[i])
        for choice in choices(n, SINGLE_ROOT, 0):
            ahead = right - state["weights"] @ examples.vector(i, choice)
            assert ahead >= margin * examples.loss(i, choice) - 1e-9


def test_a_report_ends_the_training() -> None:
    examples = random_examples(33)
    numbers: list[int] = []

    def report(done: Pass) -> bool:
        numbers.append(done.number)
        return done.number < 3

    weights = Perceptron(10).fit(examples, report)
    np.testing.assert_array_equal(weights, Perceptron(3).fit(examples, lambda _: True))
    assert numbers == [1, 2, 3]


def test_no_examples() -> None:
    nothing = DenseExamples([np.zeros((1, 1, 6))], Enumerated(), [[]])
    np.testing.assert_array_equal(Perceptron(2).fit(nothing, lambda _: True), np.zeros(6))
