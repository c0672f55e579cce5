"""A deterministic picture of an operator automaton: its forward vectors, clustered (luque2012, section 5.3).

One automaton, that of a head and a direction, is `initial` (s,) and `operators` (X, s, s). What it remembers of a
prefix is the forward vector alpha(x_1..t) = A[x_t] ... A[x_1] alpha_1. Four steps make states of these vectors:

1. The *frequent prefixes* of the sequences, the empty one always among them. A prefix is at least as frequent as what
   it begins, so the set is closed: one product a prefix.
2. *Group-average clustering* of their directions (Manning et al. 2008, section 17.3): merge the two clusters whose
   union has the highest average cosine over all its pairs, (|sum|^2 - N) / (N (N - 1)) for N vectors of length 1. A
   prefix counts once, however frequent. Vectors of zero (the grammar gives the prefix no probability) have no
   direction: here they agree with each other and with nothing else, as if they had a dimension of their own.
   O(N^2) memory; O(N^2 s) time, and O(N^3) at worst.
3. A transition i --x--> j where a prefix in cluster i, made longer by x, is in cluster j. Where i and x lead to several
   clusters, these become one state, and so on until the automaton is deterministic. Whatever the order of the merges,
   the result is the same: the finest partition that is deterministic. Nearly linear, by union-find.
4. Counts of how the sequences pass through. A sequence that needs a transition that no frequent prefix made *leaves*
   the automaton: it counts up to there. In each state visits = transitions + stops + leaves.

State 0 is the start; the others are numbered breadth-first, along the more frequent transitions first.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Floats, Ints
from headway.errors import ArgumentError, ScoresError, ShapeError, SizeError
from headway.inference.batch import as_floats

Symbols: TypeAlias = tuple[int, ...]

MOST_VECTORS = 5000  # their similarities take 200 MB
_DECIMALS = 12  # of a similarity: what differs less is a tie, so that rounding does not choose the merge


@dataclass(frozen=True)
class Prefixes:
    """Prefixes with their counts, shorter ones first and the more frequent first among those of one length.

    The first is the empty prefix, its own parent; every other is its parent and one symbol more.
    """

    sequences: tuple[Symbols, ...]
    counts: Ints  # (P,)
    parents: Ints  # (P,)

    def __len__(self) -> int:
        return len(self.sequences)


@dataclass(frozen=True, slots=True)
class Transition:
    """Where a state and a symbol lead, and how often they did."""

    state: int
    count: int


@dataclass(frozen=True)
class StateAutomaton:
    """A deterministic automaton with counts; S states, all of which can be reached from the start."""

    start: int
    transitions: Mapping[tuple[int, int], Transition]  # by state and symbol
    visits: Ints  # (S,) transitions + stops + leaves
    stops: Ints  # (S,) sequences that end there
    leaves: Ints  # (S,) sequences that go on with a symbol the state has no transition for
    merges: int  # how many clusters were lost to make it deterministic

    @property
    def states(self) -> int:
        """How many there are."""
        return len(self.visits)

    @property
    def lost(self) -> int:
        """How many sequences leave the automaton before their end."""
        return int(self.leaves.sum())

    def state_of(self, sequence: Iterable[int]) -> int | None:
        """The state after these symbols; None if they leave the automaton."""
        state = self.start
        for symbol in sequence:
            if (state, symbol) not in self.transitions:
                return None
            state = self.transitions[state, symbol].state
        return state

    def accepts(self, sequence: Iterable[int]) -> bool:
        """Whether the sequence stays inside and ends where some sequence was seen to end."""
        state = self.state_of(sequence)
        return state is not None and bool(self.stops[state])

    def probability(self, state: int, symbol: int) -> float:
        """The estimate of P(symbol | state), a share of the visits; 0 in a state that was never visited."""
        found = self.transitions.get((state, symbol))
        return found.count / int(self.visits[state]) if found and found.count else 0.0

    def stop_probability(self, state: int) -> float:
        """The estimate of P(STOP | state)."""
        return int(self.stops[state]) / max(1, int(self.visits[state]))


def state_automaton(
    initial: ArrayLike,
    operators: ArrayLike,
    sequences: Sequence[Sequence[int]],
    counts: Sequence[int] | None = None,
    *,
    clusters: int = 10,
    minimum: int = 5,
) -> StateAutomaton:
    """The automaton of `clusters` clusters (fewer states after merges) over the prefixes seen `minimum` times or more.

    Two symbols that take turns, started by either; the automaton has seen no third modifier:

    >>> turns = np.array([np.zeros((2, 2)), [[0.0, 0.5], [0, 0]], [[0, 0], [0.5, 0.0]]])
    >>> found = state_automaton([0.5, 0.5], turns, [(1,), (2,), (1, 2), (2, 1)], clusters=3, minimum=1)
    >>> {(i, symbol): arrow.state for (i, symbol), arrow in found.transitions.items()}
    {(0, 1): 1, (0, 2): 2, (1, 2): 2, (2, 1): 1}
    >>> found.stop_probability(1), found.state_of([1, 1])
    (0.6666666666666666, None)
    """
    prefixes = frequent_prefixes(sequences, counts, minimum=minimum)
    found = group_average(forward_vectors(initial, operators, prefixes), clusters)
    return determinised(prefixes, found, sequences, counts)


def frequent_prefixes(
    sequences: Sequence[Sequence[int]], counts: Sequence[int] | None = None, *, minimum: int = 1
) -> Prefixes:
    """All prefixes, whole sequences among them, that are seen `minimum` times or more, and the empty one.

    >>> frequent_prefixes([(3, 1), (3,), (2, 1, 1)], [4, 1, 2], minimum=3).sequences
    ((), (3,), (3, 1))
    """
    if minimum < 1:
        raise ArgumentError(f"minimum is {minimum}; expected at least 1")
    seen: Counter[Symbols] = Counter({(): 0})
    for sequence, count in _weighted(sequences, counts).items():
        for end in range(len(sequence) + 1):
            seen[sequence[:end]] += count
    kept = sorted((len(x), -count, x) for x, count in seen.items() if count >= minimum or not x)
    where = {x: place for place, (_, _, x) in enumerate(kept)}
    return Prefixes(
        tuple(where),
        np.array([-negative for _, negative, _ in kept], dtype=np.int64),
        np.array([where[x[:-1]] for x in where], dtype=np.int64),
    )


def forward_vectors(initial: ArrayLike, operators: ArrayLike, prefixes: Prefixes) -> Floats:
    """alpha of every prefix, (P, s), from `initial` (s,) and `operators` (X, s, s)."""
    alpha, matrices = as_floats(initial, "initial vectors"), as_floats(operators, "operators")
    if alpha.ndim != 1 or matrices.ndim != 3 or matrices.shape[1:] != (len(alpha), len(alpha)):
        raise ShapeError(
            f"the initial vector has shape {alpha.shape}, the operators {matrices.shape}; expected (s,) and (X, s, s)"
        )
    known = range(len(matrices))
    unknown = next((symbol for x in prefixes.sequences for symbol in x if symbol not in known), None)
    if unknown is not None:
        raise ShapeError(f"a sequence has symbol {unknown}; there are operators for 0 to {len(matrices) - 1}")
    vectors = np.empty((len(prefixes), len(alpha)))
    vectors[0] = alpha
    for place, x in enumerate(prefixes.sequences[1:], start=1):
        vectors[place] = matrices[x[-1]] @ vectors[prefixes.parents[place]]
    return vectors


def group_average(vectors: ArrayLike, clusters: int) -> Ints:
    """The cluster of each vector (N, s), numbered in the order of their first members; at most `clusters` of them.

    >>> group_average([[1, 0], [0, 2], [3, 1], [0, 0]], 3).tolist()
    [0, 1, 0, 2]
    """
    if clusters < 1:
        raise ArgumentError(f"clusters is {clusters}; expected at least 1")
    sums = _directions(as_floats(vectors, "vectors"))
    n = len(sums)
    if n > MOST_VECTORS:
        raise SizeError(f"{n} vectors are too many to cluster; at most {MOST_VECTORS}: ask for more frequent prefixes")
    sizes = np.ones(n)
    labels = np.arange(n)
    similarities = np.round(sums @ sums.T, _DECIMALS)
    np.fill_diagonal(similarities, -np.inf)
    partners = similarities.argmax(axis=1) if n else labels
    best = similarities.max(axis=1, initial=-np.inf)  # -inf for clusters that are no more
    for _ in range(n - clusters):
        first = int(best.argmax())
        kept, gone = sorted((first, int(partners[first])))
        sums[kept] += sums[gone]
        sizes[kept] += sizes[gone]
        labels[labels == gone] = kept
        similarities[gone] = similarities[:, gone] = best[gone] = -np.inf
        row = np.where(best > -np.inf, _with_all(sums, sizes, kept), -np.inf)
        row[kept] = -np.inf
        similarities[kept] = similarities[:, kept] = row
        _look_again(similarities, partners, best, kept, gone)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _directions(vectors: Floats) -> Floats:
    """The vectors (N, s) with length 1, (N, s + 1); vectors of zero get the last dimension to themselves."""
    if vectors.ndim != 2:
        raise ShapeError(f"the vectors have shape {vectors.shape}; expected (N, s)")
    if not np.isfinite(vectors).all():
        raise ScoresError(f"vector {int(np.argwhere(~np.isfinite(vectors))[0, 0])} is not finite")
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    zero = largest == 0
    # First by the largest entry: the squares of a long prefix's vector would underflow.
    scaled = vectors / np.where(zero, 1.0, largest)[:, None]
    extended = np.column_stack([scaled, zero])
    directions: Floats = extended / np.linalg.norm(extended, axis=1, keepdims=True)
    return directions


def _with_all(sums: Floats, sizes: Floats, kept: int) -> Floats:
    """The average cosine of all pairs in the union of `kept` with each cluster (N,); without meaning at `kept`."""
    total = sizes + sizes[kept]
    union = sums + sums[kept]
    average: Floats = (np.einsum("ij,ij->i", union, union) - total) / (total * (total - 1))
    return np.round(average, _DECIMALS)


def _look_again(similarities: Floats, partners: Ints, best: Floats, kept: int, gone: int) -> None:
    """Bring each cluster's best partner up to date after `gone` was merged into `kept`; ties go to the lower number."""
    row = similarities[kept]
    alive = best > -np.inf
    moved = (partners == kept) | (partners == gone)
    better = alive & ((row > best) | ((row == best) & (moved | (kept < partners))))
    partners[better], best[better] = kept, row[better]
    stale = np.flatnonzero(alive & moved & ~better)
    stale = np.union1d(stale, [kept])
    partners[stale] = similarities[stale].argmax(axis=1)
    best[stale] = similarities[stale].max(axis=1)


