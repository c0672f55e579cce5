"""Transformers of the BERT family: BERT, RoBERTa, ELECTRA and their like, by their configuration alone.

Post-normalised layers of self-attention and a two-layer network (Devlin et al. 2019). The weights have the names that
Hugging Face's files give them, so `load` needs no table but the prefix. RoBERTa numbers its positions from behind the
padding; ELECTRA may have embeddings smaller than its layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from headway.neural.encoders.configuration import Fields


class _Embeddings(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        size = config.get("embedding_size") or config["hidden_size"]
        self.word_embeddings = nn.Embedding(config["vocab_size"], size)
        self.position_embeddings = nn.Embedding(config["max_position_embeddings"], size)
        self.token_type_embeddings = nn.Embedding(config.get("type_vocab_size", 2), size)
        self.LayerNorm = nn.LayerNorm(size, eps=config["layer_norm_eps"])
        self.dropout = nn.Dropout(config["hidden_dropout_prob"])
        self.first = first_position(config)

    def forward(self, subwords: Tensor, added: Tensor) -> Tensor:
        places = torch.arange(self.first, self.first + subwords.shape[1], device=subwords.device)
        x = self.word_embeddings(subwords) + self.position_embeddings(places) + self.token_type_embeddings.weight[0]
        result: Tensor = self.dropout(self.LayerNorm(x + added))
        return result


class _SelfAttention(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        size = config["hidden_size"]
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))
        self.heads = config["num_attention_heads"]
        self.dropout = float(config["attention_probs_dropout_prob"])

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, size = x.shape
        q, k, v = (
            part(x).reshape(batch, length, self.heads, -1).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        rate = self.dropout if self.training else 0.0
        found = scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate)
        return found.transpose(1, 2).reshape(batch, length, size)


class Added(nn.Module):
    """A linear layer whose result is added to what came before, and normalised."""

    def __init__(self, width: int, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.dense = nn.Linear(width, config["hidden_size"])
        self.LayerNorm = nn.LayerNorm(config["hidden_size"], eps=config["layer_norm_eps"])
        self.dropout = nn.Dropout(config["hidden_dropout_prob"])

    def forward(self, x: Tensor, before: Tensor) -> Tensor:
        result: Tensor = self.LayerNorm(self.dropout(self.dense(x)) + before)
        return result


class _Layer(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        size, wide = config["hidden_size"], config["intermediate_size"]
        self.attention = nn.ModuleDict({"self": _SelfAttention(config), "output": Added(size, config)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(size, wide)})
        self.output = Added(wide, config)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention["output"](self.attention["self"](x, mask), x)
        result: Tensor = self.output(gelu(self.intermediate["dense"](x)), x)
        return result


class _Layers(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.layer = nn.ModuleList([_Layer(config) for _ in range(config["num_hidden_layers"])])


class BertEncoder(nn.Module):
    """From subwords (W, T), with something added to their embeddings (W, T, width), to vectors (W, T, size)."""

    kinds: ClassVar[tuple[str, ...]] = ("bert", "roberta", "xlm-roberta", "camembert", "electra")
    prefixes: ClassVar[tuple[str, ...]] = ("bert.", "roberta.", "electra.", "")

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.embeddings = _Embeddings(config)
        own = config.get("embedding_size") or config["hidden_size"]
        if own != config["hidden_size"]:
            self.embeddings_project = nn.Linear(own, config["hidden_size"])
        self.encoder = _Layers(config)
        self.size = int(config["hidden_size"])
        self.width = int(own)
        self.padding = self.padding_of(config)

    @staticmethod
    def require(config: Mapping[str, Any]) -> None:
        """Refuse a configuration that is none of this family."""
        require_bert(config)
        fields = Fields(config)
        if "type_vocab_size" in config:
            fields.sizes("type_vocab_size")
        if config.get("embedding_size") is not None:
            fields.sizes("embedding_size")

    @staticmethod
    def padding_of(config: Mapping[str, Any]) -> int:
        """The number of the subword that is not looked at."""
        return int(config.get("pad_token_id") or 0)

    @staticmethod
    def longest(config: Mapping[str, Any]) -> int:
        """How many subwords it reads at once."""
        return int(config["max_position_embeddings"]) - first_position(config)

    def forward(self, subwords: Tensor, added: Tensor) -> Tensor:
        mask = (subwords != self.padding)[:, None, None, :]
        x = self.embeddings(subwords, added)
        if hasattr(self, "embeddings_project"):
            x = self.embeddings_project(x)
        for layer in self.encoder.layer:
            x = layer(x, mask)
        result: Tensor = x
        return result

    def depth_of(self, name: str) -> int:
        """How many layers are above a parameter: 0 for the last layer's own."""
        return layers_above(name, "encoder.layer.", len(self.encoder.layer))


def layers_above(name: str, prefix: str, layers: int) -> int:
    """How many of so many layers are above a parameter; those of layers begin with a prefix and the layer's number.

    >>> [layers_above(name, "layers.", 6) for name in ("layers.5.norm.weight", "layers.0.norm.weight", "embeddings")]
    [0, 5, 6]
    """
    return layers - 1 - int(name.removeprefix(prefix).partition(".")[0]) if name.startswith(prefix) else layers


def require_bert(config: Mapping[str, Any]) -> None:
    """What all configurations of the family and its relatives have."""
    fields = Fields(config)
    fields.sizes("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    fields.sizes("max_position_embeddings")
    fields.heads()
    fields.padding()
    fields.shares("hidden_dropout_prob", "attention_probs_dropout_prob")
    fields.positive(config.get("layer_norm_eps"), "layer_norm_eps", 1.0)
    fields.only("hidden_act", "gelu")
    fields.only("position_embedding_type", "absolute")


def first_position(config: Mapping[str, Any]) -> int:
    """RoBERTa's positions begin behind its padding's number."""
    return (
        int(config.get("pad_token_id") or 0) + 1
        if "roberta" in config["model_type"] or config["model_type"] == "camembert"
        else 0
    )
