"""Training data: sentences read and checked, and coded as numbers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from headway.arrays import Ints, TreeClass
from headway.errors import ArgumentError, TrainingError, TreebankError
from headway.features.clusters import NO_CLUSTERS, Clusters
from headway.features.coding import Coded, Coder, fine_tags
from headway.features.tag_classes import NO_CLASSES, TagClasses
from headway.features.word_classes import learn_word_classes
from headway.training.settings import Settings
from headway.treebank import Sentence, projectivise, read_treebank, require_partial_tree, require_tree

Source = str | os.PathLike[str] | Iterable[Sentence]


@dataclass(frozen=True)
class TrainingData:
    """The sentences of a training as the parser is to see them, tags included.

    `text` are sentences without trees, `sha256` is the checksum of the training sentences as they were given. `roots`
    are the labels of the root's children alone (`root_labels`).
    """

    train: Sequence[Sentence]
    dev: Sequence[Sentence] | None = None
    text: Sequence[Sentence] = ()
    clusters: Clusters = NO_CLUSTERS
    sha256: str = ""
    roots: tuple[str, ...] = ()

    def about(self) -> dict[str, Any]:
        """What a model says of the data it comes from; of heads only if some are known and others not."""
        known, words = known_heads(self.train)
        heads = {} if known in (0, words) else {"heads": {"known": known, "words": words}}
        return {"sentences": len(self.train), "sha256": self.sha256, **heads}


def training_trees(source: Source, trees: TreeClass, name: str, *, partial: bool = False) -> list[Sentence]:
    """The sentences of a treebank, each with a tree of the class; projectivised where the class is projective."""
    return of_class(annotated_trees(source, trees, name, partial=partial), trees)


def annotated_trees(source: Source, trees: TreeClass, name: str, *, partial: bool = False) -> list[Sentence]:
    """The sentences of a treebank, each with a tree, projective or not.

    With `partial`, it is enough that some heads are known: words may have the head -1, and sentences no heads.
    """
    sentences = training_text(source, name, partial=partial)
    annotated = [sentence for sentence in sentences if sentence.heads is not None] if partial else sentences
    for sentence in annotated or sentences[:1]:
        if partial:
            require_partial_tree(sentence, single_root=False)
        else:
            require_tree(sentence)
    many = sum(int((sentence.heads == 0).sum()) > 1 for sentence in annotated if sentence.heads is not None)
    if trees.single_root and many:
        raise TrainingError(
            f"{name}: {many} of {len(annotated)} trees have several words on the root; train with multi-root trees "
            "(--multi-root, single_root=False)"
        )
    return sentences


def of_class(sentences: list[Sentence], trees: TreeClass) -> list[Sentence]:
    """The same sentences under projective trees, if the class is projective."""
    if not trees.projective:
        return sentences
    return [s if s.heads is None else projectivise(s, single_root=trees.single_root) for s in sentences]


def training_text(source: Source, name: str, *, partial: bool = False) -> list[Sentence]:
    """The sentences of a treebank that have words, with or without trees; with `partial`, some of the heads will do."""
    if isinstance(source, (str, os.PathLike)):
        source = read_treebank(source, partial=partial)
    if isinstance(source, bytes) or not isinstance(source, Iterable):
        raise ArgumentError(f"{name}: expected a path or sentences, got {type(source).__name__}")
    given = list(source)
    for each in given:
        if not isinstance(each, Sentence):
            raise ArgumentError(f"{name}: expected sentences (headway.Sentence), got {type(each).__name__} among them")
    sentences = [sentence for sentence in given if len(sentence)]
    if not sentences:
        raise TrainingError(f"{name}: has no sentence with words; there is nothing to learn from")
    return sentences


def name_of_source(source: Source, otherwise: str) -> str:
    """How messages call a source: by its file's name, if it has one."""
    return str(source) if isinstance(source, (str, os.PathLike)) else otherwise


def development_trees(dev: Source | None) -> list[Sentence] | None:
    """Trees of any class: they are only compared with."""
    if dev is None:
        return None
    return training_trees(dev, TreeClass(single_root=False), name_of_source(dev, "the development data"))


