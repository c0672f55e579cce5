"""When the annotated file is rewritten: soon after a change, and so rarely that it is less than a tenth of the time.

A thread waits for changes, lets more of them come for a moment, and writes. If that took long, as with a very large
file, it waits the longer. Every second it also looks whether another program has changed the file.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_SOON = 0.3  # seconds after a change
_LOOK = 1.0
_SHARE = 10  # times as long as writing took, at least, from one rewriting to the next


class Rewriter:
    """Calls `write` after `wake`, again and again until it says that it could, and `look` every second."""

    def __init__(self, write: Callable[[], bool], look: Callable[[], None]) -> None:
        self._write, self._look = write, look
        self._condition = threading.Condition()
        self._is_dirty = self._is_closed = False
        self._due = self._earliest = 0.0
        self._thread = threading.Thread(target=self._run, name="headway-rewriting", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There is something to write."""
        with self._condition:
            if not self._is_dirty:
                self._is_dirty, self._due = True, max(time.monotonic() + _SOON, self._earliest)
                self._condition.notify()

    def close(self) -> None:
        """End after what is being written."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()
        self._thread.join()

    def _run(self) -> None:
        while self._wait():
            self._look()
            with self._condition:
                is_due = self._is_dirty and time.monotonic() >= self._due
                self._is_dirty = self._is_dirty and not is_due
            if is_due:
                started = time.monotonic()
                is_written = self._write()
                self._earliest = started + max(_LOOK, _SHARE * (time.monotonic() - started))
                if not is_written:
                    self.wake()

    def _wait(self) -> bool:
        """Until it is time to look, or to write; false when all is over."""
        with self._condition:
            if self._is_dirty:
                left = max(0.0, min(_LOOK, self._due - time.monotonic()))
                self._condition.wait_for(lambda: self._is_closed, left)
            else:
                self._condition.wait_for(lambda: self._is_dirty or self._is_closed, _LOOK)
            return not self._is_closed
