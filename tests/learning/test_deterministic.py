"""DET and DET+F are relative frequencies counted by plain loops, and probabilities of sequences."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.learning.deterministic import SMOOTHING, deterministic_grammar
from headway.learning.expectation_maximization import em_steps
from headway.learning.modifier_trie import ModifierTrie
from tests.learning.sequences_oracle import String, Trees, random_trees, strings, trie_of

STOP = 0


def outcomes(sequences: Counter[String], states: int) -> list[Counter[int]]:
    """How often each modifier, or STOP, came in each state; the second state is that of all but the first outcome."""
    found: list[Counter[int]] = [Counter() for _ in range(states)]
    for x, count in sequences.items():
        for place, a in enumerate((*x, STOP)):
            found[min(place, states - 1)][a] += count
    return found


def weight(found: list[Counter[int]], size: int, x: String) -> float:
    """Of a sequence under smoothed relative frequencies."""
    product = 1.0
    for place, a in enumerate((*x, STOP)):
        state = found[min(place, len(found) - 1)]
        product *= (state[a] + SMOOTHING) / (sum(state.values()) + size * SMOOTHING)
    return product


@pytest.mark.parametrize("states", [1, 2])
@given(st.integers(0, 2**32), st.integers(2, 4), st.integers(1, 12))
def test_weights_are_smoothed_relative_frequencies(states: int, seed: int, size: int, count: int) -> None:
    trees = random_trees(np.random.default_rng(seed), count, size, 7)
    grammar = deterministic_grammar(ModifierTrie.of(*trees.arrays), first=states == 2)
    assert grammar.states == states
    by_head = trees.sequences()
    for d in range(2):
        every: Counter[String] = Counter()
        for (h, side), sequences in by_head.items():
            if h and side == d:
                every.update(sequences)
        for h in range(size):
            found = outcomes(by_head.get((h, d), every), states)
            for x in strings(range(1, size), 3):
                assert grammar.weight(h, d, x) == pytest.approx(weight(found, size, x), rel=1e-12)


@pytest.mark.parametrize("first", [False, True])
def test_every_automaton_is_a_distribution(first: bool) -> None:
    trees = random_trees(np.random.default_rng(3), 4, 6, 5)  # some of the five symbols are no heads
    grammar = deterministic_grammar(ModifierTrie.of(*trees.arrays), first=first)
    leaving = grammar.operators.sum(axis=(2, 3)) + grammar.final
    np.testing.assert_allclose(leaving, 1.0, rtol=1e-14)
    np.testing.assert_array_equal(grammar.initial.sum(axis=-1), 1.0)
    assert (grammar.final > 0).all()
    assert (grammar.operators[:, :, 1:].sum(axis=3) > 0).all()  # no symbol is impossible in any state
    assert not grammar.operators[:, :, 0].any()  # the root is nobody's modifier


def test_only_the_first_modifier_is_told_apart() -> None:
    """A determiner comes last: 1 1 2 and 1 2 of head 3, never 2 first."""
    trie = trie_of(4, {(3, 0): {(1, 1, 2): 1e6, (1, 2): 1e6}})
    det, det_f = (deterministic_grammar(trie, first=first) for first in (False, True))
    assert det.weight(3, 0, [1, 2]) == pytest.approx(3 / 7 * 2 / 7 * 2 / 7, rel=1e-6)
    assert det_f.weight(3, 0, [1, 2]) == pytest.approx(1 * 2 / 5 * 2 / 5, rel=1e-6)
    assert det.weight(3, 0, [2]) == pytest.approx(2 / 7 * 2 / 7, rel=1e-6)
    assert det_f.weight(3, 0, [2]) < 1e-7


def test_det_is_em_with_one_state() -> None:
    """The first step reaches relative frequencies; a million copies of every tree make smoothing small."""
    rng = np.random.default_rng(5)
    trees = random_trees(rng, 20, 4, 8)
    copies = {key: {x: 1e6 * count for x, count in some.items()} for key, some in trees.sequences().items()}
    trie = trie_of(4, copies)
    det = deterministic_grammar(trie, first=False)
    [one, two] = islice(em_steps(trie, 1, rng), 2)
    for step in (one, two):
        np.testing.assert_allclose(step.grammar.final, det.final, atol=1e-7)
        np.testing.assert_allclose(step.grammar.operators, det.operators, atol=1e-7)
    assert two.log_likelihood > one.log_likelihood + 1


def test_no_trees_at_all_leave_uniform_outcomes() -> None:
    grammar = deterministic_grammar(ModifierTrie.of(*Trees(4, [], []).arrays), first=True)
    np.testing.assert_allclose(grammar.final, 0.25)
    np.testing.assert_allclose(grammar.operators[:, :, 1:].sum(axis=3), 0.25)
