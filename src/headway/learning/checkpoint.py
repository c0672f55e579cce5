"""The file that a stage of a training leaves: written if it can be, and read with suspicion.

A checkpoint must never cost a training. One that cannot be written is a warning, and the training goes on without. One
that is damaged, or of another training, is a `CheckpointError` that says what to delete: nothing is trained from it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from headway.archive import CHECKPOINT, DAMAGE, Archive, cause_of, load_archive, save_archive
from headway.errors import ArchiveError, CheckpointError
from headway.saved_values import LARGEST_WEIGHT, numbers_in_range

T = TypeVar("T")


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written: an interruption would lose what was done."""


@dataclass(frozen=True)
class StageFile:
    """Where a stage is kept, and the fingerprint of the data and settings that it belongs to."""

    path: Path
    fingerprint: str = ""

    def read(self, build: Callable[[Archive], T]) -> T | None:
        """What `build` makes of the file; None where there is none."""
        if not self.path.exists():
            return None
        archive = load_archive(self.path, CHECKPOINT)
        if archive.data.get("fingerprint") != self.fingerprint:
            raise CheckpointError(
                f"{self.path}: a checkpoint of other data or settings; delete {self.path.parent}, or name another"
            )
        try:
            for name, array in archive.arrays.items():
                numbers_in_range(array, name, LARGEST_WEIGHT**2)
            return build(archive)
        except DAMAGE as error:
            raise self.damage(cause_of(error)) from None

    def damage(self, cause: str) -> CheckpointError:
        """What to raise where the file cannot be continued from."""
        return CheckpointError(f"{self.path}: the checkpoint is damaged ({cause}); delete it, or name another")

    def write(self, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep a stage, in a folder that is made for it; where that is impossible, warn and go on."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            save_archive(
                Archive(CHECKPOINT, {"fingerprint": self.fingerprint, **data}, arrays), self.path, compress=False
            )
        except (OSError, ArchiveError) as error:
            system = error if isinstance(error, OSError) else error.__context__
            cause = system.strerror if isinstance(system, OSError) else error
            with suppress(OSError):
                self.path.parent.rmdir()  # if nothing is in it
            warnings.warn(
                f"{self.path.parent}: no checkpoint can be written there ({cause}); training goes on, but an "
                "interruption would lose it",
                CheckpointWarning,
                stacklevel=2,
            )
