"""The numbering of arcs and parts: against listings by loops, and against the parts of all trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.inference.candidates import (
    Candidates,
    candidates,
    grand_sibling_nodes,
    grandparent_nodes,
    sibling_nodes,
    starts_of,
)
from headway.inference.parts import KINDS as PART_KINDS

from .parts_oracle import parts_of, trees

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Part = tuple[int, ...]
Listing = dict[str, list[Part]]  # by kind; START and END are -1
KINDS = ("arcs", "siblings", "grandparents", "grand_siblings")


@st.composite
def masks(draw: st.DrawFn, max_words: int = 6) -> Bools:
    """Any arcs; what is said of column 0 and of the diagonal counts for nothing."""
    n = draw(st.integers(0, max_words))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.random((n + 1, n + 1)) < draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))


def side_pairs(h: int, side: list[int]) -> list[Part]:
    """The pairs of one side in the order of the module's text."""
    into = [(h, s, m) for j, m in enumerate(side) for s in [-1, *side[:j]]]
    return into + [(h, s, -1) for s in side]


def naive_listing(allowed: Bools) -> Listing:
    n = len(allowed) - 1
    found: Listing = {kind: [] for kind in KINDS}
    for h in range(n + 1):
        arcs: list[Part] = []
        pairs: list[Part] = []
        for outwards in (range(h - 1, 0, -1), range(h + 1, n + 1)):
            side = [m for m in outwards if allowed[h, m]]
            arcs += [(h, m) for m in side]
            pairs += side_pairs(h, side)
        above = [g for g in range(n + 1) if h > 0 and g != h and allowed[g, h]]
        found["arcs"] += arcs
        found["siblings"] += pairs
        found["grandparents"] += [(g, *arc) for g in above for arc in arcs]
        found["grand_siblings"] += [(g, *pair) for g in above for pair in pairs]
    return found


def listing(these: Candidates) -> Listing:
    siblings = sibling_nodes(these)
    nodes = {
        "arcs": np.stack([these.heads, these.modifiers], axis=1),
        "siblings": siblings,
        "grandparents": grandparent_nodes(these),
        "grand_siblings": grand_sibling_nodes(these, siblings),
    }
    return {kind: [tuple(part) for part in some.tolist()] for kind, some in nodes.items()}


def with_minus_one(kind: str, part: Part) -> Part:
    """A part as the oracle has it, START and END being the head, as the listings have it."""
    if "siblings" not in kind:
        return part
    head = 1 if kind == "grand_siblings" else 0
    return (*part[: head + 1], *(-1 if node == part[head] else node for node in part[head + 1 :]))


@given(masks())
def test_every_part_has_its_number(allowed: Bools) -> None:
    these = candidates(allowed)
    assert these.n == len(allowed) - 1
    assert listing(these) == naive_listing(allowed)


@given(masks())
def test_ranges_say_where_everything_is(allowed: Bools) -> None:
    these, expected, n = candidates(allowed), naive_listing(allowed), len(allowed) - 1
    for ranges, size in ((these.sides, 2 * n + 3), (these.pairs, 2 * n + 3), (these.enters, n + 2)):
        assert len(ranges) == size
    for h in range(n + 1):
        for side, left in ((2 * h, True), (2 * h + 1, False)):
            mine = [m for head, m in expected["arcs"] if head == h and (m < h) == left]
            assert these.modifiers[these.sides[side] : these.sides[side + 1]].tolist() == mine
            pairs = expected["siblings"][these.pairs[side] : these.pairs[side + 1]]
            assert pairs == side_pairs(h, mine)
        entering = these.entering[these.enters[h] : these.enters[h + 1]]
        assert these.heads[entering].tolist() == [g for g in range(n + 1) if h > 0 and g != h and allowed[g, h]]
        assert (these.modifiers[entering] == h).all()
    for kind in PART_KINDS:
        starts = starts_of(these, kind.on_pairs, kind.below_grandparent)
        assert len(starts) == n + 2
        assert starts[-1] == len(expected[kind.name])
        for h in range(n + 1):
            own = expected[kind.name][starts[h] : starts[h + 1]]
            assert own == [part for part in expected[kind.name] if part[kind.roles.index("h")] == h]
    assert these.sides[-1] == len(expected["arcs"])
    assert these.pairs[-1] == len(expected["siblings"])


@given(masks())
def test_every_kind_lists_its_parts(allowed: Bools) -> None:
    these, expected = candidates(allowed), naive_listing(allowed)
    for kind in PART_KINDS:
        nodes = kind.nodes(these)
        assert nodes.shape == (len(expected[kind.name]), len(kind.roles))
        assert [tuple(part) for part in nodes.tolist()] == expected[kind.name]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_parts_of_all_trees_are_listed_once(n: int) -> None:
    """What is listed and in no tree has a grandparent among its own children."""
    listed = listing(candidates(np.ones((n + 1, n + 1), np.bool_)))
    in_trees: dict[str, set[Part]] = {kind: set() for kind in KINDS}
    for heads in trees(n, False, False):
        for kind, parts in parts_of(heads).items():
            in_trees[kind] |= {with_minus_one(kind, part) for part in parts}
    for kind in KINDS:
        assert len(set(listed[kind])) == len(listed[kind])
        assert in_trees[kind] <= set(listed[kind])
        cyclic = {part for part in listed[kind] if kind.startswith("grand") and part[0] in part[2:]}
        assert set(listed[kind]) - in_trees[kind] == cyclic


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_to_choose_from(n: int) -> None:
    these = candidates(np.zeros((n + 1, n + 1), np.bool_))
    assert listing(these) == {kind: [] for kind in KINDS}
    assert these.n == n
