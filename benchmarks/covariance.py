"""Three ways to the gradient of one GE term, timed against n in one process; they have to agree.

    python benchmarks/covariance.py            # writes results/covariance.json, .md, .png and .svg
    python benchmarks/covariance.py --quick    # prints only

The gradient is Cov(f, 1[arc]) for every arc, f an arc-factored function; the covariance of two functions follows.
  O(n^5)   the way before druck2009 (its reference [1]): require one arc, run the marginals again
  O(n^4)   druck2009's equation (2): one inverse of the Kirchhoff matrix (LAPACK), then the sum over all pairs of arcs,
           nested loops as printed, compiled by Numba with the options of our own kernels
  O(n^3)   ours, `TreeDistribution.covariance_with_arcs`
The paper's class is multi-root; single-root exists for ours and O(n^5). A fourth row, the same loops of equation (2)
with every addition in the order written (what a C compiler makes of them by default), shows what the options are worth.

Scores are random normal numbers, in batches; everybody has one thread, and what a way needs in another layout is
prepared outside the timing. Asserts agreement to 1e-9, prints fitted exponents, the gradient's cost beside that of the
marginals for the four classes of trees, and the bars.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import harness  # first: it pins the threads  # isort: skip
import matplotlib
import numpy as np
from harness import BATCH, Bar, Case, Contender, Floats, Report, Table
from matplotlib.figure import Figure
from numba import njit
from rich.console import Console

from headway.arrays import TreeClass
from headway.inference import TreeDistribution
from headway.inference.batch import Batch
from headway.inference.first_order import arc_marginals
from headway.inference.jit import kernel
from headway.parallel import SERIAL

SEED = 2009
SIZES = (5, 10, 20, 30, 40, 60, 80)
LARGEST_FORCED = 40  # beyond, seconds a sentence
SENTENCES = 8
FEATURES = 50
TOLERANCE = 1e-9
LEAST_RATIO = 50.0
RATIO_SIZES = (20, 40, 80)
EXPONENT_FROM = 20  # below, fixed costs show
FULL = harness.Pace(rounds=25, budget=3.0, shortest=0.005)
QUICK = harness.Pace(rounds=3, budget=0.5, shortest=0.002)
RESULTS = Path(__file__).parent / "results"
WIDTH = 140  # of the printed tables where there is no terminal

OURS, PAIRS, PAIRS_IN_ORDER, FORCED = (
    "headway, O(n^3)",
    "equation (2), O(n^4)",
    "equation (2), no fast-math",
    "forced arcs, O(n^5)",
)


# ---------------------------------------------------------------------------------- the three ways


def arc_functions(n: int, count: int) -> Floats:
    return np.random.default_rng([SEED, n, 1]).uniform(-1.0, 1.0, (count, n + 1, n + 1))


def headway_gradient(scores: Floats, f: Floats, single_root: bool) -> Callable[[], Floats]:
    return lambda: TreeDistribution(scores, single_root=single_root, threads=1).covariance_with_arcs(f)


def forced_gradient(scores: Floats, f: Floats, single_root: bool) -> Callable[[], Floats]:
    """O(n^5): P(a) (E[f | a] - E[f]), where requiring arc a is forbidding its word's other heads."""

    def run() -> Floats:
        sentences = zip(scores, f, strict=True)
        return np.array([forced_gradient_of(one, function, single_root) for one, function in sentences])

    return run


def forced_gradient_of(scores: Floats, f: Floats, single_root: bool) -> Floats:
    n = len(scores) - 1
    mu = _marginals(scores[None], single_root)[0]
    words = mu > 0
    mean = float((mu[words] * f[words]).sum())
    gradient: Floats = np.zeros_like(mu)
    for m in range(1, n + 1):
        heads = np.delete(np.arange(n + 1), m)
        required = np.repeat(scores[None], n, axis=0)
        required[:, :, m] = -np.inf
        required[np.arange(n), heads, m] = scores[heads, m]
        given = _marginals(required, single_root)
        gradient[heads, m] = mu[heads, m] * (np.einsum("ahm,hm->a", given, f) - mean)
    return gradient


