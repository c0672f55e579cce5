"""The tables of `koo2010`, from the cells there are, with the paper's figures in brackets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway_papers import koo2010_solvers
from headway_papers.koo2010_figures import TITLES
from headway_papers.koo2010_random import WAYS, Order
from headway_papers.koo2010_solvers import METHODS
from headway_papers.markdown import markdown_table


@dataclass(frozen=True)
class PaperRow:
    """A language of the paper's table 1: UAS, % certificates, seconds a sentence to parse and to train."""

    uas: float | None = None
    certified: float | None = None
    parsing: float | None = None
    training: float | None = None


PAPER_MST = {
    "danish": 89.74, "dutch": 82.33, "portuguese": 90.68, "slovene": 82.39, "swedish": 88.79, "turkish": 75.66
}  # fmt: skip
PAPER: dict[Order, dict[str, PaperRow]] = {
    "sibling": {
        "danish": PaperRow(91.08, 99.07, 0.053, 0.051),
        "dutch": PaperRow(84.81, 98.19, 0.035, 0.046),
        "portuguese": PaperRow(92.57, 99.65, 0.047, 0.077),
        "slovene": PaperRow(84.89, 90.55, 0.158, 0.054),
        "swedish": PaperRow(90.10, 98.71, 0.035, 0.036),
        "turkish": PaperRow(77.14, 98.72, 0.021, 0.016),
    },
    "grandsibling": {
        "danish": PaperRow(91.78, 98.45, 0.169, 0.109),
        "dutch": PaperRow(85.81, 97.93, 0.120, 0.048),
        "portuguese": PaperRow(93.03, 99.31, 0.257, 0.103),
        "slovene": PaperRow(86.21, 95.27, 0.295, 0.130),
        "swedish": PaperRow(91.36, 98.97, 0.141, 0.055),
        "turkish": PaperRow(77.55, 99.04, 0.047, 0.036),
    },
}
# The paper's table 3, its validation sets: Sib, P-Sib, G+S, P-G+S
PAPER_PROJECTIVE = {"PTB": (92.19, 92.34, 92.71, 92.70), "PDT": (86.41, 85.67, 87.40, 86.43)}


def tables_text(results: Path, first_order: Path) -> str:
    """Tables 1 to 3 from the files there are; the paper's figures in brackets."""
    tested, solved, projective = (read_cells(results / f"table{number}") for number in (1, 2, 3))
    languages = sorted({name.rsplit("-", 1)[0] for name in tested})
    return "\n".join(
        [
            _accuracy(languages, tested, _first_order(first_order)),
            _proofs(languages, tested),
            _solvers(solved),
            _random(solved),
            _relaxations(solved),
            _projective(languages, tested, projective),
        ]
    )


def read_cells(folder: Path) -> dict[Any, dict[str, Any]]:
    """The cells of a folder by name, those of the sibling model first."""
    found = sorted(folder.glob("*.json"), key=lambda path: ("grandsibling" in path.stem, path.stem))
    return {path.stem: json.loads(path.read_text("utf-8")) for path in found}


def _first_order(results: Path) -> dict[str, float]:
    """UAS of our best arc-factored parser a language, from the experiment `first_order`."""
    files = [path for path in sorted(results.glob("*.json")) if "-" not in path.stem]
    return {path.stem: json.loads(path.read_text("utf-8"))["test"]["uas_no_punct"] for path in files}


def _accuracy(languages: Sequence[str], cells: Mapping[str, Any], mst: Mapping[str, float]) -> str:
    header = ["language", "MST", "Sib UAS", "Sib LAS", "G+S UAS", "G+S LAS"]
    rows = []
    for language in languages:
        row = [language, _beside(mst.get(language), PAPER_MST.get(language))]
        for order in PAPER:
            cell, theirs = cells.get(f"{language}-{order}"), PAPER[order].get(language, PaperRow())
            test = None if cell is None else cell["exact"]["test"]
            row.append(_beside(test and test["uas_no_punct"], theirs.uas))
            row.append(_beside(test and test["las_no_punct"], None))
        rows.append(row)
    title = "## Table 1, accuracy: test, without punctuation (in brackets the paper's)"
    return markdown_table(title, header, rows)


def _proofs(languages: Sequence[str], cells: Mapping[str, Any]) -> str:
    header = ["language", "model", "% certificates, K = 5000", "% proved with exact completion"]
    header += ["seconds a sentence, K = 5000", "exact", "words a second, exact", "exact / K = 5000, total time"]
    header += ["training seconds", "a sentence and pass", "% right heads left by pruning", "heads a word"]
    rows = []
    for language in languages:
        for order in PAPER:
            cell = cells.get(f"{language}-{order}")
            if cell is not None:
                rows.append([language, TITLES[order], *_proof_row(cell, PAPER[order].get(language, PaperRow()))])
    title = "## Table 1, proofs and speed: test, times of the whole parser (in brackets the paper's, of 2010 machines)"
    return markdown_table(title, header, rows)


def _proof_row(cell: Mapping[str, Any], theirs: PaperRow) -> list[str]:
    exact, dual, training, pruning = (cell[name] for name in ("exact", "dual", "training", "pruning"))
    sentences, words = exact["test"]["sentences"], exact["test"]["tokens"]
    steps = training["sentences"] * training["epochs"]
    return [
        _beside(_proved(dual), theirs.certified),
        _beside(_proved(exact), None),
        _beside(dual["seconds"] / sentences, theirs.parsing, 4),
        _beside(exact["seconds"] / sentences, None, 4),
        f"{words / exact['seconds']:,.0f}",
        f"{exact['seconds'] / dual['seconds']:.2f}",
        f"{training['seconds']:.0f}",
        _beside(training["seconds"] / steps, theirs.training, 4),
        f"{pruning['recall']:.2f}",
        f"{pruning['heads_per_word']:.1f}",
    ]


