"""What a network is fitted to, batch by batch: trees with labels and tags, the answers of a teacher, or the certainty
of plain text.

An objective has sentences of its own and a loss of some of them. A training may have several, which take turns in every
step. Rules about a text are in `headway.neural.rules_objective`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.arrays import Ints, TreeClass
from headway.neural.batching import Annotated, Batch
from headway.neural.losses import Loss, entropy, expected_loss, partial_log_likelihood, taught
from headway.neural.network import Network, Outputs
from headway.neural.settings import NetworkSettings
from headway.neural.tagging import choice_loss
from headway.neural.teaching import Answers

_LIKELY = 0.25


class Objective(Protocol):
    """A loss of sentences."""

    @property
    def data(self) -> Annotated: ...

    @property
    def memory(self) -> Mapping[str, NDArray[Any]]:
        """What changes from batch to batch: arrays that checkpoints have too, and that are written in place."""
        ...

    def loss(self, network: Network, batch: Batch, which: Ints, done: float) -> Tensor:
        """The sum over a batch of the sentences `which`; `done` is the share of all steps that has been made."""
        ...


@dataclass(frozen=True)
class TreeObjective:
    """The trees' loss, and the cross-entropy of labels and tags.

    The first `_LIKELY` of all steps are by likelihood where the loss, as the expected one, has many local optima.
    """

    data: Annotated
    trees: TreeClass
    tree_loss: Loss
    settings: NetworkSettings

    memory: ClassVar[Mapping[str, NDArray[Any]]] = {}

    def loss(self, network: Network, batch: Batch, which: Ints, done: float) -> Tensor:
        found: Outputs = network(batch.inputs)
        early = self.tree_loss is expected_loss and done < _LIKELY
        tree_loss = partial_log_likelihood if early else self.tree_loss
        total = tree_loss(found.arcs, batch.heads, batch.lengths, self.trees).sum()
        smoothing = self.settings.smoothing
        if "labels" in batch.targets:
            scores = network.label_scores(batch.heads, found.label_heads, found.label_modifiers)
            total = total + self.settings.label_weight * choice_loss(scores, batch.targets["labels"], smoothing)
        tags = network.tags.loss(found.tags, found.small_tags, batch.targets, smoothing)
        return total + self.settings.tag_weight * tags


@dataclass(frozen=True)
class EntropyObjective:
    """The entropy of an order of sentences without trees, times a weight: to be certain of them (druck2009)."""

    data: Annotated
    trees: TreeClass
    weight: float
    order: float

    memory: ClassVar[Mapping[str, NDArray[Any]]] = {}

    def loss(self, network: Network, batch: Batch, which: Ints, done: float) -> Tensor:
        found: Outputs = network(batch.inputs)
        return self.weight * entropy(found.arcs, batch.lengths, self.trees, self.order).sum()


@dataclass(frozen=True)
class TeacherObjective:
    """The cross-entropies of a teacher's trees, labels and best tags; the heads and targets of the data are its own."""

    data: Annotated
    trees: TreeClass
    answers: Answers
    settings: NetworkSettings

    memory: ClassVar[Mapping[str, NDArray[Any]]] = {}

    def loss(self, network: Network, batch: Batch, which: Ints, done: float) -> Tensor:
        found: Outputs = network(batch.inputs)
        marginals = torch.from_numpy(self.answers.marginals_of(which)).to(found.arcs)
        total = taught(found.arcs, marginals, batch.lengths, self.trees).sum()
        if network.labels.shape[0]:
            scores = network.label_scores(batch.heads, found.label_heads, found.label_modifiers)
            labels = torch.from_numpy(self.answers.labels_of(which)).to(scores)
            total = total - self.settings.label_weight * (labels * scores.log_softmax(dim=2)).sum()
        return total + self.settings.tag_weight * network.tags.loss(found.tags, found.small_tags, batch.targets, 0.0)
