"""The best projective tree of an operator grammar whose automata are deterministic (luque2012 footnote 7).

An automaton is deterministic when it has one start state, and a state and a modifier lead to one state at most: a
sequence of modifiers then has one path, and the best path through the chart of `operator_grammar`, with max for sum and
log weights for operators, is the best tree. With several paths a tree's weight is a sum over them, finding the best
tree is intractable, and `viterbi` refuses; use `operator_grammar.mbr`.

O(n^3 D s) time and O(n^2 D s) memory a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Floats, Ints
from headway.errors import ScoresError
from headway.inference.jit import kernel, part
from headway.inference.operator_automata import (
    LEFT,
    RIGHT,
    ModifierFactor,
    OperatorGrammar,
    as_factors,
    as_symbols,
)
from headway.inference.operator_grammar import no_weight

_TRIANGLE, _ARC, _SIDE = range(3)


def viterbi(
    grammar: OperatorGrammar,
    sentences: Sequence[Ints],
    factors: Sequence[ModifierFactor] | None = None,
    *,
    single_root: bool = True,
) -> list[tuple[Ints, float]]:
    """Each sentence's best heads (n+1,) and their log weight; ScoresError for a grammar that is not deterministic.

    >>> operators = np.ones((2, 2, 2, 1, 1))
    >>> operators[:, LEFT] = 9.0
    >>> leftward = OperatorGrammar(np.ones((2, 2, 1)), np.ones((2, 2, 1)), operators)
    >>> [(heads, log_weight)] = viterbi(leftward, [np.array([0, 1, 1])])
    >>> heads, round(float(np.exp(log_weight)), 9)
    (array([-1,  2,  0]), 9.0)
    """
    automata = _deterministic(grammar)
    checked = [as_symbols(symbols, grammar, where) for where, symbols in enumerate(sentences)]
    used = as_factors(factors, checked)
    found = []
    for where, (symbols, factor) in enumerate(zip(checked, used, strict=True)):
        heads = np.full(len(symbols), -1, dtype=np.int64)
        log_weight = 0.0
        if len(symbols) > 1:
            log_weight = _best_tree(
                symbols,
                automata.start,
                automata.log_start,
                automata.log_final,
                automata.successor,
                automata.log_step,
                factor.log_weights,
                factor.log_stops,
                factor.follows,
                single_root,
                heads,
            )
        if log_weight == -np.inf:
            raise no_weight(len(symbols) - 1, where)
        found.append((heads, log_weight))
    return found


@dataclass(frozen=True)
class _Deterministic:
    """A deterministic grammar's transitions, logarithms of its weights."""

    start: Ints  # (H, 2)
    log_start: Floats  # (H, 2)
    log_final: Floats  # (H, 2, s)
    successor: Ints  # (H, 2, H, s)
    log_step: Floats  # (H, 2, H, s); -inf where there is no successor


def _deterministic(grammar: OperatorGrammar) -> _Deterministic:
    initial, final, operators = grammar.initial.copy(), grammar.final.copy(), grammar.operators.copy()
    operators[:, :, 0] = 0.0  # the root is no modifier, and has no left side
    for name, array in (("initial", initial), ("final", final), ("operators", operators)):
        array[0, LEFT] = 0.0
        if array.min() < 0.0:
            raise ScoresError(f"{name} has negative entries, and such paths have no best one; decode with mbr")
    starts = _first(np.count_nonzero(initial, axis=-1) > 1)
    if starts:
        raise ScoresError(
            f"initial[{starts[0]}, {starts[1]}] has several start states, so that the best path need not be in the "
            "best tree; decode with mbr"
        )
    branches = _first(np.count_nonzero(operators, axis=-2) > 1)
    if branches:
        h, d, a, x = branches
        raise ScoresError(
            f"operators[{h}, {d}, {a}] leads from state {x} to several, so that the best path need not be in the "
            "best tree; decode with mbr"
        )
    with np.errstate(divide="ignore"):
        return _Deterministic(
            initial.argmax(axis=-1),
            np.log(initial.max(axis=-1)),
            np.log(final),
            operators.argmax(axis=-2),
            np.log(operators.max(axis=-2)),
        )


