"""A server that listens at once, runs in a thread of its own, and stops when the main thread is told to.

The main thread stays free for Ctrl-C and SIGTERM, which end a command as they end any other (`headway.cli.signals`).
"""

from __future__ import annotations

import errno
import logging
import socket
from threading import Event, Thread
from types import TracebackType

import uvicorn

from headway.errors import ServerError
from headway.web.app import Application

_BACKLOG = 1024
_GRACE = 2  # seconds that open requests have when the server stops


def listen(host: str, port: int) -> socket.socket:
    """A socket on that address; port 0 takes any that is free."""
    try:
        family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ServerError(_cause(error, host, port)) from None
    except OverflowError:
        raise ServerError(f"there is no port {port}; choose one from 1 to 65535 with --port") from None


def _cause(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is taken, perhaps by another headway serve; choose another with --port"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"port {port} needs more rights than you have; choose one above 1023 with --port"
    return f"{host} is no address of this machine ({error.strerror}); choose another with --host"


def address_of(listening: socket.socket, host: str) -> str:
    """Where a browser on this machine finds the server."""
    port = listening.getsockname()[1]
    shown = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"


class _Server(uvicorn.Server):
    """Tells the application to let go before it waits for open requests."""

    def __init__(self, config: uvicorn.Config, app: Application) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.stop()
        await super().shutdown(sockets)


class Serving:
    """A server that runs as long as its `with` block. `fail` ends it, and so does the end of the block."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._server: uvicorn.Server | None = None
        self._ended = Event()
        self._error: Exception | None = None

    def start(self, app: Application) -> None:
        """Answer requests from now on."""
        config = uvicorn.Config(
            app,
            log_level=logging.ERROR,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=_GRACE,
        )
        self._server = _Server(config, app)
        Thread(target=self._run, args=[self._server], name="server", daemon=True).start()

    def fail(self, error: Exception) -> None:
        """Stop because of an error, which `wait` raises."""
        self._error = self._error or error
        self._stop()

    def wait(self) -> None:
        """Until the server stops."""
        self._ended.wait()
        if self._error is not None:
            raise self._error

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._server is not None:
            self._stop()
            self._ended.wait(2 * _GRACE)
        self._listening.close()

    def _stop(self) -> None:
        if self._server is not None:
            self._server.should_exit = True

    def _run(self, server: uvicorn.Server) -> None:
        try:
            server.run(sockets=[self._listening])
        except Exception as error:
            self._error = self._error or error
        finally:
            self._ended.set()
