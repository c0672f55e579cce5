"""A parser put together: a scorer, a decoder and a labeller, each of which knows nothing of the others.

    sentences --coder--> batches --scorer--> scores --decoder--> trees --labeller--> labels

Sentences are taken in batches of like length, so that the cost is the kernels'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from headway.arrays import Bools, Ints
from headway.features.coding import Coded, Coder
from headway.inference.batch import groups_by_length
from headway.inference.dual_decomposition import Status
from headway.inference.protocol import Distribution
from headway.models.constraints import Constraints, allowed_arcs
from headway.models.labelling import ChosenLabels, NamedLabels
from headway.models.protocol import Options, Prediction
from headway.parallel import Executor
from headway.treebank import Sentence


@dataclass(frozen=True)
class DecodedTree:
    """One sentence's tree (n+1,), the distribution behind it, and what is proved of it."""

    heads: Ints
    distribution: Distribution
    status: Status = Status.EXACT
    gap: float = 0.0


class BatchScorer(Protocol):
    """Scores a batch, its weights fixed; only trees of allowed arcs (B, N+1, N+1) are then found, None being all."""

    def scores(self, batch: Coded, executor: Executor, allowed: Bools | None = None) -> Any: ...


class Decoder(Protocol):
    """Finds the trees of a batch from its scores."""

    @property
    def cells(self) -> int:
        """How many cells the padded score matrices of one batch may have."""
        ...

    def decode(self, scores: Any, lengths: Ints, options: Options, executor: Executor) -> list[DecodedTree]: ...


class Labeller(Protocol):
    """Chooses the labels of given trees."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def choose(self, batch: Coded, heads: Ints, scores: Any) -> ChosenLabels:
        """Every word's label, (B, N+1), for heads (B, N+1), padded with -1."""
        ...


def predict_composed(
    coder: Coder,
    scorer: BatchScorer,
    decoder: Decoder,
    labeller: Labeller | None,
    sentences: Sequence[Sentence],
    options: Options,
    executor: Executor,
    constraints: Sequence[Constraints | None] | None = None,
) -> list[Prediction]:
    """The trees of some sentences, in their order."""
    coded = coder.code(sentences)
    found: dict[int, Prediction] = {}
    for which in groups_by_length(coded.lengths, decoder.cells):
        batch = coded.some(which)
        allowed = allowed_arcs(constraints, which, int(batch.lengths.max()) + 1)
        scores = scorer.scores(batch, executor, allowed)
        trees = decoder.decode(scores, batch.lengths, options, executor)
        labels = named_labels(labeller, batch, [tree.heads for tree in trees], scores)
        for i, tree, own in zip(which.tolist(), trees, labels, strict=True):
            found[i] = Prediction(
                tree.heads, own.names, tree.distribution, tree.status, tree.gap, label_probabilities=own.probabilities
            )
    return [found[i] for i in range(len(sentences))]


def named_labels(labeller: Labeller | None, batch: Coded, heads: Sequence[Ints], scores: Any) -> list[NamedLabels]:
    """The labels of some trees by name; without a labeller, there are none."""
    if labeller is None:
        return [NamedLabels()] * len(heads)
    padded = np.full((len(heads), int(batch.lengths.max(initial=0)) + 1), -1, np.int64)
    for row, own in zip(padded, heads, strict=True):
        row[: len(own)] = own
    chosen = labeller.choose(batch, padded, scores)
    return [chosen.named(labeller.names, np.s_[b, 1 : len(own)]) for b, own in enumerate(heads)]
