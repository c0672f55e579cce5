"""The steps of dual decomposition: u and v go down the subgradient of L (`dual_decomposition` has the formulas).

A run ends when the tree and the automata agree, when the least L has met the best tree, when its steps are over, or
when it is told to stop. The same steps serve plain dual decomposition and the branches of `branch_and_bound`, where
some arcs are required or forbidden.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Bools, Floats, Ints
from headway.inference import projective_tree, span_chart, spanning_tree
from headway.inference.head_automata import Automata, best_of_head, score_of_tree, work_for
from headway.inference.heads import tree_in_class
from headway.inference.jit import kernel, part

# How a run ended.
LIMIT, AGREED, CLOSED, IMPOSSIBLE = 0, 1, 2, 3

_PAPER_STEPS = 200
# Steps without a lower L before the rate is halved, and the rate at which to end: at the root, and in a branch.
_PATIENCE, _PATIENCE_IN_A_BRANCH = 30, 8
_LEAST_RATE, _LEAST_RATE_IN_A_BRANCH = 1e-4, 0.02


@kernel
def descend(
    automata: Automata,
    n: int,
    projective: bool,
    single_root: bool,
    limit: int,
    lazy: bool,
    stop: Bools,
    u: Floats,
    v: Floats,
    disputes: Floats,
    heads: Ints,
    primal: Floats,
    dual: Floats,
    recomputed: Ints,
) -> tuple[int, int, float, float]:
    """Outcome, steps, best score, bound; fills the multipliers, the disputes, the heads and the trace."""
    if n == 0:
        return AGREED, 0, 0.0, 0.0
    allowed, required = np.ones(len(u), np.bool_), np.zeros(len(u), np.bool_)
    return steps_from(
        automata, n, projective, single_root, False, limit, lazy, stop, -np.inf, u, v, allowed, required, disputes,
        heads, primal, dual, recomputed,
    )  # fmt: skip


@part
def is_closed(bound: float, best: float) -> bool:
    """Whether no tree can be better than the best one known, up to rounding."""
    return bound <= best + 1e-11 * (1.0 + abs(best))


@part
def steps_from(
    automata: Automata,
    n: int,
    projective: bool,
    single_root: bool,
    in_a_branch: bool,
    limit: int,
    lazy: bool,
    stop: Bools,
    best: float,
    u: Floats,
    v: Floats,
    allowed: Bools,
    required: Bools,
    disputes: Floats,
    best_heads: Ints,
    primal: Floats,
    dual: Floats,
    recomputed: Ints,
) -> tuple[int, int, float, float]:
    """Subgradient steps from u, v until y = z, L <= best, or the limit: outcome, steps, best score, least L.

    `best` is the score of `best_heads`, known before; both are improved. u and v end where L was least. `disputes`
    counts how often y and z disagreed on an arc.
    """
    these = automata.candidates
    arc_heads, arc_modifiers, share = these.heads, these.modifiers, automata.share
    arcs = len(arc_heads)
    scores = np.full((n + 1, n + 1), -np.inf)
    _score_arcs(automata, u, v, allowed, scores)
    disputes[:] = 0.0
    value, back = work_for(these.sides, automata.states)
    taken, in_tree = np.zeros(arcs, np.bool_), np.zeros(arcs, np.bool_)
    above = np.full(n + 1, -1, np.int64)
    tree, mark = np.full(n + 1, -1, np.int64), np.empty(n + 1, np.int64)
    stale, head_value = np.ones(n + 1, np.bool_), np.zeros(n + 1)
    enter, via = np.empty((n + 1, n + 1)), np.empty((n + 1, n + 1), np.int32)
    node_value, index = np.empty(2 * n + 2), np.empty((6, 2 * n + 2), np.int64)
    chart = np.empty((span_chart.CHART, n + 1, n + 1)) if projective else np.empty((span_chart.CHART, 0, 0))
    least, last, rose, delta, rate, stalled = np.inf, np.inf, 0, 0.0, 1.0, 0
    least_u, least_v = u.copy(), v.copy()
    paper_steps = 0 if in_a_branch else _PAPER_STEPS
    patience = _PATIENCE_IN_A_BRANCH if in_a_branch else _PATIENCE
    least_rate = _LEAST_RATE_IN_A_BRANCH if in_a_branch else _LEAST_RATE
    outcome, steps = LIMIT, 0
    while steps < limit:
        if steps == paper_steps and steps > 0:
            u[:] = least_u
            v[:] = least_v
            stale[:] = True
            _score_arcs(automata, u, v, allowed, scores)
        greedy = _best_heads(these.enters, these.entering, arc_heads, scores, tree)
        if not (greedy and tree_in_class(tree, projective, single_root, mark)):
            if projective:
                found = projective_tree.best_tree(scores, n, single_root, chart, tree)
            else:
                found = spanning_tree.best_tree(scores, n, single_root, enter, via, node_value, index, tree)
            if not found:
                return IMPOSSIBLE, steps, best, -np.inf
        decoded, bound = 0, 0.0
        for h in range(n + 1):
            if stale[h]:
                head_value[h] = best_of_head(automata, h, u, v, allowed, required, value, back, taken, above)
                stale[h] = not lazy
                decoded += 1
            bound += head_value[h]
        for m in range(1, n + 1):
            bound += scores[tree[m], m]
        score = score_of_tree(automata, tree, in_tree, value, back)
        if score > best or best_heads[1] < 0:  # a first tree, even one with forbidden parts
            best = score
            best_heads[:] = tree
        if steps < len(primal):
            primal[steps], dual[steps], recomputed[steps] = score, bound, decoded
        steps += 1
        if bound < least:
            least, stalled = bound, 0
            least_u[:] = u
            least_v[:] = v
        else:
            stalled += 1
        if bound == -np.inf:
            outcome = IMPOSSIBLE
            break
        away = 0
        for a in range(arcs):
            away += in_tree[a] != taken[a]
            away += automata.below_grandparent and in_tree[a] != (above[arc_modifiers[a]] == a)
        if away == 0:
            outcome = AGREED
            break
        if is_closed(least, best):
            outcome = CLOSED
            break
        if steps == limit or stop[0]:
            break
        if bound > last:
            rose += 1
        last = bound
        if steps >= paper_steps and best > -np.inf:
            if stalled >= patience:
                rate, stalled = 0.5 * rate, 0
                if rate < least_rate:
                    break
            step = rate * (bound - best) / away
        else:
            if delta == 0.0:
                delta = bound - score if score > -np.inf else 1.0 + abs(bound) / n
            step = delta / (1 + rose)
        for a in range(arcs):
            if not allowed[a]:
                continue
            y = int(in_tree[a])
            by_head = int(taken[a]) - y
            by_modifier = int(above[arc_modifiers[a]] == a) - y if automata.below_grandparent else 0
            if by_head != 0:
                u[a] += step * by_head
                stale[arc_heads[a]] = True
                disputes[a] += 1.0
            if by_modifier != 0:
                v[a] += step * by_modifier
                stale[arc_modifiers[a]] = True
                disputes[a] += 1.0
            if by_head != 0 or by_modifier != 0:
                scores[arc_heads[a], arc_modifiers[a]] = share[a] + u[a] + v[a]
    u[:] = least_u
    v[:] = least_v
    return outcome, steps, best, least


@part
def _score_arcs(automata: Automata, u: Floats, v: Floats, allowed: Bools, scores: Floats) -> None:
    """What the tree's side has of every arc that is not forbidden."""
    these = automata.candidates
    for a in range(len(u)):
        if allowed[a]:
            scores[these.heads[a], these.modifiers[a]] = automata.share[a] + u[a] + v[a]


@part
def _best_heads(enters: Ints, entering: Ints, arc_heads: Ints, scores: Floats, tree: Ints) -> bool:
    """Every word's best head on its own, which is often a tree already; False if a word has none."""
    for m in range(1, len(tree)):
        top = -np.inf
        for entry in range(enters[m], enters[m + 1]):
            h = arc_heads[entering[entry]]
            if scores[h, m] > top:
                top, tree[m] = scores[h, m], h
        if top == -np.inf:
            return False
    return True
