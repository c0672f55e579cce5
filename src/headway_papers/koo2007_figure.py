"""How the learners of koo2007 converge, drawn with matplotlib (the extra `figures`).

Above, one panel per language: held-out UAS after each pass of non-projective training with the chosen C, also decoded
non-projectively, from the histories of the results. A pass of the perceptron and of EG goes through the
sentences one by one and moves the weights after each; a step of L-BFGS goes through all of them and moves the weights
once. Below, on all Danish training sentences, from `convergence.json` where there is one: EG's primal and dual, which
enclose the optimum, and how far the log-linear objective is above the least value that was reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway_papers.koo2010_figures import BLUE, GREEN, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES = {
    "perceptron": ("Perceptron", GREEN),
    "eg": ("Max-margin (EG)", BLUE),
    "loglinear": ("Log-linear (L-BFGS)", ORANGE),
}


def draw(cells: Mapping[str, Mapping[str, Any]], converged: Mapping[str, Any] | None, path: Path) -> None:
    """An SVG of the non-projective cells `LANGUAGE-LEARNER-np`, and of what `convergence.py` has measured."""
    import matplotlib
    from matplotlib.figure import Figure

    languages = sorted({name.rsplit("-", 2)[0] for name in cells})
    # the same data give the same file
    with matplotlib.rc_context({"svg.hashsalt": "headway", "axes.spines.top": False, "axes.spines.right": False}):
        width = max(2, len(languages))
        figure = Figure(figsize=(1 + 2.6 * width, 3.4 if converged is None else 6.4), layout="constrained")
        grid = figure.add_gridspec(1 if converged is None else 2, 2 * width)
        for k, language in enumerate(languages):
            axes = figure.add_subplot(grid[0, 2 * k : 2 * k + 2])
            _draw_held_out(axes, language, cells)
            if k == 0:
                axes.set_ylabel("held-out UAS")
                figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
        if converged is not None:
            _draw_dual(figure.add_subplot(grid[1, :width]), converged["eg"])
            _draw_objective(figure.add_subplot(grid[1, width:]), converged["loglinear"])
        figure.savefig(path, metadata={"Date": None})


def _draw_held_out(axes: Axes, language: str, cells: Mapping[str, Mapping[str, Any]]) -> None:
    """The best pass of each learner has a dot; the first passes of L-BFGS, far below, are cut off."""
    lowest = 100.0
    for learner, (label, colour) in LINES.items():
        cell = cells.get(f"{language}-{learner}-np")
        if cell is None:
            axes.plot([], [], color=colour, label=label)
            continue
        passes, scores = ([entry[name] for entry in cell["history"]] for name in ("pass", "dev"))
        best = max(range(len(scores)), key=lambda k: scores[k])
        lowest = min(lowest, scores[best])
        axes.plot(passes, scores, color=colour, label=label)
        axes.plot(passes[best], scores[best], "o", color=colour, markersize=4)
    axes.set_ylim(lowest - 6, lowest + 2)
    axes.set_title(language)
    axes.set_xlabel("pass")
    _grid(axes)


def _draw_dual(axes: Axes, found: Mapping[str, Any]) -> None:
    passes, primal, dual = _columns(found["history"], ("pass", "primal", "dual"))
    axes.plot(passes, primal, color=BLUE, label="primal")
    axes.plot(passes, dual, color=BLUE, linestyle="--", label="dual")
    axes.set_title(f"danish, EG, C = {found['c']:g}")
    axes.set_xlabel("pass")
    axes.set_ylabel("objective")
    axes.set_ylim(0, None)
    axes.legend(frameon=False)
    _grid(axes)


def _draw_objective(axes: Axes, found: Mapping[str, Any]) -> None:
    steps, values = _columns(found["history"], ("pass", "objective"))
    axes.plot(steps[:-1], [value / values[-1] - 1 for value in values[:-1]], color=ORANGE)
    axes.set_yscale("log")
    axes.set_title(f"danish, L-BFGS, C = {found['c']:g}")
    axes.set_xlabel("step")
    axes.set_ylabel("objective above the last, relative")
    _grid(axes)


def _columns(history: Sequence[Mapping[str, float]], names: Sequence[str]) -> list[list[float]]:
    return [[entry[name] for entry in history] for name in names]


def _grid(axes: Axes) -> None:
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