def _marginals(scores: Floats, single_root: bool) -> Floats:
    batch = Batch(scores, np.full(len(scores), scores.shape[1] - 1), single=False)
    return arc_marginals(batch, TreeClass(single_root=single_root), SERIAL)[1]


def pairs_gradient(scores: Floats, f: Floats, single_root: bool, in_order: bool = False) -> Callable[[], Floats]:
    """O(n^4), multi-root. The paper's s(i, j) and f(i, j) have the modifier first; index 0 of the inverse is zero."""
    assert not single_root
    by_modifier, f_by_modifier = (np.ascontiguousarray(np.swapaxes(x, 1, 2)) for x in (scores, f))
    nodes = np.arange(scores.shape[1])
    sum_over_pairs = _sum_over_pairs_in_order if in_order else _sum_over_pairs

    def run() -> Floats:
        s = np.exp(by_modifier)
        s[:, 0] = s[:, nodes, nodes] = 0.0
        kirchhoff = -np.swapaxes(s, 1, 2)
        kirchhoff[:, nodes, nodes] = s.sum(axis=2)
        inverse = np.zeros_like(s)
        inverse[:, 1:, 1:] = np.linalg.inv(kirchhoff[:, 1:, 1:])
        gradient = np.zeros_like(s)
        sum_over_pairs(s, f_by_modifier, inverse, gradient)
        return np.swapaxes(gradient, 1, 2)

    return run


def _equation_2(s: Floats, f: Floats, inverse: Floats, gradient: Floats) -> None:
    """The derivative by every arc's score: f_n of equation (2) is 1 for the arc l -> k only."""
    nodes = s.shape[1]
    for b in range(s.shape[0]):
        for k in range(1, nodes):
            for l in range(nodes):  # noqa: E741  (the paper's letter)
                total = 0.0
                for i in range(1, nodes):
                    for j in range(nodes):
                        total += (
                            s[b, i, j]
                            * f[b, i, j]
                            * (
                                inverse[b, i, l] * inverse[b, k, i]
                                - inverse[b, i, k] * inverse[b, k, i]
                                - inverse[b, i, l] * inverse[b, k, j]
                                + inverse[b, i, k] * inverse[b, k, j]
                            )
                        )
                same = f[b, k, l] * (inverse[b, k, k] - inverse[b, k, l])
                gradient[b, k, l] = s[b, k, l] * (total + same)


_sum_over_pairs = kernel(_equation_2)
_sum_over_pairs_in_order = njit(error_model="numpy")(_equation_2)  # no cache: it would find the other's code there


# ---------------------------------------------------------------------------------- what is timed

Gradient = Callable[[Floats, Floats, bool], Callable[[], Floats]]


def gradient_of(way: Gradient, scores: Floats, single_root: bool) -> Callable[[], Floats]:
    f = arc_functions(scores.shape[-1] - 1, len(scores))
    return way(scores, f, single_root)


def covariance_of(way: Gradient, scores: Floats, single_root: bool) -> Callable[[], Floats]:
    f, g = np.split(arc_functions(scores.shape[-1] - 1, 2 * len(scores)), 2)
    gradient = way(scores, f, single_root)
    return lambda: (gradient() * g).sum(axis=(1, 2))


def headway_covariance(scores: Floats, single_root: bool) -> Callable[[], Floats]:
    f, g = np.split(arc_functions(scores.shape[-1] - 1, 2 * len(scores)), 2)
    return lambda: TreeDistribution(scores, single_root=single_root, threads=1).covariance(f, g)


def contenders(build: Callable[..., Any], ours: Callable[..., Any]) -> tuple[Contender, ...]:
    def one(name: str, way: Callable[..., Any], **more: Any) -> Contender:
        return Contender(name, way, lambda result, *_: {"covariance": result}, TOLERANCE, **more)

    multi_root = {"classes": (False,)}
    return (
        one(OURS, ours),
        one(PAIRS, partial(build, pairs_gradient), **multi_root),
        one(PAIRS_IN_ORDER, partial(build, partial(pairs_gradient, in_order=True)), **multi_root),
        one(FORCED, partial(build, forced_gradient), batch_sizes=[n for n in SIZES if n <= LARGEST_FORCED]),
    )


