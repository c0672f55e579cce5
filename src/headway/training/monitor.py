"""What watches a learner: development scores, the best weights, early stopping, progress, checkpoints.

A checkpoint is written after a pass, at most every `CHECKPOINT_SECONDS`: an interruption loses the pass it falls into,
and what went before it in that time. Training goes on from it only with the same data, settings and templates.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from headway.archive import Archive, load_archive, save_archive
from headway.errors import ArchiveError
from headway.features.templates import load_templates
from headway.inference.batch import Floats
from headway.learning.progress import Pass, State
from headway.training.settings import Settings

CHECKPOINT_SECONDS = 20.0


@dataclass(frozen=True)
class Progress:
    """One pass, as it is shown: what is being trained, the pass of how many, its figures, the development score."""

    stage: str
    number: int
    passes: int
    figures: Mapping[str, float]
    dev: float | None
    seconds: float


Show = Callable[[Progress], None]


@dataclass
class Monitor:
    """Watches a learner: development scores, the best weights, early stopping, checkpoints, progress."""

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
            self.save(done.state)
            self._saved = time.monotonic()
        return score is None or self._passes_since_best() < self.patience

    def best_pass(self) -> int:
        """The number of the pass whose weights are kept."""
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
        """The state to go on from, when there is a checkpoint of the same data and settings."""
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


def signature(settings: Settings, *data: str) -> str:
    """What a checkpoint must agree in before training goes on from it; more passes may be asked for."""
    options = {name: value for name, value in asdict(settings).items() if name not in ("epochs", "patience")}
    tables = [settings.templates] if settings.parts is None else [settings.templates, settings.parts]
    table = "\n".join(str(template) for name in tables for template in load_templates(name)).encode()
    clusters = b"" if settings.clusters is None else _content(settings.clusters)
    return f"{' '.join(data)} {hashlib.sha256(table + clusters).hexdigest()[:16]} {sorted(options.items())}"


def _content(path: str) -> bytes:
    """What a file holds; nothing where it is gone, as it may be when a training goes on."""
    return Path(path).read_bytes() if Path(path).is_file() else b""
