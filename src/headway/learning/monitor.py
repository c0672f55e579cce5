"""What watches a learner: development scores, the best weights, early stopping, progress, checkpoints.

A checkpoint is written after a pass, at most every `CHECKPOINT_SECONDS`, and when the learner is done. An interruption
loses the pass it falls into, and what went before it in that time; what follows is what would have followed, bit for
bit. Training resumes only with the same data and settings, which the `fingerprint` stands for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.archive import Archive
from headway.arrays import Floats
from headway.errors import CheckpointError
from headway.learning.checkpoint import StageFile
from headway.learning.progress import Pass, Report, State
from headway.saved_values import LARGEST_WEIGHT, numbers_in_range

CHECKPOINT_SECONDS = 20.0
_STATE = "state_"


@dataclass(frozen=True)
class Progress:
    """One pass, as it is shown: what is being trained, the pass out of how many, its figures, the development score."""

    stage: str
    number: int
    passes: int
    figures: Mapping[str, float]
    dev: float | None
    seconds: float


Show = Callable[[Progress], None]


@dataclass
class Monitor:
    """Watches a learner of one stage of a training."""

    stage: str
    passes: int
    patience: int
    dev: Callable[[Floats], float] | None = None
    show: Show | None = None
    checkpoint: StageFile | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    best: Floats | None = None
    _started: float = field(default_factory=time.monotonic)
    _saved: float = field(default_factory=time.monotonic)
    _is_done: bool = False

    def watch(self, fit: Callable[[Report, State | None], Floats], size: int) -> Floats:
        """Run a learner of `size` weights, from its checkpoint on where there is one; the best weights it found."""
        state, is_done = self._resume(size)
        if not is_done:
            latest: Mapping[str, NDArray[Any]] = state or {}

            def report(done: Pass) -> bool:
                nonlocal latest
                latest = done.state
                return self(done)

            try:
                fit(report, state)
            except CheckpointError as error:
                assert self.checkpoint is not None
                raise self.checkpoint.damage(str(error)) from None
            if not self._is_done:
                self._save(latest, is_done=True)
        assert self.best is not None
        return self.best

    def is_finished(self, size: int) -> bool:
        """Whether the checkpoint of a learner of `size` weights says that all is done; what it found is then here."""
        finished = self._resume(size)[1]
        if not finished:
            self.history.clear()
            self.best = None
        return finished

    def keep(self, history: list[dict[str, Any]], best: Floats) -> None:
        """Save and show what a learner found elsewhere."""
        self.history[:], self.best = history, best
        self._save({}, is_done=True)
        if self.show:
            last = history[-1]
            figures = {name: value for name, value in last.items() if name not in ("pass", "dev")}
            seconds = time.monotonic() - self._started
            self.show(Progress(self.stage, last["pass"], self.passes, figures, last["dev"], seconds))

    def __call__(self, done: Pass) -> bool:
        """After a pass: score, remember, save, show; False when it is time to stop."""
        score = self.dev(done.weights) if self.dev else None
        earlier = [entry["dev"] for entry in self.history]
        self.history.append({"pass": done.number, "dev": score, **done.figures})
        if score is None or not earlier or score > max(earlier):
            self.best = np.array(done.weights)
        go_on = score is None or done.number - self.best_pass() < self.patience
        if self.show:
            seconds = time.monotonic() - self._started
            self.show(Progress(self.stage, done.number, self.passes, done.figures, score, seconds))
        self._is_done = done.is_last or not go_on or done.number >= self.passes
        if self._is_done or time.monotonic() - self._saved > CHECKPOINT_SECONDS:
            self._save(done.state, is_done=self._is_done)
            self._saved = time.monotonic()
        return go_on

    def best_pass(self) -> int:
        """The number of the pass whose weights are kept."""
        if self.dev is None:
            return int(self.history[-1]["pass"])
        return int(max(self.history, key=lambda entry: entry["dev"])["pass"])

    def _save(self, state: Mapping[str, NDArray[Any]], *, is_done: bool) -> None:
        if self.checkpoint is None:
            return
        assert self.best is not None
        arrays = {**{f"{_STATE}{name}": array for name, array in state.items()}, "best": self.best}
        ended = [self.passes, self.patience] if is_done else None
        self.checkpoint.write({"history": self.history, "ended": ended}, arrays)

    def _resume(self, size: int) -> tuple[State | None, bool]:
        """The state to continue from, if there is a checkpoint of the same data and settings; is nothing left to do?"""
        archive = None
        if self.checkpoint is not None:
            archive = self.checkpoint.read(lambda archive: self._checked(archive, size))
        if archive is None:
            return None, False
        self.history[:] = archive.data["history"]
        self.best = archive.arrays["best"]
        state = {name.removeprefix(_STATE): each for name, each in archive.arrays.items() if name.startswith(_STATE)}
        is_done = archive.data["ended"] == [self.passes, self.patience]
        return state, is_done or int(self.history[-1]["pass"]) >= self.passes

    def _checked(self, archive: Archive, size: int) -> Archive:
        """The checkpoint, if its history, its best weights and its state can be those of this training."""
        history, best = archive.data["history"], archive.arrays["best"]
        if best.shape != (size,) or best.dtype != np.float64:
            raise ValueError("its weights are of another training")
        numbers_in_range(best, "best", LARGEST_WEIGHT / 1000)  # what is made of them has to be in range, too
        if not isinstance(history, list) or not history or "ended" not in archive.data:
            raise ValueError("it has no history")
        for number, entry in enumerate(history, start=1):
            if entry["pass"] != number or (entry["dev"] is None) != (self.dev is None):
                raise ValueError("its history is not of this training")
            figures = (figure for name, figure in entry.items() if name != "dev" or self.dev)
            if not all(isinstance(figure, int | float) and isfinite(figure) for figure in figures):
                raise ValueError("its history has figures that are no numbers")
        done = archive.arrays.get(f"{_STATE}pass")
        if done is not None and done.tolist() != [len(history)]:
            raise ValueError("its state is not of its last pass")
        return archive
