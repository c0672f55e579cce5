"""Folders of pretrained encoders: those that are whole are read, all others refused in one sentence."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="encoders run on torch")
safetensors = pytest.importorskip("safetensors.torch", reason="weights are read from safetensors")
pytest.importorskip("tokenizers", reason="subwords are cut by tokenizers")

from headway.errors import ArchiveError
from headway.neural.encoders.transformer import Folder, TransformerEncoder
from tests.neural.tiny import CONFIGS, folder_of, sentences

BERT = CONFIGS["bert"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return folder_of("bert", tmp_path)


def refused(path: Path) -> str:
    """What is said of a folder, wherever it is noticed."""
    with pytest.raises(ArchiveError) as caught:
        _used(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < len(str(path)) + 260
    return message


def _used(path: Path) -> None:
    folder = Folder.open(path)
    folder.reader().read(sentences(2))
    folder.load(TransformerEncoder(folder.config).model)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("prefix", [True, False])
def test_weights_are_those_of_the_file(name: str, prefix: bool, tmp_path: Path) -> None:
    folder = Folder.open(folder_of(name, tmp_path, prefix=prefix))
    encoder = TransformerEncoder(folder.config).model
    folder.load(encoder)
    file = safetensors.load_file(tmp_path / "model.safetensors")
    for own, weight in encoder.state_dict().items():
        assert torch.equal(weight, file[f"{folder.prefix}{own}"].float())
    assert (folder.prefix != "") == prefix
    reading = folder.reader().read(sentences(3))
    assert encoder(torch.tensor(reading.windows[0])[None], torch.zeros(())).isfinite().all()


def test_halves_are_read_too(path: Path) -> None:
    weights = {name: weight.half() for name, weight in safetensors.load_file(path / "model.safetensors").items()}
    safetensors.save_file(weights, path / "model.safetensors")
    _used(path)


def test_no_more_than_the_file_has_is_asked_for(path: Path) -> None:
    """Sizes are compared before anything is made: these would take terabytes."""
    config = {**BERT, "vocab_size": 4_000_000, "hidden_size": 16_384, "num_hidden_layers": 200}
    (path / "config.json").write_text(json.dumps(config))
    assert "has the shape (100, 32)" in refused(path)


@pytest.mark.parametrize(
    ("name", "changes", "cause"),
    [
        ("bert", {"vocab_size": 0}, "vocab_size"),
        ("bert", {"vocab_size": "100"}, "vocab_size"),
        ("bert", {"vocab_size": True}, "vocab_size"),
        ("bert", {"vocab_size": 10**30}, "vocab_size"),
        ("bert", {"vocab_size": 99}, "vocab_size|shape"),
        ("bert", {"hidden_size": 32.0}, "hidden_size"),
        ("bert", {"hidden_size": -32}, "hidden_size"),
        ("bert", {"hidden_size": 64}, "shape"),
        ("bert", {"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ("bert", {"num_hidden_layers": 3}, "has no bert.encoder.layer.2"),
        ("bert", {"num_attention_heads": 5}, "num_attention_heads"),
        ("bert", {"num_attention_heads": 0}, "num_attention_heads"),
        ("bert", {"intermediate_size": None}, "intermediate_size"),
        ("bert", {"max_position_embeddings": 4}, "max_position_embeddings"),
        ("bert", {"max_position_embeddings": [40]}, "max_position_embeddings"),
        ("bert", {"type_vocab_size": 0}, "type_vocab_size"),
        ("bert", {"layer_norm_eps": float("nan")}, "layer_norm_eps"),
        ("bert", {"layer_norm_eps": 0}, "layer_norm_eps"),
        ("bert", {"hidden_dropout_prob": 1}, "hidden_dropout_prob"),
        ("bert", {"attention_probs_dropout_prob": "0.1"}, "attention_probs_dropout_prob"),
        ("bert", {"pad_token_id": 100}, "pad_token_id"),
        ("bert", {"pad_token_id": "0"}, "pad_token_id"),
        ("bert", {"hidden_act": "gelu_new"}, "hidden_act in config.json is 'gelu_new'; expected 'gelu'"),
        ("bert", {"hidden_act": ["gelu"]}, "hidden_act"),
        ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ("bert", {"model_type": "gpt2"}, "'gpt2'"),
        ("bert", {"model_type": ["bert"]}, "of the kind"),
        ("bert", {"model_type": "modernbert"}, "local_attention"),
        ("roberta", {"pad_token_id": 39}, "reads 2 subwords at once"),
        ("electra", {"embedding_size": 0}, "embedding_size"),
        ("electra", {"embedding_size": 32}, "shape"),
        ("mpnet", {"relative_attention_num_buckets": 64}, "relative_attention_num_buckets"),
        ("mpnet", {"pad_token_id": 3}, "pad_token_id"),
        ("modernbert", {"local_attention": 0}, "local_attention"),
        ("modernbert", {"global_attn_every_n_layers": 0}, "global_attn_every_n_layers"),
        ("modernbert", {"hidden_activation": "silu"}, "hidden_activation"),
        ("modernbert", {"norm_bias": "no"}, "norm_bias"),
        ("modernbert", {"norm_bias": True}, "norm.bias"),
        ("modernbert", {"global_rope_theta": float("inf")}, "global_rope_theta"),
        ("modernbert", {"local_rope_theta": "1"}, "local_rope_theta"),
        ("modernbert", {"layer_types": ["full_attention"]}, "layer_types"),
        ("modernbert", {"layer_types": [["full_attention"]] * 4}, "type"),
        ("modernbert", {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "rope_parameters"),
    ],
)
def test_configurations_that_are_none(name: str, changes: dict[str, Any], cause: str, tmp_path: Path) -> None:
    path = folder_of(name, tmp_path)
    (path / "config.json").write_text(json.dumps({**CONFIGS[name], **changes}))
    assert re.search(cause, refused(path))


def test_fields_that_are_missing(path: Path) -> None:
    for name in BERT:
        if name in ("pad_token_id", "type_vocab_size"):
            continue
        (path / "config.json").write_text(json.dumps({key: value for key, value in BERT.items() if key != name}))
        assert name in refused(path) or name == "model_type"


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_files_that_are_missing_or_damaged(name: str, path: Path) -> None:
    whole = (path / name).read_bytes()
    for content in (
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        whole[: len(whole) // 2],
        whole[:-1],
        b"\0" * 100,
        b"[" * 10**5,
    ):
        (path / name).write_bytes(content)
        refused(path)
    (path / name).unlink()
    assert f"has no {name}" in refused(path)
    (path / name).mkdir()
    assert f"has no {name}" in refused(path)


def test_pickles_and_pieces_are_named(path: Path) -> None:
    (path / "model.safetensors").unlink()

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (path / "executed").touch, ()

    (path / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))
    assert "a pickle, which could run any code; save them as model.safetensors" in refused(path)
    assert not (path / "executed").exists()
    (path / "model.safetensors.index.json").write_text("{}")
    assert "in several files; save them as one model.safetensors" in refused(path)


def test_weights_that_are_none(path: Path) -> None:
    file = path / "model.safetensors"
    weights = safetensors.load_file(file)
    name = "bert.embeddings.LayerNorm.weight"
    for other, cause in (
        (torch.full((32,), float("nan")), "not finite"),
        (torch.ones(32, dtype=torch.int64), "of the type I64"),
        (torch.ones(32, dtype=torch.bool), "of the type BOOL"),
        (torch.ones(31), "has the shape (31,) in model.safetensors, and (32,) by config.json"),
        (torch.ones(1, 32), "has the shape"),
    ):
        safetensors.save_file({**weights, name: other}, file)
        assert cause in refused(path)
    safetensors.save_file({key: value for key, value in weights.items() if key != name}, file)
    assert f"has no {name}" in refused(path)
    safetensors.save_file({"x": torch.ones(1)}, file)
    assert "another architecture" in refused(path)


def test_a_tokenizer_of_another_encoder(path: Path) -> None:
    tokenizer = json.loads((path / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["zebra"] = 100
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert "up to 100, and config.json has a vocab_size of 100" in refused(path)
    del tokenizer["model"]["vocab"]["zebra"], tokenizer["model"]["vocab"]["[CLS]"]
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert "has none of [CLS], <s>" in refused(path)


@pytest.mark.parametrize("name", CONFIGS)
def test_padding_is_what_the_encoder_does_not_look_at(name: str, tmp_path: Path) -> None:
    """As the configuration says, or else the tokenizer, if the encoder agrees."""
    path = folder_of(name, tmp_path)
    tokenizer = json.loads((path / "tokenizer.json").read_text())
    config = {key: value for key, value in CONFIGS[name].items() if key != "pad_token_id"}
    (path / "config.json").write_text(json.dumps(config))
    if name == "roberta":
        said = "tokenizer.json pads with the number 1, and config.json has no pad_token_id; write it there"
        assert said in refused(path)
    else:
        _used(path)
    own = CONFIGS[name]["pad_token_id"]
    for number in (own, own + 2):  # of the tokenizer's, as if it were made for something else
        vocabulary = tokenizer["model"]["vocab"]
        other = next(piece for piece, there in vocabulary.items() if there == number)
        vocabulary["[PAD]"], vocabulary[other] = number, vocabulary["[PAD]"]
        (path / "tokenizer.json").write_text(json.dumps(tokenizer))
        (path / "config.json").write_text(json.dumps(CONFIGS[name]))
        folder = Folder.open(path)
        reader, encoder = folder.reader(), TransformerEncoder(folder.config).model
        assert reader.padding == encoder.padding == own
        (path / "config.json").write_text(json.dumps(config))
        if number != own:
            assert f"pads with the number {number}, and config.json has no pad_token_id" in refused(path)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    assert "has no config.json" in refused(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    assert "has no config.json" in refused(tmp_path / "file")
