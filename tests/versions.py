"""`make test-lowest`: the tests on the lowest and the newest versions of all dependencies, on every Python at hand.

The lowest versions are those that pyproject.toml promises; what these need in turn is as new as it gets, as for
somebody who pins nothing. A Python that is not installed is skipped, and said so. Arguments go to pytest, in place of
`tests`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
RESOLUTIONS = ("lowest-direct", "highest")
EXTRAS = "exact-programs,figures,pandas,spacy"
TOOLS = ("pytest", "hypothesis")  # of the tests themselves: always the newest
# The documentation's tools are nobody's dependency; its tests need them.
TESTS = ("tests", "--ignore=tests/test_docs.py")


def main() -> int:
    results = {}
    for version in PYTHONS:
        python = shutil.which(f"python{version}")
        if python is None:
            print(f"Python {version} is not installed: skipped", flush=True)
            continue
        for resolution in RESOLUTIONS:
            results[f"Python {version}, {resolution}"] = _test(python, version, resolution, sys.argv[1:] or TESTS)
    for name, status in results.items():
        print(f"{name}: {'passed' if status == 0 else f'failed, exit {status}'}")
    return int(any(results.values()) or not results)


def _test(python: str, version: str, resolution: str, tests: list[str] | tuple[str, ...]) -> int:
    """The tests' exit status in an environment of its own, which is made anew."""
    folder = REPOSITORY / ".cache" / "versions" / f"{version}-{resolution}"
    own = str(folder / "bin" / "python")
    _uv("venv", "--quiet", "--clear", "--python", python, str(folder))
    _uv(
        "pip",
        "install",
        "--quiet",
        "--python",
        own,
        "--resolution",
        resolution,
        "--editable",
        f"{REPOSITORY}[{EXTRAS}]",
    )
    _uv("pip", "install", "--quiet", "--python", own, *TOOLS)
    _uv("pip", "list", "--python", own)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "numba")}
    command = [own, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=REPOSITORY, env=environment).returncode


def _uv(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "uv", *words], check=True)


if __name__ == "__main__":
    sys.exit(main())