GRADIENT = Case(
    "gradient", "Cov(f, arc) for every arc", SENTENCES, SIZES,
    contenders(gradient_of, partial(gradient_of, headway_gradient)),
)  # fmt: skip
TWO_FUNCTIONS = Case(
    "covariance", "Cov(f, g)", SENTENCES, SIZES, contenders(covariance_of, headway_covariance)
)  # fmt: skip
CASES = (GRADIENT, TWO_FUNCTIONS)


def random_scores(n: int) -> Floats:
    return np.random.default_rng([SEED, n]).normal(size=(SENTENCES, n + 1, n + 1))


def scores_checksum() -> str:
    digest = hashlib.sha256()
    for n in SIZES:
        digest.update(random_scores(n).tobytes())
    return digest.hexdigest()[:16]


# ---------------------------------------------------------------------------------- tables and bars


def growth_table(report: Report) -> Table:
    rows = []
    for case in CASES:
        for single_root in (False, True):
            key = case.key(BATCH, single_root)
            found = [(one.name, report.exponent(key, one.name, EXPONENT_FROM)) for one in case.contenders]
            rows += [(key, name, f"{exponent:.2f}") for name, exponent in found if exponent is not None]
    title = f"Exponent of time in n, least squares over n >= {EXPONENT_FROM}"
    return Table(title, ("", "", "exponent"), tuple(rows))


def _marginals_and_gradient(scores: Floats, f: Floats, flags: dict[str, Any]) -> dict[str, Callable[[], Floats]]:
    return {
        "marginals": lambda: TreeDistribution(scores, **flags).marginals,
        "gradient": lambda: TreeDistribution(scores, **flags).covariance_with_arcs(f),
    }


def marginals_table(quick: bool) -> Table:
    """What the gradient costs beside the marginals it starts from, for all four classes of trees."""
    pace = QUICK if quick else FULL
    rows = []
    for projective in (False, True):
        for single_root in (False, True):
            flags: dict[str, Any] = {"projective": projective, "single_root": single_root, "threads": 1}
            cells = []
            for n in SIZES:
                scores, f = random_scores(n), arc_functions(n, SENTENCES)
                samples = harness.measure(_marginals_and_gradient(scores, f, flags), pace)
                ratios = [y / x for x, y in zip(samples["marginals"], samples["gradient"], strict=False)]
                microseconds = float(np.median(samples["gradient"])) / SENTENCES * 1e6
                cells.append(f"{microseconds:.3g} ({np.median(ratios):.2f}x)")
            rows.append(
                (f"{'projective' if projective else 'non-projective'}, {harness.root_class(single_root)}", *cells)
            )
    title = "Cov(f, arc) for every arc: microseconds a sentence (times the marginals)"
    return Table(title, ("", *(f"n = {n}" for n in SIZES)), tuple(rows))


def timing_bars(report: Report) -> Iterator[Bar]:
    key = GRADIENT.key(BATCH, False)
    for name in (PAIRS, PAIRS_IN_ORDER):
        measured = report.ratio(key, name, LARGEST_FORCED, OURS) or 0.0
        what = f"gradient of one GE term, n = {LARGEST_FORCED}: faster than {name}"
        yield Bar(what, f">= {LEAST_RATIO:g}x", f"{measured:.1f}x", measured >= LEAST_RATIO)
    ratios = {n: report.ratio(key, PAIRS, n, OURS) or 0.0 for n in RATIO_SIZES}
    few, middle, many = ratios.values()
    shown = " < ".join(f"n = {n}: {ratio:.1f}x" for n, ratio in ratios.items())
    yield Bar("the ratio grows with n", "n = 20 < 40 < 80", shown, 0 < few < middle < many)


