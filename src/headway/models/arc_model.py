"""A trained arc-factored parser: everything needed to parse, and its saved form.

The tree is the best of the model's class by its arc scores; its labels are chosen with the tree (`joint` features) or
after it (`labeller`). Sentences are scored in batches of like length, so that the cost is the kernels'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.archive import Archive
from headway.features.arc_features import ArcFeatures
from headway.features.blocks import Weights
from headway.features.coding import Coded, Coder
from headway.inference.batch import Floats, Ints, groups_by_length
from headway.inference.dual_decomposition import Status
from headway.inference.first_order import argmax, marginals
from headway.models.arc_factored import ArcScorer
from headway.models.labeller import LabelScorer
from headway.models.saved import (
    KIND,
    arc_features_of,
    blocks_data,
    coder_data,
    coder_of,
    labeller_data,
    labeller_of,
    weights_of,
)
from headway.treebank import Sentence

# Padded arc scores of one batch: 2 MB
BATCH_CELLS = 250_000


@dataclass(frozen=True)
class Own:
    """Probabilities that are not those of arc scores: of every arc (n+1, n+1), and of the tree; both brought into
    [0, 1]. `negative` and `tiny`: how many arcs had a marginal below zero, or too small to count, before that."""

    marginals: Floats
    tree: float
    negative: int
    tiny: int


@dataclass(frozen=True)
class Prediction:
    """One sentence's tree (n+1,), its labels, arc scores (n+1, n+1) for its probabilities, and what is proved of it.

    A model that is not arc-factored, but has marginals, brings its `own` probabilities.
    """

    heads: Ints
    labels: tuple[str | None, ...] | None
    scores: Floats
    status: Status = Status.EXACT
    gap: float = 0.0
    own: Own | None = None


@dataclass(frozen=True)
class ArcModel:
    """`about` is what the model says of itself: settings, figures and data it comes from."""

    coder: Coder
    scorer: ArcScorer
    weights: Weights
    labeller: LabelScorer | None
    label_weights: Weights
    projective: bool
    single_root: bool
    about: Mapping[str, Any]

    def with_projective(self, projective: bool) -> ArcModel:
        """The same weights, for projective trees or for all."""
        return replace(self, projective=projective)

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
        joint = self.scorer.joint
        data = {
            "model": "arc",
            "about": dict(self.about),
            "projective": self.projective,
            "single_root": self.single_root,
            "coder": coder_data(self.coder),
            "arcs": blocks_data(self.scorer.arcs),
            "joint": None if joint is None else {"blocks": blocks_data(joint), "labels": list(self.scorer.labels)},
            "labeller": labeller_data(self.labeller),
        }
        arrays = {
            "weights": self.weights.astype(np.float32),
            "label_weights": self.label_weights.astype(np.float32),
        }
        return Archive(KIND, data, arrays)

    @classmethod
    def from_archive(cls, archive: Archive) -> ArcModel:
        """The model of an archive; any of the built-in errors of lookup and value where it is damaged."""
        data = archive.data
        coder = coder_of(data["coder"])
        joint: ArcFeatures | None = None
        labels: tuple[str, ...] = ()
        if data["joint"] is not None:
            joint, labels = arc_features_of(data["joint"]["blocks"], coder), tuple(map(str, data["joint"]["labels"]))
            if not labels:
                raise ValueError("it has no labels")
        scorer = ArcScorer(arc_features_of(data["arcs"], coder), joint, labels)
        labeller = labeller_of(data["labeller"], coder)
        return cls(
            coder,
            scorer,
            weights_of(archive, "weights", scorer.size),
            labeller,
            weights_of(archive, "label_weights", labeller.size if labeller else 0),
            bool(data["projective"]),
            bool(data["single_root"]),
            dict(data["about"]),
        )


def _sum_labels(scores: Floats) -> Floats:
    top = scores.max(axis=-1)
    summed: Floats = top + np.log(np.exp(scores - top[..., None]).sum(axis=-1))
    return summed
