"""The learner that settings ask for, and which learners a model can be trained with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headway.errors import TrainingError
from headway.learning.descent import Descent
from headway.learning.entropy import EntropyRegularised
from headway.learning.expected_loss import ExpectedLoss
from headway.learning.exponentiated_gradient import ExponentiatedGradient
from headway.learning.generalized_expectation import Constraints, GeneralizedExpectation
from headway.learning.latent_perceptron import LatentPerceptron
from headway.learning.log_linear import LogLinear
from headway.learning.perceptron import Perceptron
from headway.learning.problem import Differentiable, Problem, Quantity
from headway.learning.progress import Learner
from headway.training.settings import ENTROPY_ORDER, ENTROPY_WEIGHT, LearnerName, Settings

_LEARNERS: dict[LearnerName, type[Any]] = {
    "perceptron": Perceptron,
    "margin": Perceptron,
    "loglinear": LogLinear,
    "eg": ExponentiatedGradient,
    "eg-loglinear": ExponentiatedGradient,
    "expected-loss": ExpectedLoss,
    "constraints": GeneralizedExpectation,
}


def require_fit(settings: Settings, offers: frozenset[Quantity]) -> None:
    """Refuse a learner that needs what the model's problems do not offer."""
    if settings.method not in _LEARNERS:
        raise TrainingError(f"{settings.method} is for networks; train the model neural, or choose loglinear")
    missing = _LEARNERS[settings.method].needs - offers
    if missing:
        fitting = [name for name, learner in _LEARNERS.items() if learner.needs <= offers]
        raise TrainingError(
            f"the {settings.model} model has no {' or '.join(sorted(missing))} for {settings.method}; "
            f"train it with {' or '.join(fitting)}"
        )


def learner_of(settings: Settings, text: Problem[Differentiable] | None = None) -> Learner:
    """The learner of complete settings; `text` are sentences without trees, for entropy regularisation."""
    epochs, c = settings.epochs or 1, settings.c or 0.0
    descent = Descent(epochs, settings.optimiser, seed=settings.seed)
    if text is not None:
        weight = ENTROPY_WEIGHT if settings.entropy_weight is None else settings.entropy_weight
        order = settings.entropy_order or ENTROPY_ORDER
        return EntropyRegularised(text, c, weight, order, descent)
    make: dict[LearnerName, Callable[[], Learner]] = {
        "perceptron": lambda: Perceptron(epochs, c, settings.seed),
        "margin": lambda: Perceptron(epochs, c, settings.seed),
        "loglinear": lambda: LogLinear(c, descent),
        "expected-loss": lambda: ExpectedLoss(c, descent),
        "eg": lambda: ExponentiatedGradient(c, epochs, "hinge"),
        "eg-loglinear": lambda: ExponentiatedGradient(c, epochs, "log"),
    }
    return make[settings.method]()


def latent_learner_of(settings: Settings) -> LatentPerceptron:
    """The learner of complete settings where some heads are unknown."""
    return LatentPerceptron(settings.epochs or 1, settings.c or 0.0, settings.seed)


def rules_learner_of(settings: Settings, constraints: Constraints) -> GeneralizedExpectation:
    """The learner from rules."""
    descent = Descent(settings.epochs or 1, settings.optimiser, seed=settings.seed)
    return GeneralizedExpectation(constraints, settings.criterion, settings.c or 0.0, descent)
