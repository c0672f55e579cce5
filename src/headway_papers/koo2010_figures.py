"""koo2010's figures 3 and 4, measured on held-out sentences and drawn with matplotlib (the extra `figures`).

Figure 3, lazy decoding: the percentage of head automata decoded again at each step, averaged over the sentences that
are still running. Few sentences run long, so steps are put together in bins that grow by a tenth.
Figure 4, early stopping: what a limit of K steps does to UAS, to certificates, and to how many trees are those of
K = 5000.

Steps and K are on logarithmic axes, where the paper's are linear: nearly everything happens within the first hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headway.extras import require_extra
from headway.inference.dual_decomposition import Decoded, Status, decode
from headway_papers.corpora import Say, write_json
from headway_papers.koo2010_random import Order
from headway_papers.koo2010_solvers import HeldOut, Missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEPS = 5000
TITLES: dict[Order, str] = {"sibling": "Sib", "grandsibling": "G+S"}
# Of Okabe and Ito, told apart by everyone
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
_COLOURS: dict[Order, str] = {"sibling": BLUE, "grandsibling": ORANGE}
_LINES = {"same": ("% as with K = 5000", GREEN), "certified": ("% certificates", BLUE), "uas": ("UAS", ORANGE)}


def require_matplotlib() -> None:
    """Call this before hours of experiments, not after them."""
    require_extra("matplotlib", "figures", "drawing the figures")


def measure(
    order: Order,
    held_out: Callable[[], HeldOut],
    limits: Sequence[int],
    signed: Mapping[str, Any],
    folder: Path,
    missing: Missing,
    say: Say,
) -> None:
    """The numbers behind both figures for one model, unless they are there."""
    path, own = folder / f"{order}.json", {**signed, "limits": list(limits), "steps": STEPS}
    if not missing(path, own):
        return
    data = held_out()
    whole = _decode(data, STEPS)
    early = []
    for k in limits:
        found = _decode(data, k)
        same = sum(np.array_equal(a.heads, b.heads) for a, b in zip(found, whole, strict=True))
        certified = sum(each.status is Status.CERTIFIED for each in found)
        shares = {"certified": 100 * certified / len(found), "same": 100 * same / len(found)}
        early.append({"k": k, "uas": data.uas([each.heads for each in found]), **shares})
    lazy = recomputed([each.trace.recomputed / len(each.heads) for each in whole])
    write_json(path, {"signature": own, "sentences": len(whole), "lazy": lazy, "early": early})
    say(f"figures 3 and 4, {order}: {len(whole)} sentences")


def _decode(data: HeldOut, steps: int) -> list[Decoded]:
    return [decode(parts, single_root=data.single_root, exact=False, iterations=steps) for parts in data.parts]


def recomputed(shares: Sequence[Any]) -> list[dict[str, float]]:
    """In bins of steps: the first, the last, how many sentences reach it, and the mean percentage over those running.

    >>> recomputed([np.array([1.0, 0.5]), np.array([1.0])])
    [{'first': 1, 'last': 1, 'running': 2, 'percent': 100.0}, {'first': 2, 'last': 2, 'running': 1, 'percent': 50.0}]
    """
    bins = []
    first, longest = 1, max(map(len, shares), default=0)
    while first <= longest:
        last = min(longest, max(first, int(1.1 * first)))
        within = [share[first - 1 : last] for share in shares if len(share) >= first]
        mean = 100 * float(np.concatenate(within).mean())
        bins.append({"first": first, "last": last, "running": len(within), "percent": round(mean, 3)})
        first = last + 1
    return bins


def draw(data: Mapping[Order, Mapping[str, Any]], output: Path, prefix: str) -> None:
    """Both figures from the measurements there are, as SVG and PNG."""
    if not data:
        return
    import matplotlib
    from matplotlib.figure import Figure

    # the same data give the same file
    with matplotlib.rc_context({"svg.hashsalt": "headway", "axes.spines.top": False, "axes.spines.right": False}):
        lazy = Figure(figsize=(6, 3.6), layout="constrained")
        _draw_lazy(lazy, data)
        early = Figure(figsize=(8.4, 3.6), layout="constrained")
        _draw_early(early, data)
        for name, figure in (("figure3", lazy), ("figure4", early)):
            figure.savefig(output / f"{prefix}{name}.svg", metadata={"Date": None})
            figure.savefig(output / f"{prefix}{name}.png", dpi=160, metadata={"Software": None})


def _draw_lazy(figure: Figure, data: Mapping[Order, Mapping[str, Any]]) -> None:
    axes = figure.subplots()
    for order, found in data.items():
        middle = [(row["first"] + row["last"]) / 2 for row in found["lazy"]]
        axes.plot(middle, [row["percent"] for row in found["lazy"]], color=_COLOURS[order], label=TITLES[order])
    axes.set_xscale("log")
    axes.set_ylim(0, None)
    axes.set_xlabel("step of dual decomposition")
    axes.set_ylabel("% of head automata decoded again")
    axes.legend(frameon=False)
    _plain_ticks(axes)


def _draw_early(figure: Figure, data: Mapping[Order, Mapping[str, Any]]) -> None:
    panels = figure.subplots(1, len(data), sharey=True, squeeze=False)[0]
    for axes, (order, found) in zip(panels, data.items(), strict=True):
        k = [row["k"] for row in found["early"]]
        for name, (label, colour) in _LINES.items():
            axes.plot(k, [row[name] for row in found["early"]], color=colour, label=label)
        axes.set_xscale("log")
        axes.set_title(TITLES[order])
        axes.set_xlabel("limit K on the steps")
        _plain_ticks(axes)
    panels[0].set_ylabel("% of sentences, of heads for UAS")
    panels[0].set_ylim(0, 101)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)


def _plain_ticks(axes: Axes) -> None:
    """1, 10, 100 rather than powers of ten."""
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
