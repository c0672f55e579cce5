"""A choice among values for every word: UPOS, XPOS, each feature, and the edit that makes the lemma.

Each task has a linear layer. A treebank may have dozens of features of a few values each, so the small tasks are scored
together, as one array (B, N+1, K, V) for K tasks with V values at most: a few operations rather than K times as many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear, log_softmax, nll_loss

from headway.neural.targets import UNTAUGHT

_SMALL = 64  # values
_NO_VALUE = -1e4  # the score of a value that a task does not have


class Tagger(nn.ModuleDict):
    """A layer for each task; `sizes` has how many values they have."""

    rows: Tensor
    there: Tensor

    def __init__(self, width: int, sizes: Mapping[str, int]) -> None:
        super().__init__({_key(name): nn.Linear(width, size) for name, size in sizes.items()})
        self.sizes = dict(sizes)
        self.small = [name for name, size in sizes.items() if size <= _SMALL]
        self.register_buffer("rows", _rows([sizes[name] for name in self.small]), persistent=False)
        there = torch.tensor([sizes[name] for name in self.small])[:, None] > torch.arange(self.rows.shape[1])
        self.register_buffer("there", there, persistent=False)

    def layer(self, name: str) -> nn.Linear:
        """Of a task."""
        found = self[_key(name)]
        assert isinstance(found, nn.Linear)
        return found

    def forward(self, words: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """From words (B, N+1, width): the scores of each task by name, and those of the small tasks all together."""
        small = self._small(words)
        by_name = {
            name: small[:, :, self.small.index(name), :size] if name in self.small else self.layer(name)(words)
            for name, size in self.sizes.items()
        }
        return by_name, small

    def _small(self, words: Tensor) -> Tensor:
        if not self.small:
            return words.new_zeros(*words.shape[:2], 0, 0)
        layers = [self.layer(name) for name in self.small]
        weights = torch.cat([*(layer.weight for layer in layers), words.new_zeros(1, words.shape[2])])
        bias = torch.cat([*(layer.bias for layer in layers), words.new_full((1,), _NO_VALUE)])
        rows = self.rows.flatten()
        scores = linear(words, embedding(rows, weights), embedding(rows, bias[:, None])[:, 0])
        return scores.reshape(*words.shape[:2], *self.rows.shape)

    def loss(
        self, scores: Mapping[str, Tensor], small: Tensor, targets: Mapping[str, Tensor], smoothing: float
    ) -> Tensor:
        """The cross-entropy of all words and tasks."""
        total = small.new_zeros(())
        for name in self.sizes:
            if name not in self.small:
                total = total + choice_loss(scores[name], targets[name], smoothing)
        if self.small:
            chosen = torch.stack([targets[name] for name in self.small], dim=2)
            total = total + choice_loss(small, chosen, smoothing, self.there)
        return total


def choice_loss(scores: Tensor, targets: Tensor, smoothing: float, there: Tensor | None = None) -> Tensor:
    """The cross-entropy of targets (..) by scores (.., V), summed, with a share `smoothing` of each word's weight given
    to all values alike. `there` tells which values a task has (K, V), if not all."""
    logs = log_softmax(scores, dim=-1)
    total = nll_loss(logs.flatten(0, -2), targets.flatten(), ignore_index=UNTAUGHT, reduction="sum")
    if smoothing == 0:
        return total
    means = logs.mean(dim=-1) if there is None else (logs * there).sum(dim=-1) / there.sum(dim=-1)
    return (1 - smoothing) * total - smoothing * torch.where(targets != UNTAUGHT, means, 0.0).sum()


def _rows(sizes: Sequence[int]) -> Tensor:
    """Which rows of the tasks' weights, one below the other, are the values of each; for values that a task does not
    have, the row behind them all."""
    rows = torch.full((len(sizes), max(sizes, default=0)), sum(sizes))
    start = 0
    for row, size in zip(rows, sizes, strict=True):
        row[:size] = torch.arange(start, start + size)
        start += size
    return rows


def _key(name: str) -> str:
    """A task's name as a module may be called, without dots; no two names become one, as none has a line end."""
    return name.replace(".", "\n")
