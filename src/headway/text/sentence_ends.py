"""Where sentences end: a linear classifier of two answers after every token.

The score comes from features of the tokens around, their shapes, the sentence so far and the paragraph, which are
hashed into a table of weights. Text is split from left to right, greedily. Training is the averaged large-margin
perceptron over tokens in random order, with the right decisions to the left of each.

Sentences of too many words are cut where their score is best (in the second half of what fits), since parsing costs the
cube of the length.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Floats, Ints
from headway.inference.jit import kernel, part
from headway.learning.averaging import averaged_weights
from headway.text.characters import (
    BREAK,
    CLOSE,
    CLOSE_QUOTE,
    LOWER,
    MOST_FEATURES,
    OPEN,
    OPEN_QUOTE,
    PAD,
    UPPER,
    Bytes,
    Characters,
    between,
    both,
    slot,
)
from headway.treebank.raw_text import SENTENCE, TOKEN

SENTENCE_SLOTS = 1 << 20
_MARGIN = 3.0
_STOPS = tuple(map(ord, ".!?"))
_QUOTE, _ROUND, _END_ROUND, _SQUARE, _END_SQUARE = map(ord, '"()[]')


class Tokens(NamedTuple):
    """The tokens of a text, and what the second classifier looks at."""

    start: Ints  # first character of each
    end: Ints  # and the one after its last
    gap: Ints  # what follows: 0 for another character, else the class of the white space
    form: Ints  # hashes of the token,
    low: Ints  # in lower case,
    shape: Ints  # of its outline
    first: Ints  # first token of its paragraph
    last: Ints  # and the one after its last
    mood: Ints  # how the paragraph is written


def learn_sentence_ends(text: Characters, ends: Ints, seed: int, passes: int) -> Floats:
    """Weights (SENTENCE_SLOTS,) from every token but the last of a paragraph; `ends` are those of the characters."""
    tokens, gold, starts, states = _histories(text, ends)
    where = np.flatnonzero(tokens.gap != BREAK)

    def run(order: Ints, weights: Floats, total: Floats, seen: int) -> int:
        return _train_pass(text, tokens, order, starts, states, gold, weights, total, seen)

    return averaged_weights(run, where, SENTENCE_SLOTS, passes, seed)


@part
def sentence_scores(text: Characters, tokens: Tokens, weights: Bytes) -> Ints:
    """The score of a sentence end after each token, decided from left to right."""
    slots = np.zeros(MOST_FEATURES, np.int64)
    count = len(tokens.start)
    scores = np.zeros(count, np.int64)
    start = state = int(np.int64(0))  # a mere constant would have Numba compile the features twice
    for t in range(count):
        state = _state_after(text, tokens, t, state)
        n = sentence_features(text, tokens, t, start, state, slots)
        for f in range(n):
            scores[t] += weights[slots[f]]
        if scores[t] > 0 or tokens.gap[t] == BREAK:
            start, state = t + 1, 0
    return scores


@kernel
def sentence_ends_of(scores: Ints, gaps: Ints, words: Ints, longest: int) -> NDArray[np.bool_]:
    """Where sentences end; one of too many words is cut where its score is best, in the second half of what fits."""
    ends = np.zeros(len(scores), np.bool_)
    count = t = 0
    while t < len(scores):
        count += words[t]
        if scores[t] > 0 or gaps[t] == BREAK:
            ends[t] = True
        elif t + 1 < len(scores) and count + words[t + 1] > longest:
            best, k = t, t
            while k > 0 and not ends[k - 1] and 2 * (count - words[k]) >= longest:
                count -= words[k]
                k -= 1
                if scores[k] > scores[best]:
                    best = k
            ends[best] = True
            t = best
        if ends[t]:
            count = 0
        t += 1
    return ends


@part
def tokens_in(text: Characters, ends: Ints) -> Tokens:
    """The tokens that end where `ends` is at least TOKEN."""
    kind = text.kind
    count = 0
    for i in range(len(kind)):
        count += ends[i] >= TOKEN
    start, end, gap = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    form, low, shape = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    first, last, mood = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    t = 0
    begin = PAD
    for i in range(PAD, len(kind) - PAD):
        if kind[i] <= BREAK:
            begin = i + 1
        if ends[i] < TOKEN:
            continue
        e = i + 1
        start[t], end[t] = begin, e
        gap[t] = kind[e] if kind[e] <= BREAK else 0
        form[t], low[t] = between(text.raw, begin, e), between(text.low, begin, e)
        second = kind[begin + 1] if e > begin + 1 else 0
        shape[t] = ((kind[begin] * 128 + second) * 128 + kind[i]) * 8 + min(e - begin, 4)
        begin = e
        t += 1
    t = 0
    while t < count:
        stop = t
        capitals = words = stops = 0
        while True:
            opening, closing = kind[start[stop]], kind[end[stop] - 1]
            capitals += opening == UPPER
            words += opening in (UPPER, LOWER)
            stops += closing in _STOPS and gap[stop] > 0
            stop += 1
            if gap[stop - 1] == BREAK:
                break
        level = 0 if capitals == 0 else 1 if capitals * 3 < words else 2 if capitals * 4 < words * 3 else 3
        for j in range(t, stop):
            first[j], last[j], mood[j] = t, stop, level * 4 + min(stops, 3)
        t = stop
    return Tokens(start, end, gap, form, low, shape, first, last, mood)


@part
def _bucket(n: int) -> int:
    return n if n < 6 else 6 if n < 8 else 7 if n < 12 else 8 if n < 18 else 9 if n < 30 else 10 if n < 50 else 11


@part
def _at(values: Ints, tokens: Tokens, t: int, k: int) -> int:
    """The value of token k, as seen from token t: tokens of other paragraphs are out of sight."""
    if k < tokens.first[t]:
        return -1
    if k >= tokens.last[t]:
        return -2
    return int(values[k])


@part
def sentence_features(text: Characters, tokens: Tokens, t: int, start: int, state: int, slots: Ints) -> int:
    """Features of a sentence end after token t, when the sentence starts with token `start`; how many there are."""
    low, form, shape = tokens.low, tokens.form, tokens.shape
    gap = tokens.gap[t]
    w0, w1, w2 = low[t], _at(low, tokens, t, t + 1), _at(low, tokens, t, t + 2)
    v1, v2 = _at(low, tokens, t, t - 1), _at(low, tokens, t, t - 2)
    f1, f2 = _at(form, tokens, t, t + 1), _at(form, tokens, t, t + 2)
    s0, s1, s2 = shape[t], _at(shape, tokens, t, t + 1), _at(shape, tokens, t, t + 2)
    r1, r2 = _at(shape, tokens, t, t - 1), _at(shape, tokens, t, t - 2)
    g1 = _at(tokens.gap, tokens, t, t - 1)
    s3 = _at(shape, tokens, t, t + 3)
    length = _bucket(t + 1 - start)
    left = _bucket(tokens.last[t] - t - 1)
    mood = tokens.mood[t]
    ahead = behind = 0  # capitalised words in a row
    while ahead < 4 and t + 1 + ahead < tokens.last[t] and text.kind[tokens.start[t + 1 + ahead]] == UPPER:
        ahead += 1
    while behind < 4 and t - behind >= start and text.kind[tokens.start[t - behind]] == UPPER:
        behind += 1
    s01 = both(both(s0, s1), gap)
    w0s1 = both(both(w0, s1), gap)
    values = (
        gap,
        both(w0, gap),
        s01,
        both(w0, w1),
        w0s1,
        both(w0, v1),
        both(w0s1, v1),
        both(w0s1, r1),
        both(w0s1, s2),
        both(both(w0s1, s2), r1),
        w1,
        f1,
        both(f1, s0),
        both(f1, w0s1),
        both(f1, f2),
        both(both(f1, f2), s0),
        both(w1, w2),
        both(s01, s2),
        both(s01, r1),
        both(both(s01, r1), s2),
        both(both(both(s01, r1), s2), r2),
        both(both(s01, s2), s3),
        both(s01, v1),
        both(both(v2, v1), w0),
        both(w0s1, g1),
        both(both(w0s1, g1), r1),
        both(s01, length),
        both(w0s1, length),
        both(s01, left),
        both(w0s1, left),
        both(s01, mood),
        both(w0s1, mood),
        both(both(s01, mood), length),
        both(w0s1, state),
        both(s01, state),
        both(both(low[start], w0s1), 1),
        both(shape[start], w0s1),
        both(shape[start], s01),
        both(both(low[start], length), s01),
        both(between(text.low, tokens.end[t] - 3, tokens.end[t]), s1),
        both(f1, mood),
        both(both(f1, gap), length),
        both(both(w0s1, both(r1, v2)), 2),
        both(w2, s01),
        both(both(low[start] == w1, s01), 3),
        both(both(low[start] == w1, length), w1),
        both(both(shape[start] == s1, s01), 4),
        both(both(shape[start] == s1, length), s01),
        both(both(shape[start], s1), length),
        both(both(ahead, behind), s01),
        both(ahead, w0s1),
        both(both(ahead, behind), length),
    )
    f = 0
    for value in values:
        slots[f] = slot(MOST_FEATURES + f, value) & (SENTENCE_SLOTS - 1)
        f += 1
    return f


@part
def _state_after(text: Characters, tokens: Tokens, t: int, state: int) -> int:
    """Open brackets (up to 2) and the parity of double quotes after token t."""
    depth, quoted = state & 3, state >> 2
    opening = text.kind[tokens.start[t]]
    if opening in (_ROUND, _SQUARE, OPEN):
        depth = min(depth + 1, 2)
    elif opening in (_END_ROUND, _END_SQUARE, CLOSE):
        depth = max(depth - 1, 0)
    elif opening == _QUOTE:
        quoted = 1 - quoted
    elif opening in (OPEN_QUOTE, CLOSE_QUOTE):
        quoted = int(opening == OPEN_QUOTE)
    return depth + 4 * quoted


@kernel
def _histories(text: Characters, ends: Ints) -> tuple[Tokens, Ints, Ints, Ints]:
    """The tokens of training text, and for each: does a sentence end, which token is its first, what is open?"""
    tokens = tokens_in(text, ends)
    count = len(tokens.end)
    gold, starts, states = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    start = state = 0
    for t in range(count):
        state = _state_after(text, tokens, t, state)
        starts[t], states[t] = start, state
        if ends[tokens.end[t] - 1] == SENTENCE:
            gold[t] = 1
            start, state = t + 1, 0
    return tokens, gold, starts, states


@kernel
def _train_pass(
    text: Characters,
    tokens: Tokens,
    where: Ints,
    starts: Ints,
    states: Ints,
    gold: Ints,
    weights: Floats,
    total: Floats,
    seen: int,
) -> int:
    """One pass over the tokens `where`; how many were wrong."""
    slots = np.zeros(MOST_FEATURES, np.int64)
    wrong = 0
    for t in where:
        sign = 1.0 if gold[t] else -1.0
        n = sentence_features(text, tokens, t, starts[t], states[t], slots)
        score = 0.0
        for f in range(n):
            score += weights[slots[f]]
        if sign * score <= _MARGIN:
            wrong += 1
            for f in range(n):
                weights[slots[f]] += sign
                total[slots[f]] += sign * seen
        seen += 1
    return wrong
