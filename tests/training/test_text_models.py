"""What is learnt of words before any tree: tags as the parser will be given them, clusters, how text is split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.errors import TrainingError
from headway.features.clusters import NO_CLUSTERS
from headway.learning.monitor import Progress, Show
from headway.text.segmenter import Segmenter
from headway.text.tagger import FOLDS, Tagger, jackknifed, tags_of
from headway.training import text_models as module
from headway.training.data import TrainingData, checksum
from headway.training.settings import Settings
from headway.training.stages import Run
from headway.training.text_models import TextModels, train_text_models
from headway.treebank import Sentence

from ..models.toy_treebank import sentences

PREDICTED, GOLD = Settings().complete(), Settings(tags="gold").complete()


def text_models(
    train: Sequence[Sentence],
    dev: Sequence[Sentence] | None,
    settings: Settings,
    show: Show | None = None,
    text: Sequence[Sentence] = (),
) -> tuple[TextModels, TrainingData]:
    return train_text_models(train, dev, text, settings, Run(show=show))


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
    models, data = text_models(train, dev, GOLD)
    assert data.train is train
    assert data.dev is dev
    assert data.sha256 == checksum(train)
    assert (models.tagger, models.segmenter, data.clusters) == (None, None, NO_CLUSTERS)
    assert learnt == [(train, 0)]


def test_training_sentences_get_the_tags_of_taggers_that_have_not_seen_them() -> None:
    """And development sentences those of the tagger that comes with the parser; trees and words stay."""
    train, dev = sentences(10, 3, crossing=True), sentences(5, 4, crossing=True)
    models, data = text_models(train, dev, Settings(seed=3).complete())
    expected = Tagger.learn(train, seed=3)
    assert models.tagger is not None
    np.testing.assert_array_equal(models.tagger.weights, expected.weights)
    assert tags(data.train) == tags(jackknifed(train, seed=3))
    assert data.sha256 == checksum(train)  # of the sentences as they were given
    assert data.dev is not None
    assert tags(data.dev) == tags(expected.tag(dev))
    for given, found in ((train, data.train), (dev, data.dev)):
        for before, after in zip(given, found, strict=True):
            assert (after.forms, after.labels) == (before.forms, before.labels)
            np.testing.assert_array_equal(after.heads, before.heads)
    assert text_models(train, None, PREDICTED)[1].dev is None


@pytest.mark.parametrize("tag", ["_", "X"])
def test_a_treebank_with_nothing_for_a_tagger(tag: str) -> None:
    """No tag, or one only, which needs no choosing."""
    train = [Sentence.from_words(["a", "b"], upos=[tag] * 2, heads=[-1, 0, 1])] * 3
    models, data = text_models(train, None, PREDICTED)
    assert models.tagger is None
    assert data.train is train


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_sentences(count: int) -> None:
    """One has no other to learn from and keeps its tags."""
    train = sentences(count, 5)
    models, data = text_models(train, None, PREDICTED)
    assert models.tagger is not None
    assert [s.forms for s in data.train] == [s.forms for s in train]
    if count == 1:
        assert tags(data.train) == tags(train)


def test_clusters_are_read_once_and_given_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "paths"
    path.write_text("01\tthe\n10\tstone\n", "utf-8")
    given: list[Any] = []
    monkeypatch.setattr(module, "jackknifed", lambda text, clusters, **_: given.append(clusters) or text)
    for settings in (Settings(clusters=str(path)), Settings(clusters=str(path), tags="gold")):
        models, data = text_models(sentences(3, 6), None, settings.complete())
        assert data.clusters.paths == {"the": "01", "stone": "10"}
        if models.tagger:
            assert models.tagger.coder.clusters is data.clusters
    assert given == [data.clusters]
    path.write_text("nothing of the kind\n", "utf-8")
    with pytest.raises(TrainingError, match="paths, line 1"):
        text_models(sentences(3, 6), None, Settings(clusters=str(path)).complete())


def test_progress_is_shown() -> None:
    shown: list[Progress] = []
    text_models(sentences(6, 7), None, PREDICTED, shown.append)
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
        assert text_models(sentences(3, 8), None, settings)[0].segmenter is segmenter


def test_words_without_trees_are_tagged_alike() -> None:
    """The tags of the text are the tagger's, as those of any text will be; with gold tags they stay."""
    trees, text = sentences(30, 47), sentences(10, 48)
    wrong = [replace(s, upos=("X",) * len(s), xpos=("X",) * len(s)) for s in text]
    models, data = text_models(trees, None, PREDICTED, text=wrong)
    assert models.tagger is not None
    assert [s.upos for s in data.text] == [s.upos for s in models.tagger.tag(text)]
    agreed = sum(a == b for s, t in zip(data.text, text, strict=True) for a, b in zip(s.upos, t.upos, strict=True))
    assert agreed > 0.9 * sum(map(len, text))
    models, data = text_models(trees, None, GOLD, text=wrong)
    assert models.tagger is None
    assert list(data.text) == wrong
    assert list(text_models(trees, None, PREDICTED)[1].text) == []
