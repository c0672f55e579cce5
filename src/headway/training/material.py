"""Training data made ready: trees checked, words numbered, features sized, sentences coded."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from headway.errors import TemplateError, TrainingError
from headway.features.arc_features import ArcFeatures
from headway.features.clusters import NO_CLUSTERS, Clusters
from headway.features.coding import Coded, Coder
from headway.features.templates import Template, load_templates
from headway.inference.batch import Ints, groups_by_length
from headway.learning.examples import Trees
from headway.learning.monitor import Monitor, Show
from headway.models.arc_factored import ArcExamples, ArcScorer, ArcText, CodedTrees, PartialExamples, code_trees
from headway.models.arc_model import BATCH_CELLS
from headway.models.higher_order import AutomataTrees, PartExamples, PartScorer
from headway.models.pruning import Pruner, kept_arcs
from headway.training.labels import train_labeller
from headway.training.settings import Settings
from headway.treebank import Sentence, projectivise, read_treebank, require_partial_tree, require_tree


def training_trees(source: Any, settings: Settings, name: str, *, partial: bool = False) -> list[Sentence]:
    """The sentences of a treebank, every one a tree of the class; projectivised where the class is projective.

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
    if settings.single_root and many:
        raise TrainingError(
            f"{name}: {many} of {len(annotated)} trees have several words on the root; train with multi-root trees "
            "(--multi-root, single_root=False)"
        )
    if not settings.projective:
        return sentences
    single = settings.single_root
    return [s if s.heads is None else projectivise(s, single_root=single) for s in sentences]


def training_text(source: Any, name: str, *, partial: bool = False) -> list[Sentence]:
    """The sentences of a treebank, whether or not they have trees; with `partial`, or some heads."""
    is_file = isinstance(source, (str, os.PathLike))
    sentences = list(read_treebank(source, partial=partial)) if is_file else list(source)
    sentences = [sentence for sentence in sentences if len(sentence)]
    if not sentences:
        raise TrainingError(f"{name}: has no sentence with words; there is nothing to learn from")
    return sentences


def known_heads(sentences: Sequence[Sentence]) -> tuple[int, int]:
    """How many heads are known, of how many words."""
    known = sum(int((sentence.heads >= 0).sum()) for sentence in sentences if sentence.heads is not None)
    return known, sum(map(len, sentences))


