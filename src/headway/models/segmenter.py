"""Sentences and words from raw text, by two linear classifiers learnt from a treebank.

White space and paragraph ends are given: both end a token, a blank line ends a sentence too. (A treebank's words with
spaces in them come out as several words.) What is left to decide, from left to right and greedily:

1. after every character that is followed by another: does nothing, a word of a multiword token ("do|n't") or a token
   end here? Three scores from some sixty features: the characters and character classes on both sides, the stretch
   between white space, the token so far, how the text goes on after the next white space.
2. after every token: does the sentence end here? One score from the tokens around, their shapes, the sentence so far
   and the paragraph.

Features are hashed into tables of weights of one byte. Substrings are hashed in constant time from prefix sums
h[i+1] = h[i] B + c (modulo 2^64), so splitting n characters costs O(n), whatever the text. Training is the averaged
large-margin perceptron over positions in random order, with the right decisions to the left of each.

A multiword token whose words are not pieces of it (Portuguese "do" = "de" + "o") comes from a table: the tokens that
training mostly has as those words. Sentences of more than LONGEST words are cut where their score is best (in the
second half of what fits), since parsing costs the cube of the length.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.errors import TrainingError
from headway.inference.jit import kernel, part
from headway.treebank.raw_text import (
    LONGEST_PARAGRAPH,
    NOTHING,
    SENTENCE,
    TOKEN,
    WORD,
    Token,
    raw_text,
    sentence_from_tokens,
    split_paragraphs,
    tokens_of,
)
from headway.treebank.sentence import Sentence

LONGEST = 1_000  # words of a sentence

Longs = NDArray[np.int64]
Codes = NDArray[np.uint32]
Bytes = NDArray[np.int8]
Floats = NDArray[np.float64]

_BOUNDARIES = 1 << 17  # weights of the first classifier, for each of its three answers
_SENTENCES = 1 << 20  # weights of the second
_PAD = 12  # characters of nothing on both sides of a text
_MARGIN = 3.0
_MOST_WORDS = 16  # of a multiword token
_REACH = 40  # characters of a token that count

# Classes of characters. Each mark and symbol of ASCII is a class of its own, its code; all below are less than 32.
_UNKNOWN, _LINE, _SPACE, _BREAK, _UPPER, _LOWER, _LETTER, _DIGIT, _MARK = range(9)
_OPEN, _CLOSE, _OPEN_QUOTE, _CLOSE_QUOTE = range(9, 13)
_CATEGORIES = {
    "Lu": _UPPER, "Lt": _UPPER, "Ll": _LOWER, "Lm": _LETTER, "Lo": _LETTER, "Nd": _DIGIT, "Nl": _DIGIT, "No": _DIGIT,
    "Mn": _MARK, "Mc": _MARK, "Me": _MARK, "Ps": _OPEN, "Pe": _CLOSE, "Pi": _OPEN_QUOTE, "Pf": _CLOSE_QUOTE,
    "Pc": 13, "Pd": 14, "Po": 15, "Sc": 16, "Sk": 17, "Sm": 18, "So": 19, "Cf": 20, "Cc": 21, "Cs": 22, "Co": 23,
    "Cn": 24,
}  # fmt: skip
_STOPS = tuple(map(ord, ".!?"))
_QUOTE, _ROUND, _END_ROUND, _DOT, _SLASH, _AT, _SQUARE, _END_SQUARE = map(ord, '"()./@[]')

_MOST = 80  # features of a classifier

_BASE = 0x1E3779B97F4A7C15
_MIX = 0x2F58476D1CE4E5B9
_STEP = 0x14D049BB133111EB

_POWERS = np.array([pow(_BASE, k, 1 << 64) for k in range(_REACH + 2 * _PAD)], np.uint64).view(np.int64)

# Filled as characters come up; the pages of Unicode that no text uses cost no memory.
_CLASS = np.zeros(0x110000, np.uint8)
_LOWERED = np.zeros(0x110000, np.uint32)


def _codes(text: str) -> Codes:
    """The characters as numbers; those not met before are entered into the tables of classes and lower case."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    unknown = codes[_CLASS[codes] == _UNKNOWN]
    for code in set(unknown.tolist()):
        character = chr(code)
        lower = character.lower()
        _LOWERED[code] = ord(lower) if len(lower) == 1 else code
        _CLASS[code] = _class_of(character)
    return codes


