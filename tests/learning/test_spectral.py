"""The spectral learner against explicit matrices of counted substrings, and against theorems.

Operators are known up to a change of basis, so what is compared is the weight of strings.
"""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import TrainingError
from headway.inference.operator_automata import OperatorGrammar
from headway.learning.modifier_trie import ModifierTrie
from headway.learning.spectral import spectral_grammar
from tests.learning.sequences_oracle import (
    START,
    STOP,
    Automaton,
    String,
    Trees,
    Weighted,
    occurrences,
    paper_automaton,
    random_pnfa,
    random_trees,
    spectral_automaton,
    statistics,
    strings,
    trie_of,
)

ALPHABET = (1, 2)
HEAD, SIDE = 2, 1  # where sequences given by hand are put
ENOUGH = 200  # states: more than any P here has singular values


def weights(grammar: OperatorGrammar, longest: int, head: int = HEAD, side: int = SIDE) -> dict[String, float]:
    """Of all strings over the grammar's alphabet up to a length."""
    return {x: grammar.weight(head, side, x) for x in strings(range(1, grammar.symbols), longest)}


def by_hand(sequences: Weighted) -> ModifierTrie:
    return trie_of(3, {(HEAD, SIDE): sequences})


def drawn(seed: int, count: int) -> Counter[String]:
    """Sequences of a random automaton, most of them short."""
    rng = np.random.default_rng(seed)
    pnfa = random_pnfa(rng, 3, ALPHABET, (0.2, 0.6))
    found: Counter[String] = Counter()
    for _ in range(count):
        x: list[int] = []
        state = rng.choice(3, p=pnfa.initial)
        while rng.random() >= pnfa.final[state]:
            moves = np.stack([pnfa.operators[a][:, state] for a in ALPHABET]).ravel()
            a, state = divmod(int(rng.choice(len(moves), p=moves / moves.sum())), 3)
            x.append(ALPHABET[a])
        found[tuple(x)] += 1
    return found


def separated(sequences: Weighted, context: int, states: int, least: float = 0.0) -> bool:
    """Whether the leading singular vectors are well defined: no singular value is nearly the next."""
    s = np.linalg.svd(statistics(sequences, ALPHABET, context, least)[2], compute_uv=False)
    s = np.append(s[s > 1e-9 * s[0]], 0.0)
    return states >= len(s) or bool(s[states - 1] - s[states] > 1e-4 * s[0])


# ------------------------------------------------------------------------------------------------ against the twins


@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("context", [1, 2, 3])
@pytest.mark.parametrize("states", range(1, 7))
def test_weights_are_those_of_explicit_matrices(states: int, context: int, ridge: float) -> None:
    sequences = drawn(10 * states + context, 60)
    assert separated(sequences, context, states)
    expected = spectral_automaton(sequences, ALPHABET, states, context, ridge)
    found = weights(spectral_grammar(by_hand(sequences), states, context=context, ridge=ridge, least=0.0), 3)
    for x, weight in found.items():
        assert weight == pytest.approx(expected.weight(x), rel=1e-7, abs=1e-10), x


@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("context", [2, 3])
@pytest.mark.parametrize("least", [4.0, 8.0, 15.0])
def test_longer_strings_must_have_been_seen_so_often(least: float, context: int, ridge: float) -> None:
    sequences, states = drawn(11, 40), 4
    assert separated(sequences, context, states, least)
    expected = spectral_automaton(sequences, ALPHABET, states, context, ridge, least)
    trie = by_hand(sequences)
    found, every = (
        weights(spectral_grammar(trie, states, context=context, ridge=ridge, least=seen), 3) for seen in (least, 0.0)
    )
    for x, weight in found.items():
        assert weight == pytest.approx(expected.weight(x), rel=1e-7, abs=1e-10), x
    assert max(abs(found[x] - every[x]) for x in found) > 1e-5


def test_strings_seen_exactly_so_often_are_kept() -> None:
    """1 2 in START 1 2 STOP, seen 20 times: with them the other string, 1, is told apart from its beginning."""
    trie = by_hand({(1, 2): 20.0, (1,): 20.0, (2, 1, 1): 1.0})
    just, above = (weights(spectral_grammar(trie, 5, context=2, ridge=0.0, least=least), 3) for least in (20.0, 20.5))
    expected = spectral_automaton({(1, 2): 20.0, (1,): 20.0, (2, 1, 1): 1.0}, ALPHABET, 5, 2, 0.0, 20.0)
    for x, weight in just.items():
        assert weight == pytest.approx(expected.weight(x), rel=1e-7, abs=1e-10), x
    assert max(abs(just[x] - above[x]) for x in just) > 1e-3


