"""The pictures of the two pages: `python docs/figures/make_screenshots.py` (needs `headway[serve]`, Playwright, Pillow,
and Chromium; a minute).

explore.png    the explore page with the other heads of a word.
annotate.png   the annotate page after one head was pinned, with a short treebank.

They are 1,280 pixels wide, and have few enough colours to be small.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

DOCS = Path(__file__).parent.parent
TEXT = """\
I know that the old man the boats in the harbour.
She saw the man on the hill with a telescope, but he did not see her.
The horse raced past the barn fell.
Time flies like an arrow; fruit flies like a banana.
We watched the reporters from the balcony of the hotel.
The complex houses married and single soldiers and their families.
Flying planes can be dangerous.
He gave her cat food.
"""
SENTENCE = 2
COLOURS = 256


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        treebank = Path(folder) / "garden-paths.txt"
        treebank.write_text(TEXT)
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless=new", "--no-sandbox"]
        )
        with served(treebank) as address:
            explore(chromium, address)
            annotate(chromium, address)
        chromium.close()


def explore(chromium: Browser, address: str) -> None:
    page = window(chromium, f"{address}/#k=5", 720)
    page.locator('.word[data-word="7"] .grip').hover()
    expect(page.locator(".word-card")).to_be_visible()
    keep(page, "explore")


def annotate(chromium: Browser, address: str) -> None:
    page = window(chromium, f"{address}/annotate#{SENTENCE}", 800)
    page.locator('.word[data-word="10"] .grip').click()
    for key in ("2", "Enter"):  # the telescope is what she saw with
        page.keyboard.press(key)
    expect(page.locator(".arc.pinned")).to_have_count(1)
    expect(page.locator("#saved")).to_have_text("Saved")
    expect(page.locator(".row .share")).to_have_count(len(TEXT.splitlines()))
    page.locator('.word[data-word="7"] .grip').click()  # the next one to decide
    page.mouse.move(640, 790)
    keep(page, "annotate")


def window(chromium: Browser, address: str, height: int) -> Page:
    page = chromium.new_page(viewport={"width": 1280, "height": height}, color_scheme="light")
    page.goto(address)
    expect(page.locator(".word").first).to_be_visible(timeout=60_000)
    return page


def keep(page: Page, name: str) -> None:
    """As a PNG with a palette, which text and lines need no more than."""
    path = DOCS / f"{name}.png"
    page.screenshot(path=path)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


@contextmanager
def served(treebank: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "headway", "annotate", str(treebank), "--model", "en", "--port", str(port)]
    process = subprocess.Popen(command)
    try:
        while b'"ok"' not in health(address):
            if process.poll() is not None:
                raise SystemExit("the server did not start")
            time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait()


def health(address: str) -> bytes:
    try:
        with urllib.request.urlopen(f"{address}/health") as answer:
            return bytes(answer.read())
    except OSError:
        return b""


if __name__ == "__main__":
    main()
