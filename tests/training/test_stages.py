"""The stages of a training: after an interruption, nothing that was finished is computed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.archive import CHECKPOINT, Archive, load_archive, save_archive
from headway.errors import ArchiveError
from headway.learning.checkpoint import CheckpointWarning
from headway.learning.monitor import Progress
from headway.pipeline import Parser
from headway.text.segmenter import Segmenter
from headway.text.tagger import FOLDS, Tagger
from headway.training import higher_order_trainer
from headway.training.development import ArcDevelopment
from headway.training.settings import Settings
from headway.training.stages import Checkpoint, Run, fingerprint, remove_stages

from ..models.toy_treebank import sentences

TRAIN, DEV = sentences(12, 1, crossing=True), sentences(5, 2)
SETTINGS: dict[str, dict[str, Any]] = {
    "arc": {"model": "arc", "epochs": 2},
    "two runs": {"model": "arc", "epochs": 2, "runs": 2},
    "grandsibling": {"model": "grandsibling", "epochs": 2},
}
TEXT_STAGES = ("segmenter", "tagger", *(f"jack-knife-{k}" for k in range(1, FOLDS + 1)))
STAGES = {
    "arc": [*TEXT_STAGES, "parser-1", "calibration-2-10", "labels-1"],
    "two runs": [*TEXT_STAGES, "parser-1", "parser-2", "calibration-2-10", "labels-1", "labels-2"],
    "grandsibling": [*TEXT_STAGES, "pruner", "parser-1", "labels-1", "calibration-2-10"],
}
Work = Counter[Any]


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Counts what is computed; passes of learners are counted by what is shown of them."""
    done: Work = Counter()

    def counted(owner: Any, name: str, what: str) -> None:
        own = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            done[what] += 1
            return own(*arguments, **options)

        monkeypatch.setattr(owner, name, call)

    counted(Segmenter, "learn", "segmenter")
    counted(Tagger, "learn", "tagger")
    counted(higher_order_trainer, "calibrate", "calibration")
    scale = ArcDevelopment.scale

    def counted_scale(self: ArcDevelopment, weights: Any) -> float:
        done["calibration"] += 1
        return scale(self, weights)

    monkeypatch.setattr(ArcDevelopment, "scale", counted_scale)
    return done


def train(name: str, work: Work | None = None, checkpoint: Path | None = None, **more: Any) -> Parser:
    def show(progress: Progress) -> None:
        if work is not None and progress.stage in ("pruner", "tree", "labels"):
            work[progress.stage, progress.number] += 1

    return Parser.train(TRAIN, DEV, checkpoint=checkpoint, show=show, **{**SETTINGS[name], **more})


def file_of(parser: Parser, folder: Path) -> Archive:
    parser.save(folder / "model")
    return load_archive(folder / "model")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Archive]:
    """The file of a training that was not interrupted."""

    @cache
    def made(name: str, **more: Any) -> Archive:
        return file_of(train(name, **more), tmp_path_factory.mktemp("whole"))

    return made


def assert_same_file(ours: Archive, theirs: Archive) -> None:
    assert ours.kind == theirs.kind
    assert ours.data == theirs.data
    assert ours.arrays.keys() == theirs.arrays.keys()
    for name, array in ours.arrays.items():
        np.testing.assert_array_equal(array, theirs.arrays[name], err_msg=name)