@pytest.mark.parametrize("context", [2, 3])
def test_single_symbols_are_always_kept(context: int) -> None:
    """Where all longer strings are too rare, context is 1."""
    trie = by_hand(drawn(9, 60))
    one = weights(spectral_grammar(trie, 3, context=1, ridge=0.5), 3)
    rare = weights(spectral_grammar(trie, 3, context=context, ridge=0.5, least=1e6), 3)
    for x, weight in rare.items():
        assert weight == pytest.approx(one[x], rel=1e-10, abs=1e-12), x


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 3), st.sampled_from([0.3, 1.0, 5.0]))
def test_every_head_of_a_treebank_has_its_own_automaton(seed: int, states: int, context: int, ridge: float) -> None:
    trees = random_trees(np.random.default_rng(seed), 12, 3, 6)
    grammar = spectral_grammar(ModifierTrie.of(*trees.arrays), states, context=context, ridge=ridge, least=0.0)
    for (h, d), sequences in trees.sequences().items():
        if not separated(sequences, context, states):
            continue
        expected = spectral_automaton(sequences, ALPHABET, states, context, ridge)
        for x, weight in weights(grammar, 3, h, d).items():
            assert weight == pytest.approx(expected.weight(x), rel=1e-7, abs=1e-9), (h, d, x)


@pytest.mark.parametrize("states", [1, 2, 3])
def test_without_ridge_and_context_it_is_the_papers_algorithm(states: int) -> None:
    sequences = drawn(states, 200)
    expected, before_start = paper_automaton(sequences, ALPHABET, states)
    found = weights(spectral_grammar(by_hand(sequences), states, context=1, ridge=0.0, least=0.0), 4)
    for x, weight in found.items():
        assert weight == pytest.approx(expected.weight(x), rel=1e-9, abs=1e-12), x
    assert not before_start.any()  # nothing comes before START: taken by the letter, every string would weigh nothing


def test_a_ridge_takes_from_small_singular_values_and_vanishes_with_many_sequences() -> None:
    sequences = drawn(3, 50)
    few, many = by_hand(sequences), by_hand({x: 1e12 * count for x, count in sequences.items()})
    plain, ridged = (weights(spectral_grammar(few, 3, ridge=ridge, least=0.0), 3) for ridge in (0.0, 1.0))
    assert max(abs(plain[x] - ridged[x]) for x in plain) > 0.01
    for x, weight in weights(spectral_grammar(many, 3, ridge=1.0, least=0.0), 3).items():
        assert weight == pytest.approx(plain[x], abs=1e-7)


# ---------------------------------------------------------------------------------------------------------- theorems


SHORT = st.dictionaries(st.sampled_from(strings(ALPHABET, 2)), st.integers(1, 9), min_size=1)


@given(SHORT)
def test_with_all_substrings_the_weights_are_relative_frequencies(sequences: dict[String, int]) -> None:
    """Strings of up to 3 hold START x and x STOP of every x of up to 2, so P has the rank of what was counted."""
    grammar = spectral_grammar(by_hand(sequences), ENOUGH, context=3, ridge=0.0, least=0.0)
    total = sum(sequences.values())
    for x, weight in weights(grammar, 5).items():
        assert weight == pytest.approx(sequences.get(x, 0) / total, abs=1e-8), x


def exact(pnfa: Automaton, longest: int) -> dict[String, float]:
    """The probabilities of all strings up to a length, which must leave next to nothing."""
    found = {x: pnfa.weight(x) for x in strings(ALPHABET, longest)}
    assert sum(found.values()) > 1 - 1e-12
    return found


