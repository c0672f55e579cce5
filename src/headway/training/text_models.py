"""The stages before trees: a segmenter, a tagger, and training sentences with the tags the tagger would give them.

A parser trained on a treebank's own tags would meet others when it parses. So the training sentences are jack-knifed:
each stretch of them gets its tags from a tagger that was trained on the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from headway.archive import Archive
from headway.features.clusters import NO_CLUSTERS, Clusters, read_clusters
from headway.learning.monitor import Progress
from headway.saved_values import column_values
from headway.text.saved import segmenter_members, segmenter_of, tagger_members, tagger_of
from headway.text.segmenter import Segmenter
from headway.text.tagger import Tagger, TaggerReport, has_tags, jackknife_folds, jackknifed, tag_fold
from headway.training.data import TrainingData, checksum
from headway.training.settings import NEURAL, Settings
from headway.training.stages import Run, Saved
from headway.treebank import Sentence

_TAGS = ("lemmas", "upos", "xpos", "feats")


@dataclass(frozen=True)
class TextModels:
    """What splits and tags plain text, where the treebank has anything to learn that from."""

    tagger: Tagger | None = None
    segmenter: Segmenter | None = None


def train_text_models(
    train: Sequence[Sentence],
    dev: Sequence[Sentence] | None,
    text: Sequence[Sentence],
    settings: Settings,
    run: Run,
) -> tuple[TextModels, TrainingData]:
    """Learn to split and tag text; with `tags` "predicted", all sentences get the tags of a tagger.

    A treebank without tags, or with one tag only, leaves a tagger nothing to learn, and one without raw text a
    segmenter.
    """
    clusters = read_clusters(settings.clusters) if settings.clusters else NO_CLUSTERS
    segmenter = None
    if Segmenter.can_learn(train):
        learn = partial(Segmenter.learn, train, seed=settings.seed)
        segmenter = run.stage("segmenter", learn, segmenter_members, segmenter_of)
    untagged = settings.tags == "gold" or settings.model == NEURAL  # a network tags with the tree
    if untagged or not any(map(has_tags, train)) or not Tagger.can_learn(train):
        return TextModels(None, segmenter), TrainingData(train, dev, text, clusters, checksum(train))

    def learn_tagger() -> Tagger:
        shown = _shown("tags", run)
        return Tagger.learn(train, clusters, seed=settings.seed, runs=settings.runs, report=shown)

    def read_tagger(archive: Archive) -> Tagger:
        tagger = tagger_of(archive, clusters)
        if tagger is None:
            raise ValueError("no tagger")
        return tagger

    tagger = run.stage("tagger", learn_tagger, tagger_members, read_tagger)

    shown, made = _shown("jack-knife", run), set[int]()
    elsewhere: dict[int, list[Sentence]] = {}

    def fold(number: int, held_out: Sequence[Sentence], tag: Callable[[], list[Sentence]]) -> list[Sentence]:
        def tagging() -> list[Sentence]:
            made.add(number)
            return elsewhere[number] if number in elsewhere else tag()

        return run.stage(f"jack-knife-{number}", tagging, _tag_members, partial(_with_tags, held_out))

    def report(number: int, folds: int, wrong: float) -> None:
        if shown is not None and number in made:  # those of an earlier run were shown then
            shown(number, folds, wrong)

    shows = None if shown is None else report
    for number, held_out, found in _tagged_by_workers(train, clusters, settings.seed, run):
        elsewhere[number] = found
        fold(number, held_out, list)  # kept as soon as it is there
    tagged = jackknifed(train, clusters, seed=settings.seed, report=shows, stage=fold)
    gold = None if dev is None else tagger.tag(dev)
    return TextModels(tagger, segmenter), TrainingData(tagged, gold, tagger.tag(text), clusters, checksum(train))


def _tagged_by_workers(
    train: Sequence[Sentence], clusters: Clusters, seed: int, run: Run
) -> Iterator[tuple[int, Sequence[Sentence], list[Sentence]]]:
    """The folds of the jack-knife that no earlier training has left, tagged at the same time, if there are workers."""
    if run.workers is None or len(train) < 2:
        return
    folds = enumerate(jackknife_folds(train), start=1)
    left = [(number, *fold) for number, fold in folds if not run.has_stage(f"jack-knife-{number}")]
    if not left:
        return
    numbers, held_out, others = zip(*left, strict=True)
    for place, found in run.workers.finished(tag_fold, held_out, others, repeat(clusters), repeat(seed)):
        yield numbers[place], held_out[place], found


def _tag_members(sentences: Sequence[Sentence]) -> Saved:
    """The tags and lemmas of sentences: every distinct value once, and its number word by word."""
    data: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for name in _TAGS:
        numbers: dict[str, int] = {}
        column = [numbers.setdefault(value, len(numbers)) for each in sentences for value in getattr(each, name)]
        data[name], arrays[name] = list(numbers), np.array(column, np.int64)
    return data, arrays


def _with_tags(sentences: Sequence[Sentence], archive: Archive) -> list[Sentence]:
    """The sentences with the tags that were saved."""
    columns = {name: _saved_column(archive, name) for name in _TAGS}
    tagged, start = [], 0
    for sentence in sentences:
        stop = start + len(sentence)
        own: dict[str, Any] = {name: tuple(column[start:stop]) for name, column in columns.items()}
        tagged.append(replace(sentence, **own))
        start = stop
    if any(len(column) != start for column in columns.values()):
        raise ValueError("tags of other sentences")
    return tagged


def _saved_column(archive: Archive, name: str) -> list[str]:
    values, numbers = column_values(archive.data[name], f"a value of {name}"), archive.arrays[name]
    if numbers.ndim != 1 or numbers.dtype != np.int64 or not ((numbers >= 0) & (numbers < len(values))).all():
        raise ValueError(f"{name} has numbers of values that are not there")
    return [values[k] for k in numbers.tolist()]


def _shown(stage: str, run: Run) -> TaggerReport | None:
    """Shows each pass with its share of wrong tags."""
    show = run.show
    if show is None:
        return None
    started = time.monotonic()

    def report(number: int, passes: int, wrong: float) -> None:
        show(Progress(stage, number, passes, {"mistakes": wrong}, None, time.monotonic() - started))

    return report
