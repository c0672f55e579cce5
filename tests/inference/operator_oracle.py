"""Operator grammars for the tests: random ones, and all their projective trees, weighed one by one with numpy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from headway.inference.brute_force import all_trees
from headway.inference.operator_automata import LEFT, RIGHT, ModifierFactor, OperatorGrammar

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Totals:
    """Sums over all trees: of their weights, of the weights' absolute values, and of the weights with each arc."""

    weight: float
    absolute: float
    arcs: Floats


def sequences(heads: Ints) -> Iterator[tuple[int, int, list[int]]]:
    """(head, direction, modifiers nearest first) of a tree; the root has a right side only."""
    for h in range(len(heads)):
        if h > 0:
            yield h, LEFT, [m for m in range(h - 1, 0, -1) if heads[m] == h]
        yield h, RIGHT, [m for m in range(h + 1, len(heads)) if heads[m] == h]


def weight(grammar: OperatorGrammar, symbols: Ints, heads: Ints, factor: ModifierFactor | None = None) -> float:
    """The product of a tree's sequences, as the grammar's formula has it; the factor's states walked one by one."""
    product = 1.0
    for h, d, modifiers in sequences(heads):
        vector = grammar.initial[symbols[h], d]
        state = 0
        for m in modifiers:
            vector = grammar.operators[symbols[h], d, symbols[m]] @ vector
            if factor is not None:
                product *= math.exp(factor.log_weights[h, m, state])
                state = factor.follows[m]
        product *= float(grammar.final[symbols[h], d] @ vector)
        if factor is not None:
            product *= math.exp(factor.log_stops[h, d, state])
    return product


@lru_cache(maxsize=32)
def projective_trees(n: int, single_root: bool) -> Ints:
    return all_trees(n, projective=True, single_root=single_root)


def totals(
    grammar: OperatorGrammar, symbols: Ints, factor: ModifierFactor | None = None, *, single_root: bool
) -> Totals:
    """By enumeration; n >= 1."""
    n = len(symbols) - 1
    trees = projective_trees(n, single_root)
    weights = [weight(grammar, symbols, heads, factor) for heads in trees]
    arcs = np.zeros((n + 1, n + 1))
    for h in range(n + 1):
        for m in range(1, n + 1):
            arcs[h, m] = math.fsum(w for w, heads in zip(weights, trees, strict=True) if heads[m] == h)
    return Totals(math.fsum(weights), math.fsum(map(abs, weights)), arcs)


def random_grammar(rng: np.random.Generator, symbols: int, states: int, *, mixed: bool = False) -> OperatorGrammar:
    """Numbers in (0, 1), or normal ones of both signs."""

    def draw(*shape: int) -> Floats:
        return rng.normal(size=shape) if mixed else rng.random(shape)

    return OperatorGrammar(
        draw(symbols, 2, states), draw(symbols, 2, states), draw(symbols, 2, symbols, states, states)
    )


def deterministic_grammar(rng: np.random.Generator, symbols: int, states: int) -> OperatorGrammar:
    """One start state, and at most one successor for a state and a symbol; some weights are 0."""
    initial, final = np.zeros((symbols, 2, states)), rng.random((symbols, 2, states))
    operators = np.zeros((symbols, 2, symbols, states, states))
    for automaton in np.ndindex(symbols, 2):
        initial[automaton][rng.integers(states)] = rng.random()
        for a in range(symbols):
            for x in range(states):
                operators[automaton][a, rng.integers(states), x] = rng.random() * (rng.random() < 0.8)
    final[rng.random(final.shape) < 0.1] = 0.0
    return OperatorGrammar(initial, final, operators)


def random_symbols(rng: np.random.Generator, symbols: int, n: int) -> Ints:
    return np.concatenate(([0], rng.integers(1, symbols, n)))


def random_factor(rng: np.random.Generator, n: int, states: int, forbid: float = 0.0) -> ModifierFactor:
    """Log weights about 0, with garbage wherever it must be ignored; a share `forbid` of the arcs is forbidden."""
    weights, stops = rng.normal(size=(n + 1, n + 1, states)), rng.normal(size=(n + 1, 2, states))
    weights[rng.random(weights.shape) < forbid] = -np.inf
    weights[:, 0] = weights[np.arange(n + 1), np.arange(n + 1)] = rng.choice([np.nan, np.inf, -np.inf, 0.0])
    stops[0, LEFT] = np.nan
    follows = rng.integers(0, states, n + 1)
    follows[0] = 99
    return ModifierFactor(weights, stops, follows)
