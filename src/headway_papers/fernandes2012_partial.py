"""Training from partial annotation, by the latent structure perceptron of fernandes2012 (section 2.3).

Some of the heads of the training trees are kept, and the others hidden. From these learn

    latent      the whole tree is latent, but for the known heads: `headway train` on such a treebank, all trees that
                have the known heads counting by their probabilities
    observed    the same perceptron, its updates cut down to the words whose heads are known

Three tenths are drawn at random first. Beside them, the same learner learns from as many heads on whole sentences,
drawn at random (`sentences`), and from all heads (`all`). All are arc-factored models with a margin, without labels, on
gold tags. C and the number of passes of the first three are chosen on Danish with seed 0, on the last tenth of the
training sentences, which keep their trees; all treebanks use these. Then each is trained on all training sentences,
with three draws of the heads, and parses the test sentences once. `all` has the defaults of `headway train`.

Then the heads are chosen in two ways, a tenth, two tenths and three tenths of them: at random, or the least certain
first (`head_choice`). The second begins with a twentieth at random; a latent model learns from these, and the least
certain of the other words make up the tenth; a latent model of that tenth chooses the next tenth, and so on. C and
passes are the same as above: nothing is chosen for the other shares, or for the least certain heads.

`DIR` has the folders `conllx/danish`, `ud/UD_Hungarian-Szeged` and `ud/UD_English-EWT`, of which every sixth training
sentence is used. Chosen words are kept in `models/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any, Literal, NamedTuple

import numpy as np

from headway import __version__
from headway.arrays import Bools, Floats, Ints
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
from headway.treebank import Sentence
from headway_papers.cells import Cell, CellFile
from headway_papers.corpora import HELD_OUT, Corpus, Say, require_names, test_once
from headway_papers.head_choice import certainties, least_certain, random_words, with_heads_of
from headway_papers.markdown import markdown_table

Row = Literal["latent", "observed", "sentences", "all"]
Choice = Literal["random", "least certain"]

TREEBANKS = {"danish": "conllx/danish", "hungarian": "ud/UD_Hungarian-Szeged", "ewt": "ud/UD_English-EWT"}
TUNED = "danish"  # where C and passes are chosen
EVERY = {"ewt": 6}  # of the training sentences, every so many-th
SHARE = 0.3
FIRST, SHARES = 0.05, (0.1, 0.2, SHARE)
CHOICES: tuple[Choice, ...] = ("random", "least certain")
LEARNERS: dict[Row, str] = {"latent": "the others latent", "observed": "updates on these alone"}
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
    chosen = require_names(languages, TREEBANKS, "treebank")
    results, models = output / ("quick" if quick else "results"), output / "models" / ("quick" if quick else "")
    for folder in (results, models):
        folder.mkdir(parents=True, exist_ok=True)
    experiments = {
        name: Experiment(read_corpus(data, name, 300 if quick else None), models, threads, quick)
        for name in dict.fromkeys((TUNED, *chosen))
    }
    settings = _chosen(experiments[TUNED], results, say)
    for name in chosen:
        _tests(experiments[name], settings, results, say)
        _choices(experiments[name], settings, results, say)
    text = tables_text(results)
    (output / ("quick.md" if quick else "tables.md")).write_text(text, encoding="utf-8")
    say(text)


def read_corpus(data: Path, name: str, most: int | None = None) -> Corpus:
    """A treebank with its first `most` sentences, or all that are used of it."""
    folder = data / TREEBANKS[name]
    if folder.parent.name == "conllx":
        return Corpus.read(folder.parent, name, most)
    whole = Corpus.read_ud(folder, name)
    return Corpus(name, whole.train[:: EVERY.get(name, 1)][:most], whole.test[:most])


def hidden(sentences: Sequence[Sentence], share: float, seed: int) -> list[Sentence]:
    """The sentences with that share of all their heads, drawn at random; one may be left without any."""
    return with_heads_of(sentences, random_words(sum(map(len, sentences)), share, seed))


def drawn(sentences: Sequence[Sentence], heads: int, seed: int) -> list[Sentence]:
    """Whole sentences in random order, each that still fits into so many heads."""
    chosen = []
    for i in np.random.default_rng(seed).permutation(len(sentences)).tolist():
        if len(sentences[i]) <= heads:
            chosen.append(sentences[i])
            heads -= len(sentences[i])
    return chosen


def tables_text(results: Path) -> str:
    """The tables of the treebanks there are."""
    tables, rows = [], []
    for name in TREEBANKS:
        if (results / f"{name}.json").exists():
            cells = CellFile.read(results / f"{name}.json")
            tables.append(table_text(name, cells))
            if (results / f"{name}-choices.json").exists():
                known = {**_drawn_at_random(cells), **CellFile.read(results / f"{name}-choices.json")}
                tables.append(choices_text(name, known))
                rows.append([name, *_beside(known)])
    header = ["treebank", *(f"{share:.0%}, {choice}" for share in SHARES for choice in CHOICES)]
    title = "## Which heads, the others latent: test UAS of the draws that both choices have"
    return "\n".join([*tables, markdown_table(title, header, rows)])


def table_text(language: str, cells: dict[str, Cell]) -> str:
    """Test UAS without punctuation: the mean, and each draw of the heads; and what was chosen on held-out sentences."""
    rows = []
    for row, name in ROWS.items():
        tests = [cells[f"test-{row}-{seed}"] for seed in SEEDS if f"test-{row}-{seed}" in cells]
        if not tests:
            rows.append([name, *["missing"] * 6])
            continue
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


def _drawn_at_random(cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """The cells of the first table that belong in the second, by their names there."""
    names = {f"random-{SHARE:g}-{row}-{seed}": f"test-{row}-{seed}" for row in LEARNERS for seed in SEEDS}
    return {name: cells[other] for name, other in names.items() if other in cells}


def _beside(known: Mapping[str, Cell]) -> list[str]:
    """For each share, random and least certain heads, of the draws that both have."""
    row = []
    for share in SHARES:
        names = [[f"{choice}-{share:g}-latent-{seed}" for choice in CHOICES] for seed in SEEDS]
        pairs = [
            [known[name]["uas_no_punct"] for name in pair] for pair in names if all(each in known for each in pair)
        ]
        row += [f"{mean(scores):.2f}" for scores in zip(*pairs, strict=True)] or ["missing"] * len(CHOICES)
    return row


def choices_text(language: str, known: Mapping[str, Cell]) -> str:
    """Test UAS without punctuation by the share of the heads and by who chose them: the mean, and each draw."""
    rows = []
    for share, row, choice in product(SHARES, LEARNERS, CHOICES):
        names = [f"{choice}-{share:g}-{row}-{seed}" for seed in SEEDS]
        scores = [known[name]["uas_no_punct"] for name in names if name in known]
        shown = [f"{mean(scores):.2f}", ", ".join(f"{score:.2f}" for score in scores)] if scores else ["missing"] * 2
        rows.append([f"{share:.0%}", LEARNERS[row], choice, *shown])
    header = ["heads", "learnt with", "chosen", "test UAS, mean", "each draw"]
    return markdown_table(f"## {language}: which heads", header, rows)


class Fitted(NamedTuple):
    """A trained learner, before it is a parser."""

    prepared: ArcPreparation
    monitor: Monitor
    settings: Settings


@dataclass(frozen=True)
class Experiment:
    """One treebank, and how much is done with it; the words chosen in rounds are kept in the folder `models`."""

    corpus: Corpus
    models: Path
    threads: int
    quick: bool = False

    @property
    def run(self) -> Run:
        return Run(executor_for(self.threads))

    @property
    def grid(self) -> tuple[float, ...]:
        return GRID[1:3] if self.quick else GRID

    @property
    def passes(self) -> int:
        return 3 if self.quick else PASSES

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

    def choices_signature(self, chosen: Mapping[Row, Cell]) -> dict[str, Any]:
        """The same for the second table, with all it depends on."""
        settings = {row: {name: chosen[row][name] for name in ("c", "passes")} for row in LEARNERS}
        return {**self.signature, "first": FIRST, "shares": list(SHARES), "settings": settings}

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

    def words(self, choice: Choice, share: float, seed: int, chosen: Cell) -> Bools:
        """The words whose heads are known; `chosen` has the latent learner's C and passes."""
        if choice == "random" or share == FIRST:
            return random_words(sum(map(len, self.corpus.train)), share, seed)
        path = self._path(share, seed, chosen)
        if not path.exists():
            known = self.words(choice, (FIRST, *SHARES)[SHARES.index(share)], seed, chosen)
            fitted = self._fitted("latent", with_heads_of(self.corpus.train, known), seed, chosen)
            self._choose(known, fitted, share, path)
        kept: Bools = np.load(path)
        return kept

    def _choose(self, known: Bools, fitted: Fitted, share: float, path: Path) -> None:
        """Keep the words that make up the next share, chosen by a model of the heads so far."""
        assert fitted.monitor.best is not None
        certainty = certainties(fitted.prepared, fitted.monitor.best, fitted.settings, self.corpus.train, known)
        np.save(path, least_certain(known, certainty, share))

    def _path(self, share: float, seed: int, chosen: Cell) -> Path:
        made = f"{checksum(self.corpus.train)}-{chosen['c']:g}-{chosen['passes']}"
        return self.models / f"{self.corpus.language}-{made}-{seed}-{share:g}.npy"

    def chosen_and_tested(self, choice: Choice, share: float, row: Row, seed: int, chosen: Mapping[Row, Cell]) -> Cell:
        """The test scores of a model of that share of the heads; a latent one also chooses the next."""
        known = self.words(choice, share, seed, chosen["latent"])
        sentences = with_heads_of(self.corpus.train, known)
        fitted = self._fitted(row, sentences, seed, chosen[row])
        if choice == "least certain" and row == "latent" and share != SHARES[-1]:
            following = SHARES[SHARES.index(share) + 1]
            self._choose(known, fitted, following, self._path(following, seed, chosen[row]))
        return self._test(fitted, sentences, chosen[row])

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
        return self._test(self._fitted(row, sentences, seed, chosen), sentences, chosen)

    def _fitted(self, row: Row, sentences: Sequence[Sentence], seed: int, chosen: Cell) -> Fitted:
        settings = replace(self.settings(seed=seed), c=chosen["c"], epochs=chosen["passes"])
        prepared = prepare_arcs(TrainingData(list(sentences), sha256=checksum(sentences)), settings, self.run)
        return Fitted(prepared, fit(row, prepared, settings, self.run), settings)

    def _test(self, fitted: Fitted, sentences: Sequence[Sentence], chosen: Cell) -> Cell:
        model = fitted.prepared.finish(fitted.monitor, fitted.settings, self.run)
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


