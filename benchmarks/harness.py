"""What a benchmark is made of: contenders that take turns, answers that must agree, tables, bars.

Importing this module first pins every numerical library to one thread.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import gc
import importlib
import importlib.metadata
import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as RichTable

from headway_papers.markdown import markdown_table

Floats = NDArray[np.float64]
Answer = Mapping[str, Floats]

BATCH, SINGLE_CALL = "batch", "single call"


class DisagreementError(AssertionError):
    """A peer, or an exact reference, gives another answer than headway."""


# ---------------------------------------------------------------------------------- contenders


@dataclass(frozen=True)
class Contender:
    """One way to compute a quantity.

    `build(scores, single_root)` prepares the input and returns what is timed; `scores` are one
    matrix in a loop over the sentences, and a batch where `batched` and the mode allow it.
    `answer(result, scores, single_root)` turns what it returned into named arrays with a leading
    batch axis. Arrays of the same name are compared with headway's, or with those of `reference`.
    """

    name: str
    build: Callable[[Floats, bool], Callable[[], Any]]
    answer: Callable[[Any, Floats, bool], Answer]
    tolerance: float
    missing: str | None = None
    batched: bool = True
    batch_sizes: Sequence[int] | None = None  # None: every size of the case
    single_sizes: Sequence[int] | None = None
    classes: tuple[bool, ...] = (True, False)
    checked: int | None = None  # how many sentences are compared, where checking is slow
    reference: Callable[[Floats, bool], Answer] | None = None

    def takes(self, n: int, mode: str, single_root: bool) -> bool:
        sizes = self.batch_sizes if mode == BATCH else self.single_sizes
        return not self.missing and single_root in self.classes and (sizes is None or n in sizes)

    def prepare(self, scores: Floats, mode: str, single_root: bool) -> Callable[[], Any]:
        if self.batched and mode == BATCH:
            return self.build(scores, single_root)
        calls = [self.build(one, single_root) for one in scores]
        return lambda: [call() for call in calls]

    def read(self, result: Any, scores: Floats, mode: str, single_root: bool) -> Answer:
        if self.batched and mode == BATCH:
            return self.answer(result, scores, single_root)
        pairs = list(zip(result, scores, strict=True))[: self.checked]
        answers = [self.answer(one, matrix, single_root) for one, matrix in pairs]
        return {name: np.concatenate([a[name] for a in answers]) for name in answers[0]}


@dataclass(frozen=True)
class Case:
    """One quantity and the contenders that compute it, ours first."""

    group: str
    title: str
    batch: int
    sizes: tuple[int, ...]
    contenders: tuple[Contender, ...]

    def key(self, mode: str, single_root: bool) -> str:
        return f"{self.group}, {root_class(single_root)}, {mode}"


def root_class(single_root: bool) -> str:
    return "single-root" if single_root else "multi-root"


# ---------------------------------------------------------------------------------- agreement


def largest_difference(theirs: Answer, ours: Answer) -> float:
    """Over the arrays both have; relative where values exceed 1; cells where they are finite."""
    worst = 0.0
    for name in theirs.keys() & ours.keys():
        other = theirs[name]
        own = ours[name][: len(other)]
        finite = np.isfinite(other)
        error = np.abs(np.where(finite, other, own) - own) / np.maximum(1.0, np.abs(own))
        worst = max(worst, float(error.max()))
    return worst


def check(contender: Contender, theirs: Answer, ours: Answer, scores: Floats, single_root: bool) -> float:
    expected = contender.reference(scores, single_root) if contender.reference else ours
    error = largest_difference(theirs, expected)
    if not error <= contender.tolerance:
        raise DisagreementError(
            f"{contender.name}, n = {scores.shape[-1] - 1}, {root_class(single_root)}: differs by "
            f"{error:.2e}, tolerance {contender.tolerance:.0e}"
        )
    return error


# ---------------------------------------------------------------------------------- timing


@dataclass(frozen=True)
class Pace:
    """How long to measure: rounds, seconds a contender may take in all, the shortest sample."""

    rounds: int
    budget: float
    shortest: float


@dataclass(frozen=True)
class Timing:
    """Microseconds a sentence, round by round, and how far the answer was from ours."""

    case: str
    contender: str
    n: int
    rounds: tuple[float, ...]
    error: float

    @property
    def median(self) -> float:
        return float(np.median(self.rounds))

    def summary(self) -> dict[str, Any]:
        low, median, high = np.percentile(self.rounds, [25, 50, 75]).round(3).tolist()
        times = {"median": median, "quartiles": [low, high], "rounds": len(self.rounds)}
        return {"case": self.case, "contender": self.contender, "n": self.n, **times, "error": self.error}


def measure(runs: Mapping[str, Callable[[], Any]], pace: Pace) -> dict[str, list[float]]:
    """Seconds a call, one sample a round; the contenders take turns within every round."""
    loops = {name: loops_for(run, pace.shortest) for name, run in runs.items()}
    samples: dict[str, list[float]] = {name: [] for name in runs}
    gc.collect()
    gc.disable()
    try:
        for _ in range(pace.rounds):
            for name, run in runs.items():
                if sum(samples[name]) * loops[name] <= pace.budget:
                    samples[name].append(seconds(run, loops[name]) / loops[name])
    finally:
        gc.enable()
    return samples


def loops_for(run: Callable[[], Any], shortest: float) -> int:
    """How many calls make a sample long enough to time; the two calls made here warm up."""
    once = min(seconds(run, 1), seconds(run, 1))
    return max(1, int(np.ceil(shortest / once)))


def seconds(run: Callable[[], Any], loops: int) -> float:
    start = time.perf_counter()
    for _ in range(loops):
        run()
    return time.perf_counter() - start


def time_case(case: Case, mode: str, single_root: bool, scores: Floats, pace: Pace) -> Iterator[Timing]:
    """Check that the contenders agree on `scores`, then time them."""
    n = scores.shape[-1] - 1
    able = [one for one in case.contenders if one.takes(n, mode, single_root)]
    runs = {one.name: one.prepare(scores, mode, single_root) for one in able}
    answers = {one.name: one.read(runs[one.name](), scores, mode, single_root) for one in able}
    ours = answers[case.contenders[0].name]
    errors = {one.name: check(one, answers[one.name], ours, scores, single_root) for one in able}
    for name, samples in measure(runs, pace).items():
        rounds = tuple(sample / len(scores) * 1e6 for sample in samples)
        yield Timing(case.key(mode, single_root), name, n, rounds, errors[name])


# ---------------------------------------------------------------------------------- report


@dataclass(frozen=True)
class Bar:
    """A figure that was asked for."""

    what: str
    wanted: str
    measured: str
    passed: bool


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass
class Report:
    """Everything one run found."""

    timings: list[Timing] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def of(self, case: str, contender: str) -> dict[int, Timing]:
        return {t.n: t for t in self.timings if (t.case, t.contender) == (case, contender)}

    def time(self, case: str, contender: str, n: int) -> float | None:
        timing = self.of(case, contender).get(n)
        return timing.median if timing else None

    def ratio(self, case: str, contender: str, n: int, ours: str) -> float | None:
        """The contender's time / ours, the median of the rounds both took part in.

        A round is short, so what else the machine does slows both alike. None if not measured.
        """
        theirs, own = self.of(case, contender).get(n), self.of(case, ours).get(n)
        if theirs is None or own is None:
            return None
        pairs = zip(theirs.rounds, own.rounds, strict=False)
        return float(np.median([x / y for x, y in pairs]))

    def exponent(self, case: str, contender: str, smallest: int) -> float | None:
        """Slope of log time over log n by least squares, over the sizes from `smallest` on."""
        points = [(n, t.median) for n, t in self.of(case, contender).items() if n >= smallest]
        if len(points) < 3:
            return None
        x, y = np.log(np.array(points)).T
        return float(np.polyfit(x, y, 1)[0])


def case_table(case: Case, mode: str, single_root: bool, report: Report) -> Table:
    key = case.key(mode, single_root)
    ours = case.contenders[0].name
    sizes = sorted(report.of(key, ours))
    rows = []
    for one in case.contenders:
        timings = report.of(key, one.name)
        if one.missing:
            rows.append((one.name, *("-" for _ in sizes), one.missing))
        elif timings:
            cells = [time_cell(report, key, one.name, n, ours) for n in sizes]
            rows.append((one.name, *cells, agreement_cell(one, timings, ours)))
    batch = f" of {case.batch}" if mode == BATCH else ""
    return Table(
        f"{case.title}, {root_class(single_root)}, {mode}{batch}: microseconds a sentence (times {ours})",
        ("", *(f"n = {n}" for n in sizes), "differs by"),
        tuple(rows),
    )


def time_cell(report: Report, case: str, contender: str, n: int, ours: str) -> str:
    median = report.time(case, contender, n)
    if median is None:
        return "-"
    shown = f"{median:.3g}" if median < 1000 else f"{median:.0f}"
    ratio = report.ratio(case, contender, n, ours)
    return shown if contender == ours or ratio is None else f"{shown} ({ratio:.3g}x)"


def agreement_cell(one: Contender, timings: Mapping[int, Timing], ours: str) -> str:
    if one.name == ours and one.reference is None:
        return ""
    error = max(timing.error for timing in timings.values())
    return f"{error:.0e} <= {one.tolerance:.0e}"


def bar_table(bars: Sequence[Bar]) -> Table:
    rows = ((b.what, b.wanted, b.measured, "PASS" if b.passed else "FAIL") for b in bars)
    return Table("Bars", ("what", "wanted", "measured", ""), tuple(rows))


# ---------------------------------------------------------------------------------- output


def signature(packages: Mapping[str, str | None], **more: Any) -> dict[str, Any]:
    """What the numbers depend on; `packages` maps a pip name to why it is missing, or None."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {name: why or package_version(name) for name, why in packages.items()},
        "python": platform.python_version(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "threads": 1,
        **more,
    }


