"""A journal read back: how every changed sentence stands, what can be undone, and whether the file still fits.

The file fits if it is the one that the journal was begun with, or the one that was written last; a process may also
have ended between announcing a version (`writing`) and putting it in place, or just after.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from headway.annotation.journal import DAMAGE, Assignment, Change, Checkpoint, Epoch, Kind, Start, read_journal
from headway.annotation.progress import Speeds
from headway.annotation.state import State
from headway.errors import JournalError


@dataclass
class History:
    """Where in the journal the changes of a sentence are that can be undone, and redone."""

    undo: list[int] = field(default_factory=list)
    redo: list[int] = field(default_factory=list)
    changes: int = 0

    def add(self, kind: Kind, place: int) -> None:
        """Count a change. An edit after an undo leaves nothing to redo."""
        self.changes += 1
        if kind == "edit":
            self.undo.append(place)
            self.redo.clear()
        elif kind == "undo":
            self.redo.append(self.undo.pop())
        else:
            self.undo.append(self.redo.pop())


@dataclass
class Replay:
    """What a journal says; `end` is where it can be continued."""

    path: Path
    start: Start
    end: int
    epoch: int
    model: str | None
    histories: dict[int, History] = field(default_factory=dict)
    states: dict[int, State] = field(default_factory=dict)
    held_out: set[int] = field(default_factory=set)
    trained: set[int] = field(default_factory=set)
    speeds: Speeds = field(default_factory=Speeds)
    versions: set[str] = field(default_factory=set)

    def fits(self, sha256: str, sentences: int) -> bool:
        """Whether a file is what the journal belongs to."""
        return sha256 in self.versions and sentences == self.start.sentences


def replay(path: Path) -> Replay | None:
    """What a journal says; None if it has not even begun."""
    records = read_journal(path)
    first = next(records, None)
    if first is None:
        return None
    _, end, start = first
    assert isinstance(start, Start)
    found = Replay(path, start, end, start.epoch, start.model, versions={start.sha256})
    last: dict[int, tuple[int, Change]] = {}
    for number, (place, end, record) in enumerate(records, start=2):
        found.end = end
        match record:
            case Change():
                last[record.sentence] = number, record
                _count(found, record, place, number)
            case Checkpoint():
                found.versions = {record.sha256} | (set() if record.is_done else found.versions)
            case Epoch():
                found.epoch, found.model = record.epoch, record.model
            case Assignment():
                found.held_out.update(record.held_out)
                found.trained.update(record.trained)
    found.states = dict(_states(path, last))
    return found


def _count(found: Replay, change: Change, place: int, number: int) -> None:
    history = found.histories.setdefault(change.sentence, History())
    fits = 0 <= change.sentence < found.start.sentences and change.version == found.epoch + history.changes + 1
    try:
        history.add(change.kind, place)
    except IndexError:
        fits = False
    if not fits:
        raise JournalError(
            f"{found.path}, line {number}: the change does not follow from the lines before, so some are missing; "
            "restore the journal, or move it away to go on with the file as it is, without the history"
        )
    finished = bool(change.after["done"]) and not change.before["done"]
    found.speeds.changed(change.by, change.sentence, change.time, finished=finished)


def _states(path: Path, last: dict[int, tuple[int, Change]]) -> Iterator[tuple[int, State]]:
    for sentence, (number, change) in last.items():
        try:
            yield sentence, State.from_record(change.after, change.version)
        except DAMAGE:
            raise JournalError(
                f"{path}, line {number}: the sentence cannot be read; restore the journal, or move it away to go on "
                "with the file as it is, without the history"
            ) from None
