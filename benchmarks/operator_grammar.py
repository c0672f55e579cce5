"""Inside-outside and MBR of operator grammars: sentences a second, beside a numpy twin and arc-factored marginals.

    python benchmarks/operator_grammar.py            # writes results/operator_grammar.json and .md
    python benchmarks/operator_grammar.py --quick    # prints only

Sentences have lengths as in a treebank, gamma-distributed with a mean of 20 words, over 45 tags; grammars are random
probabilistic automata, and the factor has the four states of LEX+FCP. Everybody has one thread, single-root trees, and
input prepared outside of the timing.
  numpy           the recursions of the module's docstring, one numpy operation for each sum over split points
  arc-factored    `first_order.marginals` on batches of like length: what one state comes down to
Asserts agreement with both to 1e-9 before anything is timed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness  # first: it pins the threads  # isort: skip
import numpy as np
from harness import Bar, DisagreementError, Floats, Report, Table, Timing
from numpy.typing import NDArray
from rich.console import Console

from headway.inference.batch import groups_by_length
from headway.inference.first_order import marginals as arc_marginals
from headway.inference.operator_automata import LEFT, RIGHT, ModifierFactor, OperatorGrammar
from headway.inference.operator_grammar import Posterior, mbr, posteriors

Ints = NDArray[np.int64]

SEED = 2012
TAGS = 45
MEAN_LENGTH = 20
SENTENCES, QUICK_SENTENCES = 1000, 200
NUMPY_SENTENCES = 40  # tens of milliseconds each
STATES = (1, 5, 9, 15)
BAR_STATES = 9
MEMORY = 4
MARGINALS_CELLS = 2e5  # of a padded batch of arc scores
TOLERANCE = 1e-9
LEAST_SENTENCES = 500.0
FULL = harness.Pace(rounds=15, budget=20.0, shortest=0.01)
QUICK = harness.Pace(rounds=3, budget=2.0, shortest=0.01)
RESULTS = Path(__file__).parent / "results"
WIDTH = 140  # of the printed tables where there is no terminal

OURS, WITH_MBR, NUMPY, ARCS = "inside-outside", "inside-outside and MBR", "numpy twin", "arc-factored marginals"


# ---------------------------------------------------------------------------------- data


@dataclass(frozen=True)
class Case:
    """A grammar, its sentences, and a factor for each or none."""

    name: str
    grammar: OperatorGrammar
    sentences: Sequence[Ints]
    factors: Sequence[ModifierFactor] | None

    def posteriors(self) -> list[Posterior]:
        return posteriors(self.grammar, self.sentences, self.factors)

    def decode(self) -> Any:
        return mbr(self.posteriors())


def random_case(states: int, memory: int, count: int) -> Case:
    rng = np.random.default_rng([SEED, states, memory])
    lengths = np.maximum(1, np.rint(np.random.default_rng(SEED).gamma(3.5, MEAN_LENGTH / 3.5, count))).astype(np.int64)
    sentences = [np.concatenate(([0], rng.integers(1, TAGS + 1, n))) for n in lengths]
    factors = [random_factor(rng, int(n), memory) for n in lengths] if memory else None
    name = f"{states} state{'s' * (states != 1)}" + (f", factor of {memory}" if memory else "")
    return Case(name, random_grammar(rng, states), sentences, factors)


def random_grammar(rng: np.random.Generator, states: int) -> OperatorGrammar:
    """Probabilistic automata: from every state, the next modifier and state, or STOP."""
    symbols = TAGS + 1
    initial = rng.dirichlet(np.ones(states), (symbols, 2))
    leaving = rng.dirichlet(np.full(TAGS * states, 0.2), (symbols, 2, states))  # [h, d, from, (modifier, to)]
    stop = rng.uniform(0.3, 0.8, (symbols, 2, states))
    operators = np.zeros((symbols, 2, symbols, states, states))
    steps = (leaving * (1.0 - stop[..., None])).reshape(symbols, 2, states, TAGS, states)
    operators[:, :, 1:] = steps.transpose(0, 1, 3, 4, 2)
    return OperatorGrammar(initial, stop, operators)


def random_factor(rng: np.random.Generator, n: int, memory: int) -> ModifierFactor:
    """State 1 after most words, 2 and 3 after punctuation and conjunctions."""
    weights, stops = rng.normal(-6.0, 2.0, (n + 1, n + 1, memory)), rng.normal(-1.0, 0.5, (n + 1, 2, memory))
    return ModifierFactor(weights, stops, rng.choice(memory, n + 1, p=[0.0, 0.85, 0.1, 0.05]))


def checksum(cases: Sequence[Case]) -> str:
    digest = hashlib.sha256()
    for case in cases:
        digest.update(case.grammar.operators.tobytes())
        for symbols in case.sentences:
            digest.update(symbols.tobytes())
    return digest.hexdigest()[:16]


# ---------------------------------------------------------------------------------- the others


def numpy_posterior(grammar: OperatorGrammar, symbols: Ints) -> tuple[float, Floats]:
    """(log Z, marginals), single-root, in plain floats; items are [direction, head, width], words only."""
    n, s = len(symbols) - 1, grammar.states
    initial, final, operators = grammar.initial[symbols], grammar.final[symbols], grammar.operators[symbols]
    triangles, arcs = np.zeros((2, n + 1, n + 1, s)), np.zeros((2, n + 1, n + 1, s))
    sides = np.zeros((2, n + 1, n + 1))
    places = [
        (t, h, d, h + t if d == RIGHT else h - t)
        for t in range(n)
        for h in range(1, n + 1)
        for d in (LEFT, RIGHT)
        if 1 <= (h + t if d == RIGHT else h - t) <= n
    ]
    for t, h, d, m in places:
        step = 1 if d == RIGHT else -1
        if t == 0:
            triangles[d, h, 0] = initial[h, d]
        else:
            split = sides[1 - d, m, :t][::-1] @ triangles[d, h, :t]
            arcs[d, h, t] = operators[h, d, symbols[m]] @ split
            u = np.arange(1, t + 1)
            triangles[d, h, t] = sides[d, h + step * u, t - u] @ arcs[d, h, u]
        sides[d, h, t] = final[h, d] @ triangles[d, h, t]

    words = np.arange(1, n + 1)
    root = operators[0, RIGHT, symbols[1:]] @ initial[0, RIGHT] @ final[0, RIGHT]
    left, right = sides[LEFT, words, words - 1], sides[RIGHT, words, n - words]
    z = float((root * left * right).sum())
    marginals = np.zeros((n + 1, n + 1))
    marginals[0, 1:] = root * left * right / z

    out_sides, out_triangles, out_splits = np.zeros_like(sides), np.zeros_like(triangles), np.zeros_like(arcs)
    out_sides[LEFT, words, words - 1] = root * right
    out_sides[RIGHT, words, n - words] = root * left
    for t, h, d, m in reversed(places):
        step = 1 if d == RIGHT else -1
        widest = n - h if d == RIGHT else h - 1
        u = np.arange(1, h if d == RIGHT else n - h + 1)
        back = h - step * u
        out_sides[d, h, t] += (arcs[d, back, u] * out_triangles[d, back, u + t]).sum()
        u = np.arange(n - m if d == RIGHT else m - 1)
        ahead = m + step * (u + 1)
        out_sides[d, h, t] += (triangles[1 - d, ahead, u] * out_splits[1 - d, ahead, t + 1 + u]).sum()
        u = np.arange(t + 1, widest + 1)
        further = sides[1 - d, h + step * u, u - 1 - t] @ out_splits[d, h, u]
        out_triangles[d, h, t] = out_sides[d, h, t] * final[h, d] + further
        if t == 0:
            continue
        out_arc = sides[d, m, : widest + 1 - t] @ out_triangles[d, h, t : widest + 1]
        marginals[h, m] = arcs[d, h, t] @ out_arc / z
        out_splits[d, h, t] = out_arc @ operators[h, d, symbols[m]]
    return float(np.log(z)), marginals


@dataclass(frozen=True)
class ArcBatch:
    """Arc scores of sentences of like length, padded, and which sentences they are."""

    where: Ints
    scores: Floats
    lengths: Ints


def arc_batches(case: Case) -> list[ArcBatch]:
    """A grammar with one state as arc scores: what stays the same in all trees is left out."""
    assert case.grammar.states == 1
    with np.errstate(divide="ignore"):  # the root is no modifier
        log_operators = np.log(case.grammar.operators[..., 0, 0])
    lengths = np.array([len(symbols) - 1 for symbols in case.sentences])
    batches = []
    for where in groups_by_length(lengths, MARGINALS_CELLS):
        longest = int(lengths[where].max())
        scores = np.zeros((len(where), longest + 1, longest + 1))
        for own, symbols in zip(scores, (case.sentences[b] for b in where), strict=True):
            nodes = len(symbols)
            by_side = log_operators[symbols][:, :, symbols]
            ahead = np.triu(np.ones((nodes, nodes), np.bool_))
            own[:nodes, :nodes] = np.where(ahead, by_side[:, RIGHT], by_side[:, LEFT])
        batches.append(ArcBatch(where, scores, lengths[where]))
    return batches


def run_arc_factored(batches: Sequence[ArcBatch]) -> list[Floats]:
    return [arc_marginals(b.scores, projective=True, lengths=b.lengths, threads=1) for b in batches]


# ---------------------------------------------------------------------------------- agreement and timing


def largest_difference(a: Floats, b: Floats) -> float:
    return float(np.abs(a - b).max())


def require(what: str, error: float) -> float:
    if not error <= TOLERANCE:
        raise DisagreementError(f"{what}: differs by {error:.2e}, tolerance {TOLERANCE:.0e}")
    return error


def check_numpy(case: Case) -> float:
    """The largest difference from the numpy twin, over its sentences."""
    worst = 0.0
    for symbols, found in zip(case.sentences[:NUMPY_SENTENCES], case.posteriors(), strict=False):
        log_z, mu = numpy_posterior(case.grammar, symbols)
        error = max(abs(log_z - found.log_partition) / abs(log_z), largest_difference(mu, found.marginals))
        worst = max(worst, error)
    return require(f"{NUMPY}, {case.name}", worst)


def check_arc_factored(case: Case, batches: Sequence[ArcBatch]) -> float:
    found = case.posteriors()
    worst = 0.0
    for batch, mu in zip(batches, run_arc_factored(batches), strict=True):
        for b, n, own in zip(batch.where, batch.lengths, mu, strict=True):
            worst = max(worst, largest_difference(own[: n + 1, : n + 1], found[b].marginals))
    return require(f"{ARCS}, {case.name}", worst)


def check_sums(case: Case) -> float:
    """The largest difference of a word's marginals from a sum of 1."""
    return max(float(np.abs(found.marginals[:, 1:].sum(axis=0) - 1.0).max()) for found in case.posteriors())


