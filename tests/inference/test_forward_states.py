"""Forward vectors as the definition has them, clusters by enumeration of pairs, automata by rescanning until stable."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import ScoresError, ShapeError, SizeError
from headway.inference import forward_states
from headway.inference.forward_states import (
    Prefixes,
    StateAutomaton,
    Transition,
    determinised,
    forward_vectors,
    frequent_prefixes,
    group_average,
    state_automaton,
)

from .strategies import Floats

Sequences = list[tuple[int, ...]]
SYMBOLS = 4

symbol_sequences = st.lists(st.integers(1, SYMBOLS - 1), max_size=5).map(tuple)
weighted_sequences = st.lists(st.tuples(symbol_sequences, st.integers(1, 4)), max_size=12)
# Small integers make duplicates, opposite vectors, vectors of zero and ties; fractions make none of them.
grids = st.lists(st.lists(st.integers(-2, 2).map(float), min_size=3, max_size=3), min_size=1, max_size=9)


def split(weighted: list[tuple[tuple[int, ...], int]]) -> tuple[Sequences, list[int]]:
    return [sequence for sequence, _ in weighted], [count for _, count in weighted]


@given(weighted_sequences, st.integers(1, 6))
def test_the_frequent_prefixes_are_those_that_so_many_sequences_begin_with(
    weighted: list[tuple[tuple[int, ...], int]], minimum: int
) -> None:
    sequences, counts = split(weighted)
    found = frequent_prefixes(sequences, counts, minimum=minimum)
    every = [x for t in range(6) for x in itertools.product(range(1, SYMBOLS), repeat=t)]
    expected = {x: sum(count for sequence, count in weighted if sequence[: len(x)] == x) for x in every}
    kept = {x: count for x, count in expected.items() if count >= minimum or x == ()}
    assert dict(zip(found.sequences, found.counts.tolist(), strict=True)) == kept
    assert found.sequences[0] == ()
    assert len(found) == len(kept)
    assert found.parents[0] == 0
    for place, x in enumerate(found.sequences[1:], start=1):
        assert found.sequences[found.parents[place]] == x[:-1]
        assert found.parents[place] < place
    keys = [(len(x), -kept[x], x) for x in found.sequences]
    assert keys == sorted(keys)


def test_a_sequence_counts_once_for_each_mention_without_counts() -> None:
    repeated = frequent_prefixes([(1, 2), (1, 2), (1,)], minimum=1)
    counted = frequent_prefixes([(1, 2), (1,)], [2, 1], minimum=1)
    assert repeated.sequences == counted.sequences == ((), (1,), (1, 2))
    assert repeated.counts.tolist() == counted.counts.tolist() == [3, 3, 2]


@given(weighted_sequences, st.integers(0, 2**32 - 1))
def test_forward_vectors_are_the_products_of_the_operators(
    weighted: list[tuple[tuple[int, ...], int]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    initial, operators = rng.normal(size=3), rng.normal(size=(SYMBOLS, 3, 3))
    prefixes = frequent_prefixes(*split(weighted))
    vectors = forward_vectors(initial, operators, prefixes)
    assert vectors.shape == (len(prefixes), 3)
    for x, vector in zip(prefixes.sequences, vectors, strict=True):
        expected = initial.tolist()
        for symbol in x:
            matrix = operators[symbol].tolist()
            expected = [math.fsum(matrix[i][j] * expected[j] for j in range(3)) for i in range(3)]
        assert vector == pytest.approx(expected, rel=1e-12, abs=1e-12 * 10 ** len(x))


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """Of two vectors; those of zero agree with each other and with nothing else."""
    lengths = math.hypot(*a), math.hypot(*b)
    if not all(lengths):
        return float(not any(lengths))
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / lengths[0] / lengths[1]


def average(vectors: list[list[float]], members: Sequence[int]) -> float:
    """The similarity of a union by its definition: the mean over all pairs of different members."""
    pairs = list(itertools.combinations(members, 2))
    return math.fsum(cosine(vectors[i], vectors[j]) for i, j in pairs) / len(pairs)


def partition(labels: Sequence[int]) -> set[frozenset[int]]:
    return {frozenset(i for i, label in enumerate(labels) if label == each) for each in labels}


def greedy(vectors: list[list[float]], clusters: int) -> set[frozenset[int]]:
    """The naive twin: all pairs of clusters, all pairs of their members, at every step; of equals the first."""
    found = [[i] for i in range(len(vectors))]  # in the order of their first members
    while len(found) > clusters:
        a, b = max(itertools.combinations(found, 2), key=lambda pair: round(average(vectors, pair[0] + pair[1]), 10))
        a += b
        found.remove(b)
    return set(map(frozenset, found))


@settings(max_examples=100)
@given(st.integers(2, 14), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_clusters_are_those_of_the_definition(n: int, clusters: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(n, 3))
    assert partition(group_average(vectors, clusters).tolist()) == greedy(vectors.tolist(), clusters)


@settings(max_examples=100)
@given(grids, st.integers(1, 4))
def test_ties_go_to_the_first(vectors: list[list[float]], clusters: int) -> None:
    assert partition(group_average(vectors, clusters).tolist()) == greedy(vectors, clusters)


@pytest.mark.parametrize(
    ("vectors", "labels"),
    [
        # Once 4 and 5 are merged, 0 is as close to them, (1 + 2 * 0.4) / 3, as 2 is to 3; before, it was closest to 1.
        (
            [
                [0.4, 0.5, 0.59**0.5, 0, 0],
                [0, 1, 0, 0, 0],
                [0, 0, 0, 1, 0],
                [0, 0, 0, 0.6, 0.8],
                *[[1, 0, 0, 0, 0]] * 2,
            ],
            [0, 1, 2, 3, 0, 0],
        ),
        # Once 1 and 2 are merged, 0 is as close to them as to 3.
        ([[0.4, 0.6, 0.48**0.5], [1, 0, 0], [1, 0, 0], [0, 1, 0]], [0, 0, 0, 1]),
    ],
)
def test_ties_that_a_merge_makes_go_to_the_first(vectors: list[list[float]], labels: list[int]) -> None:
    assert group_average(vectors, len(vectors) - 2).tolist() == labels


@settings(max_examples=50)
@given(grids)
def test_every_merge_is_a_best_one_whatever_the_ties(vectors: list[list[float]]) -> None:
    before = partition(group_average(vectors, len(vectors)).tolist())
    assert before == {frozenset([i]) for i in range(len(vectors))}
    for clusters in range(len(vectors) - 1, 0, -1):
        after = partition(group_average(vectors, clusters).tolist())
        (new,) = after - before
        assert len(before - after) == 2
        assert new == frozenset().union(*(before - after))
        best = max(average(vectors, sorted(a | b)) for a, b in itertools.combinations(before, 2))
        assert average(vectors, sorted(new)) == pytest.approx(best, abs=1e-10)
        before = after


def test_many_vectors_that_are_known_to_fall_into_groups() -> None:
    rng = np.random.default_rng(5)
    centres = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    truth = rng.integers(0, 6, size=300)
    scales = 10.0 ** rng.uniform(-200, 50, size=(300, 1))  # the length must not matter, nor squares underflow
    vectors = (centres[truth] + 0.05 * rng.normal(size=(300, 6))) * scales
    assert partition(group_average(vectors, 6).tolist()) == partition(truth.tolist())


def test_clusters_are_numbered_by_their_first_members() -> None:
    labels = group_average([[0, 1], [1, 0], [0, 2], [-1, 0], [5, 0]], 3)
    assert labels.tolist() == [0, 1, 0, 2, 1]
    assert labels.dtype == np.int64


def test_vectors_of_zero_are_one_cluster_before_they_join_another() -> None:
    vectors = [[1.0, 0.0], [0.0, 0.0], [0.99, 0.1], [0.0, 0.0]]
    assert group_average(vectors, 2).tolist() == [0, 1, 0, 1]


def test_equal_directions_are_a_tie_whatever_rounding_does() -> None:
    """Equal directions of different lengths: their cosines differ in the last bits."""
    base = np.array([0.1, 0.7, -0.3])
    vectors = [base * scale for scale in (1.0, 3.0, 7.0, 0.3, 11.0)]
    assert group_average(vectors, 4).tolist() == [0, 0, 1, 2, 3]
    assert group_average(vectors, 2).tolist() == [0, 0, 0, 0, 1]


def test_more_clusters_than_vectors_are_as_many_as_there_are() -> None:
    assert group_average(np.eye(3), 10).tolist() == [0, 1, 2]
    assert group_average(np.zeros((0, 3)), 2).tolist() == []


def rescanned(prefixes: Prefixes, clusters: Sequence[int]) -> set[frozenset[int]]:
    """The naive twin: look at all pairs of transitions, merge the first two targets that disagree, and start anew."""
    state = dict(zip(prefixes.sequences, clusters, strict=True))
    while True:
        arrows = [(state[x[:-1]], x[-1], state[x]) for x in prefixes.sequences if x]
        clash = next(
            ((a[2], b[2]) for a, b in itertools.combinations(arrows, 2) if a[:2] == b[:2] and a[2] != b[2]), None
        )
        if clash is None:
            return partition([state[x] for x in prefixes.sequences])
        state = {x: clash[0] if each == clash[1] else each for x, each in state.items()}


@st.composite
def clustered(draw: st.DrawFn) -> tuple[Sequences, list[int], Prefixes, list[int]]:
    sequences, counts = split(draw(weighted_sequences))
    prefixes = frequent_prefixes(sequences, counts, minimum=draw(st.integers(1, 3)))
    clusters = draw(st.lists(st.integers(0, 6), min_size=len(prefixes), max_size=len(prefixes)))
    return sequences, counts, prefixes, clusters


@settings(max_examples=100)
@given(clustered())
def test_states_are_merged_until_deterministic_and_no_further(
    case: tuple[Sequences, list[int], Prefixes, list[int]],
) -> None:
    sequences, counts, prefixes, clusters = case
    automaton = determinised(prefixes, clusters, sequences, counts)
    states = [automaton.state_of(x) for x in prefixes.sequences]
    expected = rescanned(prefixes, clusters)
    assert None not in states
    assert partition([state for state in states if state is not None]) == expected
    assert automaton.states == len(expected)
    assert automaton.merges == len(set(clusters)) - len(expected)
    taken = {(automaton.state_of(x[:-1]), x[-1]): automaton.state_of(x) for x in prefixes.sequences if x}
    assert {key: each.state for key, each in automaton.transitions.items()} == taken


@settings(max_examples=100)
@given(clustered(), weighted_sequences)
def test_counts_are_those_of_walking_every_sequence(
    case: tuple[Sequences, list[int], Prefixes, list[int]], others: list[tuple[tuple[int, ...], int]]
) -> None:
    """Also of sequences that the prefixes are not from."""
    sequences, counts, prefixes, clusters = case
    for walked in (list(zip(sequences, counts, strict=True)), others):
        automaton = determinised(prefixes, clusters, *split(walked))
        used: Counter[tuple[int | None, int]] = Counter()
        stops: Counter[int | None] = Counter()
        leaves: Counter[int | None] = Counter()
        for sequence, count in walked:
            for t, symbol in enumerate(sequence):
                if automaton.state_of(sequence[: t + 1]) is None:
                    leaves[automaton.state_of(sequence[:t])] += count
                    break
                used[automaton.state_of(sequence[:t]), symbol] += count
            else:
                stops[automaton.state_of(sequence)] += count
        assert {key: each.count for key, each in automaton.transitions.items()} == {
            key: used[key] for key in automaton.transitions
        }
        assert automaton.stops.tolist() == [stops[state] for state in range(automaton.states)]
        assert automaton.leaves.tolist() == [leaves[state] for state in range(automaton.states)]
        assert automaton.lost == sum(leaves.values())
        assert automaton.stops.sum() + automaton.lost == sum(count for _, count in walked)


@given(clustered())
def test_probabilities_are_shares_of_the_visits(case: tuple[Sequences, list[int], Prefixes, list[int]]) -> None:
    sequences, counts, prefixes, clusters = case
    automaton = determinised(prefixes, clusters, sequences, counts)
    for state in range(automaton.states):
        total = automaton.stop_probability(state) + sum(automaton.probability(state, x) for x in range(SYMBOLS))
        if automaton.visits[state]:
            left = int(automaton.leaves[state]) / int(automaton.visits[state])
            assert total + left == pytest.approx(1.0, abs=1e-12)
        else:
            assert total == 0
    arrivals = Counter({automaton.start: sum(counts)})
    for transition in automaton.transitions.values():
        arrivals[transition.state] += transition.count
    assert automaton.visits.tolist() == [arrivals[state] for state in range(automaton.states)]


@given(clustered(), st.randoms(use_true_random=False))
def test_neither_the_order_of_the_sequences_nor_the_names_of_the_clusters_matter(
    case: tuple[Sequences, list[int], Prefixes, list[int]], random: np.random.Generator
) -> None:
    sequences, counts, prefixes, clusters = case
    first = determinised(prefixes, clusters, sequences, counts)
    order = list(range(len(sequences)))
    random.shuffle(order)
    names = list(range(7))
    random.shuffle(names)
    renamed = [names[each] for each in clusters]
    again = determinised(prefixes, renamed, [sequences[i] for i in order], [counts[i] for i in order])
    assert list(first.transitions.items()) == list(again.transitions.items())
    assert same_counts(first, again)
    assert first.merges == again.merges


def same_counts(one: StateAutomaton, other: StateAutomaton) -> bool:
    return all(
        a.tolist() == b.tolist()
        for a, b in ((one.visits, other.visits), (one.stops, other.stops), (one.leaves, other.leaves))
    )


def test_states_are_numbered_breadth_first_along_the_frequent_transitions() -> None:
    sequences: Sequences = [(1,), (2,), (3,), (2, 1), (1, 1), (1, 2)]
    prefixes = frequent_prefixes(sequences, [1, 9, 2, 3, 4, 1])
    automaton = determinised(prefixes, range(len(prefixes)), sequences, [1, 9, 2, 3, 4, 1])
    ways = [(), (2,), (1,), (3,), (2, 1), (1, 1), (1, 2)]
    assert [automaton.state_of(x) for x in ways] == list(range(7))
    assert automaton.start == 0
    assert automaton.transitions[0, 2] == Transition(1, 12)


def test_a_merge_that_needs_another() -> None:
    """1 and 2 lead to one cluster; then so must what follows them by 3, in clusters 2 and 3, and by 3 again."""
    sequences: Sequences = [(1, 3, 3), (2, 3, 3)]
    prefixes = frequent_prefixes(sequences)
    place = {x: i for i, x in enumerate(prefixes.sequences)}
    clusters = [0] * len(prefixes)
    for label, x in enumerate([(1,), (1, 3), (2, 3), (1, 3, 3), (2, 3, 3)], start=1):
        clusters[place[x]] = label
    clusters[place[2,]] = clusters[place[1,]]
    automaton = determinised(prefixes, clusters, sequences)
    assert (automaton.states, automaton.merges) == (4, 2)
    assert automaton.state_of((1, 3, 3)) == automaton.state_of((2, 3, 3)) == 3
    assert automaton.accepts((2, 3, 3))
    assert not automaton.accepts((2, 3))
    assert not automaton.accepts((3,))
    assert automaton.state_of((3,)) is None


def sampled(rng: np.random.Generator, table: Floats, stops: Floats, after: Sequence[int], size: int) -> Sequences:
    """Sequences of a deterministic automaton: P(symbol | state) by row, the state after a symbol, P(STOP | state)."""
    result = []
    for _ in range(size):
        state, sequence = 0, []
        while rng.random() >= stops[state]:
            symbol = int(rng.choice(len(after), p=table[state]))
            sequence.append(symbol)
            state = after[symbol]
        result.append(tuple(sequence))
    return result


def test_a_deterministic_automaton_is_found_again_in_any_basis() -> None:
    """Symbols 1, 2 lead to state 1, 3 to state 2; the operators are seen through a random change of basis."""
    after, stops = [0, 1, 1, 2], np.array([0.1, 0.5, 0.7])
    table = np.array([[0, 0.5, 0.3, 0.2], [0, 0.1, 0.3, 0.6], [0, 0.2, 0.7, 0.1]])
    sequences = sampled(np.random.default_rng(11), table, stops, after, 4000)
    basis = np.random.default_rng(12).normal(size=(3, 3))
    operators = np.zeros((4, 3, 3))
    for symbol in (1, 2, 3):
        operators[symbol, after[symbol]] = table[:, symbol] * (1 - stops)
    seen = basis @ operators @ np.linalg.inv(basis)
    automaton = state_automaton(basis[:, 0], seen, sequences, clusters=3, minimum=5)
    assert (automaton.states, automaton.merges, len(automaton.transitions)) == (3, 0, 9)
    number = [automaton.state_of(x) for x in ((), (1,), (3,))]
    for state, name in enumerate(number):
        assert name is not None
        assert automaton.stop_probability(name) == pytest.approx(stops[state], abs=0.03)
        for symbol in (1, 2, 3):
            assert automaton.transitions[name, symbol].state == number[after[symbol]]
            truth = table[state, symbol] * (1 - stops[state])
            assert automaton.probability(name, symbol) == pytest.approx(truth, abs=0.03)


def test_without_sequences_there_is_one_state_that_nobody_visits() -> None:
    automaton = state_automaton([1.0, 0.5], np.zeros((3, 2, 2)), [])
    assert (automaton.states, automaton.transitions, automaton.visits.tolist(), automaton.lost) == (1, {}, [0], 0)
    assert automaton.stop_probability(0) == automaton.probability(0, 1) == 0
    assert automaton.state_of(()) == 0
    assert not automaton.accepts(())


def test_what_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    prefixes = frequent_prefixes([(1, 2)])
    with pytest.raises(ValueError, match="minimum is 0"):
        frequent_prefixes([], minimum=0)
    with pytest.raises(ShapeError, match="1 sequences and 2 counts"):
        frequent_prefixes([(1,)], [1, 2])
    with pytest.raises(ValueError, match=r"counts\[1\] is -3"):
        frequent_prefixes([(1,), (2,)], [1, -3])
    with pytest.raises(ShapeError, match="symbol 2; there are operators for 0 to 1"):
        forward_vectors([1.0], np.ones((2, 1, 1)), prefixes)
    with pytest.raises(ShapeError, match=r"expected \(s,\) and \(X, s, s\)"):
        forward_vectors([1.0, 2.0], np.ones((3, 1, 1)), prefixes)
    with pytest.raises(ValueError, match="clusters is 0"):
        group_average(np.eye(2), 0)
    with pytest.raises(ScoresError, match="vector 1 is not finite"):
        group_average([[1.0, 2.0], [np.inf, 0.0]], 1)
    with pytest.raises(ShapeError, match=r"expected \(N, s\)"):
        group_average([1.0, 2.0], 1)
    with pytest.raises(ShapeError, match=r"expected \(3,\), one a prefix"):
        determinised(prefixes, [0, 1], [(1, 2)])
    monkeypatch.setattr(forward_states, "MOST_VECTORS", 3)
    with pytest.raises(SizeError, match="4 vectors are too many"):
        group_average(np.eye(4), 2)
