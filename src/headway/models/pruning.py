"""Pruning: the few heads a word may have, by the marginals of an arc-factored model (koo2010 section 7).

A higher-order decoder looks only at the arcs kept here. The head h of word m is kept when

    P(h -> m) >= threshold * max_h' P(h' -> m)       and it is among the `max_heads` best heads of m,

P is the log-linear model's, over the trees of its class. Of two equally likely heads the leftmost comes first. The
arcs of the model's best tree are always kept too, so that what is left always has a tree of the class. The paper prunes
by such marginals, but does not give its rule; this one is ours.

Words that are all alike (a thousand commas) may all keep the same few heads, and the parts of a head grow with the
square of its modifiers. Where a sentence would make more than `MOST_PARTS`, every word keeps fewer heads.

Scores, marginals and kept arcs are (B, N+1, N+1). The cost is that of the marginals: O(n^3) per sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headway.arrays import Bools, Floats, Ints, TreeClass
from headway.errors import HeadsError, TrainingError
from headway.features.coding import Coded
from headway.inference.batch import as_batch, groups_by_length
from headway.inference.candidates import candidates
from headway.inference.first_order import arc_marginals, best_heads
from headway.inference.jit import kernel, part
from headway.models.arc_scorer import ArcScorer
from headway.models.constraints import mask_arcs
from headway.models.scorer import Trained
from headway.models.tree_decoder import BATCH_CELLS
from headway.parallel import SERIAL, Executor

# Parts of one sentence, with grandparents; they take 60 bytes each. Ordinary sentences have some ten thousand.
MOST_PARTS = 4_000_000
MOST_HEADS = (1 << 31) - 1  # no sentence has as many words


class Pruned(NamedTuple):
    """Of a batch, (B, N+1, N+1) each: the kept arcs, the pruner's scores, its log Z (B,) and marginals."""

    kept: Bools
    scores: Floats
    log_z: Floats
    marginals: Floats


@dataclass(frozen=True, repr=False)
class Pruner:
    """A trained log-linear model of arcs without labels, over the trees of one class, and how much it may cut."""

    scorer: Trained[ArcScorer]
    trees: TreeClass
    threshold: float
    max_heads: int

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise TrainingError(f"the pruning threshold is {self.threshold}; expected a number above 0, at most 1")
        if self.max_heads < 1:
            raise TrainingError(f"max_heads is {self.max_heads}; pruning must leave every word at least 1 head")
        if self.max_heads > MOST_HEADS:
            raise TrainingError(f"max_heads is {self.max_heads}; at most {MOST_HEADS} can be kept")
        if self.scorer.scorer.joint is not None:
            raise TrainingError("a pruner scores arcs without labels; train it with labels='none'")
        if self.scorer.weights.shape != (self.scorer.scorer.size,):
            size, needed = self.scorer.weights.size, self.scorer.scorer.size
            raise TrainingError(f"the pruner has {size} weights; its templates need {needed}")

    def prune(
        self, batch: Coded, keep: Ints | None = None, executor: Executor = SERIAL, allowed: Bools | None = None
    ) -> Pruned:
        """The arcs to keep.

        `keep` are heads (B, N+1), one row per sentence, that must not be pruned; -1 asks for nothing. Where only some
        arcs are `allowed` (B, N+1, N+1), all probabilities are those of the trees that have no other arcs: a word's
        only head has probability 1, and is kept.
        """
        lengths = batch.lengths
        checked = as_batch(mask_arcs(self.scorer.scores(batch, executor), allowed), lengths)
        log_z, mu = arc_marginals(checked, self.trees, executor)
        always = [best_heads(checked, self.trees, executor)]
        if keep is not None:
            always.append(_checked(keep, lengths))
        kept = self._kept(mu, lengths, self.max_heads, always)
        for b, n in enumerate(lengths.tolist()):
            own, heads = slice(b, b + 1), min(self.max_heads, n)
            if (heads * n) ** 2 <= MOST_PARTS:  # whichever arcs are kept
                continue
            while heads > 1 and (parts := _count_parts(kept[b, : n + 1, : n + 1])) > MOST_PARTS:
                heads = min(heads - 1, int(heads * (MOST_PARTS / parts) ** (1 / 3)))  # as if parts grew by the cube
                kept[own] = self._kept(mu[own], lengths[own], max(1, heads), [each[own] for each in always])
        return Pruned(kept, checked.scores, log_z, mu)

    def _kept(self, mu: Floats, lengths: Ints, max_heads: int, always: Sequence[Ints]) -> Bools:
        kept = np.zeros(mu.shape, np.bool_)
        _keep_likely(mu, lengths, self.threshold, max_heads, kept)
        for heads in always:
            _keep_heads(heads, lengths, kept)
        return kept


