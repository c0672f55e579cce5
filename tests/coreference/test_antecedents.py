"""Which antecedents the sieves let through: against plain Python, and that gold clusters have a tree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.coreference import Document
from headway.coreference.antecedents import Antecedents, Sieves, right_arcs
from headway.coreference.coding import MentionCoder
from headway.coreference.pairs import PAIR_ATOMS

from .naive_pairs import lets_through, naive_antecedents, naive_mentions
from .toy_documents import document, random_document, sentence

SEEDS = st.integers(0, 2**32 - 1)
CODER = MentionCoder.learn([])


def rows_of(arcs: Antecedents) -> list[list[int]]:
    return [arcs.antecedent[start:end].tolist() for start, end in pairwise(arcs.start.tolist())]


def antecedents(text: Document, near: int, sentences: int, gold: bool = False) -> Antecedents:
    return Sieves(near, sentences).antecedents(CODER.code(text), text.clusters if gold else None)


@settings(max_examples=80)
@given(SEEDS, st.integers(0, 4), st.integers(0, 3), st.booleans())
def test_against_plain_python(seed: int, near: int, sentences: int, gold: bool) -> None:
    text = random_document(seed)
    arcs = antecedents(text, near, sentences, gold)
    clusters = text.clusters.tolist() if gold else None
    assert rows_of(arcs) == naive_antecedents(text, near, sentences, clusters)
    assert arcs.mention.tolist() == [m for m, row in enumerate(rows_of(arcs), start=1) for _ in row]
    assert arcs.atoms.shape == (len(arcs.antecedent), len(PAIR_ATOMS))


@settings(max_examples=50)
@given(SEEDS, st.integers(0, 2), st.integers(0, 1))
def test_gold_clusters_are_always_reachable(seed: int, near: int, sentences: int) -> None:
    text = random_document(seed)
    arcs = antecedents(text, near, sentences, gold=True)
    clusters = text.clusters.tolist()
    right = right_arcs(arcs, text.clusters)
    for m, row in enumerate(rows_of(arcs), start=1):
        assert row[0] == 0
        assert row == sorted(set(row))
        assert row[-1] < m
        is_first = clusters.index(clusters[m - 1]) == m - 1
        expected = [a == 0 if is_first else a > 0 and clusters[a - 1] == clusters[m - 1] for a in row]
        assert right[arcs.start[m - 1] : arcs.start[m]].tolist() == expected
        assert any(expected)


def test_each_sieve_alone_lets_some_through() -> None:
    """Or the comparison would say little."""
    alone: set[str] = set()
    for seed in range(20):
        mentions = naive_mentions(random_document(seed))
        for m in range(2, len(mentions) + 1):
            for a in range(1, m):
                names = lets_through(mentions, a, m, 1, 0)
                alone |= names if len(names) == 1 else set()
    assert alone == {"near", "pronoun", "match"}


def single_words(*rows: str) -> Document:
    """A sentence and a mention for each row."""
    return document([sentence(row) for row in rows], [(number, (1,)) for number in range(len(rows))])


def test_names_match_at_any_distance_and_pronouns_nearby() -> None:
    text = single_words(
        "Ann PROPN 0 root", "he PRON 0 root", "dog NOUN 0 root", "ANN PROPN 0 root", "she PRON 0 root", "He PRON 0 root"
    )
    assert rows_of(antecedents(text, 0, 0)) == [[0], [0], [0], [0, 1], [0], [0, 2]]
    assert rows_of(antecedents(text, 1, 0)) == [[0], [0, 1], [0, 2], [0, 1, 3], [0, 4], [0, 2, 5]]
    assert rows_of(antecedents(text, 0, 2)) == [[0], [0, 1], [0], [0, 1], [0, 3, 4], [0, 2, 4, 5]]


@pytest.mark.parametrize(
    ("clusters", "near", "row"),
    [
        ([0, 1, 2, 3, 4], 1, [0, 1, 4]),  # nothing right
        ([0, 1, 2, 3, 1], 1, [0, 1, 2, 4]),  # between what was let through
        ([0, 1, 1, 3, 1], 1, [0, 1, 3, 4]),  # the nearest of two
        ([1, 1, 2, 3, 1], 1, [0, 1, 4]),  # one was let through, if not the nearest
        ([0, 1, 2, 1, 1], 1, [0, 1, 4]),
        ([0, 1, 2, 3, 3], 0, [0, 1, 4]),  # behind all that was let through
        ([0, 1, 2, 3, 1], 0, [0, 1, 2]),
    ],
)
def test_what_gold_clusters_cannot_be_without(clusters: list[int], near: int, row: list[int]) -> None:
    text = single_words("Ann PROPN 0 x", "dog NOUN 0 x", "cat NOUN 0 x", "cow NOUN 0 x", "Ann PROPN 0 x")
    arcs = antecedents(text.with_clusters(clusters), near, 0, gold=True)
    assert rows_of(arcs)[-1] == row


def test_before_all_that_was_let_through() -> None:
    text = single_words("Ann PROPN 0 x", "dog NOUN 0 x", "cat NOUN 0 x", "cow NOUN 0 x").with_clusters([0, 1, 2, 0])
    assert rows_of(antecedents(text, 2, 0, gold=True))[-1] == [0, 1, 2, 3]
    assert rows_of(antecedents(text, 2, 0))[-1] == [0, 2, 3]


def test_no_mentions() -> None:
    arcs = antecedents(document([sentence("a X 0 root")], []), 20, 5, gold=True)
    assert arcs.start.tolist() == [0]
    assert len(arcs.antecedent) == len(arcs.mention) == len(arcs.atoms) == 0
    assert len(right_arcs(arcs, np.zeros(0, np.int64))) == 0
