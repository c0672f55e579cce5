"""What watches a learner: best weights, early stopping, checkpoints that are resumed, finished or damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.archive import CHECKPOINT, Archive, load_archive, save_archive
from headway.arrays import Floats
from headway.errors import ArchiveError, CheckpointError
from headway.learning import monitor as monitor_module
from headway.learning.averaging import untrained
from headway.learning.checkpoint import CheckpointWarning, StageFile
from headway.learning.monitor import Monitor, Progress
from headway.learning.progress import Pass, Report, State, continued

SIZE = 3


class Counting:
    """A learner whose weights after pass k are all k; it counts its passes, and fails where it is told to."""

    def __init__(self, passes: int, fails_at: int | None = None) -> None:
        self.passes, self.fails_at = passes, fails_at
        self.made: list[int] = []

    def fit(self, report: Report, resume: State | None) -> Floats:
        state = resume or {"weights": np.zeros(SIZE), "pass": np.zeros(1, np.int64)}
        for number in range(int(state["pass"][0]) + 1, self.passes + 1):
            if number == self.fails_at:
                raise KeyboardInterrupt
            self.made.append(number)
            state["weights"], state["pass"] = np.full(SIZE, float(number)), np.array([number])
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
        Monitor("parser", 5, 9, dev_of(scores), checkpoint=StageFile(checkpoint)).watch(Counting(5, fails_at).fit, SIZE)
    again, learner = Monitor("parser", 5, 9, dev_of(scores), checkpoint=StageFile(checkpoint)), Counting(5)
    np.testing.assert_array_equal(again.watch(learner.fit, SIZE), expected)
    assert learner.made == list(range(fails_at, 6))
    assert again.history == whole.history


def test_passes_are_saved_now_and_then(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all of them: an interruption loses what was done since."""
    monkeypatch.setattr(monitor_module, "CHECKPOINT_SECONDS", 1e6)
    with pytest.raises(KeyboardInterrupt):
        Monitor("parser", 5, 9, checkpoint=StageFile(checkpoint)).watch(Counting(5, 4).fit, SIZE)
    assert not checkpoint.exists()
    Monitor("parser", 5, 9, checkpoint=StageFile(checkpoint)).watch(Counting(5).fit, SIZE)
    assert checkpoint.exists()  # the end is always saved


def never(report: Report, resume: State | None) -> Floats:
    raise AssertionError("a finished stage is run again")


@pytest.mark.parametrize("scores", [None, [1.0, 2.0, 3.0, 4.0], [3.0, 2.0, 1.0, 0.0]])
def test_a_finished_stage_is_not_run_again(checkpoint: Path, scores: list[float] | None) -> None:
    """Also if it ended early."""
    dev = dev_of(scores) if scores else None
    first = Monitor("parser", 4, 2, dev, checkpoint=StageFile(checkpoint))
    found = first.watch(Counting(4).fit, SIZE).copy()
    second = Monitor("parser", 4, 2, dev, checkpoint=StageFile(checkpoint))
    np.testing.assert_array_equal(second.watch(never, SIZE), found)
    assert second.history == first.history
    assert second.best_pass() == first.best_pass()


def test_more_passes_go_on_from_the_last(checkpoint: Path) -> None:
    Monitor("parser", 3, 9, checkpoint=StageFile(checkpoint)).watch(Counting(3).fit, SIZE)
    learner = Counting(5)
    assert Monitor("parser", 5, 9, checkpoint=StageFile(checkpoint)).watch(learner.fit, SIZE).tolist() == [5.0] * SIZE
    assert learner.made == [4, 5]


def test_more_patience_goes_on_from_the_last(checkpoint: Path) -> None:
    scores = [3.0, 2.0, 1.0, 4.0, 0.0]
    early = Monitor("parser", 5, 1, dev_of(scores), checkpoint=StageFile(checkpoint))
    assert early.watch(Counting(5).fit, SIZE).tolist() == [1.0] * SIZE
    assert len(early.history) == 2
    learner = Counting(5)
    patient = Monitor("parser", 5, 3, dev_of(scores), checkpoint=StageFile(checkpoint))
    assert patient.watch(learner.fit, SIZE).tolist() == [4.0] * SIZE
    assert learner.made == [3, 4, 5]


def test_fewer_passes_than_were_made_are_not_run_again(checkpoint: Path) -> None:
    Monitor("parser", 5, 9, checkpoint=StageFile(checkpoint)).watch(Counting(5).fit, SIZE)
    assert Monitor("parser", 2, 9, checkpoint=StageFile(checkpoint)).watch(never, SIZE).tolist() == [5.0] * SIZE


def test_other_data_or_settings_are_refused(checkpoint: Path) -> None:
    Monitor("parser", 2, 9, checkpoint=StageFile(checkpoint, "one")).watch(Counting(2).fit, SIZE)
    with pytest.raises(ArchiveError, match=r"of other data or settings; delete .*, or name another"):
        Monitor("parser", 2, 9, checkpoint=StageFile(checkpoint, "two")).watch(never, SIZE)


