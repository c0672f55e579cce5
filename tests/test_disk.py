"""What the system refuses: full disks, closed pipes, two trainings at once. One sentence each, and old files stay."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from headway.pipeline import Parser

TINY = Path(__file__).resolve().parent.parent / "examples" / "tiny.conllu"
QUICK = ("--epochs", "1", "--labels", "none", "--tags", "gold")
COMMAND = (sys.executable, "-m", "headway")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model"
    Parser.train(TINY, epochs=1, labels="none", tags="gold").save(path)
    return path


def limited(size: int) -> Any:
    """No file may become larger: as on a full disk, but for one process alone."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that it is an error, and not the end
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def run(*words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "HEADWAY_QUIET": "1"},
        check=False,
        **options,
    )


def test_training_onto_a_full_disk_keeps_the_old_model(model: Path, tmp_path: Path) -> None:
    """Checkpoints that cannot be written are a warning, the model that cannot is an error."""
    output = tmp_path / "m"
    output.write_bytes(b"an older model")
    done = run("train", TINY, *QUICK, "-o", output, preexec_fn=limited(4096))
    assert done.returncode == 1
    *warnings, error = done.stderr.strip().splitlines()
    assert len(warnings) == 1
    assert warnings[0].startswith(f"headway: warning: {output}.checkpoint: no checkpoint can be written there (")
    assert error.startswith(f"headway: error: {output}: cannot be written (File too large)")
    assert output.read_bytes() == b"an older model"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["m"]


def test_parsing_onto_a_full_disk_keeps_the_old_file(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.conllu"
    output.write_bytes(b"older trees")
    done = run("parse", model, TINY, "-o", output, preexec_fn=limited(4096))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "File too large" in done.stderr
    assert output.read_bytes() == b"older trees"
    assert [path.name for path in tmp_path.iterdir()] == ["out.conllu"]


def test_a_closed_pipe_is_no_error(model: Path) -> None:
    command, environment = [*COMMAND, "parse", str(model), str(TINY)], {**os.environ, "HEADWAY_QUIET": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as parsing:
        assert parsing.stdout is not None
        assert parsing.stderr is not None
        parsing.stdout.close()
        assert parsing.stderr.read() == b""
        assert parsing.wait() == 1


def test_a_second_training_to_the_same_output_is_refused(tmp_path: Path) -> None:
    words = [*COMMAND, "train", str(TINY), "--epochs", "1000000", "-o", "m"]
    environment = {**os.environ, "HEADWAY_QUIET": "1"}
    first = subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    try:
        while not list(tmp_path.glob(".headway-*.lock")):
            assert first.poll() is None
            time.sleep(0.05)
        second = run("train", TINY, *QUICK, "-o", "m", cwd=tmp_path)
    finally:
        first.kill()
        first.communicate()
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr == (
        "headway: error: m.checkpoint: in use by another training; wait for it, or give another -o or --checkpoint\n"
    )
    third = run("train", TINY, "--epochs", "1", "-o", "m", "--checkpoint", "other", cwd=tmp_path)
    assert third.returncode == 0, third.stderr
    assert Parser.load(tmp_path / "m").model is not None