def package_version(package: str) -> str:
    """Of the installed distribution; a source tree on the path tells its own."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(importlib.import_module(package), "__version__", "source tree"))


def cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def print_table(table: Table, console: Console) -> None:
    shown = RichTable(title=table.title, title_justify="left")
    for column in table.columns:
        shown.add_column(column)
    for row in table.rows:
        shown.add_row(*row, style="red" if row[-1] == "FAIL" else None)
    console.print(shown)


def write(report: Report, signed: Mapping[str, Any], folder: Path, name: str) -> None:
    """`name`.json with everything, `name`.md with the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "signature": signed,
        "bars": [asdict(bar) for bar in report.bars],
        "timings": [timing.summary() for timing in report.timings],
        **report.figures,
    }
    (folder / f"{name}.json").write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
    versions = [f"{package} {version}" for package, version in signed["versions"].items()]
    others = [f"{key}: {value}" for key, value in signed.items() if key != "versions"]
    header = (
        f"# {name.capitalize()} benchmark\n\nWritten by `benchmarks/{name}.py`. "
        "Times are medians over the rounds; ratios, the peer's time over ours, are medians "
        "over the same rounds. `differs by` is the largest difference from our "
        f"answer.\n\n{'; '.join(others)}.\n\n{'; '.join(versions)}.\n"
    )
    tables = [markdown_table(f"## {table.title}", table.columns, table.rows) for table in report.tables]
    (folder / f"{name}.md").write_text("\n".join([header, *tables]))
