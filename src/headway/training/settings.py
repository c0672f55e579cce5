"""What a model is trained with, and the learner that makes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from headway.errors import TrainingError
from headway.learning.examples import Trees
from headway.learning.exponentiated_gradient import ExponentiatedGradient
from headway.learning.log_linear import LogLinear, Optimiser
from headway.learning.perceptron import Perceptron
from headway.learning.progress import Learner

LearnerName = Literal["perceptron", "margin", "loglinear", "eg", "eg-loglinear"]
LabelChoice = Literal["after", "joint", "none"]

# Passes over the data, and C, where the user gives none: from first trials on held-out Danish sentences. `headway tune`
# finds better ones for a treebank.
_EPOCHS: dict[LearnerName, int] = {"perceptron": 10, "margin": 10, "loglinear": 100, "eg": 50, "eg-loglinear": 50}
_C: dict[LearnerName, float] = {"perceptron": 0.0, "margin": 200.0, "loglinear": 0.1, "eg": 0.01, "eg-loglinear": 0.1}


@dataclass(frozen=True)
class Settings:
    """What a model is trained with. `c` is the papers' C: the margin, or the weight of the data against w·w/2.

    `labels` are chosen `after` the tree (default of the perceptrons), jointly with it (`joint`, default of the
    marginal-based learners), or not at all. `patience` passes without a better development score end the training.
    """

    model: Literal["arc"] = "arc"
    learner: LearnerName = "margin"
    projective: bool = False
    single_root: bool = True
    labels: LabelChoice | None = None
    templates: str = "standard"
    epochs: int | None = None
    c: float | None = None
    optimiser: Optimiser = "lbfgs"
    patience: int = 10
    seed: int = 0

    def complete(self) -> Settings:
        """The same, every default written out; an error names a setting that cannot be."""
        if self.model != "arc":
            raise TrainingError(f"unknown model {self.model!r}; the models are: arc")
        if self.learner not in _EPOCHS:
            raise TrainingError(f"unknown learner {self.learner!r}; the learners are: {', '.join(_EPOCHS)}")
        if self.labels not in (None, *get_args(LabelChoice)):
            raise TrainingError(f"labels is {self.labels!r}; expected any of {', '.join(get_args(LabelChoice))}")
        if self.optimiser not in get_args(Optimiser):
            raise TrainingError(f"unknown optimiser {self.optimiser!r}; there are {', '.join(get_args(Optimiser))}")
        joint = self.learner in ("loglinear", "eg", "eg-loglinear")
        done = replace(
            self,
            labels=self.labels or ("joint" if joint else "after"),
            epochs=_EPOCHS[self.learner] if self.epochs is None else self.epochs,
            c=_C[self.learner] if self.c is None else self.c,
        )
        epochs, c = done.epochs or 0, done.c or 0.0
        if epochs < 1:
            raise TrainingError(f"epochs is {epochs}; at least one is needed")
        if not (c > 0 or (c == 0 and self.learner == "perceptron")) or not np.isfinite(c):
            raise TrainingError(f"C is {c}; expected a number above 0")
        return done

    def learn(self, threads: int = 1) -> Learner:
        """The learner of these settings."""
        done = self.complete()
        epochs, c = done.epochs or 1, done.c or 0.0
        trees = Trees(self.projective, self.single_root, threads)
        if self.learner in ("perceptron", "margin"):
            return Perceptron(trees, epochs, c, self.seed)
        if self.learner == "loglinear":
            return LogLinear(trees, c, epochs, self.optimiser, seed=self.seed)
        return ExponentiatedGradient(trees, c, epochs, "hinge" if self.learner == "eg" else "log")
