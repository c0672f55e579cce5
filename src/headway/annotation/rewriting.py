"""When the annotated file is rewritten: soon after a change, and so rarely that it is less than a tenth of the time.

A thread waits for changes, lets more of them come for a moment, and writes. If that took long, as with a very large
file, it waits the longer. Every second it also looks whether another program has changed the file.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from headway.annotation.turns import Turns

_SOON = 0.3  # seconds after a change
_LOOK = 1.0
_SHARE = 10  # times as long as writing took, at least, from one rewriting to the next


class Rewriter:
    """Calls `write` after `wake`, again and again until it says that it could, and `look` every second."""

    def __init__(self, write: Callable[[], bool], look: Callable[[], None]) -> None:
        self._write, self._look = write, look
        self._is_dirty = False
        self._due = self._earliest = 0.0
        self._next_look = time.monotonic() + _LOOK
        self._turns = Turns("headway-rewriting", self._left, self._take)
        self._turns.start()

    def wake(self) -> None:
        """There is something to write."""
        with self._turns.condition:
            if not self._is_dirty:
                self._is_dirty, self._due = True, max(time.monotonic() + _SOON, self._earliest)
                self._turns.ask_again()

    def close(self) -> None:
        """End after what is being written."""
        self._turns.close()

    def _left(self) -> float:
        """Until it is time to look, or to write."""
        at = min(self._next_look, self._due) if self._is_dirty else self._next_look
        return at - time.monotonic()

    def _take(self) -> None:
        self._look()
        with self._turns.condition:
            now = time.monotonic()
            self._next_look = now + _LOOK
            is_due = self._is_dirty and now >= self._due
            self._is_dirty = self._is_dirty and not is_due
        if is_due:
            self._rewrite()

    def _rewrite(self) -> None:
        started = time.monotonic()
        is_written = self._write()
        self._earliest = started + max(_LOOK, _SHARE * (time.monotonic() - started))
        if not is_written:
            self.wake()
