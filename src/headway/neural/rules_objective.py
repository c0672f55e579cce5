"""Generalized expectation of a network: targets for what its trees of a text look like (druck2009 section 1.1).

The objective is that of `headway.learning.generalized_expectation`, the distance of each rule's share from its target,

    L = sum_k weight_k G(target_k, E_k),   E_k = sum_s T_sk / units_k,

where T_sk is the expected number of arcs of sentence s that match rule k. A share is of all sentences, and a batch has
some. So the last T_sk of every sentence is kept, as in Schmidt, Le Roux and Bach's stochastic average gradient (2017).
A batch brings its own rows up to date, takes the slopes c_k = dL/dT_sk at the shares of all rows, and descends along

    sum over sentences s of the batch, and rules k, of  c_k T_sk,

whose gradient is the batch's part of the gradient of L but for the age of the other rows, one pass at most. If the
batch is the whole text, it is the gradient of L.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from headway.arrays import Floats, Ints, TreeClass
from headway.features.rule_features import RuleFeatures
from headway.learning.choices import Criterion
from headway.learning.generalized_expectation import GeneralizedExpectation
from headway.neural.batching import Annotated, Batch, as_many_as_fit, batch_of
from headway.neural.network import Network, Outputs
from headway.neural.reading import groups_by_size
from headway.neural.settings import NetworkSettings
from headway.torch import TreeDistribution


@dataclass(frozen=True)
class RulesObjective:
    """The distance from rules times the words of the text, so that the mean per word is L; and the loss of tags.

    `memory["matches"]` has T, (S, K).
    """

    data: Annotated
    trees: TreeClass
    rules: RuleFeatures
    criterion: Criterion
    settings: NetworkSettings
    memory: dict[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.memory["matches"] = np.zeros((len(self.data.reading.lengths), len(self.rules)))

    @torch.no_grad()
    def look(self, network: Network, device: torch.device) -> None:
        """Fill the memory before the first step."""
        network.eval()

        def look(most: int) -> None:
            for which in groups_by_size(self.data.reading.sizes, most):
                batch = batch_of(self.data, which, device)
                self._remember(which, self._marginals(network(batch.inputs), batch))

        as_many_as_fit(look, self.settings.batch)

    def loss(self, network: Network, batch: Batch, which: Ints, done: float) -> Tensor:
        found: Outputs = network(batch.inputs)
        marginals = self._marginals(found, batch)
        self._remember(which, marginals)
        distance, slopes = GeneralizedExpectation(self.rules, self.criterion, c=1.0).distance(self.shares)
        matched = torch.from_numpy(self.rules.combined(which, slopes)).to(marginals)
        along = self.data.words * (matched * marginals).sum()
        value = distance * int(self.data.reading.lengths[which].sum())
        tags = network.tags.loss(found.tags, found.small_tags, batch.targets, self.settings.smoothing)
        return along - along.detach() + value + self.settings.tag_weight * tags

    @property
    def shares(self) -> Floats:
        """(K,), each rule's share as it was last seen."""
        totals: Floats = self.memory["matches"].sum(axis=0)
        return totals / np.maximum(self.rules.units, 1)

    def _marginals(self, found: Outputs, batch: Batch) -> Tensor:
        return TreeDistribution(found.arcs, batch.lengths, **self.trees._asdict(), validate_args=False).marginals

    def _remember(self, which: Ints, marginals: Tensor) -> None:
        self.memory["matches"][which] = self.rules.totals_of_each(which, marginals.detach().cpu().numpy())
