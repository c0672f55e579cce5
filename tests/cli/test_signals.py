"""Ctrl-C and SIGTERM: commands leave at once, also out of a kernel, and leave nothing half written."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from .conftest import Invoke

# Far more than a second, far less than what the kernels would take: a loaded machine is no failure.
LIMIT = 20

both_signals = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])

# A command whose second portion of sentences takes a kernel minutes; says so on standard error.
STUCK = """
import sys
import numba
from headway.models.arc_model import ArcModel
from headway.cli import main

ArcModel.sentences_at_once = 2
predict, calls = ArcModel.predict, []

@numba.njit(nogil=True)
def spin(n):
    x = 1
    for i in range(n):
        x = x * 1103515245 + 12345 ^ (x >> 7)
    return x

spin(1)

def stuck(self, given, options, executor):
    calls.append(0)
    if len(calls) == 2:
        print("stuck", file=sys.stderr, flush=True)
        executor.map(spin, [10**12] * executor.workers)
    return predict(self, given, options, executor)

ArcModel.predict = stuck
sys.argv = ["headway", *sys.argv[1:]]
main()
"""


# A kernel that returns named tuples, most of whose time goes into making them.
RETURNING = """
import sys
from typing import NamedTuple
import numba
from headway.cli.signals import command_running, end_with_status, heed_signals

class Two(NamedTuple):
    a: int
    b: int

class Four(NamedTuple):
    first: Two
    second: Two

@numba.njit(nogil=True)
def four(n):
    return Four(Two(n, n), Two(n, n))

heed_signals()
four(1)
print("ready", flush=True)
try:
    with command_running():
        while True:
            four(1)
finally:
    end_with_status()
"""


def start(command: Sequence[object]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "HEADWAY_QUIET": "1"},
        # tests that run in the background of a shell inherit an ignored SIGINT
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def leave(process: subprocess.Popen[bytes], number: signal.Signals) -> tuple[bytes, bytes]:
    """What it wrote, once the signal has ended it."""
    process.send_signal(number)
    try:
        return process.communicate(timeout=LIMIT)
    finally:
        process.kill()
        process.communicate()


@both_signals
@pytest.mark.parametrize("threads", [1, 2])
def test_out_of_a_kernel(invoke: Invoke, model: Path, test_file: Path, number: signal.Signals, threads: int) -> None:
    """What was parsed before is written, whole sentences of it; a file is removed."""
    whole = invoke("parse", model, test_file).stdout_bytes
    process = start(["-c", STUCK, "parse", model, test_file, "--threads", threads])
    assert process.stderr is not None
    assert process.stderr.readline() == b"stuck\n"
    out, err = leave(process, number)
    assert process.returncode == 128 + number
    assert err == (b"\nheadway: interrupted\n" if number == signal.SIGINT else b"")
    assert out.count(b"\n\n") == 2
    assert out.endswith(b"\n\n")
    assert whole.startswith(out)


@both_signals
def test_out_of_a_kernel_without_a_draft(model: Path, test_file: Path, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "out.conllu").write_text("what was there before")
    process = start(["-c", STUCK, "parse", model, test_file, "-o", tmp_path / "out.conllu"])
    assert process.stderr is not None
    assert process.stderr.readline() == b"stuck\n"
    assert len(list(tmp_path.iterdir())) == 2
    leave(process, number)
    assert process.returncode == 128 + number
    assert [path.name for path in tmp_path.iterdir()] == ["out.conllu"]
    assert (tmp_path / "out.conllu").read_text() == "what was there before"


@both_signals
def test_at_any_moment_of_long_sentences(tmp_path: Path, number: signal.Signals) -> None:
    """While modules are loaded, kernels compiled, thousands of commas parsed."""
    (tmp_path / "commas.txt").write_text("Dogs bark .\n" + (", " * 1000 + "\n") * 200)
    moments = random.Random(int(number))
    for _ in range(2):
        command = ["parse", "en", tmp_path / "commas.txt", "--input-format", "tokens", "-o", tmp_path / "out.conllu"]
        process = start(["-m", "headway", *command])
        time.sleep(moments.uniform(0.4, 4))
        assert process.poll() is None
        _, err = leave(process, number)
        assert process.returncode == 128 + number
        assert b"Traceback" not in err
        assert [path.name for path in tmp_path.iterdir()] == ["commas.txt"]


@both_signals
def test_at_any_moment_of_a_training(train_file: Path, tmp_path: Path, number: signal.Signals) -> None:
    """Its checkpoint has whole files only, and the same command goes on from it."""
    moments = random.Random(int(number))
    for _ in range(2):
        command = ["train", train_file, "--model", "sibling", "--epochs", 100_000, "-o", tmp_path / "model"]
        process = start(["-m", "headway", *command])
        time.sleep(moments.uniform(0.4, 6))
        assert process.poll() is None
        _, err = leave(process, number)
        assert process.returncode == 128 + number
        assert b"Traceback" not in err
        assert not list(tmp_path.rglob("*.tmp"))
        assert not (tmp_path / "model").exists()


@both_signals
def test_while_a_kernel_returns(number: signal.Signals) -> None:
    """Numba does not look whether making its result failed."""
    for _ in range(2):
        process = start(["-c", RETURNING])
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        leave(process, number)
        assert process.returncode == 128 + number


def test_an_ignored_ctrl_c_stays_ignored(model: Path, test_file: Path) -> None:
    """As for commands in the background of a shell."""
    process = subprocess.Popen(
        [sys.executable, "-m", "headway", "parse", str(model), str(test_file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "HEADWAY_QUIET": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, b"")
    assert out.endswith(b"\n\n")
