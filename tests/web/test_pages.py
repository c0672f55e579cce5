"""The pages are served as they are, and asked for again only when they changed."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from headway.web.pages import STATIC

PAGES = [("/", "index.html"), ("/annotate", "annotate.html"), ("/static/style.css", "style.css")]


@pytest.mark.parametrize(("address", "name"), PAGES)
def test_files_come_with_a_checksum_and_are_not_sent_twice(client: TestClient, address: str, name: str) -> None:
    answer = client.get(address)
    assert answer.content == (STATIC / name).read_bytes()
    assert answer.headers["cache-control"] == "no-cache"
    again = client.get(address, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "content-security-policy" in again.headers
    assert client.head(address).status_code == 200


def test_types_are_those_that_browsers_insist_on(client: TestClient) -> None:
    kinds = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
    for path in STATIC.iterdir():
        assert path.suffix in kinds, path
        kind = client.get(f"/static/{path.name}").headers["content-type"]
        assert kind.split(";")[0] == kinds[path.suffix]


def test_pages_load_nothing_from_elsewhere_and_have_no_code_inside() -> None:
    for path in STATIC.glob("*.html"):
        text = path.read_text("utf-8")
        assert not re.search(r"""(src|href)=["']?(https?:)?//""", text), path
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", text), path
