"""EM against the enumeration of all paths of states, and what its theory promises."""

from __future__ import annotations

from collections import Counter
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import TrainingError
from headway.inference.operator_automata import OperatorGrammar
from headway.learning import expectation_maximization
from headway.learning.expectation_maximization import Step, _maximise, _start, em_steps
from headway.learning.modifier_trie import ModifierTrie
from tests.learning.sequences_oracle import (
    Automaton,
    String,
    Trees,
    expected_counts,
    maximised,
    random_trees,
    strings,
    trie_of,
)


def steps(trie: ModifierTrie, states: int, seed: int, count: int) -> list[Step]:
    return list(islice(em_steps(trie, states, np.random.default_rng(seed)), count))


def started(trie: ModifierTrie, states: int, seed: int) -> OperatorGrammar:
    """The grammar that steps start from."""
    initial, final, operators = _start(trie, states, np.random.default_rng(seed))
    shape = (trie.size, 2)
    return OperatorGrammar(
        initial.reshape(*shape, -1), final.reshape(*shape, -1), operators.reshape(*shape, *operators.shape[1:])
    )


def automaton(grammar: OperatorGrammar, head: int, side: int) -> Automaton:
    operators = {a: grammar.operators[head, side, a] for a in range(1, grammar.symbols)}
    return Automaton(grammar.initial[head, side], grammar.final[head, side], operators)


