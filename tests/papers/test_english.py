"""The English experiment runs on any treebank of its shape, keeps what is done, and its figures are shown true."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from headway.errors import TrainingError, TreebankError
from headway.pipeline import Parser
from headway.treebank import read_treebank, write_treebank
from headway.treebank.annotations import with_first_comments
from headway_papers import english

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "experiments" / "english" / "results"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny treebank in three files, a document every seven sentences."""
    folder = tmp_path_factory.mktemp("ewt")
    sentences = [
        with_first_comments(sentence, "# newdoc") if i % 7 == 0 else sentence
        for i, sentence in enumerate(read_treebank(ROOT / "examples" / "tiny.conllu"))
    ]
    for part, some in (("train", sentences[:28]), ("dev", sentences[28:34]), ("test", sentences[34:])):
        write_treebank(some, folder / f"xx-ud-{part}.conllu.gz")
    return folder


@pytest.mark.parametrize("name", ["without-clusters", "gold-tags-4000"])
def test_a_parser_is_trained_packed_and_measured_once(data: Path, tmp_path: Path, name: str) -> None:
    said: list[str] = []
    options = {"languages": [name], "quick": True, "threads": 1, "say": said.append}
    english.run(data, tmp_path, **options)  # type: ignore[arg-type]
    found = json.loads((tmp_path / "quick" / f"{name}.json").read_text("utf-8"))
    model = tmp_path / "models" / f"quick-{name}.headway"
    assert found["bytes"] == model.stat().st_size
    parser = Parser.load(model)
    assert (parser.tagger is None) == (name == "gold-tags-4000")
    test = list(read_treebank(data / "xx-ud-test.conllu.gz"))
    again = english.measure(parser, test, parser.tagger is not None, 1)
    assert json.loads(json.dumps(again)) == found["test"]
    assert ("from_raw_text" in again) == (parser.tagger is not None)
    table = (tmp_path / "quick.md").read_text("utf-8")
    assert f"| **{name}** | " in table
    assert f" {found['test']['uas']:.2f} | {found['test']['las']:.2f} |" in table
    said.clear()
    english.run(data, tmp_path, **options)  # type: ignore[arg-type]
    assert said == [table]  # nothing was trained again


def test_what_is_not_there_is_said(data: Path, tmp_path: Path) -> None:
    with pytest.raises(TreebankError, match=r"train.*\.conllu"):
        english.run(tmp_path, tmp_path, languages=["linear"], quick=True, threads=1, say=print)
    with pytest.raises(TreebankError, match="no parser 'danish'"):
        english.run(data, tmp_path, languages=["danish"], quick=True, threads=1, say=print)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two encoders with random weights, and a text."""
    pytest.importorskip("torch", reason="networks are trained with torch")
    from tests.neural.tiny import folder_of

    folder = tmp_path_factory.mktemp("sources")
    text = folder / "text.txt"
    text.write_text("The dog saw a cat. It barked at her!\n\nWe like old trees.\n", encoding="utf-8")
    encoders = {name: folder_of(kind, folder / name) for name, kind in (("encoder", "bert"), ("teacher", "mpnet"))}
    return {**encoders, "text": text}


def test_the_network_is_taught_averaged_and_measured(data: Path, sources: dict[str, Path], tmp_path: Path) -> None:
    said: list[str] = []
    options: dict[str, Any] = {"languages": ["en"], "quick": True, "threads": 1, "say": said.append, **sources}
    english.run(data, tmp_path, **options)
    assert [line.partition(":")[0] for line in said[:-3]] == [
        *(f"quick-teacher-{number}" for number in (1, 2, 3)),
        *(f"quick-pupil-{number}" for number in range(1, 6)),
    ]
    found = json.loads((tmp_path / "quick" / "en.json").read_text("utf-8"))
    parser = Parser.load(tmp_path / "models" / "quick-en.headway")
    assert parser.card is not None
    assert f"UAS {found['test']['uas']:.2f}" in said[-2]
    assert parser.card.scores[0].figures["UAS"] == found["test"]["uas"]
    test = list(read_treebank(data / "xx-ud-test.conllu.gz"))
    assert json.loads(json.dumps(english.measure(parser, test, True, 1))) == found["test"]
    assert found["text"] == {"sentences": 3, "words": 16}
    words = sum(map(len, read_treebank(data / "xx-ud-dev.conllu.gz")))
    assert sum(found["scrambled"]["counts"]) == words
    said.clear()
    english.run(data, tmp_path, **options)
    assert len(said) == 1  # the table: nothing was trained again


def test_the_large_network_is_trained_and_measured_once(data: Path, sources: dict[str, Path], tmp_path: Path) -> None:
    said: list[str] = []
    options: dict[str, Any] = {"quick": True, "threads": 1, "say": said.append, "teacher": sources["teacher"]}
    english.run(data, tmp_path, languages=["en-large"], **options)
    found = json.loads((tmp_path / "quick" / "en-large.json").read_text("utf-8"))
    model = tmp_path / "models" / "quick-en-large.headway"
    assert found["bytes"] == model.stat().st_size
    parser = Parser.load(model)
    assert parser.card is not None
    assert [source.name for source in parser.card.sources] == ["UD English-EWT", "all-mpnet-base-v2"]
    assert parser.card.scores[0].figures["UAS"] == found["test"]["uas"]
    test = list(read_treebank(data / "xx-ud-test.conllu.gz"))
    assert json.loads(json.dumps(english.measure(parser, test, True, 1))) == found["test"]
    assert "| **en-large** | " in said[-1]
    said.clear()
    english.run(data, tmp_path, languages=["en-large"], **options)
    assert len(said) == 1  # the table: nothing was trained again
    with pytest.raises(TrainingError, match=r"en-large needs --teacher"):
        english.run(data, tmp_path, languages=["en-large"], quick=True, threads=1, say=print)


def test_the_mean_is_of_the_pupils_that_score_best() -> None:
    torch = pytest.importorskip("torch", reason="networks are trained with torch")
    from headway_papers.english_network import mean

    made = mean({"x": torch.tensor([value, 1.0])} for value in (1.0, 2.0, 6.0))
    assert made["x"].tolist() == [3.0, 1.0]


def test_scrambled_sentences_have_the_same_words() -> None:
    sentences = list(read_treebank(ROOT / "examples" / "tiny.conllu"))
    found = english.scrambled(sentences)
    assert [sorted(one.forms) for one in found] == [sorted(one.forms) for one in sentences]
    assert [one.forms for one in found] != [one.forms for one in sentences]


def test_en_needs_its_sources(data: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"--encoder .* --teacher .* --text"):
        english.run(data, tmp_path, languages=["en"], quick=True, threads=1, say=print)


@pytest.mark.parametrize("page", ["docs/results.md", "docs/models/en.md"])
def test_figures_shown_are_those_measured(page: str) -> None:
    """Every row of a parser in a table is as the experiment's own table has it."""
    table = english.table_text(RESULTS)
    shown = (ROOT / page).read_text("utf-8")
    rows = re.findall(r"^\| \*\*(?:en|linear|without-clusters|gold-tags)[^\n]*$", shown, re.MULTILINE)
    assert rows
    for row in rows:
        assert row in table


def test_the_model_that_comes_along_is_the_one_measured() -> None:
    found = json.loads((RESULTS / "en.json").read_text("utf-8"))
    embedded = ROOT / "src" / "headway" / "embedded" / "en.headway"
    assert embedded.stat().st_size == found["bytes"] <= 28_000_000
    about = Parser.load("en").model.about
    assert about["train"]["sha256"] == found["signature"]["data"]["train"]
