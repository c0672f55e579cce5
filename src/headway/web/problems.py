"""Errors as answers: a status, and one sentence as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pydantic_core
from starlette.responses import Response

from headway.errors import HeadwayError, printable

RETRY_AFTER = 1  # seconds


class RequestError(Exception):
    """What ends a request with a status and a sentence; `more` is added to the JSON."""

    def __init__(self, status: int, sentence: str, **more: Any) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.more = status, printable(sentence), more


def busy(sentence: str) -> RequestError:
    """Too much at once, or too slow: the request may be sent again."""
    return RequestError(503, sentence)


def problem_of(error: Exception) -> RequestError:
    """What to answer when something failed. Headway's own errors are about the request; any other is a bug."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, HeadwayError):
        return RequestError(422, str(error))
    if isinstance(error, MemoryError):
        return busy("the server is out of memory; send less at once")
    return RequestError(
        500, "something went wrong inside the server, which is a bug of Headway; its terminal says more"
    )


def problem_response(problem: RequestError) -> Response:
    """The answer to a request that failed."""
    headers = {"Retry-After": str(RETRY_AFTER)} if problem.status == 503 else None
    return json_response({"error": problem.sentence, **problem.more}, problem.status, headers)


def json_response(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Plain data as an answer."""
    return Response(to_json(data), status, headers, media_type="application/json")


to_json = pydantic_core.to_json  # plain data on one line; several times as fast as `json`
