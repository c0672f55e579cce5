"""Input from a pipe, taken as it comes: what has been read is parsed when nothing more comes for a moment.

A thread reads ahead. It waits for the pipe in short turns, so that it ends soon after nobody wants more.
"""

from __future__ import annotations

import io
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Full, Queue
from select import select
from threading import Event, Thread
from typing import IO, Any, TypeVar

T = TypeVar("T", bound=Sized)

_PAUSE = 0.1  # seconds without anything new
_LONGEST = 1.0  # seconds that the first sentence waits for others
_ENOUGH = 10_000  # words: some hundred sentences
_AHEAD = 64  # sentences
_TURN = 0.1  # seconds


class Pipe(io.RawIOBase):
    """A pipe to read from, under the name that errors say, until it is told to stop."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self.name = name
        self._stream = stream
        self._stopped = Event()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Some bytes, as soon as there are any; none at the end."""
        while not self._stopped.is_set():
            if select([self._stream], [], [], _TURN)[0]:
                piece = self._stream.read1(len(buffer))  # type: ignore[attr-defined]
                buffer[: len(piece)] = piece
                return len(piece)
        return 0

    def as_they_come(self, sentences: Iterable[T]) -> Iterator[list[T]]:
        """Sentences that are made from what is read, in portions: what there is after a pause, or when it is enough.

        An error in reading is raised after the sentences before it.
        """
        queue: Queue[tuple[T] | BaseException | None] = Queue(_AHEAD)
        reader = Thread(target=self._read, args=[sentences, queue], daemon=True)
        reader.start()
        try:
            item: Any = queue.get()
            while isinstance(item, tuple):
                portion, size, end = [item[0]], len(item[0]), time.monotonic() + _LONGEST
                while size < _ENOUGH:
                    try:
                        item = queue.get(timeout=max(0.0, min(_PAUSE, end - time.monotonic())))
                    except Empty:
                        break
                    if not isinstance(item, tuple):
                        break
                    portion.append(item[0])
                    size += len(item[0])
                yield portion
                item = queue.get() if isinstance(item, tuple) else item
            if item is not None:
                raise item
        finally:
            self._stopped.set()
            reader.join()

    def _read(self, sentences: Iterable[T], queue: Queue[tuple[T] | BaseException | None]) -> None:
        try:
            for sentence in sentences:
                self._put(queue, (sentence,))
            self._put(queue, None)
        except BaseException as error:
            self._put(queue, error)

    def _put(self, queue: Queue[Any], item: Any) -> None:
        while not self._stopped.is_set():
            try:
                queue.put(item, timeout=_TURN)
                return
            except Full:
                continue


@contextmanager
def pipe_of(input: str) -> Iterator[Pipe | None]:
    """The pipe that an input is; None for a file or a terminal, which are read as usual."""
    if os.name != "posix":
        yield None
    elif input == "-":
        yield Pipe(sys.stdin.buffer, "standard input") if _is_pipe(sys.stdin) else None
    elif Path(input).is_fifo():
        with Path(input).open("rb") as stream:
            yield Pipe(stream, input)
    else:
        yield None


def _is_pipe(stream: Any) -> bool:
    """Whether a stream is a pipe or a socket, rather than a file, a terminal, or something in memory."""
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
