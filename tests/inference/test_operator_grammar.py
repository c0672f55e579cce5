"""Operator grammars: against enumeration, against arc-factored inference, against themselves rescaled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import DtypeError, HeadsError, NoTreeError, ScoresError, ShapeError
from headway.inference import TreeDistribution
from headway.inference.operator_automata import LEFT, RIGHT, ModifierFactor, OperatorGrammar
from headway.inference.operator_grammar import FLOOR, Floored, Posterior, mbr, posteriors, tree_weight
from headway.parallel import SERIAL, Threads

from .operator_oracle import (
    Floats,
    Ints,
    deterministic_grammar,
    projective_trees,
    random_factor,
    random_grammar,
    random_symbols,
    totals,
    weight,
)
from .strategies import pruned_scores

both_roots = pytest.mark.parametrize("single_root", [False, True], ids=["multi", "single"])
signs = pytest.mark.parametrize("mixed", [False, True], ids=["positive", "mixed"])
seeds = st.integers(0, 2**32 - 1)


def posterior(
    grammar: OperatorGrammar, symbols: Ints, factor: ModifierFactor | None = None, *, single_root: bool = True
) -> Posterior:
    [found] = posteriors(grammar, [symbols], None if factor is None else [factor], single_root=single_root)
    return found


def ones(symbols: int = 2, operators: float = 1.0) -> OperatorGrammar:
    """One state: every modifier weighs `operators`."""
    shape = (symbols, 2, 1)
    return OperatorGrammar(np.ones(shape), np.ones(shape), np.full((symbols, 2, symbols, 1, 1), operators))


def words(n: int) -> Ints:
    return np.array([0] + [1] * n)


def check(found: Posterior, grammar: OperatorGrammar, symbols: Ints, factor: ModifierFactor | None, single: bool):
    expected = totals(grammar, symbols, factor, single_root=single)
    z = found.probability
    if expected.absolute == pytest.approx(expected.weight, rel=1e-13):  # nothing cancels
        assert found.log_partition == pytest.approx(math.log(expected.weight), rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(found.marginals, expected.arcs / expected.weight, rtol=1e-11, atol=1e-300)
    assert z == pytest.approx(expected.weight, rel=0, abs=1e-11 * expected.absolute)
    np.testing.assert_allclose(found.marginals * z, expected.arcs, rtol=0, atol=1e-11 * expected.absolute)
    np.testing.assert_allclose(found.marginals[:, 1:].sum(axis=0), 1.0, atol=1e-11 * expected.absolute / abs(z))


# ---------------------------------------------------------------------------------- enumeration


@both_roots
@signs
@pytest.mark.parametrize("states", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_agrees_with_enumeration(n: int, states: int, mixed: bool, single_root: bool) -> None:
    rng = np.random.default_rng([n, states, mixed])
    grammar = random_grammar(rng, 4, states, mixed=mixed)
    symbols = random_symbols(rng, 4, n)
    check(posterior(grammar, symbols, single_root=single_root), grammar, symbols, None, single_root)


@both_roots
@signs
@pytest.mark.parametrize("memory", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [1, 3, 5, 6])
def test_agrees_with_enumeration_with_a_factor(n: int, memory: int, mixed: bool, single_root: bool) -> None:
    rng = np.random.default_rng([n, memory, mixed])
    grammar = random_grammar(rng, 3, 2, mixed=mixed)
    symbols, factor = random_symbols(rng, 3, n), random_factor(rng, n, memory)
    check(posterior(grammar, symbols, factor, single_root=single_root), grammar, symbols, factor, single_root)


@given(seed=seeds, n=st.integers(1, 5), states=st.integers(1, 4), memory=st.integers(0, 4), data=st.data())
def test_any_grammar_agrees_with_enumeration(seed: int, n: int, states: int, memory: int, data: Any) -> None:
    rng = np.random.default_rng(seed)
    mixed, single_root = data.draw(st.booleans()), data.draw(st.booleans())
    alphabet = int(rng.integers(2, 5))
    grammar = random_grammar(rng, alphabet, states, mixed=mixed)
    symbols = random_symbols(rng, alphabet, n)
    factor = random_factor(rng, n, memory, forbid=data.draw(st.sampled_from([0.0, 0.3]))) if memory else None
    expected = totals(grammar, symbols, factor, single_root=single_root)
    if expected.absolute == 0.0:
        with pytest.raises(NoTreeError, match="sentence 0"):
            posterior(grammar, symbols, factor, single_root=single_root)
    elif abs(expected.weight) > 1e-6 * expected.absolute:
        check(posterior(grammar, symbols, factor, single_root=single_root), grammar, symbols, factor, single_root)


@given(seed=seeds, n=st.integers(1, 6), memory=st.integers(0, 3))
def test_the_weight_of_a_tree_is_the_product_of_its_sequences(seed: int, n: int, memory: int) -> None:
    rng = np.random.default_rng(seed)
    grammar = random_grammar(rng, 3, 3, mixed=True)
    symbols, factor = random_symbols(rng, 3, n), random_factor(rng, n, memory) if memory else None
    heads = np.concatenate(([-1], rng.integers(0, n + 1, n)))  # no tree in most cases
    heads[1:][heads[1:] == np.arange(1, n + 1)] = 0
    log_weight, sign = tree_weight(grammar, symbols, heads, factor)
    assert sign * math.exp(log_weight) == pytest.approx(weight(grammar, symbols, heads, factor), rel=1e-11)


# ---------------------------------------------------------------------------------- what it contains


@both_roots
@pytest.mark.parametrize("n", [1, 5, 40])
def test_ones_count_the_trees(n: int, single_root: bool) -> None:
    """Multi-root, binomial(3n, n) / (2n + 1) forests; single-root, a word with a forest on each side."""

    def forests(k: int) -> int:
        return math.comb(3 * k, k) // (2 * k + 1)

    trees = sum(forests(k) * forests(n - 1 - k) for k in range(n)) if single_root else forests(n)
    found = posterior(ones(), words(n), single_root=single_root)
    assert found.log_partition == pytest.approx(math.log(trees), rel=1e-13, abs=1e-13)


@both_roots
@pytest.mark.parametrize("deviation", [1.0, 30.0, 300.0, 3000.0])
@pytest.mark.parametrize("n", [1, 7, 60])
def test_one_state_is_arc_factored(n: int, deviation: float, single_root: bool) -> None:
    """Whatever the range of the weights, the same as the trees' own inside-outside in logarithms."""
    rng = np.random.default_rng([n, int(deviation)])
    scores = rng.normal(0.0, deviation, (n + 1, n + 1))
    factor = ModifierFactor(scores[:, :, None], np.zeros((n + 1, 2, 1)), np.zeros(n + 1, np.int64))
    found = posterior(ones(), words(n), factor, single_root=single_root)
    expected = TreeDistribution(scores, projective=True, single_root=single_root)
    assert found.log_partition == pytest.approx(expected.log_partition, rel=1e-12)
    # the tiniest marginals too
    np.testing.assert_allclose(found.marginals, expected.marginals, rtol=1e-13 * n * deviation, atol=1e-290)


