"""Partial annotation: which heads are kept, what each row learns from, and that nothing is computed twice."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from headway.pipeline import Parser
from headway.training.arc_problem import ArcProblem
from headway.training.arc_trainer import prepare_arcs
from headway.training.data import TrainingData, known_heads
from headway.training.settings import Settings
from headway.training.stages import Run
from headway_papers import corpora
from headway_papers import fernandes2012_partial as experiment
from tests.models.toy_treebank import sentences

ROWS = ("latent", "observed", "sentences", "all")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("conllx")
    for name, count in (("train", 40), ("test", 12)):
        (folder / "toyish").mkdir(exist_ok=True)
        text = "".join(s.to_conllx() for s in sentences(count, count, crossing=True, two_roots=True))
        (folder / "toyish" / f"{name}.conll").write_text(text, encoding="utf-8")
    return folder


def run(data: Path, output: Path) -> list[str]:
    said: list[str] = []
    experiment.run(data, output, languages=["toyish"], quick=True, threads=1, say=said.append)
    return said


@pytest.fixture(scope="module")
def output(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("partial")
    run(data, folder)
    return folder


def cells_of(output: Path) -> dict[str, dict[str, float]]:
    cells: dict[str, dict[str, float]] = json.loads((output / "quick" / "toyish.json").read_text("utf-8"))["cells"]
    return cells


def test_every_choice_comes_before_any_test(output: Path) -> None:
    names = list(cells_of(output))
    assert names[:3] == [f"held-out-{row}" for row in ROWS[:3]]
    tests = [f"test-{row}-{seed}" for seed in range(3) for row in ROWS if row != "all" or seed == 0]
    assert names[3:] == tests


def test_the_table_has_the_mean_and_every_draw(output: Path) -> None:
    cells, table = cells_of(output), (output / "quick.md").read_text("utf-8")
    lines = [line for line in table.splitlines() if line.startswith("|")][2:]
    assert len(lines) == len(ROWS)
    for row, line in zip(ROWS, lines, strict=True):
        draws = [cells[name]["uas_no_punct"] for name in cells if name.startswith(f"test-{row}-")]
        shown = ", ".join(f"{draw:.2f}" for draw in draws)
        assert line.endswith(f"| {np.mean(draws):.2f} | {shown} |")


def test_nothing_is_computed_twice(data: Path, output: Path) -> None:
    before = (output / "quick" / "toyish.json").read_bytes()
    said = run(data, output)
    assert len(said) == 1  # the table
    assert (output / "quick" / "toyish.json").read_bytes() == before


def test_the_latent_row_is_what_headway_train_gives(data: Path, output: Path) -> None:
    corpus, cells = corpora.Corpus.read(data, "toyish"), cells_of(output)
    for seed in (0, 2):
        cell = cells[f"test-latent-{seed}"]
        settings = {"c": cell["c"], "epochs": int(cell["passes"]), "seed": seed, "labels": "none", "tags": "gold"}
        parser = Parser.train(experiment.hidden(corpus.train, 0.3, seed), single_root=False, **settings)
        assert corpora.test_once(parser, corpus, 1).uas_no_punct == cell["uas_no_punct"]
        assert parser.model.about["train"]["heads"]["known"] == cell["heads"]


def test_choices_are_the_best_held_out_ones(output: Path) -> None:
    for row in ROWS[:3]:
        cell = cells_of(output)[f"held-out-{row}"]
        trials: list[dict[str, float]] = cell["trials"]  # type: ignore[assignment]
        assert [trial["c"] for trial in trials] == [100.0, 200.0]
        scores = {(trial["c"], k): score for trial in trials for k, score in enumerate(trial["scores"], start=1)}  # type: ignore[arg-type, var-annotated]
        best = max(scores, key=lambda at: scores[at])
        assert (cell["c"], cell["passes"], cell["held_out"]) == (*best, scores[best])
        for name, test in cells_of(output).items():
            if name.startswith(f"test-{row}-"):
                assert (test["c"], test["passes"]) == best


def test_hidden_heads() -> None:
    text = sentences(30, 1)
    words = sum(map(len, text))
    some = experiment.hidden(text, 0.3, 0)
    assert known_heads(some) == (round(0.3 * words), words)
    for one, whole in zip(some, text, strict=True):
        assert one.forms == whole.forms
        if one.heads is not None and whole.heads is not None:
            known = one.heads >= 0
            np.testing.assert_array_equal(one.heads[known], whole.heads[known])
    again, other = experiment.hidden(text, 0.3, 0), experiment.hidden(text, 0.3, 1)
    assert [s.to_conllu() for s in again] == [s.to_conllu() for s in some] != [s.to_conllu() for s in other]
    assert known_heads(experiment.hidden(text, 1.0, 0)) == (words, words)


def test_whole_sentences_fit_into_the_heads() -> None:
    text = sentences(50, 1)
    found = experiment.drawn(text, 100, 0)
    spent = sum(map(len, found))
    assert 100 - max(map(len, text)) < spent <= 100
    assert all(any(one is whole for whole in text) for one in found)
    assert len({id(one) for one in found}) == len(found)
    assert experiment.drawn(text, 100, 1) != found


def test_observed_updates_touch_known_words_only() -> None:
    some = experiment.hidden(sentences(12, 1), 0.4, 0)
    prepared = prepare_arcs(TrainingData(some), Settings(labels="none").complete(), Run())
    problem = ArcProblem(prepared.problem.scorer, prepared.problem.structures, prepared.trees.coded, prepared.trees)
    every, heads = np.arange(len(problem.lengths)), prepared.trees.heads
    scores = np.random.default_rng(0).normal(size=(len(every), heads.shape[1], heads.shape[1]))
    these = problem.some(every)
    whole, found = these.best(scores), experiment.Observed(problem).some(every).best(scores)
    for b, m in np.ndindex(*heads.shape):
        if heads[b, m] >= 0:
            np.testing.assert_array_equal(found[b, :, m], whole[b, :, m])
        else:
            assert not (these.gold() - found)[b, :, m].any()


def test_committed_tables_are_those_of_the_results_and_in_the_readme() -> None:
    folder = Path(__file__).resolve().parents[2] / "experiments" / "fernandes2012" / "partial"
    cells = json.loads((folder / "results" / "danish.json").read_text("utf-8"))["cells"]
    table = experiment.table_text("danish", cells)
    assert (folder / "tables.md").read_text("utf-8") == table
    readme = (folder.parents[2] / "docs" / "results.md").read_text("utf-8").splitlines()
    lines = [line for line in table.splitlines() if line.startswith("|")]
    assert len(lines) == 6
    assert all(line in readme for line in lines)
