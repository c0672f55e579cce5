"""Cells computed side by side: processes that share one GPU, each of which computes one cell after the other.

A process imports, compiles and reads once. The next cell goes to the first process that is free, as long as it is
expected to end in time; how long a cell takes is estimated from those that are done. Results are files that come whole
or not at all, so whatever ends the processes costs the cells under way and no other.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from headway_papers.corpora import Say
from headway_papers.neural_plan import OVERHEAD, SPEEDS, Cell
from headway_papers.neural_training import Job

_CONTROL = "nvidia-cuda-mps-control"
_PIPE, _LOG = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
_PATIENCE = 60.0  # seconds that a process may take to say that it sees the GPU


@dataclass
class Estimates:
    """Seconds that cells are expected to take: their work at the speed of their model."""

    speeds: dict[str, float] = field(default_factory=lambda: dict(SPEEDS))
    measured: set[str] = field(default_factory=set)

    def seconds(self, cell: Cell) -> float:
        return OVERHEAD + cell.work / self.speeds[cell.model]

    def learn(self, cell: Cell, seconds: float) -> None:
        """A speed is the slowest that was measured."""
        if not cell.work:  # networks that only parse together
            return
        speed = cell.work / max(1e-3, seconds)
        self.speeds[cell.model] = min(speed, self.speeds[cell.model]) if cell.model in self.measured else speed
        self.measured.add(cell.model)


class _Task(NamedTuple):
    """A cell to compute, or one whose network is to teach others."""

    cell: Cell
    teaches: bool

    def can_begin(self, job: Job) -> bool:
        return self.teaches or not job.untrained([self.cell])


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    task: _Task | None = None


def compute_all(cells: Sequence[Cell], job: Job, *, processes: int, seconds: float | None, say: Say) -> None:
    """Compute cells in their order, their teachers first, in so many processes, and begin none that is not expected to
    end in `seconds`."""
    end = None if seconds is None else time.monotonic() + seconds
    waiting = [*(_Task(cell, True) for cell in job.untrained(cells)), *(_Task(cell, False) for cell in cells)]
    estimates = Estimates()
    with shared_gpu(say), _workers(min(processes, len(waiting)), job) as workers:
        while True:
            for worker in workers:
                if worker.task is None:
                    worker.task = _next(waiting, job, estimates, end)
                    if worker.task is not None:
                        worker.connection.send(worker.task)
            busy = {worker.connection: worker for worker in workers if worker.task is not None}
            if not busy:
                break
            left = None if end is None else max(0.0, end - time.monotonic())
            ready = wait(list(busy), left)
            if not ready:
                under_way = ", ".join(worker.task.cell.name for worker in busy.values() if worker.task)
                say(f"out of time; not finished: {under_way}")
                break
            for connection in ready:
                _receive(busy[connection], workers, estimates, say)  # type: ignore[index]
    if waiting:
        say(f"not begun: {', '.join(task.cell.name for task in waiting)}")


def _next(waiting: list[_Task], job: Job, estimates: Estimates, end: float | None) -> _Task | None:
    """The first of the waiting tasks that has its teachers and fits into the time left."""
    for task in waiting:
        fits = end is None or time.monotonic() + estimates.seconds(task.cell) <= end
        if fits and task.can_begin(job):
            waiting.remove(task)
            return task
    return None


def _receive(worker: _Worker, workers: list[_Worker], estimates: Estimates, say: Say) -> None:
    task = worker.task
    assert task is not None
    worker.task = None
    try:
        done, told = worker.connection.recv()
    except EOFError:
        say(f"{task.cell.name}: its process ended (exit code {worker.process.exitcode})")
        workers.remove(worker)
        return
    if done:
        estimates.learn(task.cell, told)
    else:
        say(f"{task.cell.name}: failed\n{told}")


@contextmanager
def _workers(count: int, job: Job) -> Iterator[list[_Worker]]:
    """Processes that wait for cells; they are ended with whatever they are at."""
    context = get_context("spawn")
    made = []
    for _ in range(count):
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, job), daemon=True)
        process.start()
        theirs.close()
        made.append(_Worker(process, ours))
    everyone = list(made)
    try:
        yield made
    finally:
        for worker in everyone:
            worker.process.terminate()
        for worker in everyone:
            worker.process.join()


def _work(connection: Connection, job: Job) -> None:
    """One task after the other, as they come."""
    from headway_papers.neural_training import train_teacher

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    few_threads()
    while True:
        try:
            cell, teaches = connection.recv()
        except EOFError:
            return
        try:
            work = train_teacher if teaches else _training_seconds
            connection.send((True, work(cell, job, _say)))
        except Exception:  # the others go on
            connection.send((False, traceback.format_exc()))


def _training_seconds(cell: Cell, job: Job, say: Say) -> float:
    from headway_papers.neural_training import compute

    return float(compute(cell, job, say)["training_seconds"])


def _say(line: str) -> None:
    print(line, flush=True)


def side_by_side(work: Sequence[Callable[[], str]], processes: int, say: Say) -> None:
    """Each of the functions, in so many processes; in this one, one after the other, where that is one. They say what
    they return."""
    if processes == 1:
        for each in work:
            say(each())
    elif work:
        context = get_context("spawn")
        with ProcessPoolExecutor(min(processes, len(work)), context, initializer=few_threads) as pool:
            for done in [pool.submit(each) for each in work]:
                say(done.result())


def few_threads() -> None:
    """Processes side by side would only get in each other's way with more."""
    import torch

    torch.set_num_threads(max(1, int(os.environ.get("OMP_NUM_THREADS", "1"))))


@contextmanager
def shared_gpu(say: Say) -> Iterator[None]:
    """Let processes use the GPU at the same time rather than in turns, where NVIDIA's service for that can be had, and
    is not used already."""
    if shutil.which(_CONTROL) is None or _PIPE in os.environ:
        yield
        return
    with TemporaryDirectory(prefix="headway-mps-") as folder:
        own = {_PIPE: f"{folder}/pipe", _LOG: f"{folder}/log"}
        for path in own.values():
            Path(path).mkdir()
        before = {name: os.environ.get(name) for name in own}
        os.environ.update(own)
        started = subprocess.run([_CONTROL, "-d"], capture_output=True).returncode == 0
        works = started and _sees_gpu()
        say(f"NVIDIA MPS: {'used' if works else 'does not work here'}")
        if started and not works:
            _quit()
        if not works:
            _restore(before)
        try:
            yield
        finally:
            if works:
                _quit()
            _restore(before)


def _sees_gpu() -> bool:
    command = [sys.executable, "-c", "import torch; torch.zeros(1, device='cuda')"]
    try:
        return subprocess.run(command, capture_output=True, timeout=_PATIENCE).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _quit() -> None:
    subprocess.run([_CONTROL], input=b"quit\n", capture_output=True)


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
