"""Text and rules made ready: what a model is learnt from where there are no trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.errors import TrainingError
from headway.features.arc_features import ArcFeatures
from headway.features.clusters import Clusters
from headway.features.coding import Coder
from headway.features.rule_features import RuleFeatures
from headway.features.rules import Rules
from headway.features.templates import load_templates
from headway.learning.examples import Trees
from headway.models.arc_factored import ArcScorer, ArcText
from headway.training.material import random_heads
from headway.training.settings import Settings
from headway.treebank import Sentence


@dataclass(frozen=True)
class RuledText:
    """Coded sentences, the rules that hold of them, and the trees to choose among."""

    coder: Coder
    text: ArcText
    rules: RuleFeatures
    structures: Trees

    @classmethod
    def of(
        cls, sentences: Sequence[Sentence], rules: Rules, settings: Settings, threads: int, clusters: Clusters
    ) -> RuledText:
        """Number the words, size the features from random arcs, code the sentences, match the rules."""
        coder = Coder.learn(sentences, clusters)
        coded = coder.code(sentences)
        bound = RuleFeatures.of(rules, coder, coded)
        if not bound.units.any():
            raise TrainingError(f"{rules.source}: no rule matches anything in the text; are its words tagged?")
        features = ArcFeatures.learn(load_templates(settings.templates), coder, coded, random_heads(coded))
        text = ArcText(ArcScorer(features, threads=threads), coded)
        return cls(coder, text, bound, Trees(settings.projective, settings.single_root, threads))
