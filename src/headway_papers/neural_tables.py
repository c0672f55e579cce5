"""The tables of the experiments with networks, from the cells there are; those that are missing are named."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from headway.arrays import Bools, Ints
from headway.evaluation import paired_bootstrap, sign_test
from headway_papers.markdown import markdown_table
from headway_papers.neural_plan import AMOUNTS, CELLS, LINEAR, MINILM, SEEDS, SHARE, TREEBANKS, Cell, attachment_of
from headway_papers.neural_training import known_words, unpacked

LEARNERS = {"loglinear": "tree likelihood", "cross-entropy": "cross-entropy", "margin": "margin"}
CONLLX = tuple(name for name, treebank in TREEBANKS.items() if not treebank.is_ud)
UD = ("gum", "hungarian", "bosque", "lassy")
# Test UAS of the paper's grand-sibling models, as in `headway_papers.koo2010_tables`.
KOO2010 = {"danish": 91.78, "dutch": 85.81, "portuguese": 93.03, "swedish": 91.36}
# Learner, taught or not, in words, and test UAS, mean of three draws, of `experiments/fernandes2012/partial`.
_PARTIAL = (
    ("loglinear", False, "sum over all trees with the known heads", "89.35"),
    ("cross-entropy", False, "the known heads alone", "88.98"),
    ("loglinear", True, "the sum, and what three networks learnt from it say of all heads", ""),
)
_ERRORS = ("expected_error_without_temperature", "expected_error")
_TAGS = ("upos", "xpos", "feats", "lemmas")


@dataclass(frozen=True)
class Results:
    """The cells of a folder."""

    folder: Path

    @cached_property
    def cells(self) -> dict[str, dict[str, Any]]:
        """By name."""
        return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(self.folder.glob("*.json"))}

    def of(
        self,
        treebank: str,
        model: str,
        learner: str,
        *,
        seeds: Iterable[int] = SEEDS,
        sentences: int | None = None,
        share: float = 1.0,
        taught: bool = False,
    ) -> dict[int, dict[str, Any]]:
        """The cells of a kind that there are, by seed."""
        names = {seed: Cell(treebank, model, learner, seed, sentences, share, taught).name for seed in seeds}
        return {seed: self.cells[name] for seed, name in names.items() if name in self.cells}

    def right(self, treebank: str, which: str, cells: Iterable[dict[str, Any]]) -> tuple[Ints, Ints]:
        """Right words of every sentence, over all the cells together, and the words that count, in one of them."""
        about = json.loads((self.folder / "treebanks" / f"{treebank}.json").read_text("utf-8"))
        lengths, plain = known_words(about)
        counted: Bools = plain if treebank in CONLLX else np.ones_like(plain)
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        rows = [unpacked(cell[which], len(plain)) & counted for cell in cells]
        return np.add.reduceat(np.sum(rows, axis=0), starts), np.add.reduceat(counted.astype(np.int64), starts)


def tables_text(folder: Path) -> str:
    """All tables."""
    results = Results(folder)
    made = {
        "ewt": _ewt(results),
        "conllx": _conllx(results),
        "learners": _learners(results),
        "calibration": _calibration(results),
        "partial": _partial(results),
        "ud": _ud(results),
        "curves": _curves(results),
    }
    return "\n".join(text + _missing(results, table) for table, text in made.items())


def _missing(results: Results, table: str) -> str:
    tables = {"curves": ("curves", "linear")}.get(table, (table,))
    seeds: dict[str, list[str]] = {}
    for own, cell in CELLS:
        if own in tables and cell.name not in results.cells:
            seeds.setdefault(cell.kind, []).append("together" if cell.together else str(cell.seed))
    names = [f"{kind} {', '.join(own)}" for kind, own in seeds.items()]
    return f"\nMissing, with their seeds: {'; '.join(names)}.\n" if names else ""


def _ewt(results: Results) -> str:
    header = [
        "learner",
        "test UAS",
        "LAS",
        "CoNLL 2018 UAS",
        "LAS",
        "UPOS",
        "XPOS",
        "FEATS",
        "lemmas",
        "int8 UAS",
        "LAS",
    ]
    rows = []
    for learner in ("loglinear", "cross-entropy"):
        cells = results.of("ewt", MINILM, learner).values()
        tests, int8 = [cell["test"] for cell in cells], [cell["int8"] for cell in cells if cell["int8"]]
        names = ("uas_2018", "las_2018", *_TAGS)
        figures = [_each(tests, "uas"), _each(tests, "las"), *(_mean(tests, name) for name in names)]
        rows.append([LEARNERS[learner], *figures, _mean(int8, "uas"), _mean(int8, "las")])
    title = "## UD English-EWT, MiniLM, gold tokens, predicted tags: mean, and each seed"
    return markdown_table(title, header, rows)


def _conllx(results: Results) -> str:
    rows = []
    for language in CONLLX:
        for learner, name in LEARNERS.items():
            tests = [cell["test"] for cell in results.of(language, "lstm", learner).values()]
            figures = [_each(tests, "uas_no_punct"), _each(tests, "las_no_punct")]
            rows.append([TREEBANKS[language].title, name, *figures, f"{KOO2010[language]:.2f}"])
            together = results.cells.get(Cell(language, "lstm", learner, 0, together=True).name)
            if together:
                figures = [f"{together['test'][score]:.2f}" for score in ("uas_no_punct", "las_no_punct")]
                title = f"{name}, the networks of all seeds together"
                rows.append([TREEBANKS[language].title, title, *figures, f"{KOO2010[language]:.2f}"])
    title = "## CoNLL-X, LSTM from scratch, gold tags, without punctuation: mean, and each seed"
    return markdown_table(title, ["language", "learner", "test UAS", "LAS", "koo2010's G+S UAS"], rows)


def _learners(results: Results) -> str:
    return "\n".join(_against(results, *pair) for pair in (("loglinear", "cross-entropy"), ("margin", "loglinear")))


def _against(results: Results, one: str, other: str) -> str:
    """Of a sentence, the right words of all seeds are compared together: it is the sentences that are resampled."""
    rows, pooled = [], []
    for treebank in ("ewt", *CONLLX):
        model = MINILM if treebank == "ewt" else "lstm"
        ours, theirs = (results.of(treebank, model, learner) for learner in (one, other))
        seeds = sorted(ours.keys() & theirs.keys())
        if not seeds:
            continue
        pair = [[cells[seed] for seed in seeds] for cells in (ours, theirs)]
        counts = _compared(results, treebank, pair)
        if treebank != "ewt":
            pooled.append(counts)
        rows.append([TREEBANKS[treebank].title, str(len(seeds)), *_tested(counts)])
    if len(pooled) > 1:
        together = [np.concatenate(parts) for parts in zip(*pooled, strict=True)]
        rows.append(["CoNLL-X together", "", *_tested(together)])
    header = ["treebank", "seeds", "UAS", "95%", "p", "p, sign test", "LAS", "95%", "p", "p, sign test"]
    minus = f"{LEARNERS[one].capitalize()} minus {LEARNERS[other]}"
    return markdown_table(
        f"## {minus}, test: points, interval and p of a paired bootstrap, p of a sign test", header, rows
    )


def _calibration(results: Results) -> str:
    rows = []
    for treebank, model in (("ewt", MINILM), *((name, "lstm") for name in UD)):
        for learner, name in LEARNERS.items():
            cells = results.of(treebank, model, learner).values()
            if cells:
                errors = [100 * mean(cell["dev"]["calibration"][key] for cell in cells) for key in _ERRORS]
                temperature = mean(cell["temperature"] for cell in cells)
                figures = [f"{number:.2f}" for number in (*errors, temperature)]
                rows.append([TREEBANKS[treebank].title, name, *figures])
    title = "## Expected calibration error of arcs, development sentences, %: mean of the seeds"
    return markdown_table(title, ["treebank", "learner", "as trained", "after one temperature", "temperature"], rows)


def _compared(results: Results, treebank: str, pair: Sequence[Sequence[dict[str, Any]]]) -> list[Ints]:
    """Of every sentence, over all seeds: right heads of both, right arcs of both, and words."""
    found = [results.right(treebank, which, cells) for which in ("right_heads", "right_arcs") for cells in pair]
    return [*(right for right, _ in found), found[0][1] * len(pair[0])]


def _tested(counts: Sequence[Ints]) -> list[str]:
    cells = []
    *right, words = counts
    for a, b in (right[:2], right[2:]):
        test = paired_bootstrap(a, b, words)
        interval = f"{test.low:+.2f} to {test.high:+.2f}"
        cells += [f"{test.difference:+.2f}", interval, f"{test.p_value:.4f}", f"{sign_test(a, b).p_value:.4f}"]
    return cells


def _partial(results: Results) -> str:
    rows = []
    for learner, taught, name, linear in _PARTIAL:
        tests = [cell["test"] for cell in results.of("danish", "lstm", learner, share=SHARE, taught=taught).values()]
        rows.append([name, _each(tests, "uas_no_punct"), linear])
    title = "## Danish, three tenths of the heads, LSTM: mean, and each draw of the heads"
    return markdown_table(title, ["learnt from", "test UAS", "linear"], rows)


def _ud(results: Results) -> str:
    rows = []
    for treebank in UD:
        for model in ("lstm", MINILM) if treebank == "gum" else ("lstm",):
            tests = [cell["test"] for cell in results.of(treebank, model, "loglinear").values()]
            names = ("uas_2018", "las_2018", *_TAGS)
            figures = [_each(tests, "uas"), _each(tests, "las"), *(_mean(tests, name) for name in names)]
            rows.append([TREEBANKS[treebank].title, model, *figures])
    header = ["treebank", "encoder", "test UAS", "LAS", "CoNLL 2018 UAS", "LAS", "UPOS", "XPOS", "FEATS", "lemmas"]
    return markdown_table("## Other UD treebanks, gold tokens, predicted tags: mean, and each seed", header, rows)


def _curves(results: Results) -> str:
    rows = []
    for treebank, model in (("danish", "lstm"), ("ewt", MINILM)):
        uas, las = attachment_of(treebank)
        for amount in (*AMOUNTS, None):
            row = [TREEBANKS[treebank].title, "all" if amount is None else str(amount)]
            for own in (model, *LINEAR):
                learner, seed = ("margin", 0) if own in LINEAR else ("loglinear", 1)
                cells = results.of(treebank, own, learner, seeds=[seed], sentences=amount).values()
                tests = [cell["test"] for cell in cells]
                row.append(f"{_mean(tests, uas)} / {_mean(tests, las)}" if tests else "")
            rows.append(row)
    header = ["treebank", "sentences", "network", "arc-factored", "grand-sibling"]
    title = "## Learning curves, test UAS / LAS (Danish: without punctuation)"
    return markdown_table(title, header, rows)


def _mean(figures: Sequence[dict[str, Any]], name: str) -> str:
    """Of cells that have the figure: treebanks lack columns."""
    found = [each[name] for each in figures if name in each]
    return f"{mean(found):.2f}" if found else ""


def _each(figures: Sequence[dict[str, Any]], name: str) -> str:
    if len(figures) < 2:
        return _mean(figures, name)
    return f"{_mean(figures, name)} ({', '.join(f'{each[name]:.2f}' for each in figures)})"
