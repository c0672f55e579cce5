"""Head automata: the best modifiers of each head on its own, over the arcs that pruning left (koo2010 sections 3, 5).

The score of a tree is a sum over heads h of f_h(modifiers of h), read outwards from h on either side:

* `SiblingParts` (example 1): arcs and adjacent siblings (h, s, m), with START before the first child and END after the
  last. O(k^2) for a head with k candidate modifiers.
* `GrandSiblingParts` (example 3): also grandparents (g, h, m), and grand-siblings (g, h, s, m) where they are given.
  The automaton tries every candidate head g of h: O(e k^2) with e of them.
* `StateParts` (example 2): the automaton has S states; taking m in state s to get to t scores transitions[m, s, t],
  and stopping on a side in state s scores `final`. START is state 0. O(k S^2). Where the paper has one END state and
  leaves the side without modifiers open, `final` says for every state, START included, what stopping there is worth.

A side without children scores 0 in the first two. The parts of an automaton are folded into one table per head, with
a row for each candidate g:

    table[g, (s, m)] = (1 - alpha) arc(h, m) + sibling(h, s, m) + grandparent(g, h, m) + grand_sibling(g, h, s, m)

(alpha is what dual decomposition keeps on the side of the tree), from which the automaton subtracts its multipliers,
u(h, m) for taking m and v(g, h) for standing below g:

    V[j] = max over i before j:  V[i] + table[g, (i, j)] - u[j]

Arcs can be forbidden or required while it runs; between two neighbours i, j there is then no required arc.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Bools, Floats, Ints
from headway.errors import ScoresError, ShapeError
from headway.inference.batch import LARGEST_SCORE, as_batch, as_floats, as_scores
from headway.inference.candidates import Candidates, candidates, rank_above
from headway.inference.jit import kernel, part
from headway.inference.parts import GRAND_SIBLINGS, GRANDPARENTS, SIBLINGS, PartKind, places, starts_in_a_row


class Automata(NamedTuple):
    """The automata of one sentence, as the kernels take them."""

    candidates: Candidates
    share: Floats  # (A,) alpha times the arcs' scores: the tree's side
    tables: Ints  # (n+2,) where a head's table begins
    table: Floats
    final: Floats  # (2n+2, S), by side
    states: int  # 0: states are the siblings themselves
    below_grandparent: bool  # whether a table has a row for each arc that enters its head


@dataclass(frozen=True)
class SiblingParts:
    """Scores of arcs (A,) and of sibling pairs (P,), numbered as in `candidates`."""

    candidates: Candidates
    arcs: Floats
    siblings: Floats

    @classmethod
    def dense(cls, arcs: ArrayLike, siblings: ArrayLike) -> SiblingParts:
        """From arcs [h, m] and siblings [h, s, m], where s == h is START and m == h is END; -inf forbids.

        >>> parts = SiblingParts.dense(np.zeros((4, 4)), np.zeros((4, 4, 4)))
        >>> len(parts.arcs), len(parts.siblings)
        (9, 23)
        """
        these, kept = _kept_arcs(arcs)
        return cls(these, kept, _gather(siblings, SIBLINGS, these))

    @property
    def by_kind(self) -> dict[PartKind, Floats]:
        """The scores of the parts beside arcs."""
        return {SIBLINGS: self.siblings}

    def automata(self, alpha: float = 0.0) -> Automata:
        """The tables, with a share alpha of the arcs' scores left to the tree."""
        return _automata(self.candidates, alpha, self.arcs, self.by_kind)


@dataclass(frozen=True)
class GrandSiblingParts:
    """Scores of arcs (A,), sibling pairs (P,), grandparent parts (G,), and grand-sibling parts (T,) or none."""

    candidates: Candidates
    arcs: Floats
    siblings: Floats
    grandparents: Floats
    grand_siblings: Floats

    @classmethod
    def dense(
        cls, arcs: ArrayLike, siblings: ArrayLike, grandparents: ArrayLike, grand_siblings: ArrayLike | None = None
    ) -> GrandSiblingParts:
        """From arcs [h, m], siblings [h, s, m], grandparents [g, h, m] and grand_siblings [g, h, s, m].

        >>> parts = GrandSiblingParts.dense(np.zeros((4, 4)), np.zeros((4, 4, 4)), np.zeros((4, 4, 4)))
        >>> len(parts.grandparents), len(parts.grand_siblings)
        (18, 0)
        """
        these, kept = _kept_arcs(arcs)
        return cls(
            these,
            kept,
            _gather(siblings, SIBLINGS, these),
            _gather(grandparents, GRANDPARENTS, these),
            np.zeros(0) if grand_siblings is None else _gather(grand_siblings, GRAND_SIBLINGS, these),
        )

    @property
    def by_kind(self) -> dict[PartKind, Floats]:
        """The scores of the parts beside arcs."""
        scores = {SIBLINGS: self.siblings, GRANDPARENTS: self.grandparents}
        return {**scores, GRAND_SIBLINGS: self.grand_siblings} if len(self.grand_siblings) else scores

    def automata(self, alpha: float = 0.0) -> Automata:
        """The tables, with a share alpha of the arcs' scores left to the tree."""
        return _automata(self.candidates, alpha, self.arcs, self.by_kind)


