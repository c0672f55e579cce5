"""The pages and what they load, from the folder `static`. Browsers ask each time whether a file has changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI, Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

STATIC = Path(__file__).parent / "static"


class _Files(StaticFiles):
    """Files with their checksum as ETag; links that lead out of the folder are not followed."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        answer.headers["Cache-Control"] = "no-cache"
        return answer


def add_pages(app: FastAPI) -> None:
    """The explore page at `/`; the annotate page at `/annotate`, which says so where no file is open."""
    files = _Files(directory=STATIC, check_dir=False)
    for address, name in (("/", "index.html"), ("/annotate", "annotate.html")):
        app.add_route(address, _page(files, name), methods=["GET"], include_in_schema=False)
    app.mount("/static", files)


def _page(files: _Files, name: str) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        return await files.get_response(name, request.scope)

    return page
