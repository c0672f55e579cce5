"""The tables and the figure of `druck2009`, from the cells there are (matplotlib: the extra `figures`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headway_papers.koo2010_figures import BLUE, GREEN, ORANGE
from headway_papers.markdown import markdown_table

Cells = Mapping[str, Any]
ORDERS = {"1": "Shannon", "2": "Renyi, order 2"}
LEARNERS = {"loglinear": "log-linear", "expected-loss": "expected loss"}


def tables_text(found: Mapping[str, Cells]) -> str:
    """A table for each of (a), (b) and (c); a row a treebank and length."""
    return "\n".join([_without_trees(found), _with_text(found), _all_trees(found)])


def _without_trees(found: Mapping[str, Cells]) -> str:
    counts = sorted({int(name.split("-")[1]) for cells in found.values() for name in cells if name.startswith("trees")})
    estimated = sorted(
        {int(name.split("-")[1]) for cells in found.values() for name in cells if name.startswith("estimated")}
    )
    header = ["sentences", "right-branching", "left-branching", "rules", "rules, non-projective"]
    header += [f"rules from {count} trees" for count in estimated] + [f"{count} trees" for count in counts]
    rows = []
    for name, cells in found.items():
        fixed = ["right-branching", "left-branching", "rules", "rules-non-projective"]
        row = [_title(name), *(_uas(cells.get(cell)) for cell in fixed)]
        row += [_mean(_runs(cells, f"estimated-{count}-")) for count in estimated]
        rows.append(row + [_mean(_runs(cells, f"trees-{count}-")) for count in counts])
    title = (
        "## (a) No trees: test UAS without punctuation; where trees are drawn, the mean of the draws and 95% intervals"
    )
    return markdown_table(title, header, rows)


def _with_text(found: Mapping[str, Cells]) -> str:
    header = ["sentences", "trees", "trees alone", "text, weight 0", "entropy", "weight", "with entropy"]
    header += ["with entropy - weight 0"]
    rows = []
    for name, cells in found.items():
        for order, title in ORDERS.items():
            chosen = cells.get(f"entropy-{order}-chosen")
            if chosen is None:
                continue
            few = chosen["trees"]
            alone, none = _runs(cells, f"trees-{few}-"), _runs(cells, "entropy-1-0-")
            sure = _runs(cells, f"entropy-{order}-{chosen['weight']:g}-")
            difference = [y - x for x, y in zip(none, sure, strict=True)]
            row = [_title(name), str(few), _mean(alone), _mean(none), title, f"{chosen['weight']:g}"]
            rows.append([*row, _mean(sure), _mean(difference, signed=True)])
    title = (
        "## (b) Few trees, and the rest of the text: test UAS without punctuation, means of the draws and 95% intervals"
    )
    return markdown_table(title, header, rows)


def _all_trees(found: Mapping[str, Cells]) -> str:
    header = ["sentences"]
    for title in LEARNERS.values():
        header += [f"{title}: C", "dev", "test"]
    rows = []
    for name, cells in found.items():
        row = [_title(name)]
        for learner in LEARNERS:
            cell = cells.get(f"all-{learner}")
            row += ["", "", ""] if cell is None else [f"{cell['settings']['c']:g}", _uas(cell, "dev"), _uas(cell)]
        rows.append(row)
    return markdown_table("## (c) All trees: UAS without punctuation", header, rows)


def _runs(cells: Cells, prefix: str) -> list[float]:
    """The test scores of the draws, in their order."""
    seeds = sorted(int(name.removeprefix(prefix)) for name in cells if name.startswith(prefix))
    return [cells[f"{prefix}{seed}"]["test"]["uas"] for seed in seeds]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and half the width of its 95% interval (Student's t); 0 for fewer than two values.

    >>> interval([1.0, 2.0, 3.0])
    (2.0, 2.484)
    """
    from scipy.stats import t

    if len(values) < 2:
        return float(np.mean(values)), 0.0
    spread = float(np.std(values, ddof=1)) / len(values) ** 0.5
    return float(np.mean(values)), round(float(t.ppf(0.975, len(values) - 1)) * spread, 3)


def _mean(values: Sequence[float], *, signed: bool = False) -> str:
    if not values:
        return ""
    mean, half = interval(values)
    return f"{mean:+.2f} ± {half:.2f}" if signed else f"{mean:.2f} ± {half:.2f}"


def _uas(cell: Cells | None, part: str = "test") -> str:
    return "" if cell is None else f"{cell[part]['uas']:.2f}"


def _title(name: str) -> str:
    """
    >>> _title("english-20"), _title("english-all")
    ('English, at most 20 words', 'English')
    """
    language, length = name.split("-")
    return language.capitalize() if length == "all" else f"{language.capitalize()}, at most {length} words"


def draw(found: Mapping[str, Cells], path: Path) -> None:
    """Learning curves, a panel a treebank and length: UAS over the trees learnt from, as SVG and PNG."""
    if not found:
        return
    import matplotlib
    from matplotlib.figure import Figure

    languages = sorted({name.split("-")[0] for name in found})
    lengths = sorted({name.split("-")[1] for name in found})
    # the same data give the same file
    with matplotlib.rc_context({"svg.hashsalt": "headway", "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(3.2 * len(languages) + 0.6, 2.7 * len(lengths) + 0.6), layout="constrained")
        panels = figure.subplots(len(lengths), len(languages), sharex=True, sharey=True, squeeze=False)
        for row, length in zip(panels, lengths, strict=True):
            for axes, language in zip(row, languages, strict=True):
                cells = found.get(f"{language}-{length}")
                if cells is not None:
                    _draw_panel(axes, cells)
                axes.set_title(_title(f"{language}-{length}"), fontsize=10)
        for axes in panels[-1]:
            axes.set_xlabel("trees learnt from")
        for axes in panels[:, 0]:
            axes.set_ylabel("test UAS")
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=5, frameon=False)
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(path.with_suffix(".png"), dpi=160, metadata={"Software": None})


def _draw_panel(axes: Any, cells: Cells) -> None:
    counts = sorted({int(name.split("-")[1]) for name in cells if name.startswith("trees-")})
    points = [(count, *interval(_runs(cells, f"trees-{count}-"))) for count in counts]
    if points:
        x, mean, half = zip(*points, strict=True)
        axes.errorbar(x, mean, half, color=BLUE, marker="o", markersize=3, capsize=2, label="log-linear, trees alone")
    chosen = cells.get("entropy-1-chosen")
    if chosen is not None:
        value, error = interval(_runs(cells, f"entropy-1-{chosen['weight']:g}-"))
        style = {"color": ORANGE, "linestyle": "none", "marker": "s", "capsize": 2, "markersize": 4}
        axes.errorbar([chosen["trees"]], [value], [error], label="and text, by its entropy", **style)
    if "rules" in cells:
        axes.axhline(cells["rules"]["test"]["uas"], color=GREEN, label="rules, no trees")
    for side, line in (("left", "--"), ("right", ":")):
        if f"{side}-branching" in cells:
            height = cells[f"{side}-branching"]["test"]["uas"]
            axes.axhline(height, color="0.5", linestyle=line, label=f"{side}-branching")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
