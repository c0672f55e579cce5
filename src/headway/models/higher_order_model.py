"""A higher-order parser: pruned, scored by its parts, decoded with a proof, labelled after the tree.

The pruner leaves a few heads per word (`pruning`), the parts these make are scored (`part_scorer`), the best tree is
found with a proof (`dual_decoder`), and the labels are chosen after it (`labeller`). Probabilities are the pruner's,
those of the tree's own arcs calibrated (`calibration`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from headway.archive import Archive
from headway.arrays import TreeClass
from headway.errors import TrainingError
from headway.features.coding import Coder
from headway.inference.parts import KINDS
from headway.models.arc_scorer import ArcScorer
from headway.models.calibration import Calibration, calibration_of_before
from headway.models.composed import predict_composed
from headway.models.constraints import Constraints
from headway.models.description import Features, describe_features
from headway.models.dual_decoder import DualDecoder, PrunedPartScorer
from headway.models.labeller import AfterLabels
from headway.models.part_scorer import PartScorer
from headway.models.protocol import Description, Options, Prediction, Task
from headway.models.pruning import MOST_HEADS, Pruner
from headway.models.saved import (
    about_of,
    arc_features_of,
    blocks_data,
    coder_data,
    coder_of,
    labeller_members,
    labeller_of,
    part_features_of,
    required_columns,
    trees_of,
    weights_of,
)
from headway.models.scorer import Trained
from headway.parallel import Executor
from headway.saved_values import number, whole_number
from headway.treebank import Sentence


@dataclass(frozen=True, repr=False)
class HigherOrderModel:
    """A coder, a scorer of parts behind its pruner, a decoder with proofs, and a labeller."""

    coder: Coder
    scorer: PrunedPartScorer
    decoder: DualDecoder
    labeller: AfterLabels | None
    about: Mapping[str, Any]

    kind: ClassVar[str] = "higher-order"
    task: ClassVar[Task] = "parsing"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.trees}>"

    @property
    def trees(self) -> TreeClass:
        return self.decoder.trees

    def with_trees(self, trees: TreeClass) -> HigherOrderModel:
        """The same weights, for trees of another class; the pruner must leave one of them, too."""
        scorer = replace(self.scorer, pruner=replace(self.scorer.pruner, trees=trees))
        return replace(self, scorer=scorer, decoder=replace(self.decoder, trees=trees))

    @property
    def requires(self) -> frozenset[str]:
        return required_columns(self.coder)

    def predict(
        self,
        given: Sequence[Sentence],
        options: Options,
        executor: Executor,
        constraints: Sequence[Constraints | None] | None = None,
    ) -> list[Prediction]:
        """The trees of some sentences, in their order."""
        if options.mbr:
            raise TrainingError("MBR needs arc marginals, which higher-order models do not have; use an arc model")
        return predict_composed(
            self.coder, self.scorer, self.decoder, self.labeller, given, options, executor, constraints
        )

    def describe(self) -> Description:
        parts = self.scorer.parts.scorer
        pruner = self.scorer.pruner.scorer.scorer
        tables: dict[str, Features | None] = {"pruner": pruner.arcs, "arcs": parts.arcs, **parts.others}
        return describe_features(self, parts.order, tables, self.labeller, self.coder)

    def to_archive(self) -> Archive:
        """Single-precision weights, the numbering of words and tags, the templates."""
        pruner, parts, calibration = self.scorer.pruner, self.scorer.parts, self.decoder.calibration
        labeller, label_weights = labeller_members(self.labeller)
        data = {
            "about": dict(self.about),
            **self.trees._asdict(),
            "calibration": [calibration.alpha, calibration.beta, calibration.gamma],
            **coder_data(self.coder),
            "pruner": {
                "arcs": blocks_data(pruner.scorer.scorer.arcs),
                "threshold": pruner.threshold,
                "max_heads": pruner.max_heads,
            },
            "arcs": blocks_data(parts.scorer.arcs),
            "parts": {name: blocks_data(features) for name, features in parts.scorer.others.items()},
            "labeller": labeller,
        }
        arrays = {
            "weights": parts.weights.astype(np.float32),
            "pruner_weights": pruner.scorer.weights.astype(np.float32),
            **label_weights,
        }
        return Archive(self.kind, data, arrays)

    @classmethod
    def from_archive(cls, archive: Archive) -> HigherOrderModel:
        """The model that was saved; a built-in error of lookup or value where the archive is damaged."""
        data = archive.data
        coder, trees = coder_of(data), trees_of(data)
        arcs = ArcScorer(arc_features_of(data["pruner"]["arcs"], coder))
        pruner = Pruner(
            Trained(arcs, weights_of(archive, "pruner_weights", arcs.size)),
            trees,
            number(data["pruner"]["threshold"], "the threshold"),
            whole_number(data["pruner"]["max_heads"], "max_heads", 1, MOST_HEADS),
        )
        others = {
            kind.name: part_features_of(kind.roles, data["parts"][kind.name], coder)
            for kind in KINDS
            if kind.name in data["parts"]
        }
        parts = PartScorer(arc_features_of(data["arcs"], coder), others)
        return cls(
            coder,
            PrunedPartScorer(pruner, Trained(parts, weights_of(archive, "weights", parts.size))),
            DualDecoder(trees, saved_calibration(data)),
            labeller_of(archive, coder),
            about_of(data),
        )


def saved_calibration(data: Mapping[str, Any]) -> Calibration:
    """The calibration that was saved; two numbers are those of an older one, and become the nearest of today's."""
    numbers = [number(each, "a number of the calibration") for each in data["calibration"]]
    if len(numbers) == 2:
        return calibration_of_before(*numbers)
    alpha, beta, gamma = numbers
    return Calibration(alpha, beta, gamma)
