"""Naive twins of the learners of head automata: plain dicts of modifier sequences, literal scanning, all state paths.

Nothing of headway's learners is used, except that `trie_of` fills in the arrays of a `ModifierTrie` by hand, so that
sequences may have any weights, not only the whole counts of a treebank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from headway.learning.modifier_trie import ModifierTrie

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
String = tuple[int, ...]
Weighted = Mapping[String, float]  # modifier sequences and their counts
START, STOP = -1, -2


@dataclass(frozen=True)
class Trees:
    """Sentences, each with its words' symbols and their heads, 0 the root."""

    size: int
    symbols: list[list[int]]
    heads: list[list[int]]

    @property
    def arrays(self) -> tuple[int, Ints, Ints, Ints]:
        """As `ModifierTrie.of` takes them."""
        flat = ([x for sentence in some for x in sentence] for some in (self.symbols, self.heads))
        symbols, heads = (np.array(some, np.int64) for some in flat)
        return self.size, np.array([len(some) for some in self.symbols], np.int64), symbols, heads

    def sequences(self) -> dict[tuple[int, int], Counter[String]]:
        """Of every head symbol and direction (0 left, 1 right); heads never seen have none."""
        found: dict[tuple[int, int], Counter[String]] = {}
        for symbols, heads in zip(self.symbols, self.heads, strict=True):
            for h in range(len(symbols) + 1):
                head = symbols[h - 1] if h else 0
                left = tuple(symbols[m - 1] for m in reversed(range(1, h)) if heads[m - 1] == h)
                right = tuple(symbols[m - 1] for m in range(h + 1, len(symbols) + 1) if heads[m - 1] == h)
                found.setdefault((head, 0), Counter())[left] += 1
                found.setdefault((head, 1), Counter())[right] += 1
        return found


def random_trees(rng: np.random.Generator, count: int, size: int, longest: int) -> Trees:
    """Any trees, crossing arcs and several roots among them, and empty sentences."""
    symbols, heads = [], []
    for _ in range(count):
        n = int(rng.integers(0, longest + 1))
        symbols.append(rng.integers(1, size, n).tolist())
        order, head = (rng.permutation(n) + 1).tolist(), [0] * n
        for place, m in enumerate(order):
            head[m - 1] = [0, *order[:place]][int(rng.integers(0, place + 1))]
        heads.append(head)
    return Trees(size, symbols, heads)