def feature_bars(progress: Console) -> Iterator[Bar]:
    """Every pair of many functions at once: one gradient a function, against the marginals of all pairs of arcs."""
    n = LARGEST_FORCED
    scores, features = random_scores(n)[0], arc_functions(n, FEATURES)
    repeated = np.repeat(scores[None], FEATURES, axis=0)
    for single_root in (False, True):
        progress.log(f"all pairs of {FEATURES} functions, {harness.root_class(single_root)}")
        flat = features.reshape(FEATURES, -1)
        ours = headway_gradient(repeated, features, single_root)().reshape(FEATURES, -1) @ flat.T
        distribution = TreeDistribution(scores, single_root=single_root)
        pairs = distribution.pair_marginals().reshape(len(flat[0]), -1)
        means = flat @ distribution.marginals.ravel()
        forced = flat @ pairs @ flat.T - np.outer(means, means)
        error = float(np.abs(ours - forced).max())
        what = f"n = {n}, {harness.root_class(single_root)}, all pairs of {FEATURES} functions: off the O(n^5) way by"
        yield Bar(what, f"<= {TOLERANCE:g}", f"{error:.1e}", error <= TOLERANCE)


# ---------------------------------------------------------------------------------- figure

LOOKS = {OURS: ("#1b6ca8", "o"), PAIRS: ("#c8553d", "s"), FORCED: ("#6b6b6b", "^")}


def draw(report: Report, folder: Path) -> None:
    """Time against n for the three ways, multi-root, both axes logarithmic."""
    key = GRADIENT.key(BATCH, False)
    # the same data give the same file
    with matplotlib.rc_context({"svg.hashsalt": "headway", "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        for name, (colour, marker) in reversed(LOOKS.items()):
            timings = report.of(key, name)
            sizes = sorted(timings)
            exponent = report.exponent(key, name, EXPONENT_FROM)
            label = re.sub(r"(O\(n\^\d\))", r"$\1$", name)
            label += "" if exponent is None else f": measured $n^{{{exponent:.1f}}}$ from {EXPONENT_FROM} words on"
            times = [timings[n].median / 1e6 for n in sizes]
            axes.loglog(sizes, times, color=colour, marker=marker, markersize=4, label=label)
        axes.set_xticks(SIZES, map(str, SIZES))
        axes.minorticks_off()
        axes.set_xlabel("words n")
        axes.set_ylabel("seconds a sentence")
        axes.set_title("Cov(f, arc) for every arc, multi-root, one thread", fontsize="medium")
        axes.grid(axis="y", color="0.9")
        axes.set_ylim(top=axes.get_ylim()[1] * 12)  # room for the legend
        axes.legend(frameon=False, fontsize="small", loc="upper left")
        figure.savefig(folder / "covariance.svg", metadata={"Date": None})
        figure.savefig(folder / "covariance.png", dpi=160, metadata={"Software": None})


# ---------------------------------------------------------------------------------- main


def run(quick: bool, progress: Console) -> Report:
    report = Report()
    for case in CASES:
        for single_root in (False, True):
            for n in SIZES:
                progress.log(f"{case.key(BATCH, single_root)}, n = {n}")
                pace = QUICK if quick else FULL
                report.timings += harness.time_case(case, BATCH, single_root, random_scores(n), pace)
            report.tables.append(harness.case_table(case, BATCH, single_root, report))
    report.tables += [growth_table(report), marginals_table(quick)]
    report.bars += [*feature_bars(progress), *timing_bars(report)]
    report.tables.append(harness.bar_table(report.bars))
    return report


def main() -> int:
    """Exit status 1 when a bar is missed; a disagreement raises."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--output", type=Path, metavar="DIR", help="by default benchmarks/results, nowhere if quick")
    options = parser.parse_args()
    packages = dict.fromkeys(("headway", "numpy", "numba", "scipy", "matplotlib"))
    signed = harness.signature(packages, seed=SEED, scores_sha256=scores_checksum(), options={"quick": options.quick})
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print_json(data=signed)
    report = run(options.quick, Console(stderr=True))
    for table in report.tables:
        harness.print_table(table, console)
    folder = options.output or (None if options.quick else RESULTS)
    if folder:
        harness.write(report, signed, folder, "covariance")
        draw(report, folder)
        console.print(f"written: covariance.json, .md, .png and .svg in {folder}")
    return 0 if all(bar.passed for bar in report.bars) else 1


if __name__ == "__main__":
    sys.exit(main())
