"""From a treebank to a neural parser and back from its file; what cannot be trained is refused in one sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

from headway import Parser, Sentence, extras
from headway.errors import ArchiveError, HeadwayError, MissingExtraError, TrainingError
from headway.neural import preparation, trainer
from headway.training.tuning import tune
from tests.cli.conftest import run
from tests.neural.test_fitting import SMALL, treebank
from tests.neural.tiny import CONFIGS, folder_of


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    of = preparation.network_settings
    monkeypatch.setattr(preparation, "network_settings", lambda settings: replace(of(settings), **SMALL))


def trained(**settings: Any) -> Parser:
    given = {"model": "neural", "epochs": 40, "dropout": 0.1, "rate": 1e-2, "device": "cpu"}
    return Parser.train(treebank(), treebank(8, 1), **{**given, **settings})


def test_a_parser_is_trained_saved_and_loaded(tmp_path: Path) -> None:
    parser = trained()
    parser.save(tmp_path / "m.headway")
    again = Parser.load(tmp_path / "m.headway")
    right = tagged = words = 0
    for gold in treebank(8, 2):
        bare = Sentence.from_words(gold.forms)
        own, found = parser.parse(bare), again.parse(bare)
        assert found.heads.tolist() == own.heads.tolist()
        tagged += sum(map(str.__eq__, found.sentence.upos, gold.upos))
        assert found.is_proved
        assert found.confidence.arcs[1:].min() > 0
        assert gold.heads is not None
        right += int((found.heads[1:] == gold.heads[1:]).sum())
        words += len(gold)
    assert right / words > 0.95
    assert tagged / words > 0.9
    about = again.model.about
    assert about["settings"]["learner"] == "loglinear"
    assert set(about["rounding"]) == {"float32", "int8"}
    assert about["rounding"]["int8"]["las"] > 90
    assert parser.tagger is None
    assert not parser.needs_tags
    assert dict(parser.describe().rows)["raw text"] == "yes"


def test_tags_may_be_given(tmp_path: Path) -> None:
    parser = trained(tags="gold", epochs=3, labels="none")
    assert parser.needs_tags
    assert dict(parser.describe().rows)["raw text"] == "no: its words would have no tags"
    with pytest.raises(HeadwayError, match="has no tagger"):
        parser.parse("the dog sees a bird")
    found = parser.parse(treebank(1)[0])
    assert set(found.labels[1:]) == {"_"}
    assert [set(scores) for scores in parser.model.about["rounding"].values()] == [{"uas"}, {"uas"}]


def test_a_checkpoint_is_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = trained(epochs=3)
    trained(epochs=3, checkpoint=tmp_path)

    def never(*_: Any) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(trainer.Fitting, "run_pass", never)
    assert trained(epochs=3, checkpoint=tmp_path).model.about == whole.model.about


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"learner": "eg"}, "a network is trained with loglinear"),
        ({"labels": "joint"}, "labels after the tree"),
        ({"dropout": 1.0}, "expected less than 1"),
        ({"rate": 1e9, "epochs": 2}, "lower the learning rate"),
    ],
)
def test_what_cannot_be_trained(settings: dict[str, Any], cause: str) -> None:
    with pytest.raises(TrainingError, match=cause):
        trained(**settings)


@pytest.mark.parametrize(
    ("package", "error"),
    [
        ("torch", OSError("libcudart.so.13: cannot open shared object file")),
        ("onnx", ImportError("libprotobuf.so")),
        ("safetensors", ImportError("GLIBC_2.39 not found")),
    ],
)
def test_a_library_that_cannot_be_imported_is_one_sentence_before_anything_is_read(
    package: str, error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said at once, not when the network is to be written, after hours."""
    parser = tmp_path / "m.headway"
    trained(epochs=1).save(parser)
    imported = extras.import_module

    def damaged(name: str) -> Any:
        if name == package:
            raise error
        return imported(name)

    monkeypatch.setattr(extras, "import_module", damaged)
    said = f"networks need {package}, which cannot be imported .*; install it again with: pip install"
    with pytest.raises(MissingExtraError, match=said):
        Parser.train(tmp_path / "nowhere", model="neural", encoder=str(tmp_path))
    if package == "torch":
        with pytest.raises(MissingExtraError, match=said):
            Parser.load(parser, device="auto")
    if package == "safetensors":
        with pytest.raises(HeadwayError, match="nowhere"):
            Parser.train(tmp_path / "nowhere", model="neural")


