"""A pretrained encoder from a folder in Hugging Face's format: config.json, model.safetensors, tokenizer.json.

Nothing is downloaded, and nothing in the folder is executed: weights are read from safetensors only, the architecture
is one of those in this package. What the files say of themselves is compared before any weights are read: the numbers
of the configuration, the names and sizes of the weights, the numbers of the subwords.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headway.errors import ArchiveError, printable
from headway.neural.encoders.bert import BertEncoder
from headway.neural.encoders.modernbert import ModernBertEncoder
from headway.neural.encoders.mpnet import MpnetEncoder
from headway.neural.subwords import LEAST_AT_ONCE, SHAPES, SubwordReader

_CONFIG, _WEIGHTS, _TOKENIZER = _FILES = ("config.json", "model.safetensors", "tokenizer.json")
_MOST_JSON = 100_000_000
_FLOATS = ("F16", "BF16", "F32", "F64")

PretrainedEncoder = BertEncoder | ModernBertEncoder | MpnetEncoder
_ENCODERS: Mapping[str, type[PretrainedEncoder]] = {
    kind: encoder for encoder in (BertEncoder, ModernBertEncoder, MpnetEncoder) for kind in encoder.kinds
}


@dataclass(frozen=True)
class Folder:
    """A folder of a pretrained encoder: its files are there, its configuration and its weights fit each other.

    `prefix` is what the weights' names have in front of ours.
    """

    path: Path
    config: Mapping[str, Any]
    prefix: str

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Folder:
        """Refuses what is no encoder of a known kind, whole and in one piece."""
        folder = Path(path)
        with _of(folder):
            _require_files(folder)
            config = _read_json(folder / _CONFIG)
            kind = config.get("model_type") if isinstance(config, dict) else None
            known = ", ".join(_ENCODERS)
            if kind is None:
                raise ArchiveError(f"{_CONFIG} has no model_type; the kinds of encoders known here are {known}")
            if not isinstance(kind, str) or kind not in _ENCODERS:
                raise ArchiveError(f"an encoder of the kind {ascii(kind)[:40]}; the kinds known here are {known}")
            _ENCODERS[kind].require(config)
            return cls(folder, config, _fitting_prefix(folder / _WEIGHTS, config))

    def reader(self) -> SubwordReader:
        """What cuts words into this encoder's subwords."""
        kind = _ENCODERS[self.config["model_type"]]
        longest = kind.longest(self.config)
        with _of(self.path):
            if longest < LEAST_AT_ONCE:
                raise ArchiveError(f"it reads {longest} subwords at once; expected at least {LEAST_AT_ONCE}")
            data = _read_json(self.path / _TOKENIZER)
            try:
                reader = SubwordReader.from_files(json.dumps(data), self.config, longest)
                highest = reader.highest
            except ArchiveError:
                raise
            except Exception as error:  # the tokenizer's library raises bare ones
                raise ArchiveError(f"{_TOKENIZER} is damaged ({_shown(error)}); copy it again") from None
            if highest >= self.config["vocab_size"]:
                raise ArchiveError(
                    f"{_TOKENIZER} numbers its subwords up to {highest}, and {_CONFIG} has a vocab_size of "
                    f"{self.config['vocab_size']}; give the two of one encoder"
                )
            if reader.padding != kind.padding_of(self.config):
                raise ArchiveError(
                    f"{_TOKENIZER} pads with the number {reader.padding}, and {_CONFIG} has no pad_token_id; write it "
                    "there"
                )
        return reader

    def load(self, encoder: PretrainedEncoder) -> None:
        """Put the folder's weights into an encoder made from its configuration."""
        with _of(self.path), _weights(self.path / _WEIGHTS) as file:
            found = {name: file.get_tensor(f"{self.prefix}{name}").float() for name in encoder.state_dict()}
        for name, tensor in found.items():
            if not bool(tensor.isfinite().all()):
                raise ArchiveError(f"{self.path}: {name} in {_WEIGHTS} has numbers that are not finite; copy it again")
        encoder.load_state_dict(found)


@contextmanager
def _of(folder: Path) -> Iterator[None]:
    """Names the folder in front of what is wrong with it."""
    try:
        yield
    except ArchiveError as error:
        raise ArchiveError(f"{folder}: {error}") from None
    except OSError as error:
        raise ArchiveError(f"{folder}: cannot be read ({error.strerror}); check its files") from None


def _require_files(folder: Path) -> None:
    missing = next((name for name in _FILES if not (folder / name).is_file()), None)
    if missing is None:
        return
    if missing == _WEIGHTS and (folder / f"{_WEIGHTS}.index.json").is_file():
        raise ArchiveError(f"its weights are in several files; save them as one {_WEIGHTS}")
    if missing == _WEIGHTS and (folder / "pytorch_model.bin").is_file():
        raise ArchiveError(
            f"its weights are in pytorch_model.bin, a pickle, which could run any code; save them as {_WEIGHTS}"
        )
    raise ArchiveError(f"has no {missing}; give a folder with {', '.join(_FILES)}, as models of Hugging Face have")


def _fitting_prefix(path: Path, config: Mapping[str, Any]) -> str:
    """What the names of the weights begin with; no weight is read, only what the file says of them."""
    with torch.device("meta"):
        encoder = _ENCODERS[config["model_type"]](config)
    wanted = {name: tuple(weight.shape) for name, weight in encoder.state_dict().items()}
    with _weights(path) as file:
        names = set(file.keys())
        prefix = next((p for p in encoder.prefixes if f"{p}{next(iter(wanted))}" in names), None)
        if prefix is None:
            raise ArchiveError(f"{_WEIGHTS} has no {next(iter(wanted))}; it is of another architecture")
        for name, shape in wanted.items():
            if f"{prefix}{name}" not in names:
                raise ArchiveError(f"{_WEIGHTS} has no {prefix}{name}; copy it again")
            found = file.get_slice(f"{prefix}{name}")
            if tuple(found.get_shape()) != shape:
                raise ArchiveError(
                    f"{name} has the shape {tuple(found.get_shape())} in {_WEIGHTS}, and {shape} by {_CONFIG}; give "
                    "the two of one encoder"
                )
            if found.get_dtype() not in _FLOATS:
                raise ArchiveError(f"{name} in {_WEIGHTS} is of the type {found.get_dtype()}; expected floats")
    return prefix


@contextmanager
def _weights(path: Path) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            yield file
    except SafetensorError as error:
        raise ArchiveError(f"{_WEIGHTS} is damaged ({_shown(error)}); copy it again") from None


def _read_json(path: Path) -> Any:
    if path.stat().st_size > _MOST_JSON:
        raise ArchiveError(f"{path.name} is larger than any of an encoder; give another folder")
    try:
        return json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"{path.name} is not valid JSON ({_shown(error)}); copy it again") from None


def _shown(error: BaseException) -> str:
    return printable(" ".join(str(error).split()))[:80]


class TransformerEncoder(nn.Module):
    """Words (B, N+1, size) from subwords, which are told their word's shape: the mean of each word's first and last."""

    mixed = True  # bfloat16 where a GPU has it

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.model = _ENCODERS[config["model_type"]](config)
        self.shapes = nn.Embedding(SHAPES, self.model.width)
        nn.init.zeros_(self.shapes.weight)
        self.size = self.model.size

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        found = self.model(inputs["subwords"], self.shapes(inputs["shapes"])).reshape(-1, self.size)
        words = inputs["words"]
        means: Tensor = found[words[..., 0]] * 0.5 + found[words[..., 1]] * 0.5
        return means
