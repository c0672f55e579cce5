"""The tables and figures of `luque2012`, from the cells there are (matplotlib: the extra `figures`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headway_papers.koo2010_figures import BLUE, GREEN, ORANGE, PURPLE
from headway_papers.markdown import markdown_table

Cells = Mapping[str, Any]
TITLES = {"wsj": "WSJ sample", "ewt": "UD English-EWT"}
METHODS = {
    "det-1": "DET",
    "det-2": "DET+F",
    "spectral-paper": "spectral, the paper's statistics",
    "spectral": "spectral, ours",
    "spectral-scaled": "spectral, ours, scaled",
    "em": "EM",
}
SPECTRAL = ("spectral-paper", "spectral", "spectral-scaled")
PAPER = {"det-1": "69.45", "det-2": "75.91", "spectral-paper": "80.44", "em": "81.68"}  # table 1: all of the WSJ
EM_ITERATIONS = (5, 10, 25, 100)
_CONFIGURATIONS = {"LEX": GREEN, "LEX+F": BLUE, "LEX+FCP": ORANGE}


def tables_text(found: Mapping[str, Cells]) -> str:
    """Table 1, footnote 7, the lexicalised grammars, and the times; rows are treebanks."""
    tables = (_table_1, _footnote_7, _lexical, _floored, _times, _speed)
    return "\n".join(table(found) for table in tables)


def _table_1(found: Mapping[str, Cells]) -> str:
    rows = [["paper, all of the WSJ (ten times our sample)", *(PAPER.get(method, "") for method in METHODS)]]
    for name, cells in found.items():
        table = cells.get("table-1", {})
        rows.append([TITLES[name], *(_method(table.get(method)) for method in METHODS)])
    title = (
        "## Table 1: test UAS without punctuation (with punctuation) of grammars over tags, MBR\n\n"
        "States, and EM's start and iteration, are the best on the development sentences."
    )
    return markdown_table(title, ["treebank", *METHODS.values()], rows)


def _method(row: Cells | None) -> str:
    if row is None:
        return ""
    states = f", {row['states']} states" if "states" in row else ""
    iteration = f", iteration {row['iteration']}" if "iteration" in row else ""
    return f"{row['uas']:.2f} ({row['uas_with_punctuation']:.2f}){states}{iteration}"


def _footnote_7(found: Mapping[str, Cells]) -> str:
    rows = [["paper, all of the WSJ, dev", "62.65", "68.52", "72.72", "74.80"]]
    for name, cells in found.items():
        for part in ("dev", "test"):
            dets = [cells.get(f"det-{states}", {}).get(part) for states in (1, 2)]
            found_by = ("" if det is None else f"{det[key]:.2f}" for det in dets for key in ("viterbi", "uas"))
            rows.append([f"{TITLES[name]}, {part}", *found_by])
    header = ["sentences", "DET, Viterbi", "DET, MBR", "DET+F, Viterbi", "DET+F, MBR"]
    return markdown_table(
        "## Footnote 7: the best tree, or the one of least risk (UAS without punctuation)", header, rows
    )


def _lexical(found: Mapping[str, Cells]) -> str:
    rows = []
    for name, cells in found.items():
        for configuration in _CONFIGURATIONS:
            cell = cells.get(f"lexical-{configuration}")
            if cell is not None:
                best = max(scores["uas"] for scores in cell["dev"])
                alone = [f"{cell['alone'][part]['uas']:.2f}" for part in ("dev", "test")]
                row = [
                    TITLES[name],
                    configuration,
                    *alone,
                    str(cell["best"]),
                    f"{best:.2f}",
                    f"{cell['test']['uas']:.2f}",
                ]
                rows.append(row)
    header = ["treebank", "grammar", "alone: dev", "test", "with spectral: states", "dev", "test"]
    return markdown_table(
        "## Lexicalised grammars, and with hidden states by equation (21): UAS without punctuation", header, rows
    )


def _floored(found: Mapping[str, Cells]) -> str:
    rows = []
    for name, cells in found.items():
        for method in SPECTRAL:
            row = cells.get("table-1", {}).get(method)
            if row is not None:
                share = f"{100 * row['negative']:.1f}%"
                rows.append([TITLES[name], METHODS[method], str(row["states"]), share, str(row["negative_sentences"])])
    header = [
        "test sentences",
        "method",
        "states",
        "arcs with a negative marginal (floored)",
        "sentences with a negative Z",
    ]
    return markdown_table("## Spectral grammars only come near to distributions", header, rows)


def _times(found: Mapping[str, Cells]) -> str:
    rows = []
    for name, cells in found.items():
        timings = cells.get("timings")
        if timings is None:
            continue
        seconds = timings["seconds"]
        for method in (each for each in SPECTRAL if each in timings["reached"]):
            reached = timings["reached"][method]
            taken = [f"{1000 * seconds[step]:.1f}" for step in ("trie", method)]
            row = [TITLES[name], METHODS[method], *taken, f"{reached['uas']:.2f}"]
            rows.append([*row, *_reached(reached, seconds, seconds[method])])
    header = [
        "treebank",
        "method",
        "ms to count",
        "ms to learn",
        "dev UAS",
        "EM's starts that reach it",
        "soonest",
        "ms",
        "times",
        "times, counting included",
        "over sequences: ms",
        "times",
    ]
    title = (
        "## Time to learn, one thread, in one run\n\n"
        "EM: of all numbers of states and starts, the soonest, at the time that one start takes; a user does not know "
        "which it is. Where none reaches the score, all iterations of the one that comes nearest. `over sequences` is "
        "the same code without sharing the prefixes of sequences, as the paper has it. Counting the sequences of "
        "tagged trees comes first for both methods; only one column includes it."
    )
    return markdown_table(title, header, rows)


def _reached(reached: Cells, seconds: Cells, spectral: float) -> list[str]:
    states, iteration = reached["soonest"]["states"], reached["soonest"]["iteration"]
    row = [f"{reached['reached']} of {reached['starts']}", f"{states} states, {iteration} iterations"]
    more = "" if reached["reached"] else "> "
    for name in ("em", "em-sequences"):
        total = iteration * seconds[f"{name}-{states}"]
        row += [f"{more}{1000 * total:.0f}", f"{more}{total / spectral:.0f}"]
        if name == "em":
            row.append(f"{more}{(total + seconds['trie']) / (spectral + seconds['trie']):.1f}")
    return row


def _speed(found: Mapping[str, Cells]) -> str:
    rows = []
    for name, cells in found.items():
        cell = cells.get("parsing")
        if cell is not None:
            row = [TITLES[name], str(cell["states"]), f"{cell['words_per_sentence']:.1f}"]
            rows.append([*row, f"{cell['sentences_per_second']:.0f}"])
    header = ["test sentences", "states", "words a sentence", "sentences a second"]
    return markdown_table("## Parsing speed, one thread, from tagged words to trees", header, rows)


def draw(found: Mapping[str, Cells], folder: Path, prefix: str) -> None:
    """Figures 1 and 2, a panel a treebank, as SVG and PNG."""
    if not found:
        return
    import matplotlib
    from matplotlib.figure import Figure

    # the same data give the same file
    style: Any = {"svg.hashsalt": "headway", "axes.spines.top": False, "axes.spines.right": False}
    for name, panel in (("figure-1", _figure_1), ("figure-2", _figure_2)):
        with matplotlib.rc_context(style):
            figure = Figure(figsize=(4.6 * len(found) + 0.4, 4.2), layout="constrained")
            for axes, (treebank, cells) in zip(
                figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True
            ):
                panel(axes, cells)
                axes.set_title(TITLES[treebank], fontsize=10)
                axes.set_xlabel("hidden states")
                axes.set_ylabel("dev UAS")
                axes.grid(axis="y", color="0.9")
                axes.set_axisbelow(True)
            handles, labels = figure.axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=8)
            figure.savefig(folder / f"{prefix}{name}.svg", metadata={"Date": None})
            figure.savefig(folder / f"{prefix}{name}.png", dpi=160, metadata={"Software": None})


def _figure_1(axes: Any, cells: Cells) -> None:
    for method, line in (("det-1", ":"), ("det-2", "--")):
        if method in cells:
            axes.axhline(cells[method]["dev"]["uas"], color="0.4", linestyle=line, label=METHODS[method])
    for method, colour, marker in zip(SPECTRAL, (GREEN, ORANGE, PURPLE), "^os", strict=True):
        if method in cells:
            scores = [scores["uas"] for scores in cells[method]["dev"]]
            axes.plot(cells[method]["states"], scores, color=colour, marker=marker, markersize=3, label=METHODS[method])
    for iteration, line in zip(EM_ITERATIONS, (":", "-.", "--", "-"), strict=True):
        curve = em_curve(cells, iteration)
        if curve:
            axes.plot(
                *zip(*curve, strict=True),
                color=BLUE,
                linestyle=line,
                linewidth=1.2,
                label=f"EM, {iteration} iterations",
            )


def em_curve(cells: Cells, iteration: int) -> list[tuple[int, float]]:
    """Number of states and the mean development score of all starts after some iterations."""
    found: dict[int, list[float]] = {}
    for name, cell in cells.items():
        if name.startswith("em-") and iteration in cell["iterations"]:
            score = cell["dev"][cell["iterations"].index(iteration)]["uas"]
            found.setdefault(int(name.split("-")[1]), []).append(score)
    return [(states, float(np.mean(scores))) for states, scores in sorted(found.items())]


def _figure_2(axes: Any, cells: Cells) -> None:
    for configuration, colour in _CONFIGURATIONS.items():
        cell = cells.get(f"lexical-{configuration}")
        if cell is None:
            continue
        axes.axhline(cell["alone"]["dev"]["uas"], color=colour, linestyle="--", label=configuration)
        scores = [scores["uas"] for scores in cell["dev"]]
        axes.plot(cell["states"], scores, color=colour, marker="o", markersize=3, label=f"{configuration} + spectral")
