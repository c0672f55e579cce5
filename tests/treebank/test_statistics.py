"""Statistics of sentences whose figures are known, in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.treebank import Sentence, Statistics
from headway.treebank.trees import is_tree

from .strategies import head_choices
from .test_trees import naive_crossing, naive_non_projective


def test_every_figure() -> None:
    crossing = Sentence.from_words(
        ["a", "b", "c"],
        lemmas=["a", "_", "_"],
        upos=["X", "Y", "X"],
        feats=["_", "F=1", "F=2"],
        heads=[-1, 3, 0, 2],
        labels=[None, "obj", "root", "obj"],
    )
    two_roots = Sentence.from_words(["a", "b"], heads=[-1, 0, 0])
    cyclic = Sentence.from_words(["a", "b", "c", "d"], heads=[-1, 2, 1, 0, 1], labels=[None, "x", "x", "root", "x"])
    bare = Sentence.from_words(["a"])
    statistics = Statistics.of(iter([crossing, two_roots, cyclic, bare]))
    assert statistics == Statistics(
        sentences=4,
        tokens=10,
        longest=4,
        arcs=5,
        non_projective_arcs=1,
        crossing_arcs=2,
        trees=2,
        non_projective_trees=1,
        multi_root_trees=1,
        sentences_without_heads=1,
        sentences_with_cycle=1,
        tokens_with_lemma=1,
        tokens_with_feats=2,
        labels=statistics.labels,
        upos=statistics.upos,
    )
    assert dict(statistics.labels) == {"obj": 2, "root": 2, "x": 3}
    assert dict(statistics.upos) == {"X": 2, "Y": 1}
    assert statistics.mean_length == 2.5
    assert statistics.non_projective_arc_share == 0.2
    assert statistics.crossing_arc_share == 0.4
    assert statistics.non_projective_tree_share == 0.5
    assert statistics.multi_root_share == 0.5
    assert statistics.lemma_share == 0.1
    assert statistics.feats_share == 0.2


def test_nothing_has_no_shares() -> None:
    nothing = Statistics.of([])
    assert nothing == Statistics()
    assert nothing.mean_length == nothing.non_projective_arc_share == nothing.multi_root_share == 0.0
    assert Statistics.of([Sentence.from_words([], heads=[-1])]).multi_root_share == 0.0


@given(choices=st.lists(head_choices(), max_size=6))
def test_arcs_are_counted_over_trees(choices: list[tuple[int, ...]]) -> None:
    statistics = Statistics.of(Sentence.from_words(["w"] * (len(heads) - 1), heads=heads) for heads in choices)
    trees = [heads for heads in choices if is_tree(heads)]
    arcs = sum(len(heads) - 1 for heads in trees)
    assert (statistics.trees, statistics.arcs) == (len(trees), arcs)
    assert statistics.sentences_with_cycle == len(choices) - len(trees)
    assert statistics.crossing_arcs == sum(sum(naive_crossing(heads)) for heads in trees)
    non_projective = sum(sum(naive_non_projective(heads)) for heads in trees)
    assert statistics.non_projective_arcs == non_projective
    assert statistics.non_projective_arc_share == (float(Fraction(non_projective, arcs)) if arcs else 0.0)
    assert statistics.non_projective_trees == sum(any(naive_non_projective(heads)) for heads in trees)
    assert statistics.multi_root_trees == sum(heads.count(0) > 1 for heads in trees)


def test_one_sentence_at_a_time() -> None:
    """No sentence is kept: each is gone when the next is asked for."""
    import gc
    import weakref

    class Word(str):
        __slots__ = ("__weakref__",)

    seen: list[weakref.ref[Word]] = []

    def sentences() -> Iterator[Sentence]:
        for _ in range(5):
            gc.collect()
            assert sum(word() is not None for word in seen) <= 1
            word = Word("w")
            seen.append(weakref.ref(word))
            yield Sentence.from_words([word], heads=[-1, 0])
            del word

    assert Statistics.of(sentences()).sentences == 5


@pytest.mark.parametrize("name", ["trees", "sentences"])
def test_frozen(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(Statistics(), name, 1)