@pytest.mark.parametrize("context", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_a_pnfa_is_recovered_from_its_own_distribution(seed: int, context: int) -> None:
    """Three states are needed: with two, the weights err a million times more."""
    pnfa = random_pnfa(np.random.default_rng(seed), 3, ALPHABET, (0.85, 0.95))
    trie = by_hand(exact(pnfa, 12))
    errors = []
    for states in (3, 2):
        found = weights(spectral_grammar(trie, states, context=context, ridge=0.0, least=0.0), 4)
        errors.append(max(abs(weight - pnfa.weight(x)) for x, weight in found.items()))
    assert errors[0] < 1e-11
    assert errors[1] > 1e-5


@pytest.mark.parametrize("context", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_a_pnfa_of_one_symbol_is_recovered_from_its_lengths(seed: int, context: int) -> None:
    """One symbol and STOP are too few for three states, strings of two and more are enough; most sequences are long."""
    pnfa = random_pnfa(np.random.default_rng(seed), 3, [1], (0.2, 0.8))
    lengths = {(1,) * length: pnfa.weight((1,) * length) for length in range(150)}
    assert sum(lengths.values()) > 1 - 1e-12
    recovered = spectral_grammar(by_hand(lengths), 3, context=context, ridge=0.0, least=0.0)
    for x, weight in lengths.items():
        assert recovered.weight(HEAD, SIDE, x) == pytest.approx(weight, abs=1e-13), len(x)
    paper = spectral_grammar(by_hand(lengths), 3, context=1, ridge=0.0, least=0.0)
    assert max(abs(paper.weight(HEAD, SIDE, x) - weight) for x, weight in lengths.items()) > 1e-6


@pytest.mark.parametrize("ridge", [0.0, 1.0])
@pytest.mark.parametrize("context", [1, 2])
def test_leading_states_are_what_fewer_states_learn(context: int, ridge: float) -> None:
    trie = by_hand(drawn(8, 400))
    whole = spectral_grammar(trie, 6, context=context, ridge=ridge, least=0.0)
    for states in range(1, 7):
        own = weights(spectral_grammar(trie, states, context=context, ridge=ridge, least=0.0), 4)
        for x, weight in weights(whole.leading(states), 4).items():
            assert weight == pytest.approx(own[x], rel=1e-10, abs=1e-12), (states, x)


# ------------------------------------------------------------------------------------------------------- large P, scale


@pytest.mark.parametrize("ridge", [0.0, 1.0])
@pytest.mark.parametrize("scale", [0.0, 0.5])
@pytest.mark.parametrize("states", [1, 3, 5])
def test_leading_singular_vectors_of_a_large_p_are_those_of_all(states: int, scale: float, ridge: float) -> None:
    """P has 63 columns: a few of its singular vectors come from Lanczos' method, most of them from LAPACK."""
    trie = by_hand(drawn(21, 3000))
    some, every = (
        spectral_grammar(trie, number, context=5, ridge=ridge, least=0.0, scale=scale) for number in (states, 40)
    )
    every_weight = weights(every.leading(states), 3)
    for x, weight in weights(some, 3).items():
        assert weight == pytest.approx(every_weight[x], rel=1e-8, abs=1e-11), x


@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("scale", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("context", [1, 2, 3])
def test_weights_are_those_of_explicit_scaled_matrices(context: int, scale: float, ridge: float) -> None:
    sequences = drawn(context, 60)
    for states in (2, 4):
        expected = spectral_automaton(sequences, ALPHABET, states, context, ridge, scale=scale)
        grammar = spectral_grammar(by_hand(sequences), states, context=context, ridge=ridge, least=0.0, scale=scale)
        for x, weight in weights(grammar, 3).items():
            assert weight == pytest.approx(expected.weight(x), rel=1e-7, abs=1e-10), x


@given(SHORT, st.floats(0, 1))
def test_with_all_singular_values_a_scale_changes_nothing(sequences: dict[String, int], scale: float) -> None:
    grammar = spectral_grammar(by_hand(sequences), ENOUGH, context=3, ridge=0.0, least=0.0, scale=scale)
    total = sum(sequences.values())
    for x, weight in weights(grammar, 4).items():
        assert weight == pytest.approx(sequences.get(x, 0) / total, abs=1e-7), x


# --------------------------------------------------------------------------------------------- repetition and edges


def test_runs_repeat_to_the_last_bit() -> None:
    trie = ModifierTrie.of(*random_trees(np.random.default_rng(4), 300, 6, 9).arrays)
    one, two = (spectral_grammar(trie, 5) for _ in range(2))
    for name in ("initial", "final", "operators"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_states_beyond_the_rank_are_unused() -> None:
    """START STOP only: P is 1 by 1, one state says all."""
    grammar = spectral_grammar(by_hand({(): 7.0}), 4, ridge=0.0, least=0.0)
    assert grammar.states == 4
    assert grammar.weight(HEAD, SIDE, []) == pytest.approx(1.0, rel=1e-12)
    assert not grammar.initial[HEAD, SIDE, 1:].any()
    assert not grammar.operators[HEAD, SIDE].any()


def test_a_head_that_was_never_seen_generates_nothing() -> None:
    grammar = spectral_grammar(by_hand({(1,): 1.0}), 2)
    for h, d in product(range(3), range(2)):
        seen = (h, d) == (HEAD, SIDE)
        assert grammar.initial[h, d].any() == seen
        assert grammar.final[h, d].any() == seen
        assert grammar.operators[h, d].any() == seen


def test_no_trees_at_all() -> None:
    grammar = spectral_grammar(ModifierTrie.of(*Trees(3, [], []).arrays), 2)
    assert not grammar.initial.any()


def test_substrings_are_counted_where_they_overlap() -> None:
    """The oracle's own check: 1 1 is in START 1 1 1 STOP twice."""
    assert occurrences({(1, 1, 1): 3.0, (2,): 1.0}, (1, 1)) == 2 * 0.75
    assert occurrences({(1, 1, 1): 3.0, (2,): 1.0}, (START, 2, STOP)) == 0.25


@pytest.mark.parametrize(
    ("states", "context", "ridge", "message"),
    [
        (0, 2, 1.0, "0 states and strings of 2 symbols"),
        (2, 0, 1.0, "2 states and strings of 0 symbols"),
        (2, 2, -0.5, "the ridge is -0.5"),
        (2, 2, float("nan"), "the ridge is nan"),
        (2, 2, float("inf"), "the ridge is inf"),
        (2, 40, 1.0, "strings of 40 among 3 symbols are too many to number"),
    ],
)
def test_settings_without_meaning_are_refused(states: int, context: int, ridge: float, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        spectral_grammar(by_hand({(1,): 1.0}), states, context=context, ridge=ridge, least=0.0)


@pytest.mark.parametrize("scale", [-0.5, 1.5, float("nan")])
def test_scales_without_meaning_are_refused(scale: float) -> None:
    with pytest.raises(TrainingError, match="the scale is"):
        spectral_grammar(by_hand({(1,): 1.0}), 2, scale=scale)
