"""The flow programs: against enumeration, against dual decomposition, and where parts are forbidden."""

from __future__ import annotations

import sys
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from headway.arrays import TreeClass
from headway.errors import MissingExtraError, NoTreeError
from headway.inference import argmax
from headway.inference.dual_decomposition import decode
from headway.inference.head_automata import GrandSiblingParts, SiblingParts, best_of_head, work_for
from headway.inference.heads import is_in_class
from headway_papers import automaton_paths, flow_program, linear_program
from headway_papers.flow_program import Relaxation, solve
from headway_papers.koo2010_random import WAYS, Order, random_parts
from tests.inference.parts_oracle import (
    Dense,
    best,
    grandsibling_cases,
    parts_of,
    prune,
    random_grandsibling,
    random_sibling,
    score,
    sibling_cases,
    to_parts,
    trees,
)

pytest.importorskip("highspy", reason="the flow programs need highspy, the extra exact-programs")

RELAXATIONS: tuple[Relaxation, ...] = ("single", "multi", "integer")
both_roots = pytest.mark.parametrize("single_root", [False, True], ids=["multi", "single"])
every_program = pytest.mark.parametrize("relaxation", RELAXATIONS)
cases = st.one_of(sibling_cases(5), grandsibling_cases(4))


def arcs_of(dense: Dense) -> np.ndarray:
    arcs = dense["arcs"]
    assert arcs is not None
    return arcs


@both_roots
@given(dense=cases)
def test_integer_program_finds_the_best_tree(single_root: bool, dense: Dense) -> None:
    expected, _ = best(dense, projective=False, single_root=single_root)
    solution = solve(to_parts(dense), single_root=single_root)
    assert solution.integral
    assert solution.finished
    assert solution.heads is not None
    assert is_in_class(solution.heads, TreeClass(single_root=single_root))
    assert solution.score == pytest.approx(expected, rel=0, abs=1e-6)
    assert solution.bound == pytest.approx(expected, rel=0, abs=1e-5)
    assert score(tuple(solution.heads.tolist()), dense) == pytest.approx(solution.score, rel=0, abs=1e-12)


@both_roots
@given(dense=cases)
def test_relaxations_bound_the_best_tree(single_root: bool, dense: Dense) -> None:
    expected, _ = best(dense, projective=False, single_root=single_root)
    single, multi = (solve(to_parts(dense), relaxation=r, single_root=single_root) for r in ("single", "multi"))
    assert single.bound >= multi.bound - 1e-6
    assert multi.bound >= expected - 1e-6
    for solution in (single, multi):
        assert solution.heads is not None
        assert is_in_class(solution.heads, TreeClass(single_root=single_root))
        assert solution.score == pytest.approx(score(tuple(solution.heads.tolist()), dense), rel=0, abs=1e-12)
        assert solution.score <= expected + 1e-9
        if solution.integral:
            assert solution.score == pytest.approx(expected, rel=0, abs=1e-5)
            assert solution.bound == pytest.approx(expected, rel=0, abs=1e-5)


def head_choices(dense: Dense, h: int) -> list[tuple[float, tuple[int, ...], int]]:
    """All that the automaton of h can do: score, modifiers, and the head it is below (-1 where that is not asked)."""
    arcs, below = arcs_of(dense), dense.get("grandparents") is not None and h > 0
    nodes = len(arcs)
    modifiers = [m for m in range(1, nodes) if m != h and arcs[h, m] > -np.inf]
    above = [g for g in range(nodes) if g != h and arcs[g, h] > -np.inf] if below else [-1]
    choices = []
    for g in above:
        for chosen in chain.from_iterable(combinations(modifiers, k) for k in range(len(modifiers) + 1)):
            heads = [-1 if m == 0 else g if m == h else h if m in chosen else -1 for m in range(nodes)]
            mine = {kind: [p for p in found if p[kind.startswith("grand")] == h]
                    for kind, found in parts_of(tuple(heads)).items()}  # fmt: skip
            total = sum(float(scores[p]) for kind, found in mine.items() if (scores := dense.get(kind)) is not None
                        for p in found)  # fmt: skip
            if total > -np.inf:
                choices.append((total, chosen, g))
    return choices


