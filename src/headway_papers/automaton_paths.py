"""The head automata as flow: what a head takes on a side is a path from START to END (koo2010 sections 3 and 5).

A head's *way* is one candidate head g of its own (grand-sibling models), or the only way there is (sibling models, and
the root). Every transition of an automaton, that is every cell of its table in `head_automata`, has a variable t; on
each side of each way they carry flow from START through the arcs taken to END. Nothing goes straight from START to END:
a side without children scores 0, and is what START does not send.

    at arc j of a way:    sum_i t[way, i, j]  =  sum_k t[way, j, k]            what comes in goes on
    for arc j:            sum over ways, i of t[way, i, j]  =  z_j             arcs are taken as the tree has them
    at START of a side:   sum_j t[way, START, j]  <=  z_gh, or 1               a way has what its arc from g has

For given g these are two path polytopes, whose corners are paths. The ways are scaled by their z_gh, which sum to 1, so
that together they are the convex hull of the union over g. Hence the rows describe, for every head, exactly the convex
hull of what its automaton can do. Together with the convex hull of the trees (`tree_flow`, multi-commodity) that is the
relaxation of dual decomposition: its best value is the least L.

Columns: z is 0 .. A-1, then t, a column each cell of `Automata.table`. Rows: O(arcs x ways of their heads).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headway.arrays import Ints
from headway.inference.head_automata import Automata
from headway.inference.jit import kernel
from headway_papers.linear_program import Rows


class Transitions(NamedTuple):
    """The automata of C cells as a graph of stops, one for each arc of each way; and where sides begin."""

    leaves: Ints  # (C,) the stop a transition leaves; -1 for START
    reaches: Ints  # (C,) the stop it reaches; -1 for END
    begins: Ints  # (C,) the side whose START it leaves; -1 for a stop
    arcs: Ints  # (stops,) the arc that is taken there
    above: Ints  # (sides,) the arc from g; -1 where there is no g


def path_rows(automata: Automata) -> list[Rows]:
    """The three kinds of rows."""
    graph = _transitions(automata)
    cells = len(automata.candidates.heads) + np.arange(len(automata.table))
    coming, going, starting = graph.reaches >= 0, graph.leaves >= 0, graph.begins >= 0
    arcs, stops = np.arange(len(automata.candidates.heads)), len(graph.arcs)
    goes_on = Rows(
        np.concatenate([graph.reaches[coming], graph.leaves[going]]),
        np.concatenate([cells[coming], cells[going]]),
        np.repeat([1.0, -1.0], [coming.sum(), going.sum()]),
        np.zeros(stops),
        np.zeros(stops),
    )
    taken = Rows(
        np.concatenate([graph.arcs[graph.reaches[coming]], arcs]),
        np.concatenate([cells[coming], arcs]),
        np.repeat([1.0, -1.0], [coming.sum(), len(arcs)]),
        np.zeros(len(arcs)),
        np.zeros(len(arcs)),
    )
    below = np.flatnonzero(graph.above >= 0)
    sent = Rows(
        np.concatenate([graph.begins[starting], below]),
        np.concatenate([cells[starting], graph.above[below]]),
        np.repeat([1.0, -1.0], [starting.sum(), len(below)]),
        np.full(len(graph.above), -np.inf),
        np.where(graph.above >= 0, 0.0, 1.0),
    )
    return [goes_on, taken, sent]


@kernel
def _transitions(automata: Automata) -> Transitions:
    these = automata.candidates
    nodes = len(these.enters) - 1
    stops, ways = 0, 0
    for h in range(nodes):
        mine = these.enters[h + 1] - these.enters[h] if automata.below_grandparent and h > 0 else 1
        stops += mine * (these.sides[2 * h + 2] - these.sides[2 * h])
        ways += mine
    leaves, reaches, begins = np.full((3, len(automata.table)), -1, np.int64)
    arcs, above = np.empty(stops, np.int64), np.full(2 * ways, -1, np.int64)
    cell, stop, begin = 0, 0, 0
    for h in range(nodes):
        below = automata.below_grandparent and h > 0
        for way in range(these.enters[h + 1] - these.enters[h] if below else 1):
            for side in (2 * h, 2 * h + 1):
                k = these.sides[side + 1] - these.sides[side]
                for j in range(k):
                    arcs[stop + j] = these.sides[side] + j
                    reaches[cell : cell + j + 1] = stop + j
                    begins[cell] = begin
                    for i in range(j):
                        leaves[cell + 1 + i] = stop + i
                    cell += j + 1
                for i in range(k):
                    leaves[cell + i] = stop + i
                if below:
                    above[begin] = these.entering[these.enters[h] + way]
                cell, stop, begin = cell + k, stop + k, begin + 1
    return Transitions(leaves, reaches, begins, arcs, above)
