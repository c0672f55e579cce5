"""Non-projective parsing with head automata as one linear or integer program (koo2010 table 2).

The tree is flow from the root (`tree_flow`, after Martins, Smith and Xing 2009), and what every head takes is flow
through its automaton (`automaton_paths`); z, the arcs, is common to both.

* LP(S), "single": single-commodity flow.
* LP(M), "multi": multi-commodity flow. Trees and automata are then described by their convex hulls, as in dual
  decomposition: LP(M)'s value is the least bound that dual decomposition converges to, and where that finds a
  certificate the tree is an optimum of LP(M). LP(S) is never lower.
* ILP, "integer": z is 0 or 1; the best tree.

Where we differ: koo2010 takes the programs of Martins et al., who relax every part for itself, as a product of z's.
That is looser than the automata, so that the paper's LP(M) has fewer integral solutions than dual decomposition has
certificates; ours has at least as many.

Columns: z (A arcs), the transitions (C cells of the automata's tables), the flow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from headway.arrays import Floats, Ints, TreeClass
from headway.errors import NoTreeError
from headway.inference.batch import as_batch
from headway.inference.head_automata import GrandSiblingParts, SiblingParts
from headway.inference.part_counts import arcs_of_tree, count_parts
from headway.inference.spanning_tree import argmax
from headway.no_tree import no_tree_error
from headway.parallel import SERIAL
from headway_papers.automaton_paths import path_rows
from headway_papers.linear_program import Program, maximise, require_highspy, stack
from headway_papers.tree_flow import flow_columns, tree_rows

Relaxation = Literal["single", "multi", "integer"]

# z this near to 0 and 1 is a tree: HiGHS' own tolerance for integers.
_INTEGRAL = 1e-6


@dataclass(frozen=True)
class FlowSolution:
    """What the program says about the best tree.

    `heads` is the best spanning tree when the values of z are its scores, `score` what that tree scores under the parts
    (-inf if it has a forbidden one) and `bound` the program's value: no tree scores more. With `integral`, all of z is
    0 or 1 and the tree is optimal. A program stopped by the time limit is not `finished`: it is not integral, `bound`
    is what was proven until then (inf: nothing), and `heads` is None if no tree was found (`arcs` are then 0).
    """

    heads: Ints | None
    score: float
    bound: float
    integral: bool
    finished: bool
    arcs: Floats


def solve(
    parts: SiblingParts | GrandSiblingParts,
    *,
    relaxation: Relaxation = "integer",
    single_root: bool = True,
    time_limit: float | None = None,
    incumbent: Ints | None = None,
) -> FlowSolution:
    """The best tree (integer) or an upper bound on it (single, multi); `time_limit` is in seconds.

    `incumbent` is a tree to begin an integer program with; a good one spares HiGHS the search for it.

    >>> arcs = np.array([[0.0, 1.0, 3.0], [0.0, 0.0, 1.0], [0.0, 2.0, 0.0]])
    >>> solution = solve(SiblingParts.dense(arcs, np.zeros((3, 3, 3))))
    >>> solution.heads.tolist(), solution.score, solution.integral
    ([-1, 2, 0], 5.0, True)
    """
    require_highspy()
    these = parts.candidates
    if these.n == 0:
        return FlowSolution(np.array([-1]), 0.0, 0.0, True, True, np.zeros(0))
    arcs = len(these.heads)
    if arcs == 0:  # HiGHS calls a program without columns empty, whatever its rows ask for
        raise _no_tree(parts, single_root)
    start = None if incumbent is None else arcs_of_tree(these, incumbent)[0].astype(np.float64)
    found = maximise(_program(parts, relaxation, single_root), time_limit, start)
    if found.status == "infeasible":
        raise _no_tree(parts, single_root)
    if found.x is None:
        return FlowSolution(None, -np.inf, found.bound, False, False, np.zeros(arcs))
    z, finished = found.x[:arcs], found.status == "optimal"
    heads = _project(parts, z, single_root)
    integral = finished and bool((np.abs(z - np.rint(z)) <= _INTEGRAL).all())
    return FlowSolution(heads, _score(parts, heads), found.bound, integral, finished, z)


def _program(parts: SiblingParts | GrandSiblingParts, relaxation: Relaxation, single_root: bool) -> Program:
    these, automata = parts.candidates, parts.automata()
    arcs, cells, multi = len(these.heads), len(automata.table), relaxation == "multi"
    flows = flow_columns(these, multi)
    forbidden = np.isneginf(automata.table)
    return Program(
        np.concatenate([np.zeros(arcs), np.where(forbidden, 0.0, automata.table), np.zeros(flows)]),
        np.concatenate([np.ones(arcs), np.where(forbidden, 0.0, 1.0), np.full(flows, np.inf)]),
        stack([*path_rows(automata), *tree_rows(these, arcs + cells, multi=multi, single_root=single_root)]),
        whole=arcs if relaxation == "integer" else 0,
    )


def _score(parts: SiblingParts | GrandSiblingParts, heads: Ints) -> float:
    found = count_parts(parts.candidates, *arcs_of_tree(parts.candidates, heads), tuple(parts.by_kind))
    return float(np.concatenate([parts.arcs, *parts.by_kind.values()])[found > 0].sum())


def _project(parts: SiblingParts | GrandSiblingParts, z: Floats, single_root: bool) -> Ints:
    these = parts.candidates
    matrix = np.full((these.n + 1, these.n + 1), -np.inf)
    matrix[these.heads, these.modifiers] = np.where(np.isneginf(parts.arcs), -np.inf, z)
    heads, found = argmax(as_batch(matrix), single_root=single_root, executor=SERIAL)
    if not found[0]:  # LP(S) can have a solution where no single-root tree exists
        raise _no_tree(parts, single_root)
    tree: Ints = heads[0]
    return tree


def _no_tree(parts: SiblingParts | GrandSiblingParts, single_root: bool) -> NoTreeError:
    these = parts.candidates
    matrix = np.full((these.n + 1, these.n + 1), -np.inf)
    matrix[these.heads, these.modifiers] = parts.arcs
    return no_tree_error(matrix, TreeClass(projective=False, single_root=single_root), None)
