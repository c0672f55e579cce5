"""A bidirectional LSTM over words, characters and tags, trained from scratch (Dozat and Manning 2017).

A word is the sum or the concatenation of what is known of it: its own vector, one made of its characters by a
convolution, those of its tags. Dropout is variational (Gal and Ghahramani 2016): one mask for all words of a sentence.

Each direction is a plain LSTM from left to right, the second over the words in reverse order, so that padding comes
last for both; O(n d²) for n words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from headway.neural.lexicon import UNKNOWN

_CHARACTER_SIZE, _WINDOW = 64, 3


class SharedDropout(nn.Module):
    """Dropout with one mask for all words of a sentence: x (B, N, D)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        mask = torch.empty_like(x[:, :1]).bernoulli_(1 - self.rate)
        return x * (mask / (1 - self.rate))


class LstmEncoder(nn.Module):
    """`sizes` has how many numbers each column of the reader has."""

    mixed = False  # on a GPU torch's LSTM would take float16, in which small gradients vanish

    def __init__(
        self,
        sizes: Mapping[str, int],
        *,
        embedding: int = 128,
        hidden: int = 400,
        layers: int = 3,
        dropout: float = 0.33,
    ) -> None:
        super().__init__()
        self.columns = tuple(sizes)
        self.embeddings = nn.ModuleDict()
        self.dropout = dropout
        width = 0
        for name, size in sizes.items():
            if name == "characters":
                self.embeddings[name] = nn.Embedding(size, _CHARACTER_SIZE, padding_idx=0)
                self.convolution = nn.Conv1d(_CHARACTER_SIZE, embedding, _WINDOW, padding=_WINDOW // 2)
            else:
                self.embeddings[name] = nn.Embedding(size, embedding, padding_idx=0)
            width += embedding
        for table in self.embeddings.values():
            assert isinstance(table, nn.Embedding)
            nn.init.normal_(table.weight, std=table.weight.shape[1] ** -0.5)
            nn.init.zeros_(table.weight[0])
        widths = [width, *[2 * hidden] * (layers - 1)]
        self.forwards = nn.ModuleList([_lstm(each, hidden) for each in widths])
        self.backwards = nn.ModuleList([_lstm(each, hidden) for each in widths])
        self.between = SharedDropout(dropout)
        self.size = 2 * hidden

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """(B, N+1, size); row 0 means nothing."""
        lengths = (inputs["words"] > 0).sum(dim=1)
        x = self.between(torch.cat([self._column(name, inputs[name][:, 1:]) for name in self.columns], dim=-1))
        turned = _turned(lengths, x.shape[1])
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            there = forwards(x)[0]
            back = backwards(_turn(x, turned))[0]
            x = self.between(torch.cat([there, _turn(back, turned)], dim=-1))
        return nn.functional.pad(x, (0, 0, 1, 0))

    def _column(self, name: str, numbers: Tensor) -> Tensor:
        """The vectors of one column; whole columns of some words are dropped in training."""
        if self.training and self.dropout and name in ("words", "lemmas"):
            numbers = numbers.where(torch.rand(numbers.shape, device=numbers.device) > self.dropout / 2, UNKNOWN)
        found: Tensor = self.embeddings[name](numbers)
        if name == "feats":
            found = found.sum(dim=2)
        if name == "characters":
            batch, words, letters, size = found.shape
            made = self.convolution(found.reshape(batch * words, letters, size).transpose(1, 2))
            found = made.amax(dim=2).reshape(batch, words, -1)
        if self.training and self.dropout:
            keep = torch.empty_like(found[..., :1]).bernoulli_(1 - self.dropout / 2)
            found = found * (keep / (1 - self.dropout / 2))
        return found


def _lstm(width: int, hidden: int) -> nn.LSTM:
    """Orthogonal recurrent weights; gates that forget little at first."""
    made = nn.LSTM(width, hidden, batch_first=True)
    for name, weight in made.named_parameters():
        if weight.dim() == 2:
            for part in weight.data.chunk(4):
                nn.init.orthogonal_(part)
        else:
            nn.init.zeros_(weight)
            if "bias_ih" in name:
                nn.init.ones_(weight.data[hidden : 2 * hidden])
    return made


class _Turned(Function):
    """Rows in the order of `turned`, which is its own inverse. Torch's derivative of `gather` adds, which takes longer
    if it is to give the same sum every time."""

    @staticmethod
    def forward(context: Any, x: Tensor, turned: Tensor) -> Tensor:
        context.save_for_backward(turned)
        return x.gather(1, turned.expand(-1, -1, x.shape[2]))

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (turned,) = context.saved_tensors
        return gradient.gather(1, turned.expand(-1, -1, gradient.shape[2])), None


def _turn(x: Tensor, turned: Tensor) -> Tensor:
    result: Tensor = _Turned.apply(x, turned)  # type: ignore[no-untyped-call]
    return result


def _turned(lengths: Tensor, words: int) -> Tensor:
    """The places of the words of each sentence in reverse order (B, N, 1); padding stays where it is."""
    place = torch.arange(words, device=lengths.device)
    turned = lengths[:, None] - 1 - place
    return turned.where(turned >= 0, place)[..., None]
