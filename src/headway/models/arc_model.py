"""An arc-factored parser: the best tree by its arcs' scores, labels chosen with the tree or after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from headway.archive import Archive
from headway.arrays import TreeClass
from headway.features.arc_features import ArcFeatures
from headway.features.coding import Coder
from headway.models.arc_scorer import ArcScorer
from headway.models.composed import Labeller, predict_composed
from headway.models.constraints import Constraints
from headway.models.description import describe_features
from headway.models.labeller import AfterLabels
from headway.models.protocol import Description, Options, Prediction, Task
from headway.models.root_labels import roots_of
from headway.models.saved import (
    about_of,
    arc_features_of,
    blocks_data,
    coder_data,
    coder_of,
    labeller_members,
    labeller_of,
    labels_of,
    required_columns,
    trees_of,
    weights_of,
)
from headway.models.scorer import Trained
from headway.models.tree_decoder import JointLabels, TrainedArcs, TreeDecoder
from headway.parallel import Executor
from headway.treebank import Sentence


@dataclass(frozen=True, repr=False)
class ArcModel:
    """A coder, a scorer of arcs and a decoder of trees; `after` labels them unless the scorer does (`joint`).

    `roots` are the labels that a scorer of labelled arcs may give to the root's children, and to no other word.
    """

    coder: Coder
    scorer: Trained[ArcScorer]
    decoder: TreeDecoder
    after: AfterLabels | None
    about: Mapping[str, Any]
    roots: tuple[str, ...] = ()

    kind: ClassVar[str] = "arc"
    task: ClassVar[Task] = "parsing"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.trees}>"

    @property
    def trees(self) -> TreeClass:
        return self.decoder.trees

    def with_trees(self, trees: TreeClass) -> ArcModel:
        """The same weights, for trees of another class."""
        return replace(self, decoder=replace(self.decoder, trees=trees))

    @property
    def requires(self) -> frozenset[str]:
        return required_columns(self.coder)

    @property
    def labeller(self) -> Labeller | None:
        """What chooses the labels; None where the model was trained without."""
        return self.after if self.scorer.scorer.joint is None else JointLabels(self.scorer.scorer.labels)

    def predict(
        self,
        given: Sequence[Sentence],
        options: Options,
        executor: Executor,
        constraints: Sequence[Constraints | None] | None = None,
    ) -> list[Prediction]:
        """The trees of some sentences, in their order."""
        scorer = TrainedArcs(self.scorer, self.roots)
        return predict_composed(self.coder, scorer, self.decoder, self.labeller, given, options, executor, constraints)

    def describe(self) -> Description:
        scorer = self.scorer.scorer
        return describe_features(self, "arc", {"arcs": scorer.arcs, "joint": scorer.joint}, self.labeller, self.coder)

    def to_archive(self) -> Archive:
        """Single-precision weights, the numbering of words and tags, the templates."""
        scorer = self.scorer.scorer
        labeller, label_weights = labeller_members(self.after)
        joint = None
        if scorer.joint is not None:
            names = {"labels": list(scorer.labels), "roots": list(self.roots)}
            joint = {"blocks": blocks_data(scorer.joint), **names}
        data = {
            "about": dict(self.about),
            **self.trees._asdict(),
            **coder_data(self.coder),
            "arcs": blocks_data(scorer.arcs),
            "joint": joint,
            "labeller": labeller,
        }
        return Archive(self.kind, data, {"weights": self.scorer.weights.astype(np.float32), **label_weights})

    @classmethod
    def from_archive(cls, archive: Archive) -> ArcModel:
        """The model that was saved; a built-in error of lookup or value where the archive is damaged."""
        data = archive.data
        coder = coder_of(data)
        joint: ArcFeatures | None = None
        labels: tuple[str, ...] = ()
        roots: tuple[str, ...] = ()
        if data["joint"] is not None:
            joint, labels = arc_features_of(data["joint"]["blocks"], coder), labels_of(data["joint"])
            roots = roots_of(data["joint"], labels)
        scorer = ArcScorer(arc_features_of(data["arcs"], coder), joint, labels)
        return cls(
            coder,
            Trained(scorer, weights_of(archive, "weights", scorer.size)),
            TreeDecoder(trees_of(data)),
            labeller_of(archive, coder),
            about_of(data),
            roots,
        )
