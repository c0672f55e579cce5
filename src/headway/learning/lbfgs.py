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

from headway.arrays import Floats, dot
from headway.errors import CheckpointError
from headway.learning.line_search import Objective, Point, Wolfe, search_along
from headway.learning.progress import State

_PAIRS = 6
_WOLFE = Wolfe(decrease=1e-3, curvature=0.9, width=0.1, trials=20)
_LEAST_CURVATURE = float(np.finfo(np.float64).eps)  # of a pair: what is less may be rounding, and no curvature


def lbfgs_memory(size: int) -> State:
    """The pairs, none yet."""
    return {"moves": np.zeros((_PAIRS, size)), "changes": np.zeros((_PAIRS, size)), "pairs": np.zeros(1, np.int64)}


def lbfgs(objective: Objective, at: Point, state: State) -> Iterator[Point]:
    """The points that the steps lead to, each lower than the one before. The memory in `state` changes with them."""
    _check_pairs(state)
    while True:
        pairs = int(state["pairs"][0])
        direction = _direction(at.gradient, state["moves"][:pairs], state["changes"][:pairs])
        first = 1.0 if pairs else 1.0 / max(sqrt(dot(direction, direction)), 1e-300)
        found = search_along(objective, at, direction, first, _WOLFE)
        if found is None and not pairs:
            return
        if found is None:
            state["pairs"] = np.zeros(1, np.int64)
            continue
        _remember(state, found.weights - at.weights, found.gradient - at.gradient, at.gradient)
        at = found
        yield at


def _check_pairs(state: State) -> None:
    """A checkpoint may hold anything."""
    pairs = int(state["pairs"][0])
    if not 0 <= pairs <= _PAIRS:
        raise CheckpointError(f"it has {pairs} pairs of L-BFGS; there are {_PAIRS} at most")
    if any(not dot(*pair) > 0 for pair in zip(state["moves"][:pairs], state["changes"][:pairs], strict=True)):
        raise CheckpointError("a pair of L-BFGS has no curvature")


def _direction(gradient: Floats, moves: Floats, changes: Floats) -> Floats:
    """-H g."""
    direction = -gradient
    curvatures = [dot(move, change) for move, change in zip(moves, changes, strict=True)]
    shares = np.zeros(len(moves))
    for i in reversed(range(len(moves))):
        shares[i] = dot(moves[i], direction) / curvatures[i]
        direction -= shares[i] * changes[i]
    if len(moves):
        direction *= curvatures[-1] / dot(changes[-1], changes[-1])
    for i in range(len(moves)):
        direction += (shares[i] - dot(changes[i], direction) / curvatures[i]) * moves[i]
    return direction


def _remember(state: State, move: Floats, change: Floats, gradient: Floats) -> None:
    """Add a pair, in the place of the oldest if there are enough; one without curvature is left out."""
    if dot(move, change) <= _LEAST_CURVATURE * -dot(move, gradient):
        return
    pairs, moves, changes = int(state["pairs"][0]), state["moves"], state["changes"]
    if pairs == len(moves):
        moves[:-1], changes[:-1] = moves[1:], changes[1:]
        pairs -= 1
    moves[pairs], changes[pairs] = move, change
    state["pairs"] = np.array([pairs + 1])
