"""A parsed sentence: its words, its tree, what is proved of it, and the distribution behind it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from headway.arrays import Floats, Ints
from headway.data_frame import data_frame
from headway.inference.dual_decomposition import Status
from headway.inference.protocol import Distribution
from headway.models.stretches import arc_probabilities
from headway.treebank import Sentence
from headway.treebank.annotations import comment, multiword_tokens, offsets_of, with_head_probabilities
from headway.treebank.raw_text import raw_text
from headway.treebank.trees import children_of, preorder
from headway.word import Word, plain_words, shortened

if TYPE_CHECKING:
    from headway.drawing import Drawing

UNSURE_BELOW = 0.7  # arcs less probable than this are dashed in pictures
WIDTH = 1600.0  # pixels; pictures that are wider are wrapped into rows


@dataclass(frozen=True)
class Confidence:
    """How probable the whole tree is, and each word's head (arcs[0] is 1)."""

    tree: float
    arcs: Floats


class Tree:
    """The words below each word. One walk through the tree finds all, so a subtree costs what it is long."""

    def __init__(self, heads: Sequence[int]) -> None:
        self.children = children_of(heads)
        self._order, self._entered, self._left = preorder(self.children)

    def descendants(self, m: int) -> list[int]:
        """Word m and all below it, in the order of the sentence."""
        return sorted(self._order[self._entered[m] : self._left[m]])


@dataclass(frozen=True, eq=False, repr=False)
class Parsed:
    """A sentence with the tree the parser found, and whether that is proved to be the best under the model.

    It is a sequence of words: `for word in parsed`, `parsed[0]`, `len(parsed)`. The arrays have an entry for the root
    before those of the words.

    `distribution` has every tree's probability, whatever the labels; for a higher-order model it is its pruner's,
    calibrated. `floored` counts the arcs whose marginal was negative, or too small to count.

    `label_probabilities` (n+1,) are those of the labels, given the arcs; entry 0 is 1. Times `confidence.arcs` they are
    the probabilities of labelled arcs. None for a model without labels, and for one that chooses them after the tree
    by a perceptron, whose scores have no scale.
    """

    sentence: Sentence
    distribution: Distribution
    status: Status = Status.EXACT
    gap: float = 0.0
    floored: tuple[int, int] = (0, 0)
    label_probabilities: Floats | None = None

    def __repr__(self) -> str:
        return f"<Parsed of {len(self)} word{'s' * (len(self) != 1)}: {shortened(self.text)}>"

    def __len__(self) -> int:
        """The number of words."""
        return len(self.sentence)

    def __iter__(self) -> Iterator[Word]:
        return (Word(self, m) for m in range(1, len(self) + 1))

    @overload
    def __getitem__(self, place: int) -> Word: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Word, ...]: ...
    def __getitem__(self, place: int | slice) -> Word | tuple[Word, ...]:
        numbers = range(1, len(self) + 1)[place]
        return Word(self, numbers) if isinstance(numbers, int) else tuple(Word(self, m) for m in numbers)

    @property
    def text(self) -> str:
        """The sentence as text: as its file gives it, or else the words with spaces where they are known to be."""
        return comment(self.sentence, "text") or raw_text([self.sentence]).text

    @property
    def heads(self) -> Ints:
        """(n+1,), heads[0] == -1."""
        assert self.sentence.heads is not None
        return self.sentence.heads

    @property
    def labels(self) -> tuple[str | None, ...]:
        """n+1 entries, labels[0] is None."""
        assert self.sentence.labels is not None
        return self.sentence.labels

    @property
    def marginals(self) -> Floats:
        """P(head -> modifier), (n+1, n+1)."""
        return self.distribution.marginals

    @cached_property
    def confidence(self) -> Confidence:
        """The probability of the tree and of each of its arcs; calibrated where the model was trained with dev data."""
        tree = float(np.exp(self.distribution.log_prob(self.heads)))
        return Confidence(tree, arc_probabilities(self.distribution, self.heads))

    @property
    def is_proved(self) -> bool:
        """Whether the tree is proved to be the best under the model."""
        return self.status.is_proof

    @cached_property
    def tree(self) -> Tree:
        """The words below each word."""
        return Tree(self.heads.tolist())

    @cached_property
    def offsets(self) -> tuple[tuple[int, int], ...] | None:
        """Where each word begins and ends in the text it was read from, in characters; None if there was no text."""
        return offsets_of(self.sentence)

    def noted(self, *, probabilities: bool) -> Sentence:
        """The sentence with its tree, and with probabilities in MISC if these are wanted."""
        if not probabilities:
            return self.sentence
        return with_head_probabilities(self.sentence, self.confidence.arcs, self.label_probabilities)

    def to_conllu(self, *, probabilities: bool = False) -> str:
        """The parsed sentence as CoNLL-U; with `probabilities`, MISC has HeadProbability and LabelProbability."""
        return self.noted(probabilities=probabilities).to_conllu()

    def to_dict(self) -> dict[str, Any]:
        """The parsed sentence as plain data: one dictionary per word, every arc with its probability.

        `feats` has the features by name, true for one without a value. Multiword tokens are listed beside the words, by
        the first and the last of theirs. What is unknown is None, as is a gap that nothing bounds.
        """
        tokens = [
            {"first": t.first, "last": t.last, "form": t.form, "offsets": self._place(t.first, t.last)}
            for t in multiword_tokens(self.sentence)
        ]
        return {
            "words": plain_words(self, range(1, len(self) + 1)),
            "multiword_tokens": tokens,
            "probability": self.confidence.tree,
            "status": str(self.status),
            "gap": self.gap if math.isfinite(self.gap) else None,
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """What `to_dict` gives, as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    def to_dataframe(self) -> Any:
        """A table of pandas, one row for every word (`headway.data_frame`)."""
        return data_frame([self])

    def drawing(self, *, unsure_below: float = UNSURE_BELOW, width: float | None = WIDTH) -> Drawing:
        """What `to_svg` paints."""
        from headway.drawing import tree_drawing  # a tenth of a second, which most who parse do not need

        arcs = self.confidence.arcs
        return tree_drawing(self.sentence, probabilities=arcs, unsure_below=unsure_below, width=width)

    def to_svg(self, *, unsure_below: float = UNSURE_BELOW, width: float | None = WIDTH) -> str:
        """The tree as a picture: arcs are shaded by probability, and dashed below one. Notebooks show it.

        A sentence wider than `width` pixels is wrapped into rows.
        """
        from headway.drawing import to_svg

        return to_svg(self.drawing(unsure_below=unsure_below, width=width))

    _repr_svg_ = to_svg

    def _place(self, first: int, last: int) -> tuple[int, int] | None:
        """Of a token that begins and ends with these words."""
        return None if self.offsets is None else (self.offsets[first - 1][0], self.offsets[last - 1][1])
