"""The head-modifier sequences of a treebank (luque2012 section 2.1), each prefix once, in a forest of prefix trees.

A head has a sequence of modifiers on either side, read from the head outwards. There is one tree of prefixes for every
head symbol and direction: its root is the empty prefix, just after START, and each edge is one modifier. A node knows
how many sequences go `through` it, and how many `end` there, with STOP. Whatever a learner sums over sequences, it can
sum over nodes: relative frequencies, substrings, forward and backward vectors. The 166,000 sequences of a tenth of the
Penn Treebank have 8,600 prefixes.

Nodes are sorted by tree, parents before children, so that one pass forwards and one backwards suffice. Building costs
O(words), with one hash table for all edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.arrays import Floats, Ints
from headway.errors import ShapeError
from headway.inference.heads import tree_in_class
from headway.inference.jit import kernel, part

_EMPTY = -1
MIX = np.int64(-7046029254386353131)  # the golden ratio in 64 bits: the middle bits of a product depend on all below


@dataclass(frozen=True)
class ModifierTrie:
    """`size` symbols, the root's 0 among them; the tree of head h and direction d (0 left, 1 right) is number 2h + d,
    and its nodes are starts[2h + d] to starts[2h + d + 1], its own root first.

    A node's `symbols` entry is the modifier that leads to it, 0 (START) for a root; `parents` of roots are -1.
    """

    size: int
    starts: Ints
    parents: Ints
    symbols: Ints
    through: Floats
    ends: Floats

    @classmethod
    def of(cls, size: int, lengths: Ints, symbols: Ints, heads: Ints) -> ModifierTrie:
        """From trees one after the other: `lengths` (B,) in words; `symbols` (1..size-1) and `heads` by word.

        >>> trie = ModifierTrie.of(3, np.array([3]), np.array([1, 1, 2]), np.array([3, 3, 0]))  # both 1s modify the 2
        >>> trie.sequences(2, 0), trie.sequences(0, 1)
        ([((1, 1), 1.0)], [((2,), 1.0)])
        """
        if symbols.shape != heads.shape or int(lengths.sum()) != len(symbols):
            raise ShapeError(f"{len(symbols)} symbols and {len(heads)} heads for {int(lengths.sum())} words")
        if len(symbols) and not (symbols.min() >= 1 and symbols.max() < size):
            raise ShapeError(f"symbols go from {symbols.min()} to {symbols.max()}; expected 1 to {size - 1}")
        if _is_head_outside(lengths, heads):
            raise ShapeError("a head is outside its sentence; expected 0, the root, to the number of words")
        return cls(size, *_by_tree(size, *_insert(size, lengths, symbols, heads)))

    @property
    def trees(self) -> Ints:
        """The number of each node's tree, 2h + d."""
        return np.repeat(np.arange(2 * self.size), np.diff(self.starts))

    @property
    def depths(self) -> Ints:
        """The number of modifiers of each prefix."""
        return _depths(self.parents)

    @property
    def counts(self) -> Floats:
        """How many sequences every head symbol and direction has, (size, 2)."""
        return self.through[self.starts[:-1]].reshape(-1, 2)

    def sequences(self, head: int, direction: int) -> list[tuple[tuple[int, ...], float]]:
        """The distinct modifier sequences of a head symbol and direction, with their counts, most frequent first."""
        first, last = self.starts[2 * head + direction : 2 * head + direction + 2].tolist()
        prefixes: dict[int, tuple[int, ...]] = {first: ()}
        for node in range(first + 1, last):
            prefixes[node] = (*prefixes[int(self.parents[node])], int(self.symbols[node]))
        ended = [(prefixes[node], float(self.ends[node])) for node in range(first, last) if self.ends[node]]
        return sorted(ended, key=lambda one: (-one[1], one[0]))


@kernel
def first_without_tree(lengths: Ints, heads: Ints) -> int:
    """The number of the first sentence in which not every word has a head and reaches the root; -1 if there is none.

    `heads` are those of the nodes of one sentence after the other, each root's -1 first.
    """
    mark, first = np.empty(1, np.int64), 0
    for b in range(len(lengths)):
        n = lengths[b]
        if n + 1 > len(mark):
            mark = np.empty(2 * (n + 1), np.int64)
        own = heads[first : first + n + 1]
        for m in range(1, n + 1):
            if own[m] < 0:
                return b
        if not tree_in_class(own, False, False, mark[: n + 1]):
            return b
        first += n + 1
    return -1


