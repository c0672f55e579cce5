"""L-BFGS (Liu and Nocedal 1989): Newton steps with a curvature gathered from the last few steps.

The direction is -H g, where H, never stored, is made of the last m moves s and changes y of the gradient by the
two-loop recursion, from H_0 = (s·y / y·y) I of the last pair: 4 m n operations. Where a step leads nowhere the pairs
are dropped, and the search starts again along -g; where that leads nowhere either, it ends.

Everything that the next step depends on is in the state, and sums have a fixed order: a training that resumes goes the
way that it would have gone, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from headway.arrays import Floats, add_scaled, dot
from headway.errors import CheckpointError
from headway.learning.line_search import Objective, Point, Wolfe, search_along
from headway.learning.progress import State

_PAIRS = 6
_WOLFE = Wolfe(decrease=1e-3, curvature=0.9, width=0.1, trials=20)
_LEAST_CURVATURE = float(np.finfo(np.float64).eps)  # of a pair: what is less may be rounding, and no curvature


def lbfgs_memory(size: int) -> State:
    """The pairs, none yet. Of `pairs` that were made, the last few are there, number i in row i modulo `_PAIRS`."""
    return {"moves": np.zeros((_PAIRS, size)), "changes": np.zeros((_PAIRS, size)), "pairs": np.zeros(1, np.int64)}


def lbfgs(objective: Objective, at: Point, state: State) -> Iterator[Point]:
    """The points that the steps lead to, each lower than the one before. The memory in `state` changes with them."""
    curvatures = _curvatures(state)
    direction, move, change = np.empty((3, len(at.weights)))  # made once: fresh pages cost more than the arithmetic
    while True:
        pairs = int(state["pairs"][0])
        _set_direction(direction, at.gradient, state, curvatures)
        first = 1.0 if pairs else 1.0 / max(sqrt(dot(direction, direction)), 1e-300)
        found = search_along(objective, at, direction, first, _WOLFE)
        if found is None and not pairs:
            return
        if found is None:
            state["pairs"] = np.zeros(1, np.int64)
            continue
        np.subtract(found.weights, at.weights, out=move)
        np.subtract(found.gradient, at.gradient, out=change)
        curvature = dot(move, change)
        if curvature > _LEAST_CURVATURE * -dot(move, at.gradient):
            row = pairs % _PAIRS
            state["moves"][row], state["changes"][row], curvatures[row] = move, change, curvature
            state["pairs"] = np.array([pairs + 1])
        at = found
        yield at


def _rows(state: State) -> list[int]:
    """Where the pairs are, the oldest first."""
    pairs = int(state["pairs"][0])
    return [number % _PAIRS for number in range(max(0, pairs - _PAIRS), pairs)]


def _curvatures(state: State) -> Floats:
    """s·y of the pair in each row. A checkpoint may hold anything."""
    if state["pairs"][0] < 0:
        raise CheckpointError(f"it has {state['pairs'][0]} pairs of L-BFGS")
    curvatures = np.zeros(_PAIRS)
    for row in _rows(state):
        curvatures[row] = dot(state["moves"][row], state["changes"][row])
        if not curvatures[row] > 0:
            raise CheckpointError("a pair of L-BFGS has no curvature")
    return curvatures


def _set_direction(direction: Floats, gradient: Floats, state: State, curvatures: Floats) -> None:
    """-H g."""
    moves, changes, rows = state["moves"], state["changes"], _rows(state)
    np.negative(gradient, out=direction)
    shares = np.zeros(_PAIRS)
    for row in reversed(rows):
        shares[row] = dot(moves[row], direction) / curvatures[row]
        add_scaled(direction, -shares[row], changes[row])
    if rows:
        last = changes[rows[-1]]
        direction *= curvatures[rows[-1]] / dot(last, last)
    for row in rows:
        add_scaled(direction, shares[row] - dot(changes[row], direction) / curvatures[row], moves[row])
