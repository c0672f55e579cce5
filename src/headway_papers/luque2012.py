"""luque2012's figures and tables on a tenth of the Penn Treebank and on UD English-EWT.

`DIR` holds `wsj-sample/wsj_sample.conll[.gz]`, NLTK's sample of the Wall Street Journal, in file order 3314 sentences
to learn from, 300 for choices and 300 to test; and `ud/UD_English-EWT`. Tags are the treebank's own (XPOS), trees are
unlabelled, and decoding is MBR. UAS leaves punctuation out; that with punctuation stands beside it in the files.

Cells, for each treebank:

- `det-1`, `det-2`: DET and DET+F, also by Viterbi (footnote 7);
- `spectral-paper`, `spectral`, `spectral-scaled`: figure 1, every number of states; the paper's statistics (substrings
  of length three, no ridge), ours (`headway.learning.spectral`), and ours scaled;
- `em-S-R`: EM with S states from start R, the development score at some of 100 iterations;
- `table-1`: the test sentences, by what was best on the development sentences;
- `lexical-C`: figure 2, LEX, LEX+F, LEX+FCP alone, and with spectral grammars of several numbers of states;
- `timings`: seconds to learn, one thread, in one run: the trie of prefixes, for all methods; spectral, with the states
  of table 1; an iteration of EM; and the same iteration over sequences one by one, where ours shares their prefixes;
- `parsing`: sentences a second;
- `pictures`: figure 3 for NN:left, and for the two automata that gain most from their hidden states.

EM and spectral grammars are backed off to DET+F alike. Choices never look at test scores. An interruption loses the
cell it falls into.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np

from headway import __version__
from headway.drawing import automaton_dot, automaton_drawing, to_svg
from headway.errors import TreebankError
from headway.evaluation import evaluate
from headway.inference.operator_automata import OperatorGrammar
from headway.inference.operator_grammar import mbr, posteriors
from headway.inference.operator_viterbi import viterbi
from headway.learning.deterministic import deterministic_grammar
from headway.learning.expectation_maximization import em_steps
from headway.learning.modifier_trie import ModifierTrie
from headway.learning.spectral import CONTEXT, LEAST, RIDGE, spectral_grammar
from headway.models.grammar_model import Grammar, TagSymbols, tags_of
from headway.models.lexical_grammar import Configuration, LexicalGrammar
from headway.parallel import executor_for
from headway.pipeline import Parser
from headway.training.data import checksum
from headway.training.grammar_settings import BACKED_OFF
from headway.training.grammar_trainer import Direction, GrammarDevelopment, state_picture, trie_of
from headway.treebank import Sentence, projectivise, read_treebank, require_tree
from headway_papers.cells import Cell, CellFile
from headway_papers.corpora import Say, require_names
from headway_papers.koo2010_figures import require_matplotlib
from headway_papers.luque2012_figures import draw, tables_text
from headway_papers.luque2012_recovery import run as recovery

TREEBANKS = ("wsj", "ewt")
SPLIT = (3314, 3614)  # of the sample: where the development and the test sentences begin
# context, ridge, how often longer strings must have been seen, and the scale; all of the third found on EWT's
# development sentences
VARIANTS: dict[str, tuple[int, float, float, float]] = {
    "spectral-paper": (1, 0.0, 1.0, 0.0),
    "spectral": (CONTEXT, RIDGE, LEAST, 0.0),
    "spectral-scaled": (CONTEXT, 10.0, LEAST, 0.5),
}
CONFIGURATIONS: tuple[Configuration, ...] = get_args(Configuration)
STATES = 9  # of the pictures, and of the parser that is timed


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    sentences: int | None
    spectral: tuple[int, ...]
    em: tuple[int, ...]
    restarts: int
    iterations: tuple[int, ...]  # after which EM is scored
    combined: tuple[int, ...]
    repeats: int


FULL = Size(
    None,
    (*range(1, 16), 20, 25),
    (2, 3, 5, 7, 9, 11, 13, 15, 20),
    5,
    (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100),
    (1, 2, 3, 5, 7, 9, 12, 15),
    5,
)
QUICK = Size(60, (1, 2, 3), (2,), 1, (1, 2, 5), (1, 2), 1)


def run(data: Path, output: Path, *, languages: Sequence[str] | None, quick: bool, threads: int, say: Say) -> None:
    """Compute the cells that are missing, write `tables.md`, the figures and the pictures."""
    require_matplotlib()
    chosen = require_names(languages, TREEBANKS, "treebank")
    for name in chosen:
        _files(data, name)
    results = output / ("quick" if quick else "results")
    results.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        Experiment.of(data, name, QUICK if quick else FULL, results, threads, say).all_cells()
    if not quick:
        recovery(output, say=say)
    files = {name: results / f"{name}.json" for name in TREEBANKS}
    found = {name: json.loads(path.read_text("utf-8"))["cells"] for name, path in files.items() if path.exists()}
    text = tables_text(found)
    (output / ("quick.md" if quick else "tables.md")).write_text(text, encoding="utf-8")
    draw(found, output, "quick-" if quick else "")
    say(text)


@dataclass(frozen=True)
class Experiment:
    """One treebank."""

    name: str
    parts: Mapping[str, list[Sentence]]
    symbols: TagSymbols
    trie: ModifierTrie
    ready: Mapping[str, GrammarDevelopment]  # for grammars over tags alone
    size: Size
    file: CellFile
    threads: int
    say: Say

    @property
    def cells(self) -> dict[str, Cell]:
        """Those computed so far."""
        return self.file.cells

    @classmethod
    def of(cls, data: Path, name: str, size: Size, results: Path, threads: int, say: Say) -> Experiment:
        """Read the treebank, and what is done already for the same data."""
        parts = _parts(data, name, size.sentences)
        parts["train"] = [projectivise(sentence) for sentence in parts["train"]]
        path = results / f"{name}.json"
        signed = {
            "headway": __version__,
            "backed_off": BACKED_OFF,
            "spectral": {variant: list(settings) for variant, settings in VARIANTS.items()},
            "data": {part: checksum(some) for part, some in parts.items()},
        }
        symbols = TagSymbols.learn(parts["train"], "xpos")
        trie = trie_of(parts["train"], symbols)
        executor = executor_for(threads)
        ready = {part: GrammarDevelopment(parts[part], symbols, None, True, executor) for part in ("dev", "test")}
        return cls(name, parts, symbols, trie, ready, size, CellFile.open(path, signed), threads, say)

    def all_cells(self) -> None:
        """Whatever is missing."""
        self.tag_grammars()
        self._cell("table-1", self._table)
        for configuration in CONFIGURATIONS:
            self._cell(f"lexical-{configuration}", partial(self._lexical, configuration))
        self._cell("timings", self._timings)
        self._cell("parsing", self._parsing)
        self._cell("pictures", self._pictures)

    def tag_grammars(self) -> None:
        """The curves of figure 1: deterministic, spectral and EM grammars."""
        for states in (1, 2):
            self._cell(f"det-{states}", partial(self._deterministic, states))
        for variant in VARIANTS:
            self._cell(variant, partial(self._spectral_curve, variant))
        for states in self.size.em:
            for restart in range(self.size.restarts):
                self._cell(f"em-{states}-{restart}", partial(self._em_curve, states, restart))

    def _deterministic(self, states: int) -> Cell:
        operators = deterministic_grammar(self.trie, first=states == 2)
        grammar = Grammar(self.symbols, operators)
        cell: Cell = {part: self._scores(grammar, part) for part in ("dev", "test")}
        for part in ("dev", "test"):
            symbols = list(map(self.symbols.of, self.parts[part]))
            best = [
                s.with_tree(h, None) for s, (h, _) in zip(self.parts[part], viterbi(operators, symbols), strict=True)
            ]
            cell[part]["viterbi"] = evaluate(self.parts[part], best).uas_no_punct
        return cell

    def _spectral_curve(self, variant: str) -> Cell:
        largest = self._spectral(variant, self.size.spectral[-1])
        return {
            "states": list(self.size.spectral),
            "dev": [self._scores(self._grammar(largest.leading(s)), "dev") for s in self.size.spectral],
        }

    def _em_curve(self, states: int, restart: int) -> Cell:
        iterations, likelihoods, dev = list(self.size.iterations), [], []
        for step in islice(em_steps(self.trie, states, _rng(states, restart)), iterations[-1]):
            likelihoods.append(step.log_likelihood)
            if step.number in iterations:
                dev.append(self._scores(self._grammar(step.grammar), "dev"))
        return {"iterations": iterations, "dev": dev, "log_likelihoods": likelihoods}

    def _table(self) -> Cell:
        """The test sentences, once, by the best of each method on the development sentences."""
        rows: Cell = {"det-1": self.cells["det-1"]["test"], "det-2": self.cells["det-2"]["test"]}
        for variant in VARIANTS:
            states = best_states(self.cells[variant])
            grammar = self._grammar(self._spectral(variant, states))
            rows[variant] = {"states": states, **self._scores(grammar, "test")}
        states, restart, iteration = best_em(self.cells)
        last = next(islice(em_steps(self.trie, states, _rng(states, restart)), iteration - 1, None))
        chosen = {"states": states, "restart": restart, "iteration": iteration}
        rows["em"] = {**chosen, **self._scores(self._grammar(last.grammar), "test")}
        return rows

    def _lexical(self, configuration: Configuration) -> Cell:
        train = self.parts["train"]
        lexical = LexicalGrammar.learn(configuration, train, [tags_of(s, "xpos") for s in train])
        ones = _ones(self.symbols.size)
        alone = Grammar(self.symbols, ones, lexical=lexical)
        combined, largest = [], self._spectral("spectral", self.size.combined[-1])
        for states in self.size.combined:
            combined.append(self._scores(self._grammar(largest.leading(states), lexical), "dev"))
        best = self.size.combined[int(np.argmax([scores["uas"] for scores in combined]))]
        return {
            "alone": {part: self._scores(alone, part) for part in ("dev", "test")},
            "states": list(self.size.combined),
            "dev": combined,
            "best": best,
            "test": self._scores(self._grammar(largest.leading(best), lexical), "test"),
        }

    def _timings(self) -> Cell:
        """Best of some repeats, each timed beside the others in turn, so that all see the same machine."""
        learn: dict[str, Callable[[], object]] = {"trie": partial(trie_of, self.parts["train"], self.symbols)}
        for variant in VARIANTS:
            learn[variant] = partial(self._spectral, variant, best_states(self.cells[variant]))
        single = _unshared(self.trie)
        for states in self.size.em:
            for name, trie in (("em", self.trie), ("em-sequences", single)):
                steps = em_steps(trie, states, _rng(states, 0))
                learn[f"{name}-{states}"] = partial(next, steps)
        seconds: dict[str, list[float]] = {name: [] for name in learn}
        for _ in range(self.size.repeats + 1):  # the first compiles
            for name, call in learn.items():
                started = time.perf_counter()
                call()
                seconds[name].append(time.perf_counter() - started)
        best = {name: min(times[1:]) for name, times in seconds.items()}
        return {
            "sequences": float(self.trie.counts.sum()),
            "prefixes": len(self.trie.symbols),
            "unshared": len(single.symbols),
            "seconds": best,
            "reached": {variant: self._reached(variant, best) for variant in VARIANTS},
        }

    def _reached(self, variant: str, seconds: Mapping[str, float]) -> Cell:
        """The development score of the spectral grammar, how many of EM's starts come to it, and which one soonest.

        Where none does, `soonest` is all iterations of the start that comes nearest.
        """
        goal = max(scores["uas"] for scores in self.cells[variant]["dev"])
        every = list(em_scores(self.cells))
        there = [run for run in every if run.uas >= goal]
        nearest = max(every, key=lambda run: run.uas)
        soonest = min(there, key=lambda run: run.iteration * seconds[f"em-{run.states}"], default=nearest)
        last = max(run.iteration for run in every if run[:2] == nearest[:2])
        return {
            "uas": goal,
            "starts": len({run[:2] for run in every}),
            "reached": len({run[:2] for run in there}),
            "soonest": {**soonest._asdict(), "iteration": soonest.iteration if there else last},
        }

    def _parsing(self) -> Cell:
        """How fast the test sentences are parsed, from tagged words to trees, one thread; the best of some repeats."""
        parser = Parser.induce(self.parts["train"], states=STATES, labels="none")
        seconds = []
        for _ in range(self.size.repeats + 1):  # the first compiles
            started = time.perf_counter()
            count = sum(1 for _ in parser.parse(iter(self.parts["test"])))
            seconds.append(time.perf_counter() - started)
        words = sum(map(len, self.parts["test"]))
        return {"states": STATES, "words_per_sentence": words / count, "sentences_per_second": count / min(seconds[1:])}

    def _pictures(self) -> Cell:
        """Figure 3: of NN:left, and of where hidden states gain most over DET+F, heads of development words right."""
        grammar = self._grammar(self._spectral("spectral", STATES))
        gains = self._gains(grammar)
        cell: Cell = {"gains": gains[:10], "drawn": {}}
        names = [self.symbols.name(i) for i in range(self.symbols.size)]
        wanted: list[tuple[str, Direction]] = [("NN", "left"), *((tag, side) for tag, side, _ in gains[:2])]
        for head, direction in dict.fromkeys(wanted):
            if head not in self.symbols.names:
                continue
            drawn = state_picture(grammar, head, direction, self.parts["dev"])
            title = f"{head}, {direction} modifiers ({self.name})"
            stem = (
                self.file.path.parent.parent / f"{'quick-' if self.size is QUICK else ''}{self.name}-{head}-{direction}"
            )
            for suffix, text in (
                (".svg", to_svg(automaton_drawing(drawn, names, title=title))),
                (".dot", automaton_dot(drawn, names, title=title)),
            ):
                stem.with_name(stem.name + suffix).write_text(text, encoding="utf-8")
            cell["drawn"][f"{head}:{direction}"] = {"states": drawn.states, "merges": drawn.merges, "lost": drawn.lost}
        return cell

    def _gains(self, grammar: Grammar) -> list[tuple[str, Direction, int]]:
        """Automata by how many more of the development arcs they should have had are found than with DET+F."""
        dev = self.parts["dev"]
        symbols = list(map(self.symbols.of, dev))
        gains: dict[tuple[str, Direction], int] = {}
        before, after = (
            mbr(posteriors(operators, symbols))
            for operators in (deterministic_grammar(self.trie, first=True), grammar.mixture)
        )
        for sentence, numbers, (old, _), (new, _) in zip(dev, symbols, before, after, strict=True):
            gold = require_tree(sentence)
            for m in range(1, len(gold)):
                h = int(gold[m])
                key: tuple[str, Direction] = (self.symbols.name(int(numbers[h])), "left" if m < h else "right")
                gains[key] = gains.get(key, 0) + int(new[m] == h) - int(old[m] == h)
        return sorted(((*key, gain) for key, gain in gains.items()), key=lambda one: (-one[2], one[:2]))

    def _spectral(self, variant: str, states: int) -> OperatorGrammar:
        context, ridge, least, scale = VARIANTS[variant]
        return spectral_grammar(self.trie, states, context=context, ridge=ridge, least=least, scale=scale)

    def _grammar(self, operators: OperatorGrammar, lexical: LexicalGrammar | None = None) -> Grammar:
        return Grammar(self.symbols, operators, deterministic_grammar(self.trie, first=True), BACKED_OFF, lexical)

    def _scores(self, grammar: Grammar, part: str) -> Cell:
        if grammar.lexical is None:
            return asdict(self.ready[part].scores(grammar))
        ready = GrammarDevelopment(self.parts[part], self.symbols, grammar.lexical, True, executor_for(self.threads))
        return asdict(ready.scores(grammar))

    def _cell(self, name: str, compute: Callable[[], Cell]) -> None:
        """A cell, computed unless it is there, and then kept."""
        _, is_new = self.file.cell(name, compute)
        if is_new:
            self.say(f"{self.name} {name}")


def best_states(curve: Cell) -> int:
    """The number of states with the best development score."""
    return int(curve["states"][int(np.argmax([scores["uas"] for scores in curve["dev"]]))])


class Run(NamedTuple):
    """EM with some states from some start, after some iterations: its development score."""

    states: int
    restart: int
    iteration: int
    uas: float


def em_scores(cells: Mapping[str, Cell]) -> Iterator[Run]:
    """All that EM was scored at."""
    for name, cell in cells.items():
        if name.startswith("em-"):
            states, restart = map(int, name.split("-")[1:])
            for iteration, scores in zip(cell["iterations"], cell["dev"], strict=True):
                yield Run(states, restart, iteration, scores["uas"])


def best_em(cells: Mapping[str, Cell]) -> tuple[int, int, int]:
    """States, start and iteration of EM's best development score."""
    best = max(em_scores(cells), key=lambda run: run.uas)
    return best[:3]