@kernel
def _is_head_outside(lengths: Ints, heads: Ints) -> bool:
    first = 0
    for n in lengths:
        for m in range(first, first + n):
            if heads[m] < 0 or heads[m] > n:
                return True
        first += n
    return False


@kernel
def _insert(size: int, lengths: Ints, symbols: Ints, heads: Ints) -> tuple[Ints, Ints, Floats]:
    """The nodes in the order in which they are first met, roots first: parent, symbol and through of each.

    Nodes and hash table grow as they fill: there are far fewer prefixes than words, and small tables stay in the cache.
    """
    nodes = 2 * size
    room, slots = nodes, 16
    parents, labels, through = np.full(room, -1), np.zeros(room, np.int64), np.zeros(room)
    table = np.full((slots, 2), _EMPTY)  # an edge, as the number of parent and symbol, and its child
    at = np.empty((1, 2), np.int64)  # where each half of each head stands
    words = np.zeros(size)
    first = 0
    for n in lengths:
        if nodes + n > room:
            room = 2 * (nodes + n)
            parents, labels, through = _grown(parents, room), _grown(labels, room), _grown(through, room)
        if 2 * room > slots:
            while 2 * room > slots:
                slots *= 2
            table = _hashed(parents[:nodes], labels[:nodes], size, slots)
        if n + 1 > len(at):
            at = np.empty((2 * (n + 1), 2), np.int64)
        word, head = symbols[first : first + n], heads[first : first + n]
        at[0, 0], at[0, 1] = 0, 1
        words[0] += 1
        for h in range(1, n + 1):
            at[h, 0], at[h, 1] = 2 * word[h - 1], 2 * word[h - 1] + 1
            words[word[h - 1]] += 1
        for d in range(2):
            for step in range(n):
                m = n - step if d == 0 else step + 1  # left modifiers come from right to left
                h = head[m - 1]
                if (m < h) != (d == 0):
                    continue
                edge = at[h, d] * size + word[m - 1]
                slot = (edge * MIX >> 32) & (slots - 1)
                while table[slot, 0] != edge and table[slot, 0] != _EMPTY:
                    slot = (slot + 1) & (slots - 1)
                if table[slot, 0] == _EMPTY:
                    table[slot, 0], table[slot, 1] = edge, nodes
                    parents[nodes], labels[nodes] = at[h, d], word[m - 1]
                    nodes += 1
                child = table[slot, 1]
                through[child] += 1
                at[h, d] = child
        first += n
    for symbol in range(size):
        through[2 * symbol] = through[2 * symbol + 1] = words[symbol]
    return parents[:nodes], labels[:nodes], through[:nodes]


@kernel
def _by_tree(size: int, parents: Ints, labels: Ints, through: Floats) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """The same nodes sorted by tree, otherwise in their order: starts, parents, symbols, through and ends."""
    trees, counts = np.empty(len(parents), np.int64), np.zeros(2 * size + 1, np.int64)
    for x in range(len(parents)):
        trees[x] = x if parents[x] < 0 else trees[parents[x]]
        counts[trees[x] + 1] += 1
    starts = np.cumsum(counts)
    free, place = starts.copy(), np.empty(len(parents), np.int64)
    above, symbols, passing = np.empty_like(parents), np.empty_like(labels), np.empty_like(through)
    ends = np.zeros_like(through)
    for x in range(len(parents)):
        y = free[trees[x]]
        free[trees[x]] += 1
        place[x], symbols[y], passing[y] = y, labels[x], through[x]
        ends[y] += through[x]
        above[y] = -1
        if parents[x] >= 0:  # it stands before its child in either order
            above[y] = place[parents[x]]
            ends[above[y]] -= through[x]
    return starts, above, symbols, passing, ends


@part
def _grown(values: np.ndarray, room: int) -> np.ndarray:
    """The same values with zeros behind them."""
    grown = np.zeros(room, values.dtype)
    grown[: len(values)] = values
    return grown


@part
def _hashed(parents: Ints, labels: Ints, size: int, slots: int) -> Ints:
    """The hash table of the edges to all nodes but the roots."""
    table = np.full((slots, 2), _EMPTY)
    for child in range(2 * size, len(parents)):
        edge = parents[child] * size + labels[child]
        slot = (edge * MIX >> 32) & (slots - 1)
        while table[slot, 0] != _EMPTY:
            slot = (slot + 1) & (slots - 1)
        table[slot, 0], table[slot, 1] = edge, child
    return table


@kernel
def _depths(parents: Ints) -> Ints:
    depths = np.zeros(len(parents), np.int64)
    for node in range(len(parents)):
        if parents[node] >= 0:
            depths[node] = depths[parents[node]] + 1
    return depths
