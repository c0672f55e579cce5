"""The first answer after an installation: raw text in, CoNLL-U out, with empty caches; then that of later processes.

    commit=$(git rev-parse --short HEAD)
    python benchmarks/first_answer.py --commit $commit                              # the model `en`; otherwise idle
    python benchmarks/first_answer.py --commit $commit --model m.headway --extras neural

The wheel is built and installed by pip into a new environment, and every command runs without a home: no kernel has
been compiled, and pip leaves bytecode as it does for everyone; `no bytecode` is without that, too. A model that cannot
split text borrows the splitter of the model `en`. `warm-up` is the time of `headway warm-up` with empty caches, `after
warm-up` that of a command with probabilities then. Compiled kernels and the memory of the largest process are counted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FIRST_BAR, LATER_BAR = 15.0, 2.0  # seconds
TURNS = 5
TEXT = "Time flies like an arrow. Mary asked Bob a question, and he didn't know.\n"

BORROW = """
import sys
from dataclasses import replace
from headway import Parser
parser, english = Parser.load(sys.argv[1]), Parser.load("en")
replace(parser, segmenter=parser.segmenter or english.segmenter).save(sys.argv[2])
"""
VERSIONS = """
import json
from importlib.metadata import distributions
names = ("headway", "numba", "llvmlite", "numpy", "onnxruntime", "tokenizers")
print(json.dumps({each.name: each.version for each in distributions() if each.name in names}))
"""


class Installed:
    """Headway in an environment of its own."""

    def __init__(self, folder: Path, extras: str) -> None:
        self.folder, self.python = folder, folder / "venv" / "bin" / "python"
        repository = Path(__file__).resolve().parent.parent
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        pip = [str(self.python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "wheel", "--no-deps", "-w", str(folder), str(repository)], check=True)
        (self.wheel,) = folder.glob("headway-*.whl")
        subprocess.run([*pip, "install", f"{self.wheel}{extras}"], check=True)
        self.packages = next((folder / "venv" / "lib").glob("python*/site-packages"))

    def environment(self, caches: Path) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**kept, "NUMBA_CACHE_DIR": str(caches)}

    def run(self, caches: Path, *words: str) -> dict[str, float]:
        """Seconds, seconds of CPU and memory of one command, with the processes that it starts."""
        watched = [str(self.python), "-c", WATCH, str(self.python), "-m", "headway", *words]
        done = subprocess.run(
            watched, input=TEXT.encode(), env=self.environment(caches), capture_output=True, check=True, cwd=self.folder
        )
        found: dict[str, float] = json.loads(done.stderr.splitlines()[-1])
        return found

    def without_bytecode(self) -> None:
        for folder in list(self.packages.rglob("__pycache__")):
            shutil.rmtree(folder)


WATCH = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True)
took, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
cpu, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
print(json.dumps({"seconds": took, "cpu_seconds": cpu, "megabytes": megabytes}), file=sys.stderr)
"""


def measured(installed: Installed, model: str) -> dict[str, Any]:
    """Each case from empty caches; the later processes in turns."""

    def empty() -> Path:
        return Path(tempfile.mkdtemp(dir=installed.folder, prefix="kernels-"))

    plain, probable = ["parse", model, "-"], ["parse", model, "-", "--marginals"]
    caches, with_probabilities, warm = empty(), empty(), empty()
    found: dict[str, Any] = {"first answer": installed.run(caches, *plain)}
    found["kernels"] = kernels(caches)
    found["later"] = [installed.run(caches, *plain) for _ in range(TURNS)]
    found["first answer, probabilities"] = installed.run(with_probabilities, *probable)
    found["kernels, probabilities"] = kernels(with_probabilities)
    found["warm-up"] = installed.run(warm, "warm-up", model)
    found["after warm-up, probabilities"] = [installed.run(warm, *probable) for _ in range(TURNS)]
    installed.without_bytecode()
    found["first answer, no bytecode"] = installed.run(empty(), *plain)
    return found


def kernels(caches: Path) -> dict[str, float]:
    files = list(caches.rglob("*.nbc"))
    return {"files": len(files), "kilobytes": sum(file.stat().st_size for file in files) / 1e3}


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())


def verdict(met: bool, what: str) -> bool:
    print(f"{'PASS' if met else 'FAIL'} {what}")
    return met


def main() -> int:
    """Measure; the exit status says whether the bars are met."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--model", default="en", help="a name or a file")
    options.add_argument("--extras", default="", help="extras of Headway that the model needs")
    options.add_argument("--commit", default="unknown", help="what to call the code that is measured")
    options.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "first_answer.json")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.perf_counter()
        installed = Installed(folder, f"[{chosen.extras}]" if chosen.extras else "")
        installing = time.perf_counter() - began
        model = chosen.model
        if Path(model).exists():
            model = str(folder / "model.headway")
            borrow = [str(installed.python), "-c", BORROW, str(Path(chosen.model).resolve()), model]
            subprocess.run(borrow, check=True, env=installed.environment(folder / "borrowed"))
        versions = json.loads(subprocess.check_output([str(installed.python), "-c", VERSIONS]))
        found = {
            "commit": chosen.commit,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            **versions,
            "processor": processor(),
            "cores": os.cpu_count(),
            "load_before": os.getloadavg()[0],
            "model": chosen.model,
            "wheel_megabytes": installed.wheel.stat().st_size / 1e6,
            "installing_seconds": installing,
            **measured(installed, model),
        }
    chosen.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))
    first = found["first answer"]["seconds"]
    later = sorted(turn["seconds"] for turn in found["later"])[TURNS // 2]
    met = [
        verdict(first < FIRST_BAR, f"first answer after {first:.1f} s, bar {FIRST_BAR:g}"),
        verdict(later < LATER_BAR, f"later processes answer after {later:.2f} s, bar {LATER_BAR:g}"),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