def _class_of(character: str) -> int:
    """White space as `str.isspace` has it, then by the categories of Unicode."""
    if character in "\n\r\u2029":
        return _LINE
    if character.isspace():
        return _SPACE
    category = unicodedata.category(character)
    if character < "\x7f" and category[0] in "PS":
        return ord(character)
    return _CATEGORIES[category]


class _Characters(NamedTuple):
    """A text with white space made one _SPACE, and _PAD breaks around every paragraph: none sees another's text."""

    place: Longs  # of each character in the text, -1 for white space
    kind: Longs  # its class
    raw: Longs  # prefix hashes of the characters,
    low: Longs  # in lower case,
    shape: Longs  # of their classes
    first: Longs  # where the stretch between white space around it starts,
    last: Longs  # and ends
    traits: Longs  # what that stretch has


class _Tokens(NamedTuple):
    """The tokens of a text, and what the second classifier looks at."""

    start: Longs  # first character of each
    end: Longs  # and the one after its last
    gap: Longs  # what follows: 0 for another character, else the class of the white space
    form: Longs  # hashes of the token,
    low: Longs  # in lower case,
    shape: Longs  # of its outline
    first: Longs  # first token of its paragraph
    last: Longs  # and the one after its last
    mood: Longs  # how the paragraph is written


def _characters(text: str) -> _Characters:
    return _squeeze(_codes(text), _CLASS, _LOWERED)


@kernel
def _squeeze(codes: Codes, classes: NDArray[np.uint8], lowered: Codes) -> _Characters:
    return _squeezed(codes, classes, lowered)


@part
def _squeezed(codes: Codes, classes: NDArray[np.uint8], lowered: Codes) -> _Characters:
    """White space with two line ends in it is a break, any other a space; none at the start and the end."""
    n = len(codes)
    size = n + 2 * _PAD
    for i in range(n):
        if classes[codes[i]] == _LINE:
            size += _PAD
    place, kind = np.full(size, -1, np.int64), np.full(size, _BREAK, np.int64)
    raw, low, shape = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
    end = _PAD
    i = 0
    while i < n and classes[codes[i]] <= _SPACE:
        i += 1
    while i < n:
        c = codes[i]
        if classes[c] > _SPACE:
            place[end], kind[end] = i, classes[c]
            end += 1
            i += 1
            continue
        lines = 0
        while i < n and classes[codes[i]] <= _SPACE:
            c = codes[i]
            if c == 10 or (c == 13 and not (i + 1 < n and codes[i + 1] == 10)):
                lines += 1
            elif c == 0x2029:
                lines += 2
            i += 1
        if i == n:
            break
        if lines > 1:
            end += _PAD
        else:
            kind[end] = _SPACE
            end += 1
    size = end + _PAD
    for k in range(size):
        p = place[k]
        code, lower = (np.int64(codes[p]), np.int64(lowered[codes[p]])) if p >= 0 else (kind[k], kind[k])
        raw[k + 1] = raw[k] * _BASE + code
        low[k + 1] = low[k] * _BASE + lower
        shape[k + 1] = shape[k] * _BASE + kind[k]
    first, last, traits = _stretches(kind[:size])
    return _Characters(
        place[:size], kind[:size], raw[: size + 1], low[: size + 1], shape[: size + 1], first, last, traits
    )


