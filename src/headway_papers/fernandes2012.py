"""fernandes2012's own row of table 2.1: Portuguese, first order, structure perceptron, templates of MSTParser.

The perceptron and its large-margin version (section 2.2) are trained with the `mcdonald2006` templates; the number of
passes, and C, are chosen on the held-out tenth of the training sentences; the models are then trained on all of them
and parse the test sentences once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headway.training.settings import LearnerName
from headway.training.tuning import GRIDS
from headway_papers.corpora import (
    Corpus,
    Say,
    chosen_languages,
    is_done,
    result_signature,
    test_once,
    tune_then_train,
    write_json,
)
from headway_papers.markdown import markdown_table

LANGUAGES = ("portuguese",)
ROWS: tuple[tuple[LearnerName, str, str], ...] = (
    ("perceptron", "structure perceptron", "90.06"),
    ("margin", "large-margin structure perceptron", ""),
)
PASSES = 30
PATIENCE = 8


def run(data: Path, output: Path, *, languages: Sequence[str] | None, quick: bool, threads: int, say: Say) -> None:
    """Train and test what is not there yet, and write `tables.md`; `quick` takes 300 sentences and three passes."""
    chosen = chosen_languages(data, languages, LANGUAGES)
    results = output / ("quick" if quick else "results")
    results.mkdir(parents=True, exist_ok=True)
    for language in chosen:
        corpus = Corpus.read(data, language, 300 if quick else None)
        for learner, _, _ in ROWS:
            _row(corpus, learner, results / f"{language}-{learner}.json", quick, threads, say)
    table = table_text(results)
    (output / ("quick.md" if quick else "tables.md")).write_text(table, encoding="utf-8")
    say(table)


def _row(corpus: Corpus, learner: LearnerName, path: Path, quick: bool, threads: int, say: Say) -> None:
    settings: dict[str, Any] = {
        "learner": learner,
        "single_root": corpus.single_root,
        "labels": "none",
        "tags": "gold",
        "templates": "mcdonald2006",
        "epochs": 3 if quick else PASSES,
        "patience": PATIENCE,
    }
    signed = result_signature(corpus, settings, GRIDS[learner])
    if is_done(path, signed):
        return
    tuning, parser = tune_then_train(corpus, settings, threads)
    scores = test_once(parser, corpus, threads)
    trials = [asdict(trial) for trial in tuning.trials]
    chosen = asdict(tuning.settings)
    write_json(path, {"signature": signed, "chosen": chosen, "held_out": trials, "test": scores.to_dict()})
    say(f"{path.stem}: {scores.uas_no_punct:.2f}")


def table_text(results: Path) -> str:
    """The row, ours beside the thesis'; UAS without punctuation, and over all tokens."""
    header = ["learner", "UAS in the thesis", "ours, without punctuation", "ours, all tokens", "passes", "C"]
    rows = []
    for path in sorted(results.glob("*-*.json")):
        cell = json.loads(path.read_text("utf-8"))
        learner, name, theirs = next(row for row in ROWS if path.stem.endswith(f"-{row[0]}"))
        test, chosen = cell["test"], cell["chosen"]
        shown = "" if learner == "perceptron" else f"{chosen['c']:g}"
        ours = [f"{test['uas_no_punct']:.2f}", f"{test['uas']:.2f}"]
        rows.append([name, theirs, *ours, str(chosen["epochs"]), shown])
    return markdown_table("## Table 2.1, this work: Portuguese CoNLL-X test, first order", header, rows)