@pytest.mark.parametrize("seed", range(5))
def test_forbidden_arcs_stay_out(seed: int) -> None:
    scores = pruned_scores(12, seed, (0, -400, -800), others=3)
    factor = ModifierFactor(scores[:, :, None], np.zeros((13, 2, 1)), np.zeros(13, np.int64))
    expected = TreeDistribution(scores, projective=True, single_root=False)
    found = posterior(ones(), words(12), factor, single_root=False)
    assert found.log_partition == pytest.approx(expected.log_partition, rel=1e-12)
    np.testing.assert_allclose(found.marginals, expected.marginals, rtol=0, atol=1e-12)
    assert (found.marginals[scores == -np.inf] == 0.0).all()


@pytest.mark.parametrize("seed", range(5))
def test_zeros_of_the_grammar_forbid_arcs_however_little_the_others_weigh(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    operators = np.ones((n + 1, 2, n + 1, 1, 1))
    scores = rng.normal(-5000.0, 2000.0, (n + 1, n + 1))
    zero = rng.random((n + 1, n + 1)) < 0.5
    zero[np.arange(n), np.arange(1, n + 1)] = False  # a chain is left
    operators[np.swapaxes(np.stack((zero, zero)), 0, 1)] = 0.0
    grammar = OperatorGrammar(np.ones((n + 1, 2, 1)), np.ones((n + 1, 2, 1)), operators)
    factor = ModifierFactor(scores[:, :, None], np.zeros((n + 1, 2, 1)), np.zeros(n + 1, np.int64))
    found = posterior(grammar, np.arange(n + 1), factor)
    expected = TreeDistribution(np.where(zero, -np.inf, scores), projective=True)
    assert found.log_partition == pytest.approx(expected.log_partition, rel=1e-13)
    np.testing.assert_allclose(found.marginals, expected.marginals, rtol=0, atol=1e-9)


@both_roots
def test_operators_by_symbol_are_arc_scores(single_root: bool) -> None:
    rng = np.random.default_rng(3)
    grammar = random_grammar(rng, 6, 1)
    symbols = random_symbols(rng, 6, 25)
    right = grammar.operators[symbols][:, RIGHT, symbols, 0, 0]
    left = grammar.operators[symbols][:, LEFT, symbols, 0, 0]
    start, stop = grammar.initial[symbols, :, 0], grammar.final[symbols, :, 0]
    constant = np.log(start * stop)[1:].sum() + np.log(start * stop)[0, RIGHT]
    expected = TreeDistribution(
        np.log(np.where(np.triu(np.ones((26, 26))), right, left)), projective=True, single_root=single_root
    )
    found = posterior(grammar, symbols, single_root=single_root)
    assert found.log_partition == pytest.approx(expected.log_partition + constant, rel=1e-13)
    np.testing.assert_allclose(found.marginals, expected.marginals, rtol=1e-11)


@both_roots
@signs
def test_a_factor_is_a_deterministic_automaton(mixed: bool, single_root: bool) -> None:
    """With a symbol for every word, the factor's states can be written into the operators: a Kronecker product."""
    rng = np.random.default_rng(8)
    n, states, memory = 14, 2, 3
    grammar = random_grammar(rng, n + 1, states, mixed=mixed)
    factor = random_factor(rng, n, memory)
    start = np.eye(memory)[0]
    initial = np.einsum("hds,q->hdqs", grammar.initial, start).reshape(n + 1, 2, -1)
    with np.errstate(invalid="ignore"):
        stops, weights = np.exp(factor.log_stops), np.exp(factor.log_weights)
    stops[0, LEFT] = 0.0
    weights[:, 0] = weights[np.arange(n + 1), np.arange(n + 1)] = 0.0
    final = np.einsum("hds,hdq->hdqs", grammar.final, stops).reshape(n + 1, 2, -1)
    to = np.eye(memory)[np.concatenate(([0], factor.follows[1:]))]
    operators = np.einsum("hmq,mr,hdmst->hdmrsqt", weights, to, grammar.operators)
    whole = OperatorGrammar(initial, final, operators.reshape(n + 1, 2, n + 1, memory * states, memory * states))
    symbols = np.arange(n + 1)
    apart = posterior(grammar, symbols, factor, single_root=single_root)
    together = posterior(whole, symbols, single_root=single_root)
    assert apart.sign == together.sign
    assert apart.log_partition == pytest.approx(together.log_partition, rel=1e-9)
    np.testing.assert_allclose(apart.marginals, together.marginals, rtol=1e-7, atol=1e-9)


def test_probabilities_of_all_sentences_sum_to_one() -> None:
    """A grammar over one tag that stops often enough: the sentences of each length, until nothing is left."""
    rng = np.random.default_rng(12)
    initial, final = rng.random((2, 2, 2)), np.full((2, 2, 2), 0.8)
    initial /= initial.sum(axis=-1, keepdims=True)
    operators = rng.random((2, 2, 2, 2, 2))
    operators *= 0.2 / operators.sum(axis=-2, keepdims=True)
    initial[0] = [1.0, 0.0]  # the root takes one modifier, then stops
    final[0] = [0.0, 1.0]
    operators[0] = [[0.0, 0.0], [1.0, 0.0]]
    grammar = OperatorGrammar(initial, final, operators)
    found = posteriors(grammar, [words(n) for n in range(1, 100)])
    sums = np.cumsum([one.probability for one in found])
    assert (np.diff(sums) > 0).all()
    assert sums[9] < 1.0 - 1e-3
    assert sums[-1] == pytest.approx(1.0, abs=1e-6)
    assert sums[-1] <= 1.0 + 1e-13


# ---------------------------------------------------------------------------------- range and sign


@given(seed=seeds, n=st.integers(1, 5), states=st.integers(2, 4))
def test_small_entries_survive_beside_large_ones(seed: int, n: int, states: int) -> None:
    """Weights of e^0 to e^-60, and states that may not stop: what is small in a vector may be all that counts."""
    rng = np.random.default_rng(seed)
    plain = deterministic_grammar(rng, 3, states)
    operators = np.where(plain.operators > 0.0, np.exp(rng.uniform(-60.0, 0.0, plain.operators.shape)), 0.0)
    final = plain.final * (rng.random(plain.final.shape) < 0.6)
    grammar = OperatorGrammar(plain.initial, final, operators)
    symbols = random_symbols(rng, 3, n)
    expected = totals(grammar, symbols, single_root=False)
    if expected.weight == 0.0:
        with pytest.raises(NoTreeError):
            posterior(grammar, symbols, single_root=False)
        return
    found = posterior(grammar, symbols, single_root=False)
    assert found.log_partition == pytest.approx(math.log(expected.weight), rel=1e-12)
    np.testing.assert_allclose(found.marginals, expected.arcs / expected.weight, rtol=1e-11, atol=1e-300)


@both_roots
@signs
@pytest.mark.parametrize("power", [-29, 40])
def test_rescaled_operators_shift_log_z_only(power: int, mixed: bool, single_root: bool) -> None:
    """300 words at -20 nats each; by a power of two, not even the rounding may differ."""
    rng = np.random.default_rng(5)
    grammar = random_grammar(rng, 8, 3, mixed=mixed)
    scaled = OperatorGrammar(grammar.initial, grammar.final, grammar.operators * 2.0**power)
    symbols = random_symbols(rng, 8, 300)
    plain, other = (posterior(one, symbols, single_root=single_root) for one in (grammar, scaled))
    assert other.log_partition == pytest.approx(plain.log_partition + 300 * power * math.log(2.0), rel=1e-13)
    assert other.sign == plain.sign
    np.testing.assert_array_equal(other.marginals, plain.marginals)


def test_rescaled_by_no_power_of_two() -> None:
    rng = np.random.default_rng(6)
    grammar = random_grammar(rng, 8, 2)
    scaled = OperatorGrammar(grammar.initial, grammar.final, grammar.operators * math.exp(-20.0))
    symbols = random_symbols(rng, 8, 500)
    plain, other = posterior(grammar, symbols), posterior(scaled, symbols)
    assert other.log_partition == pytest.approx(plain.log_partition - 500 * 20.0, rel=1e-12)
    np.testing.assert_allclose(other.marginals, plain.marginals, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(plain.marginals[:, 1:].sum(axis=0), 1.0, atol=1e-12)


def test_weights_beyond_the_range_of_floats() -> None:
    """Two trees, each with a weight of e^-100000 and less: the difference is what counts."""
    scores = np.full((3, 3, 1), -np.inf)
    scores[0, 1], scores[1, 2], scores[0, 2], scores[2, 1] = -5e4, -5e4, -1e5, -math.log(3.0)
    found = posterior(ones(), words(2), ModifierFactor(scores, np.zeros((3, 2, 1)), np.zeros(3, np.int64)))
    assert found.log_partition == pytest.approx(-1e5 + math.log(4.0 / 3.0), rel=1e-15)
    assert found.probability == 0.0
    assert posterior(ones(operators=-1e300), words(3)).probability == -math.inf
    np.testing.assert_allclose(found.marginals, [[0, 0.75, 0.25], [0, 0, 0.75], [0, 0.25, 0]], rtol=1e-9)


@pytest.mark.parametrize("n", [3, 4])
def test_a_negative_z_keeps_its_sign_and_the_marginals_their_sums(n: int) -> None:
    found, plain = posterior(ones(operators=-2.0), words(n)), posterior(ones(), words(n))
    assert found.sign == (-1) ** n
    assert found.log_partition == pytest.approx(plain.log_partition + n * math.log(2.0), rel=1e-14)
    np.testing.assert_allclose(found.marginals, plain.marginals, rtol=1e-14)


def test_marginals_are_not_clipped() -> None:
    """Trees of weights -1 (1 below 2) and 3 (2 below 1)."""
    operators = np.ones((2, 2, 2, 1, 1))
    operators[1, LEFT], operators[1, RIGHT] = -1.0, 3.0
    grammar = OperatorGrammar(np.ones((2, 2, 1)), np.ones((2, 2, 1)), operators)
    found = posterior(grammar, words(2))
    assert found.log_partition == pytest.approx(math.log(2.0))
    np.testing.assert_allclose(found.marginals, [[0, 1.5, -0.5], [0, 0, 1.5], [0, -0.5, 0]], rtol=1e-14)
    [(heads, floored)] = mbr([found])
    assert heads.tolist() == [-1, 0, 1]
    assert floored == Floored(negative=2, tiny=0)


def test_weights_that_cancel_have_no_tree() -> None:
    operators = np.ones((2, 2, 2, 1, 1))
    operators[1, LEFT] = -1.0
    grammar = OperatorGrammar(np.ones((2, 2, 1)), np.ones((2, 2, 1)), operators)
    with pytest.raises(NoTreeError, match=r"sentence 1: .* cancel") as error:
        posteriors(grammar, [words(1), words(2)])
    assert error.value.sentence == 1
    assert error.value.words == (1, 2)


def test_threads_change_nothing() -> None:
    rng = np.random.default_rng(2)
    grammar = random_grammar(rng, 5, 3)
    sentences = [random_symbols(rng, 5, int(n)) for n in rng.integers(0, 25, 12)]
    serial, threaded = (posteriors(grammar, sentences, executor=executor) for executor in (SERIAL, Threads(3)))
    for one, other in zip(serial, threaded, strict=True):
        assert one.log_partition == other.log_partition
        np.testing.assert_array_equal(one.marginals, other.marginals)


def test_empty_sentences() -> None:
    empty = ModifierFactor(np.zeros((1, 1, 2)), np.zeros((1, 2, 2)), np.zeros(1, np.int64))
    grammar = random_grammar(np.random.default_rng(0), 3, 2, mixed=True)
    for factors in (None, [empty]):
        [found] = posteriors(grammar, [np.array([0])], factors)
        assert (found.log_partition, found.sign, found.marginals.tolist()) == (0.0, 1, [[0.0]])
        [(heads, floored)] = mbr([found])
        assert (heads.tolist(), floored) == ([-1], Floored(0, 0))
    assert tree_weight(grammar, np.array([0]), [-1]) == (0.0, 1)
    assert posteriors(grammar, []) == []
    assert mbr([]) == []


# ---------------------------------------------------------------------------------- MBR


@both_roots
@given(seed=seeds, n=st.integers(1, 5), mixed=st.booleans())
def test_mbr_is_the_best_tree_by_log_marginals(single_root: bool, seed: int, n: int, mixed: bool) -> None:
    rng = np.random.default_rng(seed)
    grammar = random_grammar(rng, 3, 2, mixed=mixed)
    sentences = [random_symbols(rng, 3, size) for size in (n, 1, 2)]
    found = posteriors(grammar, sentences, single_root=single_root)
    for one, (heads, _) in zip(found, mbr(found, single_root=single_root), strict=True):
        size = len(heads) - 1

        def value(tree: Ints, mu: Floats = one.marginals, size: int = size) -> float:
            return sum(math.log(max(mu[tree[m], m], FLOOR)) for m in range(1, size + 1))

        trees = projective_trees(size, single_root)
        assert heads.tolist() in trees.tolist()
        assert value(heads) == pytest.approx(max(map(value, trees)), rel=1e-12, abs=1e-12)


def test_floored_marginals_are_counted_by_kind() -> None:
    marginals = np.array(
        [[np.nan, 1.2, 1e-13, 0.4], [0.0, 9.0, 0.7, 0.6], [0.0, -0.2, -9.0, -1e-20], [0.0, 0.0, 0.3, 0]]
    )
    [(heads, floored)] = mbr([Posterior(0.0, 1, marginals)])
    assert floored == Floored(negative=2, tiny=2)
    assert heads.tolist() == [-1, 0, 1, 1]
    [(_, other)] = mbr([Posterior(0.0, 1, marginals)], floor=0.35)
    assert other == Floored(negative=2, tiny=3)


def test_all_marginals_floored_still_make_a_tree() -> None:
    [(heads, floored)] = mbr([Posterior(0.0, 1, np.full((4, 4), -1.0))])
    assert heads.tolist() in projective_trees(3, True).tolist()
    assert floored == Floored(negative=9, tiny=0)


# ---------------------------------------------------------------------------------- what is refused


def test_grammars_of_other_shapes() -> None:
    for initial, final, operators in (
        ((2, 2, 3), (2, 2, 2), (2, 2, 2, 3, 3)),
        ((2, 3, 3), (2, 3, 3), (2, 3, 2, 3, 3)),
        ((2, 2, 3), (2, 2, 3), (2, 2, 3, 3)),
        ((2, 2), (2, 2), (2, 2)),
        ((2, 2, 0), (2, 2, 0), (2, 2, 2, 0, 0)),
        ((0, 2, 1), (0, 2, 1), (0, 2, 0, 1, 1)),
    ):
        with pytest.raises(ShapeError, match=r"expected \(H, 2, s\)"):
            OperatorGrammar(np.zeros(initial), np.zeros(final), np.zeros(operators))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e301])
