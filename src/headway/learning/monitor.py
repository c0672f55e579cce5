"""Watching a learner: development scores, the best weights, early stopping, progress, checkpoints.

A checkpoint is written after a pass, at most once in `CHECKPOINT_SECONDS`. An interruption costs the current pass and
the passes finished since the last checkpoint. Training resumes only under the same signature, which stands for the
data and the settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from headway.archive import Archive, load_archive, save_archive
from headway.errors import ArchiveError
from headway.inference.batch import Floats
from headway.learning.progress import Pass, State

CHECKPOINT_SECONDS = 20.0


@dataclass(frozen=True)
class Progress:
    """One finished pass: what is being trained, which pass of how many, its figures, the development score."""

    stage: str
    number: int
    passes: int
    figures: Mapping[str, float]
    dev: float | None
    seconds: float


Show = Callable[[Progress], None]


@dataclass
class Monitor:
    """Called by a learner after each pass; afterwards it has the best weights and the history."""

    stage: str
    passes: int
    patience: int
    dev: Callable[[Floats], float] | None = None
    show: Show | None = None
    checkpoint: Path | None = None
    signature: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)
    best: Floats | None = None
    _started: float = field(default_factory=time.monotonic)
    _saved: float = field(default_factory=time.monotonic)

    def __call__(self, done: Pass) -> bool:
        """Score, remember, report and save a pass; False when it is time to stop."""
        score = self.dev(done.weights) if self.dev else None
        earlier = [entry["dev"] for entry in self.history]
        self.history.append({"pass": done.number, "dev": score, **done.figures})
        if score is None or not earlier or score > max(earlier):
            self.best = np.array(done.weights)
        if self.show:
            seconds = time.monotonic() - self._started
            self.show(Progress(self.stage, done.number, self.passes, done.figures, score, seconds))
        if self.checkpoint and time.monotonic() - self._saved > CHECKPOINT_SECONDS:
            self.save(done.state)
            self._saved = time.monotonic()
        return score is None or self._passes_since_best() < self.patience

    def best_pass(self) -> int:
        """The number of the pass with the best weights."""
        if self.dev is None:
            return int(self.history[-1]["pass"])
        return int(max(self.history, key=lambda entry: entry["dev"])["pass"])

    def _passes_since_best(self) -> int:
        return int(self.history[-1]["pass"]) - self.best_pass()

    def save(self, state: State) -> None:
        """Write the checkpoint."""
        assert self.checkpoint is not None
        assert self.best is not None
        arrays = {**{f"state_{name}": array for name, array in state.items()}, "best": self.best}
        data = {"signature": self.signature, "history": self.history, "arrays": sorted(arrays)}
        save_archive(Archive("checkpoint", data, arrays), self.checkpoint, compress=False)

    def resume(self) -> State | None:
        """The state to resume from, if there is a checkpoint; one of other data or settings is an error."""
        if self.checkpoint is None or not self.checkpoint.exists():
            return None
        archive = load_archive(self.checkpoint, "checkpoint")
        if archive.data.get("signature") != self.signature:
            raise ArchiveError(
                f"{self.checkpoint}: a checkpoint of other data or settings; delete it, or train with what it came from"
            )
        if "history" not in archive.data or archive.data.get("arrays") != sorted(archive.arrays):
            raise ArchiveError(f"{self.checkpoint}: a damaged checkpoint; delete it and train again")
        self.history[:] = archive.data["history"]
        self.best = archive.arrays["best"]
        return {
            name.removeprefix("state_"): array for name, array in archive.arrays.items() if name.startswith("state_")
        }
