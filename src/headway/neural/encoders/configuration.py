"""What a configuration of Hugging Face's says, looked at before anything is made of it: types and ranges.

The ranges are wider than any encoder there is. They keep a hostile file from asking for more memory than there is; the
sizes of the weights themselves are compared with those in the file of weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.errors import ArchiveError

Config = Mapping[str, Any]

_LARGEST = {
    "vocab_size": 4_000_000,
    "hidden_size": 16_384,
    "embedding_size": 16_384,
    "intermediate_size": 131_072,
    "num_hidden_layers": 200,
    "num_attention_heads": 512,
    "max_position_embeddings": 4_000_000,
    "type_vocab_size": 1_000,
    "relative_attention_num_buckets": 10_000,
    "local_attention": 4_000_000,
    "global_attn_every_n_layers": 200,
}
_LEAST = {"max_position_embeddings": 16, "local_attention": 2}


@dataclass(frozen=True)
class Fields:
    """A configuration under examination; every complaint is one sentence."""

    config: Config

    def sizes(self, *names: str) -> None:
        """Whole numbers, each within the range that it may have."""
        for name in names:
            low, high = _LEAST.get(name, 1), _LARGEST[name]
            value = self._value(name)
            if type(value) is not int or not low <= value <= high:
                raise _wrong(name, value, f"a whole number from {low} to {high}")

    def shares(self, *names: str) -> None:
        """Rates of dropout: at least 0, below 1."""
        for name in names:
            value = self._value(name)
            if type(value) not in (int, float) or not 0 <= value < 1:
                raise _wrong(name, value, "a number from 0 to 1")

    def positive(self, value: Any, name: str, most: float) -> None:
        """A number above 0."""
        if type(value) not in (int, float) or not 0 < value <= most:
            raise _wrong(name, value, f"a number above 0, {most:g} at most")

    def flags(self, *names: str) -> None:
        """True or false, false where it is not said."""
        for name in names:
            if type(self.config.get(name, False)) is not bool:
                raise _wrong(name, self.config[name], "true or false")

    def heads(self) -> None:
        """Every head of attention has the same even number of dimensions."""
        size, heads = self.config["hidden_size"], self.config["num_attention_heads"]
        if size % (2 * heads):
            raise _wrong("num_attention_heads", heads, f"a number that divides half of hidden_size, {size}")

    def padding(self) -> None:
        """The number of the padding is one of the vocabulary's."""
        value = self.config.get("pad_token_id")
        if value is not None and (type(value) is not int or not 0 <= value < self.config["vocab_size"]):
            raise _wrong("pad_token_id", value, "the number of a subword")

    def only(self, name: str, wanted: str | int) -> None:
        """A choice of which we have one."""
        value = self.config.get(name, wanted)
        if value != wanted:
            raise _wrong(name, value, f"{wanted!r}, the only one known here")

    def _value(self, name: str) -> Any:
        if name not in self.config:
            raise ArchiveError(f"config.json has no {name}; give an encoder in Hugging Face's format")
        return self.config[name]


def _wrong(name: str, value: Any, expected: str) -> ArchiveError:
    return ArchiveError(f"{name} in config.json is {ascii(value)[:40]}; expected {expected}")
