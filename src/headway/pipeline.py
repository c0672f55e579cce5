"""The two stories: `Parser.train`, from a treebank to a parser, and `Parser.parse`, from sentences to trees.

parser = Parser.train("train.conllu", dev="dev.conllu")
for parsed in parser.parse(read_treebank("new.conllu")):
    print(parsed.to_conllu())
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np

from headway import __version__
from headway.archive import load_archive, save_archive
from headway.inference.batch import Floats, Ints
from headway.inference.tree_distribution import TreeDistribution
from headway.models.arc_model import KIND, ArcModel
from headway.training import (
    Development,
    Material,
    Monitor,
    Settings,
    Show,
    checksum,
    signature,
    train_arcs,
    train_labeller,
    training_trees,
)
from headway.treebank import Sentence

_SENTENCES_AT_ONCE = 512
_ARCS_AT_ONCE = 4_000_000

Source = str | os.PathLike[str] | Iterable[Sentence]


@dataclass(frozen=True)
class Confidence:
    """How sure the model is: of the whole tree, and of each word's head (arcs[0] is 1)."""

    tree: float
    arcs: Floats


@dataclass(frozen=True)
class Parsed:
    """A sentence with the tree the parser found. The distribution behind it is computed when first asked for."""

    sentence: Sentence
    scores: Floats
    projective: bool
    single_root: bool
    status: str = "EXACT"

    @property
    def heads(self) -> Ints:
        """(n+1,), heads[0] == -1."""
        assert self.sentence.heads is not None
        return self.sentence.heads

    @property
    def labels(self) -> tuple[str | None, ...]:
        """n+1 entries, labels[0] is None."""
        assert self.sentence.labels is not None
        return self.sentence.labels

    @cached_property
    def distribution(self) -> TreeDistribution:
        """Every tree's probability under the model, whatever the labels."""
        return TreeDistribution(self.scores, projective=self.projective, single_root=self.single_root)

    @property
    def marginals(self) -> Floats:
        """P(head -> modifier), (n+1, n+1)."""
        return self.distribution.marginals

    @property
    def confidence(self) -> Confidence:
        """The tree's probability and each of its arcs'; calibrated where the model was trained with dev data."""
        arcs = np.ones(len(self.heads))
        words = np.arange(1, len(self.heads))
        arcs[1:] = self.marginals[self.heads[1:], words]
        return Confidence(float(np.exp(self.distribution.log_prob(self.heads))), arcs)

    def to_conllu(self) -> str:
        """The parsed sentence as CoNLL-U."""
        return self.sentence.to_conllu()


@dataclass(frozen=True)
class Parser:
    """A trained parser."""

    model: ArcModel

    @classmethod
    def train(
        cls,
        train: Source,
        dev: Source | None = None,
        *,
        threads: int = 1,
        checkpoint: str | os.PathLike[str] | None = None,
        show: Show | None = None,
        **settings: Any,
    ) -> Parser:
        """Train on a treebank; `settings` are the fields of `headway.training.Settings`.

        With `dev`, the weights of the best pass are kept, training stops early, and probabilities are calibrated. With
        `checkpoint`, an interrupted training goes on where that file says; delete it once the parser is saved.
        """
        chosen = Settings(**settings).complete()
        sentences = training_trees(train, chosen, _name(train, "the training data"))
        material = Material.of(sentences, chosen, threads)
        gold = None
        if dev is not None:
            gold = training_trees(dev, Settings(single_root=False), _name(dev, "the development data"))
        held_out = None if gold is None else Development(gold, material, chosen, threads)
        file, data = None if checkpoint is None else Path(checkpoint), checksum(sentences)
        signed = signature(chosen, data, checksum(gold or []))
        monitor = train_arcs(material, chosen, held_out, show, file, signed, threads)
        return finish(material, chosen, monitor, held_out, data, show)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Parser:
        """A parser saved earlier. Loading checks everything and runs nothing."""
        return cls(ArcModel.from_archive(load_archive(path, KIND), str(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the parser to one file; an interruption leaves the old file as it was."""
        save_archive(self.model.to_archive(), path)

    @overload
    def parse(self, text: Sentence, *, mbr: bool = ..., threads: int = ...) -> Parsed: ...
    @overload
    def parse(self, text: Iterable[Sentence], *, mbr: bool = ..., threads: int = ...) -> Iterator[Parsed]: ...
    def parse(
        self, text: Sentence | Iterable[Sentence], *, mbr: bool = False, threads: int = 1
    ) -> Parsed | Iterator[Parsed]:
        """The tree of a sentence, or, one after the other, of any number of them in flat memory.

        `mbr` maximises the expected number of right heads rather than the tree's probability.
        """
        if isinstance(text, Sentence):
            return next(self._parse([text], mbr, threads))
        return self._parse(text, mbr, threads)

    def _parse(self, sentences: Iterable[Sentence], mbr: bool, threads: int) -> Iterator[Parsed]:
        trees = (self.model.projective, self.model.single_root)
        for some in _portions(sentences):
            for sentence, found in zip(some, self.model.predict(some, mbr=mbr, threads=threads), strict=True):
                yield Parsed(sentence.with_tree(found.heads, found.labels), found.scores, *trees)


def finish(
    material: Material, settings: Settings, monitor: Monitor, dev: Development | None, data: str, show: Show | None
) -> Parser:
    """The parser with the best weights a training found: calibrated where there is dev data, and with labels."""
    assert monitor.best is not None
    scale = dev.scale(monitor.best) if dev else 1.0
    labeller, label_weights = None, np.zeros(0)
    if settings.labels == "after":
        labeller, label_weights = train_labeller(material, settings.seed, show)
    about = {
        "headway": __version__,
        "settings": asdict(settings),
        "train": {"sentences": len(material.examples.lengths), "sha256": data},
        "best_pass": monitor.best_pass(),
        "scale": scale,
        "collisions": material.scorer.arcs.collisions,
        "history": monitor.history,
    }
    trees = (settings.projective, settings.single_root)
    model = ArcModel(material.coder, material.scorer, scale * monitor.best, labeller, label_weights, *trees, about)
    return Parser(model)


def _portions(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """The sentences, some at once: as many as fill the kernels' batches, few enough to stay small in memory."""
    portion: list[Sentence] = []
    arcs = 0
    for sentence in sentences:
        portion.append(sentence)
        arcs += (len(sentence) + 1) ** 2
        if len(portion) == _SENTENCES_AT_ONCE or arcs > _ARCS_AT_ONCE:
            yield portion
            portion, arcs = [], 0
    if portion:
        yield portion


def _name(source: Source, otherwise: str) -> str:
    return str(source) if isinstance(source, (str, os.PathLike)) else otherwise
