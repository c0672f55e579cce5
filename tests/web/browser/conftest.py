"""The pages in a real browser: Debian's Chromium, driven by Playwright, and `headway annotate` in its own process.

One server and one browser for all tests of a worker; every test has windows of its own, and sentences of its own in the
treebank that the server has open. Whatever a page does, no window may run foreign code, ask for anything outside
127.0.0.1, fail in JavaScript, or break the content security policy: each is watched for that.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    expect,
    sync_playwright,
)

from tests.web.browser.server import Server
from tests.web.browser.treebank import write_treebank

CHROMIUM = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
# Nothing but the pages may use the network, so that every request is one of theirs.
ARGUMENTS = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
SCREENSHOTS = Path(__file__).resolve().parents[3] / "build" / "screenshots"

PATIENCE = 30_000  # ms: the machine may be busy, and kernels may have to be compiled

Windows = Callable[..., Page]

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")  # Playwright's event loop would stand in the way of other modules' own
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for the tests of a module that do not end it."""
    with Server(write_treebank(tmp_path_factory.mktemp("treebank") / "trees.conllu")) as started:
        yield started


@pytest.fixture
def windows(browser: Browser, server: Server) -> Iterator[Windows]:
    """Opens pages, each in a profile of its own, and watches them."""
    contexts: list[BrowserContext] = []
    offences: list[str] = []

    def opened(address: str, **options: Any) -> Page:
        at = options.pop("at", server)
        context = browser.new_context(viewport=options.pop("viewport", {"width": 1280, "height": 800}), **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        _watch(page, offences)
        page.goto(f"{at.url}{address}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not offences


def _watch(page: Page, offences: list[str]) -> None:
    own = ("http://127.0.0.1:", "blob:", "data:")

    def on_dialog(dialog: Dialog) -> None:
        offences.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def on_console(said: ConsoleMessage) -> None:
        if "Content Security Policy" in said.text:
            offences.append(said.text)

    def on_request(asked: Request) -> None:
        if not asked.url.startswith(own):
            offences.append(f"asked for {asked.url}")

    page.on("pageerror", lambda error: offences.append(f"an error in JavaScript: {error}"))
    page.on("popup", lambda popup: offences.append(f"a window: {popup.url}"))
    page.on("dialog", on_dialog)
    page.on("console", on_console)
    page.on("request", on_request)


@pytest.fixture
def screenshot() -> Callable[[Page, str], None]:
    """Keep a picture of a page in build/screenshots."""

    def kept(page: Page, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}.png")

    return kept
