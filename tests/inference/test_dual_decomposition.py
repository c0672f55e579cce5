"""Dual decomposition: against enumeration and against the integer program; whatever it claims must be true."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from functools import cache
from threading import Timer
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.arrays import TreeClass
from headway.errors import NoTreeError
from headway.inference import SiblingDistribution, TreeDistribution
from headway.inference.candidates import candidates
from headway.inference.dual_decomposition import Decoded, Status, decode
from headway.inference.head_automata import GrandSiblingParts, SiblingParts, StateParts
from headway.inference.heads import is_in_class
from headway.inference.parts import GRAND_SIBLINGS, GRANDPARENTS, SIBLINGS
from headway_papers.flow_program import solve

from .parts_oracle import (
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
)
from .states_oracle import random_states, siblings_as_states

Floats = NDArray[np.float64]
CLASSES: list[dict[str, bool]] = [
    {"projective": projective, "single_root": single} for projective in (False, True) for single in (False, True)
]
every_class = pytest.mark.parametrize(
    "trees", CLASSES, ids=["non-projective-multi", "non-projective-single", "projective-multi", "projective-single"]
)
KINDS = ("sibling", "grandparent", "grandsibling")
every_kind = pytest.mark.parametrize("kind", KINDS)
ROUNDING = 1e-9


def random_dense(kind: str, rng: np.random.Generator, n: int, forbid: float = 0.0) -> Dense:
    if kind == "sibling":
        return random_sibling(rng, n, forbid)
    return random_grandsibling(rng, n, forbid, kind == "grandsibling")


def array(dense: Dense, kind: str) -> Floats:
    scores = dense[kind]
    assert scores is not None
    return scores


def check(found: Decoded, optimum: float, own_score: float, trees: dict[str, bool]) -> None:
    """Everything that is claimed: of the tree, its score, the bound and the status."""
    assert is_in_class(found.heads, TreeClass(**trees))
    assert found.score == pytest.approx(own_score, rel=0, abs=ROUNDING)
    assert found.score <= found.bound
    assert found.gap == found.bound - found.score
    assert found.bound >= optimum - ROUNDING
    assert found.score <= optimum + ROUNDING
    if found.status is not Status.ITERATION_LIMIT:
        assert found.bound == found.score
        assert found.score == pytest.approx(optimum, rel=0, abs=ROUNDING)


def check_parts(dense: Dense, trees: dict[str, bool], optimum: float, **options: Any) -> Decoded:
    found = decode(to_parts(dense), **trees, **options)
    check(found, optimum, score(tuple(found.heads.tolist()), dense), trees)
    return found


# Against enumeration


@every_class
@given(dense=st.one_of(sibling_cases(5), grandsibling_cases(5)))
def test_the_best_of_all_trees(trees: dict[str, bool], dense: Dense) -> None:
    """With forbidden arcs and forbidden parts of every kind among them."""
    found = check_parts(dense, trees, best(dense, **trees)[0])
    assert found.status is not Status.ITERATION_LIMIT


@every_class
@every_kind
def test_six_words(trees: dict[str, bool], kind: str) -> None:
    dense = random_dense(kind, np.random.default_rng(len(kind)), 6, 0.3)
    found = check_parts(dense, trees, best(dense, **trees)[0])
    assert found.status is not Status.ITERATION_LIMIT


@every_class
@pytest.mark.parametrize("seed", range(6))
def test_state_automata(trees: dict[str, bool], seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = random_states(rng, int(rng.integers(1, 5)), 1 + seed % 3, 0.3 * (seed % 2))
    optimum = dense.best(**trees)
    if optimum == -np.inf:
        with pytest.raises(NoTreeError):
            decode(dense.parts, **trees)
        return
    found = decode(dense.parts, **trees)
    check(found, optimum, dense.score(tuple(found.heads.tolist())), trees)
    assert found.status is not Status.ITERATION_LIMIT


@every_class
@given(dense=sibling_cases(6))
def test_siblings_written_as_states(trees: dict[str, bool], dense: Dense) -> None:
    arcs, siblings = array(dense, "arcs"), array(dense, "siblings")
    ours = decode(SiblingParts.dense(arcs, siblings), **trees)
    theirs = decode(siblings_as_states(arcs, siblings), **trees)
    np.testing.assert_array_equal(theirs.heads, ours.heads)
    assert theirs.score == pytest.approx(ours.score, rel=0, abs=ROUNDING)


@pytest.mark.parametrize("kind", ["arcs", "siblings", "grandparents", "grand_siblings"])
def test_what_is_forbidden_is_not_in_the_tree(kind: str) -> None:
    """Forbid a part of the best tree, and again, until no tree is left."""
    dense = random_grandsibling(np.random.default_rng(5), 3, 0.0)
    for _ in range(100):
        optimum, tree = best(dense, projective=False, single_root=True)
        if tree is None:
            with pytest.raises(NoTreeError):
                decode(to_parts(dense))
            break
        found = check_parts(dense, CLASSES[1], optimum)
        assert tuple(found.heads.tolist()) == tree
        array(dense, kind)[parts_of(tree)[kind][-1]] = -np.inf
    else:
        pytest.fail("there are not so many trees")


# Against other algorithms


@pytest.mark.parametrize("single_root", [False, True])
@every_kind
@pytest.mark.parametrize("seed", range(5))
def test_the_integer_program_agrees(kind: str, single_root: bool, seed: int) -> None:
    pytest.importorskip("highspy", reason="the integer program needs highspy, the extra exact-programs")
    rng = np.random.default_rng(seed)
    dense = prune(rng, random_dense(kind, rng, 8 + seed, 0.1 * (seed % 2)), 3)
    parts = to_parts(dense)
    solution = solve(parts, single_root=single_root)
    assert solution.integral
    trees = {"projective": False, "single_root": single_root}
    found = decode(parts, **trees)
    assert found.status is not Status.ITERATION_LIMIT
    assert found.score == pytest.approx(score(tuple(found.heads.tolist()), dense), rel=0, abs=ROUNDING)
    assert found.score >= solution.score - ROUNDING
    assert found.score == pytest.approx(solution.score, rel=0, abs=1e-6)
    for limit in (1, 20):
        early = decode(parts, exact=False, iterations=limit, **trees)
        assert early.bound >= solution.score - ROUNDING
        assert early.score <= solution.score + 1e-6


@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 15])
@pytest.mark.parametrize("forbid", [0.0, 0.3])
def test_projective_siblings_are_those_of_the_chart(n: int, single_root: bool, forbid: float) -> None:
    dense = random_sibling(np.random.default_rng(n), n, forbid)
    arcs, siblings = array(dense, "arcs"), array(dense, "siblings")
    expected = SiblingDistribution(arcs, siblings, single_root=single_root)
    found = decode(SiblingParts.dense(arcs, siblings), projective=True, single_root=single_root)
    assert found.status is not Status.ITERATION_LIMIT
    np.testing.assert_array_equal(found.heads, expected.argmax())
    assert found.score == pytest.approx(expected.max, rel=0, abs=ROUNDING)


@every_class
@pytest.mark.parametrize("seed", range(3))
def test_arcs_alone_are_first_order(trees: dict[str, bool], seed: int) -> None:
    arcs = np.random.default_rng(seed).normal(size=(9, 9))
    expected = TreeDistribution(arcs, **trees)
    triples, states = np.zeros((9,) * 3), (np.zeros((9, 9, 2, 2)), np.zeros((9, 2, 2)))
    for parts in (
        SiblingParts.dense(arcs, triples),
        GrandSiblingParts.dense(arcs, triples, triples, np.zeros((9,) * 4)),
        StateParts.dense(arcs, *states),
    ):
        found = decode(parts, **trees)
        np.testing.assert_array_equal(found.heads, expected.argmax())
        assert found.score == pytest.approx(expected.max, rel=0, abs=ROUNDING)


@pytest.mark.parametrize("alpha", [0.0, 0.001, 0.3, 1.0])
@every_kind
def test_any_share_of_the_arcs_may_stay_with_the_tree(kind: str, alpha: float) -> None:
    for seed in range(5):
        dense = random_dense(kind, np.random.default_rng(seed), 4, 0.3)
        found = check_parts(dense, CLASSES[1], best(dense, **CLASSES[1])[0], alpha=alpha)
        assert found.status is not Status.ITERATION_LIMIT


# What is claimed is true


@cache
def instances(kind: str) -> list[tuple[Dense, list[float]]]:
    """Parts without a forbidden one, and the best score in every class; where arcs say the most it is an easy case."""
    cases = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        dense = random_dense(kind, rng, int(rng.integers(2, 6)))
        array(dense, "arcs")[:] *= 1 + 4 * (seed % 3)
        cases.append((dense, [best(dense, **trees)[0] for trees in CLASSES]))
    return cases


@every_kind
@pytest.mark.parametrize("limit", [1, 2, 5, 50])
def test_certificates_and_bounds_of_few_steps(kind: str, limit: int) -> None:
    statuses: Counter[Status] = Counter()
    for dense, optima in instances(kind):
        for trees, optimum in zip(CLASSES, optima, strict=True):
            found = check_parts(dense, trees, optimum, exact=False, iterations=limit)
            statuses[found.status] += 1
            assert found.iterations <= limit
            assert found.iterations == limit or found.status is Status.CERTIFIED
    assert statuses[Status.EXACT] == 0
    assert statuses[Status.ITERATION_LIMIT] > 0
    assert statuses[Status.CERTIFIED] > 0 or limit < 50


@every_kind
@pytest.mark.parametrize("budget", [1, 3, 40, 10**6])
def test_certificates_and_bounds_of_exact_completion(kind: str, budget: int) -> None:
    """Branching begins after the first step, and goes as far as the budget."""
    statuses: Counter[Status] = Counter()
    for dense, optima in instances(kind):
        for trees, optimum in zip(CLASSES, optima, strict=True):
            found = check_parts(dense, trees, optimum, iterations=1, budget=budget)
            statuses[found.status] += 1
            assert found.iterations <= 1 + budget
            if found.status is Status.ITERATION_LIMIT:
                assert found.iterations == 1 + budget
    assert (statuses[Status.ITERATION_LIMIT] == 0) == (budget == 10**6)
    assert statuses[Status.EXACT] > 0 or budget < 3


@every_kind
def test_claims_where_parts_are_forbidden(kind: str) -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        dense = random_dense(kind, rng, int(rng.integers(2, 6)), 0.5)
        trees = CLASSES[seed % 4]
        optimum, _ = best(dense, **trees)
        for options in ({"exact": False, "iterations": 3}, {"exact": True, "iterations": 1, "budget": 2}, {}):
            found = decode(to_parts(dense), **trees, **options)
            assert found.score <= optimum + ROUNDING
            assert found.bound >= optimum - ROUNDING
            if found.status is not Status.ITERATION_LIMIT:
                assert found.score == pytest.approx(optimum, rel=0, abs=ROUNDING)
        assert found.status is not Status.ITERATION_LIMIT


@every_class
def test_what_is_returned_is_always_a_tree(trees: dict[str, bool]) -> None:
    """Also where every tree that was seen before the limit has a forbidden part: its score is then -inf."""
    for seed in range(20):
        dense = random_grandsibling(np.random.default_rng(seed), 4, 0.6)
        for options in ({"exact": False, "iterations": 1}, {"iterations": 1, "budget": 1}):
            found = decode(to_parts(dense), **trees, **options)
            assert is_in_class(found.heads, TreeClass(**trees))
            assert found.score == pytest.approx(score(tuple(found.heads.tolist()), dense), rel=0, abs=ROUNDING)


# The steps


@every_kind
def test_every_step_brackets_the_optimum(kind: str) -> None:
    for dense, optima in instances(kind):
        for trees, optimum in zip(CLASSES, optima, strict=True):
            found = decode(to_parts(dense), exact=False, iterations=30, **trees)
            primal, dual = found.trace.primal, found.trace.dual
            assert len(primal) == len(dual) == len(found.trace.recomputed) == found.iterations
            assert (dual >= optimum - ROUNDING).all()
            assert (primal <= optimum + ROUNDING).all()
            assert found.score == primal.max()
            if found.status is Status.ITERATION_LIMIT:
                assert found.bound == dual.min()
            else:
                assert primal.max() == pytest.approx(dual.min(), rel=0, abs=ROUNDING)


@every_kind
@every_class
def test_lazy_steps_are_the_eager_ones(kind: str, trees: dict[str, bool]) -> None:
    spared = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = 4 + 2 * seed
        parts = to_parts(prune(rng, random_dense(kind, rng, n), 4))
        for options in ({"exact": False, "iterations": 60}, {"exact": True, "iterations": 20, "budget": 100}):
            lazy, eager = (decode(parts, lazy=choice, **trees, **options) for choice in (True, False))
            np.testing.assert_array_equal(lazy.trace.primal, eager.trace.primal)
            np.testing.assert_array_equal(lazy.trace.dual, eager.trace.dual)
            np.testing.assert_array_equal(lazy.heads, eager.heads)
            assert (lazy.score, lazy.bound, lazy.status, lazy.iterations) == (
                eager.score,
                eager.bound,
                eager.status,
                eager.iterations,
            )
            assert (eager.trace.recomputed == n + 1).all()
            assert lazy.trace.recomputed[0] == n + 1
            assert (lazy.trace.recomputed <= n + 1).all()
            spared += int((eager.trace.recomputed - lazy.trace.recomputed).sum())
    assert spared > 0


# Edges


@pytest.mark.parametrize("kind", [*KINDS, "states"])
@every_class
def test_no_word_and_one_word(kind: str, trees: dict[str, bool]) -> None:
    for n, heads in ((0, [-1]), (1, [-1, 0])):
        rng = np.random.default_rng(n)
        parts = random_states(rng, n, 2, 0.0).parts if kind == "states" else to_parts(random_dense(kind, rng, n))
        for options in ({}, {"exact": False, "iterations": 1}):
            found = decode(parts, **trees, **options)
            assert found.heads.tolist() == heads
            assert found.score <= found.bound
        assert n or found.score == 0.0
    one = decode(SiblingParts.dense(np.full((2, 2), 3.0), np.full((2,) * 3, 0.25)), **trees)
    assert one.score == pytest.approx(3.5, rel=1e-15)
    assert (one.bound, one.status) == (one.score, Status.CERTIFIED)


@every_class
def test_a_long_sentence(trees: dict[str, bool]) -> None:
    """Sixty words with four heads each, and arcs that say more than the other parts."""
    rng = np.random.default_rng(6)
    for kind in ("sibling", "grandparent"):
        dense = prune(rng, random_dense(kind, rng, 60), 4)
        dense["arcs"] = 4.0 * array(dense, "arcs")
        found = decode(to_parts(dense), budget=3000, **trees)
        assert is_in_class(found.heads, TreeClass(**trees))
        assert found.score == pytest.approx(score(tuple(found.heads.tolist()), dense), rel=1e-12)
        assert found.score <= found.bound
        shorter = decode(to_parts(dense), exact=False, iterations=10, **trees)
        assert shorter.score <= found.bound + ROUNDING
        assert found.score <= shorter.bound + ROUNDING


@every_class
@pytest.mark.parametrize("exact", [False, True])
def test_forbidden_arcs_can_leave_no_tree(trees: dict[str, bool], exact: bool) -> None:
    headless = np.random.default_rng(7).normal(size=(5, 5))
    headless[:, 3] = -np.inf
    with pytest.raises(NoTreeError, match="word 3") as caught:
        decode(SiblingParts.dense(headless, np.zeros((5,) * 3)), exact=exact, **trees)
    assert caught.value.words == (3,)
    cyclic = np.full((4, 4), -np.inf)
    cyclic[0, 3] = cyclic[1, 2] = cyclic[2, 1] = 0.0
    triples = np.zeros((4,) * 3)
    with pytest.raises(NoTreeError, match="words 1 and 2"):
        decode(GrandSiblingParts.dense(cyclic, triples, triples), exact=exact, **trees)
    with pytest.raises(NoTreeError, match="words 1, 2 and 3"):
        decode(StateParts.dense(np.full((4, 4), -np.inf), np.zeros((4, 4, 1, 1)), np.zeros((4, 2, 1))), **trees)


@pytest.mark.parametrize("projective", [False, True])
def test_two_words_that_only_the_root_can_head(projective: bool) -> None:
    arcs = np.zeros((4, 4))
    arcs[1:, [1, 3]] = -np.inf
    parts = SiblingParts.dense(arcs, np.zeros((4,) * 3))
    assert decode(parts, projective=projective, single_root=False).score == 0.0
    with pytest.raises(NoTreeError, match=r"\b1\b.*\b3\b"):
        decode(parts, projective=projective)


@every_class
def test_forbidden_pairs_can_leave_no_tree(trees: dict[str, bool]) -> None:
    arcs, siblings = np.random.default_rng(8).normal(size=(4, 4)), np.zeros((4, 4, 4))
    siblings[:, :, 2] = -np.inf  # word 2 is nobody's first or later child
    with pytest.raises(NoTreeError, match="forbidden pairs of siblings"):
        decode(SiblingParts.dense(arcs, siblings), **trees)
    grandparents = np.zeros((4, 4, 4))
    grandparents[:, 1:] = -np.inf  # no word has children, so that all are the root's
    parts = GrandSiblingParts.dense(arcs, np.zeros((4, 4, 4)), grandparents)
    if trees["single_root"]:
        with pytest.raises(NoTreeError):
            decode(parts, **trees)
    else:
        assert decode(parts, **trees).heads.tolist() == [-1, 0, 0, 0]


@pytest.mark.parametrize("options", [{"iterations": 0}, {"iterations": -3}, {"budget": 0}])
def test_limits_that_cannot_be(options: dict[str, int]) -> None:
    parts = SiblingParts.dense(np.zeros((3, 3)), np.zeros((3,) * 3))
    with pytest.raises(ValueError, match="expected a whole number, 1 or more"):
        decode(parts, **options)  # type: ignore[arg-type]


# Completion starts from what plain dual decomposition found


@pytest.mark.parametrize("budget", [1, 7, 60, 400])
@pytest.mark.parametrize("seed", range(4))
def test_exact_is_never_behind_plain_dual_decomposition(seed: int, budget: int) -> None:
    """Whatever it may spend: neither the tree nor the bound is worse, and the same run is behind both."""
    parts = to_parts(random_dense("grandsibling", np.random.default_rng(seed), 12))
    for iterations in (300, 301, 600, 3000):
        plain = decode(parts, exact=False, iterations=iterations)
        exact = decode(parts, exact=True, iterations=iterations, budget=budget)
        assert plain.status is Status.ITERATION_LIMIT  # or there would be nothing to see
        assert exact.score >= plain.score
        assert exact.bound <= plain.bound
        assert exact.gap <= plain.gap
        if exact.status is Status.ITERATION_LIMIT:
            np.testing.assert_array_equal(exact.trace.dual, plain.trace.dual)


def test_work_bounds_the_steps() -> None:
    """Each of the two searches reads at most so many cells; what was reached by then is the answer."""
    parts = to_parts(random_dense("grandsibling", np.random.default_rng(0), 12))
    cells = len(parts.automata().table) + 4 * 13**2
    assert decode(parts, exact=False, work=50 * cells).iterations == 50
    assert decode(parts, exact=False, work=1).iterations == 1
    whole = decode(parts, exact=False, iterations=50)
    np.testing.assert_array_equal(decode(parts, exact=False, work=50.5 * cells).heads, whole.heads)
    assert decode(parts, work=500 * cells).iterations <= 300 + 500 + 500


# Time and interruption


@cache
def endless() -> GrandSiblingParts:
    """Parts on which a search without limits would run for minutes, some milliseconds a step."""
    rng = np.random.default_rng(3)
    n = 120
    allowed = rng.random((n + 1, n + 1)) < 0.3
    allowed[0] = True
    these = candidates(allowed)
    shapes = [len(kind.nodes(these)) for kind in (SIBLINGS, GRANDPARENTS, GRAND_SIBLINGS)]
    return GrandSiblingParts(these, rng.normal(size=len(these.heads)), *(rng.normal(size=size) for size in shapes))


@pytest.mark.parametrize("exact", [False, True])
def test_the_seconds_end_a_search(exact: bool) -> None:
    parts = endless()
    found = decode(parts, exact=exact, iterations=10**6, budget=10**9, seconds=0.5)
    assert found.status is Status.TIME_LIMIT
    assert not found.status.is_proof
    assert is_in_class(found.heads, TreeClass(False, True))
    assert found.iterations < 10**5
    assert -np.inf < found.score <= found.bound < np.inf
    same = decode(parts, exact=False, iterations=5).trace.dual  # the time changes where the run ends, not the run
    np.testing.assert_array_equal(found.trace.dual[:5], same)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_seconds_are_positive(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"seconds is .*; expected more than 0, or None for no limit"):
        decode(endless(), seconds=seconds)


def test_an_interrupted_search_ends() -> None:
    """Ctrl-C in a search that would run for minutes: the kernel is told to stop, and the interruption goes on."""
    timer = Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            decode(endless(), exact=False, iterations=10**6)
    finally:
        signal.signal(signal.SIGINT, before)
        timer.join()
    assert not any(thread.name.startswith("ThreadPoolExecutor") for thread in threading.enumerate())
