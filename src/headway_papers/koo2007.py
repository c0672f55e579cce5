"""koo2007's tables 1 to 3: perceptron, max-margin (EG) and log-linear training, projective and non-projective.

The protocol is the paper's (section 6): the last tenth of the training sentences is held out; every learner is
trained on the rest, for every C of a grid; C, the pass T and, for non-projective training, the decoding are chosen on
the held-out sentences; the test set is parsed once, by that model, and scored without punctuation. Projective models
are trained on projectivised trees. Any folder `LANGUAGE/train.conll[.gz]`, `LANGUAGE/test.conll[.gz]` takes part.

Where we differ: a training that has not improved on the held-out sentences for `PATIENCE` passes is stopped, where
the paper always runs 100; C is searched on a ladder of values, from where first Danish trials were best, until the best
has been tried with both its neighbours; the log-linear models are trained by L-BFGS, not by conjugate gradient, towards
the same optimum; templates are `mcdonald2005`.

Every C is written to `results/LANGUAGE-LEARNER-CLASS.json` as soon as its model is trained, and not tried again while
settings and data stay the same; the best model so far is kept in `models/`, in single precision, and tested when the
search is over. The tables are made from the results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

from headway.evaluation import sign_test
from headway.parallel import Workers
from headway.pipeline import Parser
from headway.training.settings import LearnerName
from headway.training.tuning import Tuning, tune
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
from headway_papers.koo2007_figure import draw
from headway_papers.koo2010_figures import require_matplotlib
from headway_papers.markdown import markdown_table

# L-BFGS can stand still for several steps before it goes on
PATIENCE: dict[LearnerName, int] = {"perceptron": 8, "eg": 8, "loglinear": 20}
PASSES: dict[LearnerName, int] = {"perceptron": 100, "eg": 100, "loglinear": 100}
COLUMNS: tuple[tuple[LearnerName, str], ...] = (
    ("perceptron", "Perceptron"),
    ("eg", "Max-margin"),
    ("loglinear", "Log-linear"),
)
# Values of C, and where the search begins: at the best of first trials on held-out Danish sentences
LADDERS: dict[LearnerName, tuple[float, ...]] = {
    "perceptron": (0.0,),
    "eg": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    "loglinear": (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0),
}
STARTS: dict[LearnerName, float] = {"perceptron": 0.0, "eg": 0.03, "loglinear": 1.0}
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
    """Train what is not there yet; write `tables.md` and draw; `quick` takes one C, three passes, 300 sentences.

    `workers` compute several cells at the same time, and see the same folders as this process.
    """
    require_matplotlib()
    chosen = chosen_languages(data, languages)
    results = made(output / ("quick" if quick else "results"))
    for language in chosen:
        corpus = Corpus.read(data, language, 300 if quick else None)
        write_json(results / f"{language}.json", _describe(corpus))
        kinds = product([learner for learner, _ in COLUMNS], (True, False))
        cells = [Cell(corpus, *kind, output, quick, threads) for kind in kinds]
        for _, steps in finished(workers, complete, cells):
            for step in steps:
                say(step)
    tables = tables_text(results)
    (output / ("quick.md" if quick else "tables.md")).write_text(tables, encoding="utf-8")
    measured = output / "convergence.json"
    converged = json.loads(measured.read_text("utf-8")) if measured.exists() else None
    draw(tested_cells(results), converged, output / f"{'quick-' if quick else ''}convergence.svg")
    say(tables)


def complete(cell: Cell) -> list[str]:
    """Search a cell's C to the end and test its model; what there is to say of each step."""
    steps: list[str] = []
    while cell.advance(steps.append):
        pass
    return steps


