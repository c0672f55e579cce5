"""Every page hears every event once, in order, whatever it missed; and all streams end with the server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from headway.annotation import Workspace
from headway.annotation.events import Events
from headway.web.events import Listeners
from headway.web.problems import RequestError


class Source(Events):
    """What a workspace is for its listeners."""

    changes = Events.since


def workspace() -> tuple[Source, Workspace]:
    source = Source()
    return source, cast(Workspace, source)


async def told(stream: AsyncIterator[bytes]) -> tuple[str | None, Any]:
    """The next event: its id and its data."""
    while True:
        lines = (await anext(stream)).decode().splitlines()
        fields = dict(line.split(": ", 1) for line in lines if line and not line.startswith(":"))
        if fields:
            return fields.get("id"), json.loads(fields["data"])


def test_events_come_in_order_from_any_thread() -> None:
    async def run() -> None:
        source, open_file = workspace()
        listeners = Listeners(2)
        streams = [listeners.stream(open_file, None) for _ in range(2)]
        for stream in streams:
            assert (await anext(stream)).startswith(b":")
        for version in range(5):
            await asyncio.to_thread(source.tell, "sentence", sentence=3, version=version, by="zoë\n<b>")
        for stream in streams:
            for version in range(5):
                _, data = await told(stream)
                expected = {"number": version + 1, "kind": "sentence", "sentence": 3, "version": version}
                assert data == {**expected, "by": "zoë\n<b>"}

    asyncio.run(run())


def test_a_page_that_was_cut_off_gets_what_it_missed_once() -> None:
    async def run() -> None:
        source, open_file = workspace()
        listeners = Listeners(5)
        first = listeners.stream(open_file, None)
        await anext(first)
        for number in range(1, 4):
            source.tell("written", number_told=number)
        heard, _ = await told(first)
        again = listeners.stream(open_file, heard)
        source.tell("written", number_told=4)
        assert [(await told(again))[1]["number"] for _ in range(3)] == [2, 3, 4]

    asyncio.run(run())


@pytest.mark.parametrize("last", ["", "other-1", "nonsense", "{server}-x", "{server}-99", "{server}-" + "9" * 60])
def test_a_page_of_another_server_reads_everything_again(last: str) -> None:
    async def run() -> None:
        source, open_file = workspace()
        listeners = Listeners(5)
        first = listeners.stream(open_file, None)
        await anext(first)
        source.tell("written")
        name, _ = await told(first)
        assert name is not None
        stream = listeners.stream(open_file, last.format(server=name.split("-")[0]))
        assert (await told(stream))[1]["kind"] == "reload"

    asyncio.run(run())


def test_a_slow_page_is_told_to_read_everything_again() -> None:
    async def run() -> None:
        source, open_file = workspace()
        stream = Listeners(5).stream(open_file, None)
        await anext(stream)
        for _ in range(1001):
            source.tell("written")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (await told(stream))[1] == {"kind": "reload"}

    asyncio.run(run())


def test_so_many_pages_and_no_more_listen() -> None:
    async def run() -> None:
        source, open_file = workspace()
        listeners = Listeners(1)
        stream = listeners.stream(open_file, None)
        await anext(stream)
        with pytest.raises(RequestError) as caught:
            listeners.stream(open_file, None)
        assert caught.value.status == 503
        await stream.aclose()  # type: ignore[attr-defined]
        assert source._listeners == []
        second = listeners.stream(open_file, None)
        await anext(second)

    asyncio.run(run())


def test_all_streams_end_with_the_server() -> None:
    async def run() -> None:
        source, open_file = workspace()
        listeners = Listeners(5)
        streams = [listeners.stream(open_file, None) for _ in range(3)]
        for stream in streams:
            await anext(stream)
        for _ in range(1000):
            source.tell("written")
        await asyncio.sleep(0)
        listeners.close()
        for stream in streams:
            assert [part async for part in stream] == []
        with pytest.raises(RequestError):
            listeners.stream(open_file, None)

    asyncio.run(run())
