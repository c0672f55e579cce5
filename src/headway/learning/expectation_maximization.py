"""Expectation maximisation for non-deterministic head automata (luque2012 section 5.1): the comparator of `spectral`.

The automaton of a head symbol and direction is a PNFA: it starts in state q with probability alpha_1(q), and in state q
it stops with alpha_inf(q), or emits symbol a and moves to q' with A_a(q', q); these sum to one for each q. A step
replaces every probability by its expected share under the present ones, by forward and backward vectors over the
modifier sequences; the likelihood never falls.

The vectors are computed on the `ModifierTrie`, once a prefix rather than once a sequence. With f(x) the forward vector
of prefix x, scaled to sum to one, c(x) the scale, and p(x) = alpha_inf . f(x),

    b(x) = ends(x) alpha_inf / p(x) + sum over children y, by symbol a, of A_a^T b(y) / c(y)

is the sum over the sequences that go through x of their backward vectors, each over its probability. The expected
number of times that the automaton emits a moving from q to q' is then A_a(q', q) times the sum over prefixes y that end
in a, of f(parent of y)(q) b(y)(q') / c(y). A step costs O(prefixes s^2).

Start (the paper's): alpha_1 and alpha_inf at random, a random transition matrix T, and A_a = T O_a, with O_a the
relative frequency of a among the modifiers, whatever the state. Restarts differ in what is drawn.

No automaton's expectations depend on another's. So a shard has the sequences of some automata, rather than those of
some sentences, and nothing needs to be added up but the log-likelihood: the grammar is the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headway.arrays import Floats, Ints
from headway.errors import TrainingError
from headway.inference.jit import kernel
from headway.inference.operator_automata import OperatorGrammar
from headway.learning.modifier_trie import ModifierTrie
from headway.parallel import Held, Here

_ROUNDING = 1e-9  # by how much a log-likelihood may seem to fall, of itself or of the number of its terms


@dataclass(frozen=True)
class Step:
    """Probabilities after so many steps, and the log-likelihood of the sequences under those before the last."""

    number: int
    log_likelihood: float
    initial: Floats  # (2H, s)
    final: Floats  # (2H, s)
    operators: Floats  # (2H, H, s, s), [tree, symbol, to, from]

    @property
    def grammar(self) -> OperatorGrammar:
        """The same, by head and direction."""
        return OperatorGrammar.of_automata(self.initial, self.final, self.operators)


class Sequences(NamedTuple):
    """The modifier sequences of some automata, numbered as in the grammar; arrays are those of `ModifierTrie`."""

    automata: Ints
    starts: Ints
    parents: Ints
    symbols: Ints
    through: Floats
    ends: Floats


def shards_of(trie: ModifierTrie, count: int) -> list[Sequences]:
    """The automata dealt out to so many shards, those with the most prefixes first, to whoever has the fewest."""
    prefixes = np.diff(trie.starts)
    loads = np.zeros(count, np.int64)
    dealt: list[list[int]] = [[] for _ in range(count)]
    for automaton in np.argsort(-prefixes, kind="stable").tolist():
        shard = int(loads.argmin())
        dealt[shard].append(automaton)
        loads[shard] += prefixes[automaton]
    return [_sequences(trie, np.array(sorted(own), np.int64)) for own in dealt]


def _sequences(trie: ModifierTrie, automata: Ints) -> Sequences:
    first, count = trie.starts[automata], np.diff(trie.starts)[automata]
    starts = np.concatenate(([0], np.cumsum(count)))
    shift = np.repeat(first - starts[:-1], count)
    nodes = np.arange(starts[-1]) + shift
    parents = np.where(trie.parents[nodes] < 0, -1, trie.parents[nodes] - shift)
    return Sequences(automata, starts, parents, trie.symbols[nodes], trie.through[nodes], trie.ends[nodes])


def em_steps(
    trie: ModifierTrie, states: int, rng: np.random.Generator, shards: Held[Sequences] | None = None
) -> Iterator[Step]:
    """Grammars, each at least as likely as the one before; without end. `shards` have the sequences of the trie.

    >>> trie = ModifierTrie.of(3, np.array([3]), np.array([1, 1, 2]), np.array([3, 3, 0]))
    >>> steps = em_steps(trie, 3, np.random.default_rng(0))
    >>> [before, *_, after] = (next(steps).log_likelihood for _ in range(50))
    >>> before < after
    True
    """
    if states < 1:
        raise TrainingError(f"{states} states; at least one is needed")
    initial, final, operators = _start(trie, states, rng)
    number, before, terms = 0, -np.inf, float(trie.through.sum())
    held = shards or Here(shards_of(trie, 1))
    while True:
        number += 1
        likelihood, expected = 0.0, [np.zeros_like(each) for each in (initial, final, operators)]
        for automata, own, counts in held.each(_expected, initial, final, operators):
            likelihood += own
            for whole, part in zip(expected, counts, strict=True):
                whole[automata] = part
        if likelihood < before - _ROUNDING * max(abs(before), terms):
            raise AssertionError(f"step {number} of EM made the log-likelihood fall from {before} to {likelihood}")
        before = likelihood
        initial, final, operators = _maximise(initial, final, operators, *expected)
        yield Step(number, likelihood, initial, final, operators)


def _expected(
    own: Sequences, initial: Floats, final: Floats, operators: Floats
) -> tuple[Ints, float, tuple[Floats, Floats, Floats]]:
    """The automata of a shard, the log-likelihood of their sequences, and their expected counts."""
    some = own.automata
    likelihood, *counts = _expect(*own[1:], initial[some], final[some], operators[some])
    return some, likelihood, (counts[0], counts[1], counts[2])


def _start(trie: ModifierTrie, states: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """alpha_1 (2H, s), alpha_inf (2H, s) and A (2H, H, s, s), [tree, symbol, to, from]."""
    trees, ones = 2 * trie.size, np.ones(states)
    initial = rng.dirichlet(ones, trees)
    final = rng.uniform(size=(trees, states))
    moves = rng.dirichlet(ones, (trees, states)).swapaxes(1, 2)
    emitted = np.zeros((trees, trie.size))
    np.add.at(emitted, (trie.trees, trie.symbols), np.where(trie.parents < 0, 0.0, trie.through))
    total = emitted.sum(axis=1, keepdims=True)
    shares = emitted / np.where(total > 0, total, 1.0)
    final[total[:, 0] == 0] = 1.0  # a head that never has modifiers there stops at once
    operators = shares[:, :, None, None] * (moves * (1 - final)[:, None, :])[:, None]
    return initial, final, operators


def _maximise(
    initial: Floats, final: Floats, operators: Floats, starts: Floats, stops: Floats, moves: Floats
) -> tuple[Floats, Floats, Floats]:
    """Shares of the expected counts; where a state was never in use, its probabilities stay what they were."""
    begun = starts.sum(axis=1, keepdims=True)
    visits = stops + moves.sum(axis=(1, 2))
    used = visits > 0
    visits[~used] = 1.0
    return (
        np.where(begun > 0, starts / np.where(begun > 0, begun, 1.0), initial),
        np.where(used, stops / visits, final),
        np.where(used[:, None, None, :], moves / visits[:, None, None, :], operators),
    )


@kernel
def _expect(
    roots: Ints,
    parents: Ints,
    symbols: Ints,
    through: Floats,
    ends: Floats,
    initial: Floats,
    final: Floats,
    operators: Floats,
) -> tuple[float, Floats, Floats, Floats]:
    """The log-likelihood, and expected counts shaped like initial, final and operators."""
    s = initial.shape[1]
    starts, stops, moves = np.zeros_like(initial), np.zeros_like(final), np.zeros_like(operators)
    forward, backward, scales = np.zeros((len(parents), s)), np.zeros((len(parents), s)), np.ones(len(parents))
    likelihood = 0.0
    for tree in range(len(roots) - 1):
        first, last = roots[tree], roots[tree + 1]
        if through[first] == 0:
            continue
        forward[first] = initial[tree]
        for x in range(first + 1, last):
            f, a = forward[x], operators[tree, symbols[x]]
            above = forward[parents[x]]
            total = 0.0
            for i in range(s):
                value = 0.0
                for j in range(s):
                    value += a[i, j] * above[j]
                f[i] = value
                total += value
            scales[x] = total
            likelihood += through[x] * np.log(total)
            for i in range(s):
                f[i] /= total
        for x in range(last - 1, first - 1, -1):
            f, b = forward[x], backward[x]
            if ends[x] > 0:
                p = 0.0
                for i in range(s):
                    p += final[tree, i] * f[i]
                likelihood += ends[x] * np.log(p)
                for i in range(s):
                    b[i] += ends[x] / p * final[tree, i]
                    stops[tree, i] += ends[x] / p * final[tree, i] * f[i]
            if x == first:
                for i in range(s):
                    starts[tree, i] += b[i] * f[i]
                continue
            a, count = operators[tree, symbols[x]], moves[tree, symbols[x]]
            above, below = forward[parents[x]], backward[parents[x]]
            for i in range(s):
                share = b[i] / scales[x]
                for j in range(s):
                    value = a[i, j] * share
                    below[j] += value
                    count[i, j] += value * above[j]
    return likelihood, starts, stops, moves
