"""What a parser needs to read plain text: a segmenter, a tagger, and trees with the tags it will be given."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from headway.errors import TrainingError
from headway.features.clusters import NO_CLUSTERS, Clusters, read_clusters
from headway.learning.monitor import Progress, Show
from headway.models.segmenter import Segmenter
from headway.models.tagger import Tagger, Told, can_learn, has_tags, jackknifed
from headway.training.settings import Settings
from headway.treebank import Sentence


@dataclass(frozen=True)
class Words:
    """The models of words, and all sentences as the parser is to see them; `text` are those without trees."""

    clusters: Clusters
    tagger: Tagger | None
    segmenter: Segmenter | None
    train: Sequence[Sentence]
    dev: Sequence[Sentence] | None
    text: Sequence[Sentence] = ()

    @classmethod
    def of(
        cls,
        train: Sequence[Sentence],
        dev: Sequence[Sentence] | None,
        settings: Settings,
        show: Show | None,
        text: Sequence[Sentence] = (),
    ) -> Words:
        """Learn words and tags from the trees; with `tags` "predicted", the trees get the tags of a tagger.

        A treebank without tags, or with one only, has nothing for a tagger to learn, nor one without raw text for a
        segmenter.
        """
        clusters = read_clusters(settings.clusters) if settings.clusters else NO_CLUSTERS
        segmenter = _segmenter(train, settings)
        if settings.tags == "gold" or not any(map(has_tags, train)) or not can_learn(train):
            return cls(clusters, None, segmenter, train, dev, text)
        options = {"seed": settings.seed, "trainings": settings.trainings}
        tagger = Tagger.learn(train, clusters, told=_told("tags", show), **options)
        tagged = jackknifed(train, clusters, seed=settings.seed, told=_told("jack-knife", show))
        held_out = None if dev is None else tagger.tag(dev)
        return cls(clusters, tagger, segmenter, tagged, held_out, tagger.tag(text))


def _segmenter(sentences: Sequence[Sentence], settings: Settings) -> Segmenter | None:
    try:
        return Segmenter.learn(sentences, seed=settings.seed)
    except TrainingError:
        return None


def _told(stage: str, show: Show | None) -> Told | None:
    """Shows each pass with its share of wrong tags."""
    if show is None:
        return None
    started = time.monotonic()

    def told(number: int, passes: int, wrong: float) -> None:
        show(Progress(stage, number, passes, {"mistakes": wrong}, None, time.monotonic() - started))

    return told
