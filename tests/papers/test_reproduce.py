"""The experiments run on any CoNLL-X folder, make their tables from what is there, and compute nothing twice."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headway.errors import TreebankError
from headway.evaluation import evaluate, sign_test
from headway.pipeline import Parser
from headway.text.tagger import Tagger
from headway.training.tuning import Trial, Tuning, tune
from headway_papers import corpora, fernandes2012, first_order, koo2007, koo2010
from headway_papers.corpora import Corpus
from tests.models.toy_treebank import sentences

OPTIONS: dict[str, Any] = {"quick": True, "threads": 1}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two languages: one plain, with a test file in gzip, one with crossing arcs and several roots."""
    folder = tmp_path_factory.mktemp("conllx")
    for seed, language in enumerate(["dutch", "toyish"]):
        kinds = {"crossing": True, "two_roots": language == "toyish"}
        (folder / language).mkdir()
        train = "".join(s.to_conllx() for s in sentences(30, seed, **kinds))
        test = "".join(s.to_conllx() for s in sentences(12, 10 + seed, **kinds))
        (folder / language / "train.conll").write_text(train, encoding="utf-8")
        (folder / language / "test.conll.gz").write_bytes(gzip.compress(test.encode()))
    (folder / "notes").mkdir()
    return folder


@pytest.fixture(scope="module")
def koo(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("koo2007")
    koo2007.run(data, output, languages=None, say=lambda line: None, **OPTIONS)
    return output


def test_koo2007_makes_every_cell_and_the_tables(koo: Path) -> None:
    cells = {path.stem for path in (koo / "quick").glob("*-*-*.json")}
    learners = ("perceptron", "eg", "loglinear")
    assert cells == {f"{x}-{y}-{z}" for x in ("dutch", "toyish") for y in learners for z in ("p", "np")}
    tables = (koo / "quick.md").read_text("utf-8")
    cell = json.loads((koo / "quick" / "dutch-perceptron-np.json").read_text("utf-8"))
    assert f"{cell['uas']:.2f} (78.83)" in tables  # ours, and the paper's beside it
    assert "| toyish |" in tables
    assert tables.count("## Table") == 3
    assert "<svg" in (koo / "quick-convergence.svg").read_text("utf-8")


def test_koo2007_chooses_on_held_out_data_and_tests_that_model(koo: Path, data: Path) -> None:
    cell = json.loads((koo / "quick" / "toyish-perceptron-np.json").read_text("utf-8"))
    corpus = Corpus.read(data, "toyish")
    assert not corpus.single_root
    tuning = tune(corpus.train, grid=cell["signature"]["grid"], **cell["signature"]["settings"])
    Parser.of(tuning.model, tuning.text_models).save(koo / "single-precision.headway")
    parser = Parser.load(koo / "single-precision.headway")
    scores = evaluate(corpus.test, [found.sentence for found in parser.parse(corpus.test)])
    assert cell["uas"] == scores.uas_no_punct
    assert cell["right"] == scores.per_sentence_no_punct.heads.tolist()


def test_koo2007_table_3_goes_by_held_out_scores_and_the_sign_test_by_sentence(koo: Path) -> None:
    cells = {path.stem: json.loads(path.read_text("utf-8")) for path in (koo / "quick").glob("*-*-*.json")}

    def chosen(language: str, learner: str) -> dict[str, Any]:
        return max((cells[f"{language}-{learner}-{kind}"] for kind in ("p", "np")), key=lambda cell: cell["validation"])

    tables = (koo / "quick.md").read_text("utf-8")
    rows = {letter: [chosen(language, name)["uas"] for language in ("dutch", "toyish")]
            for letter, name in (("P", "perceptron"), ("E", "eg"), ("L", "loglinear"))}  # fmt: skip
    for letter, (one, two) in rows.items():
        assert f"| {letter} | {one:.2f} | {two:.2f} | {(one + two) / 2:.2f} |" in tables
    ours, theirs = ([x for language in ("dutch", "toyish") for x in chosen(language, name)["right"]]
                    for name in ("eg", "perceptron"))  # fmt: skip
    test = sign_test(ours, theirs)
    shown = f"| {test.wins} | {test.losses} | {test.p_value:.2g} |"
    assert f"| Max-margin | chosen on held-out data | dutch, toyish {shown}" in tables


def test_published_figures_are_with_gold_tags(koo: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell says so, and no tagger is trained for any experiment."""
    monkeypatch.setattr(Tagger, "learn", lambda *_, **__: pytest.fail("a tagger is trained"))
    for path in (koo / "quick").glob("*-*-*.json"):
        settings = json.loads(path.read_text("utf-8"))["signature"]["settings"]
        assert settings["tags"] == "gold"
    assert {settings["tags"] for settings in koo2010.SETTINGS.values()} == {"gold"}
    given: list[str] = []

    def train(cls: Any, *_: Any, tags: str, **__: Any) -> Parser:
        given.append(tags)
        raise KeyboardInterrupt

    monkeypatch.setattr(Parser, "train", classmethod(train))
    monkeypatch.setattr("headway_papers.corpora.tune", partial(train, None))
    for module in (first_order, fernandes2012, koo2007):
        monkeypatch.setattr(module, "tune", partial(train, None), raising=False)
    for run in (first_order.run, fernandes2012.run, koo2007.run, koo2010.run):
        with pytest.raises(KeyboardInterrupt):
            run(data, data / "elsewhere", languages=["toyish"], say=lambda line: None, **OPTIONS)
    assert given == ["gold"] * 4


def test_koo2007_searches_until_the_best_c_lies_between_two_others(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A C at a time, whatever was interrupted; only the model of the best is tested, and once."""
    scores = {0.01: 60.0, 0.03: 70.0, 0.1: 80.0, 0.3: 75.0}
    trained: list[float] = []
    tested: list[int] = []

    def trial(train: Any, *, grid: tuple[float, ...], **settings: Any) -> Tuning:
        trained.extend(grid)
        found = tune(train, grid=grid, **{**settings, "epochs": 1})
        trials = tuple(replace(each, uas=scores[grid[0]] - each.projective) for each in found.trials)
        return replace(found, trials=trials)

    def parsed(*given: Any) -> Any:
        tested.append(1)
        return corpora.test_once(*given)

    monkeypatch.setattr(koo2007, "tune", trial)
    monkeypatch.setattr(koo2007, "test_once", parsed)
    for _ in range(4):  # each in a process of its own
        assert koo2007.Cell(Corpus.read(data, "toyish"), "eg", False, tmp_path, False, 1).advance(lambda _: None)
    found = json.loads((tmp_path / "results" / "toyish-eg-np.json").read_text("utf-8"))
    assert (trained, tested, found["c"], found["validation"]) == ([0.03, 0.1, 0.3], [1], 0.1, 80.0)
    assert found["signature"]["grid"] == [0.03, 0.1, 0.3]
    assert not koo2007.Cell(Corpus.read(data, "toyish"), "eg", False, tmp_path, False, 1).advance(lambda _: None)


def test_koo2007_keeps_a_test_where_another_c_is_no_better(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for results from before, of fewer values of C."""
    cell = koo2007.Cell(Corpus.read(data, "toyish"), "eg", True, tmp_path, True, 1)
    while cell.advance(lambda _: None):
        pass
    path = tmp_path / "quick" / "toyish-eg-p.json"
    before = json.loads(path.read_text("utf-8"))
    monkeypatch.setattr(koo2007, "test_once", lambda *_: pytest.fail("tested again"))
    worse = {**before["trials"][0], "c": 0.1, "uas": before["validation"]}
    monkeypatch.setattr(koo2007, "tune", lambda *_, **__: SimpleNamespace(trials=(Trial(**worse),), settings=None))
    tried = cell._tried(0.1, before)
    assert {name: tried[name] for name in before if name not in ("signature", "trials")} == {
        name: before[name] for name in before if name not in ("signature", "trials")
    }
    assert [trial["c"] for trial in tried["trials"]] == [0.03, 0.1] == tried["signature"]["grid"]


def test_koo2007_computes_nothing_twice(koo: Path, data: Path) -> None:
    said: list[str] = []
    before = {path: path.stat().st_mtime_ns for path in (koo / "quick").glob("*-*-*.json")}
    koo2007.run(data, koo, languages=["dutch"], say=said.append, **OPTIONS)
    assert {path: path.stat().st_mtime_ns for path in (koo / "quick").glob("*-*-*.json")} == before
    assert len(said) == 1  # the tables, no cell


def test_a_result_under_old_names_of_its_settings_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(corpora.RENAMED, "rounds", "epochs")
    path = tmp_path / "cell.json"
    corpora.write_json(path, {"signature": {"settings": {"rounds": 3, "parsing": {"rounds": 4}}}})
    assert corpora.is_done(path, {"settings": {"epochs": 3, "parsing": {"epochs": 4}}})
    assert not corpora.is_done(path, {"settings": {"epochs": 4, "parsing": {"epochs": 4}}})
    assert not corpora.is_done(path, {"settings": {"epochs": 3, "parsing": {"epochs": 3}}})


def test_first_order_trains_the_best_on_everything(data: Path, tmp_path: Path) -> None:
    first_order.run(data, tmp_path, languages=["toyish"], say=lambda line: None, **OPTIONS)
    held_out = {path.stem: json.loads(path.read_text("utf-8")) for path in (tmp_path / "quick").glob("toyish-*.json")}
    assert set(held_out) == {"toyish-perceptron", "toyish-margin", "toyish-loglinear"}
    cell = json.loads((tmp_path / "quick" / "toyish.json").read_text("utf-8"))
    chosen = cell["signature"]["settings"]
    assert held_out[f"toyish-{chosen['learner']}"]["uas"] == max(found["uas"] for found in held_out.values())
    assert (chosen["labels"], chosen["tags"]) == ("after", "gold")
    assert cell["test"]["sentences"] == 12
    assert f"| {cell['test']['uas_no_punct']:.2f} |" in (tmp_path / "quick.md").read_text("utf-8")


def test_fernandes2012_has_both_perceptrons(data: Path, tmp_path: Path) -> None:
    fernandes2012.run(data, tmp_path, languages=["dutch"], say=lambda line: None, **OPTIONS)
    table = (tmp_path / "quick.md").read_text("utf-8")
    assert "structure perceptron | 90.06 |" in table
    assert "large-margin" in table


def test_a_folder_without_treebanks_is_named(data: Path, tmp_path: Path) -> None:
    with pytest.raises(TreebankError, match="give the folder of the languages"):
        koo2007.run(tmp_path, tmp_path, languages=None, say=print, **OPTIONS)
    with pytest.raises(TreebankError, match="notes"):
        koo2007.run(data, tmp_path, languages=["notes"], say=print, **OPTIONS)
