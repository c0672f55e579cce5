"""A corpus from its first shard to its last: who does what, and what happens when something goes wrong.

Every document comes out once, in the order of its shard. The leader keeps no more than the shards that workers have,
and those in trouble; all else is in the folder (`headway.ray.manifest`), from which the same command goes on.

| what happens | what follows |
| --- | --- |
| a worker or its node is lost, or takes too long | another begins the shard again, its last step one by one |
| a document costs its worker `TRIES` times in a row | it goes to the errors |
| an input cannot be read, `TRIES` times | the shard is left for the next run, the others are done |
| a worker cannot write | another begins the shard again; that worker gets no more work |
| no worker can write or start, or the model cannot parse such files | the job ends with one sentence |

Why not Ray Data: it knows blocks, not documents. It begins a block again until a number of tries is used up, cannot
tell which document is the cause, and forgets what was done when its driver is killed. A hundred lines are shorter than
what it would take to add that. `headway.ray.parse` is for those who have a Dataset already.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headway import __version__
from headway.errors import CorpusError
from headway.ray.manifest import CorpusFolder
from headway.ray.plan import Shard
from headway.ray.pool import Lost, Pool
from headway.ray.worker import Failed, Ready, Step, Task

TRIES = 3

_LOSSES = 50  # of workers with one shard, none of them a document's fault: something else is wrong
_FALSE_STARTS = 30  # in a row
_WAIT = 0.2  # seconds


class Progress(NamedTuple):
    """Where a job stands. Documents, words and seconds are those of this run; `left` is None while nobody can tell."""

    shards: int
    shards_done: int
    documents: int
    errors: int
    words: int
    seconds: float
    words_per_second: float
    left: float | None
    workers: int


@dataclass
class _Trouble:
    """What went wrong with a shard so far."""

    begun: int = 0
    losses: int = 0
    failures: int = 0
    alone: tuple[range, ...] = ()
    strikes: Counter[int] = field(default_factory=Counter)
    left_out: dict[int, str] = field(default_factory=dict)


@dataclass
class _Assigned:
    """A shard that a worker has: its last answer, None before the first, and since when it owes the next."""

    shard: Shard
    step: Step | None
    since: float


class Job:
    """The leader of a pool of workers."""

    def __init__(
        self,
        pool: Pool,
        folder: CorpusFolder,
        shards: Callable[[], Iterable[Shard]],
        *,
        seconds: float,
        show: Callable[[Progress], None],
        note: Callable[[str], None],
    ) -> None:
        self._pool, self._folder, self._seconds, self._show, self._note = pool, folder, seconds, show, note
        self._shards, self._bytes = 0, 0
        for shard in shards():
            self._shards += 1
            self._bytes += 0 if folder.is_done(shard.number) else shard.size
        self._missing = (shard for shard in shards() if not folder.is_done(shard.number))
        self._left = self._shards - folder.done
        self._again: deque[Shard] = deque()
        self._troubles: dict[int, _Trouble] = {}
        self._given_up: dict[int, str] = {}
        self._starting: set[int] = set()
        self._idle: list[int] = []
        self._busy: dict[int, _Assigned] = {}
        self._dismissed = self._false_starts = 0
        self._counts = Counter[str]()
        self._begun: float | None = None

    def run(self) -> None:
        """Do all that is missing."""
        while self._left > len(self._given_up):
            self._staff()
            self._assign()
            for worker, value in self._pool.wait(_WAIT):
                self._hear(worker, value)
            self._stop_overdue()
            self._show(self.progress())
        if self._given_up:
            number, reason = min(self._given_up.items())
            raise CorpusError(
                f"{len(self._given_up)} of {self._shards} shards could not be done; the first is {number}: {reason}; "
                "put that right, and run the same command again"
            )

    def progress(self) -> Progress:
        """Where the job stands."""
        seconds = 0.0 if self._begun is None else time.monotonic() - self._begun
        running = [assigned.step for assigned in self._busy.values() if assigned.step is not None]
        words = self._counts["words"] + sum(step.words for step in running)
        share = 0.0
        if self._counts["words"]:
            share = self._counts["size"] / max(1, self._bytes) * words / self._counts["words"]
        return Progress(
            self._shards,
            self._folder.done,
            self._counts["documents"] + sum(step.done for step in running),
            self._counts["errors"],
            words,
            seconds,
            words / max(seconds, 1e-3),
            seconds * (1 / share - 1) if 0 < share < 1 else None,
            len(self._busy) + len(self._idle),
        )

    def _staff(self) -> None:
        """Start workers until there are as many as there should be, or as there is work for."""
        employed = len(self._starting) + len(self._idle) + len(self._busy)
        wanted = min(self._pool.size - self._dismissed, self._left - len(self._given_up))
        for _ in range(wanted - employed):
            self._starting.add(self._pool.start())

    def _assign(self) -> None:
        """Give shards to those who wait for one."""
        while self._idle and (shard := self._next()) is not None:
            trouble = self._troubles.setdefault(shard.number, _Trouble())
            trouble.begun += 1
            worker = self._idle.pop()
            self._busy[worker] = _Assigned(shard, None, time.monotonic())
            task = Task(shard, f"{trouble.begun}-{worker}", trouble.alone, dict(trouble.left_out))
            self._pool.call(worker, "begin", task)

    def _next(self) -> Shard | None:
        return self._again.popleft() if self._again else next(self._missing, None)

    def _hear(self, worker: int, value: Any) -> None:
        """Act on an answer."""
        if isinstance(value, Step):
            self._advance(worker, value)
        elif isinstance(value, Ready):
            self._welcome(worker, value)
        elif isinstance(value, Lost):
            self._lose(worker, value.reason)
        elif isinstance(value, Failed):
            self._fail(worker, value)
        else:
            raise AssertionError(f"a worker answers {value!r}")

    def _welcome(self, worker: int, ready: Ready) -> None:
        if ready.version != __version__:
            raise CorpusError(
                f"{ready.host} has Headway {ready.version}, and this machine {__version__}; install one version on all"
            )
        self._begun = self._begun or time.monotonic()
        self._false_starts = 0
        self._starting.discard(worker)
        self._idle.append(worker)

    def _advance(self, worker: int, step: Step) -> None:
        """The next step, or the end of the shard."""
        shard = self._busy[worker].shard
        for survived in [number for number in self._troubles[shard.number].strikes if number < step.done]:
            del self._troubles[shard.number].strikes[survived]
        if step.entry is None:
            self._busy[worker] = _Assigned(shard, step, time.monotonic())
            self._pool.call(worker, "step")
            return
        entry = self._folder.commit(step.entry)
        del self._troubles[shard.number]
        del self._busy[worker]
        self._idle.append(worker)
        self._left -= 1
        self._counts.update({name: entry[name] for name in ("documents", "errors", "words")}, size=shard.size)

    def _lose(self, worker: int, reason: str) -> None:
        """Give the shard to another, and look closer at what was being parsed."""
        if worker not in self._busy:
            self._false_start(worker, reason)
            return
        assigned = self._busy.pop(worker)
        number, step = assigned.shard.number, assigned.step
        trouble = self._troubles[number]
        trouble.losses += 1
        if step is not None:
            trouble.alone = (*trouble.alone, range(step.done, step.done + step.next))
            if step.next == 1:
                self._strike(trouble, step.done, reason)
        self._note(f"shard {number} is begun again: {reason}")
        self._return(assigned.shard, trouble.losses > _LOSSES, reason)

    def _strike(self, trouble: _Trouble, document: int, reason: str) -> None:
        """Hold the loss of a worker against the only document that it was parsing."""
        trouble.strikes[document] += 1
        if trouble.strikes[document] >= TRIES:
            trouble.left_out[document] = f"its worker was lost {TRIES} times in a row: {reason}"
            trouble.losses = 0

    def _fail(self, worker: int, failed: Failed) -> None:
        if failed.what == "start":
            self._pool.stop(worker)
            if self._begun is None:
                raise CorpusError(f"no worker can start: {failed.reason}")
            self._false_start(worker, failed.reason)
            return
        if failed.what == "model":
            raise CorpusError(failed.reason)
        shard = self._busy.pop(worker).shard
        if failed.what == "write":
            self._pool.stop(worker)
            self._dismiss(shard, failed.reason)
            return
        self._idle.append(worker)
        trouble = self._troubles[shard.number]
        trouble.failures += 1
        self._note(f"shard {shard.number}: {failed.reason}")
        self._return(shard, trouble.failures >= TRIES, failed.reason)

    def _dismiss(self, shard: Shard, reason: str) -> None:
        """Go on without a worker that cannot write; others may."""
        self._dismissed += 1
        self._again.append(shard)
        if self._pool.size <= self._dismissed:
            done = f"{self._folder.done} of {self._shards} shards are done"
            raise CorpusError(f"{reason}; make room, and run the same command again: {done}")
        self._note(f"a worker gets no more work: {reason}")

    def _false_start(self, worker: int, reason: str) -> None:
        """A worker ended before it had work."""
        self._starting.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
            return
        self._false_starts += 1
        if self._false_starts >= _FALSE_STARTS:
            raise CorpusError(f"no worker can start: {reason}")

    def _return(self, shard: Shard, give_up: bool, reason: str) -> None:
        if give_up:
            self._given_up[shard.number] = reason
        else:
            self._again.append(shard)

    def _stop_overdue(self) -> None:
        """End workers that have owed an answer for too long."""
        now = time.monotonic()
        for worker, assigned in list(self._busy.items()):
            if now - assigned.since > self._seconds:
                self._pool.stop(worker)
                self._lose(worker, f"it took more than {self._seconds:g} seconds")
