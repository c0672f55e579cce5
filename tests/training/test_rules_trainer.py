"""Training from rules about trees, without any tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headway.errors import TrainingError
from headway.features.rule_features import RuleFeatures
from headway.learning.generalized_expectation import GeneralizedExpectation
from headway.learning.structures import Trees
from headway.models.arc_model import ArcModel
from headway.parallel import SERIAL
from headway.training.arc_problem import ArcProblem
from headway.training.data import TrainingData
from headway.training.development import arc_development
from headway.training.learners import rules_learner_of
from headway.training.rules_trainer import train_from_rules
from headway.training.settings import Settings
from headway.training.stages import Run
from headway.treebank import Sentence

from ..models.model_parts import weights_of
from ..models.toy_treebank import sentences
from .toy_trainings import RULES

RULED = Settings(learner="constraints", labels="none", templates="rules").complete()


def ruled(model: ArcModel, text: Sequence[Sentence], settings: Settings) -> tuple[GeneralizedExpectation, ArcProblem]:
    """The learner that the model was trained by, and what it learnt from."""
    coded = model.coder.code(text)
    learner = rules_learner_of(settings, RuleFeatures.of(RULES, model.coder, coded))
    return learner, ArcProblem(model.scorer.scorer, Trees(settings.trees), coded)


@pytest.mark.parametrize("criterion", ["squared", "kl"])
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("single_root", [False, True])
def test_rules_teach_the_toy_language(criterion: str, projective: bool, single_root: bool) -> None:
    """Shares come into their ranges, and new sentences get right heads, no tree seen."""
    flags: dict[str, Any] = {"projective": projective, "single_root": single_root, "criterion": criterion}
    text, new = sentences(40, 44), sentences(20, 45)
    settings = Settings(
        learner="constraints", labels="none", templates="rules", epochs=60, c=1000.0, **flags
    ).complete()
    bare = [Sentence.from_words(s.forms, upos=s.upos) for s in text]
    model = train_from_rules(TrainingData(bare), RULES, settings, Run())
    learner, problem = ruled(model, bare, settings)
    best = weights_of(model)
    before, after = (learner.expectations(problem, weights) for weights in (np.zeros(problem.size), best))
    low, high = learner.constraints.low, learner.constraints.high
    assert (before < low - 0.1).any()
    assert (after > low - 0.03).all()
    assert (after < high + 0.03).all()
    held_out = arc_development(new, problem.scorer, model.coder, (), settings.trees, SERIAL)
    assert held_out.uas(np.zeros(problem.size)) < 60.0
    assert held_out.uas(best) > 90.0
    assert model.labeller is None
    assert model.about["rules"] == RULES.to_toml()
    assert 1 <= model.about["best_pass"] <= len(model.about["history"]) <= 60


def test_text_that_no_rule_speaks_of() -> None:
    with pytest.raises(TrainingError, match=r"rules: no rule matches anything in the text; are its words tagged\?"):
        train_from_rules(TrainingData([Sentence.from_words(["a", "b", "c"])] * 3), RULES, RULED, Run())


def test_rules_and_features_are_of_the_same_sentences() -> None:
    text = sentences(9, 46, crossing=True)
    model = train_from_rules(TrainingData(text), RULES, replace(RULED, epochs=1), Run())
    learner, problem = ruled(model, text, RULED)
    found = learner.constraints
    assert problem.lengths.tolist() == found.coded.lengths.tolist() == [len(s) for s in text]
    determiners = sum(s.upos.count("D") + s.upos.count("J") for s in text)  # each has a noun close to its right
    assert found.units[0] == determiners
    assert found.units[3] == 9
