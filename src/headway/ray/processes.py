"""Workers that are processes of this machine: no Ray is needed.

Each is a new interpreter at the other end of a pipe. It ignores Ctrl-C, which is its parent's affair, and ends when the
pipe does: nothing is left behind if the parent is killed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, cast

from headway.errors import HeadwayError
from headway.ray.pool import Answer, Lost
from headway.ray.worker import Failed, ShardWorker, Work

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_QUIET = "HEADWAY_QUIET"  # one process says that kernels are compiled
_MOMENT = 1.0  # seconds for a process to end that was killed


class Processes:
    """A pool of `size` processes with a thread each."""

    def __init__(self, work: Work, size: int) -> None:
        self.size = size
        self._work = work
        self._spawn = get_context("spawn")
        self._workers: dict[int, tuple[SpawnProcess, Connection]] = {}
        self._started = 0

    def start(self) -> int:
        """Start a process."""
        ours, theirs = self._spawn.Pipe()
        process = self._spawn.Process(target=serve, args=(theirs, self._work), daemon=True)
        with _environment(dict.fromkeys(_ONE_THREAD, "1") | ({_QUIET: "1"} if self._started else {})):
            process.start()
        theirs.close()
        self._started += 1
        self._workers[self._started] = process, ours
        return self._started

    def call(self, worker: int, method: str, *arguments: Any) -> None:
        """Send the call; a process that is gone says so when it is waited for."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self._workers[worker][1].send((method, arguments))

    def wait(self, seconds: float) -> list[Answer]:
        """The answers in the pipes."""
        ends = {connection: worker for worker, (_, connection) in self._workers.items()}
        answers = []
        for connection in cast(list[Connection], wait(list(ends), seconds)):
            try:
                answers.append(Answer(ends[connection], connection.recv()))
            except (EOFError, ConnectionResetError):
                answers.append(Answer(ends[connection], Lost(self._cause(ends[connection]))))
        return answers

    def stop(self, worker: int) -> None:
        """Kill the process."""
        process, connection = self._workers.pop(worker)
        process.kill()
        process.join(_MOMENT)
        connection.close()

    def close(self) -> None:
        """Kill all of them, then wait for them."""
        for process, _ in self._workers.values():
            process.kill()
        for worker in list(self._workers):
            self.stop(worker)

    def _cause(self, worker: int) -> str:
        """How the process ended."""
        process = self._workers[worker][0]
        process.join(_MOMENT)
        code = process.exitcode
        self.stop(worker)
        if code is None or code >= 0:
            return f"its process ended with status {code}"
        return f"its process was killed by {signal.Signals(-code).name}"


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """What a process that is started in here finds in its environment."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def serve(connection: Connection, work: Work) -> None:
    """What the process does: load the model, and answer calls until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        worker = ShardWorker(work)
    except (HeadwayError, OSError, MemoryError) as error:
        connection.send(Failed("start", str(error) or "out of memory"))
        return
    try:
        connection.send(worker.ready())
        while True:
            method, arguments = connection.recv()
            connection.send(getattr(worker, method)(*arguments))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