def known_heads(sentences: Sequence[Sentence]) -> tuple[int, int]:
    """How many heads are known, out of how many words."""
    known = sum(int((sentence.heads >= 0).sum()) for sentence in sentences if sentence.heads is not None)
    return known, sum(map(len, sentences))


def checksum(sentences: Sequence[Sentence]) -> str:
    """Identifies the data a model comes from: words and trees, whatever the file's compression or line ends."""
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(sentence.to_conllx().replace("\r\n", "\n").encode())
    return digest.hexdigest()[:16]


class CodedTrees(NamedTuple):
    """Coded sentences, their heads and the numbers of their labels (B, N+1), padded with -1.

    A head may also be -1 because it is unknown; so is its label then.
    """

    coded: Coded
    heads: Ints
    labels: Ints

    def only(self, which: Ints) -> CodedTrees:
        """These sentences, for somebody who has no others."""
        return CodedTrees(self.coded.only(which), self.heads[which], self.labels[which])

    @property
    def is_partial(self) -> bool:
        """Whether some heads are unknown."""
        return int((self.heads >= 0).sum()) < int(self.coded.lengths.sum())


def code_trees(sentences: Sequence[Sentence], coder: Coder, labels: Sequence[str]) -> CodedTrees:
    """Annotated sentences as numbers."""
    number = {label: i for i, label in enumerate(labels)}
    width = max(map(len, sentences), default=0) + 1
    heads, chosen = np.full((2, len(sentences), width), -1, np.int64)
    for i, sentence in enumerate(sentences):
        if sentence.heads is None or sentence.labels is None:
            raise TreebankError(f"{sentence.place}: the sentence has no tree; annotate it or leave it out")
        heads[i, : len(sentence) + 1] = sentence.heads
        if labels:
            numbers = [number.get(str(label), 0) for label in sentence.labels[1:]]
            chosen[i, 1 : len(sentence) + 1] = np.where(sentence.heads[1:] >= 0, numbers, -1)
    return CodedTrees(coder.code(sentences), heads, chosen)


def learn_coder(data: TrainingData, sentences: Sequence[Sentence], settings: Settings) -> Coder:
    """The numbering of these sentences' words and of the text's, with the classes of tags and words that are asked for.

    Tags get classes where they have no coarse ones, words where they have no clusters.
    """
    tag_classes = NO_CLASSES
    if settings.tag_classes and not has_coarse_tags(sentences):
        tagged = [(sentence.upos, sentence.heads) for sentence in sentences if sentence.heads is not None]
        tag_classes = TagClasses.learn(tagged, settings.tag_classes)
    clusters = data.clusters
    if settings.word_classes:
        coder = Coder.learn(sentences)
        trees = code_trees(sentences, coder, label_names(sentences))
        clusters = learn_word_classes(coder, *trees, count=settings.word_classes)
    return Coder.learn(chain(sentences, data.text), clusters, tag_classes)


def has_coarse_tags(sentences: Iterable[Sentence]) -> bool:
    """Whether the coarse tags are others than the fine ones."""
    return any(fine_tags(sentence) != sentence.upos for sentence in sentences)


def label_names(sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """The labels of the words whose heads are known."""
    return tuple(sorted({label for _, label in _arcs(sentences)}))


def root_labels(sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """The labels of words on the root, if no other word has any of these; otherwise none.

    Ask this of trees as they are annotated: projectivisation may move a word off the root, and keeps its label.
    """
    arcs = set(_arcs(sentences))
    on_root = {label for head, label in arcs if head == 0}
    return () if any(head > 0 and label in on_root for head, label in arcs) else tuple(sorted(on_root))


def _arcs(sentences: Iterable[Sentence]) -> Iterator[tuple[int, str]]:
    """The head and the label of every word whose head is known."""
    for sentence in sentences:
        if sentence.heads is not None and sentence.labels is not None:
            pairs = zip(sentence.heads.tolist(), sentence.labels, strict=True)
            yield from ((head, label) for head, label in pairs if head >= 0 and label)
