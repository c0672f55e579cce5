"""Somebody annotates in the browser while the server or the browser is killed again and again: is anything lost?

`python -m tests.web.browser.kills 200 [RESULT.json]` kills 200 times at random moments, the server and the browser in
turn, and says what was lost, which must be nothing. Keys are pressed at random; a change counts as acknowledged when
the page has got the server's answer to it. It must then be in the journal, and the sentence must have the same words
pinned.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import ConsoleMessage, Page, Playwright, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from headway import __version__
from headway.annotation.journal import Change, read_journal
from tests.web.browser.conftest import ARGUMENTS, CHROMIUM
from tests.web.browser.server import Server, eventually
from tests.web.browser.treebank import NUMBER, write_treebank

_SENTENCES = [NUMBER[name] for name in ("pin", "keys", "undo", "tabs", "drag", "long")]
_LONGEST_LIFE = 0.8  # seconds after the first change
_HOPELESS = 60.0  # seconds without any change
_TRIALS = 3
_MARK = "acknowledged "
# The page says in its console what was answered, with the version and the pinned heads.
_LISTENER = f"""
const ask = window.fetch;
window.fetch = async (...given) => {{
  const answer = await ask(...given);
  const found = /sentences.(\\d+).(edit|undo|redo)$/.exec(answer.url);
  if (found && answer.ok) {{
    const view = await answer.clone().json();
    const pins = view.words.flatMap((word, k) => (word.pinned ? [[k + 1, word.head]] : []));
    console.log({_MARK!r} + JSON.stringify([Number(found[1]), view.version, pins]));
  }}
  return answer;
}};
"""

Pins = list[list[int]]  # a word and its head


@dataclass
class Report:
    """What was acknowledged: the pinned heads by sentence and version; and what of that was lost."""

    acknowledged: dict[tuple[int, int], Pins] = field(default_factory=dict)
    lost: list[tuple[int, int]] = field(default_factory=list)

    @property
    def summary(self) -> str:
        return f"{len(self.acknowledged)} acknowledged changes, {len(self.lost)} lost"

    def hear(self, said: ConsoleMessage) -> None:
        """Note what a page says."""
        if said.text.startswith(_MARK):
            i, version, pins = json.loads(said.text.removeprefix(_MARK))
            self.acknowledged[i, version] = pins

    def look(self, server: Server) -> None:
        """Look for everything that was acknowledged."""
        journal = read_journal(server.treebank.with_name(f"{server.treebank.name}.journal"))
        recorded = {(record.sentence, record.version) for _, _, record in journal if isinstance(record, Change)}
        self.lost += self.acknowledged.keys() - recorded
        for i in {i for i, _ in self.acknowledged}:
            view = server.sentence(i + 1)
            answered = self.acknowledged.get((i, view["version"]))
            if answered is not None and answered != pins_of(view):
                self.lost.append((i, view["version"]))


def pins_of(view: dict[str, Any]) -> Pins:
    return [[k, word["head"]] for k, word in enumerate(view["words"], start=1) if word["pinned"]]


@contextmanager
def chromium(playwright: Playwright, folder: Path) -> Iterator[tuple[Page, subprocess.Popen[bytes]]]:
    """A page, and the process of its browser, which may be killed; `folder` is for the browser's own files."""
    process, page = _connected(playwright, folder)
    try:
        yield page, process
    finally:
        _end(process)


def _connected(playwright: Playwright, folder: Path) -> tuple[subprocess.Popen[bytes], Page]:
    """A browser that answers; on a busy machine, one in a hundred never does."""
    assert CHROMIUM is not None
    for trial in range(_TRIALS):
        own = folder / str(trial)
        said = own / "DevToolsActivePort"
        command = [CHROMIUM, *ARGUMENTS, "--remote-debugging-port=0", f"--user-data-dir={own}"]
        null = subprocess.DEVNULL
        process = subprocess.Popen(command, stdout=null, stderr=null, start_new_session=True)
        try:
            eventually(lambda said=said: len(said.read_text().split()) == 2)  # type: ignore[misc]
            browser = playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{said.read_text().split()[0]}")
            return process, browser.contexts[0].new_page()
        except (PlaywrightError, AssertionError):
            _end(process)
    raise AssertionError("no browser answers")


def _end(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def annotate(page: Page, server: Server, report: Report, rng: random.Random) -> None:
    """Press keys until some time after the first change was acknowledged."""
    page.add_init_script(_LISTENER)
    page.on("console", report.hear)
    page.goto(f"{server.url}/annotate#{rng.choice(_SENTENCES)}")
    expect(page.locator(".word").first).to_be_visible()
    page.locator(".word .grip").first.click()
    known, began, end = len(report.acknowledged), time.monotonic(), None
    while end is None or time.monotonic() < end:
        for key in _random_keys(rng):
            page.keyboard.press(key)
        if end is None and len(report.acknowledged) > known:
            end = time.monotonic() + rng.uniform(0, _LONGEST_LIFE)
        assert end or time.monotonic() < began + _HOPELESS, "no key made a change"


def _random_keys(rng: random.Random) -> list[str]:
    if rng.random() < 0.2:
        return ["Control+z"]
    return [rng.choice(["ArrowLeft", "ArrowRight"]), str(rng.randrange(6)), "Enter"]


def kill(kills: int, folder: Path, seed: int = 0) -> Report:
    """Kill so often, the server and the browser in turn, and look for every acknowledged change after each."""
    rng, report = random.Random(seed), Report()
    with sync_playwright() as playwright, Server(write_treebank(folder / "trees.conllu")) as server:
        for number in range(kills):
            try:
                with chromium(playwright, folder / f"profile{number}") as (page, browser):
                    annotate(page, server, report, rng)
                    if number % 2:
                        os.killpg(browser.pid, signal.SIGKILL)
                    else:
                        server.kill()
            except PlaywrightError as error:
                if "closed" not in str(error):  # that it was killed is no news
                    raise
            if number % 2 == 0:
                server.start()
            report.look(server)
            print(f"{number + 1} kills, {report.summary}", flush=True)
    return report


def main(kills: str, result: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = kill(int(kills), Path(folder))
    if result:
        found = {"kills": int(kills), "acknowledged": len(report.acknowledged), "lost": len(report.lost), "seed": 0}
        Path(result).write_text(json.dumps({"headway": __version__, **found}, indent=1) + "\n", "utf-8")
    sys.exit(bool(report.lost))


if __name__ == "__main__":
    main(*sys.argv[1:])
