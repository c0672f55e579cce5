"""Our best arc-factored parser for each language, beside koo2010's MST column (its table 1).

For every learner, C and the number of passes are chosen on the held-out tenth of the training sentences, with the
templates of `standard`, non-projective; the learner that is best there is trained on all of them with what was
chosen, and parses the test sentences once. Labels are chosen after the tree.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from headway.pipeline import Parser
from headway.reproduce.corpora import (
    HELD_OUT,
    Corpus,
    Say,
    is_done,
    languages_of,
    signature,
    test_once,
    write_json,
)
from headway.training import LearnerName
from headway.tuning import GRIDS, Tuning, tune

CONTENDERS: dict[LearnerName, dict[str, Any]] = {
    "perceptron": {"epochs": 20, "grid": GRIDS["perceptron"]},
    "margin": {"epochs": 20, "grid": GRIDS["margin"]},
    "loglinear": {"epochs": 5, "grid": (0.1,), "optimiser": "adagrad"},
}
PATIENCE = 6
# koo2010's MST column, and TurboParser basic measured (unlabelled, multi-root)
PAPER = {"danish": 89.74, "dutch": 82.33, "portuguese": 90.68, "swedish": 88.79}
TURBO = {"danish": 88.12, "dutch": 82.87, "portuguese": 90.42, "swedish": 88.57}


def run(data: Path, output: Path, *, languages: Sequence[str] | None, quick: bool, threads: int, say: Say) -> None:
    """Train and test what is not there yet, and write `tables.md`; `quick` takes 300 sentences and three passes."""
    results = output / ("quick" if quick else "results")
    results.mkdir(parents=True, exist_ok=True)
    for language in languages or languages_of(data):
        _language(Corpus.read(data, language, 300 if quick else None), results, quick, threads, say)
    table = table_text(results)
    (output / ("quick.md" if quick else "tables.md")).write_text(table, encoding="utf-8")
    say(table)


def _language(corpus: Corpus, results: Path, quick: bool, threads: int, say: Say) -> None:
    path = results / f"{corpus.language}.json"
    shared: dict[str, Any] = {"single_root": corpus.single_root, "templates": "standard", "patience": PATIENCE}
    signed = signature(corpus, {**shared, "contenders": CONTENDERS, "quick": quick}, [])
    if is_done(path, signed):
        return
    tunings: dict[LearnerName, Tuning] = {}
    for learner, options in CONTENDERS.items():
        options = {**options, "epochs": 2} if quick else options
        tunings[learner] = tune(
            corpus.train, held_out=HELD_OUT, threads=threads, learner=learner, labels="none", **shared, **options
        )
        say(f"{corpus.language} {learner}: held-out {_held_out(tunings[learner]):.2f}")
    best = max(tunings.values(), key=_held_out)
    chosen = replace(best.settings, labels="after")
    trained = Parser.train(corpus.train, threads=threads, **asdict(chosen))
    scores = test_once(Parser(replace(trained.model, projective=best.projective)), corpus, threads)
    write_json(
        path,
        {
            "signature": signed,
            "chosen": asdict(chosen),
            "decoding": "projective" if best.projective else "non-projective",
            "held_out": {learner: [asdict(trial) for trial in t.trials] for learner, t in tunings.items()},
            "test": scores.to_dict(),
        },
    )
    say(f"{corpus.language}: test UAS {scores.uas_no_punct:.2f}, LAS {scores.las_no_punct:.2f}")


def _held_out(tuning: Tuning) -> float:
    return max(trial.uas for trial in tuning.trials)


def table_text(results: Path) -> str:
    """One row a language, from the files there are."""
    lines = [
        "## Test, without punctuation: the learner chosen on held-out data, trained on all training sentences",
        "",
        "| language | learner | C | passes | held-out UAS | test UAS | test LAS | koo2010 MST | TurboParser basic |",
        "| --- |" + " --- |" * 8,
    ]
    for path in sorted(results.glob("*.json")):
        cell = json.loads(path.read_text("utf-8"))
        chosen, test = cell["chosen"], cell["test"]
        held_out = max(trial["uas"] for trial in cell["held_out"][chosen["learner"]])
        row = [path.stem, chosen["learner"], f"{chosen['c']:g}", str(chosen["epochs"]), f"{held_out:.2f}"]
        row += [f"{test['uas_no_punct']:.2f}", f"{test['las_no_punct']:.2f}"]
        row += [f"{peer[path.stem]:.2f}" if path.stem in peer else "" for peer in (PAPER, TURBO)]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"
