"""Folders of pretrained encoders with something changed: a field of their JSON, the list of their weights, or bytes.

What is still an encoder must read words and make vectors of them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headway.neural.encoders.transformer import Folder, TransformerEncoder
from tests.fuzz.harness import Draw, expecting_success
from tests.fuzz.mutate_archives import NEW, change_field
from tests.fuzz.mutations import damaged, pick
from tests.neural.tiny import CONFIGS, folder_of

_JSON = ("config.json", "config.json", "tokenizer.json")
_WEIGHTS = "model.safetensors"


def encoders(folder: Path) -> Draw:
    """Draws that change a file of a folder, and use the encoder if it is one still."""
    wholes = [folder_of(name, folder / name) for name in CONFIGS]
    now = folder / "now"

    def draw(rng: np.random.Generator) -> str | None:
        shutil.rmtree(now, ignore_errors=True)
        shutil.copytree(pick(rng, wholes), now)
        for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
            _change(rng, now)
        _use(now)
        return None

    for whole in wholes:
        with expecting_success():
            _use(whole)
    return draw


def _change(rng: np.random.Generator, folder: Path) -> None:
    way = rng.random()
    if way < 0.55:
        _change_json(rng, folder / pick(rng, _JSON))
    elif way < 0.75:
        _change_list(rng, folder / _WEIGHTS)
    else:
        file = folder / pick(rng, (*_JSON, _WEIGHTS))
        file.write_bytes(damaged(rng, file.read_bytes()))


def _change_json(rng: np.random.Generator, file: Path) -> None:
    data = _loaded(file.read_bytes())
    if not data:
        return
    change_field(rng, data)
    file.write_text(json.dumps(data), "utf-8", "surrogatepass")


def _change_list(rng: np.random.Generator, file: Path) -> None:
    """What a file of weights says of its weights: eight bytes of the size, the list as JSON, the weights."""
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    names = _loaded(content[8 : 8 + size])
    if not names:
        return
    change_field(rng, names)
    text = json.dumps(names).encode("utf-8", "surrogatepass")
    file.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])


def _loaded(content: bytes) -> Any:
    """What can be changed, None if it was damaged before."""
    try:
        data = json.loads(content)
    except ValueError:
        return None
    return data if isinstance(data, dict | list) else None


@torch.no_grad()
def _use(path: Path) -> None:
    folder = Folder.open(path)
    reading = folder.reader().read(NEW[:3])
    encoder = TransformerEncoder(folder.config).eval()
    folder.load(encoder.model)
    inputs = {name: torch.from_numpy(array) for name, array in reading.batch(np.arange(3)).items()}
    assert encoder(inputs).shape == (3, max(map(len, NEW[:3])) + 1, encoder.size)
