"""How sure the model is of every sentence, found in the background, portion by portion.

The thread holds no lock while it parses, and gives way to people: it waits while somebody's sentence is being parsed,
and for a moment after.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headway.annotation.turns import Turns

_REST = 0.3  # seconds after a person's request
_LOOK = 0.05  # seconds after which we look whether people still wait


class Background:
    """Calls `work` again and again until it says that there is nothing to do, and then waits to be woken."""

    def __init__(self, work: Callable[[], bool]) -> None:
        self._work = work
        self._people = 0
        self._last = 0.0
        self._is_awake = False
        self._turns = Turns("headway-certainty", self._left, self._take)
        self._turns.start()

    @contextmanager
    def giving_way(self) -> Iterator[None]:
        """While a person waits for something."""
        with self._turns.condition:
            self._people += 1
        try:
            yield
        finally:
            with self._turns.condition:
                self._people -= 1
                self._last = time.monotonic()

    def wake(self) -> None:
        """There may be something to do."""
        with self._turns.condition:
            self._is_awake = True
            self._turns.ask_again()

    def close(self) -> None:
        """End after the portion that is being parsed."""
        self._turns.close()

    def _left(self) -> float | None:
        if not self._is_awake:
            return None
        rest = self._last + _REST - time.monotonic()
        return max(rest, _LOOK) if self._people else rest

    def _take(self) -> None:
        with self._turns.condition:
            self._is_awake = False  # whoever wakes us from now on is heard
        if self._work():
            self.wake()
