"""What happens to a workspace, told to whoever listens: other windows, other annotators.

Events are dictionaries for JSON, numbered without gaps. The last ones are kept, so that a listener who was away can
catch up; one who was away for too long is told to read everything again (`{"kind": "reload"}`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

Event = dict[str, Any]
Listener = Callable[[Event], None]

_KEPT = 1000


class Events:
    """The events so far, and who listens."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: deque[Event] = deque(maxlen=_KEPT)
        self._listeners: list[Listener] = []
        self._number = 0

    def tell(self, kind: str, **details: Any) -> None:
        """Add an event; listeners are called one after the other, in the order of events."""
        with self._lock:
            self._number += 1
            event = {"number": self._number, "kind": kind, **details}
            self._kept.append(event)
            for listener in self._listeners:
                listener(event)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call a function with every event from now on, from any thread; it must be quick. Returns how to end that."""
        with self._lock:
            self._listeners.append(listener)

        def unsubscribe() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return unsubscribe

    def since(self, number: int) -> list[Event]:
        """The events after that one."""
        with self._lock:
            if not 0 <= number <= self._number or self._number - number > len(self._kept):
                return [{"number": self._number, "kind": "reload"}]
            return [event for event in self._kept if event["number"] > number]
