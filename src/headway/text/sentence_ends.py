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
    LINE,
    LINE_END,
    LOWER,
    MOST_FEATURES,
    OPEN,
    OPEN_QUOTE,
    PAD,
    SPACE,
    UPPER,
    Bytes,
    Characters,
    between,
    both,
    slot,
)
from headway.treebank.raw_text import SENTENCE, TOKEN

SENTENCE_SLOTS = 1 << 20
_MARGIN = 10.0
_STOPS = tuple(map(ord, ".!?"))
_QUOTE, _ROUND, _END_ROUND, _SQUARE, _END_SQUARE = map(ord, '"()[]')


# Of the tokens around (v2 v1 w0 | w1 w2 w3): lower case v and w, shapes r and s, forms e and f; the gap between them
# and the one before. `begin` is the first word of the sentence; has the next the `same` form, is its shape `alike`?
_ATOMS = (
    "v2 v1 w0 w1 w2 w3 r2 r1 s0 s1 s2 s3 e2 e1 f0 f1 f2 f3"
    " gap g1 length left mood state begin begin_shape ending same alike ahead behind s01 w0s1 r1v2 1 2 3 4"
)
# Of a line end: the room that the line leaves, the widest line, the characters k0 | k1 around; whether the line is the
# sentence so far, the first tokens of this line and the next, the widths of three lines.
_LINE_ATOMS = "room widest k0 k1 k01 whole firsts alike_lines same_first widths indent words last"
_PLAIN = (
    "gap; w0 gap; s01; w0 w1; w0s1; w0 v1; w0s1 v1; w0s1 r1; w0s1 s2; w0s1 s2 r1; w1; f1; f1 s0; f1 w0s1; f1 f2;"
    "f1 f2 s0; w1 w2; s01 s2; s01 r1; s01 r1 s2; s01 r1 s2 r2; s01 s2 s3; s01 v1; v2 v1 w0; w0s1 g1; w0s1 g1 r1;"
    "s01 length; w0s1 length; s01 left; w0s1 left; s01 mood; w0s1 mood; s01 mood length; w0s1 state; s01 state;"
    "begin w0s1 1; begin_shape w0s1; begin_shape s01; begin length s01; ending s1; f1 mood; f1 gap length;"
    "w0s1 r1v2 2; w2 s01; same s01 3; same length w1; alike s01 4; alike length s01; begin_shape s1 length;"
    "ahead behind s01; ahead w0s1; ahead behind length"
)
_OF_LINES = (
    "room; room widest; room k01; room widest k01; room widest k0; room widest k1; room widest whole; room k01 whole;"
    "w0 room; w1 room; w1 k0; firsts room; firsts k0; alike_lines k01 room; same_first k1 room; widths; widths room;"
    "widths k01; indent k01; indent room; indent alike_lines k1; length room k01; words room k01; last room k01;"
    "mood room k01"
)
_FIRST_OF_LINE = len(_ATOMS.split())
_MOST_ATOMS = _FIRST_OF_LINE + len(_LINE_ATOMS.split())
_PLAIN_TEMPLATES = len(_PLAIN.split(";"))
_MOST_COMBINED = 4


def _table(templates: str) -> Ints:
    """A row a template: the places of its atoms, then -1."""
    names = f"{_ATOMS} {_LINE_ATOMS}".split()
    rows = [[names.index(name) for name in template.split()] for template in templates.split(";")]
    return np.array([row + [-1] * (_MOST_COMBINED - len(row)) for row in rows])


_TEMPLATES = _table(f"{_PLAIN};{_OF_LINES}")
_BUCKETS = np.array([n if n < 6 else 6 + sum(n >= edge for edge in (8, 12, 18, 30, 50)) for n in range(51)])


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
    line: Ints  # first token of its line
    line_stop: Ints  # and the one after its last
    widest: Ints  # characters of the longest line of its paragraph


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
    line, line_stop, widest = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    t = 0
    begin = PAD
    for i in range(PAD, len(kind) - PAD):
        if kind[i] <= BREAK:
            begin = i + 1
        if ends[i] < TOKEN:
            continue
        e = i + 1
        start[t], end[t] = begin, e
        gap[t] = LINE if text.place[e] == LINE_END else kind[e] if kind[e] <= BREAK else 0
        form[t], low[t] = between(text.raw, begin, e), between(text.low, begin, e)
        second = kind[begin + 1] if e > begin + 1 else 0
        shape[t] = ((kind[begin] * 128 + second) * 128 + kind[i]) * 8 + min(e - begin, 4)
        begin = e
        t += 1
    t = 0
    while t < count:
        stop = t
        capitals = words = stops = wide = 0
        head = t
        while True:
            opening, closing = kind[start[stop]], kind[end[stop] - 1]
            capitals += opening == UPPER
            words += opening in (UPPER, LOWER)
            stops += closing in _STOPS and gap[stop] > 0
            stop += 1
            if gap[stop - 1] in (LINE, BREAK):
                line[head:stop], line_stop[head:stop] = head, stop
                wide = max(wide, _columns(text, start[head], end[stop - 1]))
                head = stop
            if gap[stop - 1] == BREAK:
                break
        level = 0 if capitals == 0 else 1 if capitals * 3 < words else 2 if capitals * 4 < words * 3 else 3
        for j in range(t, stop):
            first[j], last[j], mood[j], widest[j] = t, stop, level * 4 + min(stops, 3), wide
        t = stop
    return Tokens(start, end, gap, form, low, shape, first, last, mood, line, line_stop, widest)


