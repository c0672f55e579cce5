"""Which parts there are when some arcs are taken: those of a tree, or of what the head automata choose.

Arcs and parts are numbered as in `candidates`. `taken` (A,) marks the arcs; `above` (n+1,) has the arc into each head,
or -1 where it has none, and then no part with a grandparent. O(number of parts).
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Bools, Floats, Ints
from headway.inference.candidates import Candidates, rank_above
from headway.inference.jit import kernel
from headway.inference.parts import PartKind, places, starts_in_a_row


def count_parts(these: Candidates, taken: Bools, above: Ints, kinds: tuple[PartKind, ...]) -> Floats:
    """1 for every part there is when these arcs are taken and head h stands below the arc above[h]; 0 elsewhere.

    The parts are in a row: arcs first, then kind by kind.
    """
    return _count_parts(these, taken, above, *places(kinds))


@kernel
def _count_parts(these: Candidates, taken: Bools, above: Ints, on_pairs: Bools, below_grandparent: Bools) -> Floats:
    kinds = len(on_pairs)
    starts = starts_in_a_row(these, on_pairs, below_grandparent, len(these.heads))
    row = np.empty(kinds, np.int64)  # add the number of an arc or a pair to get the number of its part
    found = np.zeros(starts[-1, -1] if kinds else len(these.heads))
    for side in range(len(these.sides) - 1):
        h, first, last = side // 2, these.sides[side], these.sides[side + 1]
        if first == last:
            continue
        has_head = above[h] >= 0
        rank = rank_above(these, these.heads[above[h]], h) if has_head else 0
        for k in range(kinds):
            firsts = these.pairs if on_pairs[k] else these.sides
            row[k] = starts[k, h] - firsts[2 * h]
            if below_grandparent[k]:
                row[k] += rank * (firsts[2 * h + 2] - firsts[2 * h])
        pair, before = these.pairs[side], first - 1
        for j in range(first, last):
            if taken[j]:
                found[j] = 1.0
                for k in range(kinds):
                    if has_head or not below_grandparent[k]:
                        found[row[k] + (pair + before - first + 1 if on_pairs[k] else j)] = 1.0
                before = j
            pair += j - first + 1
        if before >= first:
            for k in range(kinds):
                if on_pairs[k] and (has_head or not below_grandparent[k]):
                    found[row[k] + pair + before - first] = 1.0
    return found


@kernel
def arcs_of_tree(these: Candidates, tree: Ints) -> tuple[Bools, Ints]:
    """The arcs of a tree (A,), and for each node the arc into it (-1 for the root, and where the tree's was pruned)."""
    taken = np.zeros(len(these.heads), np.bool_)
    above = np.full(len(tree), -1, np.int64)
    for a in range(len(taken)):
        if tree[these.modifiers[a]] == these.heads[a]:
            taken[a] = True
            above[these.modifiers[a]] = a
    return taken, above
