"""How good a network is in training: its trees and tags beside those of a treebank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.arrays import Floats, Ints, TreeClass
from headway.models.root_labels import mask_labels
from headway.neural.batching import Annotated, batch_of
from headway.neural.network import Network, Outputs
from headway.neural.reading import groups_by_size
from headway.neural.targets import UNTAUGHT, Tasks
from headway.text.columns import completed
from headway.torch import TreeDistribution
from headway.treebank import Sentence


@dataclass(frozen=True)
class Scores:
    """Percentages of a treebank: right heads, right heads with right labels (`counted` words only), and right tags.

    `las` is None where there are no labels to find.
    """

    uas: float
    las: float | None
    tags: dict[str, float]


@torch.no_grad()
def scores_of(
    network: Network, data: Annotated, counted: NDArray[np.bool_], trees: TreeClass, device: torch.device, most: int
) -> Scores:
    """Parse and compare."""
    network.eval()
    right = torch.zeros(2, dtype=torch.int64, device=device)
    tags: dict[str, Tensor] = {}
    for which in groups_by_size(data.reading.sizes, most):
        batch = batch_of(data, which, device)
        found: Outputs = network(batch.inputs)
        heads = TreeDistribution(found.arcs, batch.lengths, **trees._asdict(), validate_args=False).argmax()
        words = torch.from_numpy(counted[which, : heads.shape[1]]).to(device)
        good = (heads == batch.heads) & words
        right[0] += good.sum()
        if "labels" in batch.targets:
            labels = network.label_scores(heads, found.label_heads, found.label_modifiers).argmax(dim=2)
            right[1] += (good & (labels == batch.targets["labels"])).sum()
        for name, scores in found.tags.items():
            target = batch.targets[name]
            same = ((scores.argmax(dim=2) == target) & (target != UNTAUGHT)).sum()
            tags[name] = tags.get(name, 0) + same
    total = max(1, int(counted.sum()))
    uas, las = (100 * right / total).tolist()
    labelled = "labels" in data.targets and bool((data.targets["labels"] != UNTAUGHT).any())
    return Scores(
        uas, las if labelled else None, {name: 100 * int(same) / max(1, data.words) for name, same in tags.items()}
    )


@dataclass(frozen=True)
class Found:
    """What a network finds for sentences: heads and the probabilities of their arcs (S, N+1), the scores of the arcs'
    labels (S, N+1, L), and the number of every word's value for each other task (S, N+1)."""

    heads: Ints
    probabilities: Floats
    labels: Floats
    values: Mapping[str, Ints]

    def sentences(self, given: Sequence[Sentence], tasks: Tasks, roots: Sequence[str]) -> list[Sentence]:
        """The sentences with these trees and columns; `roots` are the labels of the root's children alone."""
        names = np.array(tasks.labels or ("_",), object)
        labels = names[mask_labels(self.labels, self.heads, names.tolist(), roots).argmax(axis=-1)]
        made = []
        for row, sentence in enumerate(given):
            words = slice(1, len(sentence) + 1)
            columns = tasks.columns(sentence.forms, {name: own[row, words] for name, own in self.values.items()})
            tree = sentence.with_tree(self.heads[row, : words.stop], [None, *labels[row, words]])
            made.append(completed(tree, columns, replace_all=True))
        return made


@torch.no_grad()
def find(
    network: Network, data: Annotated, trees: TreeClass, device: torch.device, most: int, temperature: float = 1.0
) -> Found:
    """The best trees, and what goes with them; arc scores are divided by the temperature."""
    network.eval()
    shape = data.heads.shape
    heads, probabilities = np.full(shape, -1, np.int64), np.zeros(shape)
    labels = np.zeros((*shape, max(1, network.labels.shape[0])))
    values = {name: np.zeros(shape, np.int64) for name in data.targets if name != "labels"}
    for which in groups_by_size(data.reading.sizes, most):
        batch = batch_of(data, which, device)
        found: Outputs = network(batch.inputs)
        trees_of = TreeDistribution(found.arcs / temperature, batch.lengths, **trees._asdict(), validate_args=False)
        best = trees_of.argmax()
        nodes = best.shape[1]
        heads[which, :nodes] = best.cpu().numpy()
        arcs = trees_of.marginals.gather(1, best.clamp(min=0)[:, None, :])[:, 0]
        probabilities[which, :nodes] = arcs.clamp(0, 1).cpu().numpy()
        if network.labels.shape[0]:
            scores = network.label_scores(best, found.label_heads, found.label_modifiers)
            labels[which, :nodes] = scores.cpu().numpy()
        for name, own in found.tags.items():
            values[name][which, :nodes] = own.argmax(dim=2).cpu().numpy()
    return Found(heads, probabilities, labels, values)
