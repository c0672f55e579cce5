"""How good a network is in training: its trees and tags beside those of a treebank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.arrays import TreeClass
from headway.neural.batching import Annotated, batch_of, batches
from headway.neural.network import Network, Outputs
from headway.neural.targets import UNTAUGHT
from headway.torch import TreeDistribution


@dataclass(frozen=True)
class Scores:
    """Percentages of a treebank: right heads, right heads with right labels (`counted` words only), and right tags."""

    uas: float
    las: float
    tags: dict[str, float]


@torch.no_grad()
def evaluate(
    network: Network, data: Annotated, counted: NDArray[np.bool_], trees: TreeClass, device: torch.device, most: int
) -> Scores:
    """Parse and compare."""
    network.eval()
    right = torch.zeros(2, dtype=torch.int64, device=device)
    tags: dict[str, Tensor] = {}
    for which in batches(data.reading.sizes, most, None):
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
    return Scores(uas, las, {name: 100 * int(same) / max(1, data.words) for name, same in tags.items()})
