"""`headway serve` under load, beside `headway parse` on the same text.

    commit=$(git rev-parse --short HEAD)
    python benchmarks/serve.py dev.conllu --commit $commit                    # 100,000 requests; otherwise idle
    python benchmarks/serve.py dev.conllu --requests 5000 --output /tmp/serve.json

The treebank's sentences of 18 to 22 words become raw text. A process of its own holds 64 connections to the server;
each sends `POST /parse` with one sentence, waits for the tree, and sends the next. `headway parse` gets the same
sentences as one text, a paragraph each, before and after that: once for every number of threads up to the cores. Its
speed is without the time that it takes to start, from a short and a long text, and the best one counts. Trees are
compared, as is the memory of the server at the beginning and at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import cycle, islice
from pathlib import Path
from typing import Any, cast
from urllib.request import Request, urlopen

import numpy as np
import uvloop

from headway import __version__, read_treebank
from headway.training.data import checksum
from headway.treebank.raw_text import raw_text

SHARE_BAR, P99_BAR, GROWTH_BAR = 0.8, 1.0, 1.05
CLIENTS = 64
WORDS = range(18, 23)
SHORT, LONG = 200, 4000  # sentences that `headway parse` gets
PACKAGES = ("fastapi", "starlette", "uvicorn", "uvloop", "httptools", "onnxruntime", "numba", "numpy")

Arcs = list[tuple[str, int, str]]


# ---------------------------------------------------------------------------------- the clients


class Client(asyncio.Protocol):
    """One connection: sends a request as soon as the last one is answered."""

    def __init__(self, load: Load) -> None:
        self._load, self._received, self._missing = load, b"", 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        self._load.lost()

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        else:
            self._received += data
            head, end, body = self._received.partition(b"\r\n\r\n")
            if not end:
                return
            found = re.search(rb"content-length: (\d+)", head)
            assert found is not None, head
            self._missing = int(found[1]) - len(body)
            self._status, self._received = head[9:12], b""
        if self._missing == 0:
            self._load.answered(self._status, time.perf_counter() - self._began)
            self._send()

    def _send(self) -> None:
        request = self._load.next_request()
        if request is None:
            self._transport.close()
            return
        self._began = time.perf_counter()
        self._transport.write(request)


class Load:
    """What all clients share: the requests that are left, and what became of those that were sent."""

    def __init__(self, requests: Iterator[bytes], server: int, every: int, ended: asyncio.Future[None]) -> None:
        self._requests, self._server, self._every, self._ended = requests, server, every, ended
        self._open = CLIENTS
        self.seconds, self.megabytes, self.errors = array("d"), array("d"), 0

    def next_request(self) -> bytes | None:
        return next(self._requests, None)

    def answered(self, status: bytes, seconds: float) -> None:
        self.errors += status != b"200"
        if len(self.seconds) % self._every == 0:
            self.megabytes.append(resident(self._server))
        self.seconds.append(seconds)

    def lost(self) -> None:
        self._open -= 1
        if not self._open:
            self._ended.set_result(None)


async def load(port: int, texts: Sequence[str], count: int, server: int) -> dict[str, Any]:
    """Send so many requests from 64 connections."""
    made = [request_of(text) for text in texts]
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    shared = Load(islice(cycle(made), count), server, max(1, count // 200), ended)
    began = time.perf_counter()
    for _ in range(CLIENTS):
        await loop.create_connection(lambda: Client(shared), "127.0.0.1", port)
    await ended
    took = time.perf_counter() - began
    p50, p99, most = np.percentile(np.array(shared.seconds), [50, 99, 100]).tolist()
    memory = np.array(shared.megabytes)
    tenth = len(memory) // 10
    return {
        "requests": len(shared.seconds),
        "errors": shared.errors + count - len(shared.seconds),
        "seconds": took,
        "p50": p50,
        "p99": p99,
        "slowest": most,
        "cpu_seconds_of_clients": time.process_time(),
        "megabytes": {"early": memory[tenth : 2 * tenth + 1].mean(), "late": memory[-tenth - 1 :].mean()},
        "megabytes_over_time": [round(float(value), 1) for value in memory[:: max(1, len(memory) // 20)]],
    }


def request_of(text: str) -> bytes:
    body = json.dumps({"text": text}, ensure_ascii=False).encode()
    head = f"POST /parse HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def resident(process: int) -> float:
    """Megabytes of memory."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text("ascii"))
    return 0.0 if found is None else int(found[1]) / 1024


# ---------------------------------------------------------------------------------- the server


