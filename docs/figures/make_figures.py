"""The figures of the theory pages: `python docs/figures/make_figures.py` (needs the extra `figures`; a minute).

marginal_error   the largest relative error of a sentence's marginals, by escape walks and by the inverse of the
                 Laplacian, as the scores grow; the reference is the same inverse in decimals of `DIGITS` digits.
walk             a walk from a word to the root, on which it may meet another word.
convergence      dual decomposition on one hard random instance, step by step, and what branch and bound then proves.
reliability      the English model's arcs by probability, how many of them are correct, and what becomes of the
                 probabilities when the words of sentences are in random order: experiments/english/results.

The numbers drawn are printed, and written next to the figures as figures.json.
"""

from __future__ import annotations

import json
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from numpy.typing import NDArray

import headway as hw

Floats = NDArray[np.float64]

HERE = Path(__file__).parent
ENGLISH = HERE.parent.parent / "experiments" / "english" / "results" / "en.json"
# From the palette of Okabe and Ito, which is safe for colour-blind readers
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "0.55"
STYLE = {"svg.hashsalt": "headway", "axes.spines.top": False, "axes.spines.right": False, "font.size": 11}

WORDS, SENTENCES, DIGITS = 20, 8, 1000
SCALES = (1, 2, 5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100)
LEAST = 1e-300  # smaller marginals are left out: float64 holds them with fewer digits

HARD_WORDS, HARD_SEED, HARD_STEPS = 12, 4, 5000

ORDERS = {"dev": "EWT dev", "scrambled": "words in random order"}


def main() -> None:
    errors = marginal_errors()
    trace = hard_instance()
    english = json.loads(ENGLISH.read_text("utf-8"))
    numbers = {
        "marginal_error": errors,
        "convergence": {k: v for k, v in trace.items() if k not in ("primal", "dual")},
        "reliability": {name: dict(zip(("mean", "shares"), shares(english, name), strict=True)) for name in ORDERS},
    }
    print(json.dumps(numbers, indent=1))
    (HERE / "figures.json").write_text(json.dumps(numbers, indent=1) + "\n")
    with matplotlib.rc_context(STYLE):
        for name, figure in (
            ("marginal_error", draw_errors(errors)),
            ("walk", draw_walk()),
            ("convergence", draw_convergence(trace)),
            ("reliability", draw_reliability(english)),
        ):
            figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})


# --- marginals ---


def marginal_errors() -> dict[str, Any]:
    """For every scale of normal scores, each sentence's largest relative error: the worst sentence and the median."""
    rows: dict[str, list[float]] = {"escape_walks": [], "escape_walks_median": [], "inverse": [], "inverse_median": []}
    for scale in SCALES:
        rng = np.random.default_rng(2007)
        errors = []
        for _ in range(SENTENCES):
            scores = scale * rng.normal(size=(WORDS + 1, WORDS + 1))
            truth = exact_marginals(scores)
            found = (hw.TreeDistribution(scores).marginals, inverse_marginals(scores))
            errors.append([relative_error(one, truth) for one in found])
        for name, column in zip(("escape_walks", "inverse"), np.array(errors).T, strict=True):
            rows[name].append(float(column.max()))
            rows[f"{name}_median"].append(float(np.median(column)))
    about = {"words": WORDS, "sentences": SENTENCES, "digits": DIGITS, "above": LEAST}
    return {**about, "scale": SCALES, **rows}


def relative_error(found: Floats, truth: Floats) -> float:
    large = truth > LEAST
    error = abs(found[large] - truth[large]) / truth[large]
    return float(error.max()) if np.isfinite(error).all() else float("inf")


def weights_of(scores: Floats) -> Floats:
    """Each word's scores minus its largest: the marginals stay the same, and no exponential overflows."""
    shifted = scores.copy()
    np.fill_diagonal(shifted, -np.inf)
    return shifted[:, 1:] - shifted[:, 1:].max(axis=0)


def inverse_marginals(scores: Floats) -> Floats:
    """Single-root marginals as in koo2007, section 3.2, in float64."""
    weights = np.exp(weights_of(scores))
    root, words = weights[0], weights[1:]
    laplacian = np.diag(words.sum(axis=0)) - words
    laplacian[0] = root
    try:
        inverse = np.linalg.inv(laplacian)
    except np.linalg.LinAlgError:
        return np.full(scores.shape, np.nan)
    return from_inverse(root, words, inverse)


def exact_marginals(scores: Floats) -> Floats:
    """The same in decimals, with the inverse by Gauss-Jordan elimination."""
    with localcontext(prec=DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN):
        logs = weights_of(scores)
        weights = np.array([[exponential(x) for x in row] for row in logs])
        root, words = weights[0], weights[1:]
        laplacian = np.diag(words.sum(axis=0)) - words
        laplacian[0] = root
        return from_inverse(root, words, decimal_inverse(laplacian))


