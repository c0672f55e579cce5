"""What is learnt of words before any tree: tags as the parser will be given them, clusters, how text is split."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.errors import TrainingError
from headway.features.clusters import NO_CLUSTERS
from headway.text.segmenter import Segmenter
from headway.text.tagger import FOLDS, Tagger, jackknifed, tags_of
from headway.training import Progress, Settings, Words
from headway.training import words as module
from headway.treebank import Sentence

from .models.toy_treebank import sentences

PREDICTED, GOLD = Settings().complete(), Settings(tags="gold").complete()


def tags(text: Sequence[Sentence]) -> list[Any]:
    return [tags_of(sentence) for sentence in text]


@pytest.fixture(autouse=True)
def learnt(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, int]]:
    """No segmenter is trained, which takes its time: what it would learn from, and the seed."""
    calls: list[tuple[Any, int]] = []

    def learn(text: Sequence[Sentence], *, seed: int) -> None:
        calls.append((text, seed))

    monkeypatch.setattr(Segmenter, "learn", learn)
    return calls


def test_gold_tags_stay_as_they_are(learnt: list[tuple[Any, int]]) -> None:
    train, dev = sentences(4, 1), sentences(2, 2)
    words = Words.of(train, dev, GOLD, None)
    assert words.train is train
    assert words.dev is dev
    assert (words.tagger, words.segmenter, words.clusters) == (None, None, NO_CLUSTERS)
    assert learnt == [(train, 0)]


def test_training_sentences_get_the_tags_of_taggers_that_have_not_seen_them() -> None:
    """And development sentences those of the tagger that comes with the parser; trees and words stay."""
    train, dev = sentences(10, 3, crossing=True), sentences(5, 4, crossing=True)
    words = Words.of(train, dev, Settings(seed=3).complete(), None)
    expected = Tagger.learn(train, seed=3)
    assert words.tagger is not None
    np.testing.assert_array_equal(words.tagger.weights, expected.weights)
    assert tags(words.train) == tags(jackknifed(train, seed=3))
    assert words.dev is not None
    assert tags(words.dev) == tags(expected.tag(dev))
    for given, found in ((train, words.train), (dev, words.dev)):
        for before, after in zip(given, found, strict=True):
            assert (after.forms, after.labels) == (before.forms, before.labels)
            np.testing.assert_array_equal(after.heads, before.heads)
    assert Words.of(train, None, PREDICTED, None).dev is None


@pytest.mark.parametrize("tag", ["_", "X"])
def test_a_treebank_with_nothing_for_a_tagger(tag: str) -> None:
    """No tag, or one only, which needs no choosing."""
    train = [Sentence.from_words(["a", "b"], upos=[tag] * 2, heads=[-1, 0, 1])] * 3
    words = Words.of(train, None, PREDICTED, None)
    assert words.tagger is None
    assert words.train is train


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_sentences(count: int) -> None:
    """One has no other to learn from and keeps its tags."""
    train = sentences(count, 5)
    words = Words.of(train, None, PREDICTED, None)
    assert words.tagger is not None
    assert [s.forms for s in words.train] == [s.forms for s in train]
    if count == 1:
        assert tags(words.train) == tags(train)


def test_clusters_are_read_once_and_given_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "paths"
    path.write_text("01\tthe\n10\tstone\n", "utf-8")
    given: list[Any] = []
    monkeypatch.setattr(module, "jackknifed", lambda text, clusters, **_: given.append(clusters) or text)
    for settings in (Settings(clusters=str(path)), Settings(clusters=str(path), tags="gold")):
        words = Words.of(sentences(3, 6), None, settings.complete(), None)
        assert words.clusters.paths == {"the": "01", "stone": "10"}
        if words.tagger:
            assert words.tagger.coder.clusters is words.clusters
    assert given == [words.clusters]
    path.write_text("nothing of the kind\n", "utf-8")
    with pytest.raises(TrainingError, match="paths, line 1"):
        Words.of(sentences(3, 6), None, Settings(clusters=str(path)).complete(), None)


def test_progress_is_shown() -> None:
    shown: list[Progress] = []
    Words.of(sentences(6, 7), None, PREDICTED, shown.append)
    passes = {"tags": shown[0].passes, "jack-knife": FOLDS}
    assert [(p.stage, p.number, p.passes) for p in shown] == [
        (stage, number, count) for stage, count in passes.items() for number in range(1, count + 1)
    ]
    for progress in shown:
        assert set(progress.figures) == {"mistakes"}
        assert 0 <= progress.figures["mistakes"] <= 1
        assert progress.dev is None
        assert progress.seconds >= 0


def test_a_segmenter_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    segmenter = object()
    monkeypatch.setattr(Segmenter, "learn", lambda text, *, seed: segmenter)
    for settings in (GOLD, PREDICTED):
        assert Words.of(sentences(3, 8), None, settings, None).segmenter is segmenter