def least_dual(dense: Dense, single_root: bool) -> float:
    """min over u, v of L(u, v), by its own linear program: weights on all trees and on all that each head can do.

    Trees and heads agree on every arc (multipliers u), and on every arc that a head is below (v).
    """
    arcs = arcs_of(dense)
    nodes = len(arcs)
    possible = [
        tree
        for tree in trees(nodes - 1, False, single_root)
        if all(arcs[tree[m], m] > -np.inf for m in range(1, nodes))
    ]
    choices = [(h, *choice) for h in range(nodes) for choice in head_choices(dense, h)]
    by_head, by_grandparent, one = np.zeros((3, nodes, nodes, len(possible) + len(choices)))
    for t, tree in enumerate(possible):
        one[0, 0, t] = 1.0
        for m in range(1, nodes):
            by_head[tree[m], m, t] = by_grandparent[tree[m], m, t] = 1.0
    for c, (h, _, chosen, g) in enumerate(choices, start=len(possible)):
        one[1, h, c] = 1.0
        for m in chosen:
            by_head[h, m, c] = -1.0
        if g >= 0:
            by_grandparent[g, h, c] = -1.0
    agree = [by_head, by_grandparent] if dense.get("grandparents") is not None else [by_head]
    rows = [*(block.reshape(nodes * nodes, -1) for block in agree), one[0, :1], one[1]]
    right = np.concatenate([np.zeros(len(agree) * nodes * nodes), np.ones(1 + nodes)])
    cost = np.concatenate([np.zeros(len(possible)), [-score for _, score, _, _ in choices]])
    found = linprog(cost, A_eq=np.concatenate(rows), b_eq=right)
    assert found.status == 0
    return float(-found.fun)


