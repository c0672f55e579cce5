"""A neural parser trained without a GPU: how long it takes, and what that costs in accuracy.

    python benchmarks/neural_train.py ../shared/data/conllx/danish --commit $(git rev-parse --short HEAD)

Danish, the LSTM of `headway reproduce neural`, gold tags, several words on the root; on all cores of an otherwise idle
machine, with small batches and few passes, as one would train it there. The test sentences are parsed once, and
compared with the cells that a GPU has computed (`experiments/neural`).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from headway import Parser, __version__, evaluate, read_treebank
from headway.training.data import checksum

ROOT = Path(__file__).resolve().parents[1]
CELLS = [ROOT / "experiments" / "neural" / "results" / f"danish-lstm-loglinear-{seed}.json" for seed in (1, 2, 3)]
SETTINGS: dict[str, Any] = {
    **{"model": "neural", "tags": "gold", "single_root": False},
    **{"epochs": 20, "batch": 1000, "seed": 1},
}
MINUTES, POINTS = 45.0, 0.5


def main() -> int:
    """The exit status says whether both bars are met."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", type=Path, help="a folder with train.conll.gz and test.conll.gz")
    options.add_argument("--commit", default="unknown", help="what to call the code that is measured")
    options.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "neural_train.json")
    chosen = options.parse_args()
    train, test = (list(read_treebank(chosen.data / f"{part}.conll.gz", format="conllx")) for part in ("train", "test"))
    start = time.perf_counter()
    parser = Parser.train(train, device="cpu", show=lambda progress: print(progress, flush=True), **SETTINGS)
    seconds = time.perf_counter() - start
    scores = evaluate(test, [found.sentence for found in parser.parse(test)])
    on_gpu = mean(json.loads(path.read_text("utf-8"))["test"]["uas_no_punct"] for path in CELLS)
    found = {
        "headway": __version__,
        "commit": chosen.commit,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cores": os.cpu_count(),
        "settings": SETTINGS,
        "data": {"train": checksum(train), "test": checksum(test)},
        "seconds": seconds,
        "test": {"uas_no_punct": scores.uas_no_punct, "las_no_punct": scores.las_no_punct},
        "uas_of_the_gpu": on_gpu,
    }
    chosen.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    bars = (
        (seconds <= 60 * MINUTES, f"{seconds / 60:.1f} minutes, bar {MINUTES:.0f}"),
        (scores.uas_no_punct >= on_gpu - POINTS, f"UAS {scores.uas_no_punct:.2f}, the GPU's {on_gpu:.2f}"),
    )
    for met, what in bars:
        print(f"{'PASS' if met else 'FAIL'} {what}")
    return 0 if all(met for met, _ in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
