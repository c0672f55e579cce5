"""The tagger's kernels: the best tags of a sentence by Viterbi, and one pass of the perceptron.

Templates LOCAL see one tag, templates HISTORY a tag and the one before (`headway.text.tagger`). A key of a template and
the numbers of its tags are hashed together into one vector of 2^bits weights. Of the candidates of a word, the `_KEPT`
best by their local features go into Viterbi. That costs O(n (C T + K^2 H)) for C candidates, K kept, T templates LOCAL
and H templates HISTORY.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headway.arrays import Floats, Ints
from headway.features.blocks import Keys, Weights
from headway.features.hashing import odd_number
from headway.features.numbering import Codes
from headway.inference.jit import kernel, part
from headway.text.lemmatiser import Tag
from headway.text.word_features import SILENT, CodedWords, WordTemplates, compile_templates, template_keys

_KEPT = 8
_MIX = np.uint64(0x9E3779B97F4A7C15)  # spreads a sum over the upper bits, which index the weights


class Chain(NamedTuple):
    """What the kernels know about the model apart from its weights.

    `levels[t]` numbers tag t at its three levels, finest first; each level has a multiplier, for LOCAL and for HISTORY,
    and so has the tag before. The candidates of set c are `candidates[start[c] : start[c + 1]]`.
    """

    local: WordTemplates
    history: WordTemplates
    levels: Ints
    level_multipliers: Keys
    history_multipliers: Keys
    previous_multiplier: np.uint64
    start: Ints
    candidates: Ints
    drop: np.uint64


def chain_of(
    templates: tuple[Sequence[str], Sequence[str]], tags: Sequence[Tag], sets: Sequence[Sequence[int]], size: int
) -> Chain:
    """For templates LOCAL and HISTORY, numbered tags, sets of candidates among them, and `size` weights."""
    levels: list[tuple[int, int, int]] = []
    middle: dict[tuple[str, str], int] = {}
    coarse: dict[str, int] = {}
    for t, (upos, xpos, _) in enumerate(tags):
        levels.append((t, middle.setdefault((upos, xpos), len(middle)), coarse.setdefault(upos, len(coarse))))
    return Chain(
        compile_templates(templates[0]),
        compile_templates(templates[1]),
        np.array(levels),
        np.array([odd_number(f"level {i}") for i in range(3)], np.uint64),
        np.array([odd_number(f"history level {i}") for i in range(2)], np.uint64),
        np.uint64(odd_number("previous")),
        np.cumsum([0, *map(len, sets)]),
        np.array([t for some in sets for t in some]),
        np.uint64(64 - (size.bit_length() - 1)),
    )


class _Work(NamedTuple):
    """Scratch space of one decoding."""

    keys: Keys  # (T, n) and (H, n)
    history_keys: Keys
    stamp: Ints  # (levels, tags) the word for which `memo` was computed
    memo: Floats
    scores: Floats  # (tags,) of the candidates of one word
    kept: Ints  # (n, K) candidates that go into Viterbi, how many, and their local scores
    counts: Ints
    own: Floats
    best: Floats  # (n, K) and the way back
    back: Ints


@part
def _work_for(chain: Chain, longest: int) -> _Work:
    tags, levels = chain.levels.shape
    return _Work(
        np.zeros((len(chain.local.rows), longest), np.uint64),
        np.zeros((len(chain.history.rows), longest), np.uint64),
        np.full((levels, tags), -1, np.int64),
        np.zeros((levels, tags)),
        np.zeros(tags),
        np.zeros((longest, _KEPT), np.int64),
        np.zeros(longest, np.int64),
        np.zeros((longest, _KEPT)),
        np.zeros((longest, _KEPT)),
        np.zeros((longest, _KEPT), np.int64),
    )


@part
def _local_score(
    tag: int,
    keys: Keys,
    i: int,
    word: int,
    levels: Ints,
    multipliers: Keys,
    drop: np.uint64,
    weights: Weights,
    stamp: Ints,
    memo: Floats,
) -> float:
    """w·f of one tag of word i; levels that tags share are computed once per word."""
    score = 0.0
    for level in range(levels.shape[1]):
        at = levels[tag, level]
        if stamp[level, at] != word:
            stamp[level, at] = word
            more = multipliers[level] * np.uint64(at + 1)
            total = 0.0
            for t in range(keys.shape[0]):
                if keys[t, i] != SILENT:
                    total += weights[(keys[t, i] + more) * _MIX >> drop]
            memo[level, at] = total
        score += memo[level, at]
    return score


@part
def _history_key(chain: Chain, level: int, tag: int, before: int) -> np.uint64:
    """What the tags add to a key of HISTORY; `before` is -1 at the beginning of a sentence."""
    previous = chain.levels[before, 1] + 1 if before >= 0 else 0
    own = chain.levels[tag, 1 - level] + 1
    key: np.uint64 = chain.history_multipliers[level] * np.uint64(own) + chain.previous_multiplier * np.uint64(previous)
    return key


@part
def _keep_candidates(
    chain: Chain, i: int, word: int, which: int, weights: Weights, work: _Work, gold: int, margin: float
) -> None:
    """The best candidates of word i by their local scores, and the right one while training (`gold` >= 0)."""
    first, last = chain.start[which], chain.start[which + 1]
    scores, kept, own = work.scores, work.kept, work.own
    for c in range(first, last):
        tag = chain.candidates[c]
        scores[c - first] = _local_score(
            tag, work.keys, i, word, chain.levels, chain.level_multipliers, chain.drop, weights, work.stamp, work.memo
        )
        if tag != gold:
            scores[c - first] += margin
    count = min(kept.shape[1], last - first)
    there = gold < 0
    for k in range(count):
        best = 0
        for c in range(last - first):
            if scores[c] > scores[best]:
                best = c
        kept[i, k], own[i, k] = chain.candidates[first + best], scores[best]
        scores[best] = -np.inf
        there |= kept[i, k] == gold
    if not there:
        count = min(count + 1, kept.shape[1])
        kept[i, count - 1] = gold
        own[i, count - 1] = _local_score(
            gold, work.keys, i, word, chain.levels, chain.level_multipliers, chain.drop, weights, work.stamp, work.memo
        )
    work.counts[i] = count


@part
def _viterbi(chain: Chain, n: int, weights: Weights, work: _Work, start: int, found: Ints) -> None:
    """The best sequence of the candidates kept, into found[start : start + n]."""
    keys, kept, counts, best, back = work.history_keys, work.kept, work.counts, work.best, work.back
    for i in range(n):
        for k in range(counts[i]):
            best[i, k] = -np.inf
            for p in range(counts[i - 1] if i else 1):
                score = best[i - 1, p] if i else 0.0
                before = kept[i - 1, p] if i else -1
                for level in range(len(chain.history_multipliers)):
                    more = _history_key(chain, level, kept[i, k], before)
                    for t in range(keys.shape[0]):
                        if keys[t, i] != SILENT:
                            score += weights[(keys[t, i] + more) * _MIX >> chain.drop]
                if score > best[i, k]:
                    best[i, k], back[i, k] = score, p
            best[i, k] += work.own[i, k]
    k = 0
    for other in range(counts[n - 1]):
        if best[n - 1, other] > best[n - 1, k]:
            k = other
    for i in range(n - 1, -1, -1):
        found[start + i] = kept[i, k]
        k = back[i, k]


@part
def _decode(
    chain: Chain,
    codes: Codes,
    start: int,
    n: int,
    sets: Ints,
    gold: Ints,
    margin: float,
    weights: Weights,
    work: _Work,
    found: Ints,
) -> None:
    """One sentence; `gold` is empty unless it is trained on."""
    template_keys(chain.local, codes, start, n, work.keys)
    template_keys(chain.history, codes, start, n, work.history_keys)
    for i in range(n):
        right = gold[start + i] if len(gold) else -1
        _keep_candidates(chain, i, start + i, sets[start + i], weights, work, right, margin)
    _viterbi(chain, n, weights, work, start, found)


@kernel
def best_tags(chain: Chain, words: CodedWords, sets: Ints, weights: Weights, found: Ints) -> None:
    """The best tags of all words, at their columns of `found`."""
    codes, starts, lengths = words
    work = _work_for(chain, max(1, lengths.max()) if len(lengths) else 1)
    nothing = np.empty(0, np.int64)
    for s in range(len(lengths)):
        if lengths[s]:
            _decode(chain, codes, starts[s], lengths[s], sets, nothing, 0.0, weights, work, found)


@part
def _add(
    keys: Keys, i: int, more: np.uint64, drop: np.uint64, amount: float, seen: int, weights: Floats, total: Floats
) -> None:
    for t in range(keys.shape[0]):
        if keys[t, i] != SILENT:
            at = (keys[t, i] + more) * _MIX >> drop
            weights[at] += amount
            total[at] += amount * seen


@part
def _add_tag(
    chain: Chain, i: int, tag: int, before: int, amount: float, seen: int, work: _Work, weights: Floats, total: Floats
) -> None:
    """Add the features of word i with its tag and the tag before."""
    for level in range(len(chain.level_multipliers)):
        more = chain.level_multipliers[level] * np.uint64(chain.levels[tag, level] + 1)
        _add(work.keys, i, more, chain.drop, amount, seen, weights, total)
    for level in range(len(chain.history_multipliers)):
        more = _history_key(chain, level, tag, before)
        _add(work.history_keys, i, more, chain.drop, amount, seen, weights, total)


@kernel
def train_pass(
    chain: Chain,
    words: CodedWords,
    sets: Ints,
    gold: Ints,
    order: Ints,
    margin: float,
    weights: Floats,
    total: Floats,
    seen: int,
) -> int:
    """One pass of the perceptron; returns how many tags were wrong. `averaging` says what `total` and `seen` are."""
    codes, starts, lengths = words
    work = _work_for(chain, max(1, lengths.max()))
    work.stamp[:] = -1
    found = np.zeros(codes.shape[1], np.int64)
    wrong = 0
    for now, s in enumerate(order, seen):
        start, n = starts[s], lengths[s]
        if n == 0:
            continue
        _decode(chain, codes, start, n, sets, gold, margin, weights, work, found)
        for i in range(n):
            right, own = gold[start + i], found[start + i]
            right_before = gold[start + i - 1] if i else -1
            own_before = found[start + i - 1] if i else -1
            wrong += right != own
            if right != own or right_before != own_before:
                _add_tag(chain, i, right, right_before, 1.0, now, work, weights, total)
                _add_tag(chain, i, own, own_before, -1.0, now, work, weights, total)
    return wrong
