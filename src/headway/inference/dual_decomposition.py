"""Dual decomposition: the best tree under head automata, with a proof (koo2010 figures 1 and 2).

The problem is max f(z) + h(y) with z from the head automata, y a tree, and y = z. Multipliers u(h, m) on the arcs z
takes, and v(g, h) on the heads z assumes for grandparents, turn it into two problems that are easy to solve apart:

    L(u, v) = max_y  sum over arcs of y of (alpha s + u + v)  +  sum_h max_z  f_h(z) - u·z - v·z_up        >= optimum

y is a maximum spanning tree (or Eisner's, where trees are projective), z comes from `head_automata`. A step moves u by
c (z - y), and v by c (z_up - y). When y = z the tree is optimal: that is the certificate. It is also optimal when the
best tree seen scores what the least L is, up to rounding.

* Steps (appendix A.1): c = delta / (1 + times L rose), with delta = L - f(y) at the first step. We leave that rule
  after `_PAPER_STEPS`, when the best tree seen is usually the best there is, and take Held, Wolfe and Crowder's (1974)
  from the least L on: c = rate (L - best) / |y - z|^2, the rate halved whenever L has not fallen for a while. Most
  sentences that are still open agree within a few dozen of these. When the rate has become too small the search ends.
* A share alpha of the arcs' scores stays with the tree (A.2). The paper has 0.001 and tried no other; ours is 0.3.
* Lazy decoding (section 7.4): an automaton is decoded again only where a multiplier of its own changed.
* The best tree seen is what is returned when the limit comes first, with the least L as bound: nothing is claimed
  beyond that gap.

*Exact completion* (not in the paper). Where some steps bring no certificate, the sentence is finished by branch and
bound: an arc on which y and z kept disagreeing is required in one branch and forbidden in the other; each branch starts
from its parent's multipliers, and ends when its L is no better than the best tree known, when y = z, or by branching
again. Automata and trees both respect required and forbidden arcs, so with every arc decided y = z, and the search is
finite. All steps in the branches are Held, Wolfe and Crowder's: they aim at just what has to be shown there.

Cost: a step is O(n^2) for the tree (O(n^3) projective) and the automata that changed; memory O(number of parts).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from headway.arrays import Bools, Floats, Ints, TreeClass
from headway.errors import NoTreeError
from headway.inference import eisner, span_chart, spanning_tree
from headway.inference.head_automata import Automata, Parts, best_of_head, score_of_tree, work_for
from headway.inference.heads import tree_in_class
from headway.inference.jit import kernel, part
from headway.inference.no_tree import no_tree_error

ITERATIONS = 5000
ALPHA = 0.3
# Steps that exact completion may spend on one sentence in all its branches: some seconds.
BUDGET = 500_000

_PAPER_STEPS = 200
# With exact completion it pays to branch long before the paper's 5,000 steps.
_BEFORE_BRANCHING = 300
_IN_A_BRANCH = 100
# Steps without a lower L before the rate is halved, and the rate at which to end: at the root, and in a branch.
_PATIENCE, _PATIENCE_IN_A_BRANCH = 30, 8
_LEAST_RATE, _LEAST_RATE_IN_A_BRANCH = 1e-4, 0.02

_LIMIT, _AGREED, _CLOSED, _IMPOSSIBLE = 0, 1, 2, 3


class Status(StrEnum):
    """What is known of the answer."""

    CERTIFIED = "CERTIFIED"  # optimal: tree and automata agreed, or the bound met the best tree
    EXACT = "EXACT"  # optimal: proved by branch and bound
    ITERATION_LIMIT = "ITERATION_LIMIT"  # the best tree seen; the optimum is between its score and the bound


@dataclass(frozen=True)
class Trace:
    """Step by step: the score of the tree, L, and how many automata were decoded."""

    primal: Floats
    dual: Floats
    recomputed: Ints


@dataclass(frozen=True)
class Decoded:
    """A tree (n+1,), its score, an upper bound on any tree's score, and what is proved about it."""

    heads: Ints
    score: float
    bound: float
    status: Status
    iterations: int
    trace: Trace

    @property
    def gap(self) -> float:
        """How far the best tree's score may lie above this one's; 0 where it is proved optimal."""
        return self.bound - self.score


def decode(
    parts: Parts,
    *,
    projective: bool = False,
    single_root: bool = True,
    exact: bool = True,
    iterations: int = ITERATIONS,
    budget: int = BUDGET,
    alpha: float = ALPHA,
    lazy: bool = True,
) -> Decoded:
    """The best tree of a class under sibling, grand-sibling or state parts.

    `exact` finishes what dual decomposition leaves open, within `budget` steps per sentence; without it, `iterations`
    steps are all there is.

    >>> from headway.inference.head_automata import SiblingParts
    >>> siblings = np.zeros((4, 4, 4))
    >>> siblings[2, 2, 1] = siblings[2, 2, 3] = 1.0  # word 2 likes to start its sides with 1 and 3
    >>> found = decode(SiblingParts.dense(np.zeros((4, 4)), siblings))
    >>> found.heads, found.score, str(found.status)
    (array([-1,  2,  0,  2]), 2.0, 'CERTIFIED')
    """
    if iterations < 1 or budget < 1:
        raise ValueError(f"iterations is {iterations} and budget {budget}; expected at least 1")
    automata = parts.automata(alpha)
    n = parts.candidates.n
    heads = np.full(n + 1, -1, np.int64)
    limit = min(iterations, _BEFORE_BRANCHING) if exact else iterations
    primal, dual = np.empty((2, limit))
    recomputed = np.empty(limit, np.int64)
    outcome, branched, steps, traced, score, bound = _solve(
        automata, n, projective, single_root, exact, limit, budget, lazy, heads, primal, dual, recomputed
    )
    if outcome == _IMPOSSIBLE:
        raise _no_tree(parts, n, TreeClass(projective, single_root))
    if outcome == _LIMIT:
        status = Status.ITERATION_LIMIT
    else:
        status, bound = Status.EXACT if branched else Status.CERTIFIED, score
    trace = Trace(primal[:traced].copy(), dual[:traced].copy(), recomputed[:traced].copy())
    return Decoded(heads, score, bound, status, steps, trace)