def time_case(case: Case, pace: harness.Pace) -> list[Timing]:
    runs: dict[str, Callable[[], Any]] = {OURS: case.posteriors, WITH_MBR: case.decode}
    errors = {OURS: 0.0, WITH_MBR: 0.0}
    sizes = {OURS: len(case.sentences), WITH_MBR: len(case.sentences)}
    if case.factors is None:
        few = case.sentences[:NUMPY_SENTENCES]
        errors[NUMPY] = check_numpy(case)
        sizes[NUMPY] = len(few)
        runs[NUMPY] = lambda: [numpy_posterior(case.grammar, symbols) for symbols in few]
    if case.factors is None and case.grammar.states == 1:
        batches = arc_batches(case)
        errors[ARCS] = check_arc_factored(case, batches)
        sizes[ARCS] = len(case.sentences)
        runs[ARCS] = lambda: run_arc_factored(batches)
    return [
        Timing(case.name, name, MEAN_LENGTH, tuple(x / sizes[name] * 1e6 for x in samples), errors[name])
        for name, samples in harness.measure(runs, pace).items()
    ]


def speed_table(cases: Sequence[Case], report: Report) -> Table:
    rows = []
    for case in cases:
        for name in (OURS, WITH_MBR, NUMPY, ARCS):
            timing = report.of(case.name, name).get(MEAN_LENGTH)
            if timing is None:
                continue
            ratio = report.ratio(case.name, name, MEAN_LENGTH, OURS) or 0.0
            shown = "" if name == OURS else f"{ratio:.3g}x"
            apart = "" if name in (OURS, WITH_MBR) else f"{timing.error:.0e} <= {TOLERANCE:.0e}"
            rows.append((case.name, name, f"{timing.median / 1e3:.3g}", f"{1e6 / timing.median:.0f}", shown, apart))
    title = f"Operator grammars, {MEAN_LENGTH} words on average, single-root, one thread"
    return Table(title, ("", "", "ms a sentence", "sentences/s", f"times {OURS}", "differs by"), tuple(rows))


