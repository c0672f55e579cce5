"""luque2012's consistency, seen: strings drawn from a known automaton, and how far the learnt string weights are off.

`TRUTH` is a PNFA of three states over three symbols, and not deterministic: a symbol may lead to several states. The
spectral grammar of three states is learnt from the first 100, 300, ..., 10^6 strings drawn, for several seeds, with the
paper's statistics and with ours. Errors are over all strings of up to `LONGEST` symbols: the largest difference of
weight and probability, and the sum of all (L1). Beside them stand the errors of relative frequencies, which know
nothing of states: they show what is chance in the strings that were drawn.

Strings are the right modifiers of the root: a treebank in which every word is a root. A trie costs O(symbols drawn).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headway import __version__
from headway.arrays import Floats, Ints
from headway.inference.operator_automata import RIGHT
from headway.learning.modifier_trie import ModifierTrie
from headway.learning.spectral import CONTEXT, LEAST, RIDGE, spectral_grammar
from headway_papers.corpora import Say, is_done, write_json
from headway_papers.koo2010_figures import BLUE, GREEN, ORANGE, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = 0
LONGEST = 8
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
SEEDS = 5
BAR = 1e-3  # the largest error that 10^6 strings may leave
COUNTED = "relative frequencies"
# context, ridge, and how often strings of two and more symbols must have been seen
SETTINGS: dict[str, tuple[int, float, float]] = {
    "the paper's: context 1, ridge 0": (1, 0.0, 0.0),
    f"context 1, ridge {RIDGE:g}": (1, RIDGE, 0.0),
    "context 2, ridge 0": (2, 0.0, 0.0),
    f"context 2, ridge {RIDGE:g}": (2, RIDGE, 0.0),
    f"the default: context {CONTEXT}, ridge {RIDGE:g}, least {LEAST:g}": (CONTEXT, RIDGE, LEAST),
}
_STYLES = [(BLUE, "-"), (BLUE, "--"), (ORANGE, "-"), (ORANGE, "--"), ("black", "-."), (GREEN, ":")]
_LINES = dict(zip([*SETTINGS, COUNTED], _STYLES, strict=True))
_PANELS = {"largest": "largest error of a string", "total": f"L1 error, strings of up to {LONGEST}"}


@dataclass(frozen=True)
class Automaton:
    """alpha_1 (s,), alpha_inf (s,) and A (l, s, s), [symbol - 1, to, from]."""

    initial: Floats
    final: Floats
    operators: Floats

    def weights(self, longest: int) -> Floats:
        """Of all strings of up to so many symbols, by length and then in alphabetical order.

        >>> fair = Automaton(np.ones(1), np.array([0.5]), np.full((2, 1, 1), 0.25))
        >>> fair.weights(2).tolist()
        [0.5, 0.125, 0.125, 0.03125, 0.03125, 0.03125, 0.03125]
        """
        layers = [self.initial[None]]
        for _ in range(longest):
            layers.append(np.einsum("aij,xj->xai", self.operators, layers[-1]).reshape(-1, len(self.initial)))
        return np.concatenate(layers) @ self.final

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Strings one after the other, of a PNFA: their lengths, and their symbols (1 to l).

        All strings go one step at a time: each stops, or takes a symbol and a state.
        """
        s = len(self.initial)
        ways = np.column_stack((self.final, self.operators.transpose(2, 0, 1).reshape(s, -1))).cumsum(axis=1)
        going = np.arange(count)
        state = np.searchsorted(self.initial.cumsum(), rng.random(count) * self.initial.sum(), side="right")
        places, drawn = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        while len(going):
            chosen = rng.random(len(going)) * ways[state, -1]
            way = np.zeros(len(going), np.int64)
            for threshold in ways[:, :-1].T:
                way += chosen >= threshold[state]
            on = way > 0
            going = going[on]
            symbol, state = np.divmod(way[on] - 1, s)
            places.append(going)
            drawn.append(symbol + 1)
        place = np.concatenate(places)
        return np.bincount(place, minlength=count), np.concatenate(drawn)[np.argsort(place, kind="stable")]


TRUTH = Automaton(
    initial=np.array([0.6, 0.3, 0.1]),
    final=np.array([0.10, 0.20, 0.40]),
    operators=np.array(
        [
            [[0.35, 0.00, 0.00], [0.15, 0.05, 0.20], [0.00, 0.10, 0.00]],
            [[0.00, 0.00, 0.10], [0.25, 0.35, 0.00], [0.00, 0.10, 0.00]],
            [[0.05, 0.20, 0.00], [0.00, 0.00, 0.05], [0.10, 0.00, 0.25]],
        ]
    ),
)


@dataclass(frozen=True)
class Row:
    """What one way to estimate makes of so many strings."""

    setting: str
    seed: int
    strings: int
    largest: float
    total: float


def recovery(truth: Automaton, sizes: Sequence[int], seeds: Sequence[int], longest: int = LONGEST) -> list[Row]:
    """Errors by setting, seed and number of strings; fewer strings are the first of the most."""
    expected = truth.weights(longest)
    rows = []
    for seed in seeds:
        lengths, symbols = truth.draw(max(sizes), np.random.default_rng(seed))
        for size in sizes:
            trie = trie_of(len(truth.operators), lengths[:size], symbols[: lengths[:size].sum()])
            found = {name: learnt(trie, len(truth.initial), *how).weights(longest) for name, how in SETTINGS.items()}
            found[COUNTED] = frequencies(trie, longest)
            for name, weights in found.items():
                error = np.abs(weights - expected)
                rows.append(Row(name, seed, size, _rounded(error.max()), _rounded(error.sum())))
    return rows