@dataclass(frozen=True)
class StateParts:
    """Scores of arcs (A,), of transitions (A, S, S) that take them, and of stopping, `final` (2n+2, S), by side."""

    candidates: Candidates
    arcs: Floats
    transitions: Floats
    final: Floats

    @classmethod
    def dense(cls, arcs: ArrayLike, transitions: ArrayLike, final: ArrayLike) -> StateParts:
        """From arcs [h, m], transitions [h, m, s, t] and final [h, side, s], side 0 being the left."""
        these, kept = _kept_arcs(arcs)
        taken, stopping = as_floats(transitions, "transitions"), as_floats(final, "final")
        nodes, states = these.n + 1, taken.shape[-1]
        if taken.shape != (nodes, nodes, states, states) or stopping.shape != (nodes, 2, states) or states == 0:
            raise ShapeError(
                f"transitions have shape {taken.shape} and final {stopping.shape}; expected ({nodes}, {nodes}, S, S), "
                f"[head, modifier, from, to], and ({nodes}, 2, S)"
            )
        chosen = np.ascontiguousarray(taken[these.heads, these.modifiers])
        _check_scores(chosen, "transitions")
        _check_scores(stopping, "final")
        return cls(these, kept, chosen, stopping.reshape(2 * nodes, states))

    def automata(self, alpha: float = 0.0) -> Automata:
        """The tables, with a share alpha of the arcs' scores left to the tree."""
        table = (self.transitions + (1.0 - alpha) * self.arcs[:, None, None]).ravel()
        none = np.zeros(self.candidates.n + 2, np.int64)
        states = self.final.shape[1]
        return Automata(self.candidates, alpha * self.arcs, none, table, self.final, states, False)


Parts = SiblingParts | GrandSiblingParts | StateParts


@kernel
def decode_heads(automata: Automata) -> tuple[float, Bools, Ints]:
    """argmax over Z: every head's best modifiers, whether or not they make a tree together.

    Returns the score, the arcs taken (A,), and for each head the arc it stands below (-1 where none is asked for).
    """
    these = automata.candidates
    arcs, nodes = len(these.heads), len(these.enters) - 1
    zero = np.zeros(arcs)
    allowed, required, taken = np.ones(arcs, np.bool_), np.zeros(arcs, np.bool_), np.zeros(arcs, np.bool_)
    above = np.full(nodes, -1, np.int64)
    value, back = work_for(these.sides, automata.states)
    total = 0.0
    for h in range(nodes):
        total += best_of_head(automata, h, zero, zero, allowed, required, value, back, taken, above)
    return total, taken, above