def _chosen(experiment: Experiment, results: Path, say: Say) -> dict[Row, Cell]:
    """C and passes of every row, chosen before any test."""
    file = CellFile.open(results / f"{experiment.corpus.language}.json", experiment.signature)
    defaults = experiment.settings()
    chosen: dict[Row, Cell] = {"all": {"c": defaults.c, "passes": defaults.epochs, "held_out": None}}
    for row in ROWS:
        if row in chosen:
            continue
        chosen[row], is_new = file.cell(f"held-out-{row}", partial(experiment.tuned, row))
        if is_new:
            say(f"held-out-{row}: {chosen[row]['held_out']:.2f}")
    return chosen


def _tests(experiment: Experiment, chosen: Mapping[Row, Cell], results: Path, say: Say) -> None:
    """The cells of the first table."""
    language, signature = experiment.corpus.language, experiment.signature
    if language != TUNED:
        settings = {row: {name: cell[name] for name in ("c", "passes")} for row, cell in chosen.items()}
        chosen = {row: {**cell, "held_out": None} for row, cell in settings.items()}
        signature = {**signature, "settings": settings}
    file = CellFile.open(results / f"{language}.json", signature)
    for seed, row in product(SEEDS, ROWS):
        if row == "all" and seed != SEEDS[0]:  # nothing is drawn there
            continue
        _said(f"test-{row}-{seed}", experiment, file, partial(experiment.tested, row, seed, chosen[row]), say)


def _choices(experiment: Experiment, chosen: Mapping[Row, Cell], results: Path, say: Say) -> None:
    """The cells of the second table that are not in the first."""
    path = results / f"{experiment.corpus.language}-choices.json"
    file = CellFile.open(path, experiment.choices_signature(chosen))
    for seed, share, choice, row in product(SEEDS, SHARES, CHOICES, LEARNERS):
        if choice == "random" and share == SHARE:
            continue
        compute = partial(experiment.chosen_and_tested, choice, share, row, seed, chosen)
        _said(f"{choice}-{share:g}-{row}-{seed}", experiment, file, compute, say)


def _said(name: str, experiment: Experiment, file: CellFile, compute: Callable[[], Cell], say: Say) -> None:
    cell, is_new = file.cell(name, compute)
    if is_new:
        say(f"{experiment.corpus.language} {name}: {cell['uas_no_punct']:.2f}")