@part
def _stretches(kind: Longs) -> tuple[Longs, Longs, Longs]:
    """Start and end of the stretch between white space that each character is in, and its traits as one number."""
    size = len(kind)
    first, last, traits = np.arange(size), np.arange(size), np.zeros(size, np.int64)
    k = 0
    while k < size:
        stop = k
        at = slash = dots = digit = letters = 0
        while kind[stop] > _BREAK:
            at |= kind[stop] == _AT
            slash |= kind[stop] == _SLASH and kind[stop + 1] == _SLASH
            dots += kind[stop] == _DOT
            digit |= kind[stop] == _DIGIT
            letters |= kind[stop] in (_UPPER, _LOWER, _LETTER)
            stop += 1
        trait = at + 2 * slash + 4 * min(dots, 3) + 16 * digit + 32 * letters + 64 * min(stop - k, 3)
        for j in range(k, stop):
            first[j], last[j], traits[j] = k, stop, trait
        k = stop + 1
    return first, last, traits


@part
def _between(prefix: Longs, start: int, end: int) -> int:
    """The hash of a stretch, of its first _REACH characters if it is longer."""
    length = min(end - start, _REACH)
    return int(prefix[start + length] - prefix[start] * _POWERS[length])


@part
def _both(one: int, other: int) -> int:
    """One hash of two."""
    return (one ^ (one >> 29)) * _MIX + other


@part
def _slot(template: int, value: int) -> int:
    """A feature as a number of 23 bits; the lowest of them say where its weight is."""
    mixed = (value ^ (value >> 32)) * _MIX + template * _STEP
    mixed = (mixed ^ (mixed >> 29)) * _STEP
    return (mixed >> 40) & 0x7FFFFF


@part
def _boundary_features(text: _Characters, i: int, start: int, slots: Longs) -> int:
    """Features of the boundary after character i of a word that starts at `start`; how many there are."""
    kind, raw, low, shape = text.kind, text.raw, text.low, text.shape
    e = i + 1
    head, tail, traits = text.first[i], text.last[i], text.traits[i]
    pair = _between(shape, i, e + 1)
    before, rest = _between(low, start, e), _between(low, e, tail)
    stretch = _between(low, head, e)
    rest_shape = _between(shape, e, tail)
    # How the stretch ends, and the class of what follows the white space after it (a break, if nothing does).
    ending = _both(rest_shape, kind[tail])
    goes_on = _both(ending, kind[tail + 1])
    values = (
        0,
        _between(raw, e - 1, e + 1),
        _between(raw, e - 2, e + 2),
        _between(raw, e - 3, e + 3),
        pair,
        _between(shape, e - 2, e + 2),
        _between(shape, e - 3, e + 3),
        _between(shape, e - 4, e + 4),
        _between(shape, e - 5, e + 5),
        _between(shape, e - 6, e + 2),
        _between(shape, e - 2, e + 6),
        _between(shape, e - 9, e + 1),
        _between(shape, e - 1, e + 9),
        _both(_between(low, head, tail), e - head),
        _both(_between(shape, head, tail), e - head),
        stretch,
        rest,
        _both(_between(shape, head, e), kind[e]),
        _both(rest_shape, kind[i]),
        _both(before, kind[e]),
        _both(_between(shape, start, e), kind[e]),
        _both(before, rest),
        goes_on,
        _both(goes_on, _between(low, e - 3, e)),
        _both(goes_on, stretch),
        _both(goes_on, traits),
        _both(ending, _between(low, tail + 1, text.last[tail + 1])),
        _both(traits, pair),
        _both(traits, _between(shape, i - 1, e + 2)),
        _both(traits & 3, pair),
        _both(traits & 3, kind[e]),
        _both(traits & 3, ending),
        _both(pair, min(e - head, 6)),
        _both(pair, min(tail - e, 6)),
    )
    f = 0
    for value in values:
        slots[f] = _slot(f, value) & (_BOUNDARIES - 1)
        f += 1
    for a in range(7):
        for b in range(7):
            if (a and b and a < 5 and b < 5) or (not a) != (not b):
                slots[f] = _slot(f, _between(low, e - a, e + b)) & (_BOUNDARIES - 1)
                f += 1
    return f