def test_grammars_with_numbers_that_are_none(value: float) -> None:
    operators = np.ones((2, 2, 2, 1, 1))
    operators[1, 0, 1] = value
    with pytest.raises(ScoresError, match=r"operators\[1, 0, 1, 0, 0\] is"):
        OperatorGrammar(np.ones((2, 2, 1)), np.ones((2, 2, 1)), operators)
    with pytest.raises(DtypeError):
        OperatorGrammar(np.ones((2, 2, 1), complex), np.ones((2, 2, 1)), np.ones((2, 2, 2, 1, 1)))


def test_sentences_outside_the_alphabet() -> None:
    with pytest.raises(ScoresError, match=r"sentence 1: symbols\[2\] is 2; expected 1 to 1"):
        posteriors(ones(), [words(3), np.array([0, 1, 2])])
    with pytest.raises(ScoresError, match=r"symbols\[1\] is 0"):
        posteriors(ones(), [np.array([0, 0])])
    with pytest.raises(ScoresError, match=r"symbols\[0\] is 1; expected 0, the root"):
        posteriors(ones(), [np.array([1, 1])])
    for wrong in (np.array([]), np.zeros((1, 2), np.int64), np.array([0.0, 1.0])):
        with pytest.raises(ShapeError, match="expected integers"):
            posteriors(ones(), [wrong])
    with pytest.raises(HeadsError):
        tree_weight(ones(), words(2), [-1, 0])