def exponential(x: float) -> Decimal:
    """To 50 digits, which is enough: the inverse loses digits, not the weights that go into it."""
    with localcontext(prec=50):
        return Decimal(float(x)).exp() if x > -np.inf else Decimal(0)


def decimal_inverse(matrix: NDArray[Any]) -> NDArray[Any]:
    n = len(matrix)
    work = np.concatenate([matrix, np.vectorize(Decimal, otypes=[object])(np.eye(n, dtype=int))], axis=1)
    for k in range(n):
        pivot = k + int(np.argmax(abs(work[k:, k])))
        work[[k, pivot]] = work[[pivot, k]]
        work[k] = work[k] / work[k, k]
        for i in range(n):
            if i != k:
                work[i] = work[i] - work[i, k] * work[k]
    return work[:, n:]


def from_inverse(root: NDArray[Any], words: NDArray[Any], inverse: NDArray[Any]) -> Floats:
    """koo2007's marginals [head, modifier]; the difference of the two terms is where digits cancel."""
    n = len(root)
    found = np.zeros((n + 1, n + 1), inverse.dtype)
    for m in range(n):
        found[0, m + 1] = root[m] * inverse[m, 0]
        for h in range(n):
            if h != m:
                own = 0 if m == 0 else words[h, m] * inverse[m, m]
                other = 0 if h == 0 else words[h, m] * inverse[m, h]
                found[h + 1, m + 1] = own - other
    return found.astype(np.float64)


def draw_errors(errors: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    for name, colour, marker, label in (
        ("inverse", ORANGE, "s", "inverse of the Laplacian"),
        ("escape_walks", BLUE, "o", "escape walks"),
    ):
        for key, line, title in (
            (name, "-", f"{label}, worst sentence"),
            (f"{name}_median", ":", f"{label}, median sentence"),
        ):
            points = [(x, y) for x, y in zip(errors["scale"], errors[key], strict=True) if np.isfinite(y)]
            axes.plot(
                *zip(*points, strict=True), color=colour, linestyle=line, marker=marker, markersize=4, label=title
            )
    axes.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
    axes.text(1, 3, "no digit is right", color=GREY, fontsize=9)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([1, 2, 5, 10, 20, 50, 100])
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.xaxis.set_minor_formatter("")
    axes.set_xlabel("standard deviation of the scores, in nats")
    axes.set_ylabel("largest relative error of a marginal")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.0, 0.9))
    return figure


# --- the walk ---


def draw_walk() -> Figure:
    """Five words and the root; the walk from "man" that reaches the root before it meets "with"."""
    words = ["She", "saw", "the", "man", "with"]
    figure = Figure(figsize=(6.4, 3.3), layout="constrained")
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_xlim(-0.6, 4.6)
    axes.set_ylim(-1.25, 2.1)
    axes.set_aspect("equal")
    place = {word: (float(i), 0.0) for i, word in enumerate(words)} | {"root": (2.0, 1.75)}
    for word, (x, y) in place.items():
        colour = {"with": ORANGE, "root": GREEN, "man": BLUE}.get(word, "0.25")
        box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": colour, "linewidth": 1.6}
        axes.text(x, y, word, ha="center", va="center", bbox=box, zorder=3)

    def arrow(start: str, end: str, bend: float, colour: str, width: float, label: str = "") -> None:
        axes.add_patch(
            FancyArrowPatch(
                place[start],
                place[end],
                connectionstyle=f"arc3,rad={bend}",
                arrowstyle="-|>",
                mutation_scale=13,
                color=colour,
                linewidth=width,
                shrinkA=17,
                shrinkB=19,
                zorder=2,
            )
        )
        (x, y), (x2, y2) = place[start], place[end]
        if label:
            middle = ((x + x2) / 2 + bend * (y2 - y) / 2, (y + y2) / 2 - bend * (x2 - x) / 2)
            halo = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
            axes.text(*middle, label, ha="center", va="center", fontsize=9, color=colour, bbox=halo, zorder=4)

    for start, end, bend in (("She", "saw", 0.5), ("saw", "with", 0.6), ("the", "with", 0.55), ("with", "root", 0.2)):
        arrow(start, end, bend, "0.8", 1.0)
    for start, end, bend, label in (
        ("man", "the", 0.45, "1"),
        ("the", "man", 0.45, "2"),
        ("man", "saw", 0.6, "3"),
        ("saw", "root", -0.25, "4"),
    ):
        arrow(start, end, bend, BLUE, 2.0, label)
    arrow("man", "with", 0.5, ORANGE, 1.2)
    return figure


# --- dual decomposition ---


