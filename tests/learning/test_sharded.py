"""Learners on shards against the same learners on the whole problem: objectives, gradients, weights."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.arrays import Floats, Ints
from headway.errors import TrainingError
from headway.learning.descent import Descent
from headway.learning.entropy import EntropyRegularised
from headway.learning.expectation_maximization import em_steps, shards_of
from headway.learning.expected_loss import ExpectedLoss
from headway.learning.exponentiated_gradient import ExponentiatedGradient
from headway.learning.generalized_expectation import GeneralizedExpectation
from headway.learning.log_linear import LogLinear
from headway.learning.modifier_trie import ModifierTrie
from headway.learning.progress import Pass, State
from headway.learning.sharded import Shard, Shards, cut, deal, sum_over_shards
from headway.parallel import Here

from .dense import DenseConstraints, random_examples, random_text
from .sequences_oracle import random_trees

LENGTHS = (3, 1, 4, 2, 3, 2, 3)
UNEVEN = [np.array([1]), np.zeros(0, np.int64), np.array([0, 2, 3, 4, 5, 6])]
DEALS = [pytest.param(deal(len(LENGTHS), count), id=f"{count} shards") for count in (1, 2, 3, 9)]
every_deal = pytest.mark.parametrize("numbers", [*DEALS, pytest.param(UNEVEN, id="uneven")])
DESCENT = Descent(300, tolerance=1e-9)


def sharded(learner: Any, problem: Any, numbers: list[Ints]) -> Shards[Any, Any]:
    return Shards(Here(cut(learner, problem, numbers)), numbers, problem.lengths, problem.size)


def constraints() -> DenseConstraints:
    rng = np.random.default_rng(71)
    values = [(rng.random((2, n + 1, n + 1)) < 0.4).astype(float) for n in LENGTHS]
    low = np.array([0.3, 0.6])
    return DenseConstraints(values, low, low + 0.05, np.array([1.0, 2.0]), np.array([18.0, 11.0]))


def descending() -> dict[str, Any]:
    text = random_text(73, lengths=(2, 3, 1, 4, 2, 3, 2, 1, 3))
    return {
        "log-linear": LogLinear(0.7, DESCENT),
        "log-linear, cg": LogLinear(0.7, Descent(300, "cg", tolerance=1e-9)),
        "expected loss": ExpectedLoss(1.0, DESCENT),
        "entropy": EntropyRegularised(text, 0.7, weight=0.3, descent=DESCENT),
        "rules": GeneralizedExpectation(constraints(), c=10.0, descent=DESCENT),
        "rules, kl": GeneralizedExpectation(constraints(), "kl", c=10.0, descent=DESCENT),
    }


every_descent = pytest.mark.parametrize("name", list(descending()))


class Watched:
    """What a learner reports."""

    def __init__(self) -> None:
        self.passes: list[Pass] = []

    def __call__(self, done: Pass) -> bool:
        kept = Pass(done.number, done.weights.copy(), dict(done.figures), copied(done.state), done.is_last)
        self.passes.append(kept)
        return True


def copied(state: Mapping[str, Any]) -> State:
    return {name: array.copy() for name, array in state.items()}


def first_objective(learner: Any, shards: Shards[Any, Any], at: Floats) -> tuple[float, Floats]:
    """L and its gradient at some weights, as the optimiser is given them."""
    found: list[tuple[float, Floats]] = []

    class StoppedError(Exception):
        pass

    class Recorded(Descent):
        def minimise(self, objective: Any, size: int, report: Any, resume: State | None = None) -> Floats:
            found.append(objective(at))
            raise StoppedError

    object.__setattr__(learner, "descent", Recorded())
    with pytest.raises(StoppedError):
        learner.fit_shards(shards, Watched())
    return found[0]


@every_descent
@every_deal
def test_objective_and_gradient(name: str, numbers: list[Ints]) -> None:
    problem, learner = random_examples(72, lengths=LENGTHS), descending()[name]
    weights = np.random.default_rng(74).normal(size=problem.size)
    value, gradient = learner.objective(problem, weights)
    shards = sharded(learner, problem, numbers)
    found_value, found_gradient = first_objective(learner, shards, weights)
    assert found_value == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(found_gradient, gradient, rtol=1e-11, atol=1e-12)


@every_descent
@every_deal
def test_the_same_optimum_by_the_same_steps(name: str, numbers: list[Ints]) -> None:
    problem, learner = random_examples(72, lengths=LENGTHS), descending()[name]
    one, several = Watched(), Watched()
    weights = learner.fit(problem, one)
    found = learner.fit_shards(sharded(learner, problem, numbers), several)
    assert len(one.passes) > 5
    for before, after in zip(one.passes[:6], several.passes[:6], strict=True):
        assert after.figures["objective"] == pytest.approx(before.figures["objective"], rel=1e-12)
        np.testing.assert_allclose(after.weights, before.weights, rtol=1e-8, atol=1e-10)
    assert learner.objective(problem, found)[0] == pytest.approx(learner.objective(problem, weights)[0], rel=1e-12)
    np.testing.assert_allclose(found, weights, atol=1e-5)


@every_descent
def test_resuming_on_shards_is_bit_for_bit(name: str) -> None:
    problem, learner = random_examples(72, lengths=LENGTHS), descending()[name]
    numbers, seen = deal(len(LENGTHS), 2), Watched()
    whole = learner.fit_shards(sharded(learner, problem, numbers), seen).copy()
    again = learner.fit_shards(sharded(learner, problem, numbers), Watched(), copied(seen.passes[3].state))
    np.testing.assert_array_equal(again, whole)


def test_one_shard_is_the_sum_itself() -> None:
    problem, learner = random_examples(75, lengths=LENGTHS), LogLinear(0.7)
    weights = np.random.default_rng(76).normal(size=problem.size)
    value, gradient = sum_over_shards(sharded(learner, problem, deal(len(LENGTHS), 1)))(weights)
    expected_value, expected = learner.objective(problem, weights)
    assert value == pytest.approx(expected_value, rel=1e-15)
    np.testing.assert_allclose(gradient, expected, rtol=1e-14)


@pytest.mark.parametrize("optimiser", ["adagrad", "adam"])
def test_mini_batches_are_refused(optimiser: Any) -> None:
    problem, learner = random_examples(72, lengths=LENGTHS), LogLinear(0.7, Descent(3, optimiser))
    with pytest.raises(TrainingError, match=f"{optimiser} takes some sentences at a time"):
        learner.fit_shards(sharded(learner, problem, deal(len(LENGTHS), 2)), Watched())


# ------------------------------------------------------------------------------------------ exponentiated gradient

both_losses = pytest.mark.parametrize("loss", ["hinge", "log"])


@both_losses
@pytest.mark.parametrize("labels", [0, 2])
def test_eg_on_one_shard_is_eg(loss: Any, labels: int) -> None:
    problem, learner = random_examples(77, labels=labels, lengths=LENGTHS), ExponentiatedGradient(0.3, 12, loss)
    one, other = Watched(), Watched()
    weights = learner.fit(problem, one)
    found = learner.fit_shards(sharded(learner, problem, deal(len(LENGTHS), 1)), other)
    np.testing.assert_allclose(found, weights, rtol=1e-12, atol=1e-13)
    for before, after in zip(one.passes, other.passes, strict=True):
        assert after.figures == pytest.approx(before.figures, rel=1e-10)
        for name, array in before.state.items():
            np.testing.assert_allclose(after.state[name], array, rtol=1e-9, atol=1e-12)


@both_losses
@every_deal
def test_eg_reaches_the_optimum_that_its_gap_certifies(loss: Any, numbers: list[Ints]) -> None:
    """|w - w*|^2 / 2 <= primal - dual, and both figures are those of the duals and weights in the state."""
    problem = random_examples(78, lengths=LENGTHS)
    learner, exact = ExponentiatedGradient(0.3, 3000, loss, gap=1e-6), ExponentiatedGradient(0.3, 30000, loss, gap=1e-9)
    best = exact.fit(problem, lambda _: True)
    seen = Watched()
    found = learner.fit_shards(sharded(learner, problem, numbers), seen)
    last = seen.passes[-1]
    gap = last.figures["primal"] - last.figures["dual"]
    assert 0 <= gap < 1e-6 * last.figures["primal"]
    assert 0.5 * float((found - best) @ (found - best)) <= gap + 1e-8 * last.figures["primal"]
    assert last.figures["primal"] == pytest.approx(exact.primal(problem, best), rel=2e-6)
    assert_consistent(learner, problem, last)


@both_losses
@every_deal
def test_figures_of_eg_are_those_of_its_state(loss: Any, numbers: list[Ints]) -> None:
    """After every pass: w = C sum (1[gold] - mu) f, mu are the marginals of theta, primal and dual follow from them."""
    problem, learner, seen = random_examples(79, lengths=LENGTHS), ExponentiatedGradient(0.3, 5, loss), Watched()
    learner.fit_shards(sharded(learner, problem, numbers), seen)
    for done in seen.passes:
        assert_consistent(learner, problem, done)


def assert_consistent(learner: ExponentiatedGradient, problem: Any, done: Pass) -> None:
    weights, dual, start = np.zeros(problem.size), 0.0, 0
    for i, n in enumerate(problem.lengths.tolist()):
        this, cells = problem.some(np.array([i])), (n + 1) ** 2
        theta = done.state["theta"][start : start + cells].reshape(1, n + 1, n + 1)
        log_z, mu = this.marginals(theta)
        np.testing.assert_allclose(done.state["mu"][start : start + cells], mu.ravel(), atol=1e-13)
        this.add(weights, learner.c * (this.gold() - mu))
        wrong = 1.0 - this.gold()
        entropy = float(log_z[0]) - float((mu * theta).sum())
        dual += learner.c * (float((wrong * mu).sum()) if learner.loss == "hinge" else entropy)
        start += cells
    np.testing.assert_allclose(done.weights, weights, rtol=1e-9, atol=1e-10)
    assert done.figures["dual"] == pytest.approx(dual - 0.5 * float(weights @ weights), rel=1e-10)
    assert done.figures["primal"] == pytest.approx(learner.primal(problem, done.weights), rel=1e-12)


@both_losses
def test_eg_resumes_on_any_number_of_shards(loss: Any) -> None:
    """A state has no shards in it: one of two shards goes on, on two as it would have, on three towards the optimum."""
    problem, learner = random_examples(80, labels=2, lengths=LENGTHS), ExponentiatedGradient(0.3, 8, loss)
    two, seen = deal(len(LENGTHS), 2), Watched()
    whole = learner.fit_shards(sharded(learner, problem, two), seen).copy()
    again = learner.fit_shards(sharded(learner, problem, two), Watched(), copied(seen.passes[3].state))
    np.testing.assert_array_equal(again, whole)
    more = Watched()
    learner.fit_shards(sharded(learner, problem, deal(len(LENGTHS), 3)), more, copied(seen.passes[3].state))
    assert more.passes[-1].number == 8
    assert more.passes[-1].figures["dual"] > seen.passes[3].figures["dual"]


def test_duals_that_are_lost_end_the_training() -> None:
    problem, learner = random_examples(80, lengths=LENGTHS), ExponentiatedGradient(0.3, 8)
    shards = sharded(learner, problem, deal(len(LENGTHS), 2))

    def report(done: Pass) -> bool:
        held = shards.held
        assert isinstance(held, Here)
        held.pieces[1].memory = {}  # what a worker that was started again has
        return True

    with pytest.raises(TrainingError, match=r"a worker was lost, .* resumes from the checkpoint"):
        learner.fit_shards(shards, report)


# ------------------------------------------------------------------------------------------------------ automata


def trie(seed: int) -> ModifierTrie:
    return ModifierTrie.of(*random_trees(np.random.default_rng(seed), 12, 5, 8).arrays)


@pytest.mark.parametrize("count", [1, 2, 3, 50])
def test_em_is_the_same_bit_for_bit(count: int) -> None:
    sequences = trie(81)
    whole = em_steps(sequences, 3, np.random.default_rng(82))
    shards = em_steps(sequences, 3, np.random.default_rng(82), Here(shards_of(sequences, count)))
    for one, other in islice(zip(whole, shards, strict=True), 6):
        for name in ("initial", "final", "operators"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert other.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-13)


def test_every_automaton_is_in_one_shard_with_its_prefixes() -> None:
    sequences = trie(83)
    shards = shards_of(sequences, 3)
    assert sorted(np.concatenate([own.automata for own in shards]).tolist()) == list(range(2 * sequences.size))
    assert sum(len(own.parents) for own in shards) == len(sequences.parents)
    sizes = [len(own.parents) for own in shards]
    assert max(sizes) - min(sizes) <= int(np.diff(sequences.starts).max())


# -------------------------------------------------------------------------------------------------- the shards


@given(st.integers(0, 40), st.integers(1, 9))
def test_every_sentence_is_dealt_to_one_shard(count: int, shards: int) -> None:
    numbers = deal(count, shards)
    assert len(numbers) == shards
    assert sorted(np.concatenate(numbers).tolist()) == list(range(count))
    assert max(map(len, numbers)) - min(map(len, numbers)) <= 1


@given(st.permutations(range(11)), st.sets(st.integers(0, 10)))
def test_the_order_of_a_shards_own_sentences(order: list[int], own: set[int]) -> None:
    numbers = np.array(sorted(own), np.int64)
    shard: Shard[Any, Any] = Shard(None, None, numbers)
    found = numbers[shard.own(np.array(order))].tolist()
    assert found == [i for i in order if i in own]
