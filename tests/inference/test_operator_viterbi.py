"""The best tree of deterministic operator grammars: against enumeration, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import NoTreeError, ScoresError
from headway.inference import TreeDistribution
from headway.inference.operator_automata import LEFT, RIGHT, ModifierFactor, OperatorGrammar
from headway.inference.operator_grammar import tree_weight
from headway.inference.operator_viterbi import viterbi

from .operator_oracle import deterministic_grammar, projective_trees, random_factor, random_symbols, weight

both_roots = pytest.mark.parametrize("single_root", [False, True], ids=["multi", "single"])


def chain() -> OperatorGrammar:
    """Two states; a modifier leads from 0 to 1, and from 1 to 1 with half the weight."""
    initial, final = np.zeros((2, 2, 2)), np.ones((2, 2, 2))
    initial[..., 0] = 1.0
    operators = np.zeros((2, 2, 2, 2, 2))
    operators[..., 1, 0], operators[..., 1, 1] = 1.0, 0.5
    return OperatorGrammar(initial, final, operators)


@both_roots
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), states=st.integers(1, 4), memory=st.sampled_from([0, 1, 3]))
def test_agrees_with_enumeration(single_root: bool, seed: int, n: int, states: int, memory: int) -> None:
    rng = np.random.default_rng(seed)
    grammar = deterministic_grammar(rng, 3, states)
    symbols, factor = random_symbols(rng, 3, n), random_factor(rng, n, memory, forbid=0.1) if memory else None
    factors = None if factor is None else [factor]
    trees = projective_trees(n, single_root)
    best = max(weight(grammar, symbols, heads, factor) for heads in trees)
    if best == 0.0:
        with pytest.raises(NoTreeError, match="sentence 0"):
            viterbi(grammar, [symbols], factors, single_root=single_root)
        return
    [(heads, log_weight)] = viterbi(grammar, [symbols], factors, single_root=single_root)
    assert log_weight == pytest.approx(math.log(best), rel=1e-12, abs=1e-12)
    assert heads.tolist() in trees.tolist()
    assert weight(grammar, symbols, heads, factor) == pytest.approx(best, rel=1e-12)


@both_roots
def test_one_state_is_arc_factored(single_root: bool) -> None:
    scores = np.random.default_rng(4).normal(0.0, 50.0, (41, 41))
    grammar = OperatorGrammar(np.ones((2, 2, 1)), np.ones((2, 2, 1)), np.ones((2, 2, 2, 1, 1)))
    factor = ModifierFactor(scores[:, :, None], np.zeros((41, 2, 1)), np.zeros(41, np.int64))
    [(heads, log_weight)] = viterbi(grammar, [np.array([0] + [1] * 40)], [factor], single_root=single_root)
    expected = TreeDistribution(scores, projective=True, single_root=single_root)
    np.testing.assert_array_equal(heads, expected.argmax())
    assert log_weight == pytest.approx(expected.max, rel=1e-13)


def test_a_long_sentence_has_the_weight_of_its_tree() -> None:
    rng = np.random.default_rng(9)
    grammar = deterministic_grammar(rng, 6, 5)
    symbols = random_symbols(rng, 6, 200)
    [(heads, log_weight)] = viterbi(grammar, [symbols])
    assert (log_weight, 1) == pytest.approx(tree_weight(grammar, symbols, heads), rel=1e-12)


def test_fewer_siblings_weigh_more() -> None:
    """Multi-root, a chain of words has weight 1, and nothing more."""
    [(heads, log_weight)] = viterbi(chain(), [np.array([0, 1, 1, 1])], single_root=False)
    assert log_weight == 0.0
    assert max(np.bincount(heads[1:])) <= 2  # one on either side
    assert (np.bincount(heads[1:], minlength=1)[0]) == 1


def test_sentences_without_words() -> None:
    [(heads, log_weight), (one, _)] = viterbi(chain(), [np.array([0]), np.array([0, 1])])
    assert (heads.tolist(), log_weight) == ([-1], 0.0)
    assert one.tolist() == [-1, 0]
    assert viterbi(chain(), []) == []


# ---------------------------------------------------------------------------------- what is refused


def altered(name: str, place: tuple[int, ...], value: float) -> OperatorGrammar:
    good = chain()
    arrays = {"initial": good.initial.copy(), "final": good.final.copy(), "operators": good.operators.copy()}
    arrays[name][place] = value
    return OperatorGrammar(**arrays)


@pytest.mark.parametrize(
    ("name", "place"),
    [("initial", (1, LEFT, 0)), ("final", (0, RIGHT, 1)), ("operators", (1, RIGHT, 1, 1, 0))],
)
def test_negative_entries(name: str, place: tuple[int, ...]) -> None:
    with pytest.raises(ScoresError, match=f"{name} has negative entries"):
        viterbi(altered(name, place, -0.1), [np.array([0, 1])])


def test_several_start_states() -> None:
    with pytest.raises(ScoresError, match=r"initial\[1, 0\] has several start states"):
        viterbi(altered("initial", (1, LEFT, 1), 0.1), [np.array([0, 1])])


def test_several_successors() -> None:
    with pytest.raises(ScoresError, match=r"operators\[0, 1, 1\] leads from state 0 to several"):
        viterbi(altered("operators", (0, RIGHT, 1, 0, 0), 0.1), [np.array([0, 1])])


def test_what_no_tree_uses_may_be_anything() -> None:
    """The root is no modifier, and has no left side."""
    for grammar in (
        altered("operators", (1, RIGHT, 0, 0, 0), -1.0),
        altered("operators", (0, LEFT, 1, 0, 0), 0.1),
        altered("initial", (0, LEFT, 1), 0.1),
        altered("final", (0, LEFT, 1), -0.1),
    ):
        [(heads, _)] = viterbi(grammar, [np.array([0, 1])])
        assert heads.tolist() == [-1, 0]