def _first(found: NDArray[np.bool_]) -> list[int]:
    """Where the first true entry is; empty if there is none."""
    return np.argwhere(found)[0].tolist() if found.any() else []


@kernel
def _best_tree(
    symbols: Ints,
    start: Ints,
    log_start: Floats,
    log_final: Floats,
    successor: Ints,
    log_step: Floats,
    log_weights: Floats,
    log_stops: Floats,
    follows: Ints,
    single_root: bool,
    heads: Ints,
) -> float:
    """The best log weight, and its heads; n >= 1. Items are [direction, head, width], as in `operator_grammar`."""
    nodes, memory, s = symbols.shape[0], log_weights.shape[2], log_final.shape[2]
    n = nodes - 1
    triangles = np.full((2, nodes, nodes, memory, s), -np.inf)
    arcs = np.full((2, nodes, nodes, s), -np.inf)
    sides = np.full((2, nodes, nodes), -np.inf)
    last = np.zeros((2, nodes, nodes, memory, s), np.int64)  # a triangle's last modifier: how far out
    split = np.zeros((2, nodes, nodes, s), np.int64)  # an arc's (inner width, factor state, state), in one number
    closing = np.zeros((2, nodes, nodes), np.int64)  # a side's (factor state, state)
    for width in range(nodes):
        for h in range(nodes):
            for d in range(2):
                step = 1 if d == RIGHT else -1
                m = h + step * width
                if m > n or m < (0 if d == RIGHT else 1) or (d == LEFT and h == 0):
                    continue
                head = symbols[h]
                if width == 0:
                    triangles[d, h, 0, 0, start[head, d]] = log_start[head, d]
                else:
                    for u in range(1 if single_root and h == 0 else width):
                        inner = sides[1 - d, m, width - 1 - u]
                        for q in range(memory):
                            for x in range(s):
                                y = successor[head, d, symbols[m], x]
                                so_far = triangles[d, h, u, q, x] + (log_weights[h, m, q] + inner)
                                value = so_far + log_step[head, d, symbols[m], x]
                                if value > arcs[d, h, width, y]:
                                    arcs[d, h, width, y] = value
                                    split[d, h, width, y] = (u * memory + q) * s + x
                    for u in range(1, width + 1):
                        k = h + step * u
                        q, outer = follows[k], sides[d, k, width - u]
                        for x in range(s):
                            value = arcs[d, h, u, x] + outer
                            if value > triangles[d, h, width, q, x]:
                                triangles[d, h, width, q, x] = value
                                last[d, h, width, q, x] = u
                for q in range(memory):
                    for x in range(s):
                        value = triangles[d, h, width, q, x] + (log_final[head, d, x] + log_stops[h, d, q])
                        if value > sides[d, h, width]:
                            sides[d, h, width] = value
                            closing[d, h, width] = q * s + x
    if sides[RIGHT, 0, n] > -np.inf:
        _read_back(last, split, closing, heads)
    return float(sides[RIGHT, 0, n])


@part
def _read_back(last: Ints, split: Ints, closing: Ints, heads: Ints) -> None:
    """Fill in `heads` from the best item of all: node 0's right side over the whole sentence."""
    _, nodes, _, memory, s = last.shape
    todo = np.empty((2 * nodes, 6), dtype=np.int64)  # kind, direction, head, width, factor state, state
    todo[0] = (_SIDE, RIGHT, 0, nodes - 1, 0, 0)
    left = 1
    while left > 0:
        left -= 1
        kind, d, h, width, q, x = todo[left]
        step = 1 if d == RIGHT else -1
        if kind == _SIDE:
            best = closing[d, h, width]
            todo[left] = (_TRIANGLE, d, h, width, best // s, best % s)
            left += 1
        elif kind == _ARC:
            best = split[d, h, width, x]
            inner = best // (memory * s)
            m = h + step * width
            heads[m] = h
            todo[left] = (_TRIANGLE, d, h, inner, best // s % memory, best % s)
            todo[left + 1] = (_SIDE, 1 - d, m, width - 1 - inner, 0, 0)
            left += 2
        elif width > 0:
            u = last[d, h, width, q, x]
            todo[left] = (_ARC, d, h, u, 0, x)
            todo[left + 1] = (_SIDE, d, h + step * u, width - u, 0, 0)
            left += 2
