"""What watches a learner: best weights, early stopping, checkpoints that are resumed, finished or damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.archive import load_archive, save_archive
from headway.arrays import Floats
from headway.errors import ArchiveError
from headway.learning import monitor as monitor_module
from headway.learning.monitor import KIND, Monitor, Progress
from headway.learning.progress import Pass, Report, State

SIZE = 3


class Counting:
    """A learner whose weights after pass k are all k; it counts its passes, and fails where it is told to."""

    def __init__(self, passes: int, fails_at: int | None = None) -> None:
        self.passes, self.fails_at = passes, fails_at
        self.made: list[int] = []

    def fit(self, report: Report, resume: State | None) -> Floats:
        state = resume or {"weights": np.zeros(SIZE), "epoch": np.zeros(1, np.int64)}
        for number in range(int(state["epoch"][0]) + 1, self.passes + 1):
            if number == self.fails_at:
                raise KeyboardInterrupt
            self.made.append(number)
            state["weights"], state["epoch"] = np.full(SIZE, float(number)), np.array([number])
            if not report(Pass(number, state["weights"], {"mistakes": 1.0 / number}, state)):
                break
        return state["weights"]


def dev_of(scores: list[float]) -> Any:
    """The development score of the weights of each pass."""
    return lambda weights: scores[int(weights[0]) - 1]


@pytest.fixture(autouse=True)
def every_pass_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_module, "CHECKPOINT_SECONDS", -1.0)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "parser"


def test_without_development_data_the_last_weights_are_the_best() -> None:
    learner, shown = Counting(4), list[Progress]()
    monitor = Monitor("parser", 4, 1, show=shown.append)
    assert monitor.watch(learner.fit, SIZE).tolist() == [4.0] * SIZE
    assert monitor.best_pass() == 4
    assert [(each.stage, each.number, each.passes, each.dev) for each in shown] == [
        ("parser", number, 4, None) for number in (1, 2, 3, 4)
    ]
    assert [entry["mistakes"] for entry in monitor.history] == [1.0, 0.5, 1 / 3, 0.25]


@pytest.mark.parametrize(
    ("scores", "patience", "made", "best"),
    [
        ([1.0, 3.0, 2.0, 2.0, 4.0, 0.0], 2, 4, 2),
        ([1.0, 3.0, 2.0, 2.0, 4.0, 0.0], 3, 6, 5),
        ([3.0, 3.0, 3.0, 3.0, 3.0, 3.0], 2, 3, 1),  # an equal score is no better one
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 1, 6, 6),
    ],
)
def test_it_stops_when_the_development_score_has_not_risen(
    scores: list[float], patience: int, made: int, best: int
) -> None:
    learner = Counting(6)
    monitor = Monitor("parser", 6, patience, dev_of(scores))
    assert monitor.watch(learner.fit, SIZE).tolist() == [float(best)] * SIZE
    assert learner.made == list(range(1, made + 1))
    assert monitor.best_pass() == best
    assert [entry["dev"] for entry in monitor.history] == scores[:made]


def test_the_best_weights_are_a_copy() -> None:
    """A learner may go on changing the array that it reported."""
    weights = np.ones(SIZE)

    def fit(report: Report, resume: State | None) -> Floats:
        report(Pass(1, weights, {}, {"weights": weights}))
        weights[:] = 7.0
        return weights

    assert Monitor("parser", 1, 1).watch(fit, SIZE).tolist() == [1.0] * SIZE


@pytest.mark.parametrize("fails_at", [2, 3, 5])
def test_what_was_interrupted_is_resumed(checkpoint: Path, fails_at: int) -> None:
    scores = [2.0, 1.0, 5.0, 3.0, 4.0]
    whole = Monitor("parser", 5, 9, dev_of(scores))
    expected = whole.watch(Counting(5).fit, SIZE)
    with pytest.raises(KeyboardInterrupt):
        Monitor("parser", 5, 9, dev_of(scores), checkpoint=checkpoint).watch(Counting(5, fails_at).fit, SIZE)
    again, learner = Monitor("parser", 5, 9, dev_of(scores), checkpoint=checkpoint), Counting(5)
    np.testing.assert_array_equal(again.watch(learner.fit, SIZE), expected)
    assert learner.made == list(range(fails_at, 6))
    assert again.history == whole.history


def test_passes_are_saved_now_and_then(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all of them: an interruption loses what was done since."""
    monkeypatch.setattr(monitor_module, "CHECKPOINT_SECONDS", 1e6)
    with pytest.raises(KeyboardInterrupt):
        Monitor("parser", 5, 9, checkpoint=checkpoint).watch(Counting(5, 4).fit, SIZE)
    assert not checkpoint.exists()
    Monitor("parser", 5, 9, checkpoint=checkpoint).watch(Counting(5).fit, SIZE)
    assert checkpoint.exists()  # the end is always saved


