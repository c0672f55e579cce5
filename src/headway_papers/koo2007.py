"""koo2007's tables 1 to 3: perceptron, max-margin (EG) and log-linear training, projective and non-projective.

The protocol is the paper's (section 6): the last tenth of the training sentences is held out; every learner is
trained on the rest, for every C of a grid; C, the pass T and, for non-projective training, the decoding are chosen on
the held-out sentences; the test set is parsed once, by that model, and scored without punctuation. Projective models
are trained on projectivised trees. Any folder `LANGUAGE/train.conll[.gz]`, `LANGUAGE/test.conll[.gz]` takes part.

Where we differ: a training that has not improved on the held-out sentences for `PATIENCE` passes is stopped, where
the paper always runs 100; the log-linear models are trained by L-BFGS, not by conjugate gradient, towards the same
optimum; templates are `mcdonald2005`.

Every cell is written to `results/LANGUAGE-LEARNER-CLASS.json` as soon as it is there, and not computed again while its
settings and data stay the same; the tables are made from these files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import product, repeat
from pathlib import Path
from typing import Any, NamedTuple

from headway.evaluation import sign_test
from headway.parallel import Workers
from headway.pipeline import Parser
from headway.training.settings import LearnerName
from headway.training.tuning import GRIDS, tune
from headway.treebank import Statistics
from headway_papers.corpora import (
    HELD_OUT,
    Corpus,
    Say,
    chosen_languages,
    finished,
    is_done,
    result_signature,
    test_once,
    write_json,
)
from headway_papers.markdown import markdown_table

# L-BFGS can stand still for several steps before it goes on
PATIENCE: dict[LearnerName, int] = {"perceptron": 8, "eg": 8, "loglinear": 20}
PASSES: dict[LearnerName, int] = {"perceptron": 100, "eg": 100, "loglinear": 100}
COLUMNS: tuple[tuple[LearnerName, str], ...] = (
    ("perceptron", "Perceptron"),
    ("eg", "Max-margin"),
    ("loglinear", "Log-linear"),
)
LETTERS: dict[LearnerName, str] = {"perceptron": "P", "eg": "E", "loglinear": "L"}
# The paper's table 2: test UAS, projective and non-projective
PAPER: dict[str, dict[LearnerName, tuple[float, float]]] = {
    "arabic": {"perceptron": (71.74, 71.84), "eg": (71.74, 72.99), "loglinear": (73.11, 73.67)},
    "dutch": {"perceptron": (77.17, 78.83), "eg": (76.53, 79.69), "loglinear": (76.23, 79.55)},
    "japanese": {"perceptron": (91.90, 91.78), "eg": (92.10, 92.18), "loglinear": (91.68, 91.49)},
    "slovene": {"perceptron": (78.02, 78.66), "eg": (79.78, 80.10), "loglinear": (78.24, 79.66)},
    "spanish": {"perceptron": (81.19, 80.02), "eg": (81.71, 81.93), "loglinear": (81.75, 81.57)},
    "turkish": {"perceptron": (71.22, 71.70), "eg": (72.83, 72.02), "loglinear": (72.26, 72.62)},
}
# The paper's table 1: % crossing dependencies (it does not say how it counts), tokens of train, validation and test
PAPER_DATA: dict[str, tuple[float, int, int, int]] = {
    "arabic": (0.34, 49064, 5315, 5373),
    "dutch": (4.93, 178861, 16208, 5585),
    "japanese": (0.70, 141966, 9495, 5711),
    "slovene": (1.59, 22949, 5801, 6390),
    "spanish": (0.06, 78310, 11024, 5694),
    "turkish": (1.26, 51827, 5683, 7547),
}


def run(
    data: Path,
    output: Path,
    *,
    languages: Sequence[str] | None,
    quick: bool,
    threads: int,
    say: Say,
    workers: Workers | None = None,
) -> None:
    """Train what is not there yet, and write `tables.md`; `quick` takes one C, three passes, 300 sentences.

    `workers` compute several cells at the same time.
    """
    chosen = chosen_languages(data, languages)
    results = output / ("quick" if quick else "results")
    results.mkdir(parents=True, exist_ok=True)
    for language in chosen:
        corpus = Corpus.read(data, language, 300 if quick else None)
        write_json(results / f"{language}.json", _describe(corpus))
        kinds = product([learner for learner, _ in COLUMNS], (True, False))
        cells = [cell for cell in (_cell(corpus, *kind, results, quick) for kind in kinds) if not cell.is_done]
        settings, grids = [cell.settings for cell in cells], [cell.grid for cell in cells]
        jobs = finished(workers, tuned_and_tested, repeat(corpus), settings, grids, repeat(threads))
        for number, found in jobs:
            write_json(cells[number].path, {"signature": cells[number].signed, **found})
            say(f"{cells[number].path.stem}: {found['uas']:.2f}")
    tables = tables_text(results)
    (output / ("quick.md" if quick else "tables.md")).write_text(tables, encoding="utf-8")
    say(tables)


class _Cell(NamedTuple):
    """One cell of table 2: where it goes, and what it depends on."""

    path: Path
    settings: dict[str, Any]
    grid: Sequence[float]
    signed: dict[str, Any]

    @property
    def is_done(self) -> bool:
        return is_done(self.path, self.signed)


def _cell(corpus: Corpus, learner: LearnerName, projective: bool, results: Path, quick: bool) -> _Cell:
    path = results / f"{corpus.language}-{learner}-{'p' if projective else 'np'}.json"
    grid = GRIDS[learner][1:2] or GRIDS[learner] if quick else GRIDS[learner]
    settings: dict[str, Any] = {
        "learner": learner,
        "projective": projective,
        "single_root": corpus.single_root,
        "labels": "none",
        "tags": "gold",
        "templates": "mcdonald2005",
        "epochs": 3 if quick else PASSES[learner],
        "patience": PATIENCE[learner],
    }
    return _Cell(path, settings, grid, result_signature(corpus, settings, grid))


def tuned_and_tested(
    corpus: Corpus, settings: Mapping[str, Any], grid: Sequence[float], threads: int
) -> dict[str, Any]:
    """C, the pass and the decoding chosen on the held-out sentences, and how that model does on the test sentences."""
    tuning = tune(corpus.train, grid=grid, held_out=HELD_OUT, threads=threads, **settings)
    scores = test_once(Parser.of(tuning.model, tuning.text_models), corpus, threads)
    return {
        "uas": scores.uas_no_punct,
        "validation": max(trial.uas for trial in tuning.trials),
        "c": tuning.settings.c,
        "passes": tuning.settings.epochs,
        "decoding": "projective" if tuning.projective else "non-projective",
        "trials": [asdict(trial) for trial in tuning.trials],
        "right": scores.per_sentence_no_punct.heads.tolist(),
        "history": tuning.model.about["history"],
    }


def tables_text(results: Path) -> str:
    """Tables 1 to 3 and the sign test, from the files there are; the paper's figures in brackets."""
    cells = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(results.glob("*-*-*.json"))}
    languages = sorted({name.rsplit("-", 2)[0] for name in cells})
    about = {language: json.loads((results / f"{language}.json").read_text("utf-8")) for language in languages}
    tables = [_table1(about), _table2(languages, cells), _table3(languages, cells), _signs(languages, cells)]
    return "\n".join(tables)


