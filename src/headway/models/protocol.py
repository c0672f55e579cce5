"""What a model is: anything trained that predicts, describes itself and can be saved.

Models are found by their `kind` (`headway.models.registry`), never by their class. Those of the task "parsing" turn
sentences into a `Prediction` each; a coreference model turns documents into trees over their mentions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from headway.archive import Archive
from headway.arrays import Floats, Ints, TreeClass
from headway.errors import TrainingError
from headway.inference.dual_decomposition import Status
from headway.inference.protocol import Distribution
from headway.models.constraints import Constraints
from headway.parallel import Executor
from headway.treebank import Sentence
from headway.treebank.annotations import Doubt

Task = Literal["parsing", "coreference"]


@dataclass(frozen=True)
class Options:
    """How to parse.

    `mbr` maximises the expected number of right heads rather than the tree's score. Without `exact`, higher-order
    models stop where dual decomposition stops. `seconds` is what a higher-order model's search for one tree may take.
    """

    mbr: bool = False
    exact: bool = True
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None and not self.seconds > 0:
            raise TrainingError(f"seconds is {self.seconds}; expected more than 0, or None for no limit")


@dataclass(frozen=True)
class Prediction:
    """One sentence's tree (n+1,), its labels, the distribution behind it, and what is proved of the tree.

    `floored` counts the arcs whose marginal was negative, and too small to count, before they became probabilities.
    `columns` has the lemmas, upos, xpos or feats that a model predicts with the tree, by the name of the column.
    `label_probabilities` (n+1,) are P(label | arc), 1 for the root; None where the model has no such probabilities.
    """

    heads: Ints
    labels: tuple[str | None, ...] | None
    distribution: Distribution
    status: Status = Status.EXACT
    gap: float = 0.0
    floored: tuple[int, int] = (0, 0)
    columns: Mapping[str, tuple[str, ...]] | None = None
    label_probabilities: Floats | None = None


@dataclass(frozen=True)
class Table:
    """A table of a description: a row of titles and rows of text."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, repr=False)
class Description:
    """What `headway info` prints of a model: rows of name and value, then tables; `data` is the same for JSON.

    `templates` has the model's templates by table, as `headway train --templates` reads them.
    """

    rows: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    templates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Description: {', '.join(f'{name} {value}' for name, value in self.rows[:2])}>"


Given = TypeVar("Given", contravariant=True)
Found = TypeVar("Found")


class Model(Protocol[Given, Found]):
    """A trained model. `about` is what it says of itself: settings, figures, and the data it comes from."""

    kind: ClassVar[str]
    task: ClassVar[Task]

    @property
    def about(self) -> Mapping[str, Any]: ...

    @property
    def requires(self) -> frozenset[str]:
        """What its inputs must have: "tags" where it reads tags, "trees" where it reads trees."""
        ...

    def predict(self, given: Sequence[Given], options: Options, executor: Executor) -> list[Found]:
        """What it finds for each input, in their order."""
        ...

    def describe(self) -> Description:
        """What there is to know of it."""
        ...

    def to_archive(self) -> Archive:
        """What is saved, under the kind of the model."""
        ...

    @classmethod
    def from_archive(cls, archive: Archive) -> Any:
        """The model that was saved; a built-in error of lookup or value where the archive is damaged."""
        ...


class TreeModel(Model[Sentence, Prediction], Protocol):
    """A model of the task "parsing".

    One that predicts tags with the tree says which columns those are: `gives`, a frozen set of their names.
    """

    def predict(
        self,
        given: Sequence[Sentence],
        options: Options,
        executor: Executor,
        constraints: Sequence[Constraints | None] | None = None,
    ) -> list[Prediction]:
        """The trees of some sentences, in their order.

        With `constraints`, one for each sentence, known heads are kept, forbidden arcs avoided, and probabilities
        conditioned on both (`headway.models.constraints`). Known labels are put in by whoever asks.
        """
        ...

    @property
    def trees(self) -> TreeClass:
        """The class of its trees."""
        ...

    def with_trees(self, trees: TreeClass) -> TreeModel:
        """The same weights, for trees of another class."""
        ...


class LearntEnds(Protocol):
    """What a model knows of sentence ends: it is asked about those of which the splitter is in doubt."""

    @property
    def doubt(self) -> Doubt: ...


class DraftingModel(TreeModel, Protocol):
    """A model that finds out what is a sentence while it parses; `ends` is None where it has not learnt to."""

    @property
    def ends(self) -> LearntEnds | None: ...

    def predict_drafts(
        self, drafts: Sequence[Sentence], options: Options, executor: Executor
    ) -> list[list[tuple[Sentence, Prediction]]]:
        """The sentences that each draft is, in their order, with their trees; what is no draft is one sentence."""
        ...