def bars(case: Case, report: Report) -> list[Bar]:
    speed = 1e6 / (report.time(case.name, WITH_MBR, MEAN_LENGTH) or np.inf)
    apart = check_sums(case)
    return [
        Bar(f"{WITH_MBR}, {case.name}", f">= {LEAST_SENTENCES:g}/s", f"{speed:.0f}/s", speed >= LEAST_SENTENCES),
        Bar("marginals of each word sum to 1 within", "<= 1e-10", f"{apart:.0e}", apart <= 1e-10),
    ]


# ---------------------------------------------------------------------------------- main


def run(cases: Sequence[Case], quick: bool, progress: Console) -> Report:
    report = Report()
    pace = QUICK if quick else FULL
    for case in cases:
        progress.log(case.name)
        report.timings += time_case(case, pace)
    [wanted] = [case for case in cases if case.grammar.states == BAR_STATES and case.factors is None]
    report.tables.append(speed_table(cases, report))
    report.bars += bars(wanted, report)
    report.tables.append(harness.bar_table(report.bars))
    return report


def main() -> int:
    """Exit status 1 when a bar is missed; a disagreement raises."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer sentences and rounds")
    parser.add_argument("--output", type=Path, metavar="DIR", help="by default benchmarks/results, nowhere if quick")
    options = parser.parse_args()
    count = QUICK_SENTENCES if options.quick else SENTENCES
    cases = [*(random_case(states, 0, count) for states in STATES), random_case(BAR_STATES, MEMORY, count)]
    signed = harness.signature(
        dict.fromkeys(("headway", "numpy", "numba")),
        seed=SEED,
        sentences=count,
        data_sha256=checksum(cases),
        load_average=os.getloadavg()[0],
        options={"quick": options.quick},
    )
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print_json(data=signed)
    report = run(cases, options.quick, Console(stderr=True))
    for table in report.tables:
        harness.print_table(table, console)
    folder = options.output or (None if options.quick else RESULTS)
    if folder:
        harness.write(report, signed, folder, "operator_grammar")
        console.print(f"written: operator_grammar.json and .md in {folder}")
    return 0 if all(bar.passed for bar in report.bars) else 1


if __name__ == "__main__":
    sys.exit(main())