@kernel
def _train_boundaries(
    text: _Characters,
    where: Longs,
    starts: Longs,
    gold: Longs,
    weights: Floats,
    total: Floats,
    seen: int,
    margin: float,
) -> int:
    """One pass over the positions `where`; how many were wrong."""
    slots = np.zeros(_MOST, np.int64)
    scores = np.zeros(3)
    wrong = 0
    for i in where:
        right = gold[i]
        n = _boundary_features(text, i, starts[i], slots)
        scores[:] = margin
        scores[right] = 0.0
        for f in range(n):
            for c in range(3):
                scores[c] += weights[slots[f], c]
        best = right
        for c in range(3):
            if scores[c] > scores[best]:
                best = c
        if best != right:
            wrong += 1
            for f in range(n):
                weights[slots[f], right] += 1.0
                weights[slots[f], best] -= 1.0
                total[slots[f], right] += seen
                total[slots[f], best] -= seen
        seen += 1
    return wrong


@part
def _boundaries(text: _Characters, weights: Bytes, most_words: int) -> Longs:
    """What ends after each character: NOTHING, WORD or TOKEN. A token of more words than `most_words` is one word."""
    kind = text.kind
    slots = np.zeros(_MOST, np.int64)
    ends = np.zeros(len(kind), np.int64)
    token = start = _PAD
    words = 1
    for i in range(_PAD, len(kind) - _PAD):
        if kind[i] <= _BREAK:
            token = start = i + 1
            words = 1
            continue
        found = TOKEN
        if kind[i + 1] > _BREAK:
            n = _boundary_features(text, i, start, slots)
            nothing = word = whole = 0
            for f in range(n):
                nothing += weights[slots[f], 0]
                word += weights[slots[f], 1]
                whole += weights[slots[f], 2]
            found = NOTHING if nothing >= max(word, whole) else WORD if word > whole else TOKEN
        if found == NOTHING:
            continue
        ends[i] = found
        start = i + 1
        if found == WORD:
            words += 1
        else:
            if words > most_words:
                ends[token:i] = NOTHING
            token = i + 1
            words = 1
    return ends


@part
def _tokens(text: _Characters, ends: Longs) -> _Tokens:
    """The tokens that end where `ends` is at least TOKEN."""
    kind = text.kind
    count = 0
    for i in range(len(kind)):
        count += ends[i] >= TOKEN
    start, end, gap = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    form, low, shape = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    first, last, mood = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    t = 0
    begin = _PAD
    for i in range(_PAD, len(kind) - _PAD):
        if kind[i] <= _BREAK:
            begin = i + 1
        if ends[i] < TOKEN:
            continue
        e = i + 1
        start[t], end[t] = begin, e
        gap[t] = kind[e] if kind[e] <= _BREAK else 0
        form[t], low[t] = _between(text.raw, begin, e), _between(text.low, begin, e)
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
            capitals += opening == _UPPER
            words += opening in (_UPPER, _LOWER)
            stops += closing in _STOPS and gap[stop] > 0
            stop += 1
            if gap[stop - 1] == _BREAK:
                break
        level = 0 if capitals == 0 else 1 if capitals * 3 < words else 2 if capitals * 4 < words * 3 else 3
        for j in range(t, stop):
            first[j], last[j], mood[j] = t, stop, level * 4 + min(stops, 3)
        t = stop
    return _Tokens(start, end, gap, form, low, shape, first, last, mood)


@part
def _bucket(n: int) -> int:
    return n if n < 6 else 6 if n < 8 else 7 if n < 12 else 8 if n < 18 else 9 if n < 30 else 10 if n < 50 else 11


@part
def _at(values: Longs, tokens: _Tokens, t: int, k: int) -> int:
    """The value of token k, as seen from token t: tokens of other paragraphs are out of sight."""
    if k < tokens.first[t]:
        return -1
    if k >= tokens.last[t]:
        return -2
    return int(values[k])


