"""`headway serve`: the parser as a page in the browser, and as an HTTP API.

The server listens at once, and loads its models meanwhile; `headway.web` is the rest. Ctrl-C stops it.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.reading import load_parser, require_model
from headway.cli.signals import time_to_close
from headway.cli.warm_up import get_ready

if TYPE_CHECKING:
    from headway.pipeline import Parser
    from headway.web.app import Setup

EXAMPLES = (
    "headway serve --open",
    "headway serve en --model danish.headway --port 9000",
    "headway serve --host 0.0.0.0 --token TOKEN",
)
PORT = 8421

_CLOSING = 10.0  # seconds

HostOption = Annotated[
    str, typer.Option(metavar="HOST", help="The address to listen on; any but the local one needs a token.")
]
PortOption = Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="The port; 0 takes a free one.")]
TokenOption = Annotated[
    str | None,
    typer.Option(
        metavar="TOKEN",
        envvar="HEADWAY_TOKEN",
        help="The secret that every request must carry.",
        show_default="none at the local address, else made and printed",
    ),
]
OpenOption = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]
ThreadsOption = Annotated[
    int | None, typer.Option(min=1, metavar="T", help="Threads to parse with.", show_default="one for each core")
]


def serve(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file, or the name of a model.")] = "en",
    *,
    more: Annotated[
        list[str] | None, typer.Option("--model", metavar="MODEL", help="One more model to choose from; repeatable.")
    ] = None,
    coref: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A model for coreference, which headway coref train wrote.")
    ] = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = PORT,
    token: TokenOption = None,
    open: OpenOption = False,
    threads: ThreadsOption = None,
) -> None:
    """Serve a page that shows trees, and an HTTP API."""
    require_server()
    models = [model, *(more or [])]
    for each in (*models, coref):
        require_model(each)
    from headway.web.app import Setup

    setup = Setup(
        models,
        ready_parser,
        coreference=coref,
        host=host,
        token=token_for(host, token),
        workers=threads or cores(),
    )
    run(setup, port, "/", open=open)


def require_server() -> None:
    """Refuse to begin without what the extra installs."""
    from headway.extras import require_extra

    for package in ("fastapi", "uvicorn"):
        require_extra(package, "serve", "a server")


def ready_parser(model: str) -> Parser:
    """A parser that has compiled or loaded what it needs."""
    parser = load_parser(model)
    get_ready(model, parser)
    return parser


def token_for(host: str, token: str | None) -> str | None:
    """The token that was given, or a new one where the address needs one."""
    from headway.web.safety import is_local

    if token is not None and not token.strip():
        raise typer.BadParameter("--token is empty; give some characters that nobody guesses")
    return token if token or is_local(host) else secrets.token_urlsafe(24)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(setup: Setup, port: int, page: str, *, open: bool) -> None:
    """Serve until Ctrl-C, and say where."""
    from urllib.parse import quote

    from headway.web.app import Application
    from headway.web.running import Serving, address_of, listen

    listening = listen(setup.host, port)
    query = "" if setup.token is None else f"?token={quote(setup.token, safe='')}"
    address = address_of(listening, setup.host) + page + query
    with time_to_close(_CLOSING), Serving(listening) as serving:
        serving.start(Application(setup, serving.fail))
        typer.echo(f"headway: {address} (Ctrl-C stops)")
        if open:
            _browse(address)
        serving.wait()


def _browse(address: str) -> None:
    """The socket listens already: a browser that comes early waits."""
    import webbrowser

    if not webbrowser.open(address):
        typer.echo("headway: no browser could be opened; open the address yourself", err=True)
