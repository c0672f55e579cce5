"""A pretrained encoder from a folder in Hugging Face's format: config.json, model.safetensors, tokenizer.json.

Nothing is downloaded, and nothing in the folder is executed: weights are read from safetensors only, the architecture
is one of those in this package.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from headway.errors import ArchiveError
from headway.neural.encoders import bert
from headway.neural.subwords import SHAPES, SubwordReader

_FILES = ("config.json", "tokenizer.json", "model.safetensors")
_MOST_JSON = 100_000_000


@dataclass(frozen=True)
class Folder:
    """A folder of a pretrained encoder, its files found and its configuration read."""

    path: Path
    config: Mapping[str, Any]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Folder:
        """Refuses what is no encoder of a known kind."""
        folder = Path(path)
        for name in _FILES:
            if not (folder / name).is_file():
                raise ArchiveError(
                    f"{folder}: has no {name}; give a folder with {', '.join(_FILES)}, as models of Hugging Face have"
                )
        config = _read_json(folder / "config.json")
        kind = config.get("model_type") if isinstance(config, dict) else None
        if kind not in bert.KINDS:
            raise ArchiveError(
                f"{folder}: an encoder of the kind {str(kind)[:40]!r}; the kinds known here are {', '.join(bert.KINDS)}"
            )
        return cls(folder, config)

    def reader(self) -> SubwordReader:
        """What cuts words into this encoder's subwords."""
        longest = int(self.config["max_position_embeddings"]) - bert.first_position(self.config)
        text = (self.path / "tokenizer.json").read_text("utf-8")
        try:
            return SubwordReader.from_files(text, self.config, longest)
        except ArchiveError as error:
            raise ArchiveError(f"{self.path}: {error}") from None
        except Exception as error:  # the tokenizer's library raises bare ones
            raise ArchiveError(f"{self.path}: tokenizer.json is damaged ({error!s:.80}); copy it again") from None

    def load(self, encoder: bert.BertEncoder) -> None:
        """Put the folder's weights into an encoder made from its configuration."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self.path / "model.safetensors", "pt") as file:
                names = set(file.keys())
                prefix = next((p for p in bert.PREFIXES if f"{p}embeddings.word_embeddings.weight" in names), None)
                if prefix is None:
                    raise ArchiveError(
                        f"{self.path}: model.safetensors has no embeddings; it is of another architecture"
                    )
                wanted = encoder.state_dict()
                missing = [name for name in wanted if f"{prefix}{name}" not in names]
                if missing:
                    raise ArchiveError(f"{self.path}: model.safetensors has no {prefix}{missing[0]}; copy it again")
                found = {name: file.get_tensor(f"{prefix}{name}").float() for name in wanted}
        except SafetensorError as error:
            raise ArchiveError(f"{self.path}: model.safetensors is damaged ({error!s:.80}); copy it again") from None
        for name, tensor in found.items():
            if tensor.shape != wanted[name].shape:
                raise ArchiveError(
                    f"{self.path}: {name} is {tuple(tensor.shape)}, by config.json {tuple(wanted[name].shape)}"
                )
        encoder.load_state_dict(found)


def _read_json(path: Path) -> Any:
    if path.stat().st_size > _MOST_JSON:
        raise ArchiveError(f"{path}: larger than any configuration; give another folder")
    try:
        return json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"{path}: is no JSON ({error!s:.80}); copy it again") from None


class TransformerEncoder(nn.Module):
    """Words (B, N+1, size) from subwords, which are told their word's shape: the mean of each word's first and last."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.model = bert.BertEncoder(config)
        self.shapes = nn.Embedding(SHAPES, self.model.width)
        nn.init.zeros_(self.shapes.weight)
        self.size = self.model.size

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        found = self.model(inputs["subwords"], self.shapes(inputs["shapes"])).reshape(-1, self.size)
        words = inputs["words"]
        means: Tensor = found[words[..., 0]] * 0.5 + found[words[..., 1]] * 0.5
        return means
