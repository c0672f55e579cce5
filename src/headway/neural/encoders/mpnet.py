"""MPNet (Song et al. 2020): BERT's layers, whose attention also depends on how far apart two subwords are.

All layers share one table of such distances, which are exact up to 8 and then grouped by their logarithm.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from headway.neural.encoders.bert import Added, layers_above, require_bert
from headway.neural.encoders.configuration import Fields

_FIRST = 2  # positions begin behind the padding's
_BUCKETS, _FARTHEST = 32, 128


class _Embeddings(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        size = config["hidden_size"]
        self.word_embeddings = nn.Embedding(config["vocab_size"], size)
        self.position_embeddings = nn.Embedding(config["max_position_embeddings"], size)
        self.LayerNorm = nn.LayerNorm(size, eps=config["layer_norm_eps"])
        self.dropout = nn.Dropout(config["hidden_dropout_prob"])
        self.first = _FIRST

    def forward(self, subwords: Tensor, added: Tensor) -> Tensor:
        places = torch.arange(self.first, self.first + subwords.shape[1], device=subwords.device)
        x = self.word_embeddings(subwords) + self.position_embeddings(places)
        result: Tensor = self.dropout(self.LayerNorm(x + added))
        return result


class _SelfAttention(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        size = config["hidden_size"]
        self.q, self.k, self.v, self.o = (nn.Linear(size, size) for _ in range(4))
        self.heads = config["num_attention_heads"]
        self.dropout = float(config["attention_probs_dropout_prob"])

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        q, k, v = (part(x).unflatten(2, (self.heads, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        rate = self.dropout if self.training else 0.0
        found = scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype), dropout_p=rate)
        result: Tensor = self.o(found.transpose(1, 2).flatten(2))
        return result


class _Attention(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.attn = _SelfAttention(config)
        self.LayerNorm = nn.LayerNorm(config["hidden_size"], eps=config["layer_norm_eps"])
        self.dropout = nn.Dropout(config["hidden_dropout_prob"])

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        result: Tensor = self.LayerNorm(self.dropout(self.attn(x, bias)) + x)
        return result


class _Layer(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.attention = _Attention(config)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(config["hidden_size"], config["intermediate_size"])})
        self.output = Added(config["intermediate_size"], config)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        x = self.attention(x, bias)
        result: Tensor = self.output(gelu(self.intermediate["dense"](x)), x)
        return result


class _Layers(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.layer = nn.ModuleList([_Layer(config) for _ in range(config["num_hidden_layers"])])
        buckets = config["relative_attention_num_buckets"]
        self.relative_attention_bias = nn.Embedding(buckets, config["num_attention_heads"])


class MpnetEncoder(nn.Module):
    """From subwords (W, T), with something added to their embeddings (W, T, width), to vectors (W, T, size)."""

    kinds: ClassVar[tuple[str, ...]] = ("mpnet",)
    prefixes: ClassVar[tuple[str, ...]] = ("mpnet.", "")

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.embeddings = _Embeddings(config)
        self.encoder = _Layers(config)
        self.size = self.width = int(config["hidden_size"])
        self.padding = self.padding_of(config)

    @staticmethod
    def require(config: Mapping[str, Any]) -> None:
        """Refuse a configuration that is none of an MPNet."""
        require_bert(config)
        fields = Fields(config)
        fields.sizes("relative_attention_num_buckets")
        fields.only("relative_attention_num_buckets", _BUCKETS)
        fields.only("pad_token_id", _FIRST - 1)

    @staticmethod
    def padding_of(config: Mapping[str, Any]) -> int:
        """The number of the subword that is not looked at."""
        return _FIRST - 1

    @staticmethod
    def longest(config: Mapping[str, Any]) -> int:
        """How many subwords it reads at once."""
        return int(config["max_position_embeddings"]) - _FIRST

    def forward(self, subwords: Tensor, added: Tensor) -> Tensor:
        length = subwords.shape[1]
        numbers = buckets(length).to(subwords.device)
        bias = self.encoder.relative_attention_bias(numbers).permute(2, 0, 1)[None]
        bias = bias.masked_fill((subwords == self.padding)[:, None, None, :], -torch.inf)
        x = self.embeddings(subwords, added)
        for layer in self.encoder.layer:
            x = layer(x, bias)
        result: Tensor = x
        return result

    def depth_of(self, name: str) -> int:
        """How many layers are above a parameter: 0 for the last layer's own."""
        return layers_above(name, "encoder.layer.", len(self.encoder.layer))


def buckets(length: int) -> Tensor:
    """The number of the group of every distance (T, T), from row to column."""
    place = torch.arange(length)
    ahead = place - place[:, None]
    half = _BUCKETS // 2
    exact = half // 2
    far = ahead.abs().clamp(min=1).float()  # not double: the weights were trained with what this rounds to
    grouped = exact + ((far / exact).log() / log(_FARTHEST / exact) * (half - exact)).long()
    size = torch.where(ahead.abs() < exact, ahead.abs(), grouped.clamp(max=half - 1))
    return size + half * (ahead > 0)