@part
def _sentence_features(text: _Characters, tokens: _Tokens, t: int, start: int, state: int, slots: Longs) -> int:
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
    while ahead < 4 and t + 1 + ahead < tokens.last[t] and text.kind[tokens.start[t + 1 + ahead]] == _UPPER:
        ahead += 1
    while behind < 4 and t - behind >= start and text.kind[tokens.start[t - behind]] == _UPPER:
        behind += 1
    s01 = _both(_both(s0, s1), gap)
    w0s1 = _both(_both(w0, s1), gap)
    values = (
        gap,
        _both(w0, gap),
        s01,
        _both(w0, w1),
        w0s1,
        _both(w0, v1),
        _both(w0s1, v1),
        _both(w0s1, r1),
        _both(w0s1, s2),
        _both(_both(w0s1, s2), r1),
        w1,
        f1,
        _both(f1, s0),
        _both(f1, w0s1),
        _both(f1, f2),
        _both(_both(f1, f2), s0),
        _both(w1, w2),
        _both(s01, s2),
        _both(s01, r1),
        _both(_both(s01, r1), s2),
        _both(_both(_both(s01, r1), s2), r2),
        _both(_both(s01, s2), s3),
        _both(s01, v1),
        _both(_both(v2, v1), w0),
        _both(w0s1, g1),
        _both(_both(w0s1, g1), r1),
        _both(s01, length),
        _both(w0s1, length),
        _both(s01, left),
        _both(w0s1, left),
        _both(s01, mood),
        _both(w0s1, mood),
        _both(_both(s01, mood), length),
        _both(w0s1, state),
        _both(s01, state),
        _both(_both(low[start], w0s1), 1),
        _both(shape[start], w0s1),
        _both(shape[start], s01),
        _both(_both(low[start], length), s01),
        _both(_between(text.low, tokens.end[t] - 3, tokens.end[t]), s1),
        _both(f1, mood),
        _both(_both(f1, gap), length),
        _both(_both(w0s1, _both(r1, v2)), 2),
        _both(w2, s01),
        _both(_both(low[start] == w1, s01), 3),
        _both(_both(low[start] == w1, length), w1),
        _both(_both(shape[start] == s1, s01), 4),
        _both(_both(shape[start] == s1, length), s01),
        _both(_both(shape[start], s1), length),
        _both(_both(ahead, behind), s01),
        _both(ahead, w0s1),
        _both(_both(ahead, behind), length),
    )
    f = 0
    for value in values:
        slots[f] = _slot(_MOST + f, value) & (_SENTENCES - 1)
        f += 1
    return f


@part
def _state_after(text: _Characters, tokens: _Tokens, t: int, state: int) -> int:
    """Open brackets (up to 2) and the parity of double quotes after token t."""
    depth, quoted = state & 3, state >> 2
    opening = text.kind[tokens.start[t]]
    if opening in (_ROUND, _SQUARE, _OPEN):
        depth = min(depth + 1, 2)
    elif opening in (_END_ROUND, _END_SQUARE, _CLOSE):
        depth = max(depth - 1, 0)
    elif opening == _QUOTE:
        quoted = 1 - quoted
    elif opening in (_OPEN_QUOTE, _CLOSE_QUOTE):
        quoted = int(opening == _OPEN_QUOTE)
    return depth + 4 * quoted


@kernel
def _histories(text: _Characters, ends: Longs) -> tuple[_Tokens, Longs, Longs, Longs]:
    """The tokens of training text, and for each: does a sentence end, which token is its first, what is open?"""
    tokens = _tokens(text, ends)
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
def _train_sentences(
    text: _Characters,
    tokens: _Tokens,
    where: Longs,
    starts: Longs,
    states: Longs,
    gold: Longs,
    weights: Floats,
    total: Floats,
    seen: int,
    margin: float,
) -> int:
    """One pass over the tokens `where`; how many were wrong."""
    slots = np.zeros(_MOST, np.int64)
    wrong = 0
    for t in where:
        sign = 1.0 if gold[t] else -1.0
        n = _sentence_features(text, tokens, t, starts[t], states[t], slots)
        score = 0.0
        for f in range(n):
            score += weights[slots[f]]
        if sign * score <= margin:
            wrong += 1
            for f in range(n):
                weights[slots[f]] += sign
                total[slots[f]] += sign * seen
        seen += 1
    return wrong