def test_cross_entropy_is_for_networks() -> None:
    with pytest.raises(TrainingError, match="is for networks"):
        Parser.train(treebank(4), model="arc", learner="cross-entropy")


def test_rates_and_dropouts_are_tuned() -> None:
    given: dict[str, Any] = {"model": "neural", "epochs": 4, "device": "cpu"}
    grid = {"rate": (1e-6, 1e-2), "dropout": (0.1,)}
    tuning = tune(treebank(), treebank(8, 1), network_grid=grid, **given)
    assert [trial.network for trial in tuning.trials] == [
        {"rate": 1e-6, "dropout": 0.1},
        {"rate": 1e-2, "dropout": 0.1},
    ]
    slow, fast = (trial.uas for trial in tuning.trials)
    assert fast > slow + 10
    assert (tuning.settings.rate, tuning.settings.dropout, tuning.settings.epochs) == (1e-2, 0.1, 4)
    assert tuning.model.about["settings"]["rate"] == 1e-2
    assert max(entry["dev"] for entry in tuning.model.about["history"]) == pytest.approx(fast)
    assert len(tune(treebank(), treebank(8, 1), **{**given, "epochs": 1}).trials) == 4


def test_what_is_not_tuned() -> None:
    with pytest.raises(TrainingError, match="a network has no C to tune; it has rate, encoder_rate, dropout"):
        tune(treebank(), grid=(1.0,), model="neural")
    with pytest.raises(TrainingError, match="batch of a network is not tuned"):
        tune(treebank(), network_grid={"batch": (1.0,)}, model="neural")
    with pytest.raises(TrainingError, match="rate is a setting of networks"):
        tune(treebank(), network_grid={"rate": (1.0,)}, model="arc")


def test_tuning_from_the_command_line(tmp_path: Path) -> None:
    for name, trees in (("train", treebank()), ("dev", treebank(8, 1))):
        (tmp_path / f"{name}.conllu").write_text("".join(tree.to_conllu() for tree in trees))
    words = ("tune", tmp_path / "train.conllu", "--dev", tmp_path / "dev.conllu", "--model", "neural", "--epochs", "2")
    words += ("--device", "cpu", "--rate", "1e-3", "--rate", "1e-2", "--dropout", "0.2")
    said = run(*words, "-o", tmp_path / "m.headway").output.splitlines()
    assert said[0].split() == ["rate", "dropout", "decoding", "passes", "UAS", "seconds"]
    assert [line.split()[:2] for line in said[1:3]] == [["0.001", "0.2"], ["0.01", "0.2"]]
    [chosen] = [line for line in said if line.startswith("chosen: ")]
    assert "--model neural" in chosen
    assert "--dropout 0.2" in chosen
    assert " --c " not in chosen
    assert Parser.load(tmp_path / "m.headway").model.kind == "neural"


@pytest.mark.parametrize("name", CONFIGS)
def test_pretrained_encoders_are_trained(name: str, tmp_path: Path) -> None:
    """As the LSTM is, and what parses afterwards is the network that was trained."""
    parser = trained(encoder=str(folder_of(name, tmp_path)), epochs=12, encoder_rate=3e-3, dropout=0.0)
    figures = parser.model.about["rounding"]
    assert figures["float32"]["uas"] > 60  # chance is below 30
    assert abs(figures["int8"]["uas"] - figures["float32"]["uas"]) < 10
    parser.save(tmp_path / "m.headway")
    assert str(tmp_path) not in json.dumps(parser.model.to_archive().data)  # nobody needs to know where it was


def test_folders_that_are_no_encoders(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"has no config\.json"):
        trained(encoder=str(tmp_path))
    for name in ("tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_text("")
    for text, cause in (("{", "is not valid JSON"), ("[]", "has no model_type"), ('{"model_type": "gpt2"}', "'gpt2'")):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ArchiveError, match=cause):
            trained(encoder=str(tmp_path))
