"""README's commands work as they are typed there, one after the other, in a clone after `make demo`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
README = (REPOSITORY / "README.md").read_text("utf-8")


def commands(section: str) -> list[str]:
    """The lines of the first block of a section."""
    block = re.search(rf"^## {section}\n.*?^```\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1].splitlines()


def test_every_command_works_as_typed(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    venv.create(tmp_path / ".venv")  # as `make demo` leaves it, but with the headway under test
    headway = tmp_path / ".venv" / "bin" / "headway"
    headway.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m headway "$@"\n', "utf-8")
    headway.chmod(0o755)
    typed = [line for line in commands("Install") if line.startswith("source ")] + commands("On the command line")
    assert len([line for line in typed if "headway " in line]) > 10
    # Nothing but the system's own commands on the PATH: README has to say where headway is.
    source = str(REPOSITORY / "src")
    environment = {**os.environ, "PATH": "/usr/bin:/bin", "HEADWAY_QUIET": "1", "PYTHONPATH": source}
    script = "\n".join(["set -e -o pipefail", *typed])
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr
    assert "root" in done.stdout
    assert "Entity=(" in done.stdout
    for name in (
        "tree.svg",
        "parsed.conllu",
        *(f"{model}.headway" for model in ("model", "tuned", "rules", "grammar")),
    ):
        assert (tmp_path / name).stat().st_size > 100


def test_it_is_short() -> None:
    assert len(README.splitlines()) < 120
    assert max(map(len, README.splitlines())) <= 132
