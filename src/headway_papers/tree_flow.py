"""Spanning trees as flow along arcs (Martins, Smith and Xing 2009, section 3).

z_a says whether arc a is in the tree: 0 <= z <= 1, one head per word and, single-root, one arc from the root. That
everything hangs together is said by flow from the root:

* single-commodity: the root sends n units, every word keeps one, and flow_a <= n z_a. O(A) variables.
* multi-commodity: for every word k one unit goes from the root to k, and flow^k_a <= z_a. O(nA) variables, and z is
  then in the convex hull of the trees: by max-flow and min-cut, every set of words is entered by arcs of weight 1 at
  least, and these are the facets of the arborescence polytope. Single-root trees are one of its faces.

With whole z, either leaves nothing but trees. Columns: z is 0 .. A-1, the flow is wherever `first` says, commodity by
commodity.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Floats, Ints
from headway.inference.candidates import Candidates
from headway_papers.linear_program import Rows, each


def flow_columns(these: Candidates, multi: bool) -> int:
    """How many columns the flow has."""
    return len(these.heads) * (these.n if multi else 1)


def tree_rows(these: Candidates, first: int, *, multi: bool, single_root: bool) -> list[Rows]:
    """One head a word, one root if asked for, and the flow."""
    demand = np.eye(these.n) if multi else np.ones((1, these.n))
    roots = [_sum_to_one(np.arange(these.sides[2]))] if single_root else []
    return [_one_head(these), *roots, *_flow(these, first, demand, 1.0 if multi else float(these.n))]


def _one_head(these: Candidates) -> Rows:
    arcs, ones = len(these.heads), np.ones(these.n)
    return Rows(these.modifiers - 1, np.arange(arcs), np.ones(arcs), ones, ones)


def _sum_to_one(columns: Ints) -> Rows:
    return Rows(np.zeros(len(columns), np.int64), columns, np.ones(len(columns)), np.ones(1), np.ones(1))


def _flow(these: Candidates, first: int, demand: Floats, capacity: float) -> list[Rows]:
    """demand (K, n): what each word keeps of each of K commodities; no more than capacity z on an arc."""
    commodities, n = demand.shape
    arcs = len(these.heads)
    flow = first + np.arange(commodities * arcs)
    above = np.repeat(np.arange(commodities), arcs) * n - 1
    arc, head, modifier = (np.tile(x, commodities) for x in (np.arange(arcs), these.heads, these.modifiers))
    onwards = head > 0
    kept = Rows(
        np.concatenate([above + modifier, (above + head)[onwards]]),
        np.concatenate([flow, flow[onwards]]),
        np.concatenate([np.ones(len(flow)), -np.ones(onwards.sum())]),
        demand.ravel(),
        demand.ravel(),
    )
    return [kept, each([flow, arc], [1.0, -capacity], -np.inf, 0.0)]