@dataclass(frozen=True)
class Coverage:
    """What pruning leaves: of `words` words, `gold` still have their right head; `arcs` are kept in all."""

    words: int
    gold: int
    arcs: int

    @property
    def recall(self) -> float:
        """Percentage of words whose right head is kept: no decoder can have more of them right."""
        return 100 * self.gold / max(1, self.words)

    @property
    def heads_per_word(self) -> float:
        """How many heads a word has left on average."""
        return self.arcs / max(1, self.words)


def coverage(pruner: Pruner, coded: Coded, heads: Ints, executor: Executor = SERIAL) -> Coverage:
    """What a pruner leaves of sentences whose right heads (B, N+1), padded with -1, are known."""
    words = gold = arcs = 0
    for which in groups_by_length(coded.lengths, BATCH_CELLS):
        kept = pruner.prune(coded.some(which), executor=executor).kept
        right = _checked(heads[which], coded.lengths[which])
        b, m = np.nonzero(right[:, : kept.shape[1]] >= 0)
        words += int(coded.lengths[which].sum())
        gold += int(kept[b, right[b, m], m].sum())
        arcs += int(kept.sum())
    return Coverage(words, gold, arcs)


def kept_arcs(pruner: Pruner, coded: Coded, keep: Ints | None = None, executor: Executor = SERIAL) -> list[Bools]:
    """What a pruner leaves of each sentence, (n+1, n+1), the heads `keep` (B, N+1) included."""
    found: dict[int, Bools] = {}
    for which in groups_by_length(coded.lengths, BATCH_CELLS):
        kept = pruner.prune(coded.some(which), None if keep is None else keep[which], executor).kept
        for arcs, i in zip(kept, which.tolist(), strict=True):
            n = int(coded.lengths[i])
            found[i] = arcs[: n + 1, : n + 1].copy()
    return [found[i] for i in range(len(coded))]


def _count_parts(kept: Bools) -> int:
    """How many parts kept arcs make at most: sibling pairs of each head, once for each of its own heads."""
    these = candidates(kept)
    ways_in, pairs = np.diff(these.enters), np.diff(these.pairs[::2])
    return int(np.maximum(ways_in, 1) @ pairs)


def _checked(heads: Ints, lengths: Ints) -> Ints:
    """Heads that compiled code may index with."""
    width = int(lengths.max(initial=0)) + 1
    if heads.ndim != 2 or len(heads) != len(lengths) or heads.shape[1] < width:
        raise HeadsError(f"heads have shape {heads.shape}; expected ({len(lengths)}, {width}), one row per sentence")
    words = np.arange(heads.shape[1])
    wrong = (heads < -1) | (heads > lengths[:, None]) | (heads == words)
    wrong |= (heads >= 0) & ((words == 0) | (words > lengths[:, None]))
    if wrong.any():
        b, m = np.argwhere(wrong)[0].tolist()
        raise HeadsError(f"sentence {b}: the head of word {m} is {heads[b, m]}; expected another node, or -1")
    return np.ascontiguousarray(heads, np.int64)


@kernel
def _keep_likely(mu: Floats, lengths: Ints, threshold: float, max_heads: int, kept: Bools) -> None:
    """Keep the heads that pass the threshold, the likeliest `max_heads` of every word."""
    for b in range(len(lengths)):
        n = lengths[b]
        for m in range(1, n + 1):
            best = _likeliest(mu[b], m, n, kept[b])
            least = threshold * mu[b, best, m]
            count = 0
            while best >= 0 and mu[b, best, m] >= least and count < max_heads:
                kept[b, best, m] = True
                count += 1
                best = _likeliest(mu[b], m, n, kept[b])


@part
def _likeliest(mu: Floats, m: int, n: int, kept: Bools) -> int:
    """The likeliest head of word m that is not kept yet, the leftmost of equals; -1 when all are kept."""
    best = -1
    for h in range(n + 1):
        if h != m and not kept[h, m] and (best < 0 or mu[h, m] > mu[best, m]):
            best = h
    return best


@kernel
def _keep_heads(heads: Ints, lengths: Ints, kept: Bools) -> None:
    """Keep the arcs of a tree, or of some words of it."""
    for b in range(len(lengths)):
        for m in range(1, lengths[b] + 1):
            if heads[b, m] >= 0:
                kept[b, heads[b, m], m] = True
