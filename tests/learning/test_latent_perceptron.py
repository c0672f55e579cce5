"""The latent perceptron against one in plain Python that lists every structure and keeps every weight vector."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from headway.arrays import Floats, Ints, TreeClass
from headway.learning.latent_perceptron import LatentPerceptron
from headway.learning.perceptron import Perceptron
from headway.learning.progress import Pass, State

from .dense import (
    SINGLE_ROOT,
    TREE_CLASSES,
    Choice,
    DenseSentences,
    DenseText,
    Enumerated,
    choices,
    random_examples,
)


@dataclass(frozen=True)
class Hidden(DenseText):
    """`known[i]` are the arcs (h, m) that the right structures of sentence i have; what else they have is latent."""

    known: list[Choice]

    def some(self, which: Ints) -> HiddenSentences:
        return HiddenSentences(self, which)

    def right(self, i: int) -> list[Choice]:
        """Every tree with the known arcs."""
        every = choices(int(self.lengths[i]), self.trees, 0)
        return [choice for choice in every if set(self.known[i]) <= set(choice)]


class HiddenSentences(DenseSentences[Hidden]):
    """Some sentences of which some arcs are known."""

    def constrained(self, scores: Floats) -> Floats:
        chosen = np.zeros_like(scores)
        for b, i in enumerate(self.which.tolist()):
            right = self.problem.right(i)
            totals = [sum(scores[(b, *cell)] for cell in choice) for choice in right]
            for cell in right[int(np.argmax(totals))]:
                chosen[(b, *cell)] = 1.0
        return chosen

    def cost(self, latent: Floats) -> Floats:  # type: ignore[override]
        """2 for a wrong arc of the first word, 1 for that of another."""
        cost = 1.0 - latent
        cost[:, :, 1] *= 2.0
        return cost

    def output(self, latent: Floats) -> list[set[tuple[int, ...]]]:
        return [{(int(h), int(m)) for h, m in zip(*np.nonzero(one), strict=True)} for one in latent]

    def loss(self, output: list[set[tuple[int, ...]]]) -> float:
        known = [set(self.problem.known[i]) for i in self.which.tolist()]
        return float(sum(len(right - found) for right, found in zip(known, output, strict=True)))


def hidden(
    seed: int,
    trees: TreeClass = SINGLE_ROOT,
    share: float = 0.5,
    lengths: tuple[int, ...] = (4, 1, 3, 2, 4, 3),
) -> Hidden:
    """Trees of which a share of the arcs is known, under dense random features."""
    whole = random_examples(seed, trees, lengths=lengths)
    rng = np.random.default_rng(seed)
    known = [[cell for cell in choice if rng.random() < share] for choice in whole.gold_choices]
    return Hidden(whole.features, Enumerated(trees), known)


def cost_of(latent: Choice, choice: Choice) -> float:
    return sum(2.0 if cell[1] == 1 else 1.0 for cell in choice if cell not in latent)


def naive(examples: Hidden, epochs: int, margin: float, seed: int) -> tuple[list[Floats], list[dict[str, float]]]:
    """The average of all weights so far after each pass, and its figures; a pass without an update is the last."""
    weights, kept = np.zeros(examples.size), []
    averages, figures = [], []
    count, words = len(examples.lengths), int(examples.lengths.sum())
    for epoch in range(epochs):
        missed, loss, objective, changed = 0, 0, 0.0, False
        for i in np.random.default_rng((seed, epoch)).permutation(count).tolist():
            every = choices(int(examples.lengths[i]), examples.trees, 0)
            right = examples.right(i)
            latent = right[int(np.argmax([weights @ examples.vector(i, choice) for choice in right]))]
            totals = [weights @ examples.vector(i, c) + margin * cost_of(latent, c) for c in every]
            found = every[int(np.argmax(totals))]
            missed += len(set(latent) - set(found))
            loss += len(set(examples.known[i]) - set(found))
            objective += max(totals) - max(weights @ examples.vector(i, choice) for choice in right)
            changed |= latent != found
            weights = weights + examples.vector(i, latent) - examples.vector(i, found)
            kept.append(weights)
        averages.append(np.mean(kept, axis=0))
        figures.append({"mistakes": missed / words, "loss": loss / count, "objective": objective / count})
        if not changed:
            break
    return averages, figures


def passes_of(examples: Hidden, learner: LatentPerceptron, resume: State | None = None) -> list[Pass]:
    """Every pass, as it was reported."""
    passes: list[Pass] = []

    def report(done: Pass) -> bool:
        state = {name: array.copy() for name, array in done.state.items()}
        passes.append(Pass(done.number, done.weights.copy(), dict(done.figures), state))
        return True

    final = learner.fit(examples, report, resume)
    np.testing.assert_array_equal(final, passes[-1].weights)
    return passes


@pytest.mark.parametrize("trees", TREE_CLASSES)
@pytest.mark.parametrize("margin", [0.0, 2.5])
@pytest.mark.parametrize("seed", [0, 3])
def test_against_a_naive_one(margin: float, seed: int, trees: TreeClass) -> None:
    examples = hidden(51 + seed, trees)
    averages, figures = naive(examples, 4, margin, seed)
    passes = passes_of(examples, LatentPerceptron(4, margin, seed))
    assert [done.number for done in passes] == list(range(1, len(averages) + 1))
    assert any(figure["mistakes"] for figure in figures)
    for done, average, figure in zip(passes, averages, figures, strict=True):
        np.testing.assert_allclose(done.weights, average, rtol=1e-12, atol=1e-12)
        assert done.figures == pytest.approx(figure, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("trees", TREE_CLASSES)
@pytest.mark.parametrize("margin", [0.0, 2.5])
def test_with_the_structure_given_it_is_the_perceptron(margin: float, trees: TreeClass) -> None:
    whole = replace(random_examples(61, trees), structures=Enumerated(trees))
    given = _Given(whole.features, whole.structures, whole.gold_choices)
    mine, theirs = LatentPerceptron(3, margin, 7), Perceptron(3, margin, 7)
    passes, others = passes_of(given, mine), []

    def report(done: Pass) -> bool:
        others.append((done.weights.copy(), done.figures["mistakes"]))
        return True

    np.testing.assert_array_equal(passes[-1].weights, theirs.fit(whole, report))
    assert len(passes) == 3  # neither has converged
    for done, (weights, mistakes) in zip(passes, others, strict=True):
        np.testing.assert_array_equal(done.weights, weights)
        assert done.figures["mistakes"] == mistakes > 0


class _Given(Hidden):
    """Every arc known, and every wrong arc costing 1."""

    def some(self, which: Ints) -> HiddenSentences:
        return _GivenSentences(self, which)


class _GivenSentences(HiddenSentences):
    def cost(self, latent: Floats) -> Floats:  # type: ignore[override]
        return 1.0 - latent


def separable(seed: int) -> Hidden:
    """The known arcs stand out in one dimension, among noise."""
    examples = hidden(seed)
    for features, known in zip(examples.features, examples.known, strict=True):
        features *= 0.2
        for cell in known:
            features[cell][0] += 1.0
    return examples


@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_a_pass_that_changes_nothing_is_the_last(margin: float) -> None:
    examples = separable(71)
    passes = passes_of(examples, LatentPerceptron(500, margin))
    assert 1 < len(passes) < 500
    *earlier, last = passes
    assert all(done.figures["mistakes"] > 0 for done in earlier)
    assert last.figures == {"mistakes": 0.0, "loss": 0.0, "objective": 0.0}
    np.testing.assert_array_equal(last.state["weights"], earlier[-1].state["weights"])
    before, final = earlier[-1].weights, last.state["weights"]  # all passes that would follow count in the average
    expected = (len(earlier) * before + (500 - len(earlier)) * final) / 500
    np.testing.assert_allclose(last.weights, expected, rtol=1e-9, atol=1e-12)
    for i, known in enumerate(examples.known):  # what was asked for: no structure beats the best right one
        weights, right = last.state["weights"], examples.right(i)
        latent = max(right, key=lambda choice: float(weights @ examples.vector(i, choice)))
        ahead = weights @ examples.vector(i, latent)
        for choice in choices(int(examples.lengths[i]), SINGLE_ROOT, 0):
            if choice != latent:
                assert ahead >= weights @ examples.vector(i, choice) + margin * cost_of(latent, choice) - 1e-9
        assert set(known) <= set(latent)


@pytest.mark.parametrize("margin", [0.0, 2.0])
def test_resuming(margin: float) -> None:
    examples, learner = hidden(81), LatentPerceptron(4, margin, 5)
    whole = passes_of(examples, learner)
    assert len(whole) == 4
    for stop in (1, 2, 3):
        state = {name: array.copy() for name, array in whole[stop - 1].state.items()}
        again = passes_of(examples, learner, state)
        assert [done.number for done in again] == list(range(stop + 1, 5))
        for one, other in zip(again, whole[stop:], strict=True):
            np.testing.assert_array_equal(one.weights, other.weights)
            assert one.figures == other.figures


def test_a_report_ends_the_training() -> None:
    examples = hidden(82)
    numbers: list[int] = []

    def report(done: Pass) -> bool:
        numbers.append(done.number)
        return done.number < 2

    weights = LatentPerceptron(10).fit(examples, report)
    assert numbers == [1, 2]
    np.testing.assert_array_equal(weights, passes_of(examples, LatentPerceptron(2))[-1].weights)


def test_nothing_known_nothing_learnt() -> None:
    """Without a margin the best of all is among the right ones."""
    examples = hidden(83, share=0.0)
    passes = passes_of(examples, LatentPerceptron(5))
    assert len(passes) == 1
    np.testing.assert_array_equal(passes[0].weights, np.zeros(examples.size))


def test_no_examples() -> None:
    nothing = Hidden([np.zeros((1, 1, 6))], Enumerated(), [[]])
    np.testing.assert_array_equal(LatentPerceptron(2).fit(nothing, lambda _: True), np.zeros(6))
