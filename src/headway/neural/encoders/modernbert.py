"""ModernBERT (Warner et al. 2024): rotary positions, layers normalised before they are computed, gated networks.

Most layers look at the neighbourhood of a subword only, `local_attention` / 2 to either side; every third or so looks
at all. The weights have the names that Hugging Face's files give them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from headway.errors import ArchiveError
from headway.neural.encoders.bert import layers_above
from headway.neural.encoders.configuration import Fields

_LONGEST = 1_024  # subwords read at once: longer sentences are read in windows, so that attention stays small
_GLOBAL, _LOCAL = "full_attention", "sliding_attention"
_THETAS = {_GLOBAL: ("global_rope_theta", 160_000.0), _LOCAL: ("local_rope_theta", 10_000.0)}


class Rotation(nn.Module):
    """Turns each pair of a head's dimensions by an angle that grows with the position (Su et al. 2021)."""

    cosines: Tensor
    sines: Tensor

    def __init__(self, size: int, theta: float) -> None:
        super().__init__()
        rates = theta ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
        angles = torch.arange(_LONGEST, dtype=torch.float64)[:, None] * rates
        self.register_buffer("cosines", angles.cos().float(), persistent=False)
        self.register_buffer("sines", angles.sin().float(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Of queries or keys (W, heads, T, size)."""
        length = x.shape[2]
        cosines, sines = self.cosines[:length], self.sines[:length]
        one, two = x.float().chunk(2, dim=-1)
        return torch.cat([one * cosines - two * sines, two * cosines + one * sines], dim=-1).to(x.dtype)


class _Attention(nn.Module):
    def __init__(self, config: Mapping[str, Any], kind: str) -> None:
        super().__init__()
        size, bias = config["hidden_size"], config.get("attention_bias", False)
        self.Wqkv = nn.Linear(size, 3 * size, bias=bias)
        self.Wo = nn.Linear(size, size, bias=bias)
        self.heads = config["num_attention_heads"]
        self.rotation = Rotation(size // self.heads, _theta(config, kind))
        self.around = config["local_attention"] // 2 if kind == _LOCAL else None
        self.dropout = float(config["attention_dropout"])

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.Wqkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if self.around is not None:
            place = torch.arange(x.shape[1], device=x.device)
            mask = mask & ((place[:, None] - place).abs() <= self.around)
        rate = self.dropout if self.training else 0.0
        found = scaled_dot_product_attention(self.rotation(q), self.rotation(k), v, attn_mask=mask, dropout_p=rate)
        result: Tensor = self.Wo(found.transpose(1, 2).flatten(2))
        return nn.functional.dropout(result, self.dropout, self.training)


class _Gated(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        size, wide, bias = config["hidden_size"], config["intermediate_size"], config.get("mlp_bias", False)
        self.Wi = nn.Linear(size, 2 * wide, bias=bias)
        self.Wo = nn.Linear(wide, size, bias=bias)
        self.drop = nn.Dropout(config["mlp_dropout"])

    def forward(self, x: Tensor) -> Tensor:
        given, gate = self.Wi(x).chunk(2, dim=-1)
        result: Tensor = self.Wo(self.drop(gelu(given) * gate))
        return result


class _Layer(nn.Module):
    def __init__(self, config: Mapping[str, Any], kind: str, *, first: bool) -> None:
        super().__init__()
        self.attn_norm = nn.Identity() if first else _norm(config)  # the embeddings have been normalised
        self.attn = _Attention(config, kind)
        self.mlp_norm = _norm(config)
        self.mlp = _Gated(config)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attn(self.attn_norm(x), mask)
        result: Tensor = x + self.mlp(self.mlp_norm(x))
        return result


class _Embeddings(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.norm = _norm(config)
        self.drop = nn.Dropout(config["embedding_dropout"])

    def forward(self, subwords: Tensor, added: Tensor) -> Tensor:
        result: Tensor = self.drop(self.norm(self.tok_embeddings(subwords) + added))
        return result


class ModernBertEncoder(nn.Module):
    """From subwords (W, T), with something added to their embeddings (W, T, width), to vectors (W, T, size)."""

    kinds: ClassVar[tuple[str, ...]] = ("modernbert",)
    prefixes: ClassVar[tuple[str, ...]] = ("model.", "")

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.embeddings = _Embeddings(config)
        kinds = _kinds(config)
        self.layers = nn.ModuleList([_Layer(config, kind, first=i == 0) for i, kind in enumerate(kinds)])
        self.final_norm = _norm(config)
        self.size = self.width = int(config["hidden_size"])
        self.padding = self.padding_of(config)

    @staticmethod
    def require(config: Mapping[str, Any]) -> None:
        """Refuse a configuration that is none of a ModernBERT."""
        fields = Fields(config)
        fields.sizes("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        fields.sizes("max_position_embeddings", "local_attention")
        if config.get("layer_types") is None:
            fields.sizes("global_attn_every_n_layers")
        fields.heads()
        fields.padding()
        fields.flags("attention_bias", "mlp_bias", "norm_bias")
        fields.shares("attention_dropout", "mlp_dropout", "embedding_dropout")
        fields.positive(config.get("norm_eps"), "norm_eps", 1.0)
        fields.only("hidden_activation", "gelu")
        for kind in _kinds(config):
            if not isinstance(kind, str) or kind not in _THETAS:
                raise ArchiveError(f"a layer of the type {ascii(kind)[:40]} in config.json, which is not known here")
            fields.positive(_theta(config, kind), _THETAS[kind][0], 1e12)

    @staticmethod
    def padding_of(config: Mapping[str, Any]) -> int:
        """The number of the subword that is not looked at."""
        return int(config.get("pad_token_id") or 0)

    @staticmethod
    def longest(config: Mapping[str, Any]) -> int:
        """How many subwords it reads at once."""
        return min(int(config["max_position_embeddings"]), _LONGEST)

    def forward(self, subwords: Tensor, added: Tensor) -> Tensor:
        mask = (subwords != self.padding)[:, None, None, :]
        x = self.embeddings(subwords, added)
        for layer in self.layers:
            x = layer(x, mask)
        result: Tensor = self.final_norm(x)
        return result

    def depth_of(self, name: str) -> int:
        """How many layers are above a parameter: 0 for the last layer's own."""
        return 0 if name.startswith("final_norm.") else layers_above(name, "layers.", len(self.layers))


def _norm(config: Mapping[str, Any]) -> nn.LayerNorm:
    return nn.LayerNorm(config["hidden_size"], eps=config["norm_eps"], bias=config.get("norm_bias", False))


def _kinds(config: Mapping[str, Any]) -> list[Any]:
    """What each layer looks at. Newer files list it, older ones say how often all."""
    count, listed = config["num_hidden_layers"], config.get("layer_types")
    if listed is None:
        every = config["global_attn_every_n_layers"]
        return [_GLOBAL if i % every == 0 else _LOCAL for i in range(count)]
    if not isinstance(listed, list) or len(listed) != count:
        raise ArchiveError(f"layer_types in config.json are not one for each of {count} layers")
    return listed


def _theta(config: Mapping[str, Any], kind: str) -> Any:
    """The base of a rotation's angles."""
    name, usual = _THETAS[kind]
    said = config.get("rope_parameters")
    if said is None:
        found = config.get(name)
        return config.get(_THETAS[_GLOBAL][0], usual) if found is None else found
    own = said.get(kind) if isinstance(said, dict) else None
    if not isinstance(own, dict) or own.get("rope_type", "default") != "default":
        raise ArchiveError(f"rope_parameters in config.json have no plain rotation for {kind}")
    return own.get("rope_theta", usual)
