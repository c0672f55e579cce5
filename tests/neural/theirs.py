"""The vectors of transformers' own models, with weights that depend on their names alone.

`encoders.npz` keeps them, so that ours can be compared where transformers is not installed. To write it anew:
`python -m tests.neural.theirs`.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.neural.tiny import BERT, ELECTRA, MODERNBERT, MPNET, ROBERTA

FILE = Path(__file__).with_name("encoders.npz")
LONGEST = 512  # words between which distances are grouped
LISTED = {  # as newer versions of transformers write it
    **{name: value for name, value in MODERNBERT.items() if not name.endswith(("layers", "theta"))},
    "num_hidden_layers": 3,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 300.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 40.0},
    },
    "norm_bias": True,
    "attention_bias": True,
    "mlp_bias": True,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "bert": BERT,
    "roberta": ROBERTA,
    "electra": ELECTRA,
    "mpnet": MPNET,
    "modernbert": MODERNBERT,
    "listed": LISTED,
}


def fill(weights: Mapping[str, Tensor]) -> None:
    """Random weights, the same for the same name and shape in whatever model."""
    with torch.no_grad():
        for name, weight in weights.items():
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            weight.copy_(torch.from_numpy(rng.normal(scale=0.3, size=tuple(weight.shape))))


def subwords(config: dict[str, Any]) -> Tensor:
    """Three sentences: full length, padded, and of one subword."""
    drawn = torch.from_numpy(np.random.default_rng(0).integers(2, config["vocab_size"], (3, 20)))
    drawn[1, 11:] = drawn[2, 1:] = config["pad_token_id"]
    return drawn


def vectors(name: str) -> NDArray[np.float32]:
    """One vector for each subword that is no padding."""
    import transformers

    config = CONFIGS[name]
    settings = transformers.AutoConfig.for_model(**config)
    model = transformers.AutoModel.from_config(settings, attn_implementation="eager").eval()
    fill(dict(model.named_parameters()))
    given = subwords(config)
    there = given != config["pad_token_id"]
    with torch.no_grad():
        found = model(input_ids=given, attention_mask=there.long()).last_hidden_state
    vectors: NDArray[np.float32] = found[there].numpy()
    return vectors


def groups_of_distances() -> NDArray[np.int64]:
    """The group of MPNet for every two places."""
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    place = torch.arange(LONGEST)
    groups: NDArray[np.int64] = MPNetEncoder.relative_position_bucket(place - place[:, None]).numpy()
    return groups


if __name__ == "__main__":
    first_and_last = groups_of_distances()[[0, -1]]  # every distance is in one of them
    found = {name: vectors(name) for name in CONFIGS}
    np.savez_compressed(FILE, groups_of_distances=first_and_last.astype(np.int8), **found)  # type: ignore[arg-type]
