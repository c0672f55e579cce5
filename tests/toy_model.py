"""A kind of model that Headway does not know: a word's head is the one before it, as surely as in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from headway.archive import Archive
from headway.arrays import TreeClass
from headway.inference import TreeDistribution
from headway.models.protocol import Description, Options, Prediction, Task
from headway.parallel import Executor
from headway.training.data import TrainingData
from headway.training.settings import Settings
from headway.training.stages import Run
from headway.treebank import Sentence, require_tree


@dataclass(frozen=True)
class ToyModel:
    bonus: float
    about: Mapping[str, Any]
    trees: TreeClass = TreeClass()  # noqa: RUF009
    kind: ClassVar[str] = "toy"
    task: ClassVar[Task] = "parsing"
    requires = frozenset({"words"})

    def predict(self, given: Sequence[Sentence], options: Options, executor: Executor) -> list[Prediction]:
        return executor.map(self._tree, given)

    def _tree(self, sentence: Sentence) -> Prediction:
        scores = self.bonus * np.eye(len(sentence) + 1, k=1)
        trees = TreeDistribution(scores, *self.trees)
        return Prediction(trees.argmax(), None, trees)

    def with_trees(self, trees: TreeClass) -> ToyModel:
        return replace(self, trees=trees)

    def describe(self) -> Description:
        rows = (("model", "toy"), ("bonus", f"{self.bonus:.3f}"))
        return Description(rows, data={"model": "toy", "bonus": self.bonus})

    def to_archive(self) -> Archive:
        return Archive(self.kind, {"about": dict(self.about), "bonus": self.bonus, "trees": list(self.trees)}, {})

    @classmethod
    def from_archive(cls, archive: Archive) -> ToyModel:
        data = archive.data
        return cls(float(data["bonus"]), dict(data["about"]), TreeClass(*map(bool, data["trees"])))


def train(data: TrainingData, settings: Settings, run: Run) -> ToyModel:
    """The log-odds of a word's head being the word before it."""
    right = sum(int((require_tree(s)[1:] == np.arange(len(s))).sum()) for s in data.train)
    return ToyModel(float(np.log((right + 1) / (sum(map(len, data.train)) - right + 1))), {}, settings.trees)
