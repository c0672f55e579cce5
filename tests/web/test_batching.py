"""Many requests at once: each gets its own trees, whatever becomes of the others, and together they are parsed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.parsed import Parsed
from headway.pipeline import Parser
from headway.text.tokens import sentence_of
from headway.treebank import Sentence
from headway.web.batching import BATCH, BATCH_WORDS, PORTION, PORTION_WORDS, Dispatcher, Job
from headway.web.problems import RequestError


class Recorder:
    """A parser that keeps what it was given, and can be held back."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.free = Event()
        self.free.set()

    def parse_each(self, sentences: Sequence[Sentence]) -> Iterator[list[str]]:
        assert self.free.wait(60)
        self.batches.append([sentence.forms[0] for sentence in sentences])
        for sentence in sentences:
            if sentence.forms[0].startswith("bad"):
                raise ValueError(sentence.forms[0])
            yield [sentence.forms[0].upper()]


def job(parser: Any, *words: str, render: Callable[[Any], Any] = lambda found: found, **more: Any) -> Job:
    return Job(parser, (sentence_of([word]) for word in words), render, **more)


def run(work: Callable[[Dispatcher], Any], workers: int = 2, waiting: int = 1000) -> Any:
    async def main() -> Any:
        dispatcher = Dispatcher(workers, waiting)
        dispatcher.start()
        try:
            async with asyncio.timeout(60):
                return await work(dispatcher)
        finally:
            dispatcher.close()

    return asyncio.run(main())


async def whole(dispatcher: Dispatcher, job: Job) -> list[Any]:
    found = []
    while not job.done:
        found += await dispatcher.portion(job)
    return found


async def taken(dispatcher: Dispatcher) -> None:
    """Until a worker has taken what was just asked for."""
    await asyncio.sleep(0)
    while dispatcher._line:
        await asyncio.sleep(0.001)


@given(st.lists(st.integers(0, 2 * PORTION + 3), max_size=12), st.integers(1, 3))
def test_each_request_gets_its_own_trees_in_order(sizes: list[int], workers: int) -> None:
    parser = Recorder()
    words = [[f"w{i}-{k}" for k in range(size)] for i, size in enumerate(sizes)]

    async def work(dispatcher: Dispatcher) -> list[list[str]]:
        return await asyncio.gather(*(whole(dispatcher, job(parser, *each)) for each in words))

    assert run(work, workers) == [[word.upper() for word in each] for each in words]
    assert sorted(word for batch in parser.batches for word in batch) == sorted(w for each in words for w in each)


def test_what_waits_is_parsed_together() -> None:
    parser = Recorder()
    parser.free.clear()

    async def work(dispatcher: Dispatcher) -> None:
        first = asyncio.create_task(whole(dispatcher, job(parser, "first")))
        await taken(dispatcher)
        others = [asyncio.create_task(whole(dispatcher, job(parser, f"w{i}"))) for i in range(20)]
        while len(dispatcher._line) < 20:
            await asyncio.sleep(0.001)
        parser.free.set()
        await asyncio.gather(first, *others)

    run(work, workers=1)
    assert parser.batches == [["first"], [f"w{i}" for i in range(20)]]


def test_a_worker_leaves_something_for_the_next_one() -> None:
    parser = Recorder()
    parser.free.clear()

    async def work(dispatcher: Dispatcher) -> None:
        busy = []
        for word in ("one", "two"):
            busy.append(asyncio.create_task(whole(dispatcher, job(parser, word))))
            await taken(dispatcher)
        others = [asyncio.create_task(whole(dispatcher, job(parser, f"w{i}"))) for i in range(20)]
        while len(dispatcher._line) < 20:
            await asyncio.sleep(0.001)
        parser.free.set()
        await asyncio.gather(*busy, *others)

    run(work, workers=2)
    assert max(map(len, parser.batches)) == 10


def test_a_long_text_lets_others_pass() -> None:
    parser = Recorder()
    parser.free.clear()
    order: list[str] = []

    async def work(dispatcher: Dispatcher) -> None:
        async def timed(name: str, *words: str) -> None:
            await whole(dispatcher, job(parser, *words))
            order.append(name)

        long = asyncio.create_task(timed("long", *(f"l{i}" for i in range(10 * PORTION))))
        await asyncio.sleep(0)
        short = asyncio.create_task(timed("short", "s"))
        await asyncio.sleep(0)
        parser.free.set()
        await asyncio.gather(long, short)

    run(work, workers=1)
    assert order == ["short", "long"]
    assert max(map(len, parser.batches)) < BATCH + PORTION


def test_no_worker_takes_more_than_a_batch() -> None:
    parser = Recorder()
    parser.free.clear()
    words = [[f"{i}-{k}" for k in range(PORTION)] for i in range(12)]

    async def work(dispatcher: Dispatcher) -> list[list[str]]:
        first = asyncio.create_task(whole(dispatcher, job(parser, "first")))
        await taken(dispatcher)
        tasks = [asyncio.create_task(whole(dispatcher, job(parser, *each))) for each in words]
        await asyncio.sleep(0)
        parser.free.set()
        await first
        return await asyncio.gather(*tasks)

    assert run(work, workers=1) == words
    assert [len(batch) for batch in parser.batches if batch] == [1, BATCH, BATCH, BATCH]


