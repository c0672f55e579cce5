"""Linear and mixed-integer programs, solved by HiGHS (the extra `exact-programs`).

    maximise cost x    under    0 <= x <= most,    lower <= M x <= upper,    x_j whole for j < whole

The rows of M are put together from blocks of (row, column, value) entries, so that a polytope is written down where its
mathematics is, and rows are numbered once, by `stack`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from headway.arrays import Floats, Ints
from headway.errors import HeadwayError
from headway.extras import require_extra

if TYPE_CHECKING:
    import highspy


@dataclass(frozen=True)
class Rows:
    """lower <= M x <= upper, the entries of M as (row, column, value); entries of one cell are added."""

    row: Ints
    column: Ints
    value: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True)
class Program:
    """Maximise cost x, 0 <= x <= most, under the rows; the first `whole` columns are whole numbers."""

    cost: Floats
    most: Floats
    rows: Rows
    whole: int


@dataclass(frozen=True)
class Optimum:
    """How HiGHS ended, what no x can exceed (inf where nothing is proven), and its best x, if it has one."""

    status: Literal["optimal", "infeasible", "stopped"]
    bound: float
    x: Floats | None


def require_highspy() -> None:
    """Call this before hours of experiments, not after them."""
    require_extra("highspy", "exact-programs", "solving flow programs")


def each(columns: Sequence[Ints], values: Sequence[float], lower: float, upper: float) -> Rows:
    """As many rows as a column array has entries, all with the same values."""
    size = len(columns[0])
    return Rows(
        np.tile(np.arange(size), len(columns)),
        np.concatenate(columns),
        np.repeat(np.array(values), size),
        np.full(size, lower),
        np.full(size, upper),
    )


def stack(blocks: Sequence[Rows]) -> Rows:
    """The rows of all blocks, one block after the other."""
    sizes = np.array([len(block.lower) for block in blocks])
    offsets = np.cumsum(sizes) - sizes
    return Rows(
        np.concatenate([offset + block.row for offset, block in zip(offsets, blocks, strict=True)]),
        np.concatenate([block.column for block in blocks]),
        np.concatenate([block.value for block in blocks]),
        np.concatenate([block.lower for block in blocks]),
        np.concatenate([block.upper for block in blocks]),
    )


def maximise(program: Program, time_limit: float | None = None, incumbent: Floats | None = None) -> Optimum:
    """Solve it on one thread; `incumbent` has values for the whole columns, and HiGHS completes them.

    >>> rows = Rows(np.array([0, 0]), np.array([0, 1]), np.array([2.0, 2.0]), np.array([0.0]), np.array([3.0]))
    >>> maximise(Program(np.ones(2), np.ones(2), rows, whole=0)).bound
    1.5
    >>> maximise(Program(np.ones(2), np.ones(2), rows, whole=2)).bound
    1.0
    """
    require_highspy()
    import highspy

    solver = _solver(program, time_limit)
    if incumbent is not None:
        given = solver.setSolution(len(incumbent), np.arange(len(incumbent), dtype=np.int32), incumbent)
        if given != highspy.HighsStatus.kOk:
            raise HeadwayError("HiGHS does not take the incumbent; give a value for every whole column")
    if solver.run() == highspy.HighsStatus.kError:
        raise _refused()
    status, info = solver.getModelStatus(), solver.getInfo()
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        return Optimum("infeasible", -np.inf, None)
    finished = status == highspy.HighsModelStatus.kOptimal
    if not finished and status != highspy.HighsModelStatus.kTimeLimit:
        raise HeadwayError(f"HiGHS could not solve the program: {solver.modelStatusToString(status)}")
    if not finished and program.whole == 0:  # a linear program that was stopped has proven nothing
        return Optimum("stopped", np.inf, None)
    bound = info.mip_dual_bound if program.whole else info.objective_function_value
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Optimum("stopped", bound, None)
    return Optimum("optimal" if finished else "stopped", bound, np.array(solver.getSolution().col_value))


def _solver(program: Program, time_limit: float | None) -> highspy.Highs:
    """HiGHS with the program: silent, on one thread, and without its default gap of 1e-4 for integer programs."""
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
        (np.arange(columns) < program.whole).astype(np.int32),
    )
    if passed == highspy.HighsStatus.kError:
        raise _refused()
    return solver


def _refused() -> HeadwayError:
    return HeadwayError("HiGHS does not take the program; are there scores of 1e20 or more?")