@part
def work_for(sides: Ints, states: int) -> tuple[Floats, Ints]:
    """Room for the values and the way back of the busiest head."""
    most = 0
    for h in range((len(sides) - 1) // 2):
        most = max(most, sides[2 * h + 2] - sides[2 * h])
    return np.empty((most + 1) * max(1, states)), np.empty((most + 1) * max(1, states), np.int64)


@part
def best_of_head(
    automata: Automata,
    h: int,
    u: Floats,
    v: Floats,
    allowed: Bools,
    required: Bools,
    value: Floats,
    back: Ints,
    taken: Bools,
    above: Ints,
) -> float:
    """The best score of head h; marks the arcs it takes and, with grandparents, the arc it stands below."""
    these = automata.candidates
    sides, table, states = these.sides, automata.table, automata.states
    first, middle, last = sides[2 * h], sides[2 * h + 1], sides[2 * h + 2]
    for a in range(first, last):
        taken[a] = False
    if states > 0:
        final = automata.final
        total = _best_states(table, final, 2 * h, states, first, middle, u, allowed, required, value, back, taken)
        return total + _best_states(
            table, final, 2 * h + 1, states, middle, last, u, allowed, required, value, back, taken
        )
    split = these.pairs[2 * h + 1] - these.pairs[2 * h]
    width = these.pairs[2 * h + 2] - these.pairs[2 * h]
    row = automata.tables[h]
    if not automata.below_grandparent or h == 0:
        left, left_end = _best_side(table, row, first, middle, first, u, allowed, required, value, back)
        right, right_end = _best_side(table, row + split, middle, last, first, u, allowed, required, value, back)
        _mark(left_end, first, first, back, taken)
        _mark(right_end, middle, first, back, taken)
        return left + right
    best = -np.inf
    for entry in range(these.enters[h], these.enters[h + 1]):
        arc = these.entering[entry]
        if allowed[arc]:
            left, left_end = _best_side(table, row, first, middle, first, u, allowed, required, value, back)
            right, right_end = _best_side(table, row + split, middle, last, first, u, allowed, required, value, back)
            total = left + right - v[arc]
            if total > best:
                best = total
                above[h] = arc
                for a in range(first, last):
                    taken[a] = False
                _mark(left_end, first, first, back, taken)
                _mark(right_end, middle, first, back, taken)
        row += width
    return best


@part
def _best_side(
    table: Floats,
    row: int,
    first: int,
    last: int,
    base: int,
    u: Floats,
    allowed: Bools,
    required: Bools,
    value: Floats,
    back: Ints,
) -> tuple[float, int]:
    """The best score of one side, and its last arc taken (first - 1 for none); `value` and `back` start at arc base."""
    start = first - 1
    nearest = start  # the last required arc so far: nothing reaches back behind it
    for j in range(first, last):
        best, before = -np.inf, start
        if allowed[j]:
            if nearest == start:
                best = table[row]
            for i in range(max(nearest, first), j):
                through = value[i - base] + table[row + 1 + i - first]
                if through > best:
                    best, before = through, i
            best -= u[j]
        value[j - base] = best
        back[j - base] = before
        if required[j]:
            nearest = j
        row += j - start
    best, before = 0.0 if nearest == start else -np.inf, start
    for i in range(max(nearest, first), last):
        through = value[i - base] + table[row + i - first]
        if through > best:
            best, before = through, i
    return best, before


@part
def _mark(end: int, first: int, base: int, back: Ints, taken: Bools) -> None:
    """Go back from a side's last arc."""
    while end >= first:
        taken[end] = True
        end = back[end - base]


@part
def _best_states(
    table: Floats,
    final: Floats,
    side: int,
    states: int,
    first: int,
    last: int,
    u: Floats,
    allowed: Bools,
    required: Bools,
    value: Floats,
    back: Ints,
    taken: Bools,
) -> float:
    """Viterbi over the states of one side; back[j, t] is the state before arc j was taken, or -1 where it was not."""
    for s in range(states):
        value[s] = 0.0 if s == 0 else -np.inf
    for j in range(first, last):
        old, new = (j - first) * states, (j - first + 1) * states
        for t in range(states):
            value[new + t] = -np.inf if required[j] else value[old + t]
            back[new + t] = -1
            if not allowed[j]:
                continue
            for s in range(states):
                through = value[old + s] + table[(j * states + s) * states + t] - u[j]
                if through > value[new + t]:
                    value[new + t] = through
                    back[new + t] = s
    end = (last - first) * states
    state, best = 0, -np.inf
    for s in range(states):
        if value[end + s] + final[side, s] > best:
            state, best = s, value[end + s] + final[side, s]
    for j in range(last - 1, first - 1, -1):
        before = back[(j - first + 1) * states + state]
        if before >= 0:
            taken[j] = True
            state = before
    return best


@part
def score_of_tree(automata: Automata, tree: Ints, in_tree: Bools, value: Floats, back: Ints) -> float:
    """The score of a tree, the tree's own share of the arcs included; `in_tree` (A,) marks its arcs."""
    these = automata.candidates
    heads, modifiers, sides, pairs = these.heads, these.modifiers, these.sides, these.pairs
    table, states = automata.table, automata.states
    total = 0.0
    for a in range(len(heads)):
        in_tree[a] = tree[modifiers[a]] == heads[a]
        if in_tree[a]:
            total += automata.share[a]
    if states > 0:
        nothing, ignored = np.zeros(len(heads)), np.zeros(len(heads), np.bool_)
        for side in range(len(sides) - 1):
            first, last = sides[side], sides[side + 1]
            total += _best_states(
                table, automata.final, side, states, first, last, nothing, in_tree, in_tree, value, back, ignored
            )
        return total
    for side in range(len(sides) - 1):
        h, first, last = side // 2, sides[side], sides[side + 1]
        row = automata.tables[h] + pairs[side] - pairs[2 * h]
        if automata.below_grandparent and h > 0:
            row += rank_above(these, tree[h], h) * (pairs[2 * h + 2] - pairs[2 * h])
        before = first - 1
        for j in range(first, last):
            if in_tree[j]:
                total += table[row + before - first + 1]
                before = j
            row += j - first + 1
        if before >= first:
            total += table[row + before - first]
    return total


def _automata(these: Candidates, alpha: float, arcs: Floats, by_kind: Mapping[PartKind, Floats]) -> Automata:
    scores = np.concatenate(list(by_kind.values()))
    return _fold(these, alpha, arcs, scores, *places(tuple(by_kind)))


@kernel
def _fold(
    these: Candidates, alpha: float, arcs: Floats, scores: Floats, on_pairs: Bools, below_grandparent: Bools
) -> Automata:
    """One table per head: what sits on an arc is added before what sits on a pair, kind by kind."""
    starts = starts_in_a_row(these, on_pairs, below_grandparent, 0)
    by_grandparent = bool(below_grandparent.any())
    nodes = len(these.enters) - 1
    tables = np.zeros(nodes + 1, np.int64)
    for h in range(nodes):
        rows = these.enters[h + 1] - these.enters[h] if by_grandparent and h > 0 else 1
        tables[h + 1] = tables[h] + rows * (these.pairs[2 * h + 2] - these.pairs[2 * h])
    table, on_arc = np.empty(tables[-1]), np.empty(len(arcs))
    for h in range(nodes):
        rows = these.enters[h + 1] - these.enters[h] if by_grandparent and h > 0 else 1
        first_arc, last_arc = these.sides[2 * h], these.sides[2 * h + 2]
        width, degree = these.pairs[2 * h + 2] - these.pairs[2 * h], last_arc - first_arc
        for r in range(rows):
            for a in range(first_arc, last_arc):
                on_arc[a] = (1.0 - alpha) * arcs[a]
            for k in range(len(starts)):
                if not on_pairs[k] and (h > 0 or not below_grandparent[k]):
                    start = starts[k, h] + (r * degree if below_grandparent[k] else 0)
                    for a in range(degree):
                        on_arc[first_arc + a] += scores[start + a]
            cell = tables[h] + r * width
            for side in (2 * h, 2 * h + 1):
                first, last = these.sides[side], these.sides[side + 1]
                for j in range(first, last):
                    for _ in range(first - 1, j):
                        table[cell] = on_arc[j]
                        cell += 1
                for _ in range(first, last):
                    table[cell] = 0.0
                    cell += 1
            cell = tables[h] + r * width
            for k in range(len(starts)):
                if on_pairs[k] and (h > 0 or not below_grandparent[k]):
                    start = starts[k, h] + (r * width if below_grandparent[k] else 0)
                    for p in range(width):
                        table[cell + p] += scores[start + p]
    return Automata(these, alpha * arcs, tables, table, np.zeros((0, 0)), 0, by_grandparent)


def _kept_arcs(arcs: ArrayLike) -> tuple[Candidates, Floats]:
    scores = as_batch(arcs).scores[0]
    these = candidates(scores > -np.inf)
    return these, scores[these.heads, these.modifiers]


def _gather(dense: ArrayLike, kind: PartKind, these: Candidates) -> Floats:
    """The cells of a dense array that the parts read; START and END are the head itself there."""
    array, expected = as_scores(dense, kind.name), (these.n + 1,) * len(kind.roles)
    if array.shape != expected:
        raise ShapeError(f"{kind.name} have shape {array.shape}; expected {expected}, [{', '.join(kind.roles)}]")
    nodes = kind.nodes(these)
    filled = np.where(nodes < 0, nodes[:, [kind.roles.index("h")]], nodes)
    found: Floats = np.ascontiguousarray(array[tuple(filled.T)])
    _check_scores(found, kind.name)
    return found


def _check_scores(scores: Floats, name: str) -> None:
    bad = scores[~((scores <= LARGEST_SCORE) & ((scores >= -LARGEST_SCORE) | np.isneginf(scores)))]
    if bad.size:
        raise ScoresError(f"{name} hold {bad[0]}; scores are finite, or -inf to forbid a part")
