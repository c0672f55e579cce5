"""The network: an encoder, deep biaffine scores of arcs and labels, and a choice of tags for every word.

Scores of arcs and labels are those of Dozat and Manning (2017). With r_m and r_h a word as modifier and as head,

    arc(h, m)       =  r_m' U r_h / sqrt(d) + u'r_h
    label(h, m, l)  =  (q_m, 1)' V_l (q_h, 1) / sqrt(d' + 1)

for r of d numbers and q of d'; the last row and column of V_l are about one of the two words. Arc scores are
log-potentials of a distribution over trees (`headway.torch.TreeDistribution`); what depends on m alone is left out,
since it changes no tree's probability. The root is a vector of its own, at 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from headway.neural.encoders.lstm import SharedDropout
from headway.neural.tagging import Tagger


class Outputs(NamedTuple):
    """Of a batch: arc scores (B, N+1, N+1) [head, modifier], words as heads and as modifiers for labels, and the scores
    of tags, by task, and those of the small tasks in one array."""

    arcs: Tensor
    label_heads: Tensor
    label_modifiers: Tensor
    tags: dict[str, Tensor]
    small_tags: Tensor


class Network(nn.Module):
    """`sizes` has the number of values of each task (`headway.neural.targets`)."""

    def __init__(
        self,
        encoder: nn.Module,
        sizes: Mapping[str, int],
        *,
        arc_size: int = 400,
        label_size: int = 128,
        dropout: float = 0.33,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        width = int(encoder.size)  # type: ignore[arg-type]
        self.root = nn.Parameter(torch.zeros(width))
        self.arc_heads, self.arc_modifiers = (_Projection(width, arc_size, dropout) for _ in range(2))
        self.arcs = nn.Parameter(torch.empty(arc_size, arc_size))
        self.arc_bias = nn.Parameter(torch.zeros(arc_size))
        nn.init.xavier_uniform_(self.arcs)
        labels = sizes.get("labels", 0)
        self.label_heads, self.label_modifiers = (_Projection(width, label_size, dropout) for _ in range(2))
        self.labels = nn.Parameter(torch.zeros(labels, label_size + 1, label_size + 1))
        self.tag_dropout = SharedDropout(dropout)
        self.tags = Tagger(width, {name: size for name, size in sizes.items() if name != "labels"})

    def forward(self, inputs: Mapping[str, Tensor]) -> Outputs:
        with torch.autocast("cuda", torch.bfloat16, enabled=self.root.is_cuda and bool(self.encoder.mixed)):
            words = self.encoder(inputs)
        words = words.float()
        words = torch.cat([self.root.expand(len(words), 1, -1), words[:, 1:]], dim=1)
        heads, modifiers = self.arc_heads(words), self.arc_modifiers(words)
        scaled = modifiers @ (self.arcs / self.arcs.shape[0] ** 0.5) + self.arc_bias
        arcs = heads @ scaled.transpose(1, 2)
        return Outputs(arcs, self.label_heads(words), self.label_modifiers(words), *self.tags(self.tag_dropout(words)))

    def label_scores(self, heads: Tensor, label_heads: Tensor, label_modifiers: Tensor) -> Tensor:
        """(B, N+1, L) for each word's arc from its head (B, N+1); heads below 0 count as 0."""
        place = torch.arange(label_heads.shape[1], device=heads.device)
        # A product rather than a choice, whose derivative would take longer to be the same every time.
        chosen = (heads.clamp(min=0)[..., None] == place).to(label_heads.dtype) @ label_heads
        scale = self.labels.shape[1] ** -0.5
        by_label = torch.einsum("bmi,lij->bmlj", _with_one(label_modifiers), self.labels * scale)
        return torch.einsum("bmlj,bmj->bml", by_label, _with_one(chosen))


class _Projection(nn.Module):
    """A word in one of its roles."""

    def __init__(self, width: int, size: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(width, size)
        self.dropout = SharedDropout(dropout)

    def forward(self, words: Tensor) -> Tensor:
        result: Tensor = self.dropout(nn.functional.leaky_relu(self.linear(words), 0.1))
        return result


def _with_one(x: Tensor) -> Tensor:
    return nn.functional.pad(x, (0, 1), value=1.0)