def _no_tree(parts: Parts, n: int, trees: TreeClass) -> NoTreeError:
    arcs = np.full((n + 1, n + 1), -np.inf)
    arcs[parts.candidates.heads, parts.candidates.modifiers] = 0.0
    return no_tree_error(arcs, trees, None)


@kernel
def _solve(
    automata: Automata,
    n: int,
    projective: bool,
    single_root: bool,
    exact: bool,
    limit: int,
    budget: int,
    lazy: bool,
    heads: Ints,
    primal: Floats,
    dual: Floats,
    recomputed: Ints,
) -> tuple[int, bool, int, int, float, float]:
    """Outcome, whether it branched, steps, steps traced, best score, bound; fills heads and the trace."""
    if n == 0:
        return _AGREED, False, 0, 0, 0.0, 0.0
    arcs = len(automata.candidates.heads)
    u, v, disputes = np.zeros((3, arcs))
    allowed, required = np.ones(arcs, np.bool_), np.zeros(arcs, np.bool_)
    outcome, steps, best, bound = _descend(
        automata, n, projective, single_root, False, limit, lazy, -np.inf, u, v, allowed, required, disputes, heads,
        primal, dual, recomputed,
    )  # fmt: skip
    if outcome == _CLOSED:
        outcome = _AGREED
    if outcome != _LIMIT or not exact:
        return outcome, False, steps, steps, best, bound
    outcome, more, best, bound = _branch(
        automata, n, projective, single_root, budget, best, bound, u, v, disputes, heads
    )
    return outcome, True, steps + more, steps, best, bound


@part
def _descend(
    automata: Automata,
    n: int,
    projective: bool,
    single_root: bool,
    in_a_branch: bool,
    limit: int,
    lazy: bool,
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
    outcome, steps = _LIMIT, 0
    while steps < limit:
        if steps == paper_steps and steps > 0:
            u[:] = least_u
            v[:] = least_v
            stale[:] = True
            _score_arcs(automata, u, v, allowed, scores)
        greedy = _best_heads(these.enters, these.entering, arc_heads, scores, tree)
        if not (greedy and tree_in_class(tree, projective, single_root, mark)):
            if projective:
                found = eisner.best_tree(scores, n, single_root, chart, tree)
            else:
                found = spanning_tree.best_tree(scores, n, single_root, enter, via, node_value, index, tree)
            if not found:
                return _IMPOSSIBLE, steps, best, -np.inf
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
            outcome = _IMPOSSIBLE
            break
        away = 0
        for a in range(arcs):
            away += in_tree[a] != taken[a]
            away += automata.below_grandparent and in_tree[a] != (above[arc_modifiers[a]] == a)
        if away == 0:
            outcome = _AGREED
            break
        if least <= best + 1e-11 * (1.0 + abs(best)):
            outcome = _CLOSED
            break
        if steps == limit:
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


@part
def _branch(
    automata: Automata,
    n: int,
    projective: bool,
    single_root: bool,
    budget: int,
    best: float,
    bound: float,
    u: Floats,
    v: Floats,
    disputes: Floats,
    heads: Ints,
) -> tuple[int, int, float, float]:
    """Depth-first branch and bound from the root's multipliers: outcome, steps, best score, bound.

    A level has the multipliers, the required and forbidden arcs and the bound of one open branch, the arc it was split
    on, and how many of its two halves were begun.
    """
    arcs = len(u)
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
        if begun[depth] == 2 or bounds[depth] <= best + 1e-11 * (1.0 + abs(best)):
            depth -= 1
            continue
        if spent >= budget:
            open_bound = best
            for level in range(depth + 1):
                if begun[level] < 2:
                    open_bound = max(open_bound, bounds[level])
            return _LIMIT, spent, best, open_bound
        arc = split[depth]
        in_best = heads[automata.candidates.modifiers[arc]] == automata.candidates.heads[arc]
        take = in_best == (begun[depth] == 0)
        begun[depth] += 1
        allowed[:], required[:] = decided[depth, 0], decided[depth, 1]
        if not _decide(automata, arc, take, allowed, required):
            continue
        u[:], v[:] = multipliers[depth, 0], multipliers[depth, 1]
        limit = min(_IN_A_BRANCH, budget - spent)
        outcome, steps, best, below = _descend(
            automata, n, projective, single_root, True, limit, True, best, u, v, allowed, required, disputes, heads,
            none, none, no_counts,
        )  # fmt: skip
        spent += steps
        if outcome != _LIMIT:
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
    return _AGREED if best > -np.inf else _IMPOSSIBLE, spent, best, best


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
