"""The English experiment runs on any treebank of its shape, keeps what is done, and its figures are shown true."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from headway.errors import TreebankError
from headway.pipeline import Parser
from headway.treebank import read_treebank, write_treebank
from headway_papers import english

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "experiments" / "english" / "results"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny treebank in three files."""
    folder = tmp_path_factory.mktemp("ewt")
    sentences = list(read_treebank(ROOT / "examples" / "tiny.conllu"))
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
        english.run(tmp_path, tmp_path, languages=None, quick=True, threads=1, say=print)
    with pytest.raises(TreebankError, match="no parser 'danish'"):
        english.run(data, tmp_path, languages=["danish"], quick=True, threads=1, say=print)


@pytest.mark.parametrize("page", ["docs/results.md", "docs/models/en.md"])
def test_figures_shown_are_those_measured(page: str) -> None:
    """Every row of a parser in a table is as the experiment's own table has it."""
    table = english.table_text(RESULTS)
    shown = (ROOT / page).read_text("utf-8")
    rows = re.findall(r"^\| \*\*(?:en|without-clusters|gold-tags)[^\n]*$", shown, re.MULTILINE)
    assert rows
    for row in rows:
        assert row in table


def test_the_model_that_comes_along_is_the_one_measured() -> None:
    found = json.loads((RESULTS / "en.json").read_text("utf-8"))
    embedded = ROOT / "src" / "headway" / "embedded" / "en.headway"
    assert embedded.stat().st_size == found["bytes"] <= 25_000_000
    about = Parser.load("en").model.about
    assert about["train"]["sha256"] == found["signature"]["data"]["train"]
