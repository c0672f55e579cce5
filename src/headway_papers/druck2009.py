"""druck2009's three objectives at work on UD treebanks: rules instead of trees, text beside trees, expected loss.

The paper has no tables; these are ours. `DIR` holds folders such as `UD_English-EWT` with `*-ud-train.conllu[.gz]`,
`-dev` and `-test`. Every treebank is used twice: its sentences of at most 20 words, and all of them. Tags are the
treebank's, trees unlabelled and single-root, scores leave punctuation out. In each of these:

(a) no trees: the `universal` rules about the training text (generalized expectation), beside right- and left-branching
    trees, and beside log-linear training on 10, 50, 100 and 1000 trees drawn with five seeds;
(b) 100 trees, the same draws, with and without entropy regularisation on the rest of the training text. Its weight is
    the best on the development sentences over the draws. At weight 0, the text adds to the features only, whose words
    and hash tables it makes known: without that row, their gain would look like the entropy's;
(c) all trees: log-linear and expected-loss training, C chosen on the development sentences.

Only for the short sentences, as they take less time: rules estimated from 10 and from 100 drawn trees, Renyi's entropy
of order 2 beside Shannon's, and the choice of the weight, which all sentences then take over.

The rules were written, and C and the criterion chosen, on the English development sentences of at most 20 words.
Choices never look at test scores. Results are kept a treebank and length a file, cell by cell; an interruption loses
the cell it falls into.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from headway import __version__
from headway.arrays import Ints
from headway.errors import TreebankError
from headway.evaluation import evaluate
from headway.features.rules import read_rules, rules_from_trees
from headway.pipeline import Parser
from headway.training.data import checksum
from headway.treebank import Sentence, read_treebank
from headway_papers.cells import Cell, CellFile
from headway_papers.corpora import Say, require_names
from headway_papers.druck2009_tables import draw, tables_text
from headway_papers.koo2010_figures import require_matplotlib

TREEBANKS = {"english": "UD_English-EWT", "hungarian": "UD_Hungarian-Szeged", "portuguese": "UD_Portuguese-Bosque"}
LENGTHS: dict[str, int | None] = {"20": 20, "all": None}
ORDERS = (1.0, 2.0)


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    sentences: int | None
    trees: tuple[int, ...]
    seeds: int
    few: int  # trees of (b)
    steps: int
    epochs: int
    weights: tuple[float, ...]
    c: Mapping[str, tuple[float, ...]]


FULL = Size(
    None, (10, 50, 100, 1000), 5, 100, 60, 8, (0.01, 0.03, 0.1),
    {"loglinear": (0.3, 1.0), "expected-loss": (3.0, 10.0)},
)  # fmt: skip
QUICK = Size(40, (5, 10), 2, 10, 3, 1, (0.1,), {"loglinear": (1.0,), "expected-loss": (1.0,)})

_TREES: dict[str, Any] = {"labels": "none", "tags": "gold", "templates": "pruner"}
_FEW: dict[str, Any] = {**_TREES, "learner": "loglinear", "c": 1.0}
_RULES: dict[str, Any] = {"tags": "gold", "projective": True}


def run(data: Path, output: Path, *, languages: Sequence[str] | None, quick: bool, threads: int, say: Say) -> None:
    """Compute the cells that are missing, write `tables.md` and the figure of learning curves."""
    require_matplotlib()
    chosen = require_names(languages, TREEBANKS, "treebank")
    for language in chosen:
        for part in ("train", "dev", "test"):
            _file(data, language, part)
    results = output / ("quick" if quick else "results")
    results.mkdir(parents=True, exist_ok=True)
    size = QUICK if quick else FULL
    for language in chosen:
        short, whole = (Experiment.of(data, language, length, size, results, threads, say) for length in LENGTHS)
        for experiment in (short, whole):
            experiment.branching()
            experiment.rules()
            experiment.few_trees()
            experiment.all_trees()
        short.estimated_rules()
        for order in ORDERS:
            short.entropy(order, size.weights)
        whole.entropy(ORDERS[0], [short.cells[f"entropy-{ORDERS[0]:g}-chosen"]["weight"]])
    found = {path.stem: json.loads(path.read_text("utf-8"))["cells"] for path in sorted(results.glob("*.json"))}
    prefix = "quick-" if quick else ""
    text = tables_text(found)
    (output / ("quick.md" if quick else "tables.md")).write_text(text, encoding="utf-8")
    draw(found, output / f"{prefix}learning-curves")
    say(text)


@dataclass(frozen=True)
class Experiment:
    """One treebank at one length."""

    name: str
    parts: Mapping[str, list[Sentence]]
    size: Size
    file: CellFile
    threads: int
    say: Say

    @property
    def cells(self) -> dict[str, Cell]:
        """Those computed so far."""
        return self.file.cells

    @classmethod
    def of(
        cls, data: Path, language: str, length: str, size: Size, results: Path, threads: int, say: Say
    ) -> Experiment:
        """Read the treebank, and what is done already for the same data."""
        parts = {part: _sentences(data, language, part, LENGTHS[length], size) for part in ("train", "dev", "test")}
        name = f"{language}-{length}"
        path = results / f"{name}.json"
        signed = {
            "headway": __version__,
            "treebank": TREEBANKS[language],
            "longest": LENGTHS[length],
            "rules": read_rules("universal").to_toml(),
            "data": {part: checksum(some) for part, some in parts.items()},
        }
        return cls(name, parts, size, CellFile.open(path, signed), threads, say)

    def branching(self) -> None:
        """(a) Every word on the word before it, or after it; the last one on the root."""
        for side, head in (("right", _right_branching), ("left", _left_branching)):
            self._cell(f"{side}-branching", partial(self._measure, _with_heads(head)))

    def rules(self) -> None:
        """(a) From rules and text; non-projective trees are the paper's class."""
        for name, projective in (("rules", True), ("rules-non-projective", False)):
            settings = {**_RULES, "projective": projective, "epochs": self.size.steps}
            self._cell(name, partial(self._constrained, read_rules("universal"), settings))

    def few_trees(self) -> None:
        """(a) From a few trees."""
        for count in self.size.trees:
            for seed in range(self.size.seeds):
                chosen = self._draw(count, seed)[0]
                if len(chosen) == count:
                    self._cell(f"trees-{count}-{seed}", partial(self._trained, chosen, **self._few()))

    def estimated_rules(self) -> None:
        """(a) From text, and rules that the few trees give."""
        for count in (self.size.trees[0], self.size.few):
            for seed in range(self.size.seeds):
                settings = {**_RULES, "projective": False, "epochs": self.size.steps}
                estimated = rules_from_trees(self._draw(count, seed)[0])
                self._cell(f"estimated-{count}-{seed}", partial(self._constrained, estimated, settings))

    def entropy(self, order: float, weights: Sequence[float]) -> None:
        """(b) A few trees and the rest of the text; the weight is chosen on development sentences."""
        self._entropy_of(ORDERS[0], 0.0)
        dev = {weight: self._entropy_of(order, weight) for weight in weights}
        best = max(dev, key=lambda weight: float(np.mean([cell["dev"]["uas"] for cell in dev[weight]])))
        self._cell(f"entropy-{order:g}-chosen", partial(dict, weight=best, trees=self.size.few))

    def _entropy_of(self, order: float, weight: float) -> list[Cell]:
        found = []
        for seed in range(self.size.seeds):
            trees, text = self._draw(self.size.few, seed)
            settings = {**self._few(), "entropy_weight": weight, "entropy_order": order}
            name = f"entropy-{order:g}-{weight:g}-{seed}"
            found.append(self._cell(name, partial(self._trained, trees, text=text, **settings)))
        return found

    def all_trees(self) -> None:
        """(c) From all trees, by the likelihood and by the expected loss; the test sentences for the best C only."""
        for learner, grid in self.size.c.items():
            settings = {**_TREES, "learner": learner, "optimiser": "adagrad", "epochs": self.size.epochs}
            self._cell(f"all-{learner}", partial(self._best_c, settings, grid))

    def _best_c(self, settings: Mapping[str, Any], grid: Sequence[float]) -> Cell:
        started = time.monotonic()
        parsers = [Parser.train(self.parts["train"], c=c, threads=self.threads, **settings) for c in grid]
        dev = [self._scores(parser, "dev") for parser in parsers]
        best = int(np.argmax([scores["uas"] for scores in dev]))
        return {
            "settings": {**settings, "c": grid[best]},
            "tried": [{"c": c, "dev": scores} for c, scores in zip(grid, dev, strict=True)],
            "dev": dev[best],
            "test": self._scores(parsers[best], "test"),
            "seconds": time.monotonic() - started,
        }

    def _few(self) -> dict[str, Any]:
        return {**_FEW, "epochs": self.size.steps}

    def _draw(self, count: int, seed: int) -> tuple[list[Sentence], list[Sentence]]:
        """`count` training sentences, and all others."""
        train = self.parts["train"]
        order = np.random.default_rng((count, seed)).permutation(len(train)).tolist()
        return [train[i] for i in order[:count]], [train[i] for i in order[count:]]

    def _trained(self, trees: list[Sentence], text: list[Sentence] | None = None, **settings: Any) -> Cell:
        started = time.monotonic()
        parser = Parser.train(trees, text=text, threads=self.threads, **settings)
        return {"settings": settings, "seconds": time.monotonic() - started, **self._measure(parser)}

    def _constrained(self, rules: Any, settings: dict[str, Any]) -> Cell:
        started = time.monotonic()
        parser = Parser.constrain(rules, self.parts["train"], threads=self.threads, **settings)
        seconds = time.monotonic() - started
        return {"settings": settings, "seconds": seconds, **self._measure(parser.with_projective(True), mbr=True)}

    def _measure(self, parser: Parser | _Branching, mbr: bool = False) -> Cell:
        return {part: self._scores(parser, part, mbr) for part in ("dev", "test")}

    def _scores(self, parser: Parser | _Branching, part: str, mbr: bool = False) -> dict[str, float]:
        gold = self.parts[part]
        if isinstance(parser, Parser):
            found = [parsed.sentence for parsed in parser.parse(iter(gold), mbr=mbr, threads=self.threads)]
        else:
            found = [parser(sentence) for sentence in gold]
        scores = evaluate(gold, found)
        return {"uas": scores.uas_no_punct, "uas_with_punct": scores.uas}

    def _cell(self, name: str, compute: Callable[[], Cell]) -> Cell:
        """A cell, computed unless it is there, and then kept."""
        cell, is_new = self.file.cell(name, compute)
        if is_new:
            test = cell.get("test")
            self.say(f"{self.name} {name}" + (f": test UAS {test['uas']:.2f}" if test else ""))
        return cell


_Branching = Callable[[Sentence], Sentence]


def _with_heads(head: Callable[[int], Ints]) -> _Branching:
    return lambda sentence: sentence.with_tree(head(len(sentence)), None)


def _right_branching(n: int) -> Ints:
    """Heads stand before their words: -1, 0, 1, 2, ..."""
    return np.arange(-1, n)


def _left_branching(n: int) -> Ints:
    """Heads stand after their words: -1, 2, 3, ..., 0."""
    heads = np.arange(1, n + 2)
    heads[0], heads[n] = -1, 0 if n else -1
    return heads


def _sentences(data: Path, language: str, part: str, longest: int | None, size: Size) -> list[Sentence]:
    fitting = (s for s in read_treebank(_file(data, language, part)) if 0 < len(s) <= (longest or len(s)))
    return list(fitting)[: size.sentences]


def _file(data: Path, language: str, part: str) -> Path:
    folder = data / TREEBANKS[language]
    path = next(iter(sorted(folder.glob(f"*-ud-{part}.conllu*"))), None)
    if path is None:
        raise TreebankError(f"no *-ud-{part}.conllu[.gz] there; give the folder of the UD treebanks", str(folder))
    return path
