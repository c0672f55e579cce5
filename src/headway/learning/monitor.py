"""What watches a learner: development scores, the best weights, early stopping, progress, checkpoints.

A checkpoint is written after a pass, at most every `CHECKPOINT_SECONDS`, and when the learner is done. An interruption
loses the pass it falls into, and what went before it in that time; training resumes only with the same data and
settings, which the `fingerprint` stands for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from headway.archive import Archive, load_archive, save_archive
from headway.arrays import Floats
from headway.errors import ArchiveError
from headway.learning.progress import Pass, Report, State

CHECKPOINT_SECONDS = 20.0
KIND = "checkpoint"
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
    checkpoint: Path | None = None
    fingerprint: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)
    best: Floats | None = None
    _started: float = field(default_factory=time.monotonic)
    _saved: float = field(default_factory=time.monotonic)

    def watch(self, fit: Callable[[Report, State | None], Floats], size: int) -> Floats:
        """Run a learner of `size` weights, from its checkpoint on where there is one; the best weights it found."""
        state, is_done = self._resume(size)
        if not is_done:
            latest: State = {}

            def report(done: Pass) -> bool:
                latest.clear()
                latest.update(done.state)
                return self(done)

            fit(report, state)
            if self.checkpoint:
                self._save(latest or state or {}, is_done=True)
        assert self.best is not None
        return self.best

    def __call__(self, done: Pass) -> bool:
        """After a pass: score, remember, save, show; False when it is time to stop."""
        score = self.dev(done.weights) if self.dev else None
        earlier = [entry["dev"] for entry in self.history]
        self.history.append({"pass": done.number, "dev": score, **done.figures})
        if score is None or not earlier or score > max(earlier):
            self.best = np.array(done.weights)
        if self.show:
            seconds = time.monotonic() - self._started
            self.show(Progress(self.stage, done.number, self.passes, done.figures, score, seconds))
        if self.checkpoint and time.monotonic() - self._saved > CHECKPOINT_SECONDS:
            self._save(done.state, is_done=False)
            self._saved = time.monotonic()
        return score is None or done.number - self.best_pass() < self.patience

    def best_pass(self) -> int:
        """The number of the pass whose weights are kept."""
        if self.dev is None:
            return int(self.history[-1]["pass"])
        return int(max(self.history, key=lambda entry: entry["dev"])["pass"])

    def _save(self, state: State, *, is_done: bool) -> None:
        assert self.checkpoint is not None
        assert self.best is not None
        arrays = {**{f"{_STATE}{name}": array for name, array in state.items()}, "best": self.best}
        ended = [self.passes, self.patience] if is_done else None
        data = {"fingerprint": self.fingerprint, "history": self.history, "ended": ended, "arrays": sorted(arrays)}
        save_archive(Archive(KIND, data, arrays), self.checkpoint, compress=False)

    def _resume(self, size: int) -> tuple[State | None, bool]:
        """The state to continue from, if there is a checkpoint of the same data and settings; is nothing left to do?"""
        if self.checkpoint is None or not self.checkpoint.exists():
            return None, False
        archive = load_archive(self.checkpoint, KIND)
        if archive.data.get("fingerprint") != self.fingerprint:
            raise ArchiveError(
                f"{self.checkpoint}: a checkpoint of other data or settings; delete it, or train with what it came from"
            )
        if "history" not in archive.data or archive.data.get("arrays") != sorted(archive.arrays):
            raise ArchiveError(f"{self.checkpoint}: a damaged checkpoint; delete it and train again")
        self.history[:] = archive.data["history"]
        self.best = archive.arrays["best"]
        state = {name.removeprefix(_STATE): each for name, each in archive.arrays.items() if name.startswith(_STATE)}
        _check_sizes({**state, "best": self.best}, size, self.checkpoint)
        is_done = archive.data.get("ended") == [self.passes, self.patience]
        return state, is_done or int(self.history[-1]["pass"]) >= self.passes


def _check_sizes(state: Mapping[str, Any], size: int, checkpoint: Path) -> None:
    """Compiled code indexes these arrays without looking at their lengths."""
    for name in ("best", "weights", "total", "first", "second"):
        if name in state and state[name].shape != (size,):
            raise ArchiveError(f"{checkpoint}: a damaged checkpoint ({name} has other weights); delete it")