def determinised(
    prefixes: Prefixes, clusters: ArrayLike, sequences: Sequence[Sequence[int]], counts: Sequence[int] | None = None
) -> StateAutomaton:
    """The automaton whose states are the clusters of the prefixes, merged until it is deterministic.

    Its counts are those of the sequences, which need not be the ones the prefixes are from.
    """
    labels = np.asarray(clusters)
    if labels.shape != (len(prefixes),):
        raise ShapeError(f"the clusters have shape {labels.shape}; expected ({len(prefixes)},), one a prefix")
    names, compact = np.unique(labels, return_inverse=True)
    groups = _Groups(len(names))
    for x, label, parent in zip(prefixes.sequences, compact.tolist(), prefixes.parents.tolist(), strict=True):
        if x:
            groups.add(int(compact[parent]), x[-1], label)
    start = groups.of(int(compact[0]))
    arrows = {(state, symbol): groups.of(to) for state, out in groups.arrows.items() for symbol, to in out.items()}
    return _counted(start, arrows, _weighted(sequences, counts), len(names) - len(groups.arrows))


class _Groups:
    """Clusters in disjoint groups, each with one arrow a symbol at most (Tarjan 1975; Hopcroft and Karp 1971)."""

    def __init__(self, clusters: int) -> None:
        self._parents = list(range(clusters))
        self.arrows: dict[int, dict[int, int]] = {state: {} for state in range(clusters)}  # by group

    def of(self, cluster: int) -> int:
        """The cluster that stands for the group."""
        while self._parents[cluster] != cluster:
            self._parents[cluster] = self._parents[self._parents[cluster]]
            cluster = self._parents[cluster]
        return cluster

    def add(self, source: int, symbol: int, target: int) -> None:
        """An arrow, and the merges it asks for."""
        work = [(self.arrows[self.of(source)].setdefault(symbol, target), target)]
        while work:
            pair = work.pop()
            one, other = self.of(pair[0]), self.of(pair[1])
            if one == other:
                continue
            # The group with fewer arrows goes: each arrow moves O(log n) times.
            if len(self.arrows[one]) < len(self.arrows[other]):
                one, other = other, one
            self._parents[other] = one
            kept = self.arrows[one]
            work += [(kept.setdefault(each, to), to) for each, to in self.arrows.pop(other).items()]


