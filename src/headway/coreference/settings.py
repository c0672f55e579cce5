"""What a resolver is trained with: pure data, checked without loading anything numerical."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headway.declared import require_choices, require_minimums, setting

Tree = Literal["latent", "closest"]


@dataclass(frozen=True)
class ResolverSettings:
    """What a resolver is trained with.

    `margin` is C of the large-margin version, 0 without; `root_weight` what an arc from the root costs then, compared
    with 1 for the others. At a `temperature` of 0 the latent perceptron learns, above 0 a log-linear model, by averaged
    stochastic gradient in steps of 1 / temperature (`headway.coreference.latent_trees`). The weights are updated after
    every `stretch` mentions; 0 is after every document, as in the paper. An antecedent that nothing else speaks for
    must be within so many `mentions`, that of a pronoun within so many `sentences`. `types` uses the entity types of
    the marks, where they will be known; `clusters` features of the cluster that an antecedent stands for, and the tree
    is then found from left to right (`headway.coreference.left_to_right`). With `learn_mentions`, the model also learns
    to find mentions in trees (`headway.coreference.mention_finder`). The `tree` behind a gold cluster is latent, or
    every mention's closest antecedent.
    """

    epochs: int = setting(10, "Passes over the data, at most.", metavar="N", minimum=1)
    margin: float = setting(10.0, "The margin; 0 for none.", metavar="C", minimum=0)
    root_weight: float = setting(1.0, "What starting a cluster costs within the margin.", metavar="W", minimum=0)
    temperature: float = setting(
        30.0, "0: the latent perceptron; above 0: a log-linear model, in steps of 1/T.", metavar="T", minimum=0
    )
    stretch: int = setting(
        10, "Update after N mentions; 0: after each document, as in the paper.", metavar="N", minimum=0
    )
    mentions: int = setting(20, "Consider as antecedents the N mentions before.", metavar="N", minimum=1)
    sentences: int = setting(5, "Consider for pronouns the mentions of N sentences before.", metavar="N", minimum=0)
    types: bool = setting(False, "Use the entity types of the marks; new documents must have them, too.")
    clusters: bool = setting(False, "Use features of clusters; trees are then found greedily, from left to right.")
    learn_mentions: bool = setting(False, "Learn to find mentions in trees, too; without this, rules find them.")
    tree: Tree = setting("latent", "The tree behind a cluster: latent, or every mention's closest antecedent.")
    patience: int = setting(
        4, "Passes without a better development score before training stops.", metavar="N", minimum=1
    )
    seed: int = setting(0, "Seed of everything random.", metavar="S", minimum=0)

    def complete(self) -> ResolverSettings:
        """The same settings; an error names one that cannot be."""
        require_choices(self)
        require_minimums(self)
        return self