@dataclass(frozen=True)
class Cell:
    """One cell of table 2: its C is searched for a value at a time, each kept as soon as it is there."""

    corpus: Corpus
    learner: LearnerName
    projective: bool
    output: Path
    quick: bool
    threads: int

    def advance(self, say: Say) -> bool:
        """Try the next C, or test the model of the best; False when nothing is left to do."""
        found = self._found()
        c = next_c(self.learner, {trial["c"]: trial["uas"] for trial in best_decodings(found["trials"])})
        if c is not None and not (self.quick and found["trials"]):
            found = self._tried(c, found)
            say(f"{self.name}, C = {c:g}: {max(trial['uas'] for trial in found['trials'] if trial['c'] == c):.2f}")
        elif "uas" not in found:
            found = self._tested(found)
            say(f"{self.name}: {found['uas']:.2f}")
        else:
            return False
        write_json(self._path, found)
        return True

    @property
    def name(self) -> str:
        return f"{self.corpus.language}-{self.learner}-{'p' if self.projective else 'np'}"

    @property
    def _path(self) -> Path:
        return made(self.output / ("quick" if self.quick else "results")) / f"{self.name}.json"

    @property
    def _model(self) -> Path:
        return made(self.output / "models" / ("quick" if self.quick else "")) / f"{self.name}.headway"

    @property
    def _settings(self) -> dict[str, Any]:
        return {
            "learner": self.learner,
            "projective": self.projective,
            "single_root": self.corpus.single_root,
            "labels": "none",
            "tags": "gold",
            "templates": "mcdonald2005",
            "epochs": 3 if self.quick else PASSES[self.learner],
            "patience": PATIENCE[self.learner],
        }

    def _found(self) -> dict[str, Any]:
        """What is there already of the same settings and data, with whichever C."""
        if self._path.exists():
            found: dict[str, Any] = json.loads(self._path.read_text("utf-8"))
            if is_done(self._path, self._signature(found["signature"]["grid"])):
                return found
        return {"trials": []}

    def _signature(self, grid: Sequence[float]) -> dict[str, Any]:
        return result_signature(self.corpus, self._settings, grid)

    def _tried(self, c: float, found: Mapping[str, Any]) -> dict[str, Any]:
        """With the trials of one more C; a model that is better than all before is kept to be tested."""
        tuning = self._trained(c)
        before, new = found["trials"], [asdict(trial) for trial in tuning.trials]
        trials = sorted([*before, *new], key=lambda trial: float(trial["c"]))
        searched = {"signature": self._signature(sorted({trial["c"] for trial in trials})), "trials": trials}
        best = max(trial["uas"] for trial in new)
        if before and best <= found["validation"]:
            return {**found, **searched}
        Parser.of(tuning.model, tuning.text_models).save(self._model)
        return {
            **searched,
            "validation": best,
            "c": c,
            "passes": tuning.settings.epochs,
            "decoding": "projective" if tuning.projective else "non-projective",
            "history": tuning.model.about["history"],
        }

    def _trained(self, c: float) -> Tuning:
        return tune(self.corpus.train, grid=(c,), held_out=HELD_OUT, threads=self.threads, **self._settings)

    def _tested(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """How the chosen model, as it is saved, does on the test sentences."""
        if not self._model.exists():
            tuning = self._trained(found["c"])
            Parser.of(tuning.model, tuning.text_models).save(self._model)
        scores = test_once(Parser.load(self._model), self.corpus, self.threads)
        return {**found, "uas": scores.uas_no_punct, "right": scores.per_sentence_no_punct.heads.tolist()}


def next_c(learner: LearnerName, tried: Mapping[float, float]) -> float | None:
    """The C to try after those with these held-out scores: a neighbour of the best; None if it lies between two.

    >>> next_c("eg", {}), next_c("eg", {0.03: 80.0}), next_c("eg", {0.03: 80.0, 0.1: 79.0})
    (0.03, 0.1, 0.01)
    >>> next_c("eg", {0.01: 79.0, 0.03: 80.0, 0.1: 79.0})
    """
    if not tried:
        return STARTS[learner]
    ladder, best = LADDERS[learner], max(tried, key=lambda c: tried[c])
    at = ladder.index(best)
    neighbours = (*ladder[at + 1 : at + 2], *ladder[max(0, at - 1) : at])
    return next((c for c in neighbours if c not in tried), None)


def best_decodings(trials: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of each C, the trial whose decoding is the better."""
    return [
        max((trial for trial in trials if trial["c"] == c), key=lambda trial: float(trial["uas"]))
        for c in sorted({trial["c"] for trial in trials})
    ]


def made(folder: Path) -> Path:
    """The folder, which is there now."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def tested_cells(results: Path) -> dict[str, Any]:
    """The cells whose search for C is over, by their names."""
    read = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(results.glob("*-*-*.json"))}
    return {name: cell for name, cell in read.items() if "uas" in cell}


def tables_text(results: Path) -> str:
    """Tables 1 to 3 and the sign test, from the files there are; the paper's figures in brackets."""
    cells = tested_cells(results)
    languages = sorted({name.rsplit("-", 2)[0] for name in cells})
    about = {language: json.loads((results / f"{language}.json").read_text("utf-8")) for language in languages}
    tables = [
        _table1(about),
        _table2(languages, cells),
        _table3(languages, cells),
        _signs(languages, cells),
        _searches(languages, cells),
    ]
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
                row.append("missing" if cell is None else f"{cell['uas']:.2f}{theirs}")
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
        average = f"{sum(scores) / len(scores):.2f}" if len(scores) == len(languages) else "missing"
        row = ["missing" if cell is None else f"{cell['uas']:.2f}" for cell in chosen]
        rows.append([LETTERS[learner], *row, average])
    title = "## Table 3: projective or non-projective training chosen on held-out data"
    table = markdown_table(title, ["", *languages, "average"], rows)
    return table.replace("|  |", "| |", 1)  # the empty corner: the committed table stays as it is, byte for byte


def _signs(languages: Sequence[str], cells: dict[str, Any]) -> str:
    """The paper's footnote 7: sentences parsed better and worse than by the perceptron, all languages together."""
    rows = []
    for learner, name in COLUMNS[1:]:
        for training, choose in (("chosen on held-out data", _chosen), ("non-projective", _non_projective)):
            pairs = {
                language: (choose(language, learner, cells), choose(language, "perceptron", cells))
                for language in languages
            }
            complete = {language: (a, b) for language, (a, b) in pairs.items() if a is not None and b is not None}
            if complete:
                rows.append([name, training, ", ".join(complete), *_sign_row(complete.values())])
    title = "## Sign test against the perceptron, by sentence, over all languages together"
    return markdown_table(title, ["learner", "training", "languages", "better on", "worse on", "p"], rows)


def _sign_row(pairs: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> list[str]:
    ours, theirs = zip(*((a["right"], b["right"]) for a, b in pairs), strict=True)
    test = sign_test(list(chain(*ours)), list(chain(*theirs)))
    return [str(test.wins), str(test.losses), f"{test.p_value:.2g}"]


def _non_projective(language: str, learner: LearnerName, cells: dict[str, Any]) -> dict[str, Any] | None:
    return cells.get(f"{language}-{learner}-np")


def _searches(languages: Sequence[str], cells: dict[str, Any]) -> str:
    """What each C reached on the held-out sentences, and whether the best has a worse one on either side."""
    rows = []
    for language, (learner, name), kind in product(languages, COLUMNS[1:], ("p", "np")):
        cell = cells.get(f"{language}-{learner}-{kind}")
        if cell is not None:
            best = best_decodings(cell["trials"])
            tried = (f"{trial['uas']:.2f} ({trial['c']:g})" for trial in best)
            is_inside = min(trial["c"] for trial in best) < cell["c"] < max(trial["c"] for trial in best)
            chosen = [f"{cell['c']:g}", str(cell["passes"]), "yes" if is_inside else "no"]
            rows.append([language, f"{name}, {kind}", ", ".join(tried), *chosen])
    header = ["language", "learner", "held-out UAS (C)", "C", "passes", "C between others"]
    return markdown_table("## C, chosen on held-out data", header, rows)


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
