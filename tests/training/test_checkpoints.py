"""The stage of a learner: its progress, its checkpoint, and what an interruption leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.archive import Archive, load_archive, save_archive
from headway.errors import ArchiveError
from headway.learning.monitor import Progress

from ..models.toy_treebank import sentences
from .toy_trainings import settings_for, trained

FILE = "parser-1.stage"


def test_progress_is_shown() -> None:
    shown: list[Progress] = []
    trained(settings_for("perceptron"), sentences(6, 11), sentences(3, 12), show=shown.append)
    assert [(p.stage, p.number, p.passes) for p in shown] == [("tree", number, 4) for number in (1, 2, 3, 4)]
    for progress in shown:
        assert progress.dev is not None
        assert 0 <= progress.dev <= 100
        assert set(progress.figures) == {"mistakes"}
        assert progress.seconds >= 0


def test_training_ends_when_development_scores_do_not_rise() -> None:
    settings = settings_for("perceptron", epochs=30, patience=2)
    monitor = trained(settings, sentences(20, 13), sentences(10, 14))
    scores = [entry["dev"] for entry in monitor.history]
    best = int(np.argmax(scores))
    assert len(scores) == best + 3
    assert monitor.best_pass() == best + 1


@pytest.fixture
def every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save a checkpoint after every pass."""
    monkeypatch.setattr("headway.learning.monitor.CHECKPOINT_SECONDS", -1.0)


def interrupted_at(number: int) -> Any:
    def show(progress: Progress) -> None:
        if progress.number == number:
            raise KeyboardInterrupt

    return show


@pytest.mark.usefixtures("every_pass")
@pytest.mark.parametrize(
    "name", ["perceptron", "margin", "lbfgs", "cg", "adagrad", "adam", "eg", "eg-loglinear", "expected-loss"]
)
def test_an_interrupted_training_ends_like_one_that_was_not(name: str, tmp_path: Path) -> None:
    settings = settings_for(name, epochs=9 if name in ("lbfgs", "cg", "expected-loss") else 4, labels="none")
    text, dev = sentences(12, 15, crossing=True), sentences(6, 16, crossing=True)
    whole = trained(settings, text, dev)
    folder = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        trained(settings, text, dev, folder, show=interrupted_at(3))
    assert [path.name for path in folder.iterdir()] == [FILE]
    again = trained(settings, text, dev, folder)
    assert again.history == whole.history
    assert again.best is not None
    assert whole.best is not None
    np.testing.assert_array_equal(again.best, whole.best)
    finished = trained(settings, text, dev, folder)
    np.testing.assert_array_equal(finished.best, whole.best)
    assert finished.history == whole.history


@pytest.mark.usefixtures("every_pass")
def test_more_passes_may_be_asked_for(tmp_path: Path) -> None:
    text, folder = sentences(12, 18), tmp_path / "checkpoint"
    trained(settings_for("perceptron", epochs=2), text, None, folder)
    longer = trained(settings_for("perceptron", epochs=4), text, None, folder)
    whole = trained(settings_for("perceptron", epochs=4), text)
    np.testing.assert_array_equal(longer.best, whole.best)


@pytest.mark.usefixtures("every_pass")
@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"c": 3.0}, {"projective": True}, {"labels": "none"}, {"tags": "gold"}, {"clusters": "x"}]
)
def test_checkpoints_of_other_settings_or_data(change: dict[str, Any], tmp_path: Path) -> None:
    text, folder = sentences(6, 19), tmp_path / "checkpoint"
    trained(settings_for("margin"), text, None, folder)
    before = (folder / FILE).read_bytes()
    for settings, data in ((settings_for("margin", **change), text), (settings_for("margin"), text[1:])):
        with pytest.raises(ArchiveError, match=r"of other data or settings; delete .*, or name another"):
            trained(settings, data, None, folder)
    with pytest.raises(ArchiveError, match=r"of other data or settings; delete .*, or name another"):
        trained(settings_for("margin"), text, text, folder)
    assert (folder / FILE).read_bytes() == before


@pytest.mark.usefixtures("every_pass")
def test_checkpoints_of_other_templates(tmp_path: Path) -> None:
    """A table of the same name whose lines have changed."""
    text, folder, table = sentences(6, 19), tmp_path / "checkpoint", tmp_path / "table.txt"
    table.write_text("h.xpos m.xpos | dir\n", "utf-8")
    trained(settings_for("perceptron", templates=str(table)), text, None, folder)
    table.write_text("h.xpos m.xpos | dist\n", "utf-8")
    with pytest.raises(ArchiveError, match="a checkpoint of other data or settings"):
        trained(settings_for("perceptron", templates=str(table)), text, None, folder)


def test_checkpoints_are_not_saved_all_the_time(tmp_path: Path) -> None:
    """Within the first seconds none is, but what is finished is kept at once."""
    file, seen = tmp_path / "checkpoint" / FILE, []
    show = lambda _: seen.append(file.exists())  # noqa: E731
    trained(settings_for("perceptron"), sentences(6, 20), None, tmp_path / "checkpoint", show)
    assert seen == [False] * 4
    assert file.exists()


def test_damaged_checkpoints(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    file = folder / FILE
    file.write_bytes(b"PK")
    with pytest.raises(ArchiveError, match="not a checkpoint, or a damaged one"):
        trained(settings_for("perceptron"), sentences(6, 21), None, folder)
    save_archive(Archive("parser", {}, {}), file)
    with pytest.raises(ArchiveError, match="holds a 'parser', not a checkpoint"):
        trained(settings_for("perceptron"), sentences(6, 21), None, folder)


@pytest.mark.usefixtures("every_pass")
@pytest.mark.parametrize("lost", ["best", "history", "state_weights", "state_total"])
def test_checkpoints_with_something_missing(lost: str, tmp_path: Path) -> None:
    text, folder = sentences(6, 22), tmp_path / "checkpoint"
    trained(settings_for("perceptron", epochs=2), text, None, folder)
    file = folder / FILE
    whole = load_archive(file, "checkpoint")
    data = {key: value for key, value in whole.data.items() if key != lost}
    arrays = {key: value for key, value in whole.arrays.items() if key != lost}
    save_archive(Archive("checkpoint", data, arrays), file)
    with pytest.raises(ArchiveError, match="damaged"):
        trained(settings_for("perceptron", epochs=4), text, None, folder)


@pytest.mark.usefixtures("every_pass")
@pytest.mark.parametrize("name", ["best", "state_weights", "state_total"])
def test_checkpoints_of_other_sizes(name: str, tmp_path: Path) -> None:
    """Compiled code would read and write beyond them."""
    text, folder = sentences(6, 23), tmp_path / "checkpoint"
    trained(settings_for("perceptron", epochs=2), text, None, folder)
    file = folder / FILE
    whole = load_archive(file, "checkpoint")
    save_archive(Archive("checkpoint", whole.data, {**whole.arrays, name: np.zeros(3)}), file)
    with pytest.raises(ArchiveError, match="damaged"):
        trained(settings_for("perceptron", epochs=4), text, None, folder)
