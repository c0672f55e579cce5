"""`/api/annotation`: what the annotate page asks for. `headway.annotation` does the work; here it gets addresses.

Whatever parses or writes runs in a thread aside, so that no page waits for another's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response, StreamingResponse

from headway.annotation import ConflictError, JournalError, QueryError, State, Workspace, edit_of
from headway.errors import ArgumentError
from headway.web.events import Listeners
from headway.web.open_file import OpenFile
from headway.web.problems import RequestError, busy, json_response
from headway.web.schemas import (
    EditRequest,
    FileRequest,
    ModelRequest,
    Nothing,
    SettingsRequest,
    VersionRequest,
    failures,
)

Client = Annotated[str, Header(alias="X-Client", max_length=64)]

_ROOT = "/api/annotation"
_FAILURES = failures(400, 401, 403, 404, 413, 415, 422, 503)
_CHANGES = {**_FAILURES, **failures(409)}


def annotation_routes(file: OpenFile, listeners: Listeners) -> APIRouter:
    """The routes over the file that is open."""
    router = APIRouter(prefix=_ROOT, tags=["annotation"])

    async def summary(client: str) -> Response:
        return json_response(await _aside((await file.get()).summary, client))

    async def changed(i: int, change: Callable[[Workspace], State]) -> Response:
        workspace = await _with_sentence(file, i)
        return json_response(await _aside(_view_after, workspace, i, change))

    @router.get("", responses=_FAILURES)
    async def file_as_a_whole(client: Client = "") -> Response:
        """The file: how many sentences, how far the work is, which labels and tags it has, how it is written."""
        return await summary(client)

    @router.get("/sentences", responses=_FAILURES)
    async def list_sentences(
        query: Annotated[str, Query(max_length=1000)] = "",
        sort: Literal["certainty", "order"] = "certainty",
        offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
        limit: Annotated[int, Query(ge=0, le=1000)] = 50,
    ) -> Response:
        """A page of the sentences that a query finds, the least certain first or in the file's order."""
        return json_response(await _aside((await file.get()).listing, query, sort, offset, limit))

    @router.get("/sentences/{i}", responses=_FAILURES)
    async def show_sentence(i: int) -> Response:
        """A sentence: words, tree, probabilities, other heads, messages. The first is 0."""
        return json_response(await _aside((await _with_sentence(file, i)).view, i))

    @router.post("/sentences/{i}/edit", responses=_CHANGES, openapi_extra=EditRequest.described())
    async def edit(i: int, request: Request, client: Client = "") -> Response:
        """Change the version of a sentence that was seen. When this is answered, the change is on disk."""
        asked = await EditRequest.of(request)
        made = edit_of(asked.edit)
        return await changed(i, lambda workspace: workspace.edit(i, asked.version, made, client))

    @router.post("/sentences/{i}/undo", responses=_CHANGES, openapi_extra=VersionRequest.described())
    async def undo(i: int, request: Request, client: Client = "") -> Response:
        """Take back the last change of a sentence."""
        asked = await VersionRequest.of(request)
        return await changed(i, lambda workspace: workspace.undo(i, asked.version, client))

    @router.post("/sentences/{i}/redo", responses=_CHANGES, openapi_extra=VersionRequest.described())
    async def redo(i: int, request: Request, client: Client = "") -> Response:
        """Make the change again that was taken back last."""
        asked = await VersionRequest.of(request)
        return await changed(i, lambda workspace: workspace.redo(i, asked.version, client))

    @router.get("/events", responses=_FAILURES)
    async def events(last_event_id: Annotated[str | None, Header(max_length=64)] = None) -> StreamingResponse:
        """Server-Sent Events: every change, by whoever makes it."""
        stream = listeners.stream(await file.get(), last_event_id)
        return StreamingResponse(stream, media_type="text/event-stream")

    @router.post("/settings", responses=_FAILURES, openapi_extra=SettingsRequest.described())
    async def settings(request: Request, client: Client = "") -> Response:
        """Choose what is written for words that nobody has pinned: the model's heads, or "_"."""
        asked = await SettingsRequest.of(request)
        workspace = await file.get()
        await _aside(lambda: workspace.configure(write=asked.write))
        return await summary(client)

    @router.post("/retrain", responses=_FAILURES, openapi_extra=Nothing.described())
    async def retrain(request: Request, client: Client = "") -> Response:
        """Train a new model on what is pinned, in the background; it is used if it is better."""
        await Nothing.of(request)
        await _aside((await file.get()).retraining.start)
        return await summary(client)

    @router.post("/model", responses=_FAILURES, openapi_extra=ModelRequest.described())
    async def choose_model(request: Request, client: Client = "") -> Response:
        """Use the model before the latest training, or the one from it."""
        asked = await ModelRequest.of(request)
        await _aside((await file.get()).retraining.choose, asked.use)
        return await summary(client)

    @router.post("/file", responses=_FAILURES, openapi_extra=FileRequest.described())
    async def choose_file(request: Request, client: Client = "") -> Response:
        """When another program has changed the file: take its version, or put ours in its place."""
        asked = await FileRequest.of(request)
        workspace = await file.get()
        await _aside(workspace.reload if asked.choice == "reload" else workspace.overwrite)
        return await summary(client)

    return router


async def _with_sentence(file: OpenFile, i: int) -> Workspace:
    workspace = await file.get()
    if not 0 <= i < len(workspace):
        raise RequestError(404, f"there is no sentence {i}; the file has {len(workspace)}, counted from 0")
    return workspace


def _view_after(workspace: Workspace, i: int, change: Callable[[Workspace], State]) -> dict[str, Any]:
    try:
        change(workspace)
    except ConflictError as error:
        raise RequestError(409, str(error), current=workspace.view(i)) from None
    return workspace.view(i)


async def _aside(function: Callable[..., Any], *arguments: Any) -> Any:
    """In another thread; errors get their status."""
    try:
        return await asyncio.to_thread(function, *arguments)
    except (QueryError, ArgumentError) as error:
        raise RequestError(400, str(error)) from None
    except JournalError as error:
        raise busy(str(error)) from None
