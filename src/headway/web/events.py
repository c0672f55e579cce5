"""Changes, told to every open page: Server-Sent Events over what a workspace tells.

Each event has an id, so that a browser that was cut off says what it heard last, and gets the rest. Ids begin anew with
every server: one from an earlier server is answered with `{"kind": "reload"}`, as is a page that is too slow.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

from headway.annotation import Workspace
from headway.web.problems import busy, to_json

_WAITING = 1000  # events that a page may be behind
_SILENCE = 15.0  # seconds after which a comment is sent, to notice who is gone

Event = dict[str, Any]


class Listeners:
    """The pages that listen, at most so many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._server = secrets.token_hex(4)
        self._open: set[asyncio.Queue[Event | None]] = set()
        self._is_closed = False

    def close(self) -> None:
        """End all streams."""
        self._is_closed = True
        for waiting in self._open:
            _make_room(waiting)
            waiting.put_nowait(None)

    def stream(self, workspace: Workspace, last_id: str | None) -> AsyncIterator[bytes]:
        """What happens from now on, or after the event that was heard last."""
        if self._is_closed or len(self._open) >= self._most:
            raise busy(f"{self._most} pages are listening already; close some, or wait a moment")
        waiting: asyncio.Queue[Event | None] = asyncio.Queue(_WAITING)
        self._open.add(waiting)
        loop = asyncio.get_running_loop()

        def hear(event: Event) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_put, waiting, event)

        return self._told(waiting, workspace.subscribe(hear), self._missed(workspace, last_id))

    def _missed(self, workspace: Workspace, last_id: str | None) -> list[Event]:
        if last_id is None:
            return []
        server, _, number = last_id.partition("-")
        if server != self._server or not (number.isascii() and number.isdecimal()):
            return [{"kind": "reload"}]
        return workspace.changes(int(number[:18]))

    async def _told(
        self, waiting: asyncio.Queue[Event | None], unsubscribe: Callable[[], None], missed: list[Event]
    ) -> AsyncIterator[bytes]:
        try:
            yield b": headway\n\n"  # the answer begins at once
            heard = 0
            for event in missed:
                heard = event.get("number", heard)
                yield self._written(event)
            while True:
                try:
                    async with asyncio.timeout(_SILENCE):
                        event_or_end = await waiting.get()
                except TimeoutError:
                    yield b":\n\n"
                    continue
                if event_or_end is None:
                    return
                if event_or_end.get("number", heard + 1) > heard:  # not among those missed
                    yield self._written(event_or_end)
        finally:
            unsubscribe()
            self._open.discard(waiting)

    def _written(self, event: Event) -> bytes:
        number = event.get("number")
        name = b"" if number is None else f"id: {self._server}-{number}\n".encode()
        return name + b"data: " + to_json(event) + b"\n\n"


def _put(waiting: asyncio.Queue[Event | None], event: Event) -> None:
    if waiting.full():
        _make_room(waiting)
        event = {"kind": "reload"}
    waiting.put_nowait(event)


def _make_room(waiting: asyncio.Queue[Event | None]) -> None:
    while not waiting.empty():
        waiting.get_nowait()
