"""How much of everything a server takes. Whatever is more gets an answer that says so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """`body` is in bytes, `seconds` and `body_seconds` are what answering a request and sending one may take.

    A sentence has so many `words` at most. `requests` may be open at once, `waiting` of them wait to be parsed, and
    `listeners` hear of changes.
    """

    body: int = 2_000_000
    seconds: float = 60.0
    body_seconds: float = 20.0
    words: int = 5000
    requests: int = 512
    waiting: int = 256
    listeners: int = 64