class Server:
    """`headway serve` on a free port, ready to parse."""

    def __init__(self, model: str) -> None:
        command = [sys.executable, "-m", "headway", "serve", model, "--port", "0"]
        began = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1)
        assert self.process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.process.stdout.readline())
        assert found is not None
        self.port = int(found[1])
        self.arcs("Time flies.")
        self.first_tree = time.perf_counter() - began

    def arcs(self, text: str) -> Arcs:
        body = json.dumps({"text": text}).encode()
        request = Request(f"http://127.0.0.1:{self.port}/parse", body, {"Content-Type": "application/json"})
        with urlopen(request) as answer:
            found = json.load(answer)
        return [(word["form"], word["head"], word["label"]) for each in found["sentences"] for word in each["words"]]

    def under_load(self, texts: Path, count: int) -> dict[str, Any]:
        words = ["--clients", str(texts), "--requests", str(count), "--server", f"{self.port} {self.process.pid}"]
        before = self._cpu_seconds()
        done = subprocess.run([sys.executable, __file__, *words], stdout=subprocess.PIPE, check=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return {**found, "cpu_seconds": self._cpu_seconds() - before}

    def _cpu_seconds(self) -> float:
        """Of the server, so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


# ---------------------------------------------------------------------------------- `headway parse`


def parsed(model: str, texts: Sequence[str], threads: int, folder: Path) -> tuple[float, list[Arcs]]:
    """Seconds of the command, and the arcs of each text."""
    given, made = folder / "text.txt", folder / "parsed.conllu"
    given.write_text("".join(f"{text}\n\n" for text in texts), encoding="utf-8")
    words = ["parse", model, str(given), "--threads", str(threads), "-o", str(made)]
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "headway", *words], check=True, env=os.environ | {"HEADWAY_QUIET": "1"})
    took = time.perf_counter() - began
    found: list[Arcs] = []
    for sentence in read_treebank(made):
        if "# newpar" in sentence.layout.comments:
            found.append([])
        assert sentence.heads is not None
        assert sentence.labels is not None
        arcs = zip(sentence.forms, sentence.heads[1:].tolist(), sentence.labels[1:], strict=True)
        found[-1] += [(form, head, label or "") for form, head, label in arcs]
    return took, found


def speed_of_command(model: str, texts: Sequence[str], threads: int, folder: Path) -> float:
    """Words a second, without the time to start."""
    times, words = [], []
    for repeats in (SHORT, LONG):
        took, arcs = parsed(model, list(islice(cycle(texts), repeats)), threads, folder)
        times.append(took)
        words.append(sum(map(len, arcs)))
    return (words[1] - words[0]) / (times[1] - times[0])


# ---------------------------------------------------------------------------------- the report


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())


def verdict(met: bool, what: str) -> bool:
    print(f"{'PASS' if met else 'FAIL'} {what}")
    return met


def measured(model: str, texts: Sequence[str], count: int, folder: Path) -> dict[str, Any]:
    listed = folder / "texts.json"
    listed.write_text(json.dumps(texts), encoding="utf-8")
    _, expected = parsed(model, texts, 1, folder)
    threads = range(1, (os.cpu_count() or 1) + 1)
    before = {t: speed_of_command(model, texts, t, folder) for t in threads}
    server = Server(model)
    try:
        same = sum(server.arcs(text) == arcs for text, arcs in zip(texts, expected, strict=True))
        server.under_load(listed, 500)
        found = server.under_load(listed, count)
    finally:
        server.stop()
    after = {t: speed_of_command(model, texts, t, folder) for t in threads}
    words = sum(len(arcs) for arcs in islice(cycle(expected), count))
    return {
        "sentences": len(texts),
        "same_trees": same,
        "first_tree_seconds": server.first_tree,
        "serve": {"words_per_second": words / found["seconds"], **found},
        "parse": {"words_per_second": {f"{t} threads": [before[t], after[t]] for t in threads}},
    }


def main() -> int:
    """Measure; the exit status says whether the bars are met."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("treebank", type=Path, nargs="?", help="where the sentences come from")
    options.add_argument("--model", default="en", help="a name or a file")
    options.add_argument("--requests", type=int, default=100_000)
    options.add_argument("--commit", default="unknown", help="what to call the code that is measured")
    options.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "serve.json")
    options.add_argument("--clients", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--server", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.clients is not None:
        port, process = map(int, chosen.server.split())
        texts = json.loads(chosen.clients.read_text("utf-8"))
        print(json.dumps(uvloop.run(load(port, texts, chosen.requests, process))))
        return 0
    if chosen.treebank is None:
        options.error("the treebank is missing")
    sentences = [sentence for sentence in read_treebank(chosen.treebank) if len(sentence) in WORDS]
    texts = [raw_text([sentence]).text.strip() for sentence in sentences]
    with tempfile.TemporaryDirectory() as name:
        found = {
            "headway": __version__,
            "commit": chosen.commit,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            **{package: version(package) for package in PACKAGES},
            "processor": processor(),
            "cores": os.cpu_count(),
            "load_before": os.getloadavg()[0],
            "model": chosen.model,
            "data": {"name": chosen.treebank.name, "sha256": checksum(sentences)},
            "clients": CLIENTS,
            **measured(chosen.model, texts, chosen.requests, Path(name)),
        }
    best = max(speed for speeds in found["parse"]["words_per_second"].values() for speed in speeds)
    served, memory = found["serve"], found["serve"]["megabytes"]
    found["share"] = served["words_per_second"] / best
    growth, same = memory["late"] / memory["early"], found["same_trees"]
    chosen.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))
    met = [
        verdict(found["share"] >= SHARE_BAR, f"{found['share']:.0%} of headway parse's words a second, bar 80%"),
        verdict(served["p99"] < P99_BAR, f"99% of requests within {served['p99']:.3f} s, bar {P99_BAR:g}"),
        verdict(served["errors"] == 0, f"{served['errors']} errors in {served['requests']} requests, bar 0"),
        verdict(growth < GROWTH_BAR, f"memory grew by a factor of {growth:.3f}, bar {GROWTH_BAR:g}"),
        verdict(same == found["sentences"], f"the trees of {same} of {found['sentences']} texts are the same"),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
