"""A server in a process of its own, on a free port."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from types import TracebackType
from typing import Any


class Live:
    """`headway serve` or `headway annotate`, with these words."""

    def __init__(self, *words: Any) -> None:
        command = [sys.executable, "-m", "headway", *map(str, words), "--port", "0"]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "HEADWAY_QUIET": "1"},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background ignore it
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        found = re.search(r"(http://[^/]+:\d+)(/\S*)", self.said)
        assert found is not None, self.said + self.process.communicate()[1]
        self.address, self.page = found[1], found[2]

    def __enter__(self) -> Live:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, address: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        data = None if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"Content-Type": "application/json"}
        request = urllib.request.Request(self.address + address, data, {**kind, **headers})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.load(refused)

    def ended(self, number: int) -> tuple[int, str]:
        """Status and errors of the process once it has got this signal."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors
