"""What the experiments with networks are made of: the settings of all trainings, and the cells in their order.

A cell is one training of one parser, and its scores. Tables share cells: the last point of a learning curve is a cell
of another table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Any, Literal

from headway.errors import TrainingError
from headway.training.settings import Settings

Tags = Literal["gold", "predicted"]

SEEDS = (1, 2, 3)
AMOUNTS = (100, 500, 2000)
TEACHERS = 3  # of a network that is taught
SHARE = 0.3  # of the heads that are known, in the table `partial`
LINEAR = ("arc", "grandsibling")  # models without a network
MINILM = "minilm"


@dataclass(frozen=True)
class Treebank:
    """A folder below the data, whether parsers read its tags or find their own, and how much there is to learn from."""

    folder: str
    title: str
    tags: Tags
    sentences: int
    words: int
    dev_words: int

    @property
    def is_ud(self) -> bool:
        return self.folder.startswith("ud/")


TREEBANKS = {
    "ewt": Treebank("ud/UD_English-EWT", "UD English-EWT", "predicted", 12544, 204577, 25147),
    "gum": Treebank("ud/UD_English-GUM", "UD English-GUM", "predicted", 10330, 178797, 28119),
    "hungarian": Treebank("ud/UD_Hungarian-Szeged", "UD Hungarian-Szeged", "predicted", 910, 20166, 11418),
    "bosque": Treebank("ud/UD_Portuguese-Bosque", "UD Portuguese-Bosque", "predicted", 7018, 171776, 28447),
    "lassy": Treebank("ud/UD_Dutch-LassySmall", "UD Dutch-LassySmall", "predicted", 6641, 88929, 4616),
    "danish": Treebank("conllx/danish", "Danish", "gold", 5190, 94386, 9439),
    "dutch": Treebank("conllx/dutch", "Dutch", "gold", 13349, 195069, 19507),
    "portuguese": Treebank("conllx/portuguese", "Portuguese", "gold", 9071, 206678, 20668),
    "swedish": Treebank("conllx/swedish", "Swedish", "gold", 11042, 191467, 19147),
}

_DANISH: dict[str, Any] = {"epochs": 80}  # half as many words, so more passes
# What differs from `headway.neural.settings`: by model, by amount of data, and by cell without its seed; the last of
# these that has a setting counts. Chosen on development sentences.
SETTINGS: dict[str, dict[str, Any]] = {
    "lstm": {"epochs": 50, "batch": 2500, "rate": 2e-3, "dropout": 0.45, "embedding": 200, "hidden": 512},
    "minilm": {"epochs": 30, "batch": 4096, "rate": 2e-3, "encoder_rate": 6e-4, "dropout": 0.5},
    "arc": {"learner": "margin", "labels": "after", "epochs": 10, "patience": 10},
    "grandsibling": {"learner": "margin", "labels": "after", "epochs": 10, "patience": 10},
    "100 sentences": {"epochs": 100, "batch": 200},
    "500 sentences": {"epochs": 60, "batch": 500},
    "2000 sentences": {"epochs": 40, "batch": 1000},
    "danish-lstm-loglinear": _DANISH,
    "danish-lstm-cross-entropy": _DANISH,
    "danish-lstm-margin": _DANISH,
    "danish-lstm-loglinear-30percent": _DANISH,
    "danish-lstm-cross-entropy-30percent": _DANISH,
    "hungarian-lstm-loglinear": {"epochs": 100, "batch": 1200, "rate": 2e-3},
}
QUICK: dict[str, Any] = {
    **{"epochs": 2, "batch": 300, "embedding": 8, "hidden": 12, "layers": 1, "dropout": 0.33},
    **{"arc_size": 12, "label_size": 8},
}
QUICK_SENTENCES = 60

# Of one process of a dozen on an H200, words a second; finished cells of the same device correct them.
SPEEDS = {"lstm": 45_000.0, MINILM: 40_000.0, "arc": 3_000.0, "grandsibling": 400.0}
OVERHEAD = 25.0  # seconds: reading, kernels, the test

_RARE = ("taught", "run", "together")  # of cells: what most do not have


@dataclass(frozen=True)
class Cell:
    """One training: `sentences` of the treebank or all, `share` of their heads known; with a seed.

    One that is `taught` also learns what three networks of the same kind, which were not, say of the same sentences.
    `run` numbers trainings on the same known heads. `together` is no training: the networks of all seeds parse with the
    mean of their probabilities.
    """

    treebank: str
    model: str
    learner: str
    seed: int
    sentences: int | None = None
    share: float = 1.0
    taught: bool = False
    run: int = 0
    together: bool = False

    @property
    def name(self) -> str:
        if self.together:
            return f"{self.kind}-together"
        return f"{self.kind}-{self.seed}{f'-{self.run}' if self.run else ''}"

    @property
    def kind(self) -> str:
        """The name without the seed."""
        amount = "" if self.sentences is None else f"-{self.sentences}"
        share = "" if self.share == 1 else f"-{100 * self.share:.0f}percent"
        return f"{self.treebank}-{self.model}-{self.learner}{amount}{share}{'-taught' if self.taught else ''}"

    @property
    def network_seed(self) -> int:
        """Of first weights and orders; the seed of the cell also draws the heads that are known."""
        return self.seed + 100 * self.run

    @property
    def teachers(self) -> tuple[Cell, ...]:
        """The trainings whose networks teach this one's, on the same known heads, or parse together."""
        if self.together:
            return tuple(replace(self, together=False, seed=seed) for seed in SEEDS)
        if self.taught:
            return tuple(replace(self, taught=False, run=run) for run in range(TEACHERS))
        return ()

    @property
    def work(self) -> float:
        """About so many words are gone through; those that are only parsed, after each pass, cost a third."""
        if self.together:
            return 0.0
        treebank = TREEBANKS[self.treebank]
        learnt = treebank.words * min(1.0, (self.sentences or treebank.sentences) / treebank.sentences)
        passes: int = self.own_settings(quick=False)["epochs"]
        return passes * (learnt * (1 + self.taught) + treebank.dev_words / 3)

    def to_data(self) -> dict[str, Any]:
        """Without what most cells do not have, so that they keep the signatures they had before there was any."""
        return {name: value for name, value in asdict(self).items() if value or name not in _RARE}

    def own_settings(self, *, quick: bool) -> dict[str, Any]:
        """What the table of settings says. Passes and batches by amount of data are those of networks."""
        amount = () if self.model in LINEAR else (f"{self.sentences} sentences",)
        keys = (self.model, *amount, replace(self, taught=False).kind)
        found = {name: value for key in keys for name, value in SETTINGS.get(key, {}).items()}
        found = {**found, **QUICK} if quick else found
        if self.taught:  # a pass goes over the sentences twice: as the treebank has them, and as the teachers do
            found["epochs"] //= 2
        return found