def hard_instance() -> dict[str, Any]:
    """Random sibling scores without a certificate: the steps, and the optimum that branch and bound proves."""
    rng = np.random.default_rng(HARD_SEED)
    nodes = HARD_WORDS + 1
    parts = hw.SiblingParts.dense(rng.normal(size=(nodes, nodes)), rng.normal(size=(nodes, nodes, nodes)))
    limited = hw.decode(parts, exact=False, iterations=HARD_STEPS)
    proved = hw.decode(parts)
    return {
        "words": HARD_WORDS,
        "seed": HARD_SEED,
        "status": str(limited.status),
        "iterations": limited.iterations,
        "score": limited.score,
        "bound": limited.bound,
        "exact_status": str(proved.status),
        "exact_iterations": proved.iterations,
        "optimum": proved.score,
        "primal": limited.trace.primal,
        "dual": limited.trace.dual,
    }


def draw_convergence(found: dict[str, Any]) -> Figure:
    """All steps, and on the right the last ones, where the bound no longer decreases."""
    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    whole, last = figure.subplots(1, 2, width_ratios=(3, 2))
    primal, dual, optimum = found["primal"], found["dual"], found["optimum"]
    steps = np.arange(1, len(primal) + 1)
    for axes in (whole, last):
        axes.plot(steps, dual, color=ORANGE, linewidth=0.7, alpha=0.35)
        axes.plot(steps, np.minimum.accumulate(dual), color=ORANGE, linewidth=1.8, label="least bound so far")
        axes.plot(steps, primal, color=BLUE, linewidth=0.7, alpha=0.35)
        axes.plot(steps, np.maximum.accumulate(primal), color=BLUE, linewidth=1.8, label="best tree so far")
        axes.axhline(optimum, color=GREEN, linestyle="--", linewidth=1.2, label="the optimum, proved")
        axes.set_xlabel("step of dual decomposition")
    whole.set_xscale("log")
    whole.xaxis.set_major_formatter("{x:.0f}")
    whole.set_ylim(0, 125)  # the bound of the second step is ten times as large
    whole.set_ylabel("score")
    last.set_xlim(len(steps) / 3, len(steps))
    last.set_ylim(found["score"] - 0.5, found["bound"] + 0.5)
    figure.legend(*whole.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure


# --- calibration ---


def shares(results: dict[str, Any], name: str) -> tuple[float, list[float]]:
    """The mean probability of the arcs, and the share of them in each tenth from 0 to 1."""
    found = results[name]
    if name == "scrambled":
        mean, counts = found["mean_probability"], np.array(found["counts"])
    else:
        counts = np.zeros(10, np.int64)
        bins = found["calibration"]["bins"]
        counts[[round(10 * each["low"]) for each in bins]] = [each["count"] for each in bins]
        mean = sum(each["count"] * each["confidence"] for each in bins) / counts.sum()
    return float(mean), (counts / counts.sum()).tolist()


def draw_reliability(results: dict[str, Any]) -> Figure:
    """Share of correct arcs against their mean probability, the area of a dot being the number of arcs; on the right
    the probabilities of sentences in order and out of order, which have no correct arcs.
    """
    figure = Figure(figsize=(8.6, 4.6), layout="constrained")
    axes, beside = figure.subplots(1, 2, width_ratios=(3, 2))
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", label="perfectly calibrated")
    names = {"dev": "EWT dev", "test": "EWT test", "gum_dev": "GUM dev"}
    for part, colour in (("dev", BLUE), ("test", ORANGE), ("gum_dev", GREEN)):
        found = results[part]["calibration"]
        bins = found["bins"]
        x, y = [each["confidence"] for each in bins], [each["accuracy"] for each in bins]
        total = sum(each["count"] for each in bins)
        error = 100 * found["expected_error"]
        axes.plot(x, y, color=colour, label=f"{names[part]}: expected calibration error {error:.2f} %")
        axes.scatter(x, y, s=[2000 * each["count"] / total + 12 for each in bins], color=colour, alpha=0.35)
    axes.set(xlabel="probability of the arc", ylabel="share of correct arcs", xlim=(0, 1.03), ylim=(0, 1.03))
    axes.legend(frameon=False, loc="lower right", fontsize=9)
    for (name, title), colour, shift in zip(ORDERS.items(), (BLUE, GREY), (0.028, 0.072), strict=True):
        mean, own = shares(results, name)
        beside.bar(np.arange(10) / 10 + shift, own, width=0.04, color=colour, label=f"{title}: mean {mean:.2f}")
    beside.set(xlabel="probability of the arc", ylabel="share of arcs", xlim=(0, 1), ylim=(0, 1))
    beside.legend(frameon=False, loc="upper left", fontsize=9)
    return figure


if __name__ == "__main__":
    main()
