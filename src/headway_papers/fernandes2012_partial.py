"""Training from partial annotation, by the latent structure perceptron of fernandes2012 (section 2.3).

Three tenths of the heads of the training trees are kept, drawn at random, and the others hidden. From these learn

    latent      the whole tree is latent, but for the known heads: `headway train` on such a treebank, all trees that
                have the known heads counting by their probabilities
    observed    the same perceptron, its updates cut down to the words whose heads are known

and, beside them, the same learner from as many heads on whole sentences, drawn at random (`sentences`), and from all
heads (`all`). All are arc-factored models with a margin, without labels, on gold tags. C and the number of passes of
the first three are chosen with seed 0 on the held-out tenth of the training sentences, which keeps its trees; then each
is trained on all training sentences, with three draws of the heads, and parses the test sentences once. `all` has the
defaults of `headway train`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any, Literal

import numpy as np

from headway import __version__
from headway.arrays import Floats, Ints
from headway.learning.monitor import Monitor
from headway.learning.perceptron import Perceptron
from headway.learning.problem import ARGMAX
from headway.parallel import executor_for
from headway.pipeline import Parser
from headway.training.arc_problem import ArcInstances, ArcProblem
from headway.training.arc_trainer import ArcPreparation, prepare_arcs
from headway.training.data import TrainingData, checksum, known_heads
from headway.training.preparation import bound
from headway.training.preparation import fit as fit_as_trained
from headway.training.settings import Settings
from headway.training.stages import Run
from headway.treebank import Sentence, require_tree
from headway_papers.cells import Cell, CellFile
from headway_papers.corpora import HELD_OUT, Corpus, Say, chosen_languages, test_once
from headway_papers.markdown import markdown_table

Row = Literal["latent", "observed", "sentences", "all"]

LANGUAGES = ("danish",)
SHARE = 0.3
SEEDS = (0, 1, 2)
GRID = (30.0, 100.0, 200.0, 400.0)
PASSES = 10
ROWS: dict[Row, str] = {
    "latent": "30% of the heads, the others latent",
    "observed": "30% of the heads, updates on these alone",
    "sentences": "as many heads, on whole sentences",
    "all": "all heads",
}


@dataclass(frozen=True)
class Observed:
    """Sentences of which some heads are known, as a problem whose choices for the other words do not count."""

    problem: ArcProblem

    offers = ARGMAX

    @property
    def lengths(self) -> Ints:
        return self.problem.lengths

    @property
    def size(self) -> int:
        return self.problem.size

    def some(self, which: Ints) -> ObservedInstances:
        """The sentences with these numbers."""
        these = self.problem.some(which)
        return ObservedInstances(these.scorer, these.structures, these.batch, these.heads, these.labels)


@dataclass(frozen=True)
class ObservedInstances(ArcInstances):
    """Some of these sentences."""

    def best(self, scores: Floats) -> Floats:
        assert self.heads is not None
        observed: Floats = super().best(scores) * (self.heads >= 0)[:, None, :]
        return observed


def run(data: Path, output: Path, *, languages: Sequence[str] | None, quick: bool, threads: int, say: Say) -> None:
    """Train and test what is not there yet, and write `tables.md`; `quick` takes 300 sentences, two C, three passes."""
    chosen = chosen_languages(data, languages, LANGUAGES)
    results = output / ("quick" if quick else "results")
    results.mkdir(parents=True, exist_ok=True)
    tables = []
    for language in chosen:
        corpus = Corpus.read(data, language, 300 if quick else None)
        experiment = _Experiment(corpus, GRID[1:3] if quick else GRID, 3 if quick else PASSES, threads)
        file = CellFile.open(results / f"{language}.json", experiment.signature)
        tables.append(table_text(language, _cells(experiment, file, say)))
    text = "\n".join(tables)
    (output / ("quick.md" if quick else "tables.md")).write_text(text, encoding="utf-8")
    say(text)


def hidden(sentences: Sequence[Sentence], share: float, seed: int) -> list[Sentence]:
    """The sentences with that share of all their heads, drawn at random; one may be left without any."""
    words = sum(map(len, sentences))
    kept = np.zeros(words, np.bool_)
    kept[np.random.default_rng(seed).permutation(words)[: round(share * words)]] = True
    result, start = [], 0
    for sentence in sentences:
        known = np.concatenate(([False], kept[start : start + len(sentence)]))
        result.append(sentence.with_tree(np.where(known, require_tree(sentence), -1), partial=True))
        start += len(sentence)
    return result


def drawn(sentences: Sequence[Sentence], heads: int, seed: int) -> list[Sentence]:
    """Whole sentences in random order, each that still fits into so many heads."""
    chosen = []
    for i in np.random.default_rng(seed).permutation(len(sentences)).tolist():
        if len(sentences[i]) <= heads:
            chosen.append(sentences[i])
            heads -= len(sentences[i])
    return chosen


def table_text(language: str, cells: dict[str, Cell]) -> str:
    """Test UAS without punctuation: the mean, and each draw of the heads; and what was chosen on held-out sentences."""
    rows = []
    for row, name in ROWS.items():
        tests = [cells[f"test-{row}-{seed}"] for seed in SEEDS if f"test-{row}-{seed}" in cells]
        scores, held_out = [cell["uas_no_punct"] for cell in tests], tests[0]["held_out"]
        figures = [
            f"{mean(cell['heads'] for cell in tests):,.0f}",
            f"{tests[0]['c']:g}",
            str(tests[0]["passes"]),
            "" if held_out is None else f"{held_out:.2f}",
            f"{mean(scores):.2f}",
        ]
        rows.append([name, *figures, ", ".join(f"{score:.2f}" for score in scores)])
    header = ["learnt from", "heads", "C", "passes", "held-out UAS", "test UAS, mean", "each draw"]
    return markdown_table(f"## {language}: three tenths of the heads", header, rows)


@dataclass(frozen=True)
class _Experiment:
    corpus: Corpus
    grid: Sequence[float]
    passes: int
    threads: int

    @property
    def run(self) -> Run:
        return Run(executor_for(self.threads))

    @property
    def signature(self) -> dict[str, Any]:
        corpus = self.corpus
        return {
            "headway": __version__,
            "train": checksum(corpus.train),
            "test": checksum(corpus.test),
            "share": SHARE,
            "grid": list(self.grid),
            "passes": self.passes,
        }

    def settings(self, **more: Any) -> Settings:
        single = self.corpus.single_root
        return Settings(single_root=single, labels="none", tags="gold", epochs=self.passes, **more).complete()

    def sentences(self, row: Row, seed: int, count: int | None = None) -> list[Sentence]:
        """What a row learns from, of the first `count` training sentences."""
        if row == "all":
            return self.corpus.train[:count]
        some = hidden(self.corpus.train, SHARE, seed)[:count]
        if row == "sentences":
            return drawn(self.corpus.train[:count], known_heads(some)[0], seed)
        return some

    def tuned(self, row: Row) -> Cell:
        """For every C of the grid the held-out score after each pass, and the best of all."""
        train = self.corpus.train
        kept = len(train) - int(len(train) * HELD_OUT)
        data = TrainingData(self.sentences(row, 0, kept), train[kept:])
        prepared = prepare_arcs(data, self.settings(), self.run)
        trials = []
        for c in self.grid:
            monitor = fit(row, prepared, self.settings(c=c), self.run)
            best = monitor.best_pass()
            scores = [entry["dev"] for entry in monitor.history]
            trials.append({"c": c, "passes": best, "held_out": scores[best - 1], "scores": scores})
        return {**max(trials, key=lambda trial: trial["held_out"]), "trials": trials}

    def tested(self, row: Row, seed: int, chosen: Cell) -> Cell:
        """The test scores of a model of all training sentences."""
        sentences = self.sentences(row, seed)
        settings = replace(self.settings(seed=seed), c=chosen["c"], epochs=chosen["passes"])
        prepared = prepare_arcs(TrainingData(sentences, sha256=checksum(sentences)), settings, self.run)
        model = prepared.finish(fit(row, prepared, settings, self.run), settings, self.run)
        scores = test_once(Parser(model), self.corpus, self.threads)
        found = {"heads": known_heads(sentences)[0], "uas_no_punct": scores.uas_no_punct, "uas": scores.uas}
        return {**{name: chosen[name] for name in ("c", "passes", "held_out")}, **found}


def fit(row: Row, prepared: ArcPreparation, settings: Settings, run: Run) -> Monitor:
    """Train as the row has it; with development data, its score is taken after each pass."""
    if row != "observed":
        return fit_as_trained(prepared, prepared.data, settings, run)
    problem = prepared.problem
    observed = Observed(ArcProblem(problem.scorer, problem.structures, problem.coded, prepared.trees))
    epochs, dev = settings.epochs or 1, prepared.dev
    learner = bound(Perceptron(epochs, settings.c or 0.0, settings.seed), observed)
    scored = None if dev is None else dev.uas
    return run.fit("parser-1", learner, observed.size, replace(settings, patience=epochs), shown="tree", dev=scored)


def _cells(experiment: _Experiment, file: CellFile, say: Say) -> dict[str, Cell]:
    """Every choice before any test."""
    defaults = experiment.settings()
    chosen: dict[Row, Cell] = {"all": {"c": defaults.c, "passes": defaults.epochs, "held_out": None}}
    for row in ROWS:
        if row in chosen:
            continue
        chosen[row], is_new = file.cell(f"held-out-{row}", partial(experiment.tuned, row))
        if is_new:
            say(f"held-out-{row}: {chosen[row]['held_out']:.2f}")
    for seed, row in product(SEEDS, ROWS):
        if row == "all" and seed != SEEDS[0]:  # nothing is drawn there
            continue
        cell, is_new = file.cell(f"test-{row}-{seed}", partial(experiment.tested, row, seed, chosen[row]))
        if is_new:
            say(f"test-{row}-{seed}: {cell['uas_no_punct']:.2f}")
    return file.cells
