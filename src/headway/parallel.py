"""Where independent pieces of work run: one after the other, in threads, or with workers that share no memory.

Kernels hold no interpreter lock, so threads use every core. Which worker takes a piece never changes its result.

Processes and the machines of a cluster are `Workers`. What they are to do is copied to them, so functions must be found
by name (no lambdas, no closures) and change nothing but what they return. Data that many calls are about is put with
them once, in pieces, and stays there (`hold`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

from headway.errors import ArgumentError

R = TypeVar("R")
Piece = TypeVar("Piece")
Piece_co = TypeVar("Piece_co", covariant=True)

_SLICES_PER_WORKER = 4  # so that a worker with short sentences takes more of them


class Executor(Protocol):
    """Runs a function over items, `workers` of them at a time; results come in the order of the items."""

    @property
    def workers(self) -> int: ...

    def map(self, function: Callable[..., R], *items: Iterable[Any]) -> list[R]: ...


class Held(Protocol[Piece_co]):
    """Pieces of data that stay with whoever computes with them."""

    def each(self, function: Callable[..., R], *arguments: Any) -> list[R]:
        """function(piece, *arguments) for every piece, all at a time; results come in the order of the pieces.

        What the function changes in a piece lasts until its worker is lost: the piece is then what it was when it was
        put there, and the call is made again.
        """
        ...


class Workers(Executor, Protocol):
    """Workers with memories of their own: processes, or a cluster."""

    def finished(self, function: Callable[..., R], *items: Iterable[Any]) -> Iterator[tuple[int, R]]:
        """What `map` gives, each result with the number of its item as soon as it is there."""
        ...

    def hold(self, pieces: Sequence[Piece]) -> AbstractContextManager[Held[Piece]]:
        """Pieces put with the workers, several with one where there are more pieces than workers."""
        ...


@dataclass(frozen=True)
class Here(Held[Piece]):
    """Pieces in this process, one after the other."""

    pieces: Sequence[Piece]

    def each(self, function: Callable[..., R], *arguments: Any) -> list[R]:
        """
        >>> Here([[1, 5], [2]]).each(max)
        [5, 2]
        """
        return [function(piece, *arguments) for piece in self.pieces]


@dataclass(frozen=True)
class Serial:
    """One item after the other, in the calling thread."""

    workers = 1

    def map(self, function: Callable[..., R], *items: Iterable[Any]) -> list[R]:
        """
        >>> SERIAL.map(max, [1, 5], [2, 3])
        [2, 5]
        """
        return list(map(function, *items))


@dataclass(frozen=True)
class Threads:
    """In `workers` threads of this process."""

    workers: int

    def map(self, function: Callable[..., R], *items: Iterable[Any]) -> list[R]:
        """
        >>> Threads(2).map(max, [1, 5], [2, 3])
        [2, 5]
        """
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(function, *items))


def interruptible(run: Callable[[], R], stop: NDArray[np.bool_], seconds: float | None) -> R:
    """Run a kernel that ends soon after stop[0] is set: by Ctrl-C, or when the seconds are over.

    Python hears of Ctrl-C between two of its own instructions only, so the kernel has a thread of its own. A kernel
    that was stopped returns what it has.
    """
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        try:
            return running.result(seconds)
        except TimeoutError:
            stop[0] = True
            return running.result()
        except BaseException:
            stop[0] = True
            raise


SERIAL = Serial()


def executor_for(threads: int | None) -> Executor:
    """The executor for a number of threads; None is one for every core.

    >>> executor_for(1), executor_for(3)
    (Serial(), Threads(workers=3))
    """
    if threads is not None and (not hasattr(threads, "__index__") or threads < 1):
        raise ArgumentError(f"threads is {threads!r}; expected at least 1, or None for every core")
    workers = threads or os.cpu_count() or 1
    return SERIAL if workers == 1 else Threads(workers)


def run_slices(
    run: Callable[[int, int], None], size: int, executor: Executor, *, grain: int = 1, most: int | None = None
) -> None:
    """Call `run(start, stop)` on slices that cover range(size).

    Slices start at multiples of `grain`; no more than `most` workers are worth starting.
    """
    grains = -(-size // grain)
    workers = min(executor.workers, grains, executor.workers if most is None else most)
    if workers <= 1:
        run(0, size)
        return
    pieces = min(grains, _SLICES_PER_WORKER * workers)
    edges = [min(size, grain * (grains * piece // pieces)) for piece in range(pieces + 1)]
    executor.map(run, edges[:-1], edges[1:])