def assert_distribution(grammar: OperatorGrammar) -> None:
    """Every state's ways to go on, and STOP, sum to one; so do the first states."""
    np.testing.assert_allclose(grammar.initial.sum(axis=-1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(grammar.operators.sum(axis=(2, 3)) + grammar.final, 1.0, rtol=1e-12)
    for name in ("initial", "final", "operators"):
        assert (getattr(grammar, name) >= 0).all()
    assert not grammar.operators[:, :, 0].any()  # the root is nobody's modifier


# ---------------------------------------------------------------------------------------------------- one step


@pytest.mark.parametrize("states", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_step_takes_the_shares_of_expected_counts(seed: int, states: int) -> None:
    trees = random_trees(np.random.default_rng(seed), 15, 3, 6)
    trie = ModifierTrie.of(*trees.arrays)
    found = steps(trie, states, seed, 3)
    before = started(trie, states, seed)
    for step in found:
        total = 0.0
        for (h, d), sequences in trees.sequences().items():
            log_likelihood, *counts = expected_counts(sequences, automaton(before, h, d))
            total += log_likelihood
            if (h, d) == (0, 0):  # always empty: only STOP, whatever the state
                continue
            expected, own = maximised(*counts), automaton(step.grammar, h, d)
            np.testing.assert_allclose(own.initial, expected.initial, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(own.final, expected.final, rtol=1e-9, atol=1e-12)
            for a, matrix in expected.operators.items():
                np.testing.assert_allclose(own.operators[a], matrix, rtol=1e-9, atol=1e-12)
        assert step.log_likelihood == pytest.approx(total, rel=1e-11)
        before = step.grammar
    assert [step.number for step in found] == [1, 2, 3]


def test_counts_may_be_fractions() -> None:
    """A tenth of every count is a tenth of the log-likelihood, and the same grammar."""
    sequences = {(1, 2): 3.0, (2,): 1.0, (): 2.0}
    whole, tenth = (trie_of(3, {(1, 0): {x: scale * count for x, count in sequences.items()}}) for scale in (1.0, 0.1))
    for one, other in zip(steps(whole, 2, 0, 5), steps(tenth, 2, 0, 5), strict=True):
        assert other.log_likelihood == pytest.approx(one.log_likelihood / 10, rel=1e-12)
        np.testing.assert_allclose(one.grammar.operators, other.grammar.operators, rtol=1e-10, atol=1e-14)


def test_few_sequences_of_a_fraction_still_start_from_a_distribution() -> None:
    assert_distribution(started(trie_of(3, {(1, 0): {(1, 2): 0.01}}), 2, 0))


def test_a_state_that_was_never_in_use_stays_what_it_was() -> None:
    initial, final = np.array([[0.25, 0.75]]), np.array([[0.5, 0.2]])
    operators = np.array([[[[0.0, 0.0], [0.0, 0.0]], [[0.3, 0.1], [0.2, 0.7]]]])
    moves = np.zeros((1, 2, 2, 2))
    moves[0, 1, 0, 0] = 1.0  # the first state stops three times and goes to itself once
    found = _maximise(initial, final, operators, np.array([[3.0, 0.0]]), np.array([[3.0, 0.0]]), moves)
    np.testing.assert_array_equal(found[0], [[1.0, 0.0]])
    np.testing.assert_array_equal(found[1], [[0.75, 0.2]])
    np.testing.assert_array_equal(found[2][0, 1], [[0.25, 0.1], [0.0, 0.7]])
    nothing = _maximise(initial, final, operators, np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((1, 2, 2, 2)))
    for same, was in zip(nothing, (initial, final, operators), strict=True):
        np.testing.assert_array_equal(same, was)


# -------------------------------------------------------------------------------------------------- all steps


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 20), st.integers(2, 4))
def test_the_likelihood_never_falls_and_every_grammar_is_a_distribution(
    seed: int, states: int, count: int, size: int
) -> None:
    trees = random_trees(np.random.default_rng(seed), count, size, 7)
    trie = ModifierTrie.of(*trees.arrays)
    found = steps(trie, states, seed, 40)
    for one, two in pairwise(found):
        assert two.log_likelihood >= one.log_likelihood - 1e-9 * (1 + abs(one.log_likelihood))
    for step in found:
        assert_distribution(step.grammar)
    assert found[-1].log_likelihood <= entropy_bound(trees) + 1e-9


def entropy_bound(trees: Trees) -> float:
    """No model gives sequences more than their relative frequencies do."""
    total = 0.0
    for sequences in trees.sequences().values():
        counts = np.array(list(sequences.values()), float)
        total += float((counts * np.log(counts / counts.sum())).sum())
    return total


@pytest.mark.parametrize("sequences", [{(): 5}, {(1,): 4}, {(1, 2): 3, (2,): 3}, {(): 1, (1,): 1}])
@pytest.mark.parametrize("states", [1, 2, 3, 5])
def test_when_nothing_is_left_to_learn_rounding_is_no_fall(sequences: Counter[String], states: int) -> None:
    """The best log-likelihood is 0, or reached long before the last step."""
    for seed in range(5):
        found = steps(trie_of(3, {(1, 0): sequences}), states, seed, 300)
        assert found[-1].log_likelihood <= 1e-9


def test_two_states_learn_what_one_cannot() -> None:
    """1 and 2 in turn, (1 2)^k: two states predict the symbol, one gives it half a bit or less."""
    sequences = {(1, 2) * k: 1 for k in range(1, 8)}
    trie = trie_of(3, {(1, 1): sequences})
    [one, two] = (steps(trie, states, 1, 400)[-1].log_likelihood for states in (1, 2))
    pairs, many = sum(range(1, 8)), 7
    stop = many / (pairs + many)  # the first state stops or begins a pair, the second ends the pair
    best = many * np.log(stop) + pairs * np.log(
        1 - stop
    )  # the empty sequence is never seen: a third state would say so
    assert two == pytest.approx(best, abs=1e-3)
    assert one < best - 40


def test_sequences_of_hundreds_do_not_underflow() -> None:
    rng = np.random.default_rng(2)
    sequences = {tuple(rng.integers(1, 9, 400).tolist()): 1 for _ in range(3)}
    found = steps(trie_of(9, {(3, 0): sequences}), 4, 0, 6)
    shares = Counter(a for x in sequences for a in x)
    uniform = sum(count * np.log(count / 1200) for count in shares.values())
    assert np.isfinite([step.log_likelihood for step in found]).all()
    assert found[-1].log_likelihood == pytest.approx(uniform, rel=0.02)
    assert uniform < -2400  # exp of it is 0
    assert_distribution(found[-1].grammar)


def test_a_likelihood_that_falls_is_a_mistake_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step as it should be, then back to where it started."""
    trie = trie_of(3, {(1, 0): {(1, 2): 3.0, (2,): 1.0}})
    found = em_steps(trie, 2, np.random.default_rng(1))
    first = next(found)
    monkeypatch.setattr(expectation_maximization, "_maximise", lambda *_: _start(trie, 2, np.random.default_rng(1)))
    second = next(found)
    assert second.log_likelihood > first.log_likelihood + 0.5
    with pytest.raises(AssertionError, match="step 3 of EM made the log-likelihood fall from"):
        next(found)


# --------------------------------------------------------------------------------------------------- the start


def test_the_start_is_the_papers() -> None:
    """A_a = T O_a: O_a the relative frequency of a among modifiers, whatever the state; T (and not stopping) random."""
    trees = random_trees(np.random.default_rng(6), 40, 4, 8)
    trie = ModifierTrie.of(*trees.arrays)
    grammar = started(trie, 3, 1)
    assert_distribution(grammar)
    by_head = trees.sequences()
    for h in range(4):
        for d in range(2):
            modifiers = Counter(a for x, count in by_head[h, d].items() for a in x * count)
            if (h, d) == (0, 0):
                assert not modifiers
                np.testing.assert_array_equal(grammar.final[h, d], 1.0)
                continue
            moves = grammar.operators[h, d].sum(axis=0)
            for a in range(1, 4):
                share = modifiers[a] / modifiers.total()
                np.testing.assert_allclose(grammar.operators[h, d, a], share * moves, rtol=1e-12)
            assert len(set(moves.ravel().tolist())) == 9
            assert len(set(grammar.final[h, d].tolist())) == 3
            assert ((grammar.final[h, d] > 0) & (grammar.final[h, d] < 1)).all()


def test_restarts_differ_and_seeds_repeat() -> None:
    trie = ModifierTrie.of(*random_trees(np.random.default_rng(6), 30, 4, 8).arrays)
    one, same, other = (steps(trie, 3, seed, 4)[-1] for seed in (0, 0, 1))
    for name in ("initial", "final", "operators"):
        np.testing.assert_array_equal(getattr(one.grammar, name), getattr(same.grammar, name))
        assert np.abs(getattr(one.grammar, name) - getattr(other.grammar, name)).max() > 0.01
    assert one.log_likelihood == same.log_likelihood != other.log_likelihood


def test_a_head_that_was_never_seen_stays_a_distribution_that_stops() -> None:
    trie = trie_of(4, {(2, 1): {(1,): 2.0}})
    for step in steps(trie, 2, 0, 3):
        assert_distribution(step.grammar)
        assert step.grammar.weight(3, 0, []) == pytest.approx(1.0, rel=1e-12)
        assert step.grammar.weight(3, 0, [1]) == 0.0


def test_what_is_learnt_generates_the_sequences_seen() -> None:
    """With a state for every prefix, relative frequencies can be reached; here they are, from some start."""
    sequences = {(1,): 3.0, (2, 1): 1.0}
    trie = trie_of(3, {(1, 0): sequences})
    best = max((steps(trie, 3, seed, 300)[-1] for seed in range(4)), key=lambda step: step.log_likelihood)
    for x in strings((1, 2), 3):
        assert best.grammar.weight(1, 0, x) == pytest.approx(sequences.get(x, 0.0) / 4, abs=1e-3)


@pytest.mark.parametrize("states", [0, -1])
def test_no_states_are_refused(states: int) -> None:
    with pytest.raises(TrainingError, match=f"{states} states; at least one is needed"):
        next(em_steps(trie_of(3, {}), states, np.random.default_rng(0)))
