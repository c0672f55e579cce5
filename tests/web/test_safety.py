"""What must not get through does not, and whatever is refused says why in one sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from headway.pipeline import Parser
from headway.web.app import Application, Setup
from headway.web.limits import Limits
from headway.web.safety import COOKIE, Safety, host_of, is_local, own_names
from tests.web.conftest import ADDRESS

TOKEN = "a token & more"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the body."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def guarded(host: str = "127.0.0.1", token: str | None = None, **limits: Any) -> TestClient:
    return TestClient(Safety(echo, host, token, Limits(**limits)), base_url=ADDRESS)


def refusal(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    sentence: str = answer.json()["error"]
    assert "\n" not in sentence
    return sentence


# ---------------------------------------------------------------------------------- from where


@pytest.mark.parametrize("host", ["127.0.0.1:8421", "localhost:8421", "LOCALHOST", "[::1]:8421", "localhost:9000"])
def test_the_machines_own_names_are_let_in(host: str) -> None:
    assert guarded().get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.com", "evil.com:8421", "127.0.0.1.evil.com", "localhost.evil.com", "127.0.0.1@evil.com", ""),
        *("192.168.1.5:8421", "localhost:8421:1", "localhost:x", "[::1", "evil.com#localhost", "local host"),
    ],
)
def test_other_names_are_not(host: str) -> None:
    """A name that leads to 127.0.0.1 but is somebody else's: DNS rebinding."""
    assert "another host" in refusal(guarded().get("/", headers={"Host": host}), 403)


def test_a_host_must_be_given_once() -> None:
    for hosts in ([], ["127.0.0.1", "evil.com"], ["127.0.0.1", "127.0.0.1"]):
        status, _ = asked(Safety(echo, "127.0.0.1", None, Limits()), [("host", host) for host in hosts])
        assert status == 403


def test_everywhere_is_any_address_in_numbers_but_no_foreign_name() -> None:
    everywhere = guarded("0.0.0.0", TOKEN)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for host in ("192.168.1.5:8421", "127.0.0.1", "[fe80::1]:80"):
        assert everywhere.get("/", headers={"Host": host, **headers}).status_code == 200
    refusal(everywhere.get("/", headers={"Host": "evil.com", **headers}), 403)
    assert guarded("example.org").get("/", headers={"Host": "example.org:8421"}).status_code == 200
    refusal(guarded("example.org").get("/", headers={"Host": "localhost"}), 403)


@pytest.mark.parametrize("origin", ["http://evil.com", "null", "http://127.0.0.1:9999", "http://localhost:8421", ""])
def test_pages_of_other_sites_are_refused(origin: str) -> None:
    answer = guarded().post("/", json={}, headers={"Origin": origin})
    assert "another site" in refusal(answer, 403)


def test_its_own_pages_are_not() -> None:
    for origin in ("http://127.0.0.1:8421", "https://127.0.0.1:8421"):
        assert guarded().post("/", json={}, headers={"Origin": origin}).status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "text/json"]
)
def test_what_a_form_can_send_is_refused(kind: str) -> None:
    answer = guarded().post("/", content=b"{}", headers={"Content-Type": kind})
    assert "application/json" in refusal(answer, 415)


def test_json_may_say_its_encoding() -> None:
    answer = guarded().post("/", content=b"{}", headers={"Content-Type": "Application/JSON; charset=utf-8"})
    assert answer.content == b"{}"


@given(st.text(max_size=30))
def test_no_header_makes_a_foreign_host_local(text: str) -> None:
    name = host_of(text)
    assert name is None or name not in own_names("127.0.0.1") or text.strip().lower().startswith((name, f"[{name}"))
    assert host_of(f"evil.com{text}") not in own_names("127.0.0.1")


# ---------------------------------------------------------------------------------- who


@pytest.fixture
def locked() -> TestClient:
    return guarded(token=TOKEN)


def test_without_the_token_nothing_is_answered(locked: TestClient) -> None:
    wrong: Sequence[dict[str, str]] = (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer "},
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {TOKEN}"},
        {"Cookie": f"{COOKIE}=wrong"},
        {"Cookie": "=;;;\x01"},
        {"Authorization": "Bearer ä".encode("latin-1").decode("latin-1")},
    )
    for headers in wrong:
        encoded = {name: value.encode("latin-1") for name, value in headers.items()}
        assert "token" in refusal(locked.get("/parse", headers=encoded), 401)  # type: ignore[arg-type]
    assert TOKEN not in locked.get("/").text


def test_the_token_is_taken_as_a_bearers(locked: TestClient) -> None:
    assert locked.get("/", headers={"Authorization": f"bearer {TOKEN}"}).status_code == 200


def test_a_page_keeps_the_token_and_its_address_loses_it(locked: TestClient) -> None:
    entered = locked.get("/annotate", params={"text": 'a"<b>&', "token": TOKEN})
    assert entered.status_code == 200
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert 'content="0;url=/annotate?text=a%22%3Cb%3E%26"' in entered.text
    assert TOKEN not in entered.text
    assert locked.get("/").status_code == 200  # the client has the cookie now
    assert locked.post("/", json={}).status_code == 200


def test_a_wrong_token_in_an_address_is_refused(locked: TestClient) -> None:
    refusal(locked.get("/?token=wrong"), 401)
    refusal(locked.post("/", params={"token": TOKEN}, json={}), 401)


