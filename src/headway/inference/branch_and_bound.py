"""Branch and bound: what dual decomposition leaves open, finished (`dual_decomposition` says how).

Depth first. A level has the multipliers, the required and forbidden arcs and the bound of one open branch, the arc it
was split on, and how many of its two halves were begun.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Bools, Floats, Ints
from headway.inference.dual_descent import AGREED, IMPOSSIBLE, LIMIT, is_closed, steps_from
from headway.inference.head_automata import Automata
from headway.inference.jit import kernel, part

_IN_A_BRANCH = 100  # steps


@kernel
def branch(
    automata: Automata,
    n: int,
    projective: bool,
    single_root: bool,
    budget: int,
    stop: Bools,
    best: float,
    bound: float,
    root_u: Floats,
    root_v: Floats,
    root_disputes: Floats,
    heads: Ints,
) -> tuple[int, int, float, float]:
    """Outcome, steps, best score, bound; starts from the best tree known and the root's multipliers.

    `heads` is that tree, and is improved.
    """
    arcs = len(root_u)
    u, v, disputes = root_u.copy(), root_v.copy(), root_disputes.copy()
    room = 16
    multipliers, decided = np.empty((room, 2, arcs)), np.empty((room, 2, arcs), np.bool_)
    bounds, split, begun = np.empty(room), np.empty(room, np.int64), np.zeros(room, np.int64)
    none, no_counts = np.empty(0), np.empty(0, np.int64)
    multipliers[0, 0], multipliers[0, 1] = u, v
    decided[0, 0], decided[0, 1] = True, False
    bounds[0], begun[0] = bound, 0
    split[0] = _most_disputed(disputes, decided[0, 0], decided[0, 1])
    depth, spent = 0, 0
    allowed, required = np.empty(arcs, np.bool_), np.empty(arcs, np.bool_)
    while depth >= 0:
        if begun[depth] == 2 or is_closed(bounds[depth], best):
            depth -= 1
            continue
        if spent >= budget or stop[0]:
            open_bound = best
            for level in range(depth + 1):
                if begun[level] < 2:
                    open_bound = max(open_bound, bounds[level])
            return LIMIT, spent, best, open_bound
        arc = split[depth]
        in_best = heads[automata.candidates.modifiers[arc]] == automata.candidates.heads[arc]
        take = in_best == (begun[depth] == 0)
        begun[depth] += 1
        allowed[:], required[:] = decided[depth, 0], decided[depth, 1]
        if not _decide(automata, arc, take, allowed, required):
            continue
        u[:], v[:] = multipliers[depth, 0], multipliers[depth, 1]
        limit = min(_IN_A_BRANCH, budget - spent)
        outcome, steps, best, below = steps_from(
            automata, n, projective, single_root, True, limit, True, stop, best, u, v, allowed, required, disputes,
            heads, none, none, no_counts,
        )  # fmt: skip
        spent += steps
        if outcome != LIMIT:
            continue
        depth += 1
        if depth == room:
            multipliers = np.concatenate((multipliers, np.empty((room, 2, arcs))))
            decided = np.concatenate((decided, np.empty((room, 2, arcs), np.bool_)))
            bounds = np.concatenate((bounds, np.empty(room)))
            split, begun = np.concatenate((split, split)), np.concatenate((begun, begun))
            room *= 2
        multipliers[depth, 0], multipliers[depth, 1] = u, v
        decided[depth, 0], decided[depth, 1] = allowed, required
        bounds[depth], begun[depth] = min(below, bounds[depth - 1]), 0
        split[depth] = _most_disputed(disputes, allowed, required)
    return AGREED if best > -np.inf else IMPOSSIBLE, spent, best, best


@part
def _most_disputed(disputes: Floats, allowed: Bools, required: Bools) -> int:
    """The undecided arc on which y and z disagreed most often."""
    worst, most = -1, -1.0
    for a in range(len(disputes)):
        if allowed[a] and not required[a] and disputes[a] > most:
            worst, most = a, disputes[a]
    return worst


@part
def _decide(automata: Automata, arc: int, take: bool, allowed: Bools, required: Bools) -> bool:
    """Require the arc, which forbids its modifier's others, or forbid it; False if its modifier is left without."""
    these = automata.candidates
    m = these.modifiers[arc]
    left, only = 0, -1
    for entry in range(these.enters[m], these.enters[m + 1]):
        a = these.entering[entry]
        if (a != arc) == take:
            allowed[a] = False
        if allowed[a]:
            left, only = left + 1, a
    if left == 1:
        required[only] = True
    return left > 0
