"""Conjugate gradient for any smooth objective, by Polak and Ribière, as koo2007 trains log-linear models.

Each direction is -g + beta d, with d the last one and beta = max(0, g·(g - g') / g'·g'), g' the gradient before. Where
that does not lead down steeply enough, or leads nowhere, it starts again along -g.

Everything that the next step depends on is in the state, and sums have a fixed order, as in `lbfgs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from headway.arrays import dot
from headway.learning.line_search import Objective, Point, Wolfe, search_along
from headway.learning.progress import State

_WOLFE = Wolfe(decrease=1e-4, curvature=0.4, width=1e-14, trials=100)
_STEEP = 0.01  # the least slope of a direction, as a share of the steepest


def conjugate_memory(size: int) -> State:
    """The last direction, and the objective before it was taken; none yet."""
    return {"direction": np.zeros(size), "before": np.zeros(1)}


def conjugate_gradient(objective: Objective, at: Point, state: State) -> Iterator[Point]:
    """The points that the steps lead to, each lower than the one before. The memory in `state` changes with them."""
    while True:
        square = dot(at.gradient, at.gradient)
        direction, before = state["direction"], float(state["before"][0])
        if dot(at.gradient, direction) > -_STEEP * square or not direction.any():
            direction, before = -at.gradient, at.value + sqrt(square) / 2
        slope = dot(at.gradient, direction)
        first = min(1.0, 2.02 * (at.value - before) / slope) if slope else 1.0
        found = search_along(objective, at, direction, first, _WOLFE)
        if found is None and np.array_equal(direction, -at.gradient):
            return
        if found is None:
            state["direction"] = np.zeros_like(direction)
            continue
        beta = max(0.0, dot(found.gradient - at.gradient, found.gradient) / square)
        state["direction"], state["before"] = beta * direction - found.gradient, np.array([at.value])
        at = found
        yield at