@part
def _sentence_scores(text: _Characters, tokens: _Tokens, weights: Bytes) -> Longs:
    """The score of a sentence end after each token, decided from left to right."""
    slots = np.zeros(_MOST, np.int64)
    count = len(tokens.start)
    scores = np.zeros(count, np.int64)
    start = state = 0
    for t in range(count):
        state = _state_after(text, tokens, t, state)
        n = _sentence_features(text, tokens, t, start, state, slots)
        for f in range(n):
            scores[t] += weights[slots[f]]
        if scores[t] > 0 or tokens.gap[t] == _BREAK:
            start, state = t + 1, 0
    return scores


@kernel
def _analyse(
    codes: Codes,
    classes: NDArray[np.uint8],
    lowered: Codes,
    boundaries: Bytes,
    sentence_ends: Bytes,
    most_words: int,
) -> tuple[Longs, Longs, Longs, Longs, Longs]:
    """First character of every token and the one after its last, what follows it, and the score of a sentence end;
    and where words end inside tokens. One kernel for all, since most paragraphs are short.
    """
    text = _squeezed(codes, classes, lowered)
    ends = _boundaries(text, boundaries, most_words)
    tokens = _tokens(text, ends)
    scores = _sentence_scores(text, tokens, sentence_ends)
    place = text.place
    return place[tokens.start], place[tokens.end - 1] + 1, tokens.gap, scores, place[np.flatnonzero(ends == WORD)] + 1


@kernel
def _sentence_ends(scores: Longs, gaps: Longs, words: Longs, longest: int) -> NDArray[np.bool_]:
    """Where sentences end; one of too many words is cut where its score is best, in the second half of what fits."""
    ends = np.zeros(len(scores), np.bool_)
    count = t = 0
    while t < len(scores):
        count += words[t]
        if scores[t] > 0 or gaps[t] == _BREAK:
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


