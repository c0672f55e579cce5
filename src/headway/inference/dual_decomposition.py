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

A few branches prove nearly every sentence. Where the first quarter of the budget does not, the sentence is long or
hard: plain dual decomposition then runs to its end, step for step as without completion, and the rest of the budget is
spent on branches from its multipliers, with the best tree and the least bound so far. The answer is never behind the
plain one.

Cost: a step is O(n^2) for the tree (O(n^3) projective) and the automata that changed; memory O(number of parts).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from numbers import Real

import numpy as np

from headway.arrays import Floats, Ints, TreeClass
from headway.errors import ArgumentError, NoTreeError
from headway.inference.batch import as_count
from headway.inference.branch_and_bound import branch
from headway.inference.dual_descent import IMPOSSIBLE, LIMIT, descend
from headway.inference.head_automata import Parts
from headway.no_tree import no_tree_error
from headway.parallel import interruptible

ITERATIONS = 5000
ALPHA = 0.3
# Steps that exact completion may spend on one sentence in all its branches: some seconds.
BUDGET = 500_000

# With exact completion it pays to branch long before the paper's 5,000 steps.
_BEFORE_BRANCHING = 300
# A run of at most so many cells (some tenths of a second) need not be interruptible, which costs a thread.
_SHORT_RUN = 200_000_000