@both_roots
@given(dense=st.one_of(sibling_cases(4), grandsibling_cases(3)))
def test_multi_commodity_program_is_the_relaxation_of_dual_decomposition(single_root: bool, dense: Dense) -> None:
    expected = least_dual(dense, single_root)
    assert solve(to_parts(dense), relaxation="multi", single_root=single_root).bound == pytest.approx(
        expected, rel=0, abs=1e-6
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order", ["sibling", "grandsibling"])
def test_programs_and_dual_decomposition_on_random_instances(order: Order, way: str) -> None:
    """Longer than can be enumerated. Scores are continuous, so that the best tree is the only optimum."""
    proved = 0
    for seed in range(10):
        parts = random_parts(order, 7 if order == "sibling" else 5, seed, way)
        single, multi, integer = (solve(parts, relaxation=r, single_root=False) for r in RELAXATIONS)
        dual, exact = decode(parts, single_root=False, exact=False), decode(parts, single_root=False)
        assert multi.integral or not dual.status.is_proof
        assert (dual.trace.dual >= multi.bound - 1e-6).all()
        if dual.status.is_proof:
            assert dual.bound == pytest.approx(multi.bound, rel=0, abs=1e-6)
        assert single.bound >= multi.bound - 1e-6
        assert integer.integral
        assert integer.score == pytest.approx(exact.score, rel=0, abs=1e-6)
        np.testing.assert_array_equal(integer.heads, exact.heads)
        proved += multi.integral
    assert 0 < proved < 10


def multipliers(parts: SiblingParts | GrandSiblingParts) -> tuple[np.ndarray, np.ndarray]:
    """What LP(M)'s rows are worth: u on the arcs that heads take, v on the arcs that heads are below."""
    graph = automaton_paths._transitions(parts.automata())
    solver = linear_program._solver(flow_program._program(parts, "multi", single_root=False), None)
    solver.run()
    prices, stops, arcs = np.array(solver.getSolution().row_dual), len(graph.arcs), len(parts.arcs)
    v = np.zeros(arcs)
    below = graph.above >= 0
    np.add.at(v, graph.above[below], prices[stops + arcs :][: len(below)][below])
    return prices[stops : stops + arcs], v


@pytest.mark.parametrize("order", ["sibling", "grandsibling"])
@pytest.mark.parametrize("way", WAYS)
def test_prices_of_the_program_are_the_best_multipliers_of_dual_decomposition(order: Order, way: str) -> None:
    """L at these multipliers is LP(M)'s value; no multipliers give less, so that this is what steps converge to."""
    fractional = 0
    for seed in range(6):
        parts = random_parts(order, 8, seed, way)
        these, automata = parts.candidates, parts.automata()
        program, (u, v) = solve(parts, relaxation="multi", single_root=False), multipliers(parts)
        trees = np.full((9, 9), -np.inf)
        trees[these.heads, these.modifiers] = u + v
        heads = argmax(trees, single_root=False)
        allowed, required = np.ones(len(u), np.bool_), np.zeros(len(u), np.bool_)
        work, found = work_for(these.sides, 0), (np.zeros(len(u), np.bool_), np.full(9, -1))
        by_heads = [best_of_head(automata, h, u, v, allowed, required, *work, *found) for h in range(9)]
        assert trees[heads[1:], np.arange(1, 9)].sum() + sum(by_heads) == pytest.approx(program.bound, rel=0, abs=1e-6)
        fractional += not program.integral
    assert fractional > 0


@both_roots
@given(dense=cases, data=st.data())
def test_an_incumbent_changes_nothing(single_root: bool, dense: Dense, data: st.DataObject) -> None:
    """A good tree, a bad one, and one that has forbidden parts."""
    tree = np.array(data.draw(st.sampled_from(trees(len(arcs_of(dense)) - 1, False, single_root))))
    expected, _ = best(dense, projective=False, single_root=single_root)
    solution = solve(to_parts(dense), single_root=single_root, incumbent=tree)
    assert solution.integral
    assert solution.score == pytest.approx(expected, rel=0, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
@both_roots
def test_longer_pruned_sentences(seed: int, single_root: bool) -> None:
    """Longer than can be enumerated: the programs agree with each other."""
    rng = np.random.default_rng(seed)
    for dense in (random_sibling(rng, 20, 0.0), random_grandsibling(rng, 8, 0.0)):
        parts = to_parts(prune(rng, dense, 3))
        single, multi, integer = (solve(parts, relaxation=r, single_root=single_root) for r in RELAXATIONS)
        assert integer.integral
        assert integer.bound == pytest.approx(integer.score, rel=0, abs=1e-5)
        assert single.bound >= multi.bound - 1e-6
        assert multi.bound >= integer.score - 1e-6
        assert max(single.score, multi.score) <= integer.score + 1e-6


@both_roots
@pytest.mark.parametrize("seed", range(5))
def test_multi_commodity_flow_without_higher_order_parts_is_exact(seed: int, single_root: bool) -> None:
    scores = np.random.default_rng(seed).normal(size=(9, 9))
    heads = argmax(scores, single_root=single_root)
    parts = GrandSiblingParts.dense(scores, np.zeros((9,) * 3), np.zeros((9,) * 3), np.zeros((9,) * 4))
    solution = solve(parts, relaxation="multi", single_root=single_root)
    assert solution.integral
    np.testing.assert_array_equal(solution.heads, heads)
    assert solution.score == pytest.approx(scores[heads[1:], np.arange(1, 9)].sum(), rel=1e-12)
    assert solution.bound == pytest.approx(solution.score, rel=1e-9)


def test_single_commodity_flow_is_looser() -> None:
    """Words 1 and 2 prefer each other and hang below 3: with flow_a <= 3 z_a, two thirds of an arc carry two units."""
    scores = np.full((4, 4), -np.inf)
    scores[0, 3], scores[3, 1], scores[3, 2], scores[1, 2], scores[2, 1] = 0.0, 0.0, 0.0, 4.0, 4.0
    parts = SiblingParts.dense(scores, np.zeros((4, 4, 4)))
    single, multi, integer = (solve(parts, relaxation=r) for r in RELAXATIONS)
    assert single.bound == pytest.approx(16.0 / 3.0, rel=1e-9)
    assert not single.integral
    assert single.score == multi.score == integer.score == 4.0
    assert multi.bound == pytest.approx(4.0, rel=1e-9)


@pytest.mark.parametrize("kind", ["arcs", "siblings", "grandparents", "grand_siblings"])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_forbidden_is_not_in_the_tree(kind: str, seed: int) -> None:
    """Forbid a part of the best tree, and again, until no tree is left or six are gone."""
    dense = random_grandsibling(np.random.default_rng(seed), 4, 0.0)
    gone: set[tuple[int, ...]] = set()
    for _ in range(6):
        solution = solve(to_parts(dense))
        assert solution.heads is not None
        present = parts_of(tuple(solution.heads.tolist()))[kind]
        assert not gone & set(present)
        expected, _ = best(dense, projective=False, single_root=True)
        assert solution.score == pytest.approx(expected, rel=0, abs=1e-6)
        part = present[len(gone) % len(present)]
        gone.add(part)
        scores = dense[kind]
        assert scores is not None
        scores[part] = -np.inf
        if best(dense, projective=False, single_root=True)[1] is None:
            with pytest.raises(NoTreeError):
                solve(to_parts(dense))
            break
    assert gone


def test_forbidden_arcs_may_be_among_the_candidates() -> None:
    parts = to_parts(random_sibling(np.random.default_rng(1), 5, 0.0))
    free = solve(parts)
    assert free.heads is not None
    chosen = parts.candidates.heads == free.heads[parts.candidates.modifiers]
    arcs = parts.arcs.copy()
    arcs[np.flatnonzero(chosen)[2]] = -np.inf
    assert isinstance(parts, SiblingParts)
    for relaxation in RELAXATIONS:
        solution = solve(SiblingParts(parts.candidates, arcs, parts.siblings), relaxation=relaxation)
        assert solution.heads is not None
        assert solution.arcs[np.isneginf(arcs)].tolist() == [0.0]
        assert np.isfinite(arcs[parts.candidates.heads == solution.heads[parts.candidates.modifiers]]).all()


def test_a_negative_grand_sibling_cannot_be_avoided_by_its_pair() -> None:
    """Pair scores 1, grand-sibling -5: the pair's variable may not stay at 0 to save the 5; and the other way round."""
    for sign in (1.0, -1.0):
        arcs = np.full((4, 4), -np.inf)
        arcs[0, 1], arcs[1, 2], arcs[1, 3] = 0.0, 0.0, 0.0
        siblings, grands = np.zeros((4,) * 3), np.zeros((4,) * 4)
        siblings[1, 2, 3], grands[0, 1, 2, 3] = sign, -5.0 * sign
        parts = GrandSiblingParts.dense(arcs, siblings, np.zeros((4,) * 3), grands)
        for relaxation in RELAXATIONS:
            solution = solve(parts, relaxation=relaxation)
            assert solution.score == -4.0 * sign
            assert solution.bound == pytest.approx(-4.0 * sign, abs=1e-9)


@every_program
def test_no_tree(relaxation: Relaxation) -> None:
    headless = arcs_of(random_sibling(np.random.default_rng(2), 4, 0.0))
    headless[:, 3] = -np.inf
    with pytest.raises(NoTreeError, match="word 3") as caught:
        solve(SiblingParts.dense(headless, np.zeros((5,) * 3)), relaxation=relaxation)
    assert caught.value.words == (3,)
    with pytest.raises(NoTreeError, match="words 1 and 2"):
        solve(SiblingParts.dense(np.full((3, 3), -np.inf), np.zeros((3,) * 3)), relaxation=relaxation)


@every_program
def test_two_words_that_only_the_root_can_head(relaxation: Relaxation) -> None:
    arcs = np.zeros((4, 4))
    arcs[1:, [1, 3]] = -np.inf
    parts = SiblingParts.dense(arcs, np.zeros((4,) * 3))
    assert solve(parts, relaxation=relaxation, single_root=False).score == 0.0
    with pytest.raises(NoTreeError, match=r"\b1\b.*\b3\b"):
        solve(parts, relaxation=relaxation)


@every_program
def test_two_cycles_that_only_the_root_can_enter(relaxation: Relaxation) -> None:
    """LP(S) has a solution, half an arc from the root for each; the tree it is projected to has two roots."""
    arcs = np.full((5, 5), -np.inf)
    for h, m in ((0, 1), (2, 1), (1, 2), (0, 3), (4, 3), (3, 4)):
        arcs[h, m] = 0.0
    with pytest.raises(NoTreeError, match=r"\b1\b.*\b3\b"):
        solve(SiblingParts.dense(arcs, np.zeros((5,) * 3)), relaxation=relaxation)


@every_program
def test_no_word_and_one_word(relaxation: Relaxation) -> None:
    nothing = solve(SiblingParts.dense(np.zeros((1, 1)), np.zeros((1,) * 3)), relaxation=relaxation)
    assert (nothing.heads.tolist(), nothing.score, nothing.bound) == ([-1], 0.0, 0.0)
    one = solve(SiblingParts.dense(np.full((2, 2), 3.0), np.full((2,) * 3, 0.25)), relaxation=relaxation)
    assert (one.heads.tolist(), one.score) == ([-1, 0], 3.5)
    assert one.integral


@every_program
def test_time_limit(relaxation: Relaxation) -> None:
    dense = random_grandsibling(np.random.default_rng(3), 5, 0.0)
    stopped = solve(to_parts(dense), relaxation=relaxation, time_limit=0.0)
    assert not stopped.finished
    assert not stopped.integral
    assert stopped.bound >= best(dense, projective=False, single_root=True)[0] - 1e-6


def test_without_highspy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(MissingExtraError, match=r"needs highspy; .* pip install 'headway\[exact-programs\]'$"):
        solve(SiblingParts.dense(np.zeros((3, 3)), np.zeros((3, 3, 3))))