def trie_of(symbols: int, lengths: Ints, strings: Ints) -> ModifierTrie:
    """Strings as the right modifiers of the root."""
    return ModifierTrie.of(symbols + 1, lengths, strings, np.zeros_like(strings))


def learnt(trie: ModifierTrie, states: int, context: int, ridge: float, least: float) -> Automaton:
    """The spectral automaton of the strings of `trie_of`."""
    grammar = spectral_grammar(trie, states, context=context, ridge=ridge, least=least)
    return Automaton(grammar.initial[ROOT, RIGHT], grammar.final[ROOT, RIGHT], grammar.operators[ROOT, RIGHT, 1:])


def frequencies(trie: ModifierTrie, longest: int) -> Floats:
    """Relative frequencies of the strings of `trie_of`, in the order of `Automaton.weights`."""
    first, last = trie.starts[2 * ROOT + RIGHT : 2 * ROOT + RIGHT + 2]
    base, depths = trie.size - 1, trie.depths[first:last]
    parents, symbols = trie.parents[first:last] - first, trie.symbols[first:last]
    places = np.zeros(last - first, np.int64)  # first of its length, then after all shorter strings
    for depth in range(1, longest + 1):
        here = depths == depth
        places[here] = base * places[parents[here]] + symbols[here] - 1
    sizes = base ** np.arange(longest + 1)
    before = np.concatenate(([0], sizes.cumsum()))
    short = depths <= longest
    places = before[depths[short]] + places[short]
    found = np.zeros(before[-1])
    found[places] = trie.ends[first:last][short]  # every string has a node of its own
    return found / float(trie.through[first])


def plot(rows: Sequence[Row]) -> Figure:
    """Errors over the number of strings, a line a setting: the median of the seeds, and their range shaded."""
    import matplotlib
    from matplotlib.figure import Figure

    sizes, seeds = sorted({row.strings for row in rows}), sorted({row.seed for row in rows})
    with matplotlib.rc_context({"axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(9.0, 4.2), layout="constrained")
        panels = figure.subplots(1, len(_PANELS))
        for axes, (error, title) in zip(panels, _PANELS.items(), strict=True):
            for name, (colour, line) in _LINES.items():
                found = {(row.seed, row.strings): getattr(row, error) for row in rows if row.setting == name}
                values = np.array([[found[seed, size] for size in sizes] for seed in seeds])
                axes.fill_between(sizes, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.12, linewidth=0)
                axes.plot(sizes, np.median(values, axis=0), line, color=colour, label=name)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("strings learnt from")
            axes.set_title(title, fontsize=10)
            axes.grid(color="0.9")
            axes.set_axisbelow(True)
        panels[0].axhline(BAR, color="0.4", linewidth=0.8)
        panels[0].annotate(f"{BAR:g}", (min(sizes), BAR), xytext=(0, 3), textcoords="offset points", fontsize=8)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure


def run(directory: Path, *, sizes: Sequence[int] = SIZES, seeds: int = SEEDS, say: Say = print) -> None:
    """Write `recovery.json`, unless it is there, and `recovery.svg`."""
    require_matplotlib()
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "recovery.json"
    truth = {name: value.tolist() for name, value in asdict(TRUTH).items()}
    signed = {"headway": __version__, "truth": truth, "sizes": list(sizes), "seeds": seeds, "longest": LONGEST}
    signed["settings"] = {name: list(how) for name, how in SETTINGS.items()}
    if not is_done(path, signed):
        rows = recovery(TRUTH, sizes, range(seeds))
        write_json(path, {"signature": signed, **_known(TRUTH), "rows": [asdict(row) for row in rows]})
    rows = [Row(**row) for row in json.loads(path.read_text("utf-8"))["rows"]]
    _save(plot(rows), directory / "recovery.svg")
    for name in _LINES:
        errors = [row.largest for row in rows if row.setting == name and row.strings == max(sizes)]
        say(f"recovery from {max(sizes)} strings, {name}: largest error {max(errors):.2g} of {seeds} seeds")


def _known(truth: Automaton) -> dict[str, Any]:
    """How much of all probability the strings have, and P's singular values with context 1: three that are not zero."""
    moves = truth.operators.sum(axis=0)
    reached = np.linalg.solve(np.eye(len(moves)) - moves, truth.initial)  # how often each state is expected
    forward = np.column_stack((truth.initial, *(a @ reached for a in truth.operators)))
    backward = np.vstack((truth.final, truth.operators.sum(axis=1)))
    values = np.linalg.svd(backward @ forward, compute_uv=False)
    return {
        "probability": _rounded(truth.weights(LONGEST).sum()),
        "symbols_a_string": _rounded((moves @ reached).sum()),
        "singular_values": [_rounded(value) for value in values[: len(moves)]],
    }


def _save(figure: Figure, path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "headway"}):  # the same rows give the same file
        figure.savefig(path, metadata={"Date": None})


def _rounded(value: float) -> float:
    """Six digits: the rest differs between machines."""
    return float(f"{value:.6g}")
