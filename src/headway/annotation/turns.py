"""A thread that takes turns: it waits until the next one is due, takes it, and asks again."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Turns:
    """Calls `take` whenever `left` says that no seconds are left; None is to wait until somebody calls `ask_again`.

    `left` is called with the condition held, which also guards what it looks at.
    """

    def __init__(self, name: str, left: Callable[[], float | None], take: Callable[[], None]) -> None:
        self.condition = threading.Condition()
        self._left, self._take = left, take
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def ask_again(self) -> None:
        """The next turn may be due at another time; to be called with the condition held."""
        self.condition.notify()

    def close(self) -> None:
        """End after the turn that is being taken."""
        with self.condition:
            self._is_closed = True
            self.condition.notify()
        self._thread.join()

    def _run(self) -> None:
        while self._is_due():
            self._take()

    def _is_due(self) -> bool:
        """Wait for the next turn; false when all is over."""
        with self.condition:
            while not self._is_closed:
                left = self._left()
                if left is not None and left <= 0:
                    return True
                self.condition.wait(left)
            return False
