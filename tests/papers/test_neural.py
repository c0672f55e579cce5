"""Neural experiments: cells are kept and counted right, trials never see the test, tables say what is missing."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headway import Parser
from headway.errors import TrainingError, TreebankError
from headway.evaluation import paired_bootstrap, sign_test
from headway.inference import TreeDistribution
from headway.treebank import is_punctuation, require_tree
from headway_papers import neural, neural_plan, neural_tables, neural_training, neural_workers
from headway_papers.corpora import Corpus, write_json
from headway_papers.fernandes2012_partial import hidden
from headway_papers.neural_plan import CELLS, Cell
from headway_papers.neural_training import Job, Parts, compute, packed, unpacked
from tests.models import toy_treebank
from tests.neural import tiny

pytest.importorskip("torch")
pytest.importorskip("onnxruntime")


def nothing(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Danish with several roots in CoNLL-X, and Hungarian and English in UD."""
    folder = tmp_path_factory.mktemp("data")
    danish = folder / "conllx" / "danish"
    danish.mkdir(parents=True)
    for name, count in (("train", 40), ("test", 12)):
        text = "".join(s.to_conllx() for s in toy_treebank.sentences(count, count, crossing=True, two_roots=True))
        (danish / f"{name}.conll").write_text(text, encoding="utf-8")
    for treebank in ("Hungarian-Szeged", "English-EWT"):
        ud = folder / "ud" / f"UD_{treebank}"
        ud.mkdir(parents=True)
        for seed, part in enumerate(("train", "dev", "test")):
            text = "".join(s.to_conllu() for s in tiny.sentences(20 - 5 * seed, seed))
            (ud / f"x-ud-{part}.conllu").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def output(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("neural")
    cells = ("conllx/danish-*-loglinear-1", "conllx/danish-*-entropy-1", "partial/*-entropy-*-2", "ud/hun*-1")
    neural.run(data, folder, quick=True, cells=cells, say=nothing)
    return folder


def cell_of(output: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "quick-results" / f"{name}.json").read_text("utf-8"))
    return found


def test_the_cells_asked_for_are_there_and_say_where_they_come_from(output: Path) -> None:
    names = {path.stem for path in (output / "quick-results").glob("*.json")}
    assert names == {
        "danish-lstm-loglinear-1",
        "danish-lstm-cross-entropy-1",
        "danish-lstm-cross-entropy-30percent-2",
        "hungarian-lstm-loglinear-1",
    }
    for name in names:
        cell = cell_of(output, name)
        assert cell["settings"]["seed"] == int(name[-1])
        assert cell["network"]["hidden"] == 12
        assert len(cell["data"]["train"]) == len(cell["test_data"]) == 16
        assert len(cell["history"]) == cell["passes"] == 2
    assert cell_of(output, "danish-lstm-cross-entropy-30percent-2")["settings"]["learner"] == "cross-entropy"
    assert not cell_of(output, "danish-lstm-loglinear-1")["settings"]["single_root"]
    assert cell_of(output, "hungarian-lstm-loglinear-1")["settings"]["single_root"]


def test_the_words_kept_are_those_of_the_scores(data: Path, output: Path) -> None:
    test = Corpus.read(data / "conllx", "danish").test
    forms = [form for sentence in test for form in sentence.forms]
    cell = cell_of(output, "danish-lstm-loglinear-1")
    plain = np.array([not is_punctuation(form) for form in forms])
    for which, all_words, without in (("heads", "uas", "uas_no_punct"), ("arcs", "las", "las_no_punct")):
        right = unpacked(cell[f"right_{which}"], len(forms))
        assert 100 * right.mean() == pytest.approx(cell["test"][all_words])
        assert 100 * (right & plain).sum() / plain.sum() == pytest.approx(cell["test"][without])
    about = json.loads((output / "quick-results" / "treebanks" / "danish.json").read_text("utf-8"))
    assert about["lengths"] == " ".join(str(len(sentence)) for sentence in test)
    np.testing.assert_array_equal(unpacked(about["not_punctuation"], len(forms)), plain)
    assert not set(forms) & set(
        (output / "quick-results" / "danish-lstm-loglinear-1.json").read_text("utf-8").split('"')
    )