def _rng(states: int, restart: int) -> np.random.Generator:
    return np.random.default_rng((states, restart))


def _ones(size: int) -> OperatorGrammar:
    """A grammar that says nothing."""
    return OperatorGrammar(np.ones((size, 2, 1)), np.ones((size, 2, 1)), np.ones((size, 2, size, 1, 1)))


def _unshared(trie: ModifierTrie) -> ModifierTrie:
    """The same sequences, each with nodes of its own: what EM costs without sharing prefixes."""
    starts: list[int] = [0]
    nodes: list[list[float]] = []  # parent, symbol, through, ends
    for tree in range(2 * trie.size):
        nodes.append([-1, 0, trie.through[trie.starts[tree]], 0])
        for sequence, times in trie.sequences(tree // 2, tree % 2):
            for _ in range(int(times)):
                above = starts[-1]
                for symbol in sequence:
                    nodes.append([above, symbol, 1, 0])
                    above = len(nodes) - 1
                nodes[above][3] += 1
        starts.append(len(nodes))
    parents, symbols, through, ends = np.array(nodes).T
    return ModifierTrie(
        trie.size, np.array(starts), parents.astype(np.int64), symbols.astype(np.int64), through.copy(), ends.copy()
    )


def _parts(data: Path, name: str, most: int | None) -> dict[str, list[Sentence]]:
    """Training, development and test sentences."""
    files = _files(data, name)
    if name == "wsj":
        sentences = list(read_treebank(files["all"], format="conllx"))
        dev, test = SPLIT
        return {"train": sentences[:dev][:most], "dev": sentences[dev:test][:most], "test": sentences[test:][:most]}
    return {part: [s for s in read_treebank(path) if len(s)][:most] for part, path in files.items()}


def _files(data: Path, name: str) -> dict[str, Path]:
    """The files of a treebank."""
    if name == "wsj":
        return {"all": _file(data / "wsj-sample", "wsj_sample.conll*")}
    return {part: _file(data / "ud" / "UD_English-EWT", f"*-ud-{part}.conllu*") for part in ("train", "dev", "test")}


def _file(folder: Path, pattern: str) -> Path:
    path = next(iter(sorted(folder.glob(pattern))), None)
    if path is None:
        raise TreebankError(f"has no {pattern}; give the folder that holds wsj-sample and ud", str(folder))
    return path
