"""Run random draws of a target in a worker process, and name everything that should not have happened.

A target is a function `prepare(folder)` that returns `draw(rng)`, named as "module:function" of this folder; the list
is in `targets.py`. Preparing may take its time (compile, load a model): it is under no limit. Draw number
`seed` gets `np.random.default_rng(seed)` and nothing else that is random, so target and seed reproduce it. A draw may
return a word for what became of it ("accepted" if it returns None) or raise a `HeadwayError`, which counts as refused.
Anything else is a finding: another exception, a warning, a wrong answer (AssertionError), a crash, more than 10 s,
more than 2 GB.
"""

from __future__ import annotations

import faulthandler
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from numba.core import event

from headway.errors import HeadwayError

Draw = Callable[[np.random.Generator], str | None]
Prepare = Callable[[Path], Draw]

DRAWS_PER_WORKER = 20_000

_CONTROLS = frozenset(["Cc", "Cs", "Zl", "Zp"])
_DIRECTIONS = frozenset(["LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"])


@dataclass(frozen=True, slots=True)
class Limits:
    """What a draw may take."""

    seconds: int = 10  # of processor time without compiling, so that a busy or new machine reports no hangs
    stalled: int = 600  # seconds without an answer: a draw that sleeps, or waits for a lock
    memory: int = 2 << 30  # bytes that it may map on top of what the prepared worker has


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Finding:
    """What a draw did that it should not have, and the seed to see it again."""

    seed: int
    cause: str

    @property
    def place(self) -> str:
        """Class and line: findings of one place are one defect, more or less."""
        return self.cause.partition(": ")[0]


@dataclass(slots=True)
class Tally:
    """What became of a target's draws so far."""

    draws: int = 0
    seconds: float = 0.0
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(self, seed: int, kind: str, word: str) -> None:
        self.draws += 1
        if kind == "finding":
            self.findings.append(Finding(seed, word))
        else:
            (self.accepted if kind == "accepted" else self.refused)[word] += 1


def fuzz(target: str, seed: int, draws: int, seconds: float = float("inf"), limits: Limits = LIMITS) -> Tally:
    """Run draws `seed`, `seed + 1`, ... of a target until so many are done, so many seconds have passed, or Ctrl-C."""
    tally, start, next_seed, stop = Tally(), time.monotonic(), seed, seed + draws
    with suppress(KeyboardInterrupt):
        while next_seed < stop and tally.seconds < seconds:
            last = min(stop, next_seed + DRAWS_PER_WORKER)
            for done, kind, word in _from_worker(target, next_seed, last, limits):
                tally.add(done, kind, word)
                next_seed = done + 1
                tally.seconds = time.monotonic() - start
                if tally.seconds >= seconds:
                    break
    return tally


def run_one(draw: Draw, seed: int) -> tuple[str, str]:
    """("accepted", word), ("refused", class of the error) or ("finding", cause) of one draw."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return "accepted", draw(np.random.default_rng(seed)) or "accepted"
    except HeadwayError as error:
        return _refused(error)
    except Exception as error:
        return "finding", _cause(error)


def check_message(error: HeadwayError) -> None:
    """A message is one line, and what it quotes from a file cannot steer a terminal."""
    message = str(error)
    assert not any(map(_steers, message)), f"the message of a {type(error).__name__} steers the terminal: {message!a}"


def prepare(target: str, folder: Path) -> Draw:
    """The draws of a target."""
    module, _, function = target.partition(":")
    prepared: Draw = getattr(importlib.import_module(f"tests.fuzz.{module}"), function)(folder)
    return prepared


@contextmanager
def expecting_success() -> Iterator[None]:
    """Where Headway reads what it wrote itself, a refusal is a finding, too."""
    try:
        yield
    except HeadwayError as error:
        raise AssertionError(f"refused what it wrote: {error}") from None


def _from_worker(target: str, first: int, stop: int, limits: Limits) -> Iterator[tuple[int, str, str]]:
    """Seed, kind and word of every draw of one worker; its death is the last draw's finding."""
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(prefix="headway-fuzz-") as folder:
        worker = spawn.Process(target=_work, args=(target, first, stop, sender, folder, limits), daemon=True)
        worker.start()
        sender.close()
        try:
            receiver.recv()  # prepared; that may compile, and takes its time
            for seed in range(first, stop):
                if not receiver.poll(limits.stalled):
                    yield seed, "finding", f"no answer in {limits.stalled} s"
                    return
                try:
                    yield seed, *receiver.recv()
                except EOFError:
                    worker.join()
                    yield seed, "finding", _death(worker.exitcode, limits)
                    return
        finally:
            worker.kill()
            worker.join()


def _work(target: str, first: int, stop: int, sender: Connection, folder: str, limits: Limits) -> None:
    """The worker: prepare, then draw within the limits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)  # says where it hung, then the signal ends the process
    draw = prepare(target, Path(folder))
    os.chdir(folder)  # a draw may write under any name
    resource.setrlimit(resource.RLIMIT_AS, (_mapped() + limits.memory, resource.RLIM_INFINITY))
    event.register("numba:compile", _Untimed())  # type: ignore[no-untyped-call]
    sender.send("prepared")
    for seed in range(first, stop):
        signal.setitimer(signal.ITIMER_PROF, limits.seconds)
        outcome = run_one(draw, seed)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sender.send(outcome)


class _Untimed(event.Listener):
    """Stops the clock of a draw while kernels are compiled, which happens once on a machine."""

    def __init__(self) -> None:
        self.depth, self.left = 0, 0.0

    def on_start(self, event: event.Event) -> None:
        if self.depth == 0:
            self.left, _ = signal.setitimer(signal.ITIMER_PROF, 0)
        self.depth += 1

    def on_end(self, event: event.Event) -> None:
        self.depth -= 1
        if self.depth == 0:
            signal.setitimer(signal.ITIMER_PROF, self.left)


def _refused(error: HeadwayError) -> tuple[str, str]:
    try:
        check_message(error)
    except AssertionError as finding:
        return "finding", str(finding)
    return "refused", type(error).__name__


def _steers(character: str) -> bool:
    """Whether a terminal obeys a character instead of showing it: controls, line ends, directions; surrogates fail."""
    return unicodedata.category(character) in _CONTROLS or unicodedata.bidirectional(character) in _DIRECTIONS


def _mapped() -> int:
    """Bytes of address space that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _death(exitcode: int | None, limits: Limits) -> str:
    if exitcode == -signal.SIGPROF:
        return f"ran over {limits.seconds} s"
    return f"died of {signal.Signals(-exitcode).name}" if exitcode and exitcode < 0 else f"left with exit {exitcode}"


def _cause(error: BaseException) -> str:
    """Class, place and message, on one line: "TypeError in conll_reader.py:70: ..."."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "headway" in frame.filename or "fuzz" in frame.filename]
    where = f" in {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    message = ascii(str(error))[1:200]
    return f"{type(error).__name__}{where}: {message}"


def replay(target: str, seed: int) -> None:
    """One draw in this process, with its traceback: for a debugger."""
    with tempfile.TemporaryDirectory(prefix="headway-fuzz-") as folder:
        draw = prepare(target, Path(folder))
        warnings.simplefilter("error")
        print(draw(np.random.default_rng(seed)) or "accepted", file=sys.stderr)
