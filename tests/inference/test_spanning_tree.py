"""The best tree: against enumeration, against a naive recursive twin, and where others break.

Ties, forbidden arcs, hundreds of nested cycles, root scores so large that a constant added to force
a single root would eat the rest.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import NoTreeError
from headway.inference import argmax, forbid

from .exact import arcs, in_class, is_tree, part_sum, tree_distribution
from .strategies import TREE_CLASSES, Floats, normal_scores, score_matrices, with_garbage


def exact_score(scores: Floats, heads: np.ndarray) -> Fraction:
    score = part_sum(scores, arcs(heads.tolist()))
    assert score is not None
    return score


def chu_liu_edmonds(scores: dict[tuple[int, int], Fraction], nodes: list[int]) -> dict[int, int]:
    """The naive twin: contract one cycle of best heads, recurse, expand. Multi-root, rational."""
    head = {m: max((h for h in nodes if (h, m) in scores), key=lambda h: scores[h, m]) for m in nodes if m != 0}
    cycle = find_cycle(head)
    if not cycle:
        return head
    new = max(nodes) + 1
    outside = [v for v in nodes if v not in cycle]
    contracted = {arc: s for arc, s in scores.items() if not cycle & set(arc)}
    enters: dict[int, int] = {}
    leaves: dict[int, int] = {}
    for v in outside:
        entries = {x: scores[v, x] - scores[head[x], x] for x in sorted(cycle) if (v, x) in scores}
        exits = {x: scores[x, v] for x in sorted(cycle) if (x, v) in scores}
        if entries:
            enters[v] = max(entries, key=entries.__getitem__)
            contracted[v, new] = entries[enters[v]]
        if exits:
            leaves[v] = max(exits, key=exits.__getitem__)
            contracted[new, v] = exits[leaves[v]]
    solved = chu_liu_edmonds(contracted, [*outside, new])
    entry = solved.pop(new)
    expanded = {m: leaves[m] if h == new else h for m, h in solved.items()}
    return expanded | {x: head[x] for x in cycle} | {enters[entry]: entry}


def find_cycle(head: dict[int, int]) -> set[int]:
    for start in head:
        walk = [start]
        while walk[-1] in head and head[walk[-1]] not in walk:
            walk.append(head[walk[-1]])
        if walk[-1] in head:
            return set(walk[walk.index(head[walk[-1]]) :])
    return set()


def twin(scores: Floats, single_root: bool) -> Fraction:
    """The best score by the naive twin; single-root as the best over the root's only child."""
    n = len(scores) - 1
    allowed = {
        (h, m): Fraction(float(scores[h, m]))
        for h in range(n + 1)
        for m in range(1, n + 1)
        if h != m and scores[h, m] != -math.inf
    }
    choices = range(1, n + 1) if single_root else [None]
    best = []
    for child in choices:
        kept = {(h, m): s for (h, m), s in allowed.items() if h != 0 or child in (None, m)}
        heads = chu_liu_edmonds(kept, list(range(n + 1)))
        best.append(sum((kept[h, m] for m, h in heads.items()), Fraction(0)))
    return max(best)


@pytest.mark.parametrize("single_root", [False, True])
@settings(max_examples=100)
@given(scores=score_matrices(max_words=5))
def test_attains_the_maximum_of_the_enumeration(single_root: bool, scores: Floats) -> None:
    reference = tree_distribution(scores, projective=False, single_root=single_root)
    heads = argmax(scores, single_root=single_root)
    assert heads.dtype == np.int64
    assert tuple(heads.tolist()) in reference.score_of
    slack = Fraction(1e-14 * np.abs(scores[np.isfinite(scores)]).max(initial=1.0))
    assert reference.max - exact_score(scores, heads) <= slack


@pytest.mark.parametrize("flags", TREE_CLASSES)
@settings(max_examples=50)
@given(data=st.data())
def test_is_exactly_the_maximum_where_floats_are_exact(flags: dict[str, bool], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 5))
    values = st.lists(st.integers(-3, 3), min_size=(n + 1) ** 2, max_size=(n + 1) ** 2)
    scores = np.array(data.draw(values), dtype=np.float64).reshape(n + 1, n + 1)
    reference = tree_distribution(scores, **flags)
    assert exact_score(scores, argmax(scores, **flags)) == reference.max