def never(report: Report, resume: State | None) -> Floats:
    raise AssertionError("a finished stage is run again")


@pytest.mark.parametrize("scores", [None, [1.0, 2.0, 3.0, 4.0], [3.0, 2.0, 1.0, 0.0]])
def test_a_finished_stage_is_not_run_again(checkpoint: Path, scores: list[float] | None) -> None:
    """Also if it ended early."""
    dev = dev_of(scores) if scores else None
    first = Monitor("parser", 4, 2, dev, checkpoint=checkpoint)
    found = first.watch(Counting(4).fit, SIZE).copy()
    second = Monitor("parser", 4, 2, dev, checkpoint=checkpoint)
    np.testing.assert_array_equal(second.watch(never, SIZE), found)
    assert second.history == first.history
    assert second.best_pass() == first.best_pass()


def test_more_passes_go_on_from_the_last(checkpoint: Path) -> None:
    Monitor("parser", 3, 9, checkpoint=checkpoint).watch(Counting(3).fit, SIZE)
    learner = Counting(5)
    assert Monitor("parser", 5, 9, checkpoint=checkpoint).watch(learner.fit, SIZE).tolist() == [5.0] * SIZE
    assert learner.made == [4, 5]


def test_more_patience_goes_on_from_the_last(checkpoint: Path) -> None:
    scores = [3.0, 2.0, 1.0, 4.0, 0.0]
    early = Monitor("parser", 5, 1, dev_of(scores), checkpoint=checkpoint)
    assert early.watch(Counting(5).fit, SIZE).tolist() == [1.0] * SIZE
    assert len(early.history) == 2
    learner = Counting(5)
    patient = Monitor("parser", 5, 3, dev_of(scores), checkpoint=checkpoint)
    assert patient.watch(learner.fit, SIZE).tolist() == [4.0] * SIZE
    assert learner.made == [3, 4, 5]


def test_fewer_passes_than_were_made_are_not_run_again(checkpoint: Path) -> None:
    Monitor("parser", 5, 9, checkpoint=checkpoint).watch(Counting(5).fit, SIZE)
    assert Monitor("parser", 2, 9, checkpoint=checkpoint).watch(never, SIZE).tolist() == [5.0] * SIZE


def test_other_data_or_settings_are_refused(checkpoint: Path) -> None:
    Monitor("parser", 2, 9, checkpoint=checkpoint, fingerprint="one").watch(Counting(2).fit, SIZE)
    with pytest.raises(ArchiveError, match="of other data or settings; delete it, or train with what it came from"):
        Monitor("parser", 2, 9, checkpoint=checkpoint, fingerprint="two").watch(never, SIZE)


def test_a_file_that_is_no_checkpoint_is_refused(checkpoint: Path) -> None:
    Monitor("parser", 2, 9, checkpoint=checkpoint).watch(Counting(2).fit, SIZE)
    whole = checkpoint.read_bytes()
    for damaged in (b"", b"no archive", whole[: len(whole) // 2], whole[:-1]):
        checkpoint.write_bytes(damaged)
        with pytest.raises(ArchiveError):
            Monitor("parser", 2, 9, checkpoint=checkpoint).watch(never, SIZE)


@pytest.mark.parametrize("name", ["best", "state_weights"])
def test_arrays_of_another_size_are_refused(checkpoint: Path, name: str) -> None:
    """Compiled code would read beyond them."""
    Monitor("parser", 2, 9, checkpoint=checkpoint).watch(Counting(2).fit, SIZE)
    archive = load_archive(checkpoint, KIND)
    archive.arrays[name] = np.zeros(SIZE - 1)  # type: ignore[index]
    save_archive(archive, checkpoint, compress=False)
    with pytest.raises(ArchiveError, match=r"a damaged checkpoint .* has other weights"):
        Monitor("parser", 3, 9, checkpoint=checkpoint).watch(never, SIZE)


@pytest.mark.parametrize("name", ["best", "state_weights", "state_epoch"])
def test_missing_arrays_are_refused(checkpoint: Path, name: str) -> None:
    Monitor("parser", 2, 9, checkpoint=checkpoint).watch(Counting(2).fit, SIZE)
    archive = load_archive(checkpoint, KIND)
    del archive.arrays[name]  # type: ignore[attr-defined]
    save_archive(archive, checkpoint, compress=False)
    with pytest.raises(ArchiveError, match="a damaged checkpoint; delete it and train again"):
        Monitor("parser", 3, 9, checkpoint=checkpoint).watch(never, SIZE)
