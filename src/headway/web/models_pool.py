"""The models of a server: loaded once, in the background, in the order in which they were named.

The server listens at once; a request waits until its model is there. Requests name models that were given when the
server was started, and never a file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from headway.coreference.resolver import Resolver
from headway.named_models import is_name
from headway.pipeline import Parser
from headway.web.problems import RequestError

Load = Callable[[str], Parser]
LoadResolver = Callable[[str], Resolver]
T = TypeVar("T")


@dataclass(eq=False)
class Served:
    """A model by the name that requests use; `source` is the name or path to load it from."""

    name: str
    source: str
    parser: Future[Parser] = field(default_factory=Future)

    def to_dict(self) -> dict[str, Any]:
        """What is known of it; before it is loaded, that is its name."""
        found = self.parser.result() if self.is_ready else None
        language = found.card.language if found is not None and found.card is not None else None
        return {
            "name": self.name,
            "kind": None if found is None else found.model.kind,
            "language": language,
            "text": None if found is None else found.segmenter is not None,
            "status": "ready" if self.is_ready else "failed" if self.parser.done() else "loading",
        }

    @property
    def is_ready(self) -> bool:
        return self.parser.done() and self.parser.exception() is None


@dataclass(eq=False)
class ServedResolver:
    """A model for coreference."""

    name: str
    source: str
    resolver: Future[Resolver] = field(default_factory=Future)


class Models:
    """Models by name, the first of them the default; `load` loads one and gets it ready. One may be for coreference."""

    def __init__(
        self,
        sources: Sequence[str],
        load: Load,
        coreference: str | None = None,
        load_resolver: LoadResolver = Resolver.load,
    ) -> None:
        self._load, self._load_resolver = load, load_resolver
        self.served = {each.name: each for each in _named(sources)}
        self._coreference = None if coreference is None else ServedResolver(_short(coreference), coreference)

    @property
    def default(self) -> Served | None:
        """The model of requests that name none."""
        return next(iter(self.served.values()), None)

    def to_dict(self) -> dict[str, Any]:
        """What there is to choose from."""
        served = [{**each.to_dict(), "default": each is self.default} for each in self.served.values()]
        return {"models": served, "coreference": None if self._coreference is None else self._coreference.name}

    def start(self, failed: Callable[[Exception], None]) -> None:
        """Load in the background; `failed` hears of every model that cannot be loaded."""
        loads: list[tuple[Future[Any], Callable[[str], Any], str]] = [
            (each.parser, self._load, each.source) for each in self.served.values()
        ]
        if self._coreference is not None:
            loads.append((self._coreference.resolver, self._load_resolver, self._coreference.source))
        for future, _, _ in loads:
            future.set_running_or_notify_cancel()  # a request that goes away stops nobody

        def load_all() -> None:
            for future, load, source in loads:
                try:
                    future.set_result(load(source))
                except Exception as error:
                    future.set_exception(error)
                    failed(error)

        Thread(target=load_all, name="models", daemon=True).start()

    def use(self, name: str, parser: Parser) -> None:
        """Make a loaded model the default; the others stay. May be called from any thread."""
        used = Served(name, name)
        used.parser.set_result(parser)
        self.served = {name: used, **{each: other for each, other in self.served.items() if each != name}}

    async def get(self, name: str | None) -> tuple[str, Parser]:
        """The model of that name, as soon as it is loaded; without a name, the default."""
        served = self.default if name is None else self.served.get(name)
        if served is None:
            known = ", ".join(self.served) or "none"
            raise RequestError(422, f"there is no such model here as {name}; there are: {known}")
        return served.name, await _loaded(served.parser)

    async def resolver(self) -> Resolver:
        """The model for coreference, as soon as it is loaded."""
        if self._coreference is None:
            raise RequestError(422, "there is no model for coreference here; start the server with --coref MODEL")
        return await _loaded(self._coreference.resolver)


async def _loaded(future: Future[T]) -> T:
    return future.result() if future.done() else await asyncio.wrap_future(future)


def _named(sources: Sequence[str]) -> list[Served]:
    """A file is called after its name without the suffix, unless another has it."""
    found: dict[str, Served] = {}
    for source in dict.fromkeys(sources):
        short = _short(source)
        name = source if short in found else short
        found[name] = Served(name, source)
    return list(found.values())


def _short(source: str) -> str:
    return source if is_name(source) else Path(source).stem