def _table1(about: dict[str, dict[str, Any]]) -> str:
    rows = []
    for language, row in about.items():
        ours = [f"{row['non_projective']:.2f}", *(f"{row[part]:,}" for part in ("train", "validation", "test"))]
        theirs = PAPER_DATA.get(language)
        beside = [""] * 4 if theirs is None else [f" ({theirs[0]:.2f})", *(f" ({count:,})" for count in theirs[1:])]
        rows.append([language, *(a + b for a, b in zip(ours, beside, strict=True))])
    header = ["language", "% non-projective", "train", "validation", "test"]
    return markdown_table("## Table 1: the data", header, rows)


def _table2(languages: Sequence[str], cells: dict[str, Any]) -> str:
    names = [f"{name}, {kind}" for _, name in COLUMNS for kind in ("p", "np")]
    rows = []
    for language in languages:
        row = [language]
        for learner, _ in COLUMNS:
            for k, kind in enumerate(("p", "np")):
                cell = cells.get(f"{language}-{learner}-{kind}")
                theirs = f" ({PAPER[language][learner][k]:.2f})" if language in PAPER else ""
                row.append("" if cell is None else f"{cell['uas']:.2f}{theirs}")
        rows.append(row)
    title = "## Table 2: test UAS without punctuation (in brackets the paper's)"
    return markdown_table(title, ["language", *names], rows)


def _chosen(language: str, learner: LearnerName, cells: dict[str, Any]) -> dict[str, Any] | None:
    """Of projective and non-projective training, the one better on the held-out sentences (table 3)."""
    both = [cells.get(f"{language}-{learner}-{kind}") for kind in ("p", "np")]
    there = [cell for cell in both if cell is not None]
    return max(there, key=lambda cell: float(cell["validation"])) if len(there) == 2 else None


def _table3(languages: Sequence[str], cells: dict[str, Any]) -> str:
    rows = []
    for learner, _ in COLUMNS:
        chosen = [_chosen(language, learner, cells) for language in languages]
        scores = [cell["uas"] for cell in chosen if cell is not None]
        average = f"{sum(scores) / len(scores):.2f}" if len(scores) == len(languages) else ""
        row = ["" if cell is None else f"{cell['uas']:.2f}" for cell in chosen]
        rows.append([LETTERS[learner], *row, average])
    title = "## Table 3: projective or non-projective training chosen on held-out data"
    table = markdown_table(title, ["", *languages, "average"], rows)
    return table.replace("|  |", "| |", 1)  # the empty corner: the committed table stays as it is, byte for byte


def _signs(languages: Sequence[str], cells: dict[str, Any]) -> str:
    """The paper's footnote 7: sentences parsed better and worse than by the perceptron, all languages together."""
    lines = ["## Sign test against the perceptron, by sentence, over all languages", ""]
    for learner, name in COLUMNS[1:]:
        pairs = [(_chosen(language, learner, cells), _chosen(language, "perceptron", cells)) for language in languages]
        complete = [(a["right"], b["right"]) for a, b in pairs if a is not None and b is not None]
        if len(complete) < len(languages):
            continue
        test = sign_test([x for a, _ in complete for x in a], [x for _, b in complete for x in b])
        lines.append(f"- {name}: better on {test.wins}, worse on {test.losses}, p = {test.p_value:.2g}")
    return "\n".join(lines) + "\n"


def _describe(corpus: Corpus) -> dict[str, Any]:
    kept = len(corpus.train) - int(len(corpus.train) * HELD_OUT)
    return {
        "non_projective": 100 * Statistics.of(corpus.train).non_projective_arc_share,
        "train": sum(map(len, corpus.train[:kept])),
        "validation": sum(map(len, corpus.train[kept:])),
        "test": sum(map(len, corpus.test)),
        "test_sentences": len(corpus.test),
        "single_root": corpus.single_root,
    }