def test_columns_are_scored_where_they_are_predicted(output: Path) -> None:
    columns = {"upos", "xpos", "feats", "lemmas", "las_2018"}
    assert columns < cell_of(output, "hungarian-lstm-loglinear-1")["test"].keys()
    assert not columns & cell_of(output, "danish-lstm-loglinear-1")["test"].keys()


def test_what_learns_scores_well(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In 40 passes, on the GPU's way and from a byte a weight; and its probabilities are sharpened or flattened."""
    more = {"epochs": 40, "batch": 40, "hidden": 24, "embedding": 16, "arc_size": 24, "rate": 1e-2, "averaging": 0.8}
    monkeypatch.setattr(neural_plan, "QUICK", {**neural_plan.QUICK, **more})
    found = compute(Cell("ewt", "lstm", "loglinear", 1), Job(data, tmp_path, None, quick=True), nothing)
    assert found["test"]["las"] > 95
    assert found["test"]["upos"] > 95
    assert found["int8"]["las"] > 90
    errors = found["dev"]["calibration"]
    assert errors["expected_error"] < 0.05
    assert found["temperature"] != 1
    assert errors["expected_error"] != errors["expected_error_without_temperature"]


def test_several_networks_parse_together_and_teach_another(data: Path, tmp_path: Path) -> None:
    """Their trainings are kept, and not made again: in other processes, or here."""
    given: dict[str, Any] = {"quick": True, "say": nothing}
    together, taught = (
        Cell("danish", "lstm", "cross-entropy", 0, together=True),
        "danish-lstm-loglinear-30percent-taught",
    )
    neural.run(data, tmp_path, cells=[f"conllx/{together.name}"], processes=2, **given)
    models = tmp_path / "models"
    made = {path.name: path.stat().st_mtime_ns for path in models.iterdir()}
    assert {name[:-17] for name in made} == {f"quick-results-danish-lstm-cross-entropy-{seed}" for seed in (1, 2, 3)}
    cell = cell_of(tmp_path, together.name)
    assert cell["networks"] == [f"danish-lstm-cross-entropy-{seed}" for seed in (1, 2, 3)]
    test = Corpus.read(data / "conllx", "danish").test
    mean = sum(
        np.concatenate([parsed.marginals.ravel() for parsed in Parser.load(models / name).parse(test)]) for name in made
    )
    ends = np.cumsum([(len(sentence) + 1) ** 2 for sentence in test])
    right = []
    for sentence, own in zip(test, np.split(mean, ends[:-1]), strict=True):
        best = TreeDistribution(own.reshape(len(sentence) + 1, -1), single_root=False).argmax()
        right += [a == b for a, b in zip(best[1:], require_tree(sentence)[1:], strict=True)]
    assert 100 * np.mean(right) == pytest.approx(cell["test"]["uas"])

    neural.run(data, tmp_path, cells=[f"conllx/{together.name}", f"partial/{taught}-2"], **given)
    assert all((models / name).stat().st_mtime_ns == when for name, when in made.items())
    assert Job(data, tmp_path / "quick-results", None, quick=True).untrained([together]) == []
    other = Job(data, tmp_path / "quick-results", None, quick=True, dev_only=True)  # of fewer sentences
    assert len(other.untrained([together])) == 3
    seeds = {Parser.load(path).model.about["settings"]["seed"] for path in models.iterdir() if path.name not in made}
    assert seeds == {2, 102, 202}  # of the same heads
    learnt = cell_of(tmp_path, f"{taught}-2")
    untaught = Cell("danish", "lstm", "loglinear", 2, share=0.3).own_settings(quick=True)["epochs"]
    assert learnt["passes"] == untaught // 2
    table = neural_tables.tables_text(tmp_path / "quick-results")
    figures = " | ".join(f"{cell['test'][score]:.2f}" for score in ("uas_no_punct", "las_no_punct"))
    assert f"| Danish | cross-entropy, the networks of all seeds together | {figures} |" in table
    assert f"say of all heads | {learnt['test']['uas_no_punct']:.2f} |  |" in table


@pytest.mark.parametrize("processes", [1, 2])
def test_work_side_by_side_says_what_it_returns_in_its_order(processes: int) -> None:
    said: list[str] = []
    work = [partial(pow, number, 2, None) for number in (3, 4, 5)]
    neural_workers.side_by_side(work, processes, said.append)  # type: ignore[arg-type]
    assert said == [9, 16, 25]
    with pytest.raises(ValueError, match="invalid literal"):
        neural_workers.side_by_side([partial(int, "no")], processes, said.append)  # type: ignore[list-item]


def test_networks_that_parse_together_say_nothing_of_the_speed_of_trainings() -> None:
    estimates, training = neural_workers.Estimates(), Cell("danish", "lstm", "margin", 1)
    before = estimates.seconds(training)
    estimates.learn(Cell("danish", "lstm", "margin", 0, together=True), 0.0)
    assert estimates.seconds(training) == before


def test_nothing_is_computed_twice_unless_its_settings_change(
    data: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(neural, "compute", lambda cell, *_: asked.append(cell.name))
    cells = tuple(f"conllx/danish-lstm-{learner}-1" for learner in neural_tables.LEARNERS)
    neural.run(data, output, quick=True, cells=cells, say=nothing)
    assert asked == ["danish-lstm-margin-1"]
    monkeypatch.setitem(neural_plan.SETTINGS, "danish-lstm-loglinear", {"smoothing": 0.1})
    neural.run(data, output, quick=True, cells=cells, say=nothing)
    assert asked[1:] == ["danish-lstm-loglinear-1", "danish-lstm-margin-1"]


def test_trials_never_read_the_test(data: Path, tmp_path: Path) -> None:
    (tmp_path / "conllx" / "danish").mkdir(parents=True)
    train = (data / "conllx" / "danish" / "train.conll").read_bytes()
    (tmp_path / "conllx" / "danish" / "train.conll").write_bytes(train)
    given: dict[str, Any] = {"quick": True, "cells": ["conllx/danish-lstm-loglinear-1"], "say": nothing}
    neural.run(tmp_path, tmp_path / "out", dev_only=True, **given)
    cell = json.loads((tmp_path / "out" / "quick-trials" / "danish-lstm-loglinear-1.json").read_text("utf-8"))
    assert "uas" in cell["dev"]
    assert "test" not in cell
    assert not (tmp_path / "out" / "quick.md").exists()
    with pytest.raises(TreebankError, match=r"has no test\.conll"):
        neural.run(tmp_path, tmp_path / "out", **given)


def test_partial_trees_know_the_heads_that_the_linear_models_know(data: Path, tmp_path: Path) -> None:
    train = Corpus.read(data / "conllx", "danish").train
    job = Job(data, tmp_path, None)
    for seed in (1, 3):
        parts = Parts.of(Cell("danish", "lstm", "loglinear", seed, share=0.3), job)
        wanted = hidden(train, 0.3, seed - 1)
        assert [s.to_conllx() for s in parts.train] == [s.to_conllx() for s in wanted]
        assert parts.dev is None


def test_settings_are_chosen_on_a_tenth_that_is_not_learnt_from(data: Path, tmp_path: Path) -> None:
    train = Corpus.read(data / "conllx", "danish").train
    parts = Parts.of(Cell("danish", "lstm", "loglinear", 1), Job(data, tmp_path, None, dev_only=True))
    assert parts.dev is not None
    assert [s.to_conllx() for s in (*parts.train, *parts.dev)] == [s.to_conllx() for s in train]
    assert len(parts.dev) == 4


def test_a_learning_curve_adds_sentences_and_all_models_learn_from_the_same(data: Path, tmp_path: Path) -> None:
    job = Job(data, tmp_path, None)

    def learnt(model: str, amount: int | None) -> list[str]:
        return [s.to_conllu() for s in Parts.of(Cell("hungarian", model, "loglinear", 1, amount), job).train]

    few, more, every = learnt("lstm", 4), learnt("arc", 9), learnt("lstm", None)
    assert (len(few), len(more), len(every)) == (4, 9, 20)
    assert learnt("grandsibling", 4) == few
    assert set(few) < set(more) <= set(every)
    assert few != every[:4]


def test_a_linear_cell(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neural_plan, "QUICK", {"epochs": 3})
    found = compute(Cell("danish", "arc", "margin", 0, 20), Job(data, tmp_path, None, quick=True), nothing)
    assert found["sentences"] == 20
    assert found["test"]["uas_no_punct"] > 80


def test_linear_cells_have_the_same_settings_however_much_they_learn_from() -> None:
    for amount in neural_plan.AMOUNTS:
        few, every = (Cell("danish", "grandsibling", "margin", 0, number) for number in (amount, None))
        assert few.own_settings(quick=False) == every.own_settings(quick=False)


def test_what_matters_most_comes_first() -> None:
    names = [cell.name for _, cell in CELLS]
    assert len(set(names)) == len(names)
    order = [
        "ewt-minilm-loglinear-1",
        "danish-lstm-loglinear-1",
        "swedish-lstm-loglinear-1",
        "danish-lstm-loglinear-2",
        "dutch-lstm-cross-entropy-1",
        "danish-lstm-loglinear-30percent-1",
        "gum-lstm-loglinear-1",
        "ewt-minilm-loglinear-100-1",
        "danish-lstm-margin-1",
        "ewt-grandsibling-margin-0",
    ]
    assert [name for name in names if name in order] == order
    usual = neural_plan.chosen_cells((), None)
    assert {cell.model for cell in usual} == {"lstm", "minilm"}
    assert len(usual) == sum(table != "linear" for table, _ in CELLS)
    assert {cell.treebank for cell in neural_plan.chosen_cells(["conllx/*"], ["dutch"])} == {"dutch"}


def test_an_encoder_is_asked_for_before_anything_is_done(data: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="ewt-minilm-loglinear-1 needs a folder"):
        neural.run(data, tmp_path / "out", say=nothing)
    assert not (tmp_path / "out").exists()


def test_tables_name_what_is_missing(output: Path) -> None:
    table = neural_tables.tables_text(output / "quick-results")
    cell = cell_of(output, "danish-lstm-loglinear-1")
    assert f"| Danish | tree likelihood | {cell['test']['uas_no_punct']:.2f} |" in table
    assert "Missing, with their seeds: dutch-lstm-loglinear 1, 2, 3;" in table
    assert "; danish-lstm-loglinear 2, 3; dutch-lstm-cross-entropy 1, 2, 3, together;" in table
    assert (
        "Missing, with their seeds: danish-lstm-loglinear-30percent 1, 2, 3; danish-lstm-cross-entropy-30percent 1, 3;"
        in table
    )
    assert "danish-arc-margin 0" in table


def test_learners_are_compared_sentence_by_sentence_over_all_seeds_that_both_have(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 12, 30)
    words = int(lengths.sum())
    plain = rng.random(words) < 0.8
    (tmp_path / "treebanks").mkdir()
    about = {"lengths": " ".join(map(str, lengths)), "not_punctuation": packed(plain)}
    write_json(tmp_path / "treebanks" / "danish.json", about)
    right = {}
    for learner, share in (("loglinear", 0.9), ("cross-entropy", 0.8)):
        for seed in (1, 2) if learner == "loglinear" else (1, 2, 3):
            heads = rng.random(words) < share
            arcs = heads & (rng.random(words) < 0.9)
            right[learner, seed] = heads, arcs
            errors = {"expected_error": 0.01, "expected_error_without_temperature": 0.05}
            scores = {"uas_no_punct": 90.0, "las_no_punct": 80.0, "calibration": errors}
            kept = {"right_heads": packed(heads), "right_arcs": packed(arcs), "temperature": 1.25}
            name = Cell("danish", "lstm", learner, seed).name
            write_json(tmp_path / f"{name}.json", {**kept, "dev": scores, "test": scores})

    def per_sentence(learner: str, which: int) -> list[int]:
        counts, start = [], 0
        for length in lengths.tolist():
            own = slice(start, start + length)
            counts.append(sum(int((right[learner, seed][which] & plain)[own].sum()) for seed in (1, 2)))
            start += length
        return counts

    starts = np.concatenate(([0], np.cumsum(lengths)))
    total = [2 * int(plain[a:b].sum()) for a, b in pairwise(starts.tolist())]
    row = ["| Danish | 2"]
    for which in (0, 1):
        a, b = per_sentence("loglinear", which), per_sentence("cross-entropy", which)
        test = paired_bootstrap(a, b, total)
        row += [f"{test.difference:+.2f}", f"{test.low:+.2f} to {test.high:+.2f}", f"{test.p_value:.4f}"]
        row.append(f"{sign_test(a, b).p_value:.4f}")
    table = neural_tables.tables_text(tmp_path)
    assert " | ".join(row) + " |" in table


def test_calibration_is_that_of_development_sentences(tmp_path: Path) -> None:
    for seed, error in ((1, 0.01), (2, 0.02)):
        errors = {"expected_error": error, "expected_error_without_temperature": 0.05}
        scores = {"uas": 90.0, "las": 80.0, "calibration": errors}
        cell = {"temperature": 1.25, "dev": scores, "test": scores, "int8": None}
        write_json(tmp_path / f"{Cell('ewt', 'minilm', 'loglinear', seed).name}.json", cell)
    assert "| UD English-EWT | tree likelihood | 5.00 | 1.50 | 1.25 |" in neural_tables.tables_text(tmp_path)


@contextmanager
def in_threads(count: int, job: Job) -> Iterator[list[Any]]:
    """Workers as threads of this process."""
    workers = []
    for _ in range(count):
        ours, theirs = Pipe()
        threading.Thread(target=neural_workers._work, args=(theirs, job), daemon=True).start()
        workers.append(neural_workers._Worker(SimpleNamespace(exitcode=1), ours))  # type: ignore[arg-type]
    yield workers
    for worker in workers:
        worker.connection.close()


def test_workers_take_what_fits_into_the_time_and_go_on_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def computed(cell: Cell, *_: Any) -> dict[str, float]:
        if cell.seed == 2:
            raise TrainingError("the loss is not a number")
        done.append(cell.name)
        return {"training_seconds": 1000.0}

    monkeypatch.setattr(neural_training, "compute", computed)
    monkeypatch.setattr(neural_workers, "_workers", in_threads)
    monkeypatch.setattr(neural_workers.signal, "signal", lambda *_: None)
    monkeypatch.setattr(neural_workers.shutil, "which", lambda _: None)
    cells = [
        Cell("dutch", "lstm", "loglinear", 2),
        Cell("danish", "lstm", "loglinear", 1),
        Cell("swedish", "lstm", "loglinear", 1),
        Cell("danish", "grandsibling", "margin", 0),
        Cell("danish", "lstm", "loglinear", 1, 100),
    ]
    said: list[str] = []
    job = Job(tmp_path, tmp_path, None)
    neural_workers.compute_all(cells, job, processes=1, seconds=600, say=said.append)
    assert done == ["danish-lstm-loglinear-1", "danish-lstm-loglinear-100-1"]  # Swedish takes twice 1,000 seconds
    assert "dutch-lstm-loglinear-2: failed" in said[0]
    assert "the loss is not a number" in said[0]
    assert said[1:] == ["not begun: swedish-lstm-loglinear-1, danish-grandsibling-margin-0"]


def test_the_service_that_shares_a_gpu_is_ended_and_left_alone_where_it_does_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, control = tmp_path / "log", tmp_path / neural_workers._CONTROL
    control.write_text(f'#!/bin/sh\n[ "$1" = -d ] && echo "start $CUDA_MPS_PIPE_DIRECTORY" >> {log} || cat >> {log}\n')
    control.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    for works in (True, False):
        monkeypatch.setattr(neural_workers, "_sees_gpu", lambda works=works: works)
        log.unlink(missing_ok=True)
        with neural_workers.shared_gpu(nothing):
            folder = os.environ.get("CUDA_MPS_PIPE_DIRECTORY")
            assert (folder is not None) == works
            assert log.read_text("utf-8").count("quit") == (not works)
        assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ
        assert log.read_text("utf-8").count("quit") == 1