def attachment_of(treebank: str) -> tuple[str, str]:
    """The scores that tables show: of all words in UD, without punctuation in CoNLL-X."""
    return ("uas", "las") if TREEBANKS[treebank].is_ud else ("uas_no_punct", "las_no_punct")


def of_network(name: str) -> bool:
    """Whether a setting is one of a network's alone, which `headway train` has no option for."""
    return name not in Settings.__dataclass_fields__


def _network_cells() -> Iterator[tuple[str, Cell]]:
    """What matters most comes first."""
    conllx = [name for name, treebank in TREEBANKS.items() if not treebank.is_ud]
    for seed, learner in product(SEEDS, ("loglinear", "cross-entropy")):
        yield "ewt", Cell("ewt", MINILM, learner, seed)
    for learner, seed, name in product(("loglinear", "cross-entropy"), SEEDS, conllx):
        yield "conllx", Cell(name, "lstm", learner, seed)
    for seed, learner in product(SEEDS, ("loglinear", "cross-entropy")):
        yield "partial", Cell("danish", "lstm", learner, seed, share=SHARE)
    for seed in SEEDS:
        for name in ("gum", "hungarian", "bosque", "lassy"):
            yield "ud", Cell(name, "lstm", "loglinear", seed)
        yield "ud", Cell("gum", MINILM, "loglinear", seed)
    for name in conllx:
        yield "conllx", Cell(name, "lstm", "cross-entropy", 0, together=True)
    for seed in SEEDS:
        yield "partial", Cell("danish", "lstm", "loglinear", seed, share=SHARE, taught=True)
    for amount in AMOUNTS:
        yield "curves", Cell("ewt", MINILM, "loglinear", 1, amount)
        yield "curves", Cell("danish", "lstm", "loglinear", 1, amount)
    for seed, name in product(SEEDS, conllx):
        yield "conllx", Cell(name, "lstm", "margin", seed)


def _linear_cells() -> Iterator[tuple[str, Cell]]:
    for name, amount, model in product(("danish", "ewt"), (*AMOUNTS, None), LINEAR):
        yield "linear", Cell(name, model, "margin", 0, amount)


CELLS = (*_network_cells(), *_linear_cells())


def chosen_cells(patterns: Sequence[str], treebanks: Sequence[str] | None) -> list[Cell]:
    """The cells whose `TABLE/NAME` fits a pattern; all without any, but the linear ones, which need no GPU."""
    found = [
        cell
        for table, cell in CELLS
        if any(fnmatchcase(f"{table}/{cell.name}", pattern) for pattern in patterns or ("[!l]*/*",))
        and (treebanks is None or cell.treebank in treebanks)
    ]
    if not found:
        tables = ", ".join(dict.fromkeys(table for table, _ in CELLS))
        raise TrainingError(f"no cell fits; they are called TABLE/TREEBANK-MODEL-LEARNER-..., with a table of {tables}")
    return found