def test_factors_that_do_not_fit() -> None:
    good = ModifierFactor(np.zeros((3, 3, 2)), np.zeros((3, 2, 2)), np.array([0, 1, 0]))
    with pytest.raises(ShapeError, match="1 factors for 2 sentences"):
        posteriors(ones(), [words(2), words(2)], [good])
    with pytest.raises(ShapeError, match="sentence 1 has 3 words, and its factor 2"):
        posteriors(ones(), [words(2), words(3)], [good, good])
    with pytest.raises(ShapeError, match=r"expected \(n\+1, n\+1, D\)"):
        ModifierFactor(np.zeros((3, 3, 2)), np.zeros((3, 2, 1)), np.array([0, 1, 0]))
    for follows in ([0, 2, 0], [0, -1, 0], [0.0, 1.0, 0.0]):
        with pytest.raises(ScoresError, match="follows must be states 0 to 1"):
            ModifierFactor(np.zeros((3, 3, 2)), np.zeros((3, 2, 2)), np.array(follows))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e13, -1e13])
def test_factors_with_weights_that_are_none(value: float) -> None:
    weights, stops, follows = np.zeros((3, 3, 2)), np.zeros((3, 2, 2)), np.zeros(3, np.int64)
    weights[1, 2, 1] = value
    with pytest.raises(ScoresError, match=r"log_weights\[1, 2, 1\] is"):
        ModifierFactor(weights, stops, follows)
    weights[1, 2, 1] = 0.0
    stops[2, 0, 1] = value
    with pytest.raises(ScoresError, match=r"log_stops\[2, 0, 1\] is"):
        ModifierFactor(weights, stops, follows)


