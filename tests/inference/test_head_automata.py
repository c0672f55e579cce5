"""Head automata: the best modifiers of every head against all subsets of them; what the dense arrays may not hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.errors import HeadwayError, ScoresError, ShapeError
from headway.inference.batch import LARGEST_SCORE
from headway.inference.candidates import Candidates
from headway.inference.head_automata import (
    Automata,
    GrandSiblingParts,
    SiblingParts,
    StateParts,
    best_of_head,
    decode_heads,
    work_for,
)
from headway.inference.jit import part
from headway.inference.part_counts import count_parts
from headway.inference.parts import GRAND_SIBLINGS, KINDS

from .parts_oracle import Dense, grandsibling_cases, random_grandsibling, random_sibling, sibling_cases, to_parts
from .states_oracle import random_states, siblings_as_states

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Sides = tuple[tuple[int, ...], tuple[int, ...]]  # the modifiers on the left and on the right, outwards
ALPHAS = (0.0, 0.001, 0.5)


def subsets(outwards: range) -> Iterator[tuple[int, ...]]:
    return (some for size in range(len(outwards) + 1) for some in combinations(outwards, size))


def choices(h: int, n: int) -> Iterator[Sides]:
    """All modifiers that head h can have."""
    left, right = range(h - 1, 0, -1), range(h + 1, n + 1)
    return product(list(subsets(left)), list(subsets(right)))


def head_score(dense: Dense, g: int | None, h: int, sides: Sides, alpha: float = 0.0) -> float:
    """f_h of these modifiers, below g."""
    arcs, siblings = dense["arcs"], dense["siblings"]
    assert arcs is not None
    assert siblings is not None
    grandparents, grand_siblings = dense.get("grandparents"), dense.get("grand_siblings")
    total = 0.0
    for side in sides:
        total += sum((1.0 - alpha) * arcs[h, m] for m in side)
        pairs = list(pairwise([h, *side, h])) if side else []
        total += sum(siblings[h, s, m] for s, m in pairs)
        if g is not None and grandparents is not None:
            total += sum(grandparents[g, h, m] for m in side)
        if g is not None and grand_siblings is not None:
            total += sum(grand_siblings[g, h, s, m] for s, m in pairs)
    return float(total)


def best_heads(dense: Dense, alpha: float) -> float:
    """Every head by itself, over all modifiers and, with grandparents, all heads of it."""
    arcs = dense["arcs"]
    assert arcs is not None
    n, total = len(arcs) - 1, 0.0
    for h in range(n + 1):
        above: list[int | None] = [None]
        if "grandparents" in dense and h > 0:
            above = [g for g in range(n + 1) if g != h and arcs[g, h] > -np.inf]
        total += max(head_score(dense, g, h, sides, alpha) for g in above for sides in choices(h, n))
    return total


def chosen(these: Candidates, taken: Bools, h: int) -> Sides:
    left, right = (
        tuple(these.modifiers[these.sides[side] + np.flatnonzero(taken[these.sides[side] : these.sides[side + 1]])])
        for side in (2 * h, 2 * h + 1)
    )
    return left, right


def check_heads(dense: Dense, alpha: float) -> None:
    parts = to_parts(dense)
    assert not isinstance(parts, StateParts)
    these, automata = parts.candidates, parts.automata(alpha)
    np.testing.assert_array_equal(automata.share, alpha * parts.arcs)
    total, taken, above = decode_heads(automata)
    assert total == pytest.approx(best_heads(dense, alpha), rel=0, abs=1e-12)
    own, grand = 0.0, "grandparents" in dense
    for h in range(these.n + 1):
        assert (above[h] >= 0) == (grand and h > 0)
        assert above[h] < 0 or these.modifiers[above[h]] == h
        g = int(these.heads[above[h]]) if above[h] >= 0 else None
        own += head_score(dense, g, h, chosen(these, taken, h), alpha)
    assert own == pytest.approx(total, rel=0, abs=1e-12)
    if alpha == 0.0:  # the counts that a learner adds up say the same
        given = [kind for kind in KINDS if dense.get(kind.name) is not None]
        assert list(parts.by_kind) == given or (GRAND_SIBLINGS in given and not len(GRAND_SIBLINGS.nodes(these)))
        there = count_parts(these, taken, above, tuple(parts.by_kind)) > 0
        scores = np.concatenate([parts.arcs, *parts.by_kind.values()])
        assert scores[there].sum() == pytest.approx(total, rel=0, abs=1e-12)


@given(sibling_cases(6), st.sampled_from(ALPHAS))
def test_sibling_automata(dense: Dense, alpha: float) -> None:
    check_heads(dense, alpha)


@given(grandsibling_cases(5), st.sampled_from(ALPHAS))
def test_grand_sibling_automata(dense: Dense, alpha: float) -> None:
    """With and without grand-siblings."""
    check_heads(dense, alpha)


@pytest.mark.parametrize("seed", range(4))
def test_six_words(seed: int) -> None:
    check_heads(random_grandsibling(np.random.default_rng(seed), 6, 0.3 * (seed % 2), seed < 2), 0.001)


def test_the_root_has_no_grandparent() -> None:
    """What stands in row 0 of the heads, or is above the root, is not looked at."""
    dense = random_grandsibling(np.random.default_rng(3), 4, 0.0)
    total, _, above = decode_heads(to_parts(dense).automata())
    for name in ("grandparents", "grand_siblings"):
        scores = dense[name]
        assert scores is not None
        assert np.isnan(scores[:, 0]).all()
    assert np.isfinite(total)
    assert above[0] == -1


# States


@pytest.mark.parametrize("states", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_state_automata(states: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, alpha = int(rng.integers(1, 5)), ALPHAS[seed % 3]
    dense = random_states(rng, n, states, 0.3 * (seed % 2))
    automata = dense.parts.automata(alpha)
    total, taken, above = decode_heads(automata)
    expected = own = 0.0
    for h in range(n + 1):
        for right, outwards in enumerate((range(h - 1, 0, -1), range(h + 1, n + 1))):
            expected += max(dense.side(h, bool(right), some, alpha) for some in subsets(outwards))
            own += dense.side(h, bool(right), chosen(dense.parts.candidates, taken, h)[right], alpha)
    assert total == pytest.approx(expected, rel=0, abs=1e-12)
    assert own == pytest.approx(total, rel=0, abs=1e-12)
    assert (above == -1).all()


@given(sibling_cases(6), st.sampled_from(ALPHAS))
def test_siblings_written_as_states(dense: Dense, alpha: float) -> None:
    arcs, siblings = dense["arcs"], dense["siblings"]
    assert arcs is not None
    assert siblings is not None
    total, taken, _ = decode_heads(SiblingParts.dense(arcs, siblings).automata(alpha))
    by_states, taken_by_states, _ = decode_heads(siblings_as_states(arcs, siblings).automata(alpha))
    assert by_states == pytest.approx(total, rel=0, abs=1e-12)
    np.testing.assert_array_equal(taken_by_states, taken)


def test_a_side_without_children_is_worth_what_final_says() -> None:
    zero = np.zeros((2, 2)), np.zeros((2, 2, 1, 1))
    assert decode_heads(StateParts.dense(*zero, np.full((2, 2, 1), 0.5)).automata())[0] == 2.0
    assert decode_heads(SiblingParts.dense(np.zeros((2, 2)), np.full((2, 2, 2), -1.0)).automata())[0] == 0.0


def test_no_words() -> None:
    nothing = SiblingParts.dense(np.zeros((1, 1)), np.zeros((1,) * 3))
    total, taken, above = decode_heads(nothing.automata())
    assert (total, taken.tolist(), above.tolist()) == (0.0, [], [-1])


# Multipliers, and arcs that are forbidden or required


@part
def _decode_head(
    automata: Automata, h: int, u: Floats, v: Floats, allowed: Bools, required: Bools
) -> tuple[float, Bools, Ints]:
    value, back = work_for(automata.candidates.sides, automata.states)
    taken, above = np.zeros(len(u), np.bool_), np.full(len(automata.candidates.enters) - 1, -1, np.int64)
    best = best_of_head(automata, h, u, v, allowed, required, value, back, taken, above)
    return best, taken, above


@dataclass(frozen=True)
class Limits:
    """By arc of the candidates: what dual decomposition subtracts, and what branching forbids and requires."""

    these: Candidates
    u: Floats
    v: Floats
    allowed: Bools
    required: Bools

    @classmethod
    def random(cls, these: Candidates, rng: np.random.Generator, share: float) -> Limits:
        u, v = rng.normal(size=(2, len(these.heads)))
        allowed = rng.random(len(u)) >= share
        return cls(these, u, v, allowed, allowed & (rng.random(len(u)) < share))

    def arcs(self, h: int, modifiers: tuple[int, ...]) -> list[int]:
        found = zip(self.these.heads.tolist(), self.these.modifiers.tolist(), strict=True)
        return [a for a, (head, m) in enumerate(found) if head == h and m in modifiers]

    def paid(self, h: int, right: bool, side: tuple[int, ...]) -> float:
        """What these modifiers of a side cost; inf where they are not allowed, or a required one is missing."""
        sides, taken = self.these.sides, self.arcs(h, side)
        own = np.arange(sides[2 * h + right], sides[2 * h + right + 1])
        missing = set(own[self.required[own]].tolist()) - set(taken)
        if len(taken) < len(side) or missing or not self.allowed[taken].all():
            return float("inf")
        return float(self.u[taken].sum())

    def above(self, h: int) -> list[int]:
        entering = self.these.entering[self.these.enters[h] : self.these.enters[h + 1]]
        return [a for a in entering.tolist() if self.allowed[a]]


@given(st.one_of(sibling_cases(5), grandsibling_cases(4)), st.integers(0, 999), st.sampled_from([0.0, 0.2, 0.4]))
def test_best_modifiers_under_limits(dense: Dense, seed: int, share: float) -> None:
    parts = to_parts(dense)
    these, automata = parts.candidates, parts.automata(0.1)
    limits = Limits.random(these, np.random.default_rng(seed), share)

    def worth(arc: int, h: int, sides: Sides) -> float:
        paid = sum(limits.paid(h, bool(right), side) for right, side in enumerate(sides))
        if paid == float("inf"):
            return -np.inf
        g, v = (int(these.heads[arc]), float(limits.v[arc])) if arc >= 0 else (None, 0.0)
        return head_score(dense, g, h, sides, 0.1) - paid - v

    for h in range(these.n + 1):
        found, taken, above = _decode_head(automata, h, limits.u, limits.v, limits.allowed, limits.required)
        ways_in = limits.above(h) if automata.below_grandparent and h > 0 else [-1]
        every = [worth(arc, h, sides) for arc in ways_in for sides in choices(h, these.n)]
        expected = max(every, default=-np.inf)
        assert found == pytest.approx(expected, rel=0, abs=1e-12)
        if expected > -np.inf:
            assert int(above[h]) in ways_in
            assert (np.delete(above, h) == -1).all()
            assert worth(int(above[h]), h, chosen(these, taken, h)) == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_best_states_under_limits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = random_states(rng, 4, 1 + seed % 3, 0.2 * (seed % 2))
    these, automata = dense.parts.candidates, dense.parts.automata()
    limits = Limits.random(these, rng, 0.3)
    for h in range(5):
        found, taken, _ = _decode_head(automata, h, limits.u, limits.v, limits.allowed, limits.required)
        expected = own = 0.0
        for right, outwards in enumerate((range(h - 1, 0, -1), range(h + 1, 5))):
            sides = [some for some in subsets(outwards) if limits.paid(h, bool(right), some) < float("inf")]
            expected += max(dense.side(h, bool(right), some) - limits.paid(h, bool(right), some) for some in sides)
            side = chosen(these, taken, h)[right]
            own += dense.side(h, bool(right), side) - limits.paid(h, bool(right), side)
        assert found == pytest.approx(expected, rel=0, abs=1e-12)
        if expected > -np.inf:
            assert own == pytest.approx(expected, rel=0, abs=1e-12)


# What the arrays may not hold


def dense_arrays(kind: str) -> dict[str, Floats]:
    n = 3
    if kind == "states":
        return dict(zip(("arcs", "transitions", "final"), vars(random_states(ONE, n, 2, 0.0)).values(), strict=True))
    dense = random_sibling(ONE, n, 0.0) if kind == "sibling" else random_grandsibling(ONE, n, 0.0)
    return {name: scores for name, scores in dense.items() if scores is not None}


ONE = np.random.default_rng(1)
MAKE: dict[str, Any] = {
    "sibling": SiblingParts.dense,
    "grandsibling": GrandSiblingParts.dense,
    "states": StateParts.dense,
}
CELLS = {
    "arcs": (1, 2),
    "siblings": (1, 2, 3),
    "grandparents": (3, 1, 2),
    "grand_siblings": (3, 1, 1, 2),
    "transitions": (2, 1, 0, 1),
    "final": (3, 1, 1),
}
NAMES = {
    "sibling": ("arcs", "siblings"),
    "grandsibling": ("arcs", "siblings", "grandparents", "grand_siblings"),
    "states": ("arcs", "transitions", "final"),
}
every_array = pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in MAKE for name in NAMES[kind]])


@every_array
@pytest.mark.parametrize("value", [np.nan, np.inf, 2 * LARGEST_SCORE, -2 * LARGEST_SCORE])
def test_scores_that_are_none(kind: str, name: str, value: float) -> None:
    dense = dense_arrays(kind)
    dense[name][CELLS[name]] = value
    with pytest.raises(ScoresError, match=r"1, 2|head 1.*2" if name == "arcs" else f"^{name} hold"):
        MAKE[kind](**dense)


@every_array
def test_forbidden_parts_are_no_error(kind: str, name: str) -> None:
    dense = dense_arrays(kind)
    dense[name][CELLS[name]] = -np.inf
    assert np.isfinite(decode_heads(MAKE[kind](**dense).automata())[0])


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in MAKE for name in NAMES[kind] if name != "arcs"])
@pytest.mark.parametrize("change", ["smaller", "larger", "flat", "one axis less", "one axis longer"])
def test_shapes_that_do_not_fit(kind: str, name: str, change: str) -> None:
    dense = dense_arrays(kind)
    scores = dense[name]
    dense[name] = {
        "smaller": scores[tuple(slice(size - 1) for size in scores.shape)],
        "larger": np.pad(scores, [(0, 1)] * scores.ndim),
        "flat": scores.ravel(),
        "one axis less": scores[0],
        "one axis longer": np.pad(scores, [(0, 0)] * (scores.ndim - 1) + [(0, 1)]),
    }[change]
    with pytest.raises(ShapeError, match=name):
        MAKE[kind](**dense)


@pytest.mark.parametrize("kind", list(MAKE))
def test_arcs_that_are_no_matrix(kind: str) -> None:
    for arcs in (np.zeros(3), np.zeros((3, 4)), np.zeros((2, 3, 3)), np.zeros((0, 0)), "text"):
        with pytest.raises(HeadwayError):
            MAKE[kind](**{**dense_arrays(kind), "arcs": arcs})


def test_states_there_must_be() -> None:
    with pytest.raises(ShapeError, match="transitions"):
        StateParts.dense(np.zeros((2, 2)), np.zeros((2, 2, 0, 0)), np.zeros((2, 2, 0)))
