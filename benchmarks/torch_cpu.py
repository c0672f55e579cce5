"""`headway.torch` on CPU tensors beside torch-struct, in float32, one thread, in one process; and log Z read first.

    python benchmarks/torch_cpu.py            # writes results/torch_cpu.* (README.md: with which libraries)
    python benchmarks/torch_cpu.py --quick    # prints only

log Z and marginals of a batch of non-projective sentences, through the public classes. Scores are random normal
numbers, rounded to float32. The answers must agree: torch-struct's with what its matrix really holds (`peers`), ours
with headway's in float64, to 1e-5. Beside them: our float64, and what it costs to read log Z first.

The latter for all classes of trees, in `headway.inference` and both dtypes of `headway.torch`, in a batch and singly.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import harness  # first: it pins the threads  # isort: skip
import numpy as np
import peers
from harness import BATCH, SINGLE_CALL, Bar, Case, Contender, Floats, Report
from rich.console import Console

from headway.inference import TreeDistribution as InNumpy
from headway.torch import TreeDistribution

SEED = 2019
SIZES = (10, 20, 50, 100)
SENTENCES = 64
LEAST_RATIO, RATIO_SIZES = 1.5, (20, 50)
LARGEST_RATIO = 1.1  # of log Z and then marginals to marginals alone
TOLERANCE = 1e-5
FULL = harness.Pace(rounds=51, budget=20.0, shortest=0.01)
QUICK = harness.Pace(rounds=5, budget=2.0, shortest=0.002)
RESULTS = Path(__file__).parent / "results"
WIDTH = 140  # of the printed tables where there is no terminal

OURS, OURS_64, LOG_Z_FIRST, LOG_Z, STRUCT = (
    "headway.torch float32",
    "headway.torch float64",
    "float32, log Z read first",
    "float32, log Z alone",
    "torch-struct float32",
)


def distribution(dtype: str, *names: str, projective: bool = False) -> peers.Build:
    """Reads these properties, in this order, of a new distribution."""

    def build(scores: Floats, single_root: bool) -> Callable[[], Any]:
        tensor = peers.to_tensor(scores, dtype)

        def run() -> dict[str, Any]:
            trees = TreeDistribution(tensor, projective=projective, single_root=single_root, validate_args=False)
            return {name: getattr(trees, name) for name in names}

        return run

    return build


def in_numpy(*names: str, projective: bool) -> peers.Build:
    """The same of `headway.inference`."""

    def build(scores: Floats, single_root: bool) -> Callable[[], Any]:
        def run() -> dict[str, Any]:
            trees = InNumpy(scores, projective=projective, single_root=single_root, threads=1)
            return {name: getattr(trees, name) for name in names}

        return run

    return build


def answer(result: Any, scores: Floats, single_root: bool) -> harness.Answer:
    """With a batch axis, which one sentence has not."""
    single = scores.ndim == 2
    arrays = {name: np.asarray(value, np.float64) for name, value in result.items()}
    names = {"log_partition": "log Z", "marginals": "marginals"}
    return {names[name]: array[None] if single else array for name, array in arrays.items()}


def reference(scores: Floats, single_root: bool, projective: bool = False) -> harness.Answer:
    """headway in float64."""
    log_z, marginals = peers.headway_both(scores, single_root, projective)
    return {"log Z": log_z, "marginals": marginals}


def contender(name: str, dtype: str, *names: str) -> Contender:
    return Contender(name, distribution(dtype, *names), answer, TOLERANCE, reference=reference)


WAYS = {
    "marginals alone": ("marginals",),
    "log Z, then marginals": ("log_partition", "marginals"),
    "log Z alone": ("log_partition",),
}


def order_cases() -> list[Case]:
    """What reading log Z first costs: for projective trees and others, in each library and dtype."""
    cases = []
    for projective in (False, True):
        kind = "projective" if projective else "non-projective"
        expected = partial(reference, projective=projective)
        builds: dict[str, Callable[..., peers.Build]] = {
            "headway.inference float64": in_numpy,
            "headway.torch float64": partial(distribution, "float64"),
            "headway.torch float32": partial(distribution, "float32"),
        }
        for library, build in builds.items():
            contenders = tuple(
                Contender(way, build(*names, projective=projective), answer, TOLERANCE, reference=expected)
                for way, names in WAYS.items()
            )
            title = f"{library}, {kind}"
            cases.append(Case(title, title, SENTENCES, RATIO_SIZES, contenders))
    return cases


CASE = Case(
    "both",
    "log Z and marginals, non-projective",
    SENTENCES,
    SIZES,
    (
        contender(OURS, "float32", "marginals", "log_partition"),
        contender(LOG_Z_FIRST, "float32", "log_partition", "marginals"),
        contender(LOG_Z, "float32", "log_partition"),
        contender(OURS_64, "float64", "marginals", "log_partition"),
        Contender(
            STRUCT,
            peers.torch_struct_marginals(),
            peers.torch_struct_answer,
            1e-3,
            missing=peers.TORCH_STRUCT.missing,
            reference=peers.torch_struct_reference,
        ),
    ),
)


def random_scores(n: int) -> Floats:
    scores = np.random.default_rng([SEED, n]).normal(size=(SENTENCES, n + 1, n + 1))
    return scores.astype(np.float32).astype(np.float64)


def run(quick: bool) -> Report:
    report = Report()
    for single_root in (True, False):
        for n in RATIO_SIZES if quick else SIZES:
            report.timings += harness.time_case(CASE, BATCH, single_root, random_scores(n), QUICK if quick else FULL)
        report.tables.append(harness.case_table(CASE, BATCH, single_root, report))
    key = CASE.key(BATCH, True)
    for n in RATIO_SIZES:
        ratio = report.ratio(key, STRUCT, n, OURS)
        if ratio is not None:
            what = f"log Z and marginals, single-root, batch of {SENTENCES}, n = {n}"
            report.bars.append(Bar(what, f">= {LEAST_RATIO}x torch-struct", f"{ratio:.2f}x", ratio >= LEAST_RATIO))
    time_orders(report, quick)
    report.tables.append(harness.bar_table(report.bars))
    return report


def time_orders(report: Report, quick: bool) -> None:
    """Read log Z first, or not."""
    alone, both, _ = WAYS
    for case in order_cases():
        for mode, single_root in product((BATCH, SINGLE_CALL), (True, False)):
            for n in case.sizes:
                pace = QUICK if quick else FULL
                report.timings += harness.time_case(case, mode, single_root, random_scores(n), pace)
            report.tables.append(harness.case_table(case, mode, single_root, report))
        for single_root, n in product((True, False), case.sizes):
            ratio = report.ratio(case.key(BATCH, single_root), both, n, alone)
            assert ratio is not None
            what = f"{case.title}, {harness.root_class(single_root)}, batch of {SENTENCES}, n = {n}: {both}"
            report.bars.append(
                Bar(what, f"<= {LARGEST_RATIO}x {alone}", f"{ratio:.2f}x", round(ratio, 2) <= LARGEST_RATIO)
            )


def commit() -> str:
    described = ("git", "describe", "--always", "--dirty")
    return subprocess.run(described, capture_output=True, text=True, check=True, cwd=RESULTS).stdout.strip()


def main() -> int:
    """Exit status 1 when a bar is missed; a disagreement raises."""
    parser = argparse.ArgumentParser(description="Time headway.torch on the CPU beside torch-struct.")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds; nothing is written")
    options = parser.parse_args()
    packages: dict[str, str | None] = {"headway": None, "numpy": None, "numba": None}
    packages |= {name: peers.PACKAGES[name].missing for name in ("torch", "torch-struct")}
    signed = harness.signature(
        packages, commit=commit(), seed=SEED, options={"quick": options.quick, "sentences": SENTENCES}
    )
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print_json(data=signed)
    report = run(options.quick)
    for table in report.tables:
        harness.print_table(table, console)
    if not options.quick:
        harness.write(report, signed, RESULTS, "torch_cpu")
        console.print(f"written: {RESULTS / 'torch_cpu.json'} and {RESULTS / 'torch_cpu.md'}")
    return 0 if all(bar.passed for bar in report.bars) else 1


if __name__ == "__main__":
    sys.exit(main())