def test_entering_leads_nowhere_else(locked: TestClient) -> None:
    for path in ("//evil.com/", "/\\evil.com", "///evil.com"):
        scope_path = locked.get(f"{ADDRESS}{path}", params={"token": TOKEN}).text
        assert "url=/evil.com" in scope_path


# ---------------------------------------------------------------------------------- how much


def test_large_bodies_are_refused_before_they_are_read() -> None:
    client = guarded(body=100)
    assert client.post("/", content=b"x" * 100, headers={"Content-Type": "application/json"}).status_code == 200
    for size in (101, 10_000):
        answer = client.post("/", content=b"x" * size, headers={"Content-Type": "application/json"})
        assert "100 bytes" in refusal(answer, 413)


def test_large_bodies_without_a_length_are_refused_while_they_are_read() -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        for _ in range(1000):
            taken += 1
            yield b"x" * 10

    status, sent = asked(Safety(echo, "127.0.0.1", None, Limits(body=100)), JSON, endless())
    assert status == 413
    assert taken == 11
    assert b"100 bytes" in sent


@pytest.mark.parametrize("length", ["-1", "1e9", "999999999999999999999", "٣"])
def test_strange_lengths_are_refused(length: str) -> None:
    status, _ = asked(Safety(echo, "127.0.0.1", None, Limits()), [*JSON, ("content-length", length)], iter([b""]))
    assert status == 413


def test_slow_bodies_are_refused() -> None:
    status, sent = asked(Safety(echo, "127.0.0.1", None, Limits(body_seconds=0.01)), JSON, iter([b"{"]), stalls=True)
    assert status == 408
    assert b"did not arrive" in sent


def test_too_many_requests_at_once_are_told_when_to_come_again() -> None:
    async def run() -> tuple[int, Headers]:
        started, release = asyncio.Event(), asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            started.set()
            await release.wait()
            await echo(scope, receive, send)

        app = Safety(slow, "127.0.0.1", None, Limits(requests=1))
        first = asyncio.create_task(ask(app, [("host", "127.0.0.1")]))
        await started.wait()
        status, headers, _ = await ask(app, [("host", "127.0.0.1")])
        release.set()
        assert (await first)[0] == 200
        assert (await ask(app, [("host", "127.0.0.1")]))[0] == 200  # the place is free again
        return status, headers

    status, headers = asyncio.run(run())
    assert status == 503
    assert headers["retry-after"] == "1"


# ---------------------------------------------------------------------------------- what comes back


@pytest.fixture
def whole(parser: Parser) -> Iterator[TestClient]:
    app = Application(Setup(["toy"], lambda _: parser, limits=Limits(body=10_000)), lambda _: None)
    with TestClient(app, base_url=ADDRESS) as client:
        yield client


@pytest.mark.parametrize("address", ["/", "/health", "/nowhere", "/static/style.css", "/openapi.json"])
def test_every_answer_has_the_policy(whole: TestClient, address: str) -> None:
    headers = whole.get(address).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] in ("no-store", "no-cache")
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_what_is_not_there_is_refused_in_one_sentence(whole: TestClient) -> None:
    assert "nothing at this address" in refusal(whole.get("/nowhere"), 404)
    assert "does not take" in refusal(whole.get("/parse"), 405)
    assert "does not take" in refusal(whole.delete("/health", headers={"Content-Type": "application/json"}), 405)
    refusal(whole.post("/parse", json={"text": "x" * 20_000}), 413)


@pytest.mark.parametrize(
    "path",
    [
        *("../app.py", "..%2fapp.py", "%2e%2e/app.py", "..\\app.py", "....//app.py", "%2e%2e%2f%2e%2e%2fpipeline.py"),
        *("/etc/passwd", "%2fetc%2fpasswd", "style.css/../../app.py", "", ".", "%00", "style.css%00.js", "a" * 5000),
    ],
)
def test_nothing_outside_the_pages_is_served(whole: TestClient, path: str) -> None:
    answer = whole.get(f"/static/{path}")
    assert answer.status_code == 404
    assert "import" not in answer.text
    assert list(answer.json()) == ["error"]


# ---------------------------------------------------------------------------------- without a client in between

JSON = [("host", "127.0.0.1"), ("content-type", "application/json")]


def asked(
    app: Safety, headers: Sequence[tuple[str, str]], body: Iterator[bytes] | None = None, *, stalls: bool = False
) -> tuple[int, bytes]:
    status, _, sent = asyncio.run(ask(app, headers, body, stalls=stalls))
    return status, sent


async def ask(
    app: Safety, headers: Sequence[tuple[str, str]], body: Iterator[bytes] | None = None, *, stalls: bool = False
) -> tuple[int, Headers, bytes]:
    """The status, headers and body of an answer to a request whose body comes in parts."""
    scope = {
        "type": "http",
        "method": "GET" if body is None else "POST",
        "path": "/",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }
    parts = body or iter(())
    sent: list[Message] = []

    async def receive() -> Message:
        part = next(parts, None)
        if part is None and stalls:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": part or b"", "more_body": part is not None}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], Headers(raw=sent[0]["headers"]), sent[1]["body"]


def test_local_addresses() -> None:
    assert all(map(is_local, ("127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST")))
    assert not any(map(is_local, ("0.0.0.0", "::", "", "192.168.1.5", "example.org", "localhost.evil.com")))