def test_a_file_that_is_no_checkpoint_is_refused(checkpoint: Path) -> None:
    Monitor("parser", 2, 9, checkpoint=StageFile(checkpoint)).watch(Counting(2).fit, SIZE)
    whole = checkpoint.read_bytes()
    for damaged in (b"", b"no archive", whole[: len(whole) // 2], whole[:-1]):
        checkpoint.write_bytes(damaged)
        with pytest.raises(ArchiveError):
            Monitor("parser", 2, 9, checkpoint=StageFile(checkpoint)).watch(never, SIZE)


def changed(checkpoint: Path, data: Any = None, arrays: Any = None) -> None:
    """A checkpoint of two passes, in which some things are others; what is None is missing."""
    Monitor("parser", 2, 9, checkpoint=StageFile(checkpoint)).watch(Learner().fit, SIZE)
    archive = load_archive(checkpoint, CHECKPOINT)
    changed = ({**archive.data, **(data or {})}, {**archive.arrays, **(arrays or {})})
    kept = ({name: each for name, each in of.items() if each is not None} for of in changed)
    save_archive(Archive(CHECKPOINT, *kept), checkpoint, compress=False)


class Learner:
    """A perceptron's state, and a pass that does nothing: as it would begin for a learner of this package."""

    def fit(self, report: Report, resume: State | None) -> Floats:
        state = continued(resume, untrained(SIZE))
        for number in range(int(state["pass"][0]) + 1, 3):
            state["pass"][0] = number
            report(Pass(number, state["weights"], {"mistakes": 0.5}, state))
        return state["weights"]


ENTRY = {"pass": 2, "dev": None, "mistakes": 0.5}
FIRST = {"pass": 1, "dev": None, "mistakes": 0.5}
DAMAGES: list[tuple[Any, Any]] = [
    *(({}, {name: None}) for name in ("best", "state_weights", "state_total", "state_pass")),
    *(({}, {name: np.zeros(SIZE - 1)}) for name in ("best", "state_weights", "state_total")),
    *(({}, {name: np.zeros((SIZE, 1))}) for name in ("best", "state_weights")),
    *(({}, {name: np.array([0.0, wrong, 1.0])}) for name in ("best", "state_total") for wrong in (np.nan, np.inf)),
    *(({}, {"state_pass": np.array(wrong)}) for wrong in ([], [3], [-1], [[2]], [2.5], [2**62])),
    ({}, {"best": np.zeros(SIZE, np.int64)}),
    *(
        ({"history": wrong}, {})
        for wrong in ([], {}, None, "history", 3, [3], [None], [[]], [{}], [ENTRY], [FIRST] * 2)
    ),
    *(({"history": [FIRST, {**ENTRY, "mistakes": wrong}]}, {}) for wrong in ("many", None, [1], 10**400, float("nan"))),
    ({"history": [FIRST, {**ENTRY, "dev": 1.0}]}, {}),
    ({"ended": None, "history": [FIRST, {**ENTRY, "pass": 10**30}]}, {}),
]


@pytest.mark.parametrize(("data", "arrays"), DAMAGES)
def test_what_is_damaged_is_refused_in_one_sentence(checkpoint: Path, data: Any, arrays: Any) -> None:
    """Compiled code would read beyond arrays of another size, and a nan would be trained through."""
    changed(checkpoint, data, arrays)
    with pytest.raises(CheckpointError) as caught:
        Monitor("parser", 3, 9, checkpoint=StageFile(checkpoint)).watch(Learner().fit, SIZE)
    assert str(caught.value).startswith(f"{checkpoint}: the checkpoint is damaged (")
    assert str(caught.value).endswith("); delete it, or name another")


def test_what_is_not_damaged_is_not_refused(checkpoint: Path) -> None:
    changed(checkpoint)
    Monitor("parser", 3, 9, checkpoint=StageFile(checkpoint)).watch(Learner().fit, SIZE)


def test_a_learner_that_ended_is_not_run_again_after_a_kill(checkpoint: Path) -> None:
    """Also where the kill came before the end was saved: between the last pass and the learner's return."""

    def killed(report: Report, resume: State | None) -> Floats:
        state = {"weights": np.ones(SIZE), "pass": np.ones(1, np.int64)}
        report(Pass(1, state["weights"], {}, state, is_last=True))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Monitor("parser", 5, 9, checkpoint=StageFile(checkpoint)).watch(killed, SIZE)
    assert Monitor("parser", 5, 9, checkpoint=StageFile(checkpoint)).watch(never, SIZE).tolist() == [1.0] * SIZE


def test_a_checkpoint_that_cannot_be_written_is_a_warning(checkpoint: Path) -> None:
    checkpoint.write_bytes(b"no folder")
    inside = StageFile(checkpoint / "parser")
    with pytest.warns(CheckpointWarning, match=r"no checkpoint can be written there .*; training goes on"):
        weights = Monitor("parser", 3, 9, checkpoint=inside).watch(Counting(3).fit, SIZE)
    assert weights.tolist() == [3.0] * SIZE
