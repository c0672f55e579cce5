"""A trained arc-factored parser: everything needed to parse, and its saved form.

The tree is the best of the model's class by its arc scores; its labels are chosen with the tree (`joint` features) or
after it (`labeller`). Sentences are scored in batches of like length, so that the cost is the kernels'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from headway.archive import Archive
from headway.errors import ArchiveError
from headway.features.arc_features import ArcFeatures, Block
from headway.features.coding import Coded, Coder
from headway.features.templates import parse_templates
from headway.inference.batch import Floats, Ints, groups_by_length
from headway.inference.first_order import argmax, marginals
from headway.models.arc_factored import ArcScorer
from headway.models.labeller import LabelScorer
from headway.treebank import Sentence

KIND = "parser"

# Padded arc scores of one batch: 2 MB
BATCH_CELLS = 250_000


@dataclass(frozen=True)
class Prediction:
    """One sentence's tree: heads (n+1,), labels, and the arc scores (n+1, n+1) it was chosen by."""

    heads: Ints
    labels: tuple[str | None, ...] | None
    scores: Floats


@dataclass(frozen=True)
class ArcModel:
    """`about` is what the model says of itself: settings, figures and data it comes from."""

    coder: Coder
    scorer: ArcScorer
    weights: Floats
    labeller: LabelScorer | None
    label_weights: Floats
    projective: bool
    single_root: bool
    about: Mapping[str, Any]

    def predict(self, sentences: Sequence[Sentence], *, mbr: bool = False, threads: int = 1) -> list[Prediction]:
        """The trees of some sentences, in their order; `mbr` maximises the expected number of right heads."""
        coded = self.coder.code(sentences)
        found: dict[int, Prediction] = {}
        for which in groups_by_length(coded.lengths, BATCH_CELLS):
            for i, prediction in zip(which.tolist(), self._predict(coded, which, mbr, threads), strict=True):
                found[i] = prediction
        return [found[i] for i in range(len(sentences))]

    def _predict(self, coded: Coded, which: Ints, mbr: bool, threads: int) -> Iterator[Prediction]:
        lengths = coded.lengths[which]
        scores = self.scorer.score(self.weights, coded, which)
        arcs = scores if scores.ndim == 3 else _sum_labels(scores)
        best = scores if scores.ndim == 3 else scores.max(axis=-1)
        options: dict[str, Any] = {
            "projective": self.projective,
            "single_root": self.single_root,
            "lengths": lengths,
            "threads": threads,
        }
        heads = argmax(marginals(arcs, **options) if mbr else best, **options)
        labels = self._labels(coded, which, heads, scores)
        for b, n in enumerate(lengths.tolist()):
            names = None if labels is None else (None, *(self.label_names[i] for i in labels[b, 1 : n + 1].tolist()))
            yield Prediction(heads[b, : n + 1].copy(), names, arcs[b, : n + 1, : n + 1].copy())

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels the model knows; none when it was trained without."""
        return self.scorer.labels or (self.labeller.labels if self.labeller else ())

    def _labels(self, coded: Coded, which: Ints, heads: Ints, scores: Floats) -> Ints | None:
        """The number of every word's label (B, N+1)."""
        if self.scorer.joint is not None:
            b, m = np.indices(heads.shape)
            chosen: Ints = scores[b, heads, m].argmax(axis=-1)
            return chosen
        if self.labeller is None:
            return None
        after: Ints = self.labeller.score(self.label_weights, coded, which, heads).argmax(axis=-1)
        return after

    def to_archive(self) -> Archive:
        """What is saved: single-precision weights, the numbering of words and tags, the templates."""
        data = {
            "about": dict(self.about),
            "projective": self.projective,
            "single_root": self.single_root,
            "fields": {name: list(values) for name, values in self.coder.fields.items()},
            "feats": list(self.coder.feats),
            "labels": list(self.label_names),
            "arcs": _blocks(self.scorer.arcs),
            "joint": None if self.scorer.joint is None else _blocks(self.scorer.joint),
            "labeller": None if self.labeller is None else _blocks(self.labeller.features),
        }
        arrays = {
            "weights": self.weights.astype(np.float32),
            "label_weights": self.label_weights.astype(np.float32),
        }
        return Archive(KIND, data, arrays)

    @classmethod
    def from_archive(cls, archive: Archive, source: str) -> ArcModel:
        """The model of an archive; `source` is for error messages."""
        try:
            return cls._from_archive(archive)
        except ArchiveError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ArchiveError(
                f"{source}: a damaged model, or not a model ({type(error).__name__}: {error}); save it again"
            ) from None

    @classmethod
    def _from_archive(cls, archive: Archive) -> ArcModel:
        data = archive.data
        coder = Coder.from_values(data["fields"], data["feats"])
        labels = tuple(map(str, data["labels"]))
        arcs, joint, labeller = (_compile(data[name], coder) for name in ("arcs", "joint", "labeller"))
        if arcs is None:
            raise ValueError("it has no arc features")
        if not labels and (joint is not None or labeller is not None):
            raise ValueError("it has no labels")
        scorer = ArcScorer(arcs, joint, labels if joint is not None else ())
        label_scorer = None if labeller is None else LabelScorer(labeller, labels)
        weights, label_weights = archive.arrays["weights"], archive.arrays["label_weights"]
        if weights.shape != (scorer.size,) or label_weights.shape != (label_scorer.size if label_scorer else 0,):
            raise ValueError("the weights do not fit the templates")
        if not (np.isfinite(weights).all() and np.isfinite(label_weights).all()):
            raise ValueError("a weight is not a finite number")
        return cls(
            coder,
            scorer,
            weights.astype(np.float64),
            label_scorer,
            label_weights.astype(np.float64),
            bool(data["projective"]),
            bool(data["single_root"]),
            dict(data["about"]),
        )


def _sum_labels(scores: Floats) -> Floats:
    top = scores.max(axis=-1)
    summed: Floats = top + np.log(np.exp(scores - top[..., None]).sum(axis=-1))
    return summed


def _blocks(features: ArcFeatures) -> list[dict[str, Any]]:
    return [{**asdict(block), "template": str(block.template)} for block in features.blocks]


def _compile(blocks: list[dict[str, Any]] | None, coder: Coder) -> ArcFeatures | None:
    if blocks is None:
        return None
    parsed = []
    for block in blocks:
        (template,) = parse_templates(block["template"], "model")
        parsed.append(Block(template, *(int(block[name]) for name in ("bits", "keys", "collisions"))))
    return ArcFeatures.compile(parsed, coder)
