"""The parts of a choice of arcs: against looking each up by name, and against the parts of every tree."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.inference.candidates import Candidates, candidates
from headway.inference.part_counts import arcs_of_tree, count_parts
from headway.inference.parts import KINDS as PART_KINDS

from .parts_oracle import parts_of, trees
from .test_candidates import KINDS, Part, listing, masks, with_minus_one

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def naive_count(these: Candidates, taken: Bools, above: Ints, kinds: tuple[str, ...]) -> list[float]:
    """1 for the parts of the taken arcs, looked up by name."""
    present: dict[str, set[Part]] = {kind: set() for kind in KINDS}
    arcs = [(int(h), int(m)) for h, m in zip(these.heads[taken], these.modifiers[taken], strict=True)]
    for h in range(these.n + 1):
        for left in (True, False):
            side = sorted((m for head, m in arcs if head == h and (m < h) == left), reverse=left)
            pairs = list(zip([-1, *side], [*side, -1], strict=True)) if side else []
            present["siblings"] |= {(h, s, m) for s, m in pairs}
            if above[h] >= 0:
                g = int(these.heads[above[h]])
                present["grandparents"] |= {(g, h, m) for m in side}
                present["grand_siblings"] |= {(g, h, s, m) for s, m in pairs}
    present["arcs"] = set(arcs)
    listed = listing(these)
    return [float(part in present[kind]) for kind in kinds for part in listed[kind]]


SOME_KINDS = [tuple(some) for size in range(4) for some in combinations(PART_KINDS, size)]


@given(masks(), st.integers(0, 99))
def test_counts_of_any_choice(allowed: Bools, seed: int) -> None:
    """Any arcs, and below any arc or none: what the head automata choose need not be a tree."""
    these, rng = candidates(allowed), np.random.default_rng(seed)
    taken = rng.random(len(these.heads)) < 0.5
    above = np.full(these.n + 1, -1)
    for h in range(these.n + 1):
        entering = these.entering[these.enters[h] : these.enters[h + 1]]
        if len(entering) and rng.random() < 0.8:
            above[h] = rng.choice(entering)
    for kinds in SOME_KINDS:
        names = ("arcs", *(kind.name for kind in kinds))
        assert count_parts(these, taken, above, kinds).tolist() == naive_count(these, taken, above, names)


@pytest.mark.parametrize("n", [1, 3, 4])
def test_counts_of_every_tree(n: int) -> None:
    these = candidates(np.ones((n + 1, n + 1), np.bool_))
    listed = listing(these)
    for heads in trees(n, False, False):
        of_tree = parts_of(heads)
        taken, above = arcs_of_tree(these, np.array(heads))
        assert above[0] == -1
        assert these.heads[above[1:]].tolist() == list(heads[1:])
        for kinds in SOME_KINDS:
            names = ("arcs", *(kind.name for kind in kinds))
            present = {(name, with_minus_one(name, part)) for name in names for part in of_tree[name]}
            found = count_parts(these, taken, above, kinds)
            assert found.sum() == sum(len(of_tree[name]) for name in names)
            assert found.tolist() == [float((name, part) in present) for name in names for part in listed[name]]


@given(masks(5), st.integers(0, 99))
def test_arcs_of_a_tree_that_was_pruned(allowed: Bools, seed: int) -> None:
    """The arcs that are left of it, and -1 above the words whose arc is gone."""
    these, every = candidates(allowed), trees(len(allowed) - 1, False, False)
    heads = every[seed % len(every)]
    taken, above = arcs_of_tree(these, np.array(heads))
    kept = [m for m in range(1, len(heads)) if allowed[heads[m], m]]
    assert sorted(these.modifiers[taken].tolist()) == kept
    assert [m for m in range(len(heads)) if above[m] >= 0] == kept
    assert these.modifiers[above[kept]].tolist() == kept
    assert these.heads[above[kept]].tolist() == [heads[m] for m in kept]


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_to_choose_from(n: int) -> None:
    these = candidates(np.zeros((n + 1, n + 1), np.bool_))
    assert count_parts(these, np.zeros(0, np.bool_), np.full(n + 1, -1), PART_KINDS).size == 0
