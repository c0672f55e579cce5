"""A trained higher-order parser: pruner, parts, dual decomposition, labels; and its saved form.

The pruner leaves a few heads a word (`pruning`), the parts these make are scored (`higher_order`), the best tree is
found with a proof (`headway.inference.dual_decomposition`), and the labels are chosen after it (`labeller`). The arc
scores of a prediction are the pruner's: probabilities come from its log-linear model, those of arcs by way of `trust`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.archive import Archive
from headway.features.blocks import Weights
from headway.features.coding import Coded, Coder
from headway.inference.batch import Ints, groups_by_length
from headway.inference.dual_decomposition import ITERATIONS
from headway.models.arc_factored import ArcScorer
from headway.models.arc_model import Prediction
from headway.models.higher_order import KINDS, PartScorer, decode_parts
from headway.models.labeller import LabelScorer
from headway.models.pruning import Pruner
from headway.models.saved import (
    KIND,
    arc_features_of,
    blocks_data,
    coder_data,
    coder_of,
    labeller_data,
    labeller_of,
    part_features_of,
    weights_of,
)
from headway.models.trust import NO_TRUST, Trust
from headway.treebank import Sentence

# Cells of one batch's padded score matrices: as many sentences as keep the parts of a batch within some megabytes.
BATCH_CELLS = 60_000

# Steps of branch and bound on one sentence: seconds for a long one; benchmarks/higher_order.py proves all trees in it.
_BUDGET = 20_000


@dataclass(frozen=True)
class AutomataModel:
    """`about` is what the model says of itself: settings, figures and data it comes from."""

    coder: Coder
    pruner: Pruner
    scorer: PartScorer
    weights: Weights
    labeller: LabelScorer | None
    label_weights: Weights
    projective: bool
    single_root: bool
    about: Mapping[str, Any]
    trust: Trust = NO_TRUST

    def with_projective(self, projective: bool) -> AutomataModel:
        """The same weights, for projective trees or for all; the pruner must leave a tree of the class, too."""
        return replace(self, projective=projective, pruner=replace(self.pruner, projective=projective))

    def predict(
        self,
        sentences: Sequence[Sentence],
        *,
        exact: bool = True,
        iterations: int = ITERATIONS,
        threads: int = 1,
    ) -> list[Prediction]:
        """The trees of some sentences, in their order; `exact` proves every one of them the best."""
        coded = self.coder.code(sentences)
        found: dict[int, Prediction] = {}
        for which in groups_by_length(coded.lengths, BATCH_CELLS):
            predicted = self._predict(coded, which, exact, iterations, threads)
            for i, prediction in zip(which.tolist(), predicted, strict=True):
                found[i] = prediction
        return [found[i] for i in range(len(sentences))]

    def _predict(self, coded: Coded, which: Ints, exact: bool, iterations: int, threads: int) -> Iterator[Prediction]:
        lengths = coded.lengths[which]
        kept, arcs = self.pruner.prune(coded, which, threads=threads)
        decoded = decode_parts(
            self.scorer,
            self.weights,
            coded,
            which,
            list(kept),
            threads=threads,
            projective=self.projective,
            single_root=self.single_root,
            exact=exact,
            iterations=iterations,
            budget=_BUDGET,
        )
        heads = np.full((len(which), int(lengths.max(initial=0)) + 1), -1, np.int64)
        for row, one in zip(heads, decoded, strict=True):
            row[: len(one.heads)] = one.heads
        labels = None
        if self.labeller is not None:
            labels = self.labeller.score(self.label_weights, coded, which, heads).argmax(axis=-1)
        for b, (one, n) in enumerate(zip(decoded, lengths.tolist(), strict=True)):
            names = None if labels is None else (None, *(self.label_names[i] for i in labels[b, 1 : n + 1].tolist()))
            yield Prediction(one.heads, names, arcs[b, : n + 1, : n + 1].copy(), one.status, one.gap)

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels the model knows; none when it was trained without."""
        return self.labeller.labels if self.labeller else ()

    def to_archive(self) -> Archive:
        """What is saved: single-precision weights, the numbering of words and tags, the templates."""
        pruner = self.pruner
        data = {
            "model": "automata",
            "about": dict(self.about),
            "projective": self.projective,
            "single_root": self.single_root,
            "trust": [self.trust.pi, self.trust.kappa],
            "coder": coder_data(self.coder),
            "pruner": {
                "arcs": blocks_data(pruner.scorer.arcs),
                "threshold": pruner.threshold,
                "max_heads": pruner.max_heads,
            },
            "arcs": blocks_data(self.scorer.arcs),
            "parts": {name: blocks_data(features) for name, features in self.scorer.others.items()},
            "labeller": labeller_data(self.labeller),
        }
        arrays = {
            "weights": self.weights.astype(np.float32),
            "pruner_weights": pruner.weights.astype(np.float32),
            "label_weights": self.label_weights.astype(np.float32),
        }
        return Archive(KIND, data, arrays)

    @classmethod
    def from_archive(cls, archive: Archive) -> AutomataModel:
        """The model of an archive; any of the built-in errors of lookup and value where it is damaged."""
        data = archive.data
        coder = coder_of(data["coder"])
        projective, single_root = bool(data["projective"]), bool(data["single_root"])
        arcs = ArcScorer(arc_features_of(data["pruner"]["arcs"], coder))
        pruner = Pruner(
            arcs,
            weights_of(archive, "pruner_weights", arcs.size),
            projective,
            single_root,
            float(data["pruner"]["threshold"]),
            int(data["pruner"]["max_heads"]),
        )
        others = {
            name: part_features_of(nodes, data["parts"][name], coder)
            for name, nodes in KINDS.items()
            if name in data["parts"]
        }
        if "siblings" not in others or ("grand_siblings" in others and "grandparents" not in others):
            raise ValueError("it lacks the features of a kind of part")
        scorer = PartScorer(arc_features_of(data["arcs"], coder), others)
        labeller = labeller_of(data["labeller"], coder)
        return cls(
            coder,
            pruner,
            scorer,
            weights_of(archive, "weights", scorer.size),
            labeller,
            weights_of(archive, "label_weights", labeller.size if labeller else 0),
            projective,
            single_root,
            dict(data["about"]),
            Trust(*map(float, data["trust"])),
        )
