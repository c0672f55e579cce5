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

from headway.archive import Archive, load_archive, save_archive
from headway.arrays import Floats
from headway.errors import ArchiveError
from headway.features.templates import load_templates
from headway.learning.monitor import KIND, Monitor, Show
from headway.learning.progress import Report, State
from headway.parallel import SERIAL, Executor, executor_for
from headway.training.settings import Settings

T = TypeVar("T")
Fit = Callable[[Report, State | None], Floats]
Saved = tuple[dict[str, Any], dict[str, Any]]  # JSON, and arrays by name

_SUFFIX = ".stage"


@dataclass(frozen=True)
class Checkpoint:
    """The folder of a training's stages, and the fingerprint of its data and settings."""

    folder: Path
    fingerprint: str

    def path(self, stage: str) -> Path:
        """The file of a stage, in a folder that is there."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise ArchiveError(f"{self.folder}: cannot be a folder for checkpoints ({reason}); give another") from None
        return self.folder / f"{stage}{_SUFFIX}"


@dataclass(frozen=True)
class Run:
    """How a training is run: where the work is done, who is shown its progress, and what is kept to resume from."""

    executor: Executor = SERIAL
    show: Show | None = None
    checkpoint: Checkpoint | None = None

    @classmethod
    def of(
        cls,
        threads: int,
        show: Show | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        fingerprint: str = "",
    ) -> Run:
        """A run on so many threads, resumed from the folder `checkpoint` if there is anything in it."""
        kept = None if checkpoint is None else Checkpoint(Path(checkpoint), fingerprint)
        return cls(executor_for(threads), show, kept)

    def stage(self, name: str, make: Callable[[], T], save: Callable[[T], Saved], read: Callable[[Archive], T]) -> T:
        """What `make` gives; after an interruption, what it gave then."""
        if self.checkpoint is None:
            return make()
        path, fingerprint = self.checkpoint.path(name), self.checkpoint.fingerprint
        if path.exists():
            archive = load_archive(path, KIND)
            if archive.data.get("fingerprint") != fingerprint:
                raise ArchiveError(f"{path}: a checkpoint of other data or settings; delete {self.checkpoint.folder}")
            try:
                return read(archive)
            except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
                raise ArchiveError(f"{path}: a damaged checkpoint ({error}); delete it and train again") from None
        made = make()
        data, arrays = save(made)
        save_archive(Archive(KIND, {"fingerprint": fingerprint, **data}, arrays), path, compress=False)
        return made

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
        path, fingerprint = None, ""
        if self.checkpoint is not None:
            path, fingerprint = self.checkpoint.path(name), self.checkpoint.fingerprint
        passes = settings.epochs or 1
        monitor = Monitor(shown or name, passes, settings.patience, dev, self.show, path, fingerprint)
        monitor.watch(fit, size)
        return monitor


def calibration_stage(settings: Settings) -> str:
    """The name of the calibration: the weights it belongs to depend on how many passes are made."""
    return f"calibration-{settings.epochs}-{settings.patience}"


def remove_stages(folder: Path) -> None:
    """Remove a checkpoint's folder: the files that trainings left there, and the folder if that was all."""
    if not folder.is_dir():
        return
    for path in folder.glob(f"*{_SUFFIX}"):
        path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


def fingerprint(settings: Settings, *data: str) -> str:
    """What a checkpoint must agree in before training resumes from it; more passes may be asked for."""
    options = {name: value for name, value in asdict(settings).items() if name not in ("epochs", "patience")}
    tables = [settings.templates] if settings.parts is None else [settings.templates, settings.parts]
    table = "\n".join(str(template) for name in tables for template in load_templates(name)).encode()
    clusters = b"" if settings.clusters is None else _content(settings.clusters)
    return f"{' '.join(data)} {hashlib.sha256(table + clusters).hexdigest()[:16]} {sorted(options.items())}"


def _content(path: str) -> bytes:
    """What a file holds; nothing where it is gone, as it may be when a training is resumed."""
    return Path(path).read_bytes() if Path(path).is_file() else b""
