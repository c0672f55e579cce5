"""The two stories: `Parser.train`, from a treebank to a parser, and `Parser.parse`, from sentences to trees.

parser = Parser.train("train.conllu", dev="dev.conllu")
for parsed in parser.parse(read_treebank("new.conllu")):
    print(parsed.to_conllu())
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np

from headway import __version__
from headway.archive import Archive, load_archive, save_archive
from headway.errors import ArchiveError, TrainingError
from headway.inference.batch import Floats, Ints
from headway.inference.dual_decomposition import Status
from headway.inference.tree_distribution import TreeDistribution
from headway.models.arc_factored import ArcExamples
from headway.models.arc_model import ArcModel
from headway.models.automata_model import AutomataModel
from headway.models.pruning import coverage
from headway.models.saved import KIND
from headway.training import (
    Development,
    Material,
    Monitor,
    PartDevelopment,
    Settings,
    Show,
    checksum,
    development,
    signature,
    train_arcs,
    train_labeller,
    training_trees,
)
from headway.treebank import Sentence

_SENTENCES_AT_ONCE = 512
_ARCS_AT_ONCE = 4_000_000

Model = ArcModel | AutomataModel
Source = str | os.PathLike[str] | Iterable[Sentence]


@dataclass(frozen=True)
class Confidence:
    """How sure the model is: of the whole tree, and of each word's head (arcs[0] is 1)."""

    tree: float
    arcs: Floats


@dataclass(frozen=True)
class Parsed:
    """A sentence with the tree the parser found, and whether that is proved to be the best under the model.

    The distribution behind it is computed when first asked for; for a higher-order model it is its pruner's.
    """

    sentence: Sentence
    scores: Floats
    projective: bool
    single_root: bool
    status: Status
    gap: float

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

    model: Model

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
        material = Material.of(sentences, chosen, threads, show)
        gold = None
        if dev is not None:
            gold = training_trees(dev, Settings(single_root=False), _name(dev, "the development data"))
        held_out = None if gold is None else development(gold, material, chosen, threads)
        file, data = None if checkpoint is None else Path(checkpoint), checksum(sentences)
        signed = signature(chosen, data, checksum(gold or []))
        monitor = train_arcs(material, chosen, held_out, show, file, signed)
        return finish(material, chosen, monitor, held_out, data, show)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Parser:
        """A parser saved earlier. Loading checks everything and runs nothing."""
        return cls(_model_of(load_archive(path, KIND), str(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the parser to one file; an interruption leaves the old file as it was."""
        save_archive(self.model.to_archive(), path)

    @overload
    def parse(self, text: Sentence, *, mbr: bool = ..., exact: bool = ..., threads: int = ...) -> Parsed: ...
    @overload
    def parse(
        self, text: Iterable[Sentence], *, mbr: bool = ..., exact: bool = ..., threads: int = ...
    ) -> Iterator[Parsed]: ...
    def parse(
        self, text: Sentence | Iterable[Sentence], *, mbr: bool = False, exact: bool = True, threads: int = 1
    ) -> Parsed | Iterator[Parsed]:
        """The tree of a sentence, or, one after the other, of any number of them in flat memory.

        `mbr` maximises the expected number of right heads rather than the tree's probability (arc models). Without
        `exact`, higher-order models stop where dual decomposition stops: `status` and `gap` say what that proves.
        """
        if isinstance(text, Sentence):
            return next(self._parse([text], mbr, exact, threads))
        return self._parse(text, mbr, exact, threads)

    def _parse(self, sentences: Iterable[Sentence], mbr: bool, exact: bool, threads: int) -> Iterator[Parsed]:
        model = self.model
        for some in _portions(sentences):
            if isinstance(model, ArcModel):
                predicted = model.predict(some, mbr=mbr, threads=threads)
            elif mbr:
                raise TrainingError("MBR needs arc marginals, which higher-order models do not have; use an arc model")
            else:
                predicted = model.predict(some, exact=exact, threads=threads)
            for sentence, found in zip(some, predicted, strict=True):
                tree = sentence.with_tree(found.heads, found.labels)
                yield Parsed(tree, found.scores, model.projective, model.single_root, found.status, found.gap)


def finish(
    material: Material, settings: Settings, monitor: Monitor, dev: Development | None, data: str, show: Show | None
) -> Parser:
    """The parser with the best weights a training found: calibrated where there is dev data, and with labels."""
    assert monitor.best is not None
    scale = dev.scale(monitor.best) if dev else 1.0
    labeller, label_weights = None, np.zeros(0)
    if settings.labels == "after":
        labeller, label_weights = train_labeller(material, settings.seed, show)
    examples = material.examples
    about = {
        "headway": __version__,
        "settings": asdict(settings),
        "train": {"sentences": len(examples.lengths), "sha256": data},
        "best_pass": monitor.best_pass(),
        "scale": scale,
        "collisions": examples.scorer.collisions,
        "history": monitor.history,
    }
    labels = (labeller, label_weights)
    trees = (settings.projective, settings.single_root)
    if isinstance(examples, ArcExamples):
        weights = scale * monitor.best
        return Parser(ArcModel(material.coder, examples.scorer, weights, *labels, *trees, about))
    assert material.pruner is not None
    left = dev.coverage if isinstance(dev, PartDevelopment) else coverage(material.pruner, *material.trees[:2])
    about["pruning"] = {
        "measured_on": "development" if dev else "training",
        "recall": left.recall,
        "heads_per_word": left.heads_per_word,
    }
    parts = (examples.scorer, monitor.best)
    pruner = replace(material.pruner, projective=settings.projective)
    return Parser(AutomataModel(material.coder, pruner, *parts, *labels, *trees, about))


def _model_of(archive: Archive, source: str) -> Model:
    """The model of an archive; `source` is for error messages."""
    try:
        if archive.data["model"] == "arc":
            return ArcModel.from_archive(archive)
        if archive.data["model"] == "automata":
            return AutomataModel.from_archive(archive)
        raise ValueError(f"a model of the unknown kind {archive.data['model']!r}")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ArchiveError(
            f"{source}: a damaged model, or not a model ({type(error).__name__}: {error}); save it again"
        ) from None


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