def checksum(sentences: Sequence[Sentence]) -> str:
    """Names the data a model comes from: words and trees, whatever the file's compression or line ends."""
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(sentence.to_conllx().replace("\r\n", "\n").encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Material:
    """Training data made ready: what is learnt from, what is chosen among, and the trees for learning the labels; where
    there is text without trees, that too."""

    coder: Coder
    examples: ArcExamples | PartialExamples | PartExamples
    structures: Trees | AutomataTrees
    trees: CodedTrees
    labels: tuple[str, ...]
    pruner: Pruner | None = None
    text: ArcText | None = None

    @classmethod
    def of(
        cls,
        sentences: Sequence[Sentence],
        settings: Settings,
        threads: int,
        show: Show | None = None,
        clusters: Clusters = NO_CLUSTERS,
        text: Sequence[Sentence] = (),
    ) -> Material:
        """Number the words, size the features from the trees, code the sentences; train a pruner where needed.

        With `text`, the features of arcs have room for its own; those that tell labels apart know the trees' only.

        Heads that are not known stay so for the learners that can do with that; for others they are filled in. A
        sentence without any head is left out.
        """
        sentences = [sentence for sentence in sentences if sentence.heads is not None]
        coder = Coder.learn(chain(sentences, text), clusters)
        kinds = set[str]().union(*map(_labels, sentences))
        labels = () if settings.labels == "none" else tuple(sorted(kinds))
        trees = code_trees(sentences, coder, labels)
        if trees.is_partial and not settings.is_latent:
            trees = fill_in(coder, trees, sentences, labels, settings, threads, show)
        if settings.model != "arc":
            return cls._with_pruner(coder, trees, labels, settings, threads, show)
        arcs = arc_features(load_templates(settings.templates), coder, trees, sentences, text)
        if settings.labels == "joint":
            joint = ArcFeatures.learn(load_templates("joint"), coder, *trees)
            scorer = ArcScorer(arcs, joint, labels, threads)
        else:
            scorer = ArcScorer(arcs, threads=threads)
        structures = Trees(settings.projective, settings.single_root, threads)
        if trees.is_partial:
            class_of_trees = (settings.projective, settings.single_root)
            latent = PartialExamples(scorer, trees.coded, trees.heads, *class_of_trees, settings.temperature)
            return cls(coder, latent, structures, trees, labels)
        unannotated = ArcText(scorer, coder.code(text)) if text else None
        return cls(coder, ArcExamples(scorer, *trees), structures, trees, labels, text=unannotated)

    @classmethod
    def _with_pruner(
        cls,
        coder: Coder,
        trees: CodedTrees,
        labels: tuple[str, ...],
        settings: Settings,
        threads: int,
        show: Show | None,
    ) -> Material:
        pruner = train_pruner(coder, trees, settings, threads, show)
        kept = kept_arcs(pruner, trees.coded, trees.heads, threads)
        templates, parts = load_templates(settings.templates), load_templates(settings.parts or settings.model)
        scorer = PartScorer.learn(templates, parts, coder, trees.coded, trees.heads)
        if scorer.grand != (settings.model == "grandsibling"):
            raise TemplateError(f"{settings.parts}: not a table of templates for the {settings.model} model")
        examples = PartExamples(scorer, trees.coded, trees.heads, kept)
        structures = AutomataTrees(examples, settings.decoding, settings.projective, settings.single_root)
        return cls(coder, examples, structures, trees, labels, pruner)


def _labels(sentence: Sentence) -> set[str]:
    """The labels of the words whose heads are known."""
    if sentence.heads is None or sentence.labels is None:
        return set()
    pairs = zip(sentence.heads.tolist(), sentence.labels, strict=True)
    return {label for head, label in pairs if head >= 0 and label}


def arc_features(
    templates: Sequence[Template],
    coder: Coder,
    trees: CodedTrees,
    sentences: Sequence[Sentence],
    text: Sequence[Sentence],
) -> ArcFeatures:
    """Features sized from the arcs of the trees; a word whose head is not known, as in text, has a random one."""
    if not text and not trees.is_partial:
        return ArcFeatures.learn(templates, coder, trees.coded, trees.heads)
    coded = coder.code([*sentences, *text])
    heads = random_heads(coded)
    count, width = trees.heads.shape
    heads[:count, :width] = np.where(trees.heads >= 0, trees.heads, heads[:count, :width])
    return ArcFeatures.learn(templates, coder, coded, heads)


def random_heads(coded: Coded) -> Ints:
    """A head drawn for every word, (B, N+1) padded with -1: no trees, but what their features may be like."""
    nodes = np.arange(int(coded.lengths.max(initial=0)) + 1)
    drawn = np.random.default_rng(0).random((len(coded), len(nodes)))
    words = (nodes > 0) & (nodes <= coded.lengths[:, None])
    heads: Ints = np.where(words, (drawn * coded.lengths[:, None]).astype(np.int64), -1)
    return heads + (heads >= nodes) * words  # every node but the word itself


def fill_in(
    coder: Coder,
    trees: CodedTrees,
    sentences: Sequence[Sentence],
    labels: tuple[str, ...],
    settings: Settings,
    threads: int,
    show: Show | None,
) -> CodedTrees:
    """Whole trees: the best ones with the known heads, under a latent arc-factored model learnt from them.

    Labels stay unknown, unless they are to be chosen with the tree: then the words without one get a labeller's.
    """
    chosen = settings.of_hidden_heads().complete()
    features = arc_features(load_templates(chosen.templates), coder, trees, sentences, ())
    class_of_trees = (chosen.projective, chosen.single_root)
    scorer = ArcScorer(features, threads=threads)
    examples = PartialExamples(scorer, trees.coded, trees.heads, *class_of_trees, chosen.temperature)
    monitor = Monitor("hidden heads", chosen.epochs or 1, chosen.patience, show=show)
    weights = chosen.learn_latent(examples).fit(examples, monitor)
    heads, numbers = trees.heads.copy(), trees.labels.copy()
    for which in groups_by_length(examples.lengths, BATCH_CELLS):
        found = examples.best_trees(examples.score(weights, which), which)
        heads[which, : found.shape[1]] = found
    if settings.labels == "joint":
        labeller, weights = train_labeller(coder, trees, labels, chosen, show, tree=False)
        for which in groups_by_length(examples.lengths, BATCH_CELLS / len(labels)):
            b, m = np.nonzero((heads[which] >= 0) & (numbers[which] < 0))
            chosen_heads = heads[which, : int(examples.lengths[which].max()) + 1]
            best = labeller.score(weights, trees.coded, which, chosen_heads).argmax(axis=-1)
            numbers[which[b], m] = best[b, m]
    return CodedTrees(trees.coded, heads, numbers)


def train_pruner(coder: Coder, trees: CodedTrees, settings: Settings, threads: int, show: Show | None) -> Pruner:
    """The log-linear arc-factored model whose marginals prune."""
    chosen = settings.of_pruner().complete()
    features = ArcFeatures.learn(load_templates(chosen.templates), coder, trees.coded, trees.heads)
    examples = ArcExamples(ArcScorer(features, threads=threads), *trees)
    monitor = Monitor("pruner", chosen.epochs or 1, chosen.patience, show=show)
    weights = chosen.learn(Trees(chosen.projective, chosen.single_root, threads)).fit(examples, monitor)
    class_of_trees = (settings.projective, settings.single_root)
    return Pruner(examples.scorer, weights, *class_of_trees, settings.threshold, settings.max_heads)