@dataclass(frozen=True, eq=False, repr=False)
class Segmenter:
    """Splits text into sentences and words; see the module's text."""

    boundaries: Bytes  # (slots, 3)
    sentence_ends: Bytes  # (slots,)
    table: Mapping[str, tuple[str, ...]]  # multiword tokens in lower case, and their words
    most_words: int  # of a multiword token
    silent_hyphen: bool  # is a hyphen between the words of a multiword token part of neither?

    @classmethod
    def learn(cls, sentences: Sequence[Sentence], *, seed: int = 0, passes: int = 5) -> Segmenter:
        """Learn from a treebank; one without any SpaceAfter=No has its spaces guessed, as `raw_text` can."""
        if passes < 1:
            raise TrainingError(f"passes is {passes}; make at least one")
        multiword = _Multiword.of(sentences)
        source = raw_text(sentences, guess_spaces=not multiword.spaces_known)
        if not source.text.strip():
            raise TrainingError("there are no words to learn to split text from; give a treebank with sentences")
        text = _characters(source.text)
        ends = np.where(text.place >= 0, source.ends[text.place], NOTHING).astype(np.int64)
        space = text.kind <= _BREAK
        before_space = ~space & np.roll(space, -1)
        ends[before_space] = np.maximum(ends[before_space], TOKEN)  # a word with spaces inside comes apart
        return cls(
            _quantised(_learn_boundaries(text, ends, np.flatnonzero(~space & ~before_space), seed, passes)),
            _quantised(_learn_sentence_ends(text, ends, seed, passes)),
            multiword.table(),
            multiword.most_words,
            multiword.silent_hyphen,
        )

    def sentences(self, text: str, offset: int = 0) -> list[Sentence]:
        """The sentences of a text, whose first character has the offset `offset`."""
        found: list[Sentence] = []
        for start, paragraph in [(0, text)] if len(text) <= LONGEST_PARAGRAPH else split_paragraphs([text]):
            found += self._split(paragraph, offset + start, one=False)
        return found

    def sentence(self, text: str, offset: int = 0) -> Sentence:
        """All of the text as one sentence, however long."""
        return next(self._split(text, offset, one=True), Sentence.from_words([]))

    def to_data(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """JSON and arrays for an archive. Four weights make one number: archives do not compress single bytes."""
        data = {
            "table": {token: list(words) for token, words in self.table.items()},
            "most_words": self.most_words,
            "silent_hyphen": self.silent_hyphen,
        }
        weights = {"boundaries": self.boundaries, "sentence_ends": self.sentence_ends}
        return data, {name: array.reshape(-1).view("<i4") for name, array in weights.items()}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Segmenter:
        """What `to_data` gave; ValueError or KeyError if it is damaged."""
        table, most_words, silent_hyphen = data["table"], data["most_words"], data["silent_hyphen"]
        if not isinstance(table, Mapping) or not all(map(_is_entry, table.items())):
            raise ValueError("the segmenter's table of multiword tokens is damaged")
        if type(most_words) is not int or not 1 <= most_words <= _MOST_WORDS or type(silent_hyphen) is not bool:
            raise ValueError("the segmenter's settings are damaged")
        return cls(
            _unpacked(arrays["boundaries"], (_BOUNDARIES, 3)),
            _unpacked(arrays["sentence_ends"], (_SENTENCES,)),
            {token: tuple(words) for token, words in table.items()},
            most_words,
            silent_hyphen,
        )

    def _split(self, text: str, offset: int, *, one: bool) -> Iterator[Sentence]:
        """The sentences of a text; with `one`, everything as one sentence."""
        weights = self.boundaries, self.sentence_ends, self.most_words
        starts, ends, gaps, scores, cuts = _analyse(_codes(text), _CLASS, _LOWERED, *weights)
        found = list(self._with_words(text, zip(starts.tolist(), ends.tolist(), strict=True), cuts.tolist()))
        lasts = [len(found) - 1] if found else []
        if not one:
            counts = np.array([len(token.words) for token in found], np.int64)
            lasts = np.flatnonzero(_sentence_ends(scores, gaps, counts, LONGEST)).tolist()
        spaces = (gaps > 0).tolist()
        first = 0
        for last in lasts:
            yield _as_sentence(found[first : last + 1], spaces[first : last + 1], offset)
            first = last + 1

    def _with_words(self, text: str, spans: Iterable[tuple[int, int]], cuts: Sequence[int]) -> Iterator[_Found]:
        """The words of every token; `cuts` are where words end inside tokens."""
        rest = iter((*cuts, len(text) + 1))
        cut = next(rest)
        for start, end in spans:
            form = text[start:end]
            if cut < end:
                words: list[str] = []
                ranges = []
                while start < end:
                    stop = min(cut, end)
                    begin = start + (self.silent_hyphen and bool(words) and text[start] == "-" and stop > start + 1)
                    words.append(text[begin:stop])
                    ranges.append((begin, stop))
                    start = stop
                    if cut < end:
                        cut = next(rest)
                yield _Found(form, tuple(words), tuple(ranges))
            elif words_of_token := self.table.get(form.lower()):
                yield _Found(form, _in_case(words_of_token, form), ((start, end),) * len(words_of_token))
            else:
                yield _Found(form, (form,), ((start, end),))


class _Found(NamedTuple):
    """A token of a text: its words, and where each stands."""

    form: str
    words: tuple[str, ...]
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _Multiword:
    """What training sentences say about multiword tokens, and whether they say where spaces are."""

    tokens: Counter[str]  # in lower case
    analyses: dict[str, Counter[tuple[str, ...]]]  # where the words are not pieces of the token
    most_words: int
    silent_hyphen: bool
    spaces_known: bool

    @classmethod
    def of(cls, sentences: Sequence[Sentence]) -> _Multiword:
        tokens: Counter[str] = Counter()
        analyses: dict[str, Counter[tuple[str, ...]]] = {}
        most_words, hyphens, spaces_known = 1, 0, False
        for sentence in sentences:
            for token in tokens_of(sentence):
                lower = token.form.lower()
                tokens[lower] += 1
                spaces_known |= not token.space_after
                if len(token.words) == 1:
                    continue
                cuts = token.cuts()
                if cuts is None:
                    words = tuple(word.lower() for word in token.words)
                    analyses.setdefault(lower, Counter())[words] += 1
                else:
                    most_words = max(most_words, len(token.words))
                    for cut, word in zip(cuts, token.words[1:], strict=True):
                        if token.form[cut] == "-":
                            hyphens += -1 if word.startswith("-") else 1
        return cls(tokens, analyses, min(most_words, _MOST_WORDS), hyphens > 0, spaces_known)

    def table(self) -> dict[str, tuple[str, ...]]:
        """The tokens that are mostly the same words."""
        table = {}
        for token, analyses in sorted(self.analyses.items()):
            words, count = analyses.most_common(1)[0]
            if 2 * count > self.tokens[token] and _is_entry((token, list(words))):
                table[token] = words
        return table


def _learn_boundaries(text: _Characters, ends: Longs, where: Longs, seed: int, passes: int) -> Floats:
    """Weights (slots, 3) from the positions `where`."""
    starts = np.zeros(len(ends), np.int64)
    ended = np.flatnonzero((ends > NOTHING) | (text.kind <= _BREAK))
    starts[ended[:-1] + 1] = ended[:-1] + 1
    starts = np.maximum.accumulate(starts)
    gold = np.minimum(ends, TOKEN)
    weights, total = np.zeros((2, _BOUNDARIES, 3))
    seen = 0
    for number in range(passes):
        order = np.random.default_rng((seed, number)).permutation(where)
        _train_boundaries(text, order, starts, gold, weights, total, seen, _MARGIN)
        seen += len(order)
    return weights - total / max(1, seen)


def _learn_sentence_ends(text: _Characters, ends: Longs, seed: int, passes: int) -> Floats:
    """Weights (slots,) from every token but the last of a paragraph."""
    tokens, gold, starts, states = _histories(text, ends)
    where = np.flatnonzero(tokens.gap != _BREAK)
    weights, total = np.zeros((2, _SENTENCES))
    seen = 0
    for number in range(passes):
        order = np.random.default_rng((seed, number)).permutation(where)
        _train_sentences(text, tokens, order, starts, states, gold, weights, total, seen, _MARGIN)
        seen += len(order)
    return weights - total / max(1, seen)


def _quantised(weights: Floats) -> Bytes:
    """The weights as bytes, the largest as 127."""
    largest = np.abs(weights).max()
    return np.rint(weights * (127 / largest if largest else 0.0)).astype(np.int8)


def _unpacked(packed: NDArray[Any], shape: tuple[int, ...]) -> Bytes:
    """Weights from an archive, checked: compiled code indexes them without looking."""
    if packed.dtype != np.dtype("<i4") or packed.ndim != 1 or 4 * packed.size != np.prod(shape):
        raise ValueError("the segmenter's weights do not fit")
    return np.ascontiguousarray(packed).view(np.int8).reshape(shape)


def _is_entry(entry: tuple[Any, Any]) -> bool:
    """Is it a token and its words, as the table has them?"""
    token, words = entry
    texts = [token, *words] if isinstance(words, list) else []
    return 2 < len(texts) <= _MOST_WORDS + 1 and all(isinstance(text, str) and text.split() == [text] for text in texts)


def _in_case(words: tuple[str, ...], form: str) -> tuple[str, ...]:
    """Words of the table in the case of the token: "Do" is "De" and "o", "DO" is "DE" and "O".

    >>> _in_case(("de", "o"), "Do"), _in_case(("de", "o"), "DO"), _in_case(("a", "a"), "À")
    (('De', 'o'), ('DE', 'O'), ('A', 'a'))
    """
    if form.isupper() and len(form) > 1:
        return tuple(word.upper() for word in words)
    if form[0].isupper():
        return (words[0][0].upper() + words[0][1:], *words[1:])
    return words


def _as_sentence(tokens: Sequence[_Found], spaces: Sequence[bool], offset: int) -> Sentence:
    """A sentence with its offsets; `spaces` are where white space, or the end, follows a token."""
    found = (Token(form, words, space) for (form, words, _), space in zip(tokens, spaces, strict=True))
    offsets = tuple((start + offset, end + offset) for token in tokens for start, end in token.ranges)
    return sentence_from_tokens(found, offsets)
