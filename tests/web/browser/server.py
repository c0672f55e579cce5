"""`headway annotate` in a process of its own, which tests may kill and start again on the same port."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PATIENCE = 240.0  # seconds; a first start compiles kernels, and the machine may be busy


class Server:
    """A server with a treebank open; the explore page is served as well."""

    def __init__(self, treebank: Path) -> None:
        self.treebank = treebank
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start, and wait until the model is there."""
        command = [sys.executable, "-m", "headway", "annotate", str(self.treebank), "--model", "en"]
        log = self.treebank.with_suffix(".log")
        with log.open("ab") as output:
            process = subprocess.Popen([*command, "--port", str(self.port)], stdout=output, stderr=output)
        self._process = process
        try:
            eventually(lambda: self.get("/health")["status"] == "ok", lambda: process.poll() is None, _PATIENCE)
        except AssertionError:
            self.stop()
            raise AssertionError(f"the server did not start: {log.read_text()}") from None

    def kill(self) -> None:
        """As a power cut would."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """End it in order."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def get(self, address: str) -> Any:
        """What the server answers, as data; raises OSError without an answer."""
        with urllib.request.urlopen(f"{self.url}{address}", timeout=30) as answer:
            return json.load(answer)

    def sentence(self, number: int) -> dict[str, Any]:
        """A sentence as the page gets it; the first is 1, as on the page."""
        view: dict[str, Any] = self.get(f"/api/annotation/sentences/{number - 1}")
        return view

    def change(self, number: int, edit: dict[str, Any]) -> dict[str, Any]:
        """Make a change as another annotator."""
        body = {"version": self.sentence(number)["version"], "edit": edit}
        asked = urllib.request.Request(
            f"{self.url}/api/annotation/sentences/{number - 1}/edit",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "X-Client": "a colleague"},
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            view: dict[str, Any] = json.load(answer)
        return view

    def lines_on_disk(self, number: int, start: str = "") -> list[str]:
        """The lines of a sentence in the file as it is now: its words, or what begins otherwise."""
        lines = self.treebank.read_text("utf-8").split("\n\n")[number - 1].splitlines()
        return [line for line in lines if (line.startswith(start) if start else line[:1].isdigit())]


def eventually(holds: Callable[[], bool], may_hope: Callable[[], bool] = lambda: True, patience: float = 30.0) -> None:
    """Wait until something holds, as long as there is hope."""
    end = time.monotonic() + patience
    while time.monotonic() < end and may_hope():
        try:
            if holds():
                return
        except (OSError, urllib.error.URLError):
            pass
        time.sleep(0.05)
    raise AssertionError("it never came to that")