def test_long_sentences_make_small_portions() -> None:
    parser = Recorder()
    long = sentence_of(["word"] * (PORTION_WORDS // 2))
    words = [Job(parser, iter([long] * 3), str) for _ in range(4)]  # type: ignore[arg-type]
    parser.free.clear()

    async def work(dispatcher: Dispatcher) -> list[list[str]]:
        first = asyncio.create_task(whole(dispatcher, job(parser, "first")))
        await taken(dispatcher)
        tasks = [asyncio.create_task(whole(dispatcher, each)) for each in words]
        await asyncio.sleep(0)
        parser.free.set()
        await first
        return await asyncio.gather(*tasks)

    assert run(work, workers=1) == [["WORD"] * 3] * 4
    assert max(map(len, parser.batches)) == BATCH_WORDS // len(long)


def test_one_that_fails_does_not_take_others_along() -> None:
    parser = Recorder()
    parser.free.clear()

    async def work(dispatcher: Dispatcher) -> list[Any]:
        jobs = [
            job(parser, "a"),
            job(parser, "bad1"),
            job(parser, "b", "bad2"),
            Job(parser, iter_failing(), str),  # type: ignore[arg-type]
            job(parser, "c", render=failing),
            job(parser, "d"),
        ]
        tasks = [asyncio.create_task(whole(dispatcher, each)) for each in jobs]
        await asyncio.sleep(0)
        parser.free.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = run(work, workers=1)
    assert [str(each) if isinstance(each, Exception) else each for each in found] == [
        ["A"],
        "bad1",
        "bad2",
        "cannot be split",
        "cannot be shown",
        ["D"],
    ]


def iter_failing() -> Iterator[Sentence]:
    raise ValueError("cannot be split")
    yield


def failing(found: Any) -> Any:
    raise ValueError("cannot be shown")


def test_jobs_of_other_models_and_with_constraints_are_parsed_apart() -> None:
    one, other = Recorder(), Recorder()
    one.free.clear()

    def alone(parser: Any, sentences: Sequence[Sentence]) -> list[Any]:
        return [[f"alone {sentence.forms[0]}"] for sentence in sentences]

    async def work(dispatcher: Dispatcher) -> list[Any]:
        jobs = [
            job(one, "a"),
            job(other, "b"),
            job(one, "c"),
            job(one, "d", parse=alone),
            job(other, "e"),
            job(one, "f"),
        ]
        tasks = [asyncio.create_task(whole(dispatcher, each)) for each in jobs]
        await asyncio.sleep(0)
        one.free.set()
        return await asyncio.gather(*tasks)

    assert run(work, workers=1) == [["A"], ["B"], ["C"], ["alone d"], ["E"], ["F"]]
    assert all(set(batch) <= {"a", "c", "f"} for batch in one.batches)
    assert all(set(batch) <= {"b", "e"} for batch in other.batches)


def test_a_full_line_is_refused() -> None:
    parser = Recorder()
    parser.free.clear()

    async def work(dispatcher: Dispatcher) -> None:
        first = asyncio.create_task(whole(dispatcher, job(parser, "first")))
        await taken(dispatcher)
        waiting = [asyncio.create_task(whole(dispatcher, job(parser, f"w{i}"))) for i in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(RequestError) as caught:
            await dispatcher.portion(job(parser, "more"))
        assert caught.value.status == 503
        parser.free.set()
        assert await asyncio.gather(first, *waiting) == [["FIRST"], ["W0"], ["W1"], ["W2"]]

    run(work, workers=1, waiting=3)


def test_who_is_gone_is_not_parsed_for() -> None:
    parser = Recorder()
    parser.free.clear()

    async def work(dispatcher: Dispatcher) -> None:
        first = asyncio.create_task(whole(dispatcher, job(parser, "first")))
        await taken(dispatcher)
        gone = asyncio.create_task(whole(dispatcher, job(parser, "gone")))
        last = asyncio.create_task(whole(dispatcher, job(parser, "last")))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        parser.free.set()
        assert await asyncio.gather(first, last) == [["FIRST"], ["LAST"]]

    run(work, workers=1)
    assert parser.batches == [["first"], ["last"]]


def test_a_closed_dispatcher_takes_nothing() -> None:
    async def main() -> None:
        dispatcher = Dispatcher(1, 5)
        dispatcher.start()
        dispatcher.close()
        with pytest.raises(RequestError) as caught:
            await dispatcher.portion(job(Recorder(), "a"))
        assert "stopping" in caught.value.sentence

    asyncio.run(main())


def test_trees_are_those_of_the_parser(parser: Parser) -> None:
    texts = ["la hundo vidas kato .", "un floro amas domo !", "la bela nova kato vidas un hundo ."] * 20

    async def work(dispatcher: Dispatcher) -> list[list[list[int]]]:
        def heads(found: Parsed) -> list[int]:
            return found.heads.tolist()

        jobs = [Job(parser, iter(parser.sentences(text)), heads) for text in texts]
        return await asyncio.gather(*(whole(dispatcher, each) for each in jobs))

    expected = [[parsed.heads.tolist() for parsed in parser.parse_text(text)] for text in texts]
    assert run(work, workers=3) == expected
