"""Time `headway.inference` beside its peers, in one process, and fail if they disagree.

Every row times one way of computing a quantity on the same random normal scores (fixed seed, one
thread for everybody). What a library needs in another layout is prepared outside the timing.
Contenders take turns, round after round, and medians over the rounds count. A single call is a
loop of calls, one for each sentence of the batch.

Groups (`--only`):
  argmax      best tree: ufal.chu_liu_edmonds, networkx, supar
  marginals   log Z and all marginals, non-projective: numpy slogdet + inv, torch-struct, supar
  projective  log Z and all marginals, projective: torch-struct, supar
  covariance  covariance_with_arcs beside the marginals and druck2009's O(n^4) sum
  stability   column sums, signs and finiteness as the scores grow; errors against mpmath
  startup     import and first use, each in a fresh interpreter

Agreement is asserted on the scores that are timed, with the tolerance of the peer's precision. Two
peers are compared with what they really compute: torch-struct adds 1e-5 to every weight, and
ufal.chu_liu_edmonds decodes multi-root only, so its time there is for the easier problem (see
`peers.torch_struct_reference` and `peers.ufal_answer`).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import harness  # first: it pins the threads  # isort: skip
import numpy as np
import peers
from harness import BATCH, SINGLE_CALL, Answer, Bar, Case, Contender, Floats, Report, Table
from rich.console import Console

SEED = 2007
SIZES = (10, 20, 30, 50, 100, 200)
QUICK_SIZES = (20, 30, 50, 100)
PROJECTIVE_SIZES = (10, 20, 30, 50, 100)  # of the peers in a batch: beyond, seconds and gigabytes
COVARIANCE_SIZES = (20, 50, 100)
FULL = harness.Pace(rounds=25, budget=3.0, shortest=0.005)
QUICK = harness.Pace(rounds=5, budget=0.5, shortest=0.002)
RESULTS = Path(__file__).parent / "results"
WIDTH = 140  # of the printed tables where there is no terminal
EXPONENT_FROM = 30  # below, fixed costs show

UFAL = Contender(
    "ufal (C++, multi-root)",
    peers.ufal_argmax,
    peers.ufal_answer,
    tolerance=1e-12,
    missing=peers.UFAL.missing,
    batched=False,
    checked=4,
)
NUMPY = Contender(
    "numpy slogdet + inv",
    peers.numpy_marginals,
    peers.marginals_answer,
    tolerance=1e-9,
    batched=False,
)
TORCH_STRUCT = Contender(
    "torch-struct",
    peers.torch_struct_marginals(),
    peers.torch_struct_answer,
    tolerance=1e-5,
    missing=peers.TORCH_STRUCT.missing,
    reference=peers.torch_struct_reference,
)
TORCH_STRUCT_PROJECTIVE = Contender(
    "torch-struct",
    peers.torch_struct_marginals(projective=True),
    peers.torch_struct_answer,
    tolerance=1e-4,
    missing=peers.TORCH_STRUCT.missing,
    batch_sizes=PROJECTIVE_SIZES,
    single_sizes=(10, 20, 30),
)
SUPAR_PROJECTIVE = Contender(
    "supar",
    peers.supar_marginals(projective=True),
    peers.supar_answer,
    tolerance=1e-4,
    missing=peers.SUPAR.missing,
    batch_sizes=PROJECTIVE_SIZES,
    single_sizes=(10, 20, 30),
)

CASES = (
    Case(
        "argmax",
        "Best tree",
        64,
        SIZES,
        (
            Contender("headway", peers.headway_argmax, peers.heads_answer, tolerance=0.0),
            UFAL,
            Contender(
                "networkx",
                peers.networkx_argmax,
                peers.networkx_answer,
                tolerance=1e-12,
                missing=peers.NETWORKX.missing,
                batch_sizes=(),
                single_sizes=(20,),
                classes=(False,),
            ),
            Contender(
                "supar mst",
                peers.supar_argmax,
                peers.heads_answer,
                tolerance=1e-6,
                missing=peers.SUPAR.missing,
                batch_sizes=(10, 20, 30, 50),
                single_sizes=(),
            ),
        ),
    ),
    Case(
        "marginals",
        "log Z and all marginals, non-projective",
        64,
        SIZES,
        (
            Contender(
                "headway",
                peers.headway_marginals(projective=False),
                peers.marginals_answer,
                tolerance=0.0,
            ),
            NUMPY,
            Contender(
                "numpy slogdet + inv, stacked",
                peers.numpy_marginals,
                peers.marginals_answer,
                tolerance=1e-9,
                single_sizes=(),
            ),
            TORCH_STRUCT,
            Contender(
                "supar MatrixTree",
                peers.supar_marginals(),
                peers.supar_answer,
                tolerance=1e-6,
                missing=peers.SUPAR.missing,
            ),
        ),
    ),
    Case(
        "projective",
        "log Z and all marginals, projective",
        32,
        SIZES,
        (
            Contender(
                "headway",
                peers.headway_marginals(projective=True),
                peers.marginals_answer,
                tolerance=0.0,
            ),
            TORCH_STRUCT_PROJECTIVE,
            SUPAR_PROJECTIVE,
        ),
    ),
    Case(
        "covariance",
        "covariance_with_arcs, non-projective",
        64,
        COVARIANCE_SIZES,
        (
            Contender(
                "headway marginals",
                peers.headway_marginals(projective=False),
                peers.marginals_answer,
                tolerance=0.0,
            ),
            Contender(
                "headway covariance_with_arcs",
                peers.headway_covariance,
                peers.covariance_answer,
                tolerance=1e-7,
                reference=peers.covariance_reference,
            ),
            Contender(
                "druck2009, O(n^4), numpy",
                peers.druck_covariance,
                peers.covariance_answer,
                tolerance=1e-7,
                batch_sizes=(),
                single_sizes=(20, 50),
                reference=peers.covariance_reference,
                checked=4,
            ),
        ),
    ),
)


def random_scores(n: int, batch: int) -> Floats:
    return np.random.default_rng([SEED, n]).normal(size=(batch, n + 1, n + 1))


def scores_checksum() -> str:
    digest = hashlib.sha256()
    for n in SIZES:
        digest.update(random_scores(n, max(case.batch for case in CASES)).tobytes())
    return digest.hexdigest()[:16]


# ---------------------------------------------------------------------------------- timings


def run_case(case: Case, quick: bool, report: Report, progress: Console) -> None:
    sizes, pace = (QUICK_SIZES, QUICK) if quick else (SIZES, FULL)
    for mode in (BATCH, SINGLE_CALL):
        for single_root in (True, False):
            for n in sorted(set(sizes) & set(case.sizes)):
                progress.log(f"{case.key(mode, single_root)}, n = {n}")
                scores = random_scores(n, case.batch)
                report.timings += harness.time_case(case, mode, single_root, scores, pace)
            report.tables.append(harness.case_table(case, mode, single_root, report))


def growth_table(report: Report) -> Table:
    rows = [
        (case.key(BATCH, single_root), one.name, f"{exponent:.2f}")
        for case in CASES
        for single_root in (True, False)
        for one in case.contenders
        if (exponent := report.exponent(case.key(BATCH, single_root), one.name, EXPONENT_FROM))
    ]
    title = f"Exponent of time in n, least squares over n >= {EXPONENT_FROM}"
    return Table(title, ("", "", "exponent"), tuple(rows))


# ---------------------------------------------------------------------------------- bars

# group, mode, peer, (n, least ratio) pairs
RATIO_BARS = (
    ("argmax", BATCH, UFAL.name, ((20, 3.0), (100, 6.0))),
    ("argmax", SINGLE_CALL, UFAL.name, tuple((n, 1.0) for n in SIZES[1:])),
    ("marginals", BATCH, NUMPY.name, ((20, 3.0), (100, 1.0))),
    ("marginals", BATCH, TORCH_STRUCT.name, ((20, 1.5), (50, 1.5))),
    ("projective", BATCH, TORCH_STRUCT_PROJECTIVE.name, ((30, 30.0),)),
    ("projective", BATCH, SUPAR_PROJECTIVE.name, ((30, 30.0),)),
)
EXPONENT_BARS = (("argmax", 2.0), ("marginals", 3.0))
EXPONENT_SLACK = 0.5  # upwards only: terms of lower order pull a fitted exponent down
COVARIANCE_BAR = (100, 6.0)


def timing_bars(report: Report) -> Iterator[Bar]:
    cases = {case.group: case for case in CASES}
    for group, mode, peer, pairs in RATIO_BARS:
        for n, least in pairs:
            for key in (cases[group].key(mode, single_root) for single_root in (True, False)):
                if report.time(key, "headway", n) is not None:
                    ratio = report.ratio(key, peer, n, "headway") or 0.0
                    what = f"{key}, n = {n}: faster than {peer}"
                    measured = f"{ratio:.2f}x" if ratio else "peer missing"
                    yield Bar(what, f">= {least:g}x", measured, ratio >= least)
    for mode in (BATCH, SINGLE_CALL):
        for key in (cases["covariance"].key(mode, single_root) for single_root in (True, False)):
            n, most = COVARIANCE_BAR
            share = report.ratio(key, "headway covariance_with_arcs", n, "headway marginals")
            if share is not None:
                what = f"{key}, n = {n}: times the marginals"
                yield Bar(what, f"<= {most:g}x", f"{share:.2f}x", share <= most)
    for group, wanted in EXPONENT_BARS:
        for key in (cases[group].key(BATCH, single_root) for single_root in (True, False)):
            found = report.exponent(key, "headway", EXPONENT_FROM)
            if found is not None:
                wish = f"about {wanted:g}, <= {wanted + EXPONENT_SLACK:g}"
                met = found <= wanted + EXPONENT_SLACK
                yield Bar(f"{key}: exponent of time in n", wish, f"{found:.2f}", met)


# ---------------------------------------------------------------------------------- stability

STABILITY_SCALES = (1, 10, 20, 30, 100)
STABILITY_N = 30
STABILITY_SENTENCES = 32
SMALLEST_MARGINAL = 1e-300

STABILITY_CONTENDERS = (
    Contender("headway", peers.headway_marginals(projective=False), peers.marginals_answer, tolerance=0.0),
    Contender(
        "numpy slogdet + inv",
        peers.numpy_marginals,
        peers.marginals_answer,
        tolerance=0.0,
    ),
    *(
        Contender(
            f"{name} {dtype}",
            build(dtype=dtype),
            answer,
            tolerance=0.0,
            missing=peer.missing,
        )
        for name, build, answer, peer in (
            (
                "torch-struct",
                peers.torch_struct_marginals,
                peers.torch_struct_answer,
                peers.TORCH_STRUCT,
            ),
            ("supar MatrixTree", peers.supar_marginals, peers.supar_answer, peers.SUPAR),
        )
        for dtype in ("float32", "float64")
    ),
)


@dataclass(frozen=True)
class Stability:
    """How a library fares at one scale, over the sentences it has finite numbers for."""

    scale: int
    contender: str
    not_finite: int
    column_error: float | None
    most_negative: float | None
    marginal_error: float | None
    relative_error: float | None
    log_z_error: float | None


def run_stability(quick: bool, report: Report, progress: Console) -> None:
    exact_sentences = 1 if quick else 4
    found = []
    for scale in STABILITY_SCALES:
        progress.log(f"stability, scores times {scale}")
        scores = random_scores(STABILITY_N, STABILITY_SENTENCES) * scale
        exact = exact_answer(scores[: 0 if peers.MPMATH.missing else exact_sentences])
        found += [stability(one, scores, scale, exact) for one in STABILITY_CONTENDERS if not one.missing]
    report.figures["stability"] = [asdict(entry) for entry in found]
    report.tables.append(stability_table(found, exact_sentences))
    report.bars += stability_bars([entry for entry in found if entry.contender == "headway"])


def exact_answer(scores: Floats) -> Answer:
    pairs = [peers.exact_matrix_tree(one, single_root=True) for one in scores]
    return {
        "log Z": np.array([log_z for log_z, _ in pairs]),
        "marginals": np.array([marginals for _, marginals in pairs]).reshape(scores.shape),
    }


def stability(one: Contender, scores: Floats, scale: int, exact: Answer) -> Stability:
    with np.errstate(all="ignore"):
        answers = [answer_or_nan(one, matrix) for matrix in scores]
    log_z = np.concatenate([answer["log Z"] for answer in answers])
    marginals = np.concatenate([answer["marginals"] for answer in answers])
    finite = np.isfinite(log_z) & np.isfinite(marginals).all((1, 2))
    known = np.flatnonzero(finite[: len(exact["log Z"])])
    truth = exact["marginals"][known]
    error = np.abs(marginals[known] - truth)
    large = truth > SMALLEST_MARGINAL
    return Stability(
        scale,
        one.name,
        not_finite=int((~finite).sum()),
        column_error=worst(np.abs(marginals[finite, :, 1:].sum(1) - 1.0)),
        most_negative=worst(np.minimum(marginals[finite], 0.0)),
        marginal_error=worst(error),
        relative_error=worst(error[large] / truth[large]),
        log_z_error=worst(np.abs(log_z[known] / exact["log Z"][known] - 1.0)),
    )


def answer_or_nan(one: Contender, scores: Floats) -> Answer:
    """One sentence, single-root; nan where the library calls its matrix singular."""
    try:
        return one.answer(one.build(scores, True)(), scores, True)
    except (np.linalg.LinAlgError, RuntimeError) as error:
        if "singular" not in str(error).lower():
            raise
        return {"log Z": np.full(1, np.nan), "marginals": np.full((1, *scores.shape), np.nan)}


def worst(values: Floats) -> float | None:
    """The largest, in absolute value but with its sign; None of nothing."""
    return float(values.flat[np.abs(values).argmax()]) if values.size else None


def stability_table(found: Sequence[Stability], exact_sentences: int) -> Table:
    columns = (
        "scale",
        "",
        "sentences not finite",
        "column sum off by",
        "most negative marginal",
        "marginal error",
        "relative, above 1e-300",
        "log Z error, relative",
    )
    rows = []
    for entry in found:
        scale, name, not_finite, *errors = asdict(entry).values()
        cells = ("-" if error is None else f"{error:.1e}" for error in errors)
        rows.append((str(scale), name, str(not_finite), *cells))
    rows += [("-", one.name, one.missing, *("-" for _ in columns[3:])) for one in STABILITY_CONTENDERS if one.missing]
    title = (
        f"Normal scores times a scale: n = {STABILITY_N}, single-root, {STABILITY_SENTENCES} "
        f"sentences; errors against mpmath with {peers.EXACT_DIGITS} digits on {exact_sentences}"
    )
    return Table(title, columns, tuple(rows))


STABILITY_BARS = (
    ("not_finite", "sentences not finite", 0.0),
    ("most_negative", "most negative marginal", 0.0),
    ("column_error", "column sums off by", 1e-12),
    ("relative_error", "relative error of marginals above 1e-300", 1e-9),
    ("log_z_error", "relative error of log Z", 1e-12),
)


def stability_bars(ours: Sequence[Stability]) -> Iterator[Bar]:
    for name, what, most in STABILITY_BARS:
        values = [abs(v) for entry in ours if (v := getattr(entry, name)) is not None]
        if values:
            largest = max(values)
            yield Bar(f"all scales: {what}", f"<= {most:g}", f"{largest:.1e}", largest <= most)


# ---------------------------------------------------------------------------------- startup

IMPORT_LIMIT = 0.3
IMPORT_PROBE = """
import sys, time
start = time.perf_counter()
import headway
print(time.perf_counter() - start, "numba" in sys.modules)
"""
FIRST_USE_PROBE = """
import time
import numpy as np
scores = np.random.default_rng(0).normal(size=(21, 21))
start = time.perf_counter()
import headway
trees = headway.TreeDistribution(scores)
trees.argmax(), trees.log_partition, trees.marginals
print(time.perf_counter() - start)
"""


def probe(code: str, cache: str | None = None) -> tuple[list[str], str]:
    """Standard output, in words, and standard error of a fresh interpreter."""
    environment = {name: value for name, value in os.environ.items() if name != "HEADWAY_QUIET"}
    if cache:
        environment["NUMBA_CACHE_DIR"] = cache
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"a fresh interpreter failed:\n{done.stderr}")
    return done.stdout.split(), done.stderr


def run_startup(quick: bool, report: Report, progress: Console) -> None:
    progress.log("startup")
    times = 3 if quick else 9
    imports = [probe(IMPORT_PROBE)[0] for _ in range(times)]
    import_time = float(np.median([float(words[0]) for words in imports]))
    light = all(words[1] == "False" for words in imports)
    with tempfile.TemporaryDirectory() as cache:
        cold, announcement = probe(FIRST_USE_PROBE, cache)
        warm = [probe(FIRST_USE_PROBE, cache) for _ in range(times)]
    cold_time = float(cold[0])
    warm_time = float(np.median([float(words[0]) for words, _ in warm]))
    lines = len(announcement.splitlines())
    silent = not any(errors for _, errors in warm)
    report.figures["startup"] = {
        "import": import_time,
        "first_use_compiling": cold_time,
        "first_use_cached": warm_time,
        "announcement": announcement,
    }
    rows = (
        ("import headway", f"{import_time:.3f}"),
        ("import, then first argmax, log Z, marginals: compiling", f"{cold_time:.2f}"),
        ("the same, compiled before and cached on disk", f"{warm_time:.2f}"),
    )
    report.tables.append(Table("Startup, in a fresh interpreter", ("", "seconds"), rows))
    report.bars += (
        Bar("import headway", "< 0.3 s", f"{import_time:.3f} s", import_time < IMPORT_LIMIT),
        Bar("import headway leaves numba alone", "yes", "yes" if light else "no", light),
        Bar("compilation is announced", "once", f"{lines} line(s)", lines == 1),
        Bar("compilation is cached, and then silent", "yes", "yes" if silent else "no", silent),
    )


# ---------------------------------------------------------------------------------- main

GROUPS = (*(case.group for case in CASES), "stability", "startup")


def run(groups: Sequence[str], quick: bool, progress: Console) -> Report:
    report = Report()
    for case in CASES:
        if case.group in groups:
            run_case(case, quick, report, progress)
    growth = growth_table(report)
    report.tables += [growth] if growth.rows else []
    report.bars += timing_bars(report)
    if "stability" in groups:
        run_stability(quick, report, progress)
    if "startup" in groups:
        run_startup(quick, report, progress)
    report.tables.append(harness.bar_table(report.bars))
    return report


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time headway.inference beside its peers.")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds")
    parser.add_argument("--only", choices=GROUPS, metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="where inference.json and inference.md go; by default benchmarks/results for a "
        "complete run, and nowhere with --quick or --only",
    )
    return parser.parse_args()


def main() -> int:
    """Exit status 1 when a bar is missed; a disagreement raises."""
    options = parse_arguments()
    signed = harness.signature(
        {"headway": None, "numpy": None, "numba": None, "scipy": None}
        | {package: peer.missing for package, peer in peers.PACKAGES.items()},
        seed=SEED,
        scores_sha256=scores_checksum(),
        options={"quick": options.quick, "only": options.only},
    )
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print_json(data=signed)
    groups = (options.only,) if options.only else GROUPS
    report = run(groups, options.quick, Console(stderr=True))
    for table in report.tables:
        harness.print_table(table, console)
    partial = options.quick or options.only
    folder = options.output or (None if partial else RESULTS)
    if folder:
        harness.write(report, signed, folder, "inference")
        console.print(f"written: {folder / 'inference.json'} and {folder / 'inference.md'}")
    return 0 if all(bar.passed for bar in report.bars) else 1


if __name__ == "__main__":
    sys.exit(main())
