"""Who may ask, from where, and how much: the first to see a request, and the last to see its answer.

A page on another site must not reach a server on this machine through the browser of whoever runs it:

- *Host* must be an address or a name of this machine. A site that points its own name at 127.0.0.1 (DNS rebinding)
  still sends its own name. The port may be another: tunnels and containers change it.
- *Origin*, where a browser sends one, must be the host itself; a POST must be JSON, which no form of another site can
  send without being asked first (CSRF).
- A server on another address than the local one needs a *token*: once in the address of a page, which keeps it in a
  cookie, or with every request as `Authorization: Bearer TOKEN`.
- Bodies are read here, before anything else happens: whole, up to a size, within a time. `requests` are open at once.
- Every answer has a content security policy that lets pages load nothing but what this server has: no script or style
  inside a page, no frame, no form.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.web.limits import Limits
from headway.web.problems import RequestError, busy, problem_response

COOKIE = "headway-token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_HEADERS_UNKEPT = [*_HEADERS, (b"cache-control", b"no-store")]
_LOCAL = ("localhost", "127.0.0.1", "::1")
_EVERYWHERE = ("0.0.0.0", "::", "")


class Safety:
    """Answers what must not be, and passes the rest on to `app`; `host` is the address that the server listens on."""

    def __init__(self, app: ASGIApp, host: str, token: str | None, limits: Limits) -> None:
        self._app, self._token, self._limits = app, token, limits
        self._names = own_names(host)
        self._any_address = host in _EVERYWHERE
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, _with_headers(send))

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if self._open >= self._limits.requests:
            problem = busy(f"{self._limits.requests} requests are open already; ask again in a moment")
            await problem_response(problem)(scope, receive, send)
            return
        self._open += 1
        try:
            self._require_host(headers)
            self._require_origin(headers)
            entered = self._require_token(scope, headers)
            if entered is not None:
                await entered(scope, receive, send)
                return
            if scope["method"] not in ("GET", "HEAD"):
                self._require_json(headers)
                receive = _replayed(await self._body(headers, receive), receive)
            await self._app(scope, receive, send)
        except RequestError as problem:
            await problem_response(problem)(scope, receive, send)
        finally:
            self._open -= 1

    def _require_host(self, headers: Headers) -> None:
        given = headers.getlist("host")
        name = host_of(given[0]) if len(given) == 1 else None
        if name is None or not (name in self._names or (self._any_address and is_address(name))):
            raise RequestError(403, "the request names another host than this server; use the address that it printed")

    def _require_origin(self, headers: Headers) -> None:
        origin = headers.get("origin")
        host = headers["host"].lower()
        if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
            raise RequestError(403, "the request comes from a page of another site; open the page that this server has")

    def _require_token(self, scope: Scope, headers: Headers) -> Response | None:
        """An answer if the token came in the address of a page: it is kept, and the address is left without it."""
        if self._token is None:
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        asked = [value for name, value in query if name == "token"]
        bearer = headers.get("authorization", "")
        if bearer[:7].lower() == "bearer " and self._is_token(bearer[7:].strip()):
            return None
        if self._is_token(_cookie(headers)) and not asked:
            return None
        if scope["method"] == "GET" and any(map(self._is_token, asked)):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            return _entered(scope["path"], rest, self._token)
        raise RequestError(
            401, "this server needs its token: open the address that it printed, or send Authorization: Bearer"
        )

    def _is_token(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    @staticmethod
    def _require_json(headers: Headers) -> None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise RequestError(415, f"the body is {kind or 'of no known type'}; send Content-Type: application/json")

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        """The whole body, if it is not too large and does not take too long."""
        most = self._limits.body
        too_large = RequestError(413, f"the request is larger than {most} bytes; send it in parts")
        declared = headers.get("content-length", "0")
        if not declared.isdecimal() or int(declared) > most:
            raise too_large
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestError(400, "the request broke off; send it again")
                    part: bytes = message.get("body", b"")
                    size += len(part)
                    if size > most:
                        raise too_large
                    parts.append(part)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            seconds = self._limits.body_seconds
            raise RequestError(408, f"the request did not arrive within {seconds:g} seconds; send it again") from None


def own_names(host: str) -> frozenset[str]:
    """What a request may call a server on this address: the address, and the names of this machine where it is all."""
    local = is_local(host) or host in _EVERYWHERE
    own = (socket.gethostname(), socket.getfqdn()) if host in _EVERYWHERE else ()
    return frozenset(name.lower() for name in (host, *own, *(_LOCAL if local else ())) if name)


def is_local(host: str) -> bool:
    """Whether only this machine reaches the address.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    return is_address(host) and ipaddress.ip_address(host).is_loopback


def is_address(name: str) -> bool:
    """Whether this is an address in numbers, which no name server can change."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def host_of(header: str) -> str | None:
    """The host in a Host header, without its port; None if it is malformed.

    >>> host_of("LOCALHOST:8421"), host_of("[::1]:8421"), host_of("a@b")
    ('localhost', '::1', None)
    """
    name, _, port = header.strip().rpartition(":") if ":" in header.rpartition("]")[2] else (header.strip(), "", "")
    if port and not (port.isascii() and port.isdecimal()):
        return None
    bare = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    if not bare or any(c in "@/\\[]?#%" or c.isspace() for c in bare):
        return None
    return bare.lower()


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie("; ".join(headers.getlist("cookie"))).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _entered(path: str, query: str, token: str) -> Response:
    """Keeps the token in a cookie, and leads to the same page without it.

    The page itself leads on: after a redirect from a link on another site, a browser would hold a strict cookie back.
    """
    target = "/" + quote(path.lstrip("/\\")) + (f"?{query}" if query else "")
    page = f'<!doctype html><title>Headway</title><meta http-equiv="refresh" content="0;url={_escaped(target)}">'
    answer = HTMLResponse(page, headers={"Cache-Control": "no-store"})
    answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
    return answer


def _escaped(address: str) -> str:
    return address.replace("&", "&amp;").replace('"', "%22").replace("<", "%3C")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Gives the body once, and then whatever comes."""
    pending: Iterable[bytes] = iter([body])

    async def again() -> Message:
        for each in pending:
            return {"type": "http.request", "body": each, "more_body": False}
        return await receive()

    return again


def _with_headers(send: Send) -> Send:
    async def safe(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message["headers"])
            kept = any(name.lower() == b"cache-control" for name, _ in own)
            message = {**message, "headers": own + (_HEADERS if kept else _HEADERS_UNKEPT)}
        await send(message)

    return safe
