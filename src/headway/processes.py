"""Workers that are processes of this machine, each with an interpreter of its own.

A process is asked through a `channel`, one call at a time. One that dies is replaced and gets its pieces again, and the
call is repeated; a call that kills `ATTEMPTS` processes in a row is an error. Processes take no notice of Ctrl-C, which
is for the process that started them, and end with it.
"""

from __future__ import annotations

import pickle
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, NamedTuple

from headway.channel import Channel
from headway.errors import ArgumentError, HeadwayError, WorkerError
from headway.parallel import Piece, R

ATTEMPTS = 3
_SECONDS_TO_END = 5.0

Call = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Processes:
    """So many processes of this machine."""

    workers: int

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ArgumentError(f"{self.workers} processes; expected at least 1")

    def map(self, function: Callable[..., R], *items: Iterable[Any]) -> list[R]:
        """Results in the order of the items."""
        return [result for _, result in sorted(self.finished(function, *items), key=lambda pair: pair[0])]

    def finished(self, function: Callable[..., R], *items: Iterable[Any]) -> Iterator[tuple[int, R]]:
        """Every result with the number of its item, as soon as it is there."""
        waiting = deque(enumerate(zip(*items, strict=False)))
        with _processes([None] * min(self.workers, len(waiting))) as processes:
            number: dict[Connection, int] = {}
            while True:
                for process in processes:
                    if process.call is None and waiting:
                        number[process.channel.connection], item = waiting.popleft()
                        process.ask((function, item))
                busy = {process.channel.connection: process for process in processes if process.call is not None}
                if not busy:
                    return
                for connection in wait(list(busy)):
                    process, done = busy[connection], number.pop(connection)  # type: ignore[index,call-overload]
                    yield done, process.answer().result()

    @contextmanager
    def hold(self, pieces: Sequence[Piece]) -> Iterator[_HeldByProcesses[Piece]]:
        """Pieces put with the processes until the context is left, dealt out like cards."""
        count = min(self.workers, len(pieces))
        with _processes([list(pieces[first::count]) for first in range(count)]) as processes:
            yield _HeldByProcesses(processes, len(pieces))


@dataclass(frozen=True)
class _HeldByProcesses(Generic[Piece]):
    processes: Sequence[_Process]
    count: int

    def each(self, function: Callable[..., R], *arguments: Any) -> list[R]:
        for process in self.processes:
            process.ask((function, arguments))
        answers = [process.answer() for process in self.processes]  # all of them, also where one is an error
        results: list[Any] = [None] * self.count
        for first, answer in enumerate(answers):
            results[first :: len(answers)] = answer.result()
        return results


class _Answer(NamedTuple):
    """What a call gave: a value, or the exception that ended it."""

    went_well: bool
    value: Any

    def result(self) -> Any:
        if not self.went_well:
            raise self.value
        return self.value


@dataclass
class _Process:
    """A process and the call it is at; `pieces` None is one that holds nothing."""

    pieces: list[Any] | None
    process: BaseProcess = field(init=False)
    channel: Channel = field(init=False)
    call: Call | None = None

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        context = get_context("spawn")  # a fork would copy threads' locks, but not the threads
        connection, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.channel = Channel(connection)

    def give(self) -> None:
        """Its pieces; a pipe holds little, so this waits until the process is there to read."""
        pipe = self.channel
        with suppress(ConnectionError):  # it has ended already: nobody answers, either
            self.channel = Channel.open(pipe.connection)
            pipe.send(self.pieces)  # what is sent once needs no memory that is kept

    def ask(self, call: Call) -> None:
        self.call = call
        with suppress(ConnectionError):  # likewise
            self.channel.send(call)

    def answer(self) -> _Answer:
        call = self.call
        assert call is not None
        for attempt in range(ATTEMPTS):
            if attempt:
                self.end()
                self.start()
                self.give()
                self.ask(call)
            with suppress(EOFError, OSError):
                answer: _Answer = self.channel.receive()
                self.call = None
                return answer
        self.process.join(_SECONDS_TO_END)
        raise WorkerError(
            f"{ATTEMPTS} processes ended one after the other in the same work (the last with status "
            f"{self.process.exitcode}); is there enough memory? Take fewer processes"
        )

    def end(self) -> None:
        self.channel.connection.close()
        self.process.terminate()
        self.process.join(_SECONDS_TO_END)


@contextmanager
def _processes(pieces: Sequence[list[Any] | None]) -> Iterator[list[_Process]]:
    started: list[_Process] = []
    try:
        for own in pieces:
            started.append(_Process(own))
        for process in started:  # when all are on their way
            process.give()
        yield started
    finally:
        for process in started:
            process.end()


def _serve(connection: Connection) -> None:
    """What a process does: answer calls until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        channel = Channel.join(connection)
        pieces = channel.receive()
        while True:
            function, arguments = channel.receive()
            try:
                if pieces is None:
                    answer = _Answer(True, function(*arguments))
                else:
                    answer = _Answer(True, [function(piece, *arguments) for piece in pieces])
            except Exception as error:
                error.add_note(f"In a worker process:\n{traceback.format_exc()}")
                answer = _Answer(False, _sendable(error))
            channel.send(answer)


def _sendable(error: Exception) -> Exception:
    """The error, or its text where it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        text = str(error) if isinstance(error, HeadwayError) else f"{type(error).__name__}: {error}"
        return WorkerError(text)
    return error
