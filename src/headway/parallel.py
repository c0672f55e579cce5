"""Executors: where independent pieces of work run.

Kernels hold no interpreter lock, so threads are enough. Work that runs in pieces gives the same result whichever
executor runs it, to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

R = TypeVar("R")

# A few slices per worker even out sentences of different cost.
_SLICES_PER_WORKER = 4


class Executor(Protocol):
    """Where independent pieces of work run."""

    @property
    def workers(self) -> int:
        """How many pieces can run at the same time."""
        ...

    def map(self, function: Callable[..., R], *iterables: Iterable[Any]) -> list[R]:
        """The results of the calls, in order; the first exception is raised."""
        ...


@dataclass(frozen=True)
class Serial:
    """One piece after the other, in the calling thread."""

    workers: int = 1

    def map(self, function: Callable[..., R], *iterables: Iterable[Any]) -> list[R]:
        return list(map(function, *iterables))


@dataclass(frozen=True)
class Threads:
    """Up to `workers` pieces at a time, each in a thread of its own."""

    workers: int

    def map(self, function: Callable[..., R], *iterables: Iterable[Any]) -> list[R]:
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(function, *iterables))


SERIAL = Serial()


def executor_for(threads: int | None) -> Executor:
    """The executor for so many threads; None stands for every core."""
    if threads is not None and threads < 1:
        raise ValueError(f"threads is {threads}; expected at least 1, or None for every core")
    workers = threads or os.cpu_count() or 1
    return SERIAL if workers == 1 else Threads(workers)


def run_slices(run: Callable[[int, int], None], size: int, executor: Executor) -> None:
    """Call `run(start, stop)` on slices that cover range(size)."""
    if executor.workers == 1 or size < 2 * executor.workers:
        run(0, size)
        return
    pieces = min(size, _SLICES_PER_WORKER * executor.workers)
    edges = [size * piece // pieces for piece in range(pieces + 1)]
    executor.map(run, edges[:-1], edges[1:])