@pytest.mark.parametrize("seed", range(5))
def test_equals_the_naive_twin_multi_root(seed: int) -> None:
    scores = normal_scores(60, seed)
    heads = argmax(scores, single_root=False)
    assert is_tree(heads.tolist())
    assert float(twin(scores, False) - exact_score(scores, heads)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_naive_twin_single_root(seed: int) -> None:
    scores = normal_scores(25, seed)
    scores[0] += 2.0  # the best multi-root tree has many roots
    assert (argmax(scores, single_root=False) == 0).sum() > 1
    heads = argmax(scores, single_root=True)
    assert in_class(heads.tolist(), projective=False, single_root=True)
    assert float(twin(scores, True) - exact_score(scores, heads)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_naive_twin_on_cycles_within_cycles(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 4, (41, 41)).astype(np.float64)  # ties everywhere, exact arithmetic
    scores[0] -= 20.0
    scores[rng.random((41, 41)) < 0.5] = -np.inf
    scores[0, 1:] = np.where(np.isneginf(scores[0, 1:]), -30.0, scores[0, 1:])
    heads = argmax(scores, single_root=False)
    assert exact_score(scores, heads) == twin(scores, False)


@pytest.mark.parametrize("single_root", [False, True])
def test_five_hundred_nested_cycles(single_root: bool) -> None:
    n, root = 500, 317
    scores = np.full((n + 1, n + 1), -np.inf)
    word = np.arange(1, n + 1)
    scores[word[:-1], word[1:]] = 0.0  # everyone's favourite head is the word before,
    scores[word[1:], word[:-1]] = -word[:-1]  # and one by one each cycle is entered from the next
    scores[0, 1:] = word * (word - 1) / 2 - 1e6  # which makes every single root equally good
    scores[0, root] += 0.5
    heads = argmax(scores, single_root=single_root)
    expected = np.where(word > root, word - 1, word + 1)
    expected[root - 1] = 0
    np.testing.assert_array_equal(heads, np.concatenate([[-1], expected]))


@pytest.mark.parametrize("flags", TREE_CLASSES)
def test_a_single_root_costs_no_precision(flags: dict[str, bool]) -> None:
    """Root scores of 2^33 beside differences of 2^-10: all sums are exact in float64."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        scores = rng.integers(0, 2**10, (6, 6)) / 2.0**10
        scores[0] += 2.0**33
        reference = tree_distribution(scores, **flags)
        assert exact_score(scores, argmax(scores, **flags)) == reference.max


@pytest.mark.parametrize("flags", TREE_CLASSES)
@pytest.mark.parametrize("size", [1e12, 1e299])
def test_astronomical_scores(flags: dict[str, bool], size: float) -> None:
    rng = np.random.default_rng(4)
    for _ in range(10):
        scores = with_garbage(size * rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], (5, 5)))
        reference = tree_distribution(scores, **flags)
        heads = argmax(scores, **flags)
        assert in_class(heads.tolist(), **flags)
        assert float(exact_score(scores, heads)) == pytest.approx(float(reference.max), rel=1e-14)


@pytest.mark.parametrize("flags", TREE_CLASSES)
def test_ties_are_broken_the_same_way_every_time(flags: dict[str, bool]) -> None:
    rng = np.random.default_rng(5)
    batch = rng.integers(0, 2, (16, 13, 13)).astype(np.float64)
    first = argmax(batch, **flags)
    np.testing.assert_array_equal(argmax(batch.copy(), **flags), first)
    np.testing.assert_array_equal(argmax(batch[::-1], **flags)[::-1], first)
    for scores, heads in zip(batch, first, strict=True):
        np.testing.assert_array_equal(argmax(scores, **flags), heads)
        np.testing.assert_array_equal(argmax(np.asfortranarray(scores), **flags), heads)


@pytest.mark.parametrize("flags", TREE_CLASSES)
def test_no_word_and_one_word(flags: dict[str, bool]) -> None:
    np.testing.assert_array_equal(argmax(np.array([[np.nan]]), **flags), [-1])
    one = np.array([[np.nan, -7.0], [np.inf, np.nan]])
    np.testing.assert_array_equal(argmax(one, **flags), [-1, 0])
    with pytest.raises(NoTreeError, match="1") as caught:
        argmax(forbid(one, [(0, 1)]), **flags)
    assert caught.value.words == (1,)


@pytest.mark.parametrize("flags", TREE_CLASSES)
def test_names_the_word_without_a_head(flags: dict[str, bool]) -> None:
    scores = np.zeros((6, 6))
    scores[:, 3] = -np.inf
    with pytest.raises(NoTreeError, match=r"\b3\b") as caught:
        argmax(scores, **flags)
    assert caught.value.words == (3,)
    assert caught.value.sentence is None


@pytest.mark.parametrize("flags", TREE_CLASSES)
def test_names_the_cycle_without_a_way_out(flags: dict[str, bool]) -> None:
    scores = np.zeros((6, 6))
    scores[[0, 1, 4, 5], 2] = -np.inf
    scores[[0, 1, 4, 5], 3] = -np.inf
    with pytest.raises(NoTreeError, match=r"\b2\b.*\b3\b") as caught:
        argmax(scores, **flags)
    assert sorted(caught.value.words) == [2, 3]


@pytest.mark.parametrize("projective", [False, True])
def test_names_two_words_that_only_the_root_can_head(projective: bool) -> None:
    scores = np.zeros((6, 6))
    scores[1:, [2, 4]] = -np.inf
    assert argmax(scores, projective=projective, single_root=False)[[2, 4]].tolist() == [0, 0]
    with pytest.raises(NoTreeError, match=r"\b2\b.*\b4\b") as caught:
        argmax(scores, projective=projective, single_root=True)
    assert sorted(caught.value.words) == [2, 4]
