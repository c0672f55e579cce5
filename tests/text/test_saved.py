"""Segmenter and tagger beside a model in one archive: written, read back, and shared clusters read once."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

from headway.archive import Archive
from headway.features.clusters import NO_CLUSTERS, Clusters
from headway.text.saved import segmenter_of, tagger_of, text_models_of, with_text_members
from headway.text.segmenter import Segmenter
from headway.text.tagger import Tagger, tags_of
from headway.treebank import Sentence
from tests.models.toy_treebank import sentences

CLUSTERS = Clusters({"the": "01", "stone1": "10"})
BARE = Archive("toy", {"own": 1}, {"array": np.zeros(3)})


@cache
def models() -> tuple[Tagger, Segmenter]:
    return Tagger.learn(sentences(10, 1), CLUSTERS), Segmenter.learn(sentences(10, 1))


def written(archive: Archive) -> Archive:
    """As a file would give it back."""
    return Archive(archive.kind, json.loads(json.dumps(archive.data)), archive.arrays)


def test_both_are_read_back() -> None:
    archive = written(with_text_members(BARE, *models()))
    assert (archive.kind, archive.data["own"]) == ("toy", 1)
    assert archive.arrays["tagger_weights"].dtype == np.float32
    rest, tagger, segmenter = text_models_of(archive)
    assert tagger is not None
    assert segmenter is not None
    text = [Sentence.from_words(s.forms) for s in sentences(5, 2)]
    assert [tags_of(s) for s in tagger.tag(text)] == [tags_of(s) for s in models()[0].tag(text)]
    assert [s.forms for s in segmenter.sentences("the stone moves.")] == [
        s.forms for s in models()[1].sentences("the stone moves.")
    ]
    assert rest.data["clusters"] == CLUSTERS
    assert tagger.coder.clusters is rest.data["clusters"]


def test_neither_is_there() -> None:
    archive = written(with_text_members(BARE, None, None))
    rest, tagger, segmenter = text_models_of(archive)
    assert (tagger, segmenter) == (None, None)
    assert rest is archive
    assert tagger_of(archive, NO_CLUSTERS) is segmenter_of(archive) is None


@pytest.mark.parametrize("name", ["tagger", "segmenter"])
def test_an_archive_says_whether_they_are_there(name: str) -> None:
    archive = with_text_members(BARE, None, None)
    data = {key: value for key, value in archive.data.items() if key != name}
    with pytest.raises(KeyError):
        text_models_of(Archive("toy", data, archive.arrays))
