"""What can happen to a command while it runs, and what must be true afterwards.

A run is `headway parse en` on a random text, in a process of its own. An injury starts it, hurts it, and returns an
`Ending`. After every run the checks of `verdict` hold: no traceback; at most one sentence of error; the old output
as it was, or the new one complete; nothing left beside it, unless the process was killed and had no chance.

Another kind of work to be hurt (a server, once there is one) is another function like `parse` in `Run.start`'s place.
"""

from __future__ import annotations

import io
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headway import read_treebank
from headway.errors import HeadwayError

OLD = b"1\told\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
LEAVES_WITHIN = 1.0  # seconds after SIGTERM or Ctrl-C
MOMENTS = (0.1, 3.0)  # seconds after the start: about as long as a run takes
LONGEST = 120.0  # seconds of a run that nothing stops


@dataclass(frozen=True, slots=True)
class Run:
    """One command to be hurt: its input, and the file that it writes to, which has an old version."""

    source: Path
    target: Path

    def start(self, output: str, limit: int | None = None) -> subprocess.Popen[bytes]:
        """Parse to `output`; with a limit, no file may grow beyond so many bytes, as on a full disk."""

        def limited() -> None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        command = [
            sys.executable,
            "-m",
            "headway",
            "parse",
            "en",
            str(self.source),
            "-o",
            output,
            "--input-format",
            "text",
        ]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limited)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended: exit status, what it said, how long it took to leave once it was told to."""

    status: int
    errors: str
    seconds: float
    written: bytes = b""


Injury = Callable[[Run, np.random.Generator], Ending]


def undisturbed(run: Run, rng: np.random.Generator) -> Ending:
    """Nothing happens."""
    return _ended(run.start(str(run.target)))


def to_a_pipe(run: Run, rng: np.random.Generator) -> Ending:
    """Nothing happens, and the output goes to a pipe."""
    return _ended(run.start("-"))


def killed(run: Run, rng: np.random.Generator) -> Ending:
    """kill -9 at a random moment."""
    return _signalled(run, rng, signal.SIGKILL)


def killed_and_run_again(run: Run, rng: np.random.Generator) -> Ending:
    """kill -9 at a random moment; the next run has to clear up."""
    _signalled(run, rng, signal.SIGKILL)
    return undisturbed(run, rng)


def terminated(run: Run, rng: np.random.Generator) -> Ending:
    """SIGTERM at a random moment."""
    return _signalled(run, rng, signal.SIGTERM)


def interrupted(run: Run, rng: np.random.Generator) -> Ending:
    """Ctrl-C at a random moment."""
    return _signalled(run, rng, signal.SIGINT)


def closed_pipe(run: Run, rng: np.random.Generator) -> Ending:
    """Whoever reads the output stops after some bytes, as `head` does."""
    process = run.start("-")
    assert process.stdout is not None
    os.read(process.stdout.fileno(), int(rng.integers(1, 5000)))
    process.stdout.close()
    return _ended(process)


def full_disk(run: Run, rng: np.random.Generator) -> Ending:
    """No file may grow beyond some bytes."""
    return _ended(run.start(str(run.target), limit=int(rng.integers(0, 20_000))))


INJURIES: dict[str, Injury] = {
    "none": undisturbed,
    "none, to a pipe": to_a_pipe,
    "kill -9": killed,
    "kill -9, then again": killed_and_run_again,
    "SIGTERM": terminated,
    "Ctrl-C": interrupted,
    "closed pipe": closed_pipe,
    "full disk": full_disk,
}


def verdict(injury: str, run: Run, ending: Ending) -> str:
    """One word for a good outcome; "BAD: ..." for any other."""
    words = ending.errors.strip().splitlines()
    told = [line for line in words if line.startswith("headway: ") and "error" in line]
    drafts = [path.name for path in run.target.parent.iterdir() if path.name.startswith(".headway-")]
    content = run.target.read_bytes()
    if "Traceback" in ending.errors:
        return f"BAD: a traceback, {words[-1]:.100}"
    if content != OLD and not _is_complete(content):
        return "BAD: the output is neither the old nor a complete one"
    if injury == "kill -9":
        return "killed" if ending.status == -signal.SIGKILL else _done(ending, content)
    if drafts:
        return f"BAD: a draft is left, {drafts[0]}"
    if ending.status == 0:
        return _done(ending, content)
    if injury in ("SIGTERM", "Ctrl-C"):
        if ending.seconds > LEAVES_WITHIN:
            return f"BAD: left after more than {LEAVES_WITHIN:g} s"
        expected = {"SIGTERM": (143, -signal.SIGTERM), "Ctrl-C": (130, -signal.SIGINT)}[injury]
        return "left" if ending.status in expected else f"BAD: exit {ending.status}"
    if injury == "closed pipe":
        return "ended quietly" if ending.status == 1 and not told else f"BAD: exit {ending.status}, {words[-1:]}"
    if ending.status == 1 and len(told) == 1 and content == OLD:
        return "refused" if injury == "full disk" else f"BAD: {told[0]:.100}"
    return f"BAD: exit {ending.status}, {words[-1:]}"


def _done(ending: Ending, content: bytes) -> str:
    if ending.status != 0:
        return f"BAD: exit {ending.status}"
    return "complete" if _is_complete(ending.written or content) else "BAD: exit 0 with incomplete output"


def _is_complete(content: bytes) -> bool:
    """Whether every tree reads back, and the last one ends."""
    try:
        for _ in read_treebank(io.BytesIO(content)):
            pass
    except HeadwayError:
        return False
    return content == b"" or content.endswith(b"\n\n")


def _signalled(run: Run, rng: np.random.Generator, number: signal.Signals) -> Ending:
    process = run.start(str(run.target))
    try:
        process.wait(float(rng.uniform(*MOMENTS)))
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    return _ended(process)


def _ended(process: subprocess.Popen[bytes]) -> Ending:
    """Wait for the end; a run that does not come to one is killed, and says so."""
    start = time.monotonic()
    try:
        if process.stdout is not None and process.stdout.closed:
            process.stdout = None
        written, errors = process.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        process.kill()
        written, errors = process.communicate()
        errors += b"\nTraceback: no end was in sight"
    seconds = time.monotonic() - start
    return Ending(process.returncode, errors.decode("utf-8", "replace"), seconds, written or b"")
