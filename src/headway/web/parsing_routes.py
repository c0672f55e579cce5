"""`POST /parse` and `/parse/stream`, `GET /models` and `/health`: the parser for other programs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response, StreamingResponse

from headway import __version__
from headway.coreference.resolver import Resolver
from headway.document import Document
from headway.parsed import Parsed
from headway.pipeline import Parser
from headway.web.answers import json_of
from headway.web.batching import Dispatcher, Job
from headway.web.clusters import clusters_of
from headway.web.limits import Limits
from headway.web.models_pool import Models
from headway.web.problems import RequestError, busy, json_response, problem_of, to_json
from headway.web.requests import job_of
from headway.web.schemas import Health, ModelsAnswer, ParseAnswer, ParseRequest, failures

_FAILURES = failures(401, 403, 413, 415, 422, 503)


def add_parsing_routes(
    app: FastAPI, models: Models, dispatcher: Dispatcher, limits: Limits, is_ready: Callable[[], bool]
) -> None:
    """Add the routes over these models; `is_ready` tells whether all that was asked for is loaded.

    They are added to the application itself: a router in between costs every request a tenth of a millisecond.
    """
    too_slow = f"the request was not answered within {limits.seconds:g} seconds; send less, or ask /parse/stream"

    @app.post("/parse", response_model=ParseAnswer, responses=_FAILURES, openapi_extra=ParseRequest.described())
    async def parse(request: Request) -> Response:
        """Parse text, tokens or CoNLL-U. CoNLL-U comes back as text, a picture as SVG."""
        asked = await ParseRequest.of(request)
        resolver = await models.resolver() if asked.coreference else None
        name, parser = await models.get(asked.model)  # loading has all the time it takes
        try:
            async with asyncio.timeout(limits.seconds):
                if resolver is not None:
                    return await with_clusters(asked, request, name, parser, resolver)
                if asked.format == "json":
                    job = job_of(asked, parser, json_of(asked.kbest, asked.alternatives), limits.words)
                    return _json(name, await everything(job, request))
                return await as_a_file(asked, await everything(job_of(asked, parser, _itself, limits.words), request))
        except TimeoutError:
            raise busy(too_slow) from None

    async def as_a_file(asked: ParseRequest, found: Sequence[Parsed]) -> Response:
        document = Document(asked.text or "", tuple(found))
        if asked.format == "conllu":
            written = await asyncio.to_thread(document.to_conllu, probabilities=True)
            return Response(written, media_type="text/plain; charset=utf-8")
        return Response(await asyncio.to_thread(document.to_svg), media_type="image/svg+xml")

    async def with_clusters(
        asked: ParseRequest, request: Request, name: str, parser: Parser, resolver: Resolver
    ) -> Response:
        render = json_of(asked.kbest, asked.alternatives)
        found = await everything(job_of(asked, parser, lambda parsed: (render(parsed), parsed), limits.words), request)
        clusters = await asyncio.to_thread(clusters_of, resolver, [parsed for _, parsed in found])
        return _json(name, [written for written, _ in found], b',"clusters":' + to_json(clusters))

    async def everything(job: Job, request: Request) -> list[Any]:
        found = await dispatcher.portion(job)
        while not job.done and not await request.is_disconnected():
            found += await dispatcher.portion(job)
        return found

    @app.post("/parse/stream", responses=_FAILURES, openapi_extra=ParseRequest.described())
    async def stream(request: Request) -> StreamingResponse:
        """The same, a sentence a line (JSON), each as soon as it is parsed; for long texts.

        If something goes wrong after the first lines, the last line is {"error": ...}.
        """
        asked = await ParseRequest.of(request)
        if asked.format != "json" or asked.coreference:
            raise RequestError(422, "a stream is JSON without coreference; ask /parse for anything else")
        _, parser = await models.get(asked.model)
        job = job_of(asked, parser, json_of(asked.kbest, asked.alternatives), limits.words)
        first = await next_lines(job)  # its error is the request's

        async def lines() -> AsyncIterator[bytes]:
            yield first
            try:
                while not job.done:
                    yield await next_lines(job)
            except Exception as error:
                yield to_json({"error": problem_of(error).sentence}) + b"\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def next_lines(job: Job) -> bytes:
        try:
            async with asyncio.timeout(limits.seconds):
                return b"".join([line + b"\n" for line in await dispatcher.portion(job)])
        except TimeoutError:
            raise busy(too_slow) from None

    @app.get("/health", response_model=Health)
    async def health() -> Response:
        """Whether the server is there, and whether its first model is loaded."""
        return json_response({"status": "ok" if is_ready() else "loading", "version": __version__})

    @app.get("/models", response_model=ModelsAnswer)
    async def list_models() -> Response:
        """The models that requests can name."""
        return json_response(models.to_dict())


def _itself(parsed: Parsed) -> Parsed:
    return parsed


def _json(model: str, sentences: list[bytes], more: bytes = b"") -> Response:
    body = b'{"model":%b,"sentences":[%b]%b}' % (to_json(model), b",".join(sentences), more)
    return Response(body, media_type="application/json")
