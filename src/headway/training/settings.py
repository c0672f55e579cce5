"""What a model is trained with, and the learner that makes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from headway.errors import TrainingError
from headway.learning.descent import Descent, Optimiser
from headway.learning.entropy import EntropyRegularised
from headway.learning.examples import Choices, Trees, Unannotated
from headway.learning.expected_loss import ExpectedLoss
from headway.learning.exponentiated_gradient import ExponentiatedGradient
from headway.learning.generalized_expectation import Constraints, Criterion, GeneralizedExpectation
from headway.learning.latent_perceptron import LatentPerceptron
from headway.learning.log_linear import LogLinear
from headway.learning.perceptron import Perceptron
from headway.learning.progress import Learner
from headway.models.higher_order import AutomataTrees, Decoding
from headway.models.pruning import MAX_HEADS, THRESHOLD

ModelName = Literal["arc", "sibling", "grandsibling"]
LearnerName = Literal["perceptron", "margin", "loglinear", "eg", "eg-loglinear", "expected-loss", "constraints"]
LabelChoice = Literal["after", "joint", "none"]
TagChoice = Literal["predicted", "gold"]

# Passes over the data, and C, where the user gives none: from first trials on held-out Danish sentences. `headway tune`
# finds better ones for a treebank.
_EPOCHS: dict[LearnerName, int] = {
    "perceptron": 10,
    "margin": 10,
    "loglinear": 100,
    "eg": 50,
    "eg-loglinear": 50,
    "expected-loss": 100,
    "constraints": 100,
}
_C: dict[LearnerName, float] = {
    "perceptron": 0.0,
    "margin": 200.0,
    "loglinear": 0.1,
    "eg": 0.01,
    "eg-loglinear": 0.1,
    "expected-loss": 3.0,
    "constraints": 100.0,
}
# Of trees of which some heads are not known.
_TEMPERATURE = 30.0
# Of the log-linear model that prunes for the higher-order ones.
_PRUNER_EPOCHS, _PRUNER_C = 4, 0.3


@dataclass(frozen=True)
class Settings:
    """What a model is trained with. `c` is the papers' C: the margin, or the weight of the data against w·w/2.

    With `tags` "predicted", a tagger is trained too, and the parser on tags like those the tagger will give; with
    "gold", on the treebank's own. `clusters` names a file of word clusters (`headway.features.clusters`).

    With several `trainings`, the weights are the average of theirs; they differ in the order of the sentences.

    `labels` are chosen `after` the tree (default of the perceptrons), jointly with it (`joint`, default of the
    marginal-based learners), or not at all. `patience` passes without a better development score end the training.

    The higher-order models have `parts`, the table of their templates beside those of the arcs; `decoding` while they
    are trained, by the head `automata` alone or by `dual` decomposition; and a pruner that keeps, of a word's heads,
    those of at least `threshold` times the likeliest one's probability, and not more than `max_heads`.

    With text beside the trees, `loglinear` adds its entropy of order `entropy_order` (1: Shannon's), times
    `entropy_weight`. The learner `constraints` is for `Parser.constrain`, and `criterion` its distance from a target.
    """

    model: ModelName = "arc"
    learner: LearnerName = "margin"
    projective: bool = False
    single_root: bool = True
    labels: LabelChoice | None = None
    tags: TagChoice = "predicted"
    templates: str = "standard"
    clusters: str | None = None
    parts: str | None = None
    decoding: Decoding = "automata"
    threshold: float = THRESHOLD
    max_heads: int = MAX_HEADS
    epochs: int | None = None
    c: float | None = None
    optimiser: Optimiser = "lbfgs"
    patience: int = 10
    seed: int = 0
    trainings: int = 1
    entropy_weight: float = 0.03
    entropy_order: float = 1.0
    criterion: Criterion = "kl"

    def complete(self) -> Settings:
        """The same, every default written out; an error names a setting that cannot be."""
        if self.model not in get_args(ModelName):
            raise TrainingError(f"unknown model {self.model!r}; the models are: {', '.join(get_args(ModelName))}")
        if self.learner not in _EPOCHS:
            raise TrainingError(f"unknown learner {self.learner!r}; the learners are: {', '.join(_EPOCHS)}")
        if self.labels not in (None, *get_args(LabelChoice)):
            raise TrainingError(f"labels is {self.labels!r}; expected any of {', '.join(get_args(LabelChoice))}")
        if self.tags not in get_args(TagChoice):
            raise TrainingError(f"tags is {self.tags!r}; expected any of {', '.join(get_args(TagChoice))}")
        if self.optimiser not in get_args(Optimiser):
            raise TrainingError(f"unknown optimiser {self.optimiser!r}; there are {', '.join(get_args(Optimiser))}")
        if self.criterion not in get_args(Criterion):
            raise TrainingError(f"criterion is {self.criterion!r}; expected any of {', '.join(get_args(Criterion))}")
        joint = self.learner in ("loglinear", "eg", "eg-loglinear", "expected-loss")
        done = replace(
            self,
            labels=self.labels or ("joint" if joint else "after"),
            parts=self.parts or (None if self.model == "arc" else self.model),
            epochs=_EPOCHS[self.learner] if self.epochs is None else self.epochs,
            c=_C[self.learner] if self.c is None else self.c,
        )
        epochs, c = done.epochs or 0, done.c or 0.0
        if epochs < 1:
            raise TrainingError(f"epochs is {epochs}; at least one is needed")
        if self.trainings < 1:
            raise TrainingError(f"trainings is {self.trainings}; at least one is needed")
        if not (c > 0 or (c == 0 and self.learner == "perceptron")) or not np.isfinite(c):
            raise TrainingError(f"C is {c}; expected a number above 0")
        if not (self.entropy_weight >= 0 and np.isfinite(self.entropy_weight)):
            raise TrainingError(f"the entropy weight is {self.entropy_weight}; expected 0 or a number above")
        if not self.entropy_order > 0:
            raise TrainingError(f"the entropy's order is {self.entropy_order}; expected a number above 0, or inf")
        if self.model != "arc":
            done._require_perceptron()
        return done

    def _require_perceptron(self) -> None:
        if self.learner not in ("perceptron", "margin"):
            raise TrainingError(
                f"the {self.model} model has no marginals for {self.learner}; train it with perceptron or margin"
            )
        if self.labels == "joint":
            raise TrainingError(f"the {self.model} model chooses labels after the tree; leave --labels joint out")
        if self.decoding not in get_args(Decoding):
            raise TrainingError(f"decoding is {self.decoding!r}; expected any of {', '.join(get_args(Decoding))}")

    def of_pruner(self) -> Settings:
        """How the arc-factored model that prunes for these settings is trained."""
        return Settings(
            learner="loglinear",
            optimiser="adagrad",
            projective=self.projective,
            single_root=self.single_root,
            labels="none",
            templates="pruner",
            epochs=_PRUNER_EPOCHS,
            c=_PRUNER_C,
            seed=self.seed,
        )

    def of_hidden_heads(self) -> Settings:
        """How the arc-factored model is trained that fills in heads which are not known."""
        return Settings(
            projective=self.projective,
            single_root=self.single_root,
            labels="none",
            templates=self.templates,
            seed=self.seed,
        )

    @property
    def temperature(self) -> float:
        """How heads that are not known are shared among trees: by the best one (0), or by all."""
        return 0.0 if self.learner == "perceptron" else _TEMPERATURE

    @property
    def is_latent(self) -> bool:
        """Whether these settings learn from trees of which some heads are not known, without filling them in."""
        return self.model == "arc" and self.learner in ("perceptron", "margin") and self.labels != "joint"

    def require_trees(self, *, text: bool) -> None:
        """Refuse settings that do not learn from trees, or not from trees and `text`."""
        if self.learner == "constraints":
            raise TrainingError("constraints need rules, not trees; use Parser.constrain, or headway constrain")
        if text and self.learner != "loglinear":
            raise TrainingError(f"{self.learner} learns from trees alone; text beside them is for loglinear")

    def learn(self, structures: Trees | AutomataTrees, text: Unannotated | None = None) -> Learner:
        """The learner of these settings; `text` are sentences without trees to be sure of."""
        done = self.complete()
        epochs, c = done.epochs or 1, done.c or 0.0
        if self.learner in ("perceptron", "margin"):
            return Perceptron(structures, epochs, c, self.seed)
        assert isinstance(structures, Trees)  # `complete` has no other learner for automata
        descent = Descent(epochs, self.optimiser, seed=self.seed)
        if text is not None:
            return EntropyRegularised(text, structures, c, self.entropy_weight, self.entropy_order, descent)
        if self.learner == "loglinear":
            return LogLinear(structures, c, descent)
        if self.learner == "expected-loss":
            return ExpectedLoss(structures, c, descent)
        return ExponentiatedGradient(structures, c, epochs, "hinge" if self.learner == "eg" else "log")

    def learn_latent(self, structures: Choices) -> LatentPerceptron:
        """The learner of these settings where some heads are not known."""
        done = self.complete()
        return LatentPerceptron(structures, done.epochs or 1, done.c or 0.0, self.seed)

    def learn_constraints(self, structures: Trees, constraints: Constraints) -> GeneralizedExpectation:
        """The learner from rules."""
        done = self.complete()
        descent = Descent(done.epochs or 1, self.optimiser, seed=self.seed)
        return GeneralizedExpectation(constraints, structures, self.criterion, done.c or 0.0, descent)
