"""Parameter mixing against one in plain Python that keeps the weights of every shard after every sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway.arrays import Floats, Ints
from headway.learning import parameter_mixing
from headway.learning.latent_perceptron import LatentPerceptron
from headway.learning.parameter_mixing import _changes
from headway.learning.perceptron import Perceptron
from headway.learning.progress import Pass
from headway.learning.sharded import Shards, cut, deal
from headway.parallel import Here

from .dense import DenseExamples, Enumerated, random_examples
from .test_latent_perceptron import Hidden

LENGTHS = (3, 1, 4, 2, 3, 2, 3, 1)
UNEVEN = [np.array([1]), np.zeros(0, np.int64), np.array([0, 2, 3, 4, 5, 6, 7])]


def sharded(learner: Any, problem: Any, numbers: list[Ints]) -> Shards[Any, Any]:
    return Shards(Here(cut(learner, problem, numbers)), numbers, problem.lengths, problem.size)


def mixed_by_hand(
    learner: Perceptron, problem: DenseExamples, numbers: list[Ints], mixes: int
) -> tuple[list[Floats], list[float]]:
    """The averaged weights after each pass, and the mistakes, from the definitions.

    A shard's weights after each of its n_k sentences stand for n / n_k of the stretch's n moments.
    """
    w, sums, seen, results, mistakes = np.zeros(problem.size), np.zeros(problem.size), 0, [], []
    for epoch in range(learner.epochs):
        order = np.random.default_rng((learner.seed, epoch)).permutation(len(problem.lengths))
        own = [[i for i in order.tolist() if i in set(mine.tolist())] for mine in numbers]
        wrong = 0.0
        for part in range(mixes):
            stretches = [np.array_split(np.array(mine, np.int64), mixes)[part].tolist() for mine in own]
            n = sum(map(len, stretches))
            after, means = [], []
            for mine in stretches:
                v, trace = w.copy(), []
                for i in mine:
                    this = problem.some(np.array([i]))
                    scores = this.score(v) + learner.margin * this.cost()
                    amounts = this.gold() - this.best(scores)
                    wrong += float(amounts[amounts > 0].sum())
                    this.add(v, amounts)
                    trace.append(v.copy())
                after.append(v)
                means.append(np.mean(trace, axis=0) if trace else w)
            mixture, mean = w.copy(), w.copy()
            for j in range(len(w)):
                who = [k for k, mine in enumerate(stretches) if mine and after[k][j] != w[j]]
                size = sum(len(stretches[k]) for k in who)
                mixture[j] += sum(len(stretches[k]) / size * (after[k][j] - w[j]) for k in who)
                mean[j] += sum(len(stretches[k]) / size * (means[k][j] - w[j]) for k in who)
            w, sums, seen = mixture, sums + n * mean, seen + n
        results.append(sums / seen)
        mistakes.append(wrong / int(problem.lengths.sum()))
    return results, mistakes


@pytest.mark.parametrize("mixes", [1, 3, 20])
@pytest.mark.parametrize("margin", [0.0, 2.0])
@pytest.mark.parametrize(
    "numbers", [pytest.param(deal(8, 2), id="2"), pytest.param(deal(8, 3), id="3"), pytest.param(UNEVEN, id="uneven")]
)
def test_against_the_definition(
    mixes: int, margin: float, numbers: list[Ints], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parameter_mixing, "MIXES", mixes)
    problem, learner = random_examples(91, lengths=LENGTHS), Perceptron(4, margin, seed=3)
    seen: list[Pass] = []

    def report(done: Pass) -> bool:
        seen.append(Pass(done.number, done.weights.copy(), dict(done.figures), {}))
        return True

    learner.fit_shards(sharded(learner, problem, numbers), report)
    weights, mistakes = mixed_by_hand(learner, problem, numbers, mixes)
    assert any(mistakes)
    for done, expected, wrong in zip(seen, weights, mistakes, strict=True):
        np.testing.assert_allclose(done.weights, expected, rtol=1e-10, atol=1e-12)
        assert done.figures["mistakes"] == pytest.approx(wrong, rel=1e-12)


@pytest.mark.parametrize("labels", [0, 2])
def test_one_shard_is_the_perceptron(labels: int) -> None:
    """Bit for bit where features are whole numbers, as they are in a parser."""
    examples = random_examples(92, labels=labels, lengths=LENGTHS)
    whole = DenseExamples([np.round(f) for f in examples.features], examples.structures, examples.gold_choices)
    learner = Perceptron(5, 2.0, seed=1)
    expected = learner.fit(whole, lambda _: True)
    found = learner.fit_shards(sharded(learner, whole, deal(len(LENGTHS), 1)), lambda _: True)
    np.testing.assert_array_equal(found, expected)


def test_a_weight_that_one_shard_alone_meets_moves_as_far_as_in_one_process() -> None:
    """Two sentences that share no feature: nothing is lost by their being apart."""
    examples = random_examples(93, lengths=(3, 3), size=3)
    apart = [np.zeros((4, 4, 6)), np.zeros((4, 4, 6))]
    apart[0][..., :3], apart[1][..., 3:] = np.round(examples.features[0]), np.round(examples.features[1])
    problem = DenseExamples(apart, examples.structures, examples.gold_choices)
    learner = Perceptron(6, 2.0)
    state: list[Floats] = []
    for fit in (learner.fit, lambda _, report: learner.fit_shards(sharded(learner, problem, deal(2, 2)), report)):
        fit(problem, lambda done: not state.append(done.state["weights"].copy()))
    np.testing.assert_array_equal(state[5], state[11])
    assert state[5].any()


def test_latent_perceptrons_mix_too() -> None:
    examples = random_examples(94, lengths=LENGTHS)
    known = [choice[:1] for choice in examples.gold_choices]
    problem = Hidden([np.round(f) for f in examples.features], Enumerated(), known)
    learner = LatentPerceptron(4, 1.0)
    one, several = [], []
    expected = learner.fit(problem, lambda done: not one.append(done.figures))
    found = learner.fit_shards(sharded(learner, problem, deal(8, 1)), lambda done: not several.append(done.figures))
    np.testing.assert_array_equal(found, expected)
    for before, after in zip(one, several, strict=True):
        assert dict(after) == pytest.approx(dict(before))


def test_a_shard_that_lost_its_copy_costs_a_pass_and_nothing_else() -> None:
    problem, learner = random_examples(95, lengths=LENGTHS), Perceptron(3, 1.0)
    expected = learner.fit_shards(sharded(learner, problem, deal(8, 2)), lambda _: True)
    shards = sharded(learner, problem, deal(8, 2))

    class Forgetful(Here[Any]):
        """Forgets everything once, in the middle of the second pass."""

        calls = 0

        def each(self, function: Any, *arguments: Any) -> list[Any]:
            Forgetful.calls += 1
            if Forgetful.calls == parameter_mixing.MIXES + 3:
                self.pieces[1].memory = {}
            return super().each(function, *arguments)

    assert isinstance(shards.held, Here)
    forgetful = Shards(Forgetful(shards.held.pieces), shards.numbers, shards.lengths, shards.size)
    np.testing.assert_array_equal(learner.fit_shards(forgetful, lambda _: True), expected)
    assert Forgetful.calls == 3 * parameter_mixing.MIXES + 3


def test_changes_are_found_and_total_is_cleared() -> None:
    rng = np.random.default_rng(96)
    before = rng.normal(size=200)
    weights, total = before.copy(), np.zeros(200)
    weights[rng.choice(200, 30, replace=False)] += 1.0
    total[rng.choice(200, 30, replace=False)] = 2.0
    expected = np.flatnonzero((weights != before) | (total != 0))
    kept = total.copy()
    places, moved, later = _changes(before, weights, total)
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(moved, (weights - before)[expected])
    np.testing.assert_array_equal(later, kept[expected])
    assert not total.any()
