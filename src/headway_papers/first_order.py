"""Our best arc-factored parser for each language, beside koo2010's MST column (its table 1).

For every learner, C and the number of passes are chosen on the held-out tenth of the training sentences, with the
templates of `standard`, non-projective; the learner that is best there is trained on all of them with what was
chosen, and parses the test sentences once. Labels are chosen after the tree.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import repeat
from pathlib import Path
from typing import Any

from headway.parallel import Workers
from headway.pipeline import Parser
from headway.training.settings import LearnerName
from headway.training.tuning import GRIDS, tune
from headway_papers.corpora import (
    HELD_OUT,
    Corpus,
    Say,
    chosen_languages,
    finished,
    is_done,
    renamed,
    result_signature,
    test_once,
    write_json,
)
from headway_papers.markdown import markdown_table

CONTENDERS: dict[LearnerName, dict[str, Any]] = {
    "perceptron": {"epochs": 20, "grid": GRIDS["perceptron"]},
    "margin": {"epochs": 20, "grid": GRIDS["margin"]},
    "loglinear": {"epochs": 5, "grid": (0.1,), "optimiser": "adagrad"},
}
PATIENCE = 6
# koo2010's MST column, and TurboParser basic measured (unlabelled, multi-root)
PAPER = {"danish": 89.74, "dutch": 82.33, "portuguese": 90.68, "swedish": 88.79}
TURBO = {"danish": 88.12, "dutch": 82.87, "portuguese": 90.42, "swedish": 88.57}


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
    """Train and test what is not there yet, and write `tables.md`; `quick` takes 300 sentences and two passes.

    `workers` try several learners at the same time.
    """
    chosen = chosen_languages(data, languages)
    results = output / ("quick" if quick else "results")
    results.mkdir(parents=True, exist_ok=True)
    for language in chosen:
        corpus = Corpus.read(data, language, 300 if quick else None)
        _language(corpus, results, _contended(corpus, results, quick, threads, say, workers), threads, say)
    table = table_text(results)
    (output / ("quick.md" if quick else "tables.md")).write_text(table, encoding="utf-8")
    say(table)


def _language(
    corpus: Corpus, results: Path, held_out: dict[LearnerName, dict[str, Any]], threads: int, say: Say
) -> None:
    """Train on everything what was chosen on the held-out sentences, and test once."""
    learner = max(held_out, key=lambda name: float(held_out[name]["uas"]))
    chosen = {**renamed(held_out[learner]["settings"]), "labels": "after"}
    path, signed = results / f"{corpus.language}.json", result_signature(corpus, chosen, [])
    if is_done(path, signed):
        return
    trained = Parser.train(corpus.train, threads=threads, **chosen)
    projective = bool(held_out[learner]["projective"])
    scores = test_once(trained.with_projective(projective), corpus, threads)
    decoding = "projective" if projective else "non-projective"
    write_json(path, {"signature": signed, "decoding": decoding, "test": scores.to_dict()})
    say(f"{corpus.language}: test UAS {scores.uas_no_punct:.2f}, LAS {scores.las_no_punct:.2f}")


def _contended(
    corpus: Corpus, results: Path, quick: bool, threads: int, say: Say, workers: Workers | None
) -> dict[LearnerName, dict[str, Any]]:
    """What every learner reaches on the held-out sentences, and with which settings."""
    left, signatures = [], {}
    for learner in CONTENDERS:
        settings = _settings(corpus, learner, quick)
        grid = settings.pop("grid")
        signatures[learner] = result_signature(corpus, settings, grid)
        if not is_done(_path(results, corpus, learner), signatures[learner]):
            left.append((learner, settings, grid))
    jobs = ([each[place] for each in left] for place in (1, 2))
    for number, found in finished(workers, _tuned, repeat(corpus), *jobs, repeat(threads)):
        learner = left[number][0]
        path = _path(results, corpus, learner)
        write_json(path, {"signature": signatures[learner], **found})
        say(f"{path.stem}: held-out {found['uas']:.2f}")
    return {learner: json.loads(_path(results, corpus, learner).read_text("utf-8")) for learner in CONTENDERS}


def _path(results: Path, corpus: Corpus, learner: LearnerName) -> Path:
    return results / f"{corpus.language}-{learner}.json"


def _settings(corpus: Corpus, learner: LearnerName, quick: bool) -> dict[str, Any]:
    return {
        "learner": learner,
        "single_root": corpus.single_root,
        "templates": "standard",
        "patience": PATIENCE,
        "labels": "none",
        "tags": "gold",
        **CONTENDERS[learner],
        **({"epochs": 2} if quick else {}),
    }


def _tuned(corpus: Corpus, settings: dict[str, Any], grid: Sequence[float], threads: int) -> dict[str, Any]:
    tuning = tune(corpus.train, grid=grid, held_out=HELD_OUT, threads=threads, **settings)
    return {
        "uas": max(trial.uas for trial in tuning.trials),
        "settings": asdict(tuning.settings),
        "projective": tuning.projective,
        "trials": [asdict(trial) for trial in tuning.trials],
    }


def table_text(results: Path) -> str:
    """One row per language, from the files there are."""
    title = "## Test, without punctuation: the learner chosen on held-out data, trained on all training sentences"
    header = ["language", "learner", "C", "passes", "held-out UAS", "test UAS", "test LAS"]
    header += ["koo2010 MST", "TurboParser basic"]
    rows = []
    for path in sorted(results.glob("*.json")):
        language = path.stem
        if "-" in language:
            continue
        cell = json.loads(path.read_text("utf-8"))
        chosen, test = cell["signature"]["settings"], cell["test"]
        held_out = json.loads((results / f"{language}-{chosen['learner']}.json").read_text("utf-8"))["uas"]
        row = [language, chosen["learner"], f"{chosen['c']:g}", str(chosen["epochs"]), f"{held_out:.2f}"]
        row += [f"{test['uas_no_punct']:.2f}", f"{test['las_no_punct']:.2f}"]
        row += [f"{peer[language]:.2f}" if language in peer else "" for peer in (PAPER, TURBO)]
        rows.append(row)
    return markdown_table(title, header, rows)
