"""The file under annotation: opened in the background, as soon as its model is loaded, and closed with the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread

from headway.annotation import Workspace
from headway.pipeline import Parser
from headway.web.models_pool import Models

Open = Callable[[Parser | None, str], Workspace]


class OpenFile:
    """A workspace that is on its way; `open` makes it from a parser, if there is one, and the parser's name."""

    def __init__(self, open: Open) -> None:
        self._open = open
        self._workspace: Future[Workspace] = Future()

    def start(self, models: Models, failed: Callable[[Exception], None]) -> None:
        """Open it with the default model, and make every model that is trained on it the default.

        `failed` hears if it cannot be opened.
        """
        self._workspace.set_running_or_notify_cancel()
        model = models.default

        def opened() -> None:
            try:
                parser = None if model is None else model.parser.result()
            except Exception as error:  # told already
                self._workspace.set_exception(error)
                return
            try:
                workspace = self._open(parser, "" if model is None else model.name)
            except Exception as error:
                self._workspace.set_exception(error)
                failed(error)
                return
            workspace.subscribe(lambda event: _use(workspace, models) if event["kind"] == "model" else None)
            self._workspace.set_result(workspace)

        Thread(target=opened, name="open-file", daemon=True).start()

    @property
    def is_ready(self) -> bool:
        """Whether it is open."""
        return self._workspace.done() and self._workspace.exception() is None

    async def get(self) -> Workspace:
        """The workspace, as soon as it is there."""
        return self._workspace.result() if self._workspace.done() else await asyncio.wrap_future(self._workspace)

    def close(self) -> None:
        """Write what is still to be written, and end what runs in the background."""
        if self.is_ready:
            self._workspace.result().close()


def _use(workspace: Workspace, models: Models) -> None:
    """Parse other texts with the model of the file, too."""
    if isinstance(workspace.parser, Parser):
        models.use(workspace.name, workspace.parser)
