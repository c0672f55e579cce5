"""The arcs that trees may have after pruning, and the higher-order parts these arcs make.

Arcs are grouped by head; a head's left side comes before its right side, and each side goes outwards from the head. A
side is numbered 2h (left) or 2h + 1 (right). On a side with k arcs the *sibling pairs* are

    (START, j), (0, j) .. (j-1, j)   for j = 0 .. k-1,    then (0, END) .. (k-1, END)

numbered in that order: k(k+1)/2 + k of them. A side without children has no pair. The *triples* put before each pair
(i, j) that begins with an arc what may precede it,

    (START, i, j), (0, i, j) .. (i-1, i, j)   for the pairs in their order, those with END at the end

k(k+1)(k+2)/6 in all. For a head h with e arcs that enter it, the *grandparent parts* (g, h, m) are e x (arcs of h), the
*grand-sibling parts* (g, h, s, m) e x (pairs of h), and so on; the root has none of these. With a few heads left per
word, arcs and pairs together are a small multiple of the words; triples can be many where a head has many arcs.

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
    triples: Ints  # (2n+3,) where the triples of a side begin
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
    sides, pairs, triples = np.zeros((3, 2 * n + 3), np.int64)
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
            triples[side + 1] = triples[side] + triples_before(a - first + 1)
    sides[2 * n + 2] = a
    for v in range(n + 1):
        enters[v + 1] += enters[v]
    filled = enters.copy()
    for a in range(count):
        m = modifiers[a]
        entering[filled[m]] = a
        filled[m] += 1
    return Candidates(heads, modifiers, sides, pairs, triples, enters, entering)


@part
def pairs_of(arcs: int) -> int:
    """How many sibling pairs a side of so many arcs has."""
    return arcs * (arcs + 3) // 2


@part
def triples_before(j: int) -> int:
    """How many triples of a side end before its arc j; all of them, if j is one more than END, which comes last."""
    return (j - 1) * j * (j + 1) // 6


@part
def pair_at(i: int, j: int, arcs: int) -> int:
    """The place of a pair on a side of so many arcs: i = -1 is START, j = arcs is END."""
    return j * (j + 1) // 2 + (i if j == arcs else i + 1)


@part
def triple_at(r: int, i: int, j: int) -> int:
    """The place of a triple on its side: r = -1 is START, j is one more than the last arc at END."""
    return triples_before(j) + i * (i + 1) // 2 + r + 1


@part
def places_of(these: Candidates, neighbours: int) -> Ints:
    """(2n+3,) where the arcs of a side begin, its pairs, or its triples: as many neighbours as a part has."""
    if neighbours == 1:
        return these.sides
    return these.pairs if neighbours == 2 else these.triples


@part
def starts_of(these: Candidates, neighbours: int, below_grandparent: bool) -> Ints:
    """(n+2,) where the parts of each head begin: arcs, pairs or triples, once or for each arc that enters it."""
    starts = np.zeros(len(these.enters), np.int64)
    places = places_of(these, neighbours)
    for h in range(len(starts) - 1):
        ways_in = these.enters[h + 1] - these.enters[h] if below_grandparent else 1
        starts[h + 1] = starts[h] + ways_in * (places[2 * h + 2] - places[2 * h])
    return starts


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
def tri_sibling_nodes(these: Candidates) -> NodeRows:
    """(R, 4) head, sibling before the last, last sibling, modifier; START and END are -1."""
    nodes = np.empty((these.triples[-1], 4), np.int32)
    p = 0
    for side in range(len(these.sides) - 1):
        first, last = these.sides[side], these.sides[side + 1]
        for j in range(first, last + 1):
            for i in range(first, j):
                for r in range(first - 1, i):
                    before = these.modifiers[r] if r >= first else -1
                    nodes[p] = (side // 2, before, these.modifiers[i], these.modifiers[j] if j < last else -1)
                    p += 1
    return nodes


@kernel
def grand_nodes(these: Candidates, nodes: NodeRows, neighbours: int) -> NodeRows:
    """(T, R+1) the parts `nodes` (P, R) of each head, of so many neighbours, below each grandparent."""
    found = np.empty((starts_of(these, neighbours, True)[-1], nodes.shape[1] + 1), np.int32)
    places = places_of(these, neighbours)
    k = 0
    for h in range(these.enters.shape[0] - 1):
        for entry in range(these.enters[h], these.enters[h + 1]):
            for p in range(places[2 * h], places[2 * h + 2]):
                found[k, 0] = these.heads[these.entering[entry]]
                found[k, 1:] = nodes[p]
                k += 1
    return found


def arc_nodes(these: Candidates) -> NodeRows:
    """(A, 2) head, modifier."""
    return np.stack([these.heads, these.modifiers], axis=1).astype(np.int32)
