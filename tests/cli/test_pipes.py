"""A slow pipe: what has come is parsed before more comes, in the same order and with the same output."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from headway.cli.pipes import Pipe, pipe_of

from . import toy_coref
from .conftest import Invoke, Spawn


def sentences_of(stream: Any, count: int) -> bytes:
    """So many sentences, waited for one line at a time."""
    read = b""
    while read.count(b"\n\n") < count:
        line = stream.readline()
        assert line, read
        read += line
    return read


def test_each_sentence_of_a_slow_pipe_is_answered(
    spawn: Spawn, invoke: Invoke, model: Path, test_file: Path, tmp_path: Path
) -> None:
    """The next one is sent only after the answer, so that waiting for more would last for ever."""
    blocks = test_file.read_bytes().strip().split(b"\n\n")[:4]
    (tmp_path / "few.conllu").write_bytes(b"\n\n".join(blocks) + b"\n\n")
    expected = invoke("parse", model, tmp_path / "few.conllu").stdout_bytes
    process = spawn("parse", model, "-", stdin=subprocess.PIPE)
    watchdog = threading.Timer(100, process.kill)
    watchdog.start()
    answers = b""
    for number, block in enumerate(blocks, start=1):
        process.stdin.write(block + b"\n\n")
        if number < len(blocks):  # the beginning of the next sentence does not hold up what is complete
            process.stdin.write(b"# sent_id = half\n" if number == 2 else b"")
        process.stdin.flush()
        answers += sentences_of(process.stdout, 1)
    out, err = process.communicate()
    watchdog.cancel()
    assert (process.returncode, err, out) == (0, b"", b"")
    assert answers.replace(b"# sent_id = half\n", b"") == expected


def test_a_fast_pipe_gives_what_the_file_gives(spawn: Spawn, invoke: Invoke, model: Path, test_file: Path) -> None:
    many = test_file.read_bytes() * 30
    process = spawn("parse", model, "-", stdin=subprocess.PIPE)
    out, err = process.communicate(many)
    assert (process.returncode, err) == (0, b"")
    assert out == invoke("parse", model, test_file).stdout_bytes * 30


def test_an_error_comes_after_the_sentences_before_it(spawn: Spawn, model: Path, test_file: Path) -> None:
    block = test_file.read_bytes().split(b"\n\n")[0]
    process = spawn("parse", model, "-", stdin=subprocess.PIPE)
    out, err = process.communicate(block + b"\n\n1\tbad\n\n")
    assert process.returncode == 1
    assert out.count(b"\n\n") == 1
    assert err.startswith(b"headway: error: standard input, line ")


def test_a_reader_that_goes_away_ends_it_though_the_pipe_stays_open(spawn: Spawn, model: Path, test_file: Path) -> None:
    process = spawn("parse", model, "-", stdin=subprocess.PIPE)
    process.stdout.close()
    process.stdin.write(test_file.read_bytes())
    process.stdin.flush()
    assert process.wait(timeout=100) == 1
    process.stdin.close()
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_waiting(spawn: Spawn, model: Path, test_file: Path, number: signal.Signals) -> None:
    heeded = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    process = spawn("parse", model, "-", stdin=subprocess.PIPE, **heeded)
    process.stdin.write(test_file.read_bytes().split(b"\n\n")[0] + b"\n\n")
    process.stdin.flush()
    sentences_of(process.stdout, 1)
    process.send_signal(number)
    assert process.wait(timeout=20) == 128 + number
    process.communicate()


def test_documents_are_resolved_as_they_come(spawn: Spawn, invoke: Invoke, tmp_path: Path) -> None:
    documents = toy_coref.write(tmp_path / "train.conllu", 3, 1)
    invoke("coref", "train", documents, "--epochs", 1, "-o", tmp_path / "model.coref")
    first, *more = documents.read_bytes().split(b"# newdoc")[1:]
    process = spawn("coref", "resolve", tmp_path / "model.coref", "-", stdin=subprocess.PIPE)
    process.stdin.write(b"# newdoc" + first + b"# newdoc" + more[0])
    process.stdin.flush()
    sentences_of(process.stdout, first.count(b"\n\n"))
    out, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert out.count(b"\n\n") == more[0].count(b"\n\n")


# By itself


def test_portions_end_at_pauses_and_lose_nothing() -> None:
    """What is asked for next is written after what came before was given; the end is never written."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as stream:
        pipe = Pipe(stream, "a pipe")
        portions = pipe.as_they_come(line.split() for line in io.BufferedReader(pipe))
        os.write(writer, b"a b\nc\nhalf of ")
        given = next(portions)
        if len(given) == 1:
            given += next(portions)
        assert given == [[b"a", b"b"], [b"c"]]
        os.write(writer, b"a line\n")
        assert next(portions) == [[b"half", b"of", b"a", b"line"]]
        portions.close()
    os.close(writer)
    assert not any(thread.name.endswith("(_read)") for thread in threading.enumerate())


def test_a_file_is_no_pipe(test_file: Path, tmp_path: Path) -> None:
    with pipe_of(str(test_file)) as found:
        assert found is None
    with pipe_of(str(tmp_path / "absent")) as found:
        assert found is None


def test_a_named_pipe(spawn: Spawn, invoke: Invoke, model: Path, test_file: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "input.conllu")
    process = spawn("parse", model, tmp_path / "input.conllu")
    with (tmp_path / "input.conllu").open("wb") as writing:
        writing.write(test_file.read_bytes().split(b"\n\n")[0] + b"\n\n")
        writing.flush()
        sentences_of(process.stdout, 1)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")