def test_a_forbidden_sentence_is_named() -> None:
    weights = np.zeros((3, 3, 1))
    weights[:, 2] = -np.inf
    factor = ModifierFactor(weights, np.zeros((3, 2, 1)), np.zeros(3, np.int64))
    with pytest.raises(NoTreeError, match="sentence 0: no tree exists"):
        posterior(ones(), words(2), factor)
    assert tree_weight(ones(), words(2), [-1, 0, 1], factor) == (-np.inf, 0)


@both_roots
@given(seed=seeds, n=st.integers(1, 5), states=st.integers(1, 3), memory=st.integers(1, 3), mixed=st.booleans())
def test_allowed_arcs_condition_the_grammar(
    single_root: bool, seed: int, n: int, states: int, memory: int, mixed: bool
) -> None:
    """Against the trees whose arcs are allowed, weighed one by one; one tree at least is left."""
    rng = np.random.default_rng(seed)
    grammar, symbols = random_grammar(rng, 4, states, mixed=mixed), random_symbols(rng, 4, n)
    factor = random_factor(rng, n, memory) if memory > 1 else None
    trees = projective_trees(n, single_root)
    allowed = rng.random((n + 1, n + 1)) < 0.6
    tree = trees[rng.integers(len(trees))]
    allowed[tree[1:], np.arange(1, n + 1)] = True
    left = [each for each in trees if allowed[each[1:], np.arange(1, n + 1)].all()]
    weights = np.array([weight(grammar, symbols, each, factor) for each in left])
    found = posterior(grammar, symbols, (factor or ModifierFactor.of_nothing(n)).only(allowed), single_root=single_root)
    assert found.probability == pytest.approx(weights.sum(), rel=1e-10, abs=1e-11 * np.abs(weights).sum())
    arcs = np.zeros((n + 1, n + 1))
    for each, own in zip(left, weights, strict=True):
        arcs[each[1:], np.arange(1, n + 1)] += own
    np.testing.assert_allclose(found.marginals * found.probability, arcs, rtol=1e-9, atol=1e-10 * np.abs(weights).sum())
    assert not found.marginals[~allowed].any()
    [(heads, floored)] = mbr([found], single_root=single_root, allowed=[allowed])
    logs = np.log(np.maximum(found.marginals, FLOOR))
    scores = [logs[each[1:], np.arange(1, n + 1)].sum() for each in left]
    assert logs[heads[1:], np.arange(1, n + 1)].sum() == pytest.approx(max(scores), rel=1e-9, abs=1e-9)
    assert any((heads == each).all() for each in left)
    arcs_there = np.ones((n + 1, n + 1), np.bool_)
    arcs_there[:, 0] = False
    np.fill_diagonal(arcs_there, False)
    own = found.marginals[allowed & arcs_there]
    assert floored == Floored(int((own < 0).sum()), int(((own >= 0) & (own < FLOOR)).sum()))


def test_some_sentences_of_a_group_may_be_restricted() -> None:
    ones_ = posteriors(ones(), [words(3), words(2)])
    allowed = np.ones((4, 4), np.bool_)
    allowed[0, [1, 2]] = False
    (restricted, _), (free, _) = mbr(ones_, allowed=[allowed, None])
    assert restricted[3] == 0
    np.testing.assert_array_equal(free, mbr(ones_)[1][0])
