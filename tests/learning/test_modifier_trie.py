"""The forest of prefixes holds the sequences that plain dicts hold, whatever the trees."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import ShapeError
from headway.learning.modifier_trie import ModifierTrie, first_without_tree
from tests.learning.sequences_oracle import Trees, random_trees, trie_of


@given(st.integers(0, 2**32), st.integers(0, 12), st.integers(2, 5), st.integers(0, 9))
def test_sequences_are_those_of_plain_dicts(seed: int, count: int, size: int, longest: int) -> None:
    trees = random_trees(np.random.default_rng(seed), count, size, longest)
    trie, expected = ModifierTrie.of(*trees.arrays), trees.sequences()
    for h in range(size):
        for d in range(2):
            assert Counter(dict(trie.sequences(h, d))) == expected.get((h, d), Counter())
            assert trie.counts[h, d] == sum(expected.get((h, d), Counter()).values())


@given(st.integers(0, 2**32), st.integers(2, 4))
def test_every_prefix_is_there_once_and_counted(seed: int, size: int) -> None:
    trees = random_trees(np.random.default_rng(seed), 15, size, 8)
    trie, by_hand = ModifierTrie.of(*trees.arrays), trie_of(size, trees.sequences())
    assert trie.starts.tolist() == by_hand.starts.tolist()
    for tree in range(2 * size):
        assert nodes(trie, tree) == nodes(by_hand, tree)


def nodes(trie: ModifierTrie, tree: int) -> dict[tuple[int, ...], tuple[float, float, int, int]]:
    """Of one tree, by prefix: through, ends, depth, tree. Parents must come before their children."""
    prefixes: dict[int, tuple[int, ...]] = {}
    found = {}
    first, last = trie.starts[tree : tree + 2].tolist()
    for node in range(first, last):
        parent = int(trie.parents[node])
        prefixes[node] = () if node == first else (*prefixes[parent], int(trie.symbols[node]))
        known = (float(trie.through[node]), float(trie.ends[node]), int(trie.depths[node]), int(trie.trees[node]))
        assert prefixes[node] not in found
        assert known[2:] == (len(prefixes[node]), tree)
        found[prefixes[node]] = known
    assert trie.parents[first] == -1
    assert trie.symbols[first] == 0
    return found


def test_modifiers_are_read_from_the_head_outwards_even_across_other_arcs() -> None:
    """Word 3 (symbol 9) has 1, 2 and 5, 7; word 2 has 4 and 6: arcs that cross. Words 3 and 8 are both roots."""
    symbols, heads = [4, 5, 9, 6, 7, 8, 3, 2], [3, 3, 0, 2, 3, 2, 3, 0]
    trie = ModifierTrie.of(10, np.array([8]), np.array(symbols), np.array(heads))
    assert trie.sequences(9, 0) == [((5, 4), 1.0)]
    assert trie.sequences(9, 1) == [((7, 3), 1.0)]
    assert trie.sequences(5, 1) == [((6, 8), 1.0)]
    assert trie.sequences(5, 0) == [((), 1.0)]
    assert trie.sequences(0, 1) == [((9, 2), 1.0)]
    assert trie.sequences(0, 0) == [((), 1.0)]
    assert trie.sequences(1, 0) == []


def test_the_most_frequent_sequence_is_first_and_equals_are_in_order() -> None:
    lengths, symbols = np.array([2, 1, 1, 2, 0]), np.array([2, 1, 1, 1, 1, 2])
    trie = ModifierTrie.of(3, lengths, symbols, np.zeros(6, np.int64))
    assert trie.sequences(0, 1) == [((1,), 2.0), ((), 1.0), ((1, 2), 1.0), ((2, 1), 1.0)]


@pytest.mark.parametrize("size", [2, 64])
def test_a_very_long_sequence_is_one_path(size: int) -> None:
    n = 5000
    trie = ModifierTrie.of(size, np.array([n, n - 1]), np.ones(2 * n - 1, np.int64), np.zeros(2 * n - 1, np.int64))
    first, last = trie.starts[1:3].tolist()
    assert last - first == n + 1
    assert trie.parents[first:last].tolist() == [-1, *range(first, last - 1)]
    assert trie.through[first:last].tolist() == [2.0] * n + [1.0]
    assert trie.ends[first:last].tolist() == [0.0] * (n - 1) + [1.0, 1.0]


def test_edges_that_meet_in_the_hash_table_are_told_apart() -> None:
    """Those of one prefix are spread far from each other: many full tables are needed before two of them meet."""
    rng, size = np.random.default_rng(0), 50
    lengths = np.repeat([1, 2], [50, 53])
    for _ in range(500):
        symbols = rng.integers(1, size, lengths.sum())
        trie = ModifierTrie.of(size, lengths, symbols, np.zeros_like(symbols))
        strings = [(a,) for a in symbols[:50].tolist()] + [(a, b) for a, b in symbols[50:].reshape(-1, 2).tolist()]
        assert Counter(dict(trie.sequences(0, 1))) == Counter(strings)


def test_no_sentences_is_a_forest_of_roots() -> None:
    trie = ModifierTrie.of(*Trees(3, [], []).arrays)
    assert trie.starts.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert not trie.counts.any()
    assert trie.sequences(0, 1) == []


@pytest.mark.parametrize(
    ("lengths", "symbols", "heads", "message"),
    [
        ([2], [1, 1], [0], "2 symbols and 1 heads for 2 words"),
        ([3], [1, 1], [0, 1], "2 symbols and 2 heads for 3 words"),
        ([2], [0, 1], [0, 1], "symbols go from 0 to 1; expected 1 to 2"),
        ([2], [3, 1], [0, 1], "symbols go from 1 to 3; expected 1 to 2"),
        ([2], [1, 1], [0, -1], "a head is outside its sentence"),
        ([1, 3], [1, 1, 1, 1], [2, 0, 0, 0], "a head is outside its sentence"),
    ],
)
def test_arrays_that_are_no_trees_are_refused(
    lengths: list[int], symbols: list[int], heads: list[int], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        ModifierTrie.of(3, np.array(lengths), np.array(symbols), np.array(heads))


@given(st.integers(0, 2**32), st.integers(1, 6))
def test_the_first_sentence_without_a_tree_is_found(seed: int, count: int) -> None:
    """Against walking up from every word; a word without a head (-1) is no tree either."""
    rng = np.random.default_rng(seed)
    sentences = [[-1, *rng.integers(-1, n + 1, n).tolist()] for n in rng.integers(0, 4, count).tolist()]
    wrong = [b for b, heads in enumerate(sentences) if not all(climbs(heads, m) for m in range(1, len(heads)))]
    lengths = np.array([len(heads) - 1 for heads in sentences])
    assert first_without_tree(lengths, np.array([h for heads in sentences for h in heads])) == (wrong or [-1])[0]


def climbs(heads: list[int], word: int) -> bool:
    """Whether going from head to head leads from a word to the root."""
    for _ in heads:
        word = heads[word]
        if word <= 0:
            return word == 0
    return False
