"""How many clicks a treebank takes: an annotator is simulated who corrects a parser's trees, head by head.

The gold tree is known. The parser's tree is shown; while it has wrong heads, the annotator gives one word its right
head: a click. That head is then known, and the parser finds its best tree given all that is known so far, as `headway
annotate` does. The clicks until the tree is right are counted, and compared with a page whose parser does not listen:
there, every wrong head of the first tree takes a click (`by hand`). A tree that is parsed again has other heads right
(`mended`) and other heads wrong (`broken`) than before, the clicked one aside.

Which wrong head comes first:

    least      the one whose shown head is least probable: what the page leads the eye to
    most       the one whose shown head is most probable, although it is wrong
    random     any, three draws
    left       the first of the sentence
    reading    the first of the sentence; all right heads before it count as seen, and are kept, too

Heads are counted, not labels. Models are arc-factored and grand-sibling ones with the defaults of `headway train`, on
gold tags; for English also the included one, whose passes were chosen on these very sentences. `DIR` has the folders
`conllx/danish`, whose last tenth of training sentences is annotated, and `ud/UD_Hungarian-Szeged`,
`ud/UD_English-EWT`, whose development sentences are: the first 500 of ten words or more.

A new treebank starts small: `grown` begins with an arc model of 100 training sentences, and either keeps it (`kept`) or
trains it again after every 50 sentences, on those 100 and all that were annotated since (`retrained`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import mean
from typing import Any, Literal

import numpy as np

from headway import __version__
from headway.arrays import Ints
from headway.errors import TreebankError
from headway.inference.protocol import Distribution
from headway.models.constraints import Constraints
from headway.models.protocol import Options, TreeModel
from headway.parallel import Executor, executor_for
from headway.pipeline import Parser
from headway.training.data import checksum
from headway.treebank import Sentence, read_treebank, require_tree, roots
from headway_papers.cells import Cell, CellFile
from headway_papers.corpora import HELD_OUT, Say, require_names
from headway_papers.markdown import markdown_table

Order = Literal["least", "most", "random", "left", "reading"]

TREEBANKS = {"danish": "conllx/danish", "hungarian": "ud/UD_Hungarian-Szeged", "ewt": "ud/UD_English-EWT"}
MODELS = {
    "danish": ("arc", "grandsibling"),
    "hungarian": ("arc", "grandsibling"),
    "ewt": ("en", "arc", "grandsibling"),
}
ORDERS: tuple[Order, ...] = ("least", "random", "most", "left", "reading")
SEEDS = (0, 1, 2)
SENTENCES, SHORTEST = 500, 10
FIRST, BLOCK = 100, 50
SUMS = ("sentences", "by_hand", "clicks", "mended", "broken")


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
class Clicks:
    """Of every sentence: wrong heads at first, and clicks to the right tree; of all: what changed by itself."""

    by_hand: list[int]
    clicks: list[int]
    mended: int
    broken: int

    def to_cell(self) -> Cell:
        return dict(
            zip(SUMS, (len(self.clicks), sum(self.by_hand), sum(self.clicks), self.mended, self.broken), strict=True)
        )


def run(data: Path, output: Path, *, languages: Sequence[str] | None, quick: bool, threads: int, say: Say) -> None:
    """Simulate what is not there yet, and write `tables.md`; `quick` takes 30 sentences and an arc model."""
    chosen = require_names(languages, TREEBANKS, "treebank")
    treebanks = {name: Treebank.read(data, name, 30 if quick else None) for name in chosen}
    results = output / ("quick" if quick else "results")
    results.mkdir(parents=True, exist_ok=True)
    for name, treebank in treebanks.items():
        file = CellFile.open(results / f"{name}.json", _signature(treebank))
        for cell, compute in _cells(treebank, ("arc",) if quick else MODELS[name], executor_for(threads), quick):
            found, is_new = file.cell(cell, compute)
            if is_new:
                say(f"{name} {cell}: {found['clicks']} clicks, {found['by_hand']} by hand")
    done = [name for name in TREEBANKS if (results / f"{name}.json").exists()]
    text = tables_text({name: CellFile.read(results / f"{name}.json") for name in done})
    (output / ("quick.md" if quick else "tables.md")).write_text(text, encoding="utf-8")
    say(text)


def simulated(model: TreeModel, sentences: Sequence[Sentence], order: Order, seed: int, executor: Executor) -> Clicks:
    """Annotate all sentences side by side, a click in each that is not right yet, until all are."""
    rng = np.random.default_rng(seed)
    gold = [require_tree(sentence) for sentence in sentences]
    known = [np.full(len(heads), -1) for heads in gold]
    by_hand, clicks = [0] * len(gold), [0] * len(gold)
    before: dict[int, Ints] = {}
    mended = broken = 0
    left = list(range(len(gold)))
    while left:
        given = [Constraints(known[i].copy()) if clicks[i] else None for i in left]
        found = model.predict([sentences[i] for i in left], Options(), executor, given)
        for i, tree in zip(left, found, strict=True):
            wrong = np.flatnonzero(tree.heads != gold[i])
            if i in before:
                was = before[i] != gold[i]
                mended += int((was & (tree.heads == gold[i]) & (known[i] < 0)).sum())
                broken += int((~was & (tree.heads != gold[i])).sum())
            else:
                by_hand[i] = len(wrong)
            before[i] = tree.heads
            if len(wrong):
                word = choose(order, wrong, tree.heads, tree.distribution, rng)
                seen = np.arange(1, word if order == "reading" else 1)
                known[i][seen], known[i][word] = gold[i][seen], gold[i][word]
                clicks[i] += 1
        left = [i for i in left if (before[i] != gold[i]).any()]
    return Clicks(by_hand, clicks, mended, broken)


def choose(order: Order, wrong: Ints, heads: Ints, distribution: Distribution, rng: np.random.Generator) -> int:
    """The wrong word that is corrected next."""
    if order in ("left", "reading"):
        return int(wrong[0])
    if order == "random":
        return int(rng.choice(wrong))
    shown = distribution.marginals[heads[wrong], wrong]
    return int(wrong[shown.argmin() if order == "least" else shown.argmax()])


def _cells(
    treebank: Treebank, models: Sequence[str], executor: Executor, quick: bool
) -> Iterator[tuple[str, Callable[[], Cell]]]:
    """Names, and what computes them; a model is trained when it is first asked for, if at all."""
    first, block = (10, 10) if quick else (FIRST, BLOCK)
    yield "grown-kept", partial(_grown, treebank, False, first, block, executor)
    yield "grown-retrained", partial(_grown, treebank, True, first, block, executor)
    for name in models:
        model = cache(partial(_model, name, treebank, treebank.train))
        for order in ORDERS:
            for seed in SEEDS if order == "random" else SEEDS[:1]:
                cell = f"{name}-{order}-{seed}" if order == "random" else f"{name}-{order}"
                yield cell, partial(_ordered, model, treebank, order, seed, executor)


def _ordered(model: Callable[[], TreeModel], treebank: Treebank, order: Order, seed: int, executor: Executor) -> Cell:
    return simulated(model(), treebank.annotated, order, seed, executor).to_cell()


def _grown(treebank: Treebank, again: bool, first: int, block: int, executor: Executor) -> Cell:
    """Clicks by blocks of sentences, from a small model that learns, or does not, from each block."""
    known = treebank.train[:first]
    model = _model("arc", treebank, known)
    blocks = []
    for start in range(0, len(treebank.annotated), block):
        some = treebank.annotated[start : start + block]
        blocks.append(simulated(model, some, "least", 0, executor).to_cell())
        if again and start + block < len(treebank.annotated):
            known = known + some
            model = _model("arc", treebank, known)
    return {**{name: sum(cell[name] for cell in blocks) for name in SUMS}, "blocks": blocks}


def _model(name: str, treebank: Treebank, sentences: Sequence[Sentence]) -> TreeModel:
    if name == "en":
        return Parser.load("en").model
    single = treebank.single_root
    return Parser.train(list(sentences), model=name, tags="gold", labels="none", single_root=single).model


def _signature(treebank: Treebank) -> dict[str, Any]:
    return {
        "headway": __version__,
        "train": checksum(treebank.train),
        "annotated": checksum(treebank.annotated),
        "sentences": len(treebank.annotated),
        "words": sum(map(len, treebank.annotated)),
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
    """Clicks by model and order, then by blocks of a treebank that grows."""
    header = ["treebank", "model", "sentences", "by hand", *ORDERS, "mended, broken (least)"]
    rows = [
        [name, model, *(_row(cells, model) if f"{model}-least" in cells else ["missing"] * (len(header) - 2))]
        for name, cells in treebanks.items()
        for model in MODELS[name]
    ]
    text = markdown_table("## Clicks, and how many more or fewer than by hand", header, rows)
    growing = [
        [name, how, *_grown_row(cells[f"grown-{how}"])]
        for name, cells in treebanks.items()
        for how in ("kept", "retrained")
        if f"grown-{how}" in cells
    ]
    header = ["treebank", "model", "by hand", "least", "fewer", "clicks in each block of sentences"]
    return text + "\n" + markdown_table("## From a model of 100 sentences, arc-factored", header, growing)


def _row(cells: dict[str, Cell], model: str) -> list[str]:
    least = cells[f"{model}-least"]
    row = [str(least["sentences"]), f"{least['by_hand']:,}"]
    for order in ORDERS:
        names = [f"{model}-random-{seed}" for seed in SEEDS] if order == "random" else [f"{model}-{order}"]
        known = [cells[name]["clicks"] for name in names if name in cells]
        row.append(f"{mean(known):,.0f} ({_fewer(mean(known), least['by_hand'])})" if known else "missing")
    return [*row, f"{least['mended']}, {least['broken']}"]


def _fewer(clicks: float, by_hand: int) -> str:
    return f"{100 * (clicks / max(1, by_hand) - 1):+.1f}%"


def _grown_row(cell: Cell) -> list[str]:
    blocks = ", ".join(str(block["clicks"]) for block in cell["blocks"])
    return [f"{cell['by_hand']:,}", f"{cell['clicks']:,}", _fewer(cell["clicks"], cell["by_hand"]), blocks]
