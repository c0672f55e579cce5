"""Pruning against a naive twin, and what it promises: the best tree, the gold arcs, the limits, a tree of the class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.arrays import TreeClass
from headway.errors import HeadsError, TrainingError
from headway.features.arc_features import ArcFeatures, Block
from headway.features.coding import Coded, Coder
from headway.features.templates import load_templates
from headway.inference.candidates import candidates
from headway.inference.first_order import argmax, log_partition, marginals
from headway.inference.parts import GRAND_SIBLINGS
from headway.models import pruning
from headway.models.arc_scorer import ArcScorer
from headway.models.pruning import Coverage, Pruned, Pruner, _count_parts, _keep_likely, coverage
from headway.models.scorer import Trained
from headway.parallel import Threads
from headway.training.data import code_trees
from headway.treebank import Sentence

from ..features.strategies import sentences
from .toy_treebank import sentences as toy_sentences

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Kept = set[tuple[int, int, int]]
CLASSES = [TreeClass(projective, single) for projective in TreeClass() for single in TreeClass()]
texts = st.lists(sentences(7), min_size=1, max_size=4)
classes = st.sampled_from(CLASSES)
seeds = st.integers(0, 99)


def scorer_of(coder: Coder) -> ArcScorer:
    blocks = [Block(template, 6, 0, 0) for template in load_templates("pruner")]
    return ArcScorer(ArcFeatures.compile(blocks, coder))


def pruner_of(coder: Coder, seed: int, trees: TreeClass, threshold: float, max_heads: int) -> Pruner:
    scorer = scorer_of(coder)
    weights = np.random.default_rng(seed).normal(size=scorer.size)
    return Pruner(Trained(scorer, weights), trees, threshold, max_heads)


def arcs_of(kept: NDArray[np.bool_]) -> Kept:
    assert kept.dtype == np.bool_
    return {(int(b), int(h), int(m)) for b, h, m in np.argwhere(kept)}


def likely(mu: Floats, lengths: Ints, threshold: float, max_heads: int) -> Kept:
    """The twin: sort the heads of every word, and take the first ones that pass."""
    kept = set()
    for b, n in enumerate(lengths.tolist()):
        for m in range(1, n + 1):
            heads = sorted((h for h in range(n + 1) if h != m), key=lambda h: (-mu[b, h, m], h))
            passing = [h for h in heads if mu[b, h, m] >= threshold * mu[b, heads[0], m]]
            kept |= {(b, h, m) for h in passing[:max_heads]}
    return kept


def tree_arcs(heads: Ints) -> Kept:
    return {(b, int(row[m]), m) for b, row in enumerate(heads) for m in range(1, len(row)) if row[m] >= 0}


def material(text: list[Sentence]) -> tuple[Coder, Coded, Ints]:
    coder = Coder.learn(text)
    coded, heads, _ = code_trees(text, coder, ())
    return coder, coded, heads


def distribution(pruner: Pruner, coded: Coded, which: Ints) -> tuple[Floats, Floats, Ints]:
    """Scores, marginals and the best tree, by the functions everyone calls."""
    scores, trees, lengths = pruner.scorer.scores(coded.some(which)), pruner.trees._asdict(), coded.lengths[which]
    return scores, marginals(scores, lengths=lengths, **trees), argmax(scores, lengths=lengths, **trees)


@given(texts, seeds, classes, st.sampled_from([1e-6, 1e-3, 0.1, 0.5, 1.0]), st.integers(1, 5), st.booleans())
def test_prunes_like_the_twin(
    text: list[Sentence], seed: int, trees: TreeClass, threshold: float, max_heads: int, with_gold: bool
) -> None:
    coder, coded, heads = material(text)
    pruner = pruner_of(coder, seed, trees, threshold, max_heads)
    which = np.random.default_rng(seed).permutation(len(text))
    scores, mu, best = distribution(pruner, coded, which)
    kept, arcs, log_z, own = pruner.prune(coded.some(which), heads[which] if with_gold else None)
    np.testing.assert_array_equal(arcs, scores)
    np.testing.assert_array_equal(own, mu)
    expected_z = log_partition(scores, lengths=coded.lengths[which], **trees._asdict())
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12, atol=1e-12)
    expected = likely(mu, coded.lengths[which], threshold, max_heads) | tree_arcs(best)
    assert arcs_of(kept) == (expected | tree_arcs(heads[which]) if with_gold else expected)


@given(texts, seeds, classes, st.sampled_from([1e-4, 0.3, 1.0]))
def test_keeps_every_arc_above_the_threshold(
    text: list[Sentence], seed: int, trees: TreeClass, threshold: float
) -> None:
    """Without a limit on the heads; and beyond these arcs, those of the best tree only."""
    coder, coded, _ = material(text)
    pruner, which = pruner_of(coder, seed, trees, threshold, 100), np.arange(len(text))
    kept = pruner.prune(coded).kept
    _, mu, best = distribution(pruner, coded, which)
    above = (mu >= threshold * mu.max(axis=1, keepdims=True)) & (mu > 0)
    assert not (above & ~kept).any()
    assert arcs_of(kept & ~above) <= tree_arcs(best)


@given(texts, seeds, classes, st.integers(1, 3))
def test_limits_the_heads_of_a_word(text: list[Sentence], seed: int, trees: TreeClass, max_heads: int) -> None:
    """Only the head in the best tree and the gold head may come on top."""
    coder, coded, heads = material(text)
    pruner, which = pruner_of(coder, seed, trees, 1e-9, max_heads), np.arange(len(text))
    _, _, best = distribution(pruner, coded, which)
    kept = pruner.prune(coded, heads).kept
    for b, n in enumerate(coded.lengths.tolist()):
        for m in range(1, n + 1):
            own = {int(h) for h in np.flatnonzero(kept[b, :, m])}
            assert {int(best[b, m]), int(heads[b, m])} <= own
            assert min(max_heads, n) <= len(own)
            assert len(own - {int(best[b, m]), int(heads[b, m])}) <= max_heads


@given(texts, seeds, classes)
def test_what_is_kept_has_a_tree_of_the_class(text: list[Sentence], seed: int, trees: TreeClass) -> None:
    """However little is kept; and no arc into the root, of a word to itself, or of the padding."""
    coder, coded, _ = material(text)
    pruner, which = pruner_of(coder, seed, trees, 1.0, 1), np.arange(len(text))
    kept, scores, *_ = pruner.prune(coded)
    _, _, best = distribution(pruner, coded, which)
    left = argmax(
        np.where(kept, scores, -np.inf), lengths=coded.lengths, **trees._asdict()
    )  # NoTreeError if there were none
    np.testing.assert_array_equal(left, best)
    assert all(0 < m <= coded.lengths[b] and h <= coded.lengths[b] and h != m for b, h, m in arcs_of(kept))


@pytest.mark.parametrize(
    ("max_heads", "expected"), [(1, [2]), (2, [0, 2]), (3, [0, 2, 4]), (4, [0, 2, 3, 4]), (9, [0, 2, 3, 4])]
)
def test_equally_likely_heads_are_taken_from_the_left(max_heads: int, expected: list[int]) -> None:
    mu = np.zeros((1, 6, 6))
    mu[0, :, 1] = [0.25, 0.75, 0.5, 0.125, 0.25, 0.0625]  # what stands on the diagonal counts for nothing
    kept = np.zeros(mu.shape, np.bool_)
    _keep_likely(mu, np.array([5]), 0.25, max_heads, kept)
    assert np.flatnonzero(kept[0, :, 1]).tolist() == expected


def test_some_words_can_be_kept_and_others_not() -> None:
    text = [Sentence.from_words(["a", "b", "c", "d"], heads=[-1, 0, 1, 2, 3])]
    coder, coded, _ = material(text)
    pruner = pruner_of(coder, 0, TreeClass(), 1.0, 1)
    kept = pruner.prune(coded).kept
    for h, m in [(h, m) for h in range(5) for m in range(1, 5) if h != m]:
        asked = np.full((1, 5), -1)
        asked[0, m] = h
        more = pruner.prune(coded, asked).kept
        assert arcs_of(more) == arcs_of(kept) | {(0, h, m)}


def test_threads_change_nothing() -> None:
    text = toy_sentences(40, 1, crossing=True)
    coder, coded, heads = material(text)
    pruner = pruner_of(coder, 2, TreeClass(), 0.01, 4)
    one, four = pruner.prune(coded, heads), pruner.prune(coded, heads, Threads(4))
    for name in Pruned._fields:
        np.testing.assert_array_equal(getattr(one, name), getattr(four, name))


@given(texts, seeds, classes)
def test_coverage_counts_right_heads_and_arcs(text: list[Sentence], seed: int, trees: TreeClass) -> None:
    coder, coded, heads = material(text)
    pruner = pruner_of(coder, seed, trees, 0.2, 2)
    kept = arcs_of(pruner.prune(coded).kept)
    found = coverage(pruner, coded, heads)
    assert coverage(pruner, coded, heads, Threads(2)) == found
    assert found == Coverage(sum(map(len, text)), len(kept & tree_arcs(heads)), len(kept))
    everything = coverage(replace(pruner, threshold=1e-300, max_heads=100), coded, heads)
    assert everything.gold == everything.words


def test_coverage_as_figures() -> None:
    assert Coverage(8, 6, 20).recall == 75.0
    assert Coverage(8, 6, 20).heads_per_word == 2.5
    assert (Coverage(0, 0, 0).recall, Coverage(0, 0, 0).heads_per_word) == (0.0, 0.0)


@pytest.mark.parametrize("threshold", [0.0, -0.1, 1.5, float("nan"), float("inf")])
def test_threshold_that_cannot_be(threshold: float) -> None:
    coder, _, _ = material(toy_sentences(2, 0))
    with pytest.raises(TrainingError, match=r"^the pruning threshold is .*; expected a number above 0, at most 1$"):
        pruner_of(coder, 0, TreeClass(), threshold, 3)


@pytest.mark.parametrize("max_heads", [0, -1])
def test_limit_that_cannot_be(max_heads: int) -> None:
    coder, _, _ = material(toy_sentences(2, 0))
    with pytest.raises(TrainingError, match=r"^max_heads is .*; pruning must leave every word at least 1 head$"):
        pruner_of(coder, 0, TreeClass(), 0.1, max_heads)


def test_model_that_cannot_prune() -> None:
    coder, _, _ = material(toy_sentences(2, 0))
    scorer = scorer_of(coder)
    with pytest.raises(TrainingError, match="labels='none'"):
        Pruner(Trained(ArcScorer(scorer.arcs, scorer.arcs, ("x",)), np.zeros(2 * scorer.size)), TreeClass(), 0.1, 9)
    with pytest.raises(TrainingError, match=f"3 weights; its templates need {scorer.size}"):
        Pruner(Trained(scorer, np.zeros(3)), TreeClass(), 0.1, 9)


@pytest.mark.parametrize(
    ("heads", "cause"),
    [
        ([[-1, 2, 0]], r"shape \(1, 3\); expected \(2, 3\)"),
        ([[-1, 2], [-1, 0]], r"shape \(2, 2\); expected \(2, 3\)"),
        ([[-1, 2, 0], [-1, 2, -1]], "sentence 1: the head of word 1 is 2"),
        ([[-1, 1, 0], [-1, 0, -1]], "sentence 0: the head of word 1 is 1"),
        ([[-1, 2, -2], [-1, 0, -1]], "sentence 0: the head of word 2 is -2"),
        ([[1, 2, 0], [-1, 0, -1]], "sentence 0: the head of word 0 is 1"),
        ([[-1, 2, 0], [-1, 0, 0]], "sentence 1: the head of word 2 is 0"),
    ],
)
def test_heads_that_cannot_be_kept(heads: list[list[int]], cause: str) -> None:
    text = [Sentence.from_words(["a", "b"], heads=[-1, 2, 0]), Sentence.from_words(["a"], heads=[-1, 0])]
    coder, coded, _ = material(text)
    with pytest.raises(HeadsError, match=cause):
        pruner_of(coder, 0, TreeClass(), 0.1, 2).prune(coded, np.array(heads))


def test_words_that_are_all_alike_keep_fewer_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same heads for every word would make a number of parts that grows with the square of the length."""
    alike = [Sentence.from_words([","] * 60, upos=["PUNCT"] * 60), *toy_sentences(3, 1)]
    coder = Coder.learn(alike)
    pruner = pruner_of(coder, 3, TreeClass(False, True), 1e-9, 8)
    coded = coder.code(alike)
    before = pruner.prune(coded)
    parts = [_count_parts(kept) for kept in before.kept]
    most = parts[0] // 3
    assert most > max(parts[1:])
    monkeypatch.setattr(pruning, "MOST_PARTS", most)
    after = pruner.prune(coded)
    assert 100 < _count_parts(after.kept[0]) <= most
    np.testing.assert_array_equal(after.kept[1:], before.kept[1:])  # what is within the limit stays as it is
    assert not (after.kept & ~before.kept).any()
    heads = argmax(np.where(after.kept[0], after.scores[0], -np.inf))
    np.testing.assert_array_equal(heads, argmax(after.scores[0]))


def test_parts_are_counted_as_they_are_listed() -> None:
    rng = np.random.default_rng(1)
    for n in (1, 2, 5, 9):
        kept = rng.random((n + 1, n + 1)) < 0.6
        these = candidates(kept)
        assert _count_parts(kept) >= len(GRAND_SIBLINGS.nodes(these))
        assert _count_parts(kept) == sum(
            max(1, len(np.flatnonzero(these.modifiers == h))) * (these.pairs[2 * h + 2] - these.pairs[2 * h])
            for h in range(n + 1)
        )
