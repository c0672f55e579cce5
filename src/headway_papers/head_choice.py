"""Which heads of a treebank to annotate: drawn at random, or the least certain first.

The words of all training sentences stand in a row, and a choice is one flag for each. The least certain ones are found
by a latent model of the heads known so far (`PartialArcProblem`): every tree that has the known heads counts in
proportion to exp(score / temperature), as in training, and how certain a word's head is, is the probability of its most
probable head,

    certainty(m) = max_h P(h -> m | known heads)

The words whose certainty is least, over all sentences, are chosen together; then a model learns from these heads, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Bools, Floats, Ints
from headway.inference.batch import groups_by_length
from headway.models.tree_decoder import BATCH_CELLS
from headway.training.arc_problem import PartialArcProblem
from headway.training.arc_trainer import ArcPreparation, temperature_of
from headway.training.settings import Settings
from headway.treebank import Sentence, require_tree


def random_words(words: int, share: float, seed: int) -> Bools:
    """That share of all words; a larger share of the same seed has all words of a smaller one."""
    chosen = np.zeros(words, np.bool_)
    chosen[np.random.default_rng(seed).permutation(words)[: round(share * words)]] = True
    return chosen


def with_heads_of(sentences: Sequence[Sentence], chosen: Bools) -> list[Sentence]:
    """The sentences with the heads of the chosen words only; one may be left without any."""
    result, start = [], 0
    for sentence in sentences:
        known = np.concatenate(([False], chosen[start : start + len(sentence)]))
        result.append(sentence.with_tree(np.where(known, require_tree(sentence), -1), partial=True))
        start += len(sentence)
    return result


def least_certain(chosen: Bools, certainty: Floats, share: float) -> Bools:
    """The chosen words, and of the others the least certain, until they are that share of all words.

    >>> least_certain(np.array([True, False, False, False]), np.array([1, 0.9, 0.5, 0.7]), 0.5).tolist()
    [True, False, True, False]
    """
    more = round(share * len(chosen)) - int(chosen.sum())
    others = np.flatnonzero(~chosen)
    result = chosen.copy()
    result[others[np.argsort(certainty[others], kind="stable")[: max(0, more)]]] = True
    return result


def certainties(
    prepared: ArcPreparation, weights: Floats, settings: Settings, sentences: Sequence[Sentence], chosen: Bools
) -> Floats:
    """The probability of every word's most probable head, given the heads of the chosen words."""
    lengths = np.array([len(sentence) for sentence in sentences])
    known, starts = _known(sentences, chosen), np.cumsum(lengths) - lengths
    problem = prepared.problem
    coded = prepared.coder.code(sentences)
    pool = PartialArcProblem(problem.scorer, problem.structures, coded, known, temperature_of(settings))
    found = np.empty(len(chosen))
    for which in groups_by_length(lengths, BATCH_CELLS):
        these = pool.some(which)
        best = these.constrained(these.score(weights)).max(axis=1)
        for b, i in enumerate(which.tolist()):
            found[starts[i] : starts[i] + lengths[i]] = best[b, 1 : lengths[i] + 1]
    return found


def _known(sentences: Sequence[Sentence], chosen: Bools) -> Ints:
    """The heads of the chosen words (B, N+1), -1 elsewhere."""
    known: NDArray[np.int64] = np.full((len(sentences), max(map(len, sentences), default=0) + 1), -1)
    start = 0
    for i, sentence in enumerate(sentences):
        own = chosen[start : start + len(sentence)]
        known[i, 1 : len(sentence) + 1] = np.where(own, require_tree(sentence)[1:], -1)
        start += len(sentence)
    return known
