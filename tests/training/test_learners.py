"""The learner that settings ask for, and learners that a model cannot be trained with."""

from __future__ import annotations

from typing import Any

import pytest

from headway.arrays import TreeClass
from headway.errors import TrainingError
from headway.features.arc_features import ArcFeatures
from headway.features.coding import Coder
from headway.features.rule_features import RuleFeatures
from headway.features.templates import load_templates
from headway.learning.descent import Descent
from headway.learning.entropy import EntropyRegularised
from headway.learning.expected_loss import ExpectedLoss
from headway.learning.exponentiated_gradient import ExponentiatedGradient
from headway.learning.generalized_expectation import GeneralizedExpectation
from headway.learning.latent_perceptron import LatentPerceptron
from headway.learning.log_linear import LogLinear
from headway.learning.perceptron import Perceptron
from headway.learning.problem import ARGMAX, COVARIANCE, MARGINALS, Quantity
from headway.learning.structures import Trees
from headway.models.arc_scorer import ArcScorer
from headway.training.arc_problem import ArcProblem
from headway.training.arc_trainer import random_heads
from headway.training.learners import latent_learner_of, learner_of, require_fit, rules_learner_of
from headway.training.settings import ENTROPY_ORDER, ENTROPY_WEIGHT, Settings
from headway.treebank import Sentence

from ..models.toy_treebank import sentences
from .toy_trainings import RULES


def text_problem(text: list[Sentence]) -> ArcProblem:
    coder = Coder.learn(text)
    coded = coder.code(text)
    features = ArcFeatures.learn(load_templates("rules"), coder, coded, random_heads(coded))
    return ArcProblem(ArcScorer(features), Trees(TreeClass()), coded)


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("single_root", [False, True])
def test_the_learner_of_the_settings(projective: bool, single_root: bool) -> None:
    flags: dict[str, Any] = {"projective": projective, "single_root": single_root}
    margin = learner_of(Settings(learner="margin", c=7.0, epochs=3, seed=5, **flags))
    assert isinstance(margin, Perceptron)
    assert (margin.margin, margin.epochs, margin.seed) == (7.0, 3, 5)
    plain = learner_of(Settings(learner="perceptron", **flags).complete())
    assert isinstance(plain, Perceptron)
    assert plain.margin == 0.0
    loglinear = learner_of(Settings(learner="loglinear", c=7.0, epochs=3, optimiser="adam", **flags))
    assert isinstance(loglinear, LogLinear)
    assert (loglinear.c, loglinear.descent) == (7.0, Descent(3, "adam"))
    for name, loss in (("eg", "hinge"), ("eg-loglinear", "log")):
        learner = learner_of(Settings(learner=name, c=7.0, epochs=3, **flags))  # type: ignore[arg-type]
        assert isinstance(learner, ExponentiatedGradient)
        assert (learner.c, learner.passes, learner.loss) == (7.0, 3, loss)
    least = learner_of(Settings(learner="expected-loss", c=7.0, epochs=3, optimiser="cg", **flags))
    assert isinstance(least, ExpectedLoss)
    assert (least.c, least.descent) == (7.0, Descent(3, "cg"))
    latent = latent_learner_of(Settings(learner="margin", c=7.0, epochs=3, seed=5, **flags))
    assert latent == LatentPerceptron(3, 7.0, 5)


def test_the_learner_where_there_is_text() -> None:
    problem = text_problem(sentences(4, 31))
    settings = Settings(learner="loglinear", c=7.0, epochs=3, entropy_weight=0.3, entropy_order=2.0, seed=5)
    learner = learner_of(settings, problem)
    assert isinstance(learner, EntropyRegularised)
    assert learner.text is problem
    assert (learner.c, learner.weight, learner.alpha) == (7.0, 0.3, 2.0)
    assert learner.descent == Descent(3, seed=5)
    default = learner_of(Settings(learner="loglinear").complete(), problem)
    assert isinstance(default, EntropyRegularised)
    assert (default.weight, default.alpha) == (ENTROPY_WEIGHT, ENTROPY_ORDER)
    none = learner_of(Settings(learner="loglinear", entropy_weight=0.0).complete(), problem)
    assert isinstance(none, EntropyRegularised)
    assert none.weight == 0.0


def test_the_learner_where_there_are_rules() -> None:
    text = sentences(4, 32)
    problem, coder = text_problem(text), Coder.learn(text)
    constraints = RuleFeatures.of(RULES, coder, coder.code(text))
    settings = Settings(learner="constraints", c=7.0, epochs=3, criterion="kl", optimiser="cg")
    learner = rules_learner_of(settings, constraints)
    assert isinstance(learner, GeneralizedExpectation)
    assert learner.constraints is constraints
    assert (learner.criterion, learner.c, learner.descent) == ("kl", 7.0, Descent(3, "cg"))
    for optimiser in ("adagrad", "adam"):
        online = rules_learner_of(Settings(learner="constraints", optimiser=optimiser), constraints)  # type: ignore[arg-type]
        with pytest.raises(TrainingError, match=f"{optimiser} takes some sentences at a time, .*; use lbfgs or cg"):
            online.fit(problem, lambda done: True)


@pytest.mark.parametrize("learner", ["loglinear", "eg", "eg-loglinear", "expected-loss", "constraints"])
def test_learners_are_refused_by_what_they_need(learner: Any) -> None:
    """A model of parts offers the best choice alone; an arc model everything."""
    settings = Settings(model="sibling", learner=learner).complete()
    with pytest.raises(TrainingError) as caught:
        require_fit(settings, ARGMAX)
    said = str(caught.value)
    assert said.startswith("the sibling model has no ")
    assert f"marginals for {learner}; train it with perceptron or margin" in said
    require_fit(settings, COVARIANCE)
    assert (learner in ("expected-loss", "constraints")) == raises(settings, MARGINALS)


@pytest.mark.parametrize("learner", ["perceptron", "margin"])
def test_perceptrons_fit_every_model(learner: Any) -> None:
    require_fit(Settings(learner=learner).complete(), ARGMAX)


def raises(settings: Settings, offers: frozenset[Quantity]) -> bool:
    try:
        require_fit(settings, offers)
    except TrainingError:
        return True
    return False
