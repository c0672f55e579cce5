"""Coreference from end to end: train a resolver on annotated documents, then find the clusters of others.

```python
resolver = Resolver.train("train.conllu", dev="dev.conllu")
for resolved in resolver.resolve(read_documents("new.conllu")):
    print(resolved.document.clusters)
```
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from headway import __version__
from headway.archive import save_archive
from headway.arrays import Floats, Ints
from headway.card import Card, card_of, with_card
from headway.coreference.antecedents import Sieves, right_arcs
from headway.coreference.cluster_atoms import with_cluster_atoms
from headway.coreference.coding import MentionCoder
from headway.coreference.documents import Document, documents_checksum, read_documents
from headway.coreference.latent_trees import MentionTrees, closest_trees, clusters_of, mention_trees
from headway.coreference.mention_finder import MentionFinder
from headway.coreference.mentions import tree_mentions
from headway.coreference.model import CoreferenceModel, predicted_heads
from headway.coreference.pair_features import PairFeatures, pair_templates, stretch
from headway.coreference.scores import score_documents
from headway.coreference.settings import ResolverSettings
from headway.declared import settings_of
from headway.errors import ArgumentError, TrainingError
from headway.learning.latent_perceptron import LatentPerceptron
from headway.learning.monitor import Monitor, Show
from headway.models.protocol import Options
from headway.models.registry import damage_reported, open_archive, read_model
from headway.named_models import path_of_model
from headway.parallel import SERIAL

Source = str | os.PathLike[str] | Iterable[Document]


@dataclass(frozen=True)
class Resolved:
    """A document with the clusters found, and `heads` (M+1,), the tree over its mentions behind them."""

    document: Document
    heads: Ints


@dataclass(frozen=True)
class Resolver:
    """Finds the clusters of documents with a trained model; `card` has its licence and scores, if there is one."""

    model: CoreferenceModel
    card: Card | None = None

    @classmethod
    def train(cls, train: Source, dev: Source | None = None, *, show: Show | None = None, **settings: Any) -> Resolver:
        """Train on documents with clusters; `settings` are the fields of `ResolverSettings`.

        With `dev`, the pass with the best CoNLL average is kept, and training stops early.
        """
        chosen = settings_of(ResolverSettings, settings).complete()
        documents = _documents(train, "the training data")
        coder, sieves = MentionCoder.learn(documents), Sieves(chosen.mentions, chosen.sentences)
        trees = _trees(documents, coder, sieves, chosen)
        held_out = None if dev is None else _Development(_documents(dev, "the development data"), coder, sieves)
        score = None if held_out is None else lambda weights: held_out.conll(trees.features, weights)
        monitor = Monitor("coreference", chosen.epochs, chosen.patience, score, show)
        learner = LatentPerceptron(chosen.epochs, chosen.margin, chosen.seed)
        problem = closest_trees(trees) if chosen.tree == "closest" else trees
        best = monitor.watch(partial(learner.fit, problem), trees.size)
        about = {
            "headway": __version__,
            "settings": asdict(chosen),
            "train": {
                "documents": len(documents),
                "mentions": sum(len(document.mentions) for document in documents),
                "sha256": documents_checksum(documents),
            },
            "best_pass": monitor.best_pass(),
            "history": monitor.history,
        }
        finder = MentionFinder.learn(documents, chosen.seed) if chosen.learn_mentions else None
        return cls(CoreferenceModel(coder, sieves, trees.features, best, about, finder))

    @classmethod
    def load(cls, model: str | os.PathLike[str]) -> Resolver:
        """A resolver by name, or one saved earlier. Loading checks everything and never runs code from the file."""
        path = path_of_model(model)
        archive = open_archive(path, "coreference")
        with damage_reported(str(path)):
            card = card_of(archive.data)
        return cls(read_model(archive, path), card)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file; an interruption leaves an existing file as it was."""
        save_archive(with_card(self.model.to_archive(), self.card), path)

    def resolve(self, documents: Iterable[Document], *, find_mentions: bool = False) -> Iterator[Resolved]:
        """The clusters of each document's mentions, one document in memory at a time.

        Clusters already in a document are ignored. With `find_mentions`, so are its mentions: they are found in its
        trees, by the model if it has learnt to (`learn_mentions`), else by rules (`headway.coreference.tree_mentions`).
        """
        finder = self.model.finder
        for document in documents:
            given = document
            if find_mentions:
                mentions = tree_mentions(document.sentences) if finder is None else finder.find(document.sentences)
                given = document.with_mentions(mentions, np.arange(len(mentions)))
            (heads,) = self.model.predict([given], Options(), SERIAL)
            yield Resolved(given.with_clusters(clusters_of(heads)), heads)


def _documents(source: Source, name: str) -> list[Document]:
    shown = str(source) if isinstance(source, (str, os.PathLike)) else name
    if not isinstance(source, Iterable | str | os.PathLike):
        raise ArgumentError(f"{name}: expected a path or documents, got {type(source).__name__}")
    documents = list(read_documents(source) if isinstance(source, (str, os.PathLike)) else source)
    if not any(document.mentions for document in documents):
        raise TrainingError(f"{shown}: no Entity= marks in MISC; give documents with annotated mentions")
    return documents


def _trees(
    documents: Sequence[Document], coder: MentionCoder, sieves: Sieves, settings: ResolverSettings
) -> MentionTrees:
    """The training examples, with features sized from the arcs that fit the gold clusters."""
    coded = [coder.code(document) for document in documents]
    gold = [document.clusters for document in documents]
    antecedents = [sieves.antecedents(each, clusters) for each, clusters in zip(coded, gold, strict=True)]
    examples = list(zip(coded, antecedents, gold, strict=True))
    if settings.clusters:
        examples = [(each, with_cluster_atoms(each, arcs, clusters), clusters) for each, arcs, clusters in examples]
    right = ((stretch(d, arcs), np.flatnonzero(right_arcs(arcs, clusters))) for d, arcs, clusters in examples)
    features = PairFeatures.learn(pair_templates(types=settings.types, clusters=settings.clusters), right)
    return mention_trees(features, examples, settings.stretch or None, settings.root_weight, settings.temperature)


class _Development:
    """Development documents, coded once."""

    def __init__(self, documents: Sequence[Document], coder: MentionCoder, sieves: Sieves) -> None:
        self._documents = documents
        self._antecedents = [(coded, sieves.antecedents(coded)) for coded in map(coder.code, documents)]

    def conll(self, features: PairFeatures, weights: Floats) -> float:
        """The CoNLL average, in percent."""
        found = [
            document.with_clusters(clusters_of(predicted_heads(features, weights, coded, arcs)))
            for document, (coded, arcs) in zip(self._documents, self._antecedents, strict=True)
        ]
        return 100 * score_documents(self._documents, found).conll