class Status(StrEnum):
    """What is known of the answer."""

    CERTIFIED = "CERTIFIED"  # optimal: tree and automata agreed, or the bound met the best tree
    EXACT = "EXACT"  # optimal: proved by branch and bound
    ITERATION_LIMIT = "ITERATION_LIMIT"  # the best tree seen; the optimum is between its score and the bound
    TIME_LIMIT = "TIME_LIMIT"  # the same, when the seconds were over
    IN_STRETCHES = "IN_STRETCHES"  # of a sentence too long for one search: its stretches' trees, joined

    @property
    def is_proof(self) -> bool:
        """Whether the tree is proved to be the best."""
        return self in (Status.CERTIFIED, Status.EXACT)


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
    work: float = np.inf,
    seconds: float | None = None,
    alpha: float = ALPHA,
    lazy: bool = True,
) -> Decoded:
    """The best tree of a class under sibling, grand-sibling or state parts.

    `exact` finishes what dual decomposition leaves open, within `budget` steps per sentence; without it, `iterations`
    steps are all there is. Either has fewer steps where they would read more than `work` cells, one in about a
    nanosecond. After `seconds` the best tree so far is the answer. Tree and gap are never worse with `exact` than
    without, unless the seconds cut both short.

    >>> from headway.inference.head_automata import SiblingParts
    >>> siblings = np.zeros((4, 4, 4))
    >>> siblings[2, 2, 1] = siblings[2, 2, 3] = 1.0  # word 2 likes to start its sides with 1 and 3
    >>> found = decode(SiblingParts.dense(np.zeros((4, 4)), siblings))
    >>> found.heads, found.score, str(found.status)
    (array([-1,  2,  0,  2]), 2.0, 'CERTIFIED')
    """
    if not hasattr(parts, "automata"):
        raise ArgumentError(f"expected SiblingParts, GrandSiblingParts or StateParts, got {type(parts).__name__}")
    if not isinstance(alpha, Real) or not isfinite(alpha):
        raise ArgumentError(f"alpha is {alpha!r}; expected a finite number")
    if seconds is not None and (not isinstance(seconds, Real) or not seconds > 0):
        raise ArgumentError(f"seconds is {seconds!r}; expected more than 0, or None for no limit")
    iterations, budget = as_count(iterations, "iterations"), as_count(budget, "budget")
    search = _Search(parts, TreeClass.of(projective, single_root), alpha, lazy, seconds)
    most = work / search.cost_of_step
    iterations, budget = max(1, int(min(iterations, most))), max(1, int(min(budget, most)))
    if not exact:
        return search.answer(search.descend(iterations))
    to_the_end = iterations > _BEFORE_BRANCHING
    early = -(-budget // 4) if to_the_end else budget
    found = search.descend(min(iterations, _BEFORE_BRANCHING))
    found = search.branch(found, early, share=0.25 if to_the_end else 1.0)
    if to_the_end and found.is_open and not search.is_over:
        found = search.descend(iterations).joined(found)
        found = search.branch(found, budget - early)
    return search.answer(found)


@dataclass(frozen=True)
class _Found:
    """Where a search stands: the best tree, the least bound, and the multipliers and disputes to branch from."""

    outcome: int
    branched: bool
    steps: int
    heads: Ints
    score: float
    bound: float
    u: Floats
    v: Floats
    disputes: Floats
    trace: Trace

    @property
    def is_open(self) -> bool:
        return self.outcome == LIMIT

    def joined(self, other: _Found) -> _Found:
        """The best of two searches, to go on from where this one ended."""
        steps = self.steps + other.steps
        if not self.is_open:
            return replace(self, steps=steps)
        better, bound = max(self, other, key=lambda each: each.score), min(self.bound, other.bound)
        return replace(self, steps=steps, heads=better.heads, score=better.score, bound=bound)


_Outcome = tuple[int, int, float, float]  # outcome, steps, best score, bound


class _Search:
    """The runs of one sentence; all of them end when its time is over."""

    def __init__(self, parts: Parts, trees: TreeClass, alpha: float, lazy: bool, seconds: float | None) -> None:
        self._parts, self._trees, self._lazy = parts, trees, lazy
        self._automata = parts.automata(alpha)
        nodes = parts.candidates.n + 1
        # In cells: the tree's scores, which are read several times, and the tables of all automata.
        self.cost_of_step = len(self._automata.table) + (1 + nodes**3 // 2 if trees.projective else 4 * nodes**2)
        self._end = None if seconds is None else time.monotonic() + seconds
        self._stop = np.zeros(1, np.bool_)

    def descend(self, limit: int) -> _Found:
        """Plain dual decomposition from the beginning."""
        n, arcs = self._parts.candidates.n, len(self._parts.candidates.heads)
        heads, (u, v, disputes) = np.full(n + 1, -1, np.int64), np.zeros((3, arcs))
        (primal, dual), recomputed = np.empty((2, limit)), np.empty(limit, np.int64)
        outcome, steps, score, bound = self._run(
            lambda: descend(
                self._automata, n, *self._trees, limit, self._lazy, self._stop, u, v, disputes, heads, primal, dual,
                recomputed,
            ),
            limit,
        )  # fmt: skip
        trace = Trace(primal[:steps].copy(), dual[:steps].copy(), recomputed[:steps].copy())
        return _Found(outcome, False, steps, heads, score, bound, u, v, disputes, trace)

    def branch(self, found: _Found, budget: int, share: float = 1.0) -> _Found:
        """Finish what is open by branch and bound, within a number of steps and a share of the time left."""
        if not found.is_open or self.is_over:
            return found
        heads = found.heads.copy()
        outcome, steps, score, bound = self._run(
            lambda: branch(
                self._automata, self._parts.candidates.n, *self._trees, budget, self._stop, found.score, found.bound,
                found.u, found.v, found.disputes, heads,
            ),
            budget,
            share,
        )  # fmt: skip
        return replace(
            found, outcome=outcome, branched=True, steps=found.steps + steps, heads=heads, score=score, bound=bound
        )

    def answer(self, found: _Found) -> Decoded:
        """What was reached, and what is proved of it."""
        if found.outcome == IMPOSSIBLE:
            raise _no_tree(self._parts, self._parts.candidates.n, self._trees)
        if found.is_open:
            status = Status.TIME_LIMIT if self.is_over else Status.ITERATION_LIMIT
            bound = max(found.bound, found.score)  # two searches may meet, up to rounding, when the time is over
        else:
            status, bound = Status.EXACT if found.branched else Status.CERTIFIED, found.score
        return Decoded(found.heads, found.score, bound, status, found.steps, found.trace)

    @property
    def is_over(self) -> bool:
        """Whether the seconds are spent."""
        return self._seconds_left() <= 0.0

    def _seconds_left(self) -> float:
        return np.inf if self._end is None else self._end - time.monotonic()

    def _run(self, run: Callable[[], _Outcome], steps: int, share: float = 1.0) -> _Outcome:
        """Run a kernel; if it may take long, where it can be interrupted and its time watched."""
        self._stop[0] = False
        seconds = share * self._seconds_left()
        if steps * self.cost_of_step <= min(_SHORT_RUN, 1e9 * seconds):
            return run()
        return interruptible(run, self._stop, None if seconds == np.inf else max(0.0, seconds))


def _no_tree(parts: Parts, n: int, trees: TreeClass) -> NoTreeError:
    arcs = np.full((n + 1, n + 1), -np.inf)
    arcs[parts.candidates.heads, parts.candidates.modifiers] = 0.0
    return no_tree_error(arcs, trees, None)
