"""Ray's workers behind the `Workers` protocol: the machines of a cluster, or this one.

```python
with headway.ray.Executor("auto") as cluster:
    parser = Parser.train("train.conllu", learner="loglinear", shards=16, workers=cluster)
```

Every worker has one CPU of the cluster. Shards are pieces that actors hold; other work is tasks. Messages are pickled
here and put into Ray's object store once, however many workers read them there; a worker has its own writable copy,
as compiled kernels know two kinds of arrays, and would be compiled again for those that cannot be written to.

A worker that dies, or whose machine does, is started again somewhere else with its pieces, which this process has kept,
and its call is repeated, as is a task: `ATTEMPTS` times in all. An exception in a worker is raised here.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic

from headway.errors import ArgumentError, HeadwayError, WorkerError
from headway.extras import require_extra
from headway.parallel import Piece, R
from headway.processes import ATTEMPTS
from headway.ray.connection import connect

_WAITING_PER_WORKER = 2  # tasks handed over before their turn


class Executor:
    """The workers of a Ray cluster.

    `address` is "auto" for the cluster that this machine belongs to, "HOST:PORT" or "ray://HOST:PORT" for another, and
    None for processes of this machine alone, with Ray started for them. A Ray that runs in this process already is
    used as it is. `workers` are at most so many; without it, one for every CPU of the cluster.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        require_extra("ray", "ray", "a cluster")
        if workers is not None and workers < 1:
            raise ArgumentError(f"{workers} workers; expected at least 1, or None for every CPU")
        self._is_ours = connect(address, workers)
        import ray

        cpus = int(ray.cluster_resources().get("CPU", 0))
        if cpus < 1:
            raise WorkerError("the Ray cluster has no CPU to work on; start its nodes with --num-cpus")
        self.workers = cpus if workers is None else min(workers, cpus)

    def __enter__(self) -> Executor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster, or end the one that was started for this."""
        import ray

        if self._is_ours:
            ray.shutdown()

    def map(self, function: Callable[..., R], *items: Iterable[Any]) -> list[R]:
        """Results in the order of the items."""
        return [result for _, result in sorted(self.finished(function, *items), key=lambda pair: pair[0])]

    def finished(self, function: Callable[..., R], *items: Iterable[Any]) -> Iterator[tuple[int, R]]:
        """Every result with the number of its item, as soon as it is there; later items wait for earlier results."""
        import ray

        task = ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(_run)
        waiting = enumerate(zip(*items, strict=False))
        running: dict[Any, int] = {}
        try:
            while True:
                while len(running) < _WAITING_PER_WORKER * self.workers and (following := next(waiting, None)):
                    number, item = following
                    running[task.remote(_packed((function, item)))] = number
                if not running:
                    return
                [ready], _ = ray.wait(list(running), num_returns=1)
                yield running.pop(ready), _result(ready)
        finally:
            for left in running:
                ray.cancel(left, force=True)

    @contextmanager
    def hold(self, pieces: Sequence[Piece]) -> Iterator[_HeldByActors[Piece]]:
        """Pieces put with actors until the context is left, dealt out like cards."""
        count = min(self.workers, len(pieces))
        holders = [_Holder(list(pieces[first::count])) for first in range(count)]
        try:
            yield _HeldByActors(holders, len(pieces))
        finally:
            for holder in holders:
                holder.end()


@dataclass(frozen=True)
class _HeldByActors(Generic[Piece]):
    holders: Sequence[_Holder]
    count: int

    def each(self, function: Callable[..., R], *arguments: Any) -> list[R]:
        import ray

        call = ray.put(_packed((function, arguments)))
        for holder in self.holders:
            holder.ask(call)
        results: list[Any] = [None] * self.count
        for first, holder in enumerate(self.holders):
            results[first :: len(self.holders)] = holder.answer()
        return results


@dataclass
class _Holder:
    """An actor and the pieces it has, of which this process keeps a copy: Ray's own may be lost with a machine."""

    pieces: list[Any]
    actor: Any = None
    asked: Any = None
    running: Any = None

    def __post_init__(self) -> None:
        self.start(1)

    def start(self, cpus: int) -> None:
        import ray

        kind = ray.remote(num_cpus=cpus)(_Actor)
        self.actor = kind.remote()
        self.actor.take.remote(_packed(self.pieces))

    def ask(self, call: Any) -> None:
        self.asked, self.running = call, self.actor.call.remote(call)

    def answer(self) -> Any:
        from ray.exceptions import RayActorError

        for _ in range(ATTEMPTS - 1):
            with suppress(RayActorError):
                return _result(self.running)
            self.end()
            self.start(0)  # if its machine is gone, every CPU that is left may be taken
            self.ask(self.asked)
        try:
            return _result(self.running)
        except RayActorError as error:
            raise _lost(error) from None

    def end(self) -> None:
        import ray

        with suppress(Exception):  # it may be dead, and the cluster gone
            ray.kill(self.actor)


class _Actor:
    """Who holds some pieces."""

    def take(self, pieces: bytes) -> None:
        self._pieces = pickle.loads(pieces)

    def call(self, packed: bytes) -> list[Any]:
        function, arguments = pickle.loads(packed)
        return [function(piece, *arguments) for piece in self._pieces]


def _run(packed: bytes) -> Any:
    function, item = pickle.loads(packed)
    return function(*item)


def _packed(message: Any) -> bytes:
    """Also functions of notebooks and scripts, which nobody could import."""
    from ray import cloudpickle

    data: bytes = cloudpickle.dumps(message, protocol=5)
    return data


def _result(answer: Any) -> Any:
    """What a worker returned; what it raised is raised here as it was."""
    import ray
    from ray.exceptions import RayActorError, RayError, RayTaskError

    try:
        return ray.get(answer)
    except RayTaskError as error:
        if isinstance(error.cause, HeadwayError):
            raise error.cause from None
        raise
    except RayActorError:
        raise
    except RayError as error:
        raise _lost(error) from None


def _lost(error: Exception) -> WorkerError:
    cause = str(error).strip().split("\n", 1)[0]
    return WorkerError(
        f"the cluster lost the same work {ATTEMPTS} times ({cause}); is there enough memory on its machines?"
    )
