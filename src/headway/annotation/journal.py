"""The journal of an annotated file: every change, on disk before it is acknowledged.

`FILE.conllu.journal` has one JSON object on each line, and lines are only ever added:

- first `{"headway": "annotation journal", "format": 1, "sha256": …, "sentences": n, "epoch": e, "model": …}`: the file
  as it was when the journal was begun. A sentence's version is the epoch plus the number of its changes;
- for every change `{"sentence": i, "version": v, "kind": "edit", "time": t, "by": who, "before": …, "after": …}`, where
  the two states are whole: `{"conllu": text, "pins": [words], "forbidden": [[head, word], …], "done": bool, "original":
  bool}`. An undo (kind "undo") and a redo ("redo") are changes, too. Sentences count from 0;
- `{"writing": sha256}` just before the file is replaced by one with the changes so far, `{"written": sha256}` after it;
- `{"epoch": e, "model": …}` when another model makes other suggestions, which raises all versions;
- `{"held_out": [sentences], "trained": [sentences]}` when a model is trained: those that no model is ever trained on,
  and those that this one may be trained on, as far as they are new.

So the file and the journal together always have every change, whenever the process ends: a sentence is as its last
change left it, and what a change undid is in the journal, however old. A last line without its line end was cut off
before anyone was told of its change, and is dropped. Any other line that cannot be read is an error.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Literal, get_args

from headway.atomic import remedy
from headway.errors import JournalError

Kind = Literal["edit", "undo", "redo"]

_NAME, _FORMAT = "annotation journal", 1
_OF_A_STATE = {"conllu", "pins", "forbidden", "done", "original"}
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""What reading a damaged line may run into; a TreebankError is a ValueError."""


@dataclass(frozen=True)
class Start:
    """What the journal begins with: the file that it belongs to."""

    sha256: str
    sentences: int
    epoch: int = 0
    model: str | None = None

    def to_record(self) -> dict[str, Any]:
        own = {"sha256": self.sha256, "sentences": self.sentences, "epoch": self.epoch, "model": self.model}
        return {"headway": _NAME, "format": _FORMAT, **own}


@dataclass(frozen=True)
class Change:
    """A change of a sentence, by whom and when; the states are records (`State.to_record`), read when needed."""

    sentence: int
    version: int
    kind: Kind
    time: float
    by: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    def to_record(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Change:
        """The change that was recorded; a built-in error where it is none."""
        found = cls(**record)
        whole = type(found.sentence) is int and type(found.version) is int and isinstance(found.by, str)
        if not whole or found.kind not in get_args(Kind) or not math.isfinite(found.time):
            raise ValueError("not a change")
        for state in (found.before, found.after):
            if state.keys() != _OF_A_STATE:
                raise ValueError("not a state")
        return found


@dataclass(frozen=True)
class Epoch:
    """Another model makes other suggestions from here on."""

    epoch: int
    model: str | None

    def to_record(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "model": self.model}


@dataclass(frozen=True)
class Checkpoint:
    """The file is about to be replaced, or has been replaced, by one with this checksum."""

    sha256: str
    is_done: bool

    def to_record(self) -> dict[str, Any]:
        return {"written" if self.is_done else "writing": self.sha256}


@dataclass(frozen=True)
class Assignment:
    """Sentences that no model is trained on from now on, and sentences that one is."""

    held_out: tuple[int, ...]
    trained: tuple[int, ...]

    def to_record(self) -> dict[str, Any]:
        return {"held_out": self.held_out, "trained": self.trained}


Record = Start | Change | Epoch | Checkpoint | Assignment


class Journal:
    """An open journal; `append` returns when the record is on disk."""

    def __init__(self, path: Path, file: FileIO, end: int) -> None:
        self.path = path
        self._file = file
        self._end = end

    @classmethod
    def create(cls, path: Path, start: Start) -> Journal:
        """A new journal. One that is there is not overwritten."""
        try:
            file = FileIO(path, "x+")
        except OSError as error:
            raise _failure(path, error) from None
        journal = cls(path, file, 0)
        try:
            journal.append(start)
        except BaseException:
            journal.close()
            with suppress(OSError):
                path.unlink()
            raise
        sync_folder(path.parent)
        return journal

    @classmethod
    def open(cls, path: Path, end: int) -> Journal:
        """An existing journal, to go on after so many bytes: what `read_journal` could read."""
        try:
            return cls(path, FileIO(path, "r+"), end)
        except OSError as error:
            raise _failure(path, error) from None

    def append(self, record: Record, *, sync: bool = True) -> int:
        """Add a record; returns where it begins. If that fails, the journal is as it was."""
        line = json.dumps(record.to_record(), ensure_ascii=False).encode() + b"\n"
        start = self._end
        try:
            self._file.truncate(start)  # of a line that could not be written whole, nothing stays
            self._file.seek(start)
            written = 0
            while written < len(line):
                written += self._file.write(line[written:])
            if sync:
                os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(start)
            raise _failure(self.path, error) from None
        self._end += len(line)
        return start

    def change_at(self, start: int) -> Change:
        """The change that was added there."""
        try:
            self._file.seek(start)
            size = 1 << 16
            line = self._file.read(size)
            while b"\n" not in line and (more := self._file.read(size)):
                line += more
            return Change.from_record(json.loads(line.partition(b"\n")[0]))
        except (OSError, *DAMAGE):
            raise JournalError(f"{self.path}: another program has changed the journal; start again") from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_journal(path: Path) -> Iterator[tuple[int, int, Record]]:
    """The records of a journal, each with where it begins and where the next one does. See the module for damage."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise JournalError(f"{path}: cannot be read ({error.strerror}); {_ASIDE}") from None
    start, number = 0, 1
    while (end := data.find(b"\n", start) + 1) > 0:
        try:
            record = _record(json.loads(data[start:end]), first=not start)
        except DAMAGE:
            raise JournalError(f"{path}, line {number}: damaged, or not a line of a journal; {_ASIDE}") from None
        yield start, end, record
        start, number = end, number + 1


_ASIDE = "restore it, or move it away to go on with the file as it is, without the history"


def _record(data: Any, *, first: bool) -> Record:
    if first:
        if data["headway"] != _NAME or data["format"] != _FORMAT:
            raise ValueError("another kind of file")
        return Start(str(data["sha256"]), int(data["sentences"]), int(data["epoch"]), data["model"])
    if "writing" in data or "written" in data:
        return Checkpoint(str(data.get("writing") or data["written"]), is_done="written" in data)
    if "epoch" in data:
        return Epoch(int(data["epoch"]), data["model"])
    if "held_out" in data:
        return Assignment(tuple(map(int, data["held_out"])), tuple(map(int, data["trained"])))
    return Change.from_record(data)


def sync_folder(folder: Path) -> None:
    """Make sure that new names in a folder are on disk, where the system can do that."""
    with suppress(OSError):
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _failure(path: Path, error: OSError) -> JournalError:
    return JournalError(f"{path}: cannot be written ({error.strerror}), so nothing was changed; {remedy(error)}")
