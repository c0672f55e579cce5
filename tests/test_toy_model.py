"""A new kind of model, `toy_model`, without a change in the library: from training to the command line and spaCy."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from headway.archive import load_archive
from headway.cli.app import app
from headway.errors import ArchiveError
from headway.evaluation import evaluate
from headway.models import registry
from headway.pipeline import Parser
from headway.training import trainers
from headway.training.explanation import explain
from headway.treebank import Sentence, read_treebank, write_treebank

from . import toy_model
from .models.toy_treebank import sentences
from .toy_model import ToyModel
from .training.toy_trainings import RULES


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known in this process, and forgotten after the test."""
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    monkeypatch.setattr(trainers, "_TRAINERS", dict(trainers._TRAINERS))
    registry.register(ToyModel)
    trainers.register("toy", toy_model.train)


@pytest.fixture
def treebank(tmp_path: Path) -> Path:
    path = tmp_path / "toy.conllu"
    write_treebank(sentences(12, 1), path)
    return path


def run(*words: Any) -> str:
    result = CliRunner(env={"HEADWAY_QUIET": "1"}).invoke(app, [str(word) for word in words], prog_name="headway")
    assert result.exit_code == 0, result.output
    return result.output


def test_it_is_small() -> None:
    source = inspect.getsource(ToyModel) + inspect.getsource(toy_model.train)
    assert len([line for line in source.splitlines() if line.strip()]) <= 40


def test_it_trains_parses_and_is_saved(tmp_path: Path) -> None:
    """With a tagger and a segmenter beside it, like any other model."""
    parser = Parser.train(sentences(12, 1), model="toy")
    assert isinstance(parser.model, ToyModel)
    assert parser.model.bonus != 0
    assert parser.tagger is not None
    parser.save(tmp_path / "toy.headway")
    assert load_archive(tmp_path / "toy.headway").kind == "toy"
    again = Parser.load(tmp_path / "toy.headway")
    assert again.model == parser.model
    assert again.describe() == parser.describe()
    for one, other in zip(again.parse(sentences(5, 2)), parser.parse(sentences(5, 2), threads=3), strict=True):
        assert one.heads.tolist() == other.heads.tolist()
        np.testing.assert_allclose(one.marginals[:, 1:].sum(axis=0), 1.0)
        assert one.to_dict()["probability"] == one.confidence.tree
    parsed = again.parse("the stone7 moves .")
    assert parsed.sentence.upos == ("D", "N", "V", "S")
    assert parsed.offsets is not None


def test_it_parses_as_it_says() -> None:
    chain = Parser(ToyModel(5.0, {})).parse(Sentence.from_words(["a", "b", "c", "d"]))
    assert chain.heads.tolist() == [-1, 0, 1, 2, 3]
    assert chain.confidence.tree > 0.8
    assert set(chain.labels[1:]) == {"_"}
    assert Parser(ToyModel(5.0, {})).with_projective(True).model.trees.projective


def test_it_is_drawn_and_explained() -> None:
    parser = Parser(ToyModel(2.0, {}))
    assert "<svg" in parser.parse(sentences(1, 3)[0]).to_svg()
    assert "<svg" in parser.parse(sentences(1, 3)[0])._repr_svg_()
    assert all(each.units for each in explain(parser.model, RULES, sentences(6, 4)))


@pytest.mark.parametrize("lost", ["bonus", "about", "trees"])
def test_a_damaged_file_is_refused(tmp_path: Path, lost: str) -> None:
    parser = Parser(ToyModel(2.0, {}))
    archive = parser.model.to_archive()
    broken = {key: value for key, value in archive.data.items() if key != lost}

    class Broken(ToyModel):
        def to_archive(self) -> Any:
            return type(archive)("toy", broken, {})

    Parser(Broken(2.0, {})).save(tmp_path / "damaged")
    with pytest.raises(ArchiveError, match="a damaged model, or not a model"):
        Parser.load(tmp_path / "damaged")


def test_every_command_runs_with_it(treebank: Path, tmp_path: Path) -> None:
    model, parsed, picture = tmp_path / "toy.headway", tmp_path / "parsed.conllu", tmp_path / "tree.svg"
    said = run("train", treebank, "--model", "toy", "-o", model)
    assert "toy.headway" in said
    assert model.is_file()
    assert not list(tmp_path.glob("*.checkpoint"))
    described = run("info", model)
    assert "bonus" in described
    assert "tagger" in described
    data = json.loads(run("info", model, "--json"))
    assert (data["model"], data["segmenter"]) == ("toy", True)
    run("parse", model, treebank, "--marginals", "--status", "-o", parsed)
    found = list(read_treebank(parsed))
    assert len(found) == 12
    scores = evaluate(list(read_treebank(treebank)), found)
    assert f"{scores.uas:.2f}" in run("evaluate", treebank, parsed)
    words = json.loads(run("parse", model, treebank, "--format", "json").splitlines()[0])["words"]
    assert all(0 <= word["probability"] <= 1 for word in words)
    run("draw", treebank, "--model", model, "-o", picture)
    assert "<svg" in picture.read_text("utf-8")
    run("draw", treebank, "--model", model, "--heatmap", "-o", picture)
    assert "<svg" in picture.read_text("utf-8")


def test_it_runs_in_spacy(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    Parser.train(sentences(12, 1), model="toy").save(tmp_path / "toy.headway")
    nlp = spacy.blank("en")
    nlp.add_pipe("headway", config={"model": str(tmp_path / "toy.headway")})
    doc = nlp("the stone7 moves .")
    assert [token.pos_ or token.tag_ for token in doc]
    assert all(0 <= token._.arc_probability <= 1 for token in doc)
    [parsed] = Parser.load(tmp_path / "toy.headway").parse_text("the stone7 moves .")
    assert [0 if token.head.i == token.i else token.head.i + 1 for token in doc] == parsed.heads[1:].tolist()


def test_a_package_adds_it_by_entry_points(treebank: Path, tmp_path: Path) -> None:
    """The module and its metadata on the path, as an installed package has them, in a process of its own."""
    site = tmp_path / "site"
    metadata = site / "toy_parser-1.0.dist-info"
    metadata.mkdir(parents=True)
    (site / "toy_parser.py").write_text(Path(toy_model.__file__).read_text("utf-8"), "utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-parser\nVersion: 1.0\n", "utf-8")
    points = "[headway.model_kinds]\ntoy = toy_parser:ToyModel\n\n[headway.trainers]\ntoy = toy_parser:train\n"
    (metadata / "entry_points.txt").write_text(points, "utf-8")
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])

    def headway(*words: Any, known: bool = True) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "HEADWAY_QUIET": "1", **({"PYTHONPATH": path} if known else {})}
        command = [sys.executable, "-m", "headway", *map(str, words)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    model = tmp_path / "toy.headway"
    trained = headway("train", treebank, "--model", "toy", "--tags", "gold", "-o", model)
    assert trained.returncode == 0, trained.stderr
    parsed = headway("parse", model, treebank)
    assert parsed.returncode == 0, parsed.stderr
    assert parsed.stdout.count("\n\n") == 12
    assert "bonus" in headway("info", model).stdout
    unknown = headway("info", model, known=False)
    assert unknown.returncode != 0
    assert "holds a 'toy', which is no kind of model known here" in unknown.stderr
    untrainable = headway("train", treebank, "--model", "toy", "-o", tmp_path / "b", known=False)
    assert untrainable.returncode != 0
    assert "unknown model 'toy'" in untrainable.stderr
