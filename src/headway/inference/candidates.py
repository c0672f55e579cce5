"""The arcs that trees may have after pruning, and the higher-order parts these arcs make.

Arcs are grouped by head; a head's left side comes before its right side, and each side goes outwards from the head. A
side is numbered 2h (left) or 2h + 1 (right). On a side with k arcs the *sibling pairs* are

    (START, j), (0, j) .. (j-1, j)   for j = 0 .. k-1,    then (0, END) .. (k-1, END)

numbered in that order: k(k+1)/2 + k of them. A side without children has no pair. For a head h with e arcs that enter
it, the *grandparent parts* (g, h, m) are e x (arcs of h), and the *grand-sibling parts* (g, h, s, m) e x (pairs of h);
the root has neither. With a few heads left per word, all of these together are a small multiple of the arcs.

Everything is O(number of parts).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Bools, Ints
from headway.inference.jit import kernel, part

NodeRows = NDArray[np.int32]  # a part each, a node a column


class Candidates(NamedTuple):
    """Where everything is: arcs (A,), sides (2n+3,), nodes (n+2,); the last entry of each range is the size."""

    heads: Ints  # (A,)
    modifiers: Ints  # (A,)
    sides: Ints  # (2n+3,) where the arcs of a side begin
    pairs: Ints  # (2n+3,) where the sibling pairs of a side begin
    enters: Ints  # (n+2,) where the arcs into a node begin in `entering`
    entering: Ints  # (A,) arcs, by modifier, then by head

    @property
    def n(self) -> int:
        """Words of the sentence."""
        return len(self.enters) - 2


@kernel
def candidates(allowed: Bools) -> Candidates:
    """The arcs [head, modifier] that are True, column 0 and the diagonal aside."""
    n = allowed.shape[0] - 1
    count = 0
    for h in range(n + 1):
        for m in range(1, n + 1):
            count += allowed[h, m] and h != m
    heads, modifiers, entering = np.empty((3, count), np.int64)
    sides, pairs = np.zeros((2, 2 * n + 3), np.int64)
    enters = np.zeros(n + 2, np.int64)
    a = 0
    for h in range(n + 1):
        for side, step, edge in ((2 * h, -1, 0), (2 * h + 1, 1, n + 1)):
            sides[side], first = a, a
            for m in range(h + step, edge, step):
                if m > 0 and allowed[h, m]:
                    heads[a], modifiers[a] = h, m
                    enters[m + 1] += 1
                    a += 1
            pairs[side + 1] = pairs[side] + pairs_of(a - first)
    sides[2 * n + 2] = a
    for v in range(n + 1):
        enters[v + 1] += enters[v]
    filled = enters.copy()
    for a in range(count):
        m = modifiers[a]
        entering[filled[m]] = a
        filled[m] += 1
    return Candidates(heads, modifiers, sides, pairs, enters, entering)


@part
def pairs_of(arcs: int) -> int:
    """How many sibling pairs a side of so many arcs has."""
    return arcs * (arcs + 3) // 2


@part
def starts_of(these: Candidates, on_pairs: bool, below_grandparent: bool) -> Ints:
    """(n+2,) where the parts of each head begin: on its pairs or its arcs, once or for each arc that enters it."""
    starts = np.zeros(len(these.enters), np.int64)
    for h in range(len(starts) - 1):
        ways_in = these.enters[h + 1] - these.enters[h] if below_grandparent else 1
        places = these.pairs if on_pairs else these.sides
        starts[h + 1] = starts[h] + ways_in * (places[2 * h + 2] - places[2 * h])
    return starts


@part
def rank_above(these: Candidates, g: int, h: int) -> int:
    """Which of the arcs that enter h comes from g."""
    rank = 0
    for entry in range(these.enters[h], these.enters[h + 1]):
        if these.heads[these.entering[entry]] == g:
            break
        rank += 1
    return rank


@kernel
def sibling_nodes(these: Candidates) -> NodeRows:
    """(P, 3) head, sibling, modifier; the sibling of a START pair and the modifier of an END pair are -1."""
    nodes = np.empty((these.pairs[-1], 3), np.int32)
    p = 0
    for side in range(len(these.sides) - 1):
        first, last = these.sides[side], these.sides[side + 1]
        h = side // 2
        for j in range(first, last):
            for i in range(first - 1, j):
                nodes[p] = (h, these.modifiers[i] if i >= first else -1, these.modifiers[j])
                p += 1
        for i in range(first, last):
            nodes[p] = (h, these.modifiers[i], -1)
            p += 1
    return nodes


@kernel
def grandparent_nodes(these: Candidates) -> NodeRows:
    """(G, 3) grandparent, head, modifier."""
    nodes = np.empty((starts_of(these, False, True)[-1], 3), np.int32)
    k = 0
    for h in range(these.enters.shape[0] - 1):
        for entry in range(these.enters[h], these.enters[h + 1]):
            for a in range(these.sides[2 * h], these.sides[2 * h + 2]):
                nodes[k] = (these.heads[these.entering[entry]], h, these.modifiers[a])
                k += 1
    return nodes


@kernel
def grand_sibling_nodes(these: Candidates, siblings: NodeRows) -> NodeRows:
    """(T, 4) grandparent, head, sibling, modifier; `siblings` are `sibling_nodes`."""
    nodes = np.empty((starts_of(these, True, True)[-1], 4), np.int32)
    k = 0
    for h in range(these.enters.shape[0] - 1):
        for entry in range(these.enters[h], these.enters[h + 1]):
            for p in range(these.pairs[2 * h], these.pairs[2 * h + 2]):
                nodes[k, 0] = these.heads[these.entering[entry]]
                nodes[k, 1:] = siblings[p]
                k += 1
    return nodes