@part
def _columns(text: Characters, start: int, end: int) -> int:
    """How wide the text from `start` to `end` stands."""
    return int(text.place[end - 1] + 1 - text.place[start])


@part
def sentence_features(text: Characters, tokens: Tokens, t: int, start: int, state: int, slots: Ints) -> int:
    """Features of a sentence end after token t, when the sentence starts with token `start`; how many there are.

    Atoms are combined as a table says, not in code: loops compile in a fraction of the time.
    """
    atoms = np.zeros(_MOST_ATOMS, np.int64)
    for j in range(6):
        k = t - 2 + j
        outside = (
            -1 if k < tokens.first[t] else -2 if k >= tokens.last[t] else 0
        )  # another paragraph's are out of sight
        atoms[j] = outside if outside else tokens.low[k]
        atoms[6 + j] = outside if outside else tokens.shape[k]
        atoms[12 + j] = outside if outside else tokens.form[k]
    v2, w0, w1 = atoms[0], atoms[2], atoms[3]
    r1, s0, s1 = atoms[7], atoms[8], atoms[9]
    gap = SPACE if tokens.gap[t] == LINE else tokens.gap[t]  # what a line end adds comes last
    g1 = -1 if t == tokens.first[t] else SPACE if tokens.gap[t - 1] else 0
    ahead = behind = 0  # capitalised words in a row
    while ahead < 4 and t + 1 + ahead < tokens.last[t] and text.kind[tokens.start[t + 1 + ahead]] == UPPER:
        ahead += 1
    while behind < 4 and t - behind >= start and text.kind[tokens.start[t - behind]] == UPPER:
        behind += 1
    values = (
        gap,
        g1,
        _BUCKETS[min(t + 1 - start, 50)],
        _BUCKETS[min(tokens.last[t] - t - 1, 50)],
        tokens.mood[t],
        state,
        tokens.low[start],
        tokens.shape[start],
        between(text.low, tokens.end[t] - 3, tokens.end[t]),
        int(tokens.low[start] == w1),
        int(tokens.shape[start] == s1),
        ahead,
        behind,
        both(both(s0, s1), gap),
        both(both(w0, s1), gap),
        both(r1, v2),
        1,
        2,
        3,
        4,
    )
    for j, value in enumerate(values):
        atoms[18 + j] = value
    count = _PLAIN_TEMPLATES
    if tokens.gap[t] == LINE:
        count = len(_TEMPLATES)
        _set_line_atoms(text, tokens, t, start, atoms)
    for f in range(count):
        value = atoms[_TEMPLATES[f, 0]]
        for c in range(1, _MOST_COMBINED):
            if _TEMPLATES[f, c] >= 0:
                value = both(value, atoms[_TEMPLATES[f, c]])
        slots[f] = slot(MOST_FEATURES + f, value) & (SENTENCE_SLOTS - 1)
    return count


@part
def _set_line_atoms(text: Characters, tokens: Tokens, t: int, start: int, atoms: Ints) -> None:
    """What there is to see of a line end after token t.

    The strongest sign of a wrapped line is that the next word had no room: `room` is what the longest line leaves.
    """
    here, there = tokens.line[t], t + 1
    width = _columns(text, tokens.start[here], tokens.end[t])
    ahead = _columns(text, tokens.start[there], tokens.end[tokens.line_stop[there] - 1])
    before = -15
    if here > tokens.first[t]:
        before = _columns(text, tokens.start[tokens.line[here - 1]], tokens.end[here - 1])
    left = tokens.widest[t] - width - 1 - (text.last[tokens.start[there]] - tokens.start[there])
    room = -1 if left < 0 else 0 if left < 4 else 1 if left < 10 else 2 if left < 20 else 3 if left < 40 else 4
    k0, k1 = text.kind[tokens.end[t] - 1], text.kind[tokens.start[there]]
    values = (
        room,
        min(tokens.widest[t] // 15, 9),
        k0,
        k1,
        both(k0, k1),
        int(start == here),  # is the sentence so far this line?
        both(tokens.shape[here], tokens.shape[there]),
        int(tokens.shape[here] == tokens.shape[there]),
        int(tokens.low[here] == tokens.low[there]),
        both(both(min(width // 15, 6), min(ahead // 15, 6)), min(before // 15, 6)),
        min((text.place[tokens.start[there]] - text.place[tokens.end[t] - 1] - 1) // 3, 3),  # how deep it is indented
        _BUCKETS[min(t + 1 - here, 50)],
        int(tokens.line_stop[there] == tokens.last[t]),
    )
    for j, value in enumerate(values):
        atoms[_FIRST_OF_LINE + j] = value


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
