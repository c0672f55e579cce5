"""Non-projective parsing as a linear or an integer program (Martins, Smith and Xing 2009), solved by HiGHS (the extra
`exact-programs`).

z_a says whether arc a is in the tree: 0 <= z <= 1, one head per word and, single-root, one arc from the root. That
everything hangs together is said by flow along the arcs:

* LP(S), "single": the root sends n units, every word keeps one, and flow_a <= n z_a. O(A) variables.
* LP(M), "multi": for every word k one unit goes from the root to k, and flow^k_a <= z_a. O(nA) variables, and the
  arborescence polytope itself: without higher-order parts its corners are trees.
* ILP, "integer": z is 0 or 1; the trees themselves, whatever the flow.

Every higher-order part is a product of z's, p = 1 when all that it needs is there, and is relaxed on its own (the
numbering is that of `candidates`; i, j are two arcs of a side, k the arcs strictly between; START and END have no z,
so that one product loses a factor and k runs up to the head or to the end of the side):

    sibling pair      p <= z_i,  p <= z_j,  p <= 1 - z_k for every k,   p >= z_i + z_j - 1 - sum_k z_k
    grandparent       q <= z_gh, q <= z_hm,                             q >= z_gh + z_hm - 1
    grand-sibling     r <= z_gh, r <= p,                                r >= z_gh + p - 1

This is looser than the head automata of koo2010, which tie all pairs of a side together; koo2010's table 2 compares the
two. A variable that scores more than 0 is pushed up, one that scores less is pushed down, so only the rows on that side
are written; a pair's variable is also pushed by the grand-siblings made of it. A part that scores 0 needs no row. A
forbidden part (-inf) is fixed to 0 and has the rows below it.

Shapes: A arcs, P pairs, G grandparent parts, T grand-sibling parts; z, p, q, r and the flow are the columns, in that
order. O(parts) rows, but for the pairs: a side of k arcs has O(k^3) of p <= 1 - z_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from headway.arrays import Bools, Floats, Ints, TreeClass
from headway.errors import HeadwayError, NoTreeError
from headway.extras import require_extra
from headway.inference.batch import as_batch
from headway.inference.candidates import Candidates, starts_of
from headway.inference.head_automata import GrandSiblingParts, SiblingParts, arcs_of_tree, count_parts
from headway.inference.jit import kernel
from headway.inference.spanning_tree import argmax
from headway.no_tree import no_tree_error
from headway.parallel import SERIAL

if TYPE_CHECKING:
    import highspy

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


def require_highspy() -> None:
    """Call this before hours of experiments, not after them."""
    require_extra("highspy", "exact-programs", "solving flow programs")


def solve(
    parts: SiblingParts | GrandSiblingParts,
    *,
    relaxation: Relaxation = "integer",
    single_root: bool = True,
    time_limit: float | None = None,
) -> FlowSolution:
    """The best tree (integer) or an upper bound on it (single, multi); `time_limit` is in seconds.

    >>> arcs = np.array([[0.0, 1.0, 3.0], [0.0, 0.0, 1.0], [0.0, 2.0, 0.0]])
    >>> solution = solve(SiblingParts.dense(arcs, np.zeros((3, 3, 3))))
    >>> solution.heads.tolist(), solution.score, solution.integral
    ([-1, 2, 0], 5.0, True)
    """
    require_highspy()
    import highspy

    these = parts.candidates
    if these.n == 0:
        return FlowSolution(np.array([-1]), 0.0, 0.0, True, True, np.zeros(0))
    arcs = len(these.heads)
    if arcs == 0:  # HiGHS calls a program without columns empty, whatever its rows ask for
        raise _no_tree(parts, single_root)
    scores = _scores(parts)
    solver = _run(_program(parts, scores, relaxation, single_root), relaxation == "integer", arcs, time_limit)
    status, info = solver.getModelStatus(), solver.getInfo()
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        raise _no_tree(parts, single_root)
    finished = status == highspy.HighsModelStatus.kOptimal
    if not finished and status != highspy.HighsModelStatus.kTimeLimit:
        raise HeadwayError(f"HiGHS could not solve the flow program: {solver.modelStatusToString(status)}")
    # a linear program that was stopped has proven nothing: its value is that of no corner of the dual
    bound = info.mip_dual_bound if relaxation == "integer" else info.objective_function_value if finished else np.inf
    if not finished and (
        relaxation != "integer" or info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible
    ):
        return FlowSolution(None, -np.inf, bound, False, False, np.zeros(arcs))
    z = np.array(solver.getSolution().col_value[:arcs])
    heads = _project(parts, z, single_root)
    integral = finished and bool((np.abs(z - np.rint(z)) <= _INTEGRAL).all())
    return FlowSolution(heads, _score(parts, scores, heads), bound, integral, finished, z)


def _scores(parts: SiblingParts | GrandSiblingParts) -> Floats:
    """The scores of all parts in a row: arcs, then kind by kind."""
    return np.concatenate([parts.arcs, *parts.by_kind.values()])


def _score(parts: SiblingParts | GrandSiblingParts, scores: Floats, heads: Ints) -> float:
    found = count_parts(parts.candidates, *arcs_of_tree(parts.candidates, heads), tuple(parts.by_kind))
    return float(scores[found > 0].sum())


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


@dataclass(frozen=True)
class _Rows:
    """lower <= M x <= upper, the entries of M as (row, column, value)."""

    row: Ints
    column: Ints
    value: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True)
class _Program:
    """Maximise cost x, 0 <= x <= most, under the rows."""

    cost: Floats
    most: Floats
    rows: _Rows


def _run(program: _Program, integer: bool, arcs: int, time_limit: float | None) -> highspy.Highs:
    """HiGHS, after it has run: silent, on one thread, and without its default gap of 1e-4 for integer programs."""
    import highspy

    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    options: dict[str, bool | str | float] = {"output_flag": False, "parallel": "off", "mip_rel_gap": 0.0}
    if time_limit is not None:
        options["time_limit"] = time_limit
    for name, value in options.items():
        if solver.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise HeadwayError(f"HiGHS does not take {value!r} for its option {name}")
    rows, columns = program.rows, len(program.cost)
    order = np.argsort(rows.row, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows.row, minlength=len(rows.lower)))])
    whole = np.zeros(columns, np.int32)
    whole[:arcs] = int(integer)
    passed = solver.passModel(
        columns,
        len(rows.lower),
        len(order),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMaximize),
        0.0,
        program.cost,
        np.zeros(columns),
        program.most,
        rows.lower,
        rows.upper,
        starts.astype(np.int32),
        rows.column[order].astype(np.int32),
        rows.value[order],
        whole,
    )
    if passed == highspy.HighsStatus.kError or solver.run() == highspy.HighsStatus.kError:
        raise HeadwayError("HiGHS does not take the flow program; are there scores of 1e20 or more?")
    return solver


def _program(
    parts: SiblingParts | GrandSiblingParts, scores: Floats, relaxation: Relaxation, single_root: bool
) -> _Program:
    these = parts.candidates
    n, arcs, parted = these.n, len(these.heads), len(scores)
    blocks = [_one_head(these)]
    if single_root:
        blocks.append(_row(np.arange(these.sides[2]), 1.0, 1.0))
    blocks += _parts(parts, scores)
    if relaxation == "multi":
        blocks += _flow(these, parted, np.eye(n), 1.0)
    else:
        blocks += _flow(these, parted, np.ones((1, n)), float(n))
    flows = arcs * (n if relaxation == "multi" else 1)
    return _Program(
        np.concatenate([np.where(np.isneginf(scores), 0.0, scores), np.zeros(flows)]),
        np.concatenate([np.where(np.isneginf(scores), 0.0, 1.0), np.full(flows, np.inf)]),
        _stack(blocks),
    )


def _one_head(these: Candidates) -> _Rows:
    arcs, ones = len(these.heads), np.ones(these.n)
    return _Rows(these.modifiers - 1, np.arange(arcs), np.ones(arcs), ones, ones)


def _flow(these: Candidates, first: int, demand: Floats, capacity: float) -> list[_Rows]:
    """demand (K, n): what each word keeps of each of K commodities; no more than capacity z on an arc."""
    commodities, n = demand.shape
    arcs = len(these.heads)
    flow = first + np.arange(commodities * arcs)
    above = np.repeat(np.arange(commodities), arcs) * n - 1
    arc, head, modifier = (np.tile(x, commodities) for x in (np.arange(arcs), these.heads, these.modifiers))
    onwards = head > 0
    kept = _Rows(
        np.concatenate([above + modifier, (above + head)[onwards]]),
        np.concatenate([flow, flow[onwards]]),
        np.concatenate([np.ones(len(flow)), -np.ones(onwards.sum())]),
        demand.ravel(),
        demand.ravel(),
    )
    return [kept, _each([flow, arc], [1.0, -capacity], -np.inf, 0.0)]


def _parts(parts: SiblingParts | GrandSiblingParts, scores: Floats) -> list[_Rows]:
    """The products, kind by kind; only the rows that something pushes against.

    What sits on a pair below a grandparent is a product with the pair's own variable, so pairs come first.
    """
    these, arcs = parts.candidates, len(parts.arcs)
    pairs = arcs + len(parts.siblings)
    above, below = scores > 0.0, scores < 0.0
    blocks, first = [], pairs
    for kind, values in parts.by_kind.items():
        if not kind.below_grandparent:
            continue
        entering, place = _copies(these, kind.on_pairs).T
        own = slice(first, first + len(values))
        if kind.on_pairs:
            place = arcs + place
            above[place[above[own]]] = True
            below[place[below[own]]] = True
        blocks += _products(np.arange(own.start, own.stop), entering, place, above[own], below[own])
        first = own.stop
    return [*_pairs(these, above[arcs:pairs], below[arcs:pairs]), *blocks]


def _pairs(these: Candidates, above: Bools, below: Bools) -> list[_Rows]:
    pair = len(these.heads) + np.arange(these.pairs[-1])
    members = _pair_members(these)
    blocks = []
    for arc in (members[:, 0], members[:, 1]):
        chosen = above & (arc >= 0)
        blocks.append(_each([pair[chosen], arc[chosen]], [1.0, -1.0], -np.inf, 0.0))
    owner, between = _between(members[above])
    blocks.append(_each([pair[above][owner], between], [1.0, 1.0], -np.inf, 1.0))

    pair, members = pair[below], members[below]
    owner, between = _between(members)
    row, side = np.nonzero(members[:, :2] >= 0)
    none = np.full(len(pair), np.inf)
    blocks.append(
        _Rows(
            np.concatenate([np.arange(len(pair)), row, owner]),
            np.concatenate([pair, members[row, side], between]),
            np.concatenate([np.ones(len(pair)), -np.ones(len(row)), np.ones(len(owner))]),
            1.0 - np.bincount(row, minlength=len(pair)).astype(np.float64),
            none,
        )
    )
    return blocks


def _products(product: Ints, left: Ints, right: Ints, above: Bools, below: Bools) -> list[_Rows]:
    return [
        _each([product[above], left[above]], [1.0, -1.0], -np.inf, 0.0),
        _each([product[above], right[above]], [1.0, -1.0], -np.inf, 0.0),
        _each([product[below], left[below], right[below]], [1.0, -1.0, -1.0], -1.0, np.inf),
    ]


def _between(members: Ints) -> tuple[Ints, Ints]:
    """The arcs strictly between the two of a pair: (pair, arc) for each."""
    count = members[:, 3] - members[:, 2]
    owner = np.repeat(np.arange(len(members)), count)
    return owner, members[owner, 2] + np.arange(len(owner)) - (np.cumsum(count) - count)[owner]


def _row(columns: Ints, lower: float, upper: float) -> _Rows:
    """One row, the sum of these columns."""
    size = len(columns)
    return _Rows(np.zeros(size, np.int64), columns, np.ones(size), np.array([lower]), np.array([upper]))


def _each(columns: Sequence[Ints], values: Sequence[float], lower: float, upper: float) -> _Rows:
    """As many rows as a column array has entries, all with the same values."""
    size = len(columns[0])
    return _Rows(
        np.tile(np.arange(size), len(columns)),
        np.concatenate(columns),
        np.repeat(np.array(values), size),
        np.full(size, lower),
        np.full(size, upper),
    )


def _stack(blocks: list[_Rows]) -> _Rows:
    sizes = np.array([len(block.lower) for block in blocks])
    offsets = np.cumsum(sizes) - sizes
    return _Rows(
        np.concatenate([offset + block.row for offset, block in zip(offsets, blocks, strict=True)]),
        np.concatenate([block.column for block in blocks]),
        np.concatenate([block.value for block in blocks]),
        np.concatenate([block.lower for block in blocks]),
        np.concatenate([block.upper for block in blocks]),
    )


@kernel
def _pair_members(these: Candidates) -> Ints:
    """(P, 4) the two arcs of a pair (-1: START or END), and where the arcs between them begin and end."""
    members = np.empty((these.pairs[-1], 4), np.int64)
    p = 0
    for side in range(len(these.sides) - 1):
        first, last = these.sides[side], these.sides[side + 1]
        for j in range(first, last):
            for i in range(first - 1, j):
                members[p] = (i if i >= first else -1, j, i + 1, j)
                p += 1
        for i in range(first, last):
            members[p] = (i, -1, i + 1, last)
            p += 1
    return members


@kernel
def _copies(these: Candidates, on_pairs: bool) -> Ints:
    """(Q, 2) for each arc that enters a head, and each arc or pair of this head: both their numbers."""
    places = these.pairs if on_pairs else these.sides
    copies = np.empty((starts_of(these, on_pairs, True)[-1], 2), np.int64)
    q = 0
    for h in range(len(these.enters) - 1):
        for entry in range(these.enters[h], these.enters[h + 1]):
            for place in range(places[2 * h], places[2 * h + 2]):
                copies[q] = (these.entering[entry], place)
                q += 1
    return copies