def trie_of(size: int, weighted: Mapping[tuple[int, int], Weighted]) -> ModifierTrie:
    """The prefixes of weighted sequences, shortest first within each tree."""
    starts, parents, symbols, through, ends = [0], [], [], [], []
    for tree in range(2 * size):
        sequences = weighted.get((tree // 2, tree % 2), {})
        prefixes = sorted({x[:t] for x in sequences for t in range(len(x) + 1)} | {()}, key=lambda x: (len(x), x))
        places = {x: starts[-1] + place for place, x in enumerate(prefixes)}
        passing: Counter[String] = Counter()
        for x, weight in sequences.items():
            for t in range(len(x) + 1):
                passing[x[:t]] += weight  # type: ignore[assignment]
        for x in prefixes:
            parents.append(places[x[:-1]] if x else -1)
            symbols.append(x[-1] if x else 0)
            through.append(float(passing[x]))
            ends.append(float(sequences.get(x, 0.0)))
        starts.append(len(parents))
    starting, above, letters = (np.array(some, np.int64) for some in (starts, parents, symbols))
    return ModifierTrie(size, starting, above, letters, np.array(through), np.array(ends))


def strings(alphabet: Iterable[int], longest: int) -> list[String]:
    """All strings of up to so many symbols, the empty one first."""
    letters = list(alphabet)
    return [x for length in range(longest + 1) for x in product(letters, repeat=length)]


# ------------------------------------------------------------------------------------------------------------ spectral


def occurrences(sequences: Weighted, string: String) -> float:
    """The expected number of places where a string is found in START x STOP."""
    total = 0.0
    for x, weight in sequences.items():
        whole = (START, *x, STOP)
        total += weight * sum(whole[i : i + len(string)] == string for i in range(len(whole)))
    return total / sum(sequences.values())


@dataclass(frozen=True)
class Automaton:
    """A dense operator automaton."""

    initial: Floats
    final: Floats
    operators: Mapping[int, Floats]

    def weight(self, x: Sequence[int]) -> float:
        """f(x)."""
        state = self.initial
        for a in x:
            state = self.operators[a] @ state
        return float(self.final @ state)


def statistics(
    sequences: Weighted, alphabet: Sequence[int], context: int, least: float = 0.0
) -> tuple[list[String], list[String], Floats, dict[int, Floats]]:
    """The strings u that may follow and v that may come before, P [u, v] and P_a [u, v] of every symbol a.

    All strings over the alphabet are listed, whether they occur or not, unless those of two and more symbols occur
    fewer than `least` times; START can only be first and STOP only last.
    """
    plain = [x for x in strings(alphabet, context) if x]
    us = plain + [(*x, STOP) for x in strings(alphabet, context - 1)]
    vs = plain + [(START, *x) for x in strings(alphabet, context - 1)]
    total = sum(sequences.values())
    us, vs = (
        [x for x in some if len(x) == 1 or total * occurrences(sequences, x) >= least - 1e-9] for some in (us, vs)
    )
    p = np.array([[occurrences(sequences, v + u) for v in vs] for u in us])
    p_a = {a: np.array([[occurrences(sequences, (*v, a, *u)) for v in vs] for u in us]) for a in alphabet}
    return us, vs, p, p_a


def spectral_automaton(
    sequences: Weighted,
    alphabet: Sequence[int],
    states: int,
    context: int,
    ridge: float,
    least: float = 0.0,
    scale: float = 0.0,
) -> Automaton:
    """Algorithm 1 with explicit matrices; R = V S / (S^2 + ridge^2 / N), singular values of rounding left out.

    With D and E the diagonal matrices of P's row and column sums, the SVD is that of D^-scale P E^-scale.
    """
    us, vs, p, p_a = statistics(sequences, alphabet, context, least)
    d, e = (np.diag([x**-scale if x else 0.0 for x in p.sum(axis=axis)]) for axis in (1, 0))
    u, s, vt = np.linalg.svd(d @ p @ e, full_matrices=False)
    rank = min(states, int((s > 1e-9 * s[0]).sum()))
    u, s, v = d @ u[:, :rank], s[:rank], e @ vt[:rank].T
    r = v @ np.diag(s / (s**2 + ridge**2 / sum(sequences.values())))
    return Automaton(u.T @ p[:, vs.index((START,))], p[us.index((STOP,))] @ r, {a: u.T @ p_a[a] @ r for a in alphabet})


def paper_automaton(sequences: Weighted, alphabet: Sequence[int], states: int) -> tuple[Automaton, Floats]:
    """The paper's lines 2 to 7, START and STOP symbols like all others, with pseudo-inverses; and its A_START.

    alpha_1 and alpha_inf are the states after START and before STOP.
    """
    letters = [START, STOP, *alphabet]
    p = np.array([[occurrences(sequences, (a, b)) for a in letters] for b in letters])
    p_b = {b: np.array([[occurrences(sequences, (a, b, c)) for a in letters] for c in letters]) for b in letters}
    u = np.linalg.svd(p)[0][:, :states]
    inverse = np.linalg.pinv(u.T @ p, rcond=1e-9)
    operators = {b: u.T @ p_b[b] @ inverse for b in letters}
    return Automaton(u.T @ p[:, 0], p[1] @ inverse, operators), operators[START]


# ------------------------------------------------------------------------------------------------------------------ EM


def expected_counts(sequences: Weighted, automaton: Automaton) -> tuple[float, Floats, Floats, dict[int, Floats]]:
    """The log-likelihood, and expected starts, stops and moves, by going through every path of states."""
    states = range(len(automaton.initial))
    starts, stops = np.zeros(len(states)), np.zeros(len(states))
    moves = {a: np.zeros_like(matrix) for a, matrix in automaton.operators.items()}
    log_likelihood = 0.0
    for x, weight in sequences.items():
        paths = {}
        for path in product(states, repeat=len(x) + 1):
            probability = automaton.initial[path[0]] * automaton.final[path[-1]]
            for a, before, after in zip(x, path, path[1:], strict=False):
                probability *= automaton.operators[a][after, before]
            paths[path] = probability
        total = sum(paths.values())
        log_likelihood += weight * float(np.log(total))
        for path, probability in paths.items():
            share = weight * probability / total
            starts[path[0]] += share
            stops[path[-1]] += share
            for a, before, after in zip(x, path, path[1:], strict=False):
                moves[a][after, before] += share
    return log_likelihood, starts, stops, moves


def maximised(starts: Floats, stops: Floats, moves: Mapping[int, Floats]) -> Automaton:
    """The probabilities that expected counts stand for; every state must be in use."""
    visits = stops + sum(matrix.sum(axis=0) for matrix in moves.values())
    return Automaton(starts / starts.sum(), stops / visits, {a: matrix / visits for a, matrix in moves.items()})


# ---------------------------------------------------------------------------------------------------------------- PNFA


def random_pnfa(rng: np.random.Generator, states: int, alphabet: Sequence[int], stop: tuple[float, float]) -> Automaton:
    """Every state stops with a probability between two, or else emits some symbol and moves, at random."""
    final = rng.uniform(*stop, states)
    moves = rng.dirichlet(0.5 * np.ones(states * len(alphabet)), states) * (1 - final)[:, None]
    operators = moves.reshape(states, len(alphabet), states).transpose(1, 2, 0)
    return Automaton(rng.dirichlet(np.ones(states)), final, dict(zip(alphabet, operators, strict=True)))
