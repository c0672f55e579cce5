"""The application: models, a dispatcher, routes, pages, and the guard before all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headway import __version__
from headway.errors import HeadwayError
from headway.pipeline import Parser
from headway.web.annotation_routes import annotation_routes
from headway.web.batching import Dispatcher
from headway.web.events import Listeners
from headway.web.limits import Limits
from headway.web.models_pool import Models
from headway.web.open_file import Open, OpenFile
from headway.web.pages import add_pages
from headway.web.parsing_routes import add_parsing_routes
from headway.web.problems import RequestError, problem_of, problem_response
from headway.web.safety import Safety
from headway.web.schemas import first_mistake

_ASIDE = 4  # threads for what would keep other requests waiting


_NOTHING_IS_TOLD: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


@dataclass(frozen=True)
class Setup:
    """What a server serves, and to whom."""

    models: Sequence[str]
    load: Callable[[str], Parser]
    coreference: str | None = None
    open: Open | None = None
    host: str = "127.0.0.1"
    token: str | None = None
    workers: int = 1
    limits: Limits = field(default_factory=Limits)


class Application:
    """What a server runs (ASGI): everything that a setup asks for, behind `Safety`."""

    def __init__(self, setup: Setup, failed: Callable[[Exception], None]) -> None:
        """`failed` hears of a model, or a file, that cannot be opened."""
        self._models = Models(setup.models, setup.load, setup.coreference)
        self._file = None if setup.open is None else OpenFile(setup.open)
        self._dispatcher = Dispatcher(setup.workers, setup.limits.waiting)
        self._listeners = Listeners(setup.limits.listeners)
        self._failed = failed
        self._guarded = Safety(self._routes(setup.limits), setup.host, setup.token, setup.limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guarded(scope, receive, send)

    def stop(self) -> None:
        """Let go of pages that would listen for ever; to be called in the server's thread before it stops."""
        self._listeners.close()

    def _routes(self, limits: Limits) -> FastAPI:
        app = FastAPI(
            title="Headway",
            version=__version__,
            docs_url=None,  # its scripts come from elsewhere
            redoc_url=None,
            lifespan=self._lifespan,
            telemetry=_NOTHING_IS_TOLD,
        )
        add_parsing_routes(app, self._models, self._dispatcher, limits, self._is_ready)
        if self._file is not None:
            app.include_router(annotation_routes(self._file, self._listeners))
        add_pages(app)
        for kind in (RequestError, RequestValidationError, HeadwayError, MemoryError, HTTPException, Exception):
            app.add_exception_handler(kind, _answered)
        return app

    @asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_ASIDE, "aside"))
        self._dispatcher.start()
        self._models.start(self._failed)
        if self._file is not None:
            self._file.start(self._models, self._failed)
        yield
        self._dispatcher.close()
        if self._file is not None:
            self._file.close()

    def _is_ready(self) -> bool:
        """Whether the first model is loaded, and the file is open."""
        first = self._models.default
        return (first is None or first.is_ready) and (self._file is None or self._file.is_ready)


async def _answered(request: Request, error: Exception) -> Response:
    """Every error in one sentence."""
    if isinstance(error, RequestValidationError):  # of an address; bodies are read elsewhere
        error = RequestError(422, first_mistake(error.errors()))
    elif isinstance(error, HTTPException):
        error = RequestError(error.status_code, _REFUSALS.get(error.status_code, str(error.detail)))
    return problem_response(problem_of(error))


_REFUSALS = {
    404: "there is nothing at this address; /openapi.json lists what there is",
    405: "this address does not take such a request; /openapi.json says what it takes",
}
