"""Trainings that are killed and started again, and trainings that are simply run twice: the same file, byte for byte.

`experiments/kill_and_resume.py` does so with every learner and model, as often as one likes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def experiment() -> Any:
    spec = importlib.util.spec_from_file_location("kill_and_resume", ROOT / "experiments" / "kill_and_resume.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["arc, log-linear, L-BFGS", "arc, rules, squared", "grand-sibling, margin"])
def test_kill_and_resume(experiment: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.learning.monitor.CHECKPOINT_SECONDS", -1.0)
    training, output = experiment.TRAININGS[name], tmp_path / "model"
    training(output)
    expected = hashlib.sha256(output.read_bytes()).hexdigest()
    output.unlink()
    started = time.monotonic()
    assert experiment.run(training, output)
    seconds = time.monotonic() - started
    assert hashlib.sha256(output.read_bytes()).hexdigest() == expected
    found = experiment.attack(training, tmp_path / "killed", expected, seconds, 4, random.Random(1))
    assert (found.kills, found.identical, found.left) == (4, 4, 0)


def test_the_file_does_not_depend_on_threads_of_blas_or_seeds_of_hashes(experiment: Any, tmp_path: Path) -> None:
    experiment.TRAININGS["arc, log-linear, L-BFGS"](tmp_path / "first")  # compiles what it needs
    code = "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import kill_and_resume as k; "
    code += "k.TRAININGS['arc, log-linear, L-BFGS'](Path(sys.argv[2]))"
    files = []
    for number in ("1", "4"):
        path = tmp_path / number / "model"
        path.parent.mkdir()
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": number, "PYTHONHASHSEED": number, "TZ": f"UTC+{number}"}
        subprocess.run([sys.executable, "-c", code, str(ROOT / "experiments"), str(path)], env=environment, check=True)
        files.append(path.read_bytes())
    assert files[0] == files[1]
