"""What a workspace has on disk: the file, its journal, and a claim that keeps other processes away.

The journal is begun with the first change. If a journal does not fit the file, because another program has changed that
meanwhile, the file counts: the journal is set aside as `FILE.conllu.journal.1` (or 2, 3, …), and nothing is lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from headway.annotation.file_on_disk import ChangedUnderneathError, FileOnDisk
from headway.annotation.journal import Change, Checkpoint, Journal, Record, Start
from headway.annotation.replay import Replay, replay
from headway.annotation.rewriting import Rewriter
from headway.atomic import claimed
from headway.errors import HeadwayError, JournalError


class Saving:
    """The file and the journal of a workspace; `lock` is the workspace's, and held by whoever calls `append`.

    `parts` gives the file as it should be, `tell` takes events. While `changed_underneath`, the file is not written.
    `problem` says why it could not be written.
    """

    def __init__(
        self, path: Path, lock: threading.RLock, parts: Callable[[], list[bytes]], tell: Callable[..., None]
    ) -> None:
        self.path = path
        self.changed_underneath = False
        self.problem: str | None = None
        self._lock, self._writing = lock, threading.Lock()
        self._parts, self._tell = parts, tell
        self._file = FileOnDisk(path)
        self._journal: Journal | None = None
        self._is_dirty = False
        self._rewriter: Rewriter | None = None
        self._claim = ExitStack()
        refusal = JournalError(f"{path}: is being annotated by another process; use that one, or end it")
        self._claim.enter_context(claimed(path, refusal))

    # ------------------------------------------------------------------------------ reading

    def read(self) -> bytes:
        """The file."""
        return self._file.read()

    def open_journal(self, sentences: int) -> tuple[Replay | None, bool]:
        """What the journal of the file says, and whether it fits the file; one that does not is set aside."""
        path = _journal_path(self.path)
        if not path.exists():
            return None, False
        known = replay(path)
        if known is not None and known.fits(self._file.sha256, sentences):
            self._journal = Journal.open(path, known.end)
            return known, True
        _set_aside(path)
        return known, False

    def change_at(self, place: int) -> Change:
        """The change at a place in the journal."""
        assert self._journal is not None
        return self._journal.change_at(place)

    # ------------------------------------------------------------------------------ writing

    def append(self, record: Record, start: Callable[[str], Start]) -> int:
        """Add a record to the journal, which begins with `start` of the file's checksum; returns its place."""
        if self._journal is None:
            self._journal = Journal.create(_journal_path(self.path), start(self._file.sha256))
        return self._journal.append(record)

    def append_if_begun(self, record: Record, *, sync: bool = True) -> None:
        """Add a record, unless nothing has been changed yet."""
        if self._journal is not None:
            self._journal.append(record, sync=sync)

    def begin_rewriting(self) -> None:
        """Write the file after changes, and look at it every second, from now on."""
        self._rewriter = Rewriter(self.rewrite, self._look)
        if self._is_dirty:
            self._rewriter.wake()

    def make_dirty(self) -> None:
        """There is something to write."""
        self._is_dirty = True
        if self._rewriter is not None:
            self._rewriter.wake()

    def rewrite(self, *, anyway: bool = False) -> bool:
        """Write the file if it has to be, and is ours; false if that failed, and should be tried again."""
        with self._writing:
            with self._lock:
                if not self._is_dirty or (self.changed_underneath and not anyway):
                    return True
                parts, self._is_dirty = self._parts(), False
            try:
                self._file.write(parts, self._announce, anyway=anyway)
            except ChangedUnderneathError:
                self._is_dirty = True
                self._notice()
                return True
            except HeadwayError as error:
                self._is_dirty = True
                self._complain(str(error))
                return False
            with self._lock:
                self.append_if_begun(Checkpoint(self._file.sha256, is_done=True), sync=False)
            is_news = self.problem is not None or self.changed_underneath
            self.problem, self.changed_underneath = None, False
        if is_news:
            self._tell("file", changed_underneath=False, problem=None)
        self._tell("written")
        return True

    def overwrite(self) -> None:
        """Put our version in place of what another program wrote."""
        self.make_dirty()
        if not self.rewrite(anyway=True):
            raise JournalError(str(self.problem))

    def start_over(self, take: Callable[[bytes], None]) -> None:
        """Hand over the file as another program left it; the journal is set aside."""
        with self._writing, self._lock:
            take(self._file.read())
            if self._journal is not None:
                self._journal.close()
                self._journal = None
                _set_aside(_journal_path(self.path))
            self._is_dirty = self.changed_underneath = False
            self.problem = None
        self._tell("file", changed_underneath=False, problem=None)

    def close(self) -> None:
        """Write what is still to be written, and let others have the file."""
        if self._rewriter is not None:
            self._rewriter.close()
        try:
            self.rewrite()
        finally:
            if self._journal is not None:
                self._journal.close()
            self._claim.close()

    # ------------------------------------------------------------------------------ within

    def _announce(self, sha256: str) -> None:
        with self._lock:
            self.append_if_begun(Checkpoint(sha256, is_done=False))

    def _look(self) -> None:
        with self._writing:
            if not self.changed_underneath and not self._file.is_known():
                self._notice()

    def _notice(self) -> None:
        self.changed_underneath = True
        self._tell("file", changed_underneath=True, problem=self.problem)

    def _complain(self, problem: str) -> None:
        if self.problem != problem:
            self.problem = problem
            self._tell("file", changed_underneath=self.changed_underneath, problem=problem)


def _journal_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.journal")


def _set_aside(journal: Path) -> None:
    for number in count(1):
        target = journal.with_name(f"{journal.name}.{number}")
        if not target.exists():
            journal.rename(target)
            return
