"""The stages of a training: each is finished once, and read back when the training is resumed.

Segmenter, tagger, jack-knifed tags, pruner, parser, labels and calibration each leave a file in the checkpoint's folder
as soon as they are done; those that run for long also leave one on the way (`headway.learning.monitor`). After Ctrl-C
or a kill, the same training does nothing again that was finished. The folder goes once the parser is saved.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from headway.archive import Archive
from headway.arrays import Floats
from headway.atomic import remove_abandoned_drafts
from headway.errors import TrainingError
from headway.features.templates import load_templates
from headway.learning.checkpoint import StageFile
from headway.learning.monitor import Monitor, Show
from headway.learning.progress import Report, State
from headway.named_models import paths_of_models
from headway.parallel import SERIAL, Executor, Workers, executor_for
from headway.saved_values import numbers_in_range
from headway.training.settings import NEURAL, Settings

T = TypeVar("T")
Fit = Callable[[Report, State | None], Floats]
Saved = tuple[dict[str, Any], dict[str, Any]]  # JSON, and arrays by name

_SUFFIX = ".stage"


@dataclass(frozen=True)
class Checkpoint:
    """The folder of a training's stages, and the fingerprint of its data and settings."""

    folder: Path
    fingerprint: str

    def file(self, stage: str) -> StageFile:
        """The file of a stage; the folder is made when there is something to keep."""
        return StageFile(self.folder / f"{stage}{_SUFFIX}", self.fingerprint)


@dataclass(frozen=True)
class Run:
    """How a training is run: where the work is done, who is shown its progress, and what is kept to resume from.

    The `executor` is for pieces of work in this process. `workers`, where there are any, have shards of the data, and
    do what is independent of the rest: folds of a jack-knife, several runs, trials of settings.
    """

    executor: Executor = SERIAL
    show: Show | None = None
    checkpoint: Checkpoint | None = None
    workers: Workers | None = None

    @classmethod
    def of(
        cls,
        threads: int,
        show: Show | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        fingerprint: str = "",
        workers: Workers | None = None,
    ) -> Run:
        """A run on so many threads, resumed from the folder `checkpoint` if there is anything in it."""
        kept = None if checkpoint is None else Checkpoint(Path(checkpoint), fingerprint)
        return cls(executor_for(threads), show, kept, workers)

    def stage(self, name: str, make: Callable[[], T], save: Callable[[T], Saved], read: Callable[[Archive], T]) -> T:
        """What `make` gives; after an interruption, what it gave then."""
        if self.checkpoint is None:
            return make()
        file = self.checkpoint.file(name)
        kept = file.read(lambda archive: (read(archive),))
        if kept is not None:
            return kept[0]
        made = make()
        file.write(*save(made))
        return made

    def has_stage(self, name: str) -> bool:
        """Whether a stage is there from an earlier training."""
        return self.checkpoint is not None and self.checkpoint.file(name).path.exists()

    def monitor(
        self,
        name: str,
        settings: Settings,
        *,
        shown: str | None = None,
        dev: Callable[[Floats], float] | None = None,
    ) -> Monitor:
        """What watches the learner of a stage."""
        file = None if self.checkpoint is None else self.checkpoint.file(name)
        return Monitor(shown or name, settings.epochs or 1, settings.patience, dev, self.show, file)

    def fit(
        self,
        name: str,
        fit: Fit,
        size: int,
        settings: Settings,
        *,
        shown: str | None = None,
        dev: Callable[[Floats], float] | None = None,
    ) -> Monitor:
        """Run a learner as a stage, called `shown` in progress; the monitor has the best weights and the history."""
        monitor = self.monitor(name, settings, shown=shown, dev=dev)
        _require_range(monitor.watch(fit, size), name)
        return monitor


def _require_range(weights: Floats, name: str) -> None:
    """Refuse weights that no model is saved with."""
    try:
        numbers_in_range(weights, name)
    except ValueError as error:
        raise TrainingError(f"{error}; lower C, which lets the weights grow") from None


def calibration_stage(settings: Settings) -> str:
    """The name of the calibration: the weights it belongs to depend on how many passes are made."""
    return f"calibration-{settings.epochs}-{settings.patience}"


def remove_stages(folder: Path) -> None:
    """Remove a checkpoint's folder: the files that trainings left there, and the folder if that was all."""
    if not folder.is_dir():
        return
    for path in folder.glob(f"*{_SUFFIX}"):
        path.unlink(missing_ok=True)
    remove_abandoned_drafts(folder)
    if not any(folder.iterdir()):
        folder.rmdir()


def fingerprint(settings: Settings, *data: str) -> str:
    """What a checkpoint must agree in before training resumes from it; more passes may be asked for, but not of a
    network, whose rates fall over all of them."""
    free = ("patience",) if settings.model == NEURAL else ("epochs", "patience")
    options = {name: value for name, value in asdict(settings).items() if name not in free}
    tables = [settings.templates] if settings.parts is None else [settings.templates, settings.parts]
    table = "\n".join(str(template) for name in tables for template in load_templates(name)).encode()
    clusters = b"" if settings.clusters is None else _content(settings.clusters)
    teachers = [] if settings.teacher is None else paths_of_models(settings.teacher)
    teaching = b"".join(map(_content, teachers))
    return f"{' '.join(data)} {hashlib.sha256(table + clusters + teaching).hexdigest()[:16]} {sorted(options.items())}"


def _content(path: str | os.PathLike[str]) -> bytes:
    """What a file holds; nothing where it is gone, as it may be when a training is resumed."""
    return Path(path).read_bytes() if Path(path).is_file() else b""