def interrupt_after(stage: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Raise as soon as so many stages are finished; the names of those that were begun."""
    names: list[str] = []

    def ending(own: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Run, name: str, *arguments: Any, **options: Any) -> Any:
            names.append(name)
            made = own(self, name, *arguments, **options)
            if len(names) == stage:
                raise KeyboardInterrupt
            return made

        return call

    monkeypatch.setattr(Run, "stage", ending(Run.stage))
    monkeypatch.setattr(Run, "fit", ending(Run.fit))
    return names


def test_every_stage_leaves_a_file(tmp_path: Path, work: Work) -> None:
    for name, stages in STAGES.items():
        train(name, work, tmp_path / name)
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == sorted(f"{each}.stage" for each in stages)
        assert work["segmenter"] == work["calibration"] == 1
        assert work["tagger"] == 1 + FOLDS
        work.clear()


@pytest.mark.parametrize("name", SETTINGS)
def test_nothing_finished_is_done_again(
    name: str, tmp_path: Path, work: Work, whole: Callable[..., Archive], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted after every stage in turn: all parts together do the work once, and the model is the same."""
    expected, folder = whole(name), tmp_path / "checkpoint"
    work.clear()
    for stage in range(1, len(STAGES[name]) + 1):
        before = work.copy()
        with monkeypatch.context() as patched:
            begun = interrupt_after(stage, patched)
            with pytest.raises(KeyboardInterrupt):
                train(name, work, folder)
        assert begun == STAGES[name][:stage]
        assert work.total() > before.total()  # the new stage
    finished = work.copy()
    assert finished.pop("tagger") == 1 + FOLDS
    passes = {"tree": 2, "labels": 8, **({"pruner": 4} if name == "grandsibling" else {})}
    runs = SETTINGS[name].get("runs", 1)
    of_runs = {(each, k): runs for each, most in passes.items() for k in range(1, most + 1)}
    assert finished == {"segmenter": 1, "calibration": 1, **of_runs}
    assert_same_file(file_of(train(name, work, folder), tmp_path), expected)
    assert work.total() == finished.total() + 1 + FOLDS


@pytest.mark.parametrize("stage", ["tree", "labels", "pruner"])
def test_a_learner_goes_on_where_it_was(
    stage: str, tmp_path: Path, whole: Callable[..., Archive], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted within its second pass, it makes that one again and none before."""
    monkeypatch.setattr("headway.learning.monitor.CHECKPOINT_SECONDS", -1.0)
    folder, passes = tmp_path / "checkpoint", []

    def interrupt(progress: Progress) -> None:
        if (progress.stage, progress.number) == (stage, 2):
            raise KeyboardInterrupt

    settings = SETTINGS["grandsibling"]
    with pytest.raises(KeyboardInterrupt):
        Parser.train(TRAIN, DEV, checkpoint=folder, show=interrupt, **settings)
    parser = Parser.train(TRAIN, DEV, checkpoint=folder, show=lambda p: passes.append((p.stage, p.number)), **settings)
    assert next(number for each, number in passes if each == stage) == 2
    assert_same_file(file_of(parser, tmp_path), whole("grandsibling"))


@pytest.mark.parametrize("name", SETTINGS)
def test_more_passes_are_calibrated_anew(name: str, tmp_path: Path, whole: Callable[..., Archive]) -> None:
    """The calibration of fewer passes is not that of more."""
    train(name, None, tmp_path / "checkpoint")
    longer = train(name, None, tmp_path / "checkpoint", epochs=4)
    assert_same_file(file_of(longer, tmp_path), whole(name, epochs=4))


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"tags": "gold"}, {"labels": "none"}, {"c": 3.0}, {"projective": True}, {"runs": 2}]
)
def test_a_checkpoint_of_other_settings(
    change: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        interrupt_after(1, patched)
        with pytest.raises(KeyboardInterrupt):
            train("arc", None, tmp_path / "checkpoint")
    with pytest.raises(ArchiveError, match="a checkpoint of other data or settings; delete"):
        train("arc", None, tmp_path / "checkpoint", **change)
    with pytest.raises(ArchiveError, match="a checkpoint of other data or settings; delete"):
        Parser.train(TRAIN[1:], DEV, checkpoint=tmp_path / "checkpoint", **SETTINGS["arc"])


# One stage


def run_in(folder: Path, signed: str = "signed") -> Run:
    return Run(checkpoint=Checkpoint(folder, signed))


def number_of(run: Run, value: float) -> float:
    return run.stage("number", lambda: value, lambda x: ({"x": x}, {}), lambda archive: float(archive.data["x"]))


def test_a_stage_is_made_once(tmp_path: Path) -> None:
    run = run_in(tmp_path / "checkpoint")
    assert [number_of(run, value) for value in (1.0, 2.0)] == [1.0, 1.0]
    assert [number_of(Run(), value) for value in (1.0, 2.0)] == [1.0, 2.0]
    with pytest.raises(ArchiveError, match="a checkpoint of other data or settings"):
        number_of(run_in(tmp_path / "checkpoint", "other"), 3.0)


@pytest.mark.parametrize("data", [{}, {"x": None}, {"x": "many"}, {"x": []}])
def test_a_damaged_stage(data: dict[str, Any], tmp_path: Path) -> None:
    run = run_in(tmp_path)
    save_archive(Archive(CHECKPOINT, {"fingerprint": "signed", **data}, {}), tmp_path / "number.stage")
    with pytest.raises(ArchiveError, match="the checkpoint is damaged"):
        number_of(run, 1.0)
    (tmp_path / "number.stage").write_bytes(b"PK")
    with pytest.raises(ArchiveError, match=r"the checkpoint is damaged \(not a checkpoint, or a damaged one"):
        number_of(run, 1.0)


def test_tags_of_fewer_words_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        interrupt_after(3, patched)
        with pytest.raises(KeyboardInterrupt):
            train("arc", None, tmp_path)
    path = tmp_path / "jack-knife-1.stage"
    whole = load_archive(path, CHECKPOINT)
    for data, arrays in (({"upos": []}, {}), ({}, {"upos": whole.arrays["upos"][1:]}), ({"upos": None}, {})):
        save_archive(Archive(CHECKPOINT, {**whole.data, **data}, {**whole.arrays, **arrays}), path)
        with pytest.raises(ArchiveError, match="the checkpoint is damaged"):
            train("arc", None, tmp_path)


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder", "utf-8")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.warns(CheckpointWarning, match="no checkpoint can be written there"):
            assert number_of(run_in(folder), 1.0) == 1.0
    assert number_of(run_in(tmp_path / "new" / "below"), 1.0) == 1.0


def test_only_the_files_of_stages_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    remove_stages(folder)  # there is none
    number_of(run_in(folder), 1.0)
    (folder / "mine.txt").write_text("keep me", "utf-8")
    remove_stages(folder)
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    (folder / "mine.txt").unlink()
    number_of(run_in(folder), 1.0)
    remove_stages(folder)
    assert not folder.exists()
    file = tmp_path / "file"
    file.write_text("no folder", "utf-8")
    remove_stages(file)
    assert file.exists()


def test_the_signature_is_of_settings_tables_and_clusters(tmp_path: Path) -> None:
    table, clusters = tmp_path / "table.txt", tmp_path / "paths"
    table.write_text("h.xpos m.xpos | dir\n", "utf-8")
    clusters.write_text("01\tthe\n", "utf-8")
    settings = Settings(templates=str(table), clusters=str(clusters)).complete()
    signed = fingerprint(settings, "a", "b")
    assert fingerprint(settings, "a", "b") == signed
    assert fingerprint(settings, "a", "c") != signed
    assert fingerprint(replace(settings, epochs=3, patience=2), "a", "b") == signed
    clusters.write_text("10\tthe\n", "utf-8")
    assert fingerprint(settings, "a", "b") != signed
    clusters.write_text("01\tthe\n", "utf-8")
    table.write_text("h.xpos m.xpos | dist\n", "utf-8")
    assert fingerprint(settings, "a", "b") != signed


def test_the_rates_of_a_network_depend_on_how_many_passes_there_are() -> None:
    settings = Settings(model="neural").complete()
    signed = fingerprint(settings, "a")
    assert fingerprint(replace(settings, patience=2), "a") == signed
    assert fingerprint(replace(settings, epochs=3), "a") != signed
