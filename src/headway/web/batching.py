"""Sentences of many requests, parsed together: what waits is taken at once, so that load raises throughput.

    request --job--> waiting --some of each job--> worker: split, parse, render --> request

A job gives its sentences in portions, and waits in line again for each. So a long text never keeps a short one waiting
for more than a portion, and a reader who takes nothing holds nothing up. Each worker is a thread: a network and the
kernels hold no interpreter lock. One takes no more than its share of what waits, though others be busy: so there is
something left for whoever is ready next, while those who were answered ask again. Without that, a worker would have to
begin with the first request that comes back, and a request alone takes almost twice the time of one among many.

Whatever fails together is tried one by one: a request never fails because of another.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from threading import Condition, Thread
from typing import Any

from headway.parsed import Parsed
from headway.pipeline import Parser
from headway.treebank import Sentence
from headway.web.problems import busy

PORTION, PORTION_WORDS = 32, 2000  # sentences and words of a job that are parsed before others have their turn
BATCH, BATCH_WORDS = 128, 4000  # that a worker takes at once, a portion more or less
_PATIENCE = 2.0  # seconds for what is being parsed when the server stops

Parse = Callable[[Parser, Sequence[Sentence]], Iterable[list[Parsed]]]  # several where a draft is cut
Render = Callable[[Parsed], Any]


@dataclass(eq=False)
class Job:
    """The sentences of a request, or drafts of them, and what is made of each when it is parsed.

    `sentences` are drawn by a worker, so that splitting a text does not keep the server waiting. A job with a way to
    `parse` of its own is parsed alone.
    """

    parser: Parser
    sentences: Iterator[Sentence]
    render: Render
    parse: Parse | None = None
    done: bool = False

    def draw(self) -> list[Sentence]:
        """The next portion."""
        drawn, words = list[Sentence](), 0
        for sentence in self.sentences:
            drawn.append(sentence)
            words += len(sentence)
            if len(drawn) == PORTION or words >= PORTION_WORDS:
                return drawn
        self.done = True
        return drawn

    def goes_with(self, other: Job) -> bool:
        """Whether the two can be parsed together."""
        return self.parser is other.parser and self.parse is None and other.parse is None


@dataclass(eq=False)
class _Turn:
    """A job that waits for its next portion."""

    job: Job
    answer: asyncio.Future[list[Any]]
    drawn: list[Sentence] = field(default_factory=list)


_Outcome = tuple[_Turn, list[Any] | BaseException]


class Dispatcher:
    """A line of jobs, and the workers that parse them; at most `waiting` jobs stand in line."""

    def __init__(self, workers: int, waiting: int) -> None:
        self._most = waiting
        self._line: deque[_Turn] = deque()
        self._changed = Condition()
        self._closed = False
        self._threads = [Thread(target=self._work, name=f"parse-{i}", daemon=True) for i in range(workers)]

    def start(self) -> None:
        """Begin to work."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Take no more; what is being parsed is waited for, but not long."""
        with self._changed:
            self._closed = True
            self._line.clear()
            self._changed.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(_PATIENCE)

    async def portion(self, job: Job) -> list[Any]:
        """What became of the job's next sentences. The job is done when its `done` says so."""
        turn = _Turn(job, asyncio.get_running_loop().create_future())
        with self._changed:
            if self._closed:
                raise busy("the server is stopping; ask again when it is back")
            if len(self._line) >= self._most:
                raise busy(f"{self._most} requests are waiting already; ask again in a moment")
            self._line.append(turn)
            self._changed.notify()
        return await turn.answer

    def _work(self) -> None:
        while turns := self._take():
            outcomes = self._answered(turns)
            loop = turns[0].answer.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_deliver, outcomes)

    def _take(self) -> list[_Turn]:
        """A share of what waits: the first in line, and others that can be parsed with it. Nothing at the end."""
        with self._changed:
            while not self._line and not self._closed:
                self._changed.wait()
            share = -(-len(self._line) // len(self._threads))
            if self._closed:
                return []
            taken, left = [self._line.popleft()], list[_Turn]()
            while self._line and len(taken) < share:
                turn = self._line.popleft()
                (taken if turn.job.goes_with(taken[0].job) else left).append(turn)
            self._line.extendleft(reversed(left))
            return taken

    def _answered(self, turns: Sequence[_Turn]) -> list[_Outcome]:
        """What became of the first turns, as many as make a batch. The others stand first in line again."""
        outcomes: list[_Outcome] = []
        batch: list[_Turn] = []
        size = words = 0
        for number, turn in enumerate(turns):
            if size >= BATCH or words >= BATCH_WORDS:
                self._give_back(turns[number:])
                break
            if turn.answer.cancelled():  # whoever asked is gone
                continue
            try:
                turn.drawn = turn.job.draw()
            except Exception as error:
                outcomes.append((turn, error))
                continue
            batch.append(turn)
            size += len(turn.drawn)
            words += sum(map(len, turn.drawn))
        return [*outcomes, *_parsed(batch)]

    def _give_back(self, turns: Sequence[_Turn]) -> None:
        with self._changed:
            self._line.extendleft(reversed(turns))
            self._changed.notify()


def _parsed(turns: Sequence[_Turn]) -> list[_Outcome]:
    if not turns:
        return []
    job = turns[0].job
    try:
        sentences = [sentence for turn in turns for sentence in turn.drawn]
        found = iter(list(job.parser.parse_each(sentences) if job.parse is None else job.parse(job.parser, sentences)))
    except Exception as error:
        if len(turns) == 1:
            return [(turns[0], error)]
        return [outcome for turn in turns for outcome in _parsed([turn])]
    return [(turn, _rendered(turn, [one for own in islice(found, len(turn.drawn)) for one in own])) for turn in turns]


def _rendered(turn: _Turn, found: Sequence[Parsed]) -> list[Any] | BaseException:
    try:
        return [turn.job.render(parsed) for parsed in found]
    except Exception as error:
        return error


def _deliver(outcomes: Iterable[_Outcome]) -> None:
    """In the server's thread: wake up whoever waits."""
    for turn, outcome in outcomes:
        if turn.answer.done():
            continue
        if isinstance(outcome, BaseException):
            turn.answer.set_exception(outcome)
        else:
            turn.answer.set_result(outcome)
