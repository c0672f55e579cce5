"""Where tokens end, and where words end inside them: a linear classifier of three answers at every character.

After a character that is followed by another, does nothing end, a word of a multiword token ("do|n't") or a token? The
three scores come from some sixty features: the characters and character classes on both sides, the stretch between
white space, the token so far, how the text goes on after the next white space. They are hashed into a table of weights.
Text is split from left to right, greedily. Training is the averaged large-margin perceptron over positions in random
order, with the right decisions to the left of each.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Floats, Ints
from headway.inference.jit import kernel, part
from headway.learning.averaging import averaged_weights
from headway.text.address_brackets import bracketed_in_addresses
from headway.text.address_queries import joined_by_queries
from headway.text.characters import (
    BREAK,
    MOST_FEATURES,
    PAD,
    Bytes,
    Characters,
    between,
    both,
    is_one_character,
    slot,
)
from headway.treebank.raw_text import NOTHING, TOKEN, WORD

BOUNDARY_SLOTS = 1 << 19  # for each of the three answers
FEWEST_SLOTS = 1 << 17  # of older models, a power of two: their slots are the lower bits
_MARGIN = 3.0


def learn_boundaries(text: Characters, ends: Ints, where: Ints, seed: int, passes: int) -> Floats:
    """Weights (BOUNDARY_SLOTS, 3) from the positions `where`; `ends` says what ends after each character."""
    starts = np.zeros(len(ends), np.int64)
    ended = np.flatnonzero((ends > NOTHING) | (text.kind <= BREAK))
    starts[ended[:-1] + 1] = ended[:-1] + 1
    starts = np.maximum.accumulate(starts)
    gold = np.minimum(ends, TOKEN)

    def run(order: Ints, weights: Floats, total: Floats, seen: int) -> int:
        return _train_pass(text, order, starts, gold, weights, total, seen)

    return averaged_weights(run, where, (BOUNDARY_SLOTS, 3), passes, seed)


@part
def boundaries_of(text: Characters, weights: Bytes, most_words: int) -> Ints:
    """What ends after each character: NOTHING, WORD or TOKEN. A token of more words than `most_words` is one word."""
    kind, mask = text.kind, len(weights) - 1
    slots = np.zeros(MOST_FEATURES, np.int64)
    ends = np.zeros(len(kind), np.int64)
    bracketed, queried = bracketed_in_addresses(kind), joined_by_queries(kind)
    token = start = int(np.int64(PAD))  # a mere constant would have Numba compile the features twice
    words = 1
    for i in range(PAD, len(kind) - PAD):
        if kind[i] <= BREAK:
            token = start = i + 1
            words = 1
            continue
        found = TOKEN
        if kind[i + 1] > BREAK and (bracketed[i] or queried[i] or is_one_character(kind, i)):
            found = NOTHING
        elif kind[i + 1] > BREAK:
            n = boundary_features(text, i, start, slots)
            nothing = word = whole = 0
            for f in range(n):
                nothing += weights[slots[f] & mask, 0]
                word += weights[slots[f] & mask, 1]
                whole += weights[slots[f] & mask, 2]
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
def boundary_features(text: Characters, i: int, start: int, slots: Ints) -> int:
    """Features of the boundary after character i of a word that starts at `start`; how many there are."""
    kind, raw, low, shape = text.kind, text.raw, text.low, text.shape
    e = i + 1
    head, tail, traits = text.first[i], text.last[i], text.traits[i]
    pair = between(shape, i, e + 1)
    before, rest = between(low, start, e), between(low, e, tail)
    stretch = between(low, head, e)
    rest_shape = between(shape, e, tail)
    # How the stretch ends, and the class of what follows the white space after it (a break, if nothing does).
    ending = both(rest_shape, kind[tail])
    goes_on = both(ending, kind[tail + 1])
    values = (
        0,
        between(raw, e - 1, e + 1),
        between(raw, e - 2, e + 2),
        between(raw, e - 3, e + 3),
        pair,
        between(shape, e - 2, e + 2),
        between(shape, e - 3, e + 3),
        between(shape, e - 4, e + 4),
        between(shape, e - 5, e + 5),
        between(shape, e - 6, e + 2),
        between(shape, e - 2, e + 6),
        between(shape, e - 9, e + 1),
        between(shape, e - 1, e + 9),
        both(between(low, head, tail), e - head),
        both(between(shape, head, tail), e - head),
        stretch,
        rest,
        both(between(shape, head, e), kind[e]),
        both(rest_shape, kind[i]),
        both(before, kind[e]),
        both(between(shape, start, e), kind[e]),
        both(before, rest),
        goes_on,
        both(goes_on, between(low, e - 3, e)),
        both(goes_on, stretch),
        both(goes_on, traits),
        both(ending, between(low, tail + 1, text.last[tail + 1])),
        both(traits, pair),
        both(traits, between(shape, i - 1, e + 2)),
        both(traits & 3, pair),
        both(traits & 3, kind[e]),
        both(traits & 3, ending),
        both(pair, min(e - head, 6)),
        both(pair, min(tail - e, 6)),
    )
    f = 0
    for value in values:
        slots[f] = slot(f, value) & (BOUNDARY_SLOTS - 1)
        f += 1
    for a in range(7):
        for b in range(7):
            if (a and b and a < 5 and b < 5) or (not a) != (not b):
                slots[f] = slot(f, between(low, e - a, e + b)) & (BOUNDARY_SLOTS - 1)
                f += 1
    return f


@kernel
def _train_pass(
    text: Characters,
    where: Ints,
    starts: Ints,
    gold: Ints,
    weights: Floats,
    total: Floats,
    seen: int,
) -> int:
    """One pass over the positions `where`; how many were wrong."""
    slots = np.zeros(MOST_FEATURES, np.int64)
    scores = np.zeros(3)
    wrong = 0
    for i in where:
        right = gold[i]
        n = boundary_features(text, i, starts[i], slots)
        scores[:] = _MARGIN
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
