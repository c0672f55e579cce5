"""Where workers run: processes of this machine, or actors of a Ray cluster. A job sees no difference.

A worker is a number. It is started, called (one call at a time), waited for, and stopped; every call gets one answer,
and so does the start, which is answered by `Ready` or `Failed`. A worker that is lost answers with `Lost`, once, and is
gone.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class Lost(NamedTuple):
    """The answer of a worker that ended, and what is known of the cause."""

    reason: str


class Answer(NamedTuple):
    """What a worker answers to a call."""

    worker: int
    value: Any


class Pool(Protocol):
    """Workers, wherever they run."""

    @property
    def size(self) -> int:
        """How many workers there should be. On a cluster, it changes with the nodes."""
        ...

    def start(self) -> int:
        """Start a worker."""
        ...

    def call(self, worker: int, method: str, *arguments: Any) -> None:
        """Call a method of the worker, which has answered its last call."""
        ...

    def wait(self, seconds: float) -> list[Answer]:
        """The answers that are there, as soon as there are some, or after so many seconds."""
        ...

    def stop(self, worker: int) -> None:
        """End a worker now, whatever it does."""
        ...

    def close(self) -> None:
        """End all workers."""
        ...
