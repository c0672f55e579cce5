"""Training data made ready: trees checked, words numbered, features sized, sentences coded."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headway.errors import TrainingError
from headway.features.arc_features import ArcFeatures
from headway.features.coding import Coder
from headway.features.templates import load_templates
from headway.models.arc_factored import ArcExamples, ArcScorer, code_trees
from headway.training.settings import Settings
from headway.treebank import Sentence, projectivise, read_treebank, require_tree, roots


def training_trees(source: Any, settings: Settings, name: str) -> list[Sentence]:
    """The sentences of a treebank, every one a tree of the class; projectivised where the class is projective."""
    sentences = list(read_treebank(source)) if isinstance(source, (str, os.PathLike)) else list(source)
    sentences = [sentence for sentence in sentences if len(sentence)]
    if not sentences:
        raise TrainingError(f"{name}: has no sentence with words; training needs trees")
    for sentence in sentences:
        require_tree(sentence)
    many = sum(len(roots(sentence.heads)) != 1 for sentence in sentences if sentence.heads is not None)
    if settings.single_root and many:
        raise TrainingError(
            f"{name}: {many} of {len(sentences)} trees have several words on the root; train with multi-root trees "
            "(--multi-root, single_root=False)"
        )
    if settings.projective:
        return [projectivise(sentence, single_root=settings.single_root) for sentence in sentences]
    return sentences


def checksum(sentences: Sequence[Sentence]) -> str:
    """Names the data a model comes from: words and trees, whatever the file's compression or line ends."""
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(sentence.to_conllx().replace("\r\n", "\n").encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Material:
    """Training data made ready: the coder, the scorer and the examples it makes."""

    coder: Coder
    scorer: ArcScorer
    examples: ArcExamples
    labels: tuple[str, ...]

    @classmethod
    def of(cls, sentences: Sequence[Sentence], settings: Settings, threads: int) -> Material:
        """Number the words, size the features from the trees, code the sentences."""
        coder = Coder.learn(sentences)
        kinds = {label for sentence in sentences for label in (sentence.labels or ())[1:] if label}
        labels = () if settings.labels == "none" else tuple(sorted(kinds))
        coded, heads, chosen = code_trees(sentences, coder, labels)
        arcs = ArcFeatures.learn(load_templates(settings.templates), coder, coded, heads)
        if settings.labels == "joint":
            joint = ArcFeatures.learn(load_templates("joint"), coder, coded, heads, chosen)
            scorer = ArcScorer(arcs, joint, labels, threads)
        else:
            scorer = ArcScorer(arcs, threads=threads)
        return cls(coder, scorer, ArcExamples(scorer, coded, heads, chosen), labels)