def _proved(cell: Mapping[str, Any]) -> float:
    """% of the sentences whose tree is proved the best."""
    statuses: dict[str, int] = cell["statuses"]
    proved = sum(count for status, count in statuses.items() if status != "ITERATION_LIMIT")
    return 100 * proved / max(1, sum(statuses.values()))


def _solvers(cells: Mapping[str, Any]) -> str:
    header = ["model", "method", "UAS", "% solved", "CPU seconds a sentence"]
    rows, compared = [], 0
    for order in PAPER:
        for name, method in METHODS.items():
            cell = cells.get(f"{order}-{name}")
            if cell is None:
                continue
            uas, solved, seconds, _ = koo2010_solvers.PAPER[order].get(name, (None,) * 4)
            count = compared = cell["sentences"]
            shares = [_beside(cell["uas"], uas), _beside(100 * cell["solved"] / count, solved)]
            rows.append([TITLES[order], method.title, *shares, _beside(cell["seconds"] / count, seconds, 4)])
    limit = f"programs stopped after {koo2010_solvers.PROGRAM_SECONDS:.0f} s"
    which = f"{compared} held-out Danish sentences up to {koo2010_solvers.LONGEST} words"
    title = f"## Table 2: {which}, solver alone, {limit} (in brackets the paper's: English, Gurobi, looser LPs)"
    return markdown_table(title, header, rows)


def _random(cells: Mapping[str, Any]) -> str:
    """% solved, way by way."""
    header = ["model", "method", "the paper", *WAYS, *(f"{way}, CPU seconds an instance" for way in WAYS)]
    rows, words, instances = [], 0, 0
    for order in PAPER:
        for name, method in METHODS.items():
            found = [cells.get(f"random-{way}-{order}-{name}") for way in WAYS]
            drawn = [cell for cell in found if cell is not None]
            if not drawn:
                continue
            words, instances = drawn[0]["signature"]["words"], drawn[0]["instances"]
            *_, paper = koo2010_solvers.PAPER[order].get(name, (None,) * 4)
            solved = ["" if cell is None else f"{100 * cell['solved'] / cell['instances']:.1f}" for cell in found]
            seconds = ["" if cell is None else f"{cell['seconds'] / cell['instances']:.4f}" for cell in found]
            rows.append([TITLES[order], method.title, "" if paper is None else f"{paper:.1f}", *solved, *seconds])
    title = f"## Table 2, random instances: % solved of {instances} with {words} words, scores drawn in three ways"
    legend = [f"- {name}: {way.what}." for name, way in WAYS.items()]
    says = "The paper does not say how its scores are drawn. All scores are independent of each other:"
    return "\n".join([markdown_table(title, header, rows), says, "", *legend, ""])


def _relaxations(cells: Mapping[str, Any]) -> str:
    """LP(M) is the relaxation of dual decomposition: what the bounds of the cells say of it."""
    header = ["instances", "model", "DD-5000 certified", "LP(M) integral there", "LP(M) and best tree there, apart"]
    header += ["LP(M) integral elsewhere", "DD-5000 - LP(M) elsewhere, largest", "least", "LP(S) - LP(M), least"]
    rows = []
    for prefix in ("", *(f"random-{way}-" for way in WAYS)):
        for order in PAPER:
            names = [f"{prefix}{order}-{name}" for name in ("lp-single", "lp-multi", "dd-5000")]
            if all(name in cells for name in names):
                what = prefix.removeprefix("random-").removesuffix("-") or "Danish"
                rows.append([what, TITLES[order], *koo2010_solvers.relaxations(*(cells[name] for name in names))])
    return markdown_table("## Table 2, bounds: LP(M) and dual decomposition, on the same instances", header, rows)


def _projective(languages: Sequence[str], tested: Mapping[str, Any], cells: Mapping[str, Any]) -> str:
    rows = []
    for language in languages:
        row = [language]
        for order in PAPER:
            cell, other = tested.get(f"{language}-{order}"), cells.get(f"{language}-{order}")
            row.append(_beside(cell and cell["exact"]["test"]["uas_no_punct"], None))
            row.append(_beside(other and other["test"]["uas_no_punct"], None))
        rows.append(row)
    rows += [[f"{name}, the paper", *map("{:.2f}".format, uas)] for name, uas in PAPER_PROJECTIVE.items()]
    title = "## Table 3: the same weights decoded projectively (P-), UAS without punctuation"
    header = ["language", "Sib", "P-Sib", "G+S", "P-G+S"]
    return markdown_table(f"{title}; ours on test, the paper's on validation data", header, rows)


def _beside(ours: float | None, theirs: float | None, digits: int = 2) -> str:
    """Ours, and the paper's in brackets, where there are such.

    >>> _beside(91.234, 91.08), _beside(None, 91.08), _beside(0.00312, None, 4)
    ('91.23 (91.08)', '(91.08)', '0.0031')
    """
    mine = "" if ours is None else f"{ours:.{digits}f}"
    paper = "" if theirs is None else f"({theirs:g})" if digits > 2 else f"({theirs:.{digits}f})"
    return f"{mine} {paper}".strip()
