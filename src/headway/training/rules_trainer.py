"""Training an arc-factored parser from rules about the trees of a text, without any tree (druck2009 section 1.1)."""

from __future__ import annotations

from headway.errors import TrainingError
from headway.features.arc_features import ArcFeatures
from headway.features.coding import Coded, Coder
from headway.features.rule_features import RuleFeatures
from headway.features.rules import Rules
from headway.features.templates import load_templates
from headway.learning.structures import Trees
from headway.models.arc_model import ArcModel
from headway.models.arc_scorer import ArcScorer
from headway.models.scorer import Trained
from headway.models.tree_decoder import TreeDecoder
from headway.training.arc_problem import ArcProblem
from headway.training.arc_trainer import random_heads
from headway.training.data import TrainingData
from headway.training.development import arc_development
from headway.training.learners import rules_learner_of
from headway.training.preparation import about, bound
from headway.training.settings import Settings
from headway.training.stages import Run


def train_from_rules(data: TrainingData, rules: Rules, settings: Settings, run: Run) -> ArcModel:
    """Number the words, size the features from random arcs, match the rules, and learn."""
    coder = Coder.learn(data.train, data.clusters)
    coded = coder.code(data.train)
    constraints = matched(rules, coder, coded)
    scorer = ArcScorer(ArcFeatures.learn(load_templates(settings.templates), coder, coded, random_heads(coded)))
    problem = ArcProblem(scorer, Trees(settings.trees, run.executor), coded)
    dev = None if data.dev is None else arc_development(data.dev, scorer, coder, (), settings.trees, run.executor)
    learner = bound(rules_learner_of(settings, constraints), problem, settings.shards, run.workers)
    fitted = run.fit("parser-1", learner, problem.size, settings, shown="tree", dev=None if dev is None else dev.uas)
    assert fitted.best is not None
    said = about(settings, fitted, data, scale=1.0, collisions=scorer.collisions)
    decoder = TreeDecoder(settings.trees)
    return ArcModel(coder, Trained(scorer, fitted.best), decoder, None, {**said, "rules": rules.to_toml()})


def matched(rules: Rules, coder: Coder, coded: Coded) -> RuleFeatures:
    """The rules over coded sentences; an error where they say nothing about them."""
    found = RuleFeatures.of(rules, coder, coded)
    if not found.units.any():
        raise TrainingError(f"{rules.source}: no rule matches anything in the text; are its words tagged?")
    return found
