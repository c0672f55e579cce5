"""How many corrections a treebank takes: an annotator is simulated who puts a parser's trees right.

The gold tree is known. The parser's tree is shown; while it has wrong heads, the annotator gives one word its right
head. That head is then known, and the parser finds its best tree given all that is known so far, as `headway annotate`
does; each arc of that tree has the label that is best for it. When all heads are right, the labels that are still wrong
are put right. Every head and every label that the annotator gives is a correction. `by hand` is a page whose parser
does not listen: there, every wrong head and every wrong label of the first tree is one. We count heads alone, and heads
with labels. A tree that is parsed again has other heads right (`mended`) and other heads wrong (`broken`) than before,
the corrected one aside.

Which wrong head comes first (labels need no order: they depend on their own arc alone):

    least      the one whose shown head is least probable: what the page leads the eye to
    random     any, three draws
    most       the one whose shown head is most probable, although it is wrong

Models are arc-factored and grand-sibling ones with the defaults of `headway train`, on gold tags; for English also the
included one, whose passes were chosen on these very sentences. `DIR` has the folders `conllx/danish`, whose last tenth
of training sentences is annotated, and `ud/UD_Hungarian-Szeged`, `ud/UD_English-EWT`, whose development sentences are:
the first 500 of ten words or more, or all where there are fewer. Trained models are kept in `models/`.

A new treebank starts small: `grown` begins with an arc model of 100 training sentences, and either keeps it (`kept`) or
trains it again after every 50 sentences, on those 100 and all that were annotated since (`retrained`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from functools import cache, partial
from operator import add
from pathlib import Path
from statistics import mean
from typing import Any, Literal

import numpy as np

from headway import __version__
from headway.arrays import Ints
from headway.errors import TreebankError
from headway.inference.protocol import Distribution
from headway.models.constraints import Constraints
from headway.models.protocol import Options, Prediction, TreeModel
from headway.parallel import Executor, executor_for
from headway.pipeline import Parser
from headway.training.data import checksum
from headway.training.settings import Settings
from headway.treebank import Sentence, read_treebank, require_tree, roots
from headway_papers.cells import Cell, CellFile
from headway_papers.corpora import HELD_OUT, Say, require_names
from headway_papers.markdown import markdown_table

Order = Literal["least", "random", "most"]

TREEBANKS = {"danish": "conllx/danish", "hungarian": "ud/UD_Hungarian-Szeged", "ewt": "ud/UD_English-EWT"}
MODELS = {
    "danish": ("arc", "grandsibling"),
    "hungarian": ("arc", "grandsibling"),
    "ewt": ("en", "arc", "grandsibling"),
}
ORDERS: tuple[Order, ...] = ("least", "random", "most")
SEEDS = (0, 1, 2)
SENTENCES, SHORTEST = 500, 10
FIRST, BLOCK = 100, 50
COUNTED = {"heads": ("heads",), "heads and labels": ("heads", "labels")}
GROWN = "## From an arc model of 100 sentences: how many fewer than by hand with that model"
TIE = 9  # decimals of a log probability; what differs less is equally probable, and the first such word is taken


@dataclass(frozen=True)
class Treebank:
    """What a model is trained on, and what is annotated with it."""

    train: list[Sentence]
    annotated: list[Sentence]

    @classmethod
    def read(cls, data: Path, name: str, most: int | None = None) -> Treebank:
        """The first `most` training sentences, and as many to annotate; or all, and 500."""
        folder = data / TREEBANKS[name]
        if folder.parent.name == "conllx":
            sentences = list(read_treebank(_file(folder, "train.conll*"), format="conllx"))
            kept = len(sentences) - int(len(sentences) * HELD_OUT)
            train, others = sentences[:kept], sentences[kept:]
        else:
            train, others = (list(read_treebank(_file(folder, f"*-ud-{part}.conllu*"))) for part in ("train", "dev"))
        long = [sentence for sentence in others if len(sentence) >= SHORTEST]
        return cls(train[:most], long[: most or SENTENCES])

    @property
    def single_root(self) -> bool:
        return all(len(roots(require_tree(sentence))) == 1 for sentence in self.train if len(sentence))


@dataclass(frozen=True)
class Effort:
    """What sentences cost: heads and labels that are wrong at first (`by_hand`), and those that are given."""

    sentences: int = 0
    heads_by_hand: int = 0
    heads: int = 0
    labels_by_hand: int = 0
    labels: int = 0
    mended: int = 0
    broken: int = 0

    def __add__(self, other: Effort) -> Effort:
        return Effort(*map(add, astuple(self), astuple(other)))


class _Desk:
    """A sentence that is being annotated."""

    def __init__(self, sentence: Sentence) -> None:
        self.sentence = sentence
        self.effort = Effort(1)
        self._gold = require_tree(sentence)
        self._known: Ints = np.full(len(self._gold), -1)
        self._before: Ints | None = None

    @property
    def constraints(self) -> Constraints | None:
        return Constraints(self._known.copy()) if self.effort.heads else None

    def correct(self, found: Prediction, order: Order, rng: np.random.Generator) -> bool:
        """Give one word its right head, or, if all heads are right, the labels; whether that was a head."""
        wrong = np.flatnonzero(found.heads != self._gold)
        self.effort += self._changes(found, wrong)
        if not len(wrong):
            self.effort += Effort(labels=self._wrong_labels(found))
            return False
        word = choose(order, wrong, found.heads, found.distribution, rng)
        self._known[word] = self._gold[word]
        self._before = found.heads.copy()
        self._before[word] = self._gold[word]
        self.effort += Effort(heads=1)
        return True

    def _changes(self, found: Prediction, wrong: Ints) -> Effort:
        """What is wrong with the first tree; of a later one, which other heads changed."""
        if self._before is None:
            return Effort(heads_by_hand=len(wrong), labels_by_hand=self._wrong_labels(found))
        was, now = self._before == self._gold, found.heads == self._gold
        return Effort(mended=int((~was & now).sum()), broken=int((was & ~now).sum()))

    def _wrong_labels(self, found: Prediction) -> int:
        return sum(one != other for one, other in zip(found.labels or (), self.sentence.labels or (), strict=True))


def run(data: Path, output: Path, *, languages: Sequence[str] | None, quick: bool, threads: int, say: Say) -> None:
    """Simulate what is not there yet, and write `tables.md`; `quick` takes 30 sentences and an arc model."""
    chosen = require_names(languages, TREEBANKS, "treebank")
    treebanks = {name: Treebank.read(data, name, 30 if quick else None) for name in chosen}
    results, models = output / ("quick" if quick else "results"), output / "models" / ("quick" if quick else "")
    for folder in (results, models):
        folder.mkdir(parents=True, exist_ok=True)
    for name, treebank in treebanks.items():
        file = CellFile.open(results / f"{name}.json", _signature(treebank))
        parsers = {
            kind: cache(partial(_kept, models / f"{name}-{kind}.headway", kind, treebank)) for kind in MODELS[name]
        }
        some = {"arc": parsers["arc"]} if quick else parsers
        for cell, compute in _cells(treebank, some, executor_for(threads), quick):
            found, is_new = file.cell(cell, compute)
            if is_new:
                say(f"{name} {cell}: {found['heads']} heads, {found['heads_by_hand']} by hand")
    done = [name for name in TREEBANKS if (results / f"{name}.json").exists()]
    text = tables_text({name: CellFile.read(results / f"{name}.json") for name in done})
    (output / ("quick.md" if quick else "tables.md")).write_text(text, encoding="utf-8")
    say(text)


def simulated(model: TreeModel, sentences: Sequence[Sentence], order: Order, seed: int, executor: Executor) -> Effort:
    """Annotate all sentences side by side, a correction in each that is not right yet, until all are."""
    rng = np.random.default_rng(seed)
    desks = [_Desk(sentence) for sentence in sentences]
    left = desks
    while left:
        given = [desk.constraints for desk in left]
        found = model.predict([desk.sentence for desk in left], Options(), executor, given)
        left = [desk for desk, tree in zip(left, found, strict=True) if desk.correct(tree, order, rng)]
    return sum((desk.effort for desk in desks), Effort())


def choose(order: Order, wrong: Ints, heads: Ints, distribution: Distribution, rng: np.random.Generator) -> int:
    """The wrong word that is corrected next."""
    if order == "random":
        return int(rng.choice(wrong))
    with np.errstate(divide="ignore"):
        shown = np.log(distribution.marginals[heads[wrong], wrong]).round(TIE)
    return int(wrong[shown.argmin() if order == "least" else shown.argmax()])


def _cells(
    treebank: Treebank, models: Mapping[str, Callable[[], TreeModel]], executor: Executor, quick: bool
) -> Iterator[tuple[str, Callable[[], Cell]]]:
    """Names, and what computes them; a model is trained when it is first asked for, if at all."""
    first, block = (10, 10) if quick else (FIRST, BLOCK)
    yield "grown-kept", partial(_grown, treebank, False, first, block, executor)
    yield "grown-retrained", partial(_grown, treebank, True, first, block, executor)
    for name, model in models.items():
        for order in ORDERS:
            for seed in SEEDS if order == "random" else SEEDS[:1]:
                cell = f"{name}-{order}-{seed}" if order == "random" else f"{name}-{order}"
                yield cell, partial(_ordered, model, treebank, order, seed, executor)


def _ordered(model: Callable[[], TreeModel], treebank: Treebank, order: Order, seed: int, executor: Executor) -> Cell:
    return asdict(simulated(model(), treebank.annotated, order, seed, executor))


def _grown(treebank: Treebank, again: bool, first: int, block: int, executor: Executor) -> Cell:
    """Corrections by blocks of sentences, from a small model that learns, or does not, from each block."""
    known = treebank.train[:first]
    model = _trained("arc", treebank, known).model
    blocks = []
    for start in range(0, len(treebank.annotated), block):
        some = treebank.annotated[start : start + block]
        blocks.append(simulated(model, some, "least", 0, executor))
        if again and start + block < len(treebank.annotated):
            known = known + some
            model = _trained("arc", treebank, known).model
    return {**asdict(sum(blocks, Effort())), "blocks": [asdict(each) for each in blocks]}


def _kept(path: Path, name: str, treebank: Treebank) -> TreeModel:
    """A model of all training sentences, from its file where that was made of the same ones in the same way."""
    if name == "en":
        return Parser.load("en").model
    if not (path.exists() and _is_of(Parser.load(path).model.about, name, treebank)):
        _trained(name, treebank, treebank.train).save(path)
    return Parser.load(path).model


def _is_of(about: Mapping[str, Any], name: str, treebank: Treebank) -> bool:
    made = about["headway"], about["train"]["sha256"], Settings(**about["settings"])
    return made == (__version__, checksum(treebank.train), Settings(**_settings(name, treebank)).complete())


def _trained(name: str, treebank: Treebank, sentences: Sequence[Sentence]) -> Parser:
    return Parser.train(list(sentences), **_settings(name, treebank))


def _settings(name: str, treebank: Treebank) -> dict[str, Any]:
    return {"model": name, "tags": "gold", "single_root": treebank.single_root}


def _signature(treebank: Treebank) -> dict[str, Any]:
    return {
        "headway": __version__,
        "train": checksum(treebank.train),
        "annotated": checksum(treebank.annotated),
        "sentences": len(treebank.annotated),
        "words": sum(map(len, treebank.annotated)),
        "counted": list(COUNTED),
        "tie": TIE,
        "seeds": list(SEEDS),
        "first": FIRST,
        "block": BLOCK,
    }


def _file(folder: Path, pattern: str) -> Path:
    path = next(iter(sorted(folder.glob(pattern))), None)
    if path is None:
        raise TreebankError(f"no {pattern} there; give the folder that has conllx and ud", str(folder))
    return path


def tables_text(treebanks: dict[str, dict[str, Cell]]) -> str:
    """Corrections by model and order, of heads and of heads with labels; then by blocks of a treebank that grows."""
    text = ""
    for title, kinds in COUNTED.items():
        header = ["treebank", "model", "sentences", "by hand", *ORDERS]
        rows = [
            [name, model, *(_row(cells, model, kinds) if f"{model}-least" in cells else ["missing"] * 5)]
            for name, cells in treebanks.items()
            for model in MODELS[name]
        ]
        text += markdown_table(f"## Corrections of {title}, and how many fewer than by hand", header, rows) + "\n"
    growing = [
        [name, title, *_grown_row(cells["grown-kept"], cells["grown-retrained"], kinds)]
        for name, cells in treebanks.items()
        for title, kinds in COUNTED.items()
        if "grown-retrained" in cells
    ]
    header = ["treebank", "corrections of", "kept, by hand", "kept", "retrained, by hand", "retrained"]
    return text + markdown_table(GROWN, header, growing)


def _row(cells: dict[str, Cell], model: str, kinds: Sequence[str]) -> list[str]:
    least = cells[f"{model}-least"]
    row = [str(least["sentences"]), f"{_by_hand(least, kinds):,}"]
    for order in ORDERS:
        names = [f"{model}-random-{seed}" for seed in SEEDS] if order == "random" else [f"{model}-{order}"]
        known = [cells[name] for name in names if name in cells]
        row.append(_beside(known, kinds) if known else "missing")
    return row


def _beside(cells: Sequence[Cell], kinds: Sequence[str]) -> str:
    return _fewer(mean(sum(cell[kind] for kind in kinds) for cell in cells), _by_hand(cells[0], kinds))


def _fewer(given: float, by_hand: int) -> str:
    return f"{given:,.0f} ({100 * (given / max(1, by_hand) - 1):+.1f}%)"


def _by_hand(cell: Cell, kinds: Sequence[str]) -> int:
    return sum(cell[f"{kind}_by_hand"] for kind in kinds)


def _grown_row(kept: Cell, retrained: Cell, kinds: Sequence[str]) -> list[str]:
    """All beside the first model by hand."""
    first = _by_hand(kept, kinds)
    given = [sum(cell[kind] for kind in kinds) for cell in (kept, retrained)]
    return [f"{first:,}", _fewer(given[0], first), _fewer(_by_hand(retrained, kinds), first), _fewer(given[1], first)]
