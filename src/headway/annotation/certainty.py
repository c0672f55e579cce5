"""How sure the model is of every sentence, found in the background, portion by portion.

The thread holds no lock while it parses, and gives way to people: it waits while somebody's sentence is being parsed,
and for a moment after.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_REST = 0.3  # seconds after a person's request


class Background:
    """Calls `work` again and again until it says that there is nothing to do, and then waits to be woken."""

    def __init__(self, work: Callable[[], bool]) -> None:
        self._work = work
        self._condition = threading.Condition()
        self._people = 0
        self._last = 0.0
        self._is_awake = self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="headway-certainty", daemon=True)
        self._thread.start()

    @contextmanager
    def giving_way(self) -> Iterator[None]:
        """While a person waits for something."""
        with self._condition:
            self._people += 1
        try:
            yield
        finally:
            with self._condition:
                self._people -= 1
                self._last = time.monotonic()

    def wake(self) -> None:
        """There may be something to do."""
        with self._condition:
            self._is_awake = True
            self._condition.notify()

    def close(self) -> None:
        """End after the portion that is being parsed."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()
        self._thread.join()

    def _run(self) -> None:
        while self._may_go_on():
            if not self._work():
                with self._condition:
                    self._is_awake = False

    def _may_go_on(self) -> bool:
        with self._condition:
            while not self._is_closed:
                rest = self._last + _REST - time.monotonic()
                if not self._is_awake:
                    self._condition.wait()
                elif self._people or rest > 0:
                    self._condition.wait(max(rest, 0.05))
                else:
                    return True
            return False
