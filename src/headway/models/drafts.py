"""Drafts: text that was cut where there is no doubt, and becomes sentences while its trees are found.

A model with a second look at sentence ends cuts them (`DraftingModel`), and sentences fill the batches of drafts. It
sees neither sentences with known heads, which stay whole, nor drafts of more words than are parsed at once, which are
cut as their splitter would. A model without a second look takes every draft for a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import cast

from headway.models.constraints import Constraints
from headway.models.protocol import DraftingModel, LearntEnds, Options, Prediction, TreeModel
from headway.models.stretches import most_words, predict_any_length
from headway.parallel import Executor
from headway.treebank import Sentence
from headway.treebank.raw_text import ends_of, pieces_of

Found = list[tuple[Sentence, Prediction]]
"""The sentences that a draft turns out to be, with their trees."""


def learnt_ends(model: TreeModel) -> LearntEnds | None:
    """What the model knows of sentence ends; None if it takes a draft for a sentence."""
    found: LearntEnds | None = getattr(model, "ends", None)
    return found


def predict_drafts(
    model: TreeModel,
    drafts: Sequence[Sentence],
    options: Options,
    executor: Executor,
    constraints: Sequence[Constraints | None] | None = None,
) -> Iterator[Found]:
    """What each draft or sentence is, in most cases itself, and the trees, in their order."""
    given = [None] * len(drafts) if constraints is None else constraints
    if learnt_ends(model) is None or all(draft.layout.joints is None for draft in drafts):
        yield from (
            [pair] for pair in zip(drafts, predict_any_length(model, drafts, options, executor, given), strict=True)
        )
        return
    most = most_words(model)
    apart = [known is not None or len(draft) > most for draft, known in zip(drafts, given, strict=True)]
    left = [draft for draft, alone in zip(drafts, apart, strict=True) if not alone]
    without = _without_second_look(
        model, list(compress(drafts, apart)), options, executor, list(compress(given, apart))
    )
    with_one = iter(cast(DraftingModel, model).predict_drafts(left, options, executor))
    yield from (next(without) if alone else next(with_one) for alone in apart)


def _without_second_look(
    model: TreeModel,
    drafts: Sequence[Sentence],
    options: Options,
    executor: Executor,
    given: Sequence[Constraints | None],
) -> Iterator[Found]:
    """Of which heads are known, as one sentence; the others as their splitter would cut them."""
    pieces = [
        pieces_of(draft, ends_of(draft) if known is None else ()) for draft, known in zip(drafts, given, strict=True)
    ]
    limits = [known for own, known in zip(pieces, given, strict=True) for _ in own]
    trees = iter(predict_any_length(model, [one for own in pieces for one in own], options, executor, limits))
    yield from ([(one, next(trees)) for one in own] for own in pieces)
