"""Classes of words: contexts counted one word at a time, weights from the formula, divisions by what settles them."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array

from headway.features.clusters import NO_CLUSTERS
from headway.features.coding import Coder
from headway.features.word_classes import LEAST, context_counts, divide, learn_word_classes, weigh
from headway.training.data import code_trees, label_names
from headway.treebank import Sentence
from tests.models.toy_treebank import sentences as toy


@st.composite
def treebanks(draw: st.DrawFn) -> list[Sentence]:
    """Sentences of few words, so that many are seen often; some heads are unknown."""
    found = []
    for _ in range(draw(st.integers(1, 6))):
        forms = draw(st.lists(st.sampled_from(["a", "A", "b", "c", "d"]), min_size=1, max_size=6))
        tags = draw(st.lists(st.sampled_from("XY"), min_size=len(forms), max_size=len(forms)))
        heads = [0, *(draw(st.integers(-1, m - 1)) for m in range(2, len(forms) + 1))]
        labels = ["_" if head < 0 else draw(st.sampled_from("pq")) for head in heads]
        sentence = Sentence.from_words(forms, upos=tags)
        found.append(sentence.with_tree(np.array([-1, *heads]), (None, *labels), partial=True))
    return found


def counted(sentences: list[Sentence]) -> dict[str, Counter[tuple[object, ...]]]:
    """The contexts of every word, one word at a time."""
    found: dict[str, Counter[tuple[object, ...]]] = defaultdict(Counter)
    for sentence in sentences:
        forms = ["OUT", "OUT", "ROOT", *(form.lower() for form in sentence.forms), "OUT", "OUT"]
        tags = ["OUT", "OUT", "ROOT", *sentence.upos, "OUT", "OUT"]
        assert sentence.heads is not None
        assert sentence.labels is not None
        for m in range(1, len(sentence) + 1):
            contexts = found[forms[m + 2]]
            contexts["tag", tags[m + 2]] += 1
            for near in (-2, -1, 1, 2):
                contexts["word", near, forms[m + 2 + near]] += 1
                contexts["tag", near, tags[m + 2 + near]] += 1
            h = int(sentence.heads[m])
            if h < 0:
                continue
            label = sentence.labels[m]
            contexts["head", forms[h + 2]] += 1
            contexts["head's tag", m > h, tags[h + 2]] += 1
            contexts["label", label] += 1
            if h > 0:
                below = found[forms[h + 2]]
                below["child", forms[m + 2]] += 1
                below["child's tag", m > h, tags[m + 2]] += 1
                below["child's label", m > h, label] += 1
    return found


@given(treebanks())
def test_contexts_are_counted(sentences: list[Sentence]) -> None:
    coder = Coder.learn(sentences)
    trees = code_trees(sentences, coder, label_names(sentences))
    words = list(coder.fields["lower"])
    counts = context_counts(coder, *trees, np.array(list(coder.fields["lower"].values()))).toarray()
    expected = counted(sentences)
    contexts = sorted({context for word in words for context in expected[word]}, key=repr)
    columns = sorted(tuple(expected[word][context] for word in words) for context in contexts)
    assert sorted(tuple(column) for column in counts.T if column.any()) == columns


def test_weights_are_those_of_the_formula() -> None:
    counts = np.array([[4.0, 0, 1], [0, 2, 1], [1, 1, 8]])
    found = weigh(coo_array(counts)).toarray()
    smooth = counts.sum(axis=0) ** 0.75
    for w in range(3):
        for x in range(3):
            expected = 0.0
            if counts[w, x]:
                expected = max(0.0, log(counts[w, x] * smooth.sum() / (counts[w].sum() * smooth[x])))
            assert found[w, x] == pytest.approx(expected)


def spread(vectors: np.ndarray, weights: np.ndarray) -> float:
    mean = np.average(vectors, axis=0, weights=weights)
    return float(sum(weight * ((vector - mean) ** 2).sum() for vector, weight in zip(vectors, weights, strict=True)))


@given(st.integers(2, 12), st.integers(1, 4), st.integers(0, 10_000))
def test_each_division_is_settled_and_of_the_widest_group(size: int, dimensions: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors, weights = rng.normal(size=(size, dimensions)), rng.uniform(0.5, 2, size)
    before = divide(vectors, weights, 1)
    assert before == [""] * size
    for count in range(2, size + 1):
        after = divide(vectors, weights, count)
        [parent] = {path for path in before if path not in after}
        widest = max(set(before), key=lambda path: spread(*members(vectors, weights, before, path)))
        assert parent == widest
        assert {path for path in after if path not in before} == {parent + "0", parent + "1"}
        halves = [members(vectors, weights, after, parent + bit) for bit in "01"]
        means = [np.average(half, axis=0, weights=heavy) for half, heavy in halves]
        for vector, path in zip(vectors, after, strict=True):
            if path in (parent + "0", parent + "1"):
                apart = [((vector - mean) ** 2).sum() for mean in means]
                assert apart[int(path[-1])] == pytest.approx(min(apart))
        before = after


def members(vectors: np.ndarray, weights: np.ndarray, paths: list[str], path: str) -> tuple[np.ndarray, np.ndarray]:
    which = [i for i, other in enumerate(paths) if other == path]
    return vectors[which], weights[which]


def test_words_that_are_alike_share_a_class() -> None:
    sentences = toy(120, 1)
    coder = Coder.learn(sentences)
    clusters = learn_word_classes(coder, *code_trees(sentences, coder, label_names(sentences)), count=5)
    kinds = ["the a", "big small", "moves turns sees", "slowly often", "."]
    found = [{clusters.path(word) for word in kind.split()} for kind in kinds]
    assert [len(paths) for paths in found] == [1] * 5
    assert set.union(*found) == set(clusters.paths.values())
    assert len(set.union(*found)) == 5


def test_words_seen_seldom_have_none() -> None:
    sentences = toy(40, 3)
    seen = Counter(form.lower() for sentence in sentences for form in sentence.forms)
    coder = Coder.learn(sentences)
    clusters = learn_word_classes(coder, *code_trees(sentences, coder, label_names(sentences)), count=9)
    assert set(clusters.paths) == {word for word, count in seen.items() if count >= LEAST}
    assert any(count < LEAST for count in seen.values())


@pytest.mark.parametrize("forms", [["a"], ["a", "b"], ["a", "a", "a", "b", "b", "b"], ["x"] * 9])
def test_where_there_is_nothing_to_divide(forms: list[str]) -> None:
    sentences = [Sentence.from_words(forms).with_tree(np.array([-1, *range(len(forms))]), (None, *["x"] * len(forms)))]
    coder = Coder.learn(sentences)
    trees = code_trees(sentences, coder, label_names(sentences))
    assert learn_word_classes(coder, *trees, count=5) == NO_CLUSTERS
    assert learn_word_classes(coder, *trees, count=1) == NO_CLUSTERS