def _counted(
    start: int, arrows: Mapping[tuple[int, int], int], weighted: Mapping[Symbols, int], merges: int
) -> StateAutomaton:
    """Pass the sequences through, and number the states by what was counted."""
    used: Counter[tuple[int, int]] = Counter()
    stops: Counter[int] = Counter()
    leaves: Counter[int] = Counter()
    for sequence, count in weighted.items():
        state = start
        for symbol in sequence:
            if (state, symbol) not in arrows:
                leaves[state] += count
                break
            used[state, symbol] += count
            state = arrows[state, symbol]
        else:
            stops[state] += count
    order = _breadth_first(start, arrows, used)
    number = {state: place for place, state in enumerate(order)}
    transitions = {
        (number[state], symbol): Transition(number[arrows[state, symbol]], used[state, symbol])
        for state, symbol in sorted(arrows, key=lambda each: (number[each[0]], each[1]))
    }
    ended = np.array([stops[state] for state in order], dtype=np.int64)
    left = np.array([leaves[state] for state in order], dtype=np.int64)
    visits = ended + left
    for (state, _), transition in transitions.items():
        visits[state] += transition.count
    return StateAutomaton(number[start], transitions, visits, ended, left, merges)


def _breadth_first(start: int, arrows: Mapping[tuple[int, int], int], used: Mapping[tuple[int, int], int]) -> list[int]:
    """The states in the order a breadth-first search meets them that tries frequent transitions first."""
    outgoing: dict[int, list[tuple[int, int, int]]] = {}
    for (state, symbol), target in arrows.items():
        outgoing.setdefault(state, []).append((-used[state, symbol], symbol, target))
    order, waiting = [start], deque([start])
    while waiting:
        for _, _, target in sorted(outgoing.get(waiting.popleft(), [])):
            if target not in order:
                order.append(target)
                waiting.append(target)
    return order


def _weighted(sequences: Sequence[Sequence[int]], counts: Sequence[int] | None) -> Counter[Symbols]:
    """How often each sequence occurs; once for each mention unless `counts` says otherwise."""
    if counts is not None and len(counts) != len(sequences):
        raise ShapeError(f"there are {len(sequences)} sequences and {len(counts)} counts; expected one each")
    total: Counter[Symbols] = Counter()
    for place, sequence in enumerate(sequences):
        count = 1 if counts is None else int(counts[place])
        if count < 0:
            raise ArgumentError(f"counts[{place}] is {count}; expected 0 or more")
        total[tuple(int(symbol) for symbol in sequence)] += count
    return total
