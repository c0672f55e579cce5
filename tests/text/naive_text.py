"""The naive twin of the segmenter: features written down from the characters, without prefix sums."""

from __future__ import annotations

import itertools
from functools import reduce
from typing import Any

from hypothesis import strategies as st

from headway.text import characters
from headway.text.boundaries import BOUNDARY_SLOTS
from headway.text.characters import (
    BREAK,
    DIGIT,
    LETTER,
    LOWER,
    MOST_FEATURES,
    SPACE,
    UPPER,
    class_of,
)
from headway.text.sentence_ends import SENTENCE_SLOTS

# Everything that may be met, and often what the features look at.
texts = st.text(st.one_of(st.sampled_from("aAbB1.,'\"-()@/: \n\u00a0\u2029\u200d"), st.characters()), max_size=60)

MASK = (1 << 64) - 1


def signed(number: int) -> int:
    number &= MASK
    return number - (1 << 64) if number >> 63 else number


def hashed(values: list[int]) -> int:
    total = 0
    for value in values[: characters._REACH]:
        total = total * characters._BASE + value
    return signed(total)


def both(one: int, other: int) -> int:
    return signed((one ^ (one >> 29)) * characters._MIX + other)


def slot(template: int, value: int, size: int) -> int:
    mixed = signed((value ^ (value >> 32)) * characters._MIX + template * characters._STEP)
    return (signed((mixed ^ (mixed >> 29)) * characters._STEP) >> 40) % size


class NaiveText:
    """One paragraph, its white space squeezed; outside it there are breaks without end."""

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())
        self.line_ends = {i for i, character in enumerate(text) if character == "\n"}  # if it was squeezed already

    def kind(self, i: int) -> int:
        if not 0 <= i < len(self.text):
            return BREAK
        return SPACE if self.text[i] == " " else class_of(self.text[i])

    def is_space(self, i: int) -> bool:
        return self.kind(i) in (SPACE, BREAK)

    def raw(self, start: int, end: int) -> int:
        return hashed([self.kind(i) if self.is_space(i) else ord(self.text[i]) for i in range(start, end)])

    def low(self, start: int, end: int) -> int:
        return hashed([self.kind(i) if self.is_space(i) else self._lower(i) for i in range(start, end)])

    def shape(self, start: int, end: int) -> int:
        return hashed([self.kind(i) for i in range(start, end)])

    def end_of_stretch(self, i: int) -> int:
        while not self.is_space(i):
            i += 1
        return i

    def _lower(self, i: int) -> int:
        lower = self.text[i].lower()
        return ord(lower if len(lower) == 1 else self.text[i])

    def boundary_features(self, i: int, start: int) -> list[int]:
        e, kind, raw, low, shape = i + 1, self.kind, self.raw, self.low, self.shape
        head, tail = i, self.end_of_stretch(i)
        while not self.is_space(head - 1):
            head -= 1
        stretch = self.text[head:tail]
        letters = [c for c in stretch if class_of(c) in (UPPER, LOWER, LETTER)]
        digits = [c for c in stretch if class_of(c) == DIGIT]
        web = ("@" in stretch) + 2 * ("//" in stretch)
        traits = web + 4 * min(stretch.count("."), 3) + 16 * bool(digits) + 32 * bool(letters)
        traits += 64 * min(len(stretch), 3)
        pair, rest = shape(i, i + 2), shape(e, tail)
        ending = both(rest, kind(tail))
        goes_on = both(ending, kind(tail + 1))
        next_stretch = low(tail + 1, self.end_of_stretch(tail + 1))
        values = [0, *(raw(e - k, e + k) for k in (1, 2, 3)), *(shape(e - k, e + k) for k in (1, 2, 3, 4, 5))]
        values += [shape(e - a, e + b) for a, b in ((6, 2), (2, 6), (9, 1), (1, 9))]
        values += [both(low(head, tail), e - head), both(shape(head, tail), e - head), low(head, e), low(e, tail)]
        values += [both(shape(head, e), kind(e)), both(rest, kind(i)), both(low(start, e), kind(e))]
        values += [both(shape(start, e), kind(e)), both(low(start, e), low(e, tail)), goes_on]
        values += [both(goes_on, other) for other in (low(e - 3, e), low(head, e), traits)]
        values += [both(ending, next_stretch), both(traits, pair), both(traits, shape(i - 1, e + 2))]
        values += [both(web, other) for other in (pair, kind(e), ending)]
        values += [both(pair, min(e - head, 6)), both(pair, min(tail - e, 6))]
        for a, b in itertools.product(range(7), range(7)):
            if (0 < a < 5 and 0 < b < 5) or (a == 0) != (b == 0):
                values.append(low(e - a, e + b))
        return [slot(f, value, BOUNDARY_SLOTS) for f, value in enumerate(values)]

    def spans(self) -> list[tuple[int, int]]:
        """Every character that is not white space as a token."""
        return [(i, i + 1) for i in range(len(self.text)) if not self.is_space(i)]

    def sentence_features(self, spans: list[tuple[int, int]], t: int, start: int, state: int) -> list[int]:
        def seen(k: int, value: Any) -> int:
            return -1 if k < 0 else -2 if k >= len(spans) else value(*spans[k])

        outline, bucket = self._outline, self._bucket

        def gap(_: int, b: int) -> int:
            return self.kind(b) if self.is_space(b) else 0

        def capitals(ks: range) -> int:
            return len(list(itertools.takewhile(lambda k: self.kind(spans[k][0]) == UPPER, ks)))

        (v2, v1, w0, w1, w2) = (seen(t + k, self.low) for k in (-2, -1, 0, 1, 2))
        (r2, r1, s0, s1, s2, s3) = (seen(t + k, outline) for k in (-2, -1, 0, 1, 2, 3))
        f1, f2 = seen(t + 1, self.raw), seen(t + 2, self.raw)
        after, before = seen(t, gap), seen(t - 1, gap)
        length, left = bucket(t + 1 - start), bucket(len(spans) - t - 1)
        opening = [self.kind(a) for a, _ in spans]
        upper, lower = opening.count(UPPER), opening.count(LOWER)
        stops = sum(self.text[b - 1] in ".!?" and self.is_space(b) for _, b in spans)
        share = upper / (upper + lower) if upper else -1
        mood = 4 * sum((share > 0, share >= 1 / 3, share >= 3 / 4)) + min(stops, 3)
        ahead = capitals(range(t + 1, min(t + 5, len(spans))))
        behind = capitals(range(t, max(start - 1, t - 4), -1))
        first, first_shape = self.low(*spans[start]), outline(*spans[start])
        same, same_shape = int(first == w1), int(first_shape == s1)
        s01, w0s1 = both(both(s0, s1), after), both(both(w0, s1), after)
        run = both(ahead, behind)
        ending = self.low(spans[t][1] - 3, spans[t][1])
        values = [after, both(w0, after), s01, both(w0, w1), w0s1, both(w0, v1), both(w0s1, v1), both(w0s1, r1)]
        values += [both(w0s1, s2), both(both(w0s1, s2), r1), w1, f1, both(f1, s0), both(f1, w0s1), both(f1, f2)]
        values += [both(both(f1, f2), s0), both(w1, w2), both(s01, s2), both(s01, r1), both(both(s01, r1), s2)]
        values += [both(both(both(s01, r1), s2), r2), both(both(s01, s2), s3), both(s01, v1), both(both(v2, v1), w0)]
        values += [both(w0s1, before), both(both(w0s1, before), r1), both(s01, length), both(w0s1, length)]
        values += [both(s01, left), both(w0s1, left), both(s01, mood), both(w0s1, mood), both(both(s01, mood), length)]
        values += [both(w0s1, state), both(s01, state), both(both(first, w0s1), 1), both(first_shape, w0s1)]
        values += [both(first_shape, s01), both(both(first, length), s01), both(ending, s1), both(f1, mood)]
        values += [both(both(f1, after), length), both(both(w0s1, both(r1, v2)), 2), both(w2, s01)]
        values += [both(both(same, s01), 3), both(both(same, length), w1), both(both(same_shape, s01), 4)]
        values += [both(both(same_shape, length), s01), both(both(first_shape, s1), length), both(run, s01)]
        values += [both(ahead, w0s1), both(run, length)]
        if spans[t][1] in self.line_ends:
            values += self._line_features(spans, t, start, mood)
        return [slot(MOST_FEATURES + f, value, SENTENCE_SLOTS) for f, value in enumerate(values)]

    def _line_features(self, spans: list[tuple[int, int]], t: int, start: int, mood: int) -> list[int]:
        edges = [-1, *sorted(self.line_ends), len(self.text)]
        lines = [range(a + 1, b) for a, b in itertools.pairwise(edges)]
        here = next(k for k, line in enumerate(lines) if spans[t][0] in line)
        this, following = lines[here], lines[here + 1]
        first = next(k for k, (a, _) in enumerate(spans) if a in this)
        second = t + 1
        word = self.text[following.start : following.stop].split()[0]
        left = max(map(len, lines)) - len(this) - 1 - len(word)
        room = sum(left >= limit for limit in (0, 4, 10, 20, 40)) - 1
        wide = min(max(map(len, lines)) // 15, 9)
        before = min(len(lines[here - 1]) // 15, 6) if here else -1
        k0, k1 = self.kind(spans[t][1] - 1), self.kind(spans[second][0])
        k01, room_wide, whole = both(k0, k1), both(room, wide), int(first == start)
        one, other = self._outline(*spans[first]), self._outline(*spans[second])
        low = {k: self.low(*spans[k]) for k in (t, first, second)}
        widths = both(both(min(len(this) // 15, 6), min(len(following) // 15, 6)), before)
        deeper, same, last = 0, int(one == other), int(here + 2 == len(lines))
        shapes, k01_room = both(one, other), [k01, room]
        same_word = int(low[first] == low[second])
        values = [room, room_wide, both(room, k01), both(room_wide, k01), both(room_wide, k0), both(room_wide, k1)]
        values += [both(room_wide, whole), both(both(room, k01), whole), both(low[t], room), both(low[second], room)]
        values += [both(low[second], k0), both(shapes, room), both(shapes, k0), reduce(both, [same, *k01_room])]
        values += [reduce(both, [same_word, k1, room]), widths, both(widths, room), both(widths, k01)]
        values += [both(deeper, k01), both(deeper, room), reduce(both, [deeper, same, k1])]
        values += [reduce(both, [self._bucket(t + 1 - start), room, k01])]
        values += [reduce(both, [each, room, k01]) for each in (self._bucket(t + 1 - first), last, mood)]
        return values

    def _outline(self, a: int, b: int) -> int:
        second = self.kind(a + 1) if b > a + 1 else 0
        return ((self.kind(a) * 128 + second) * 128 + self.kind(b - 1)) * 8 + min(b - a, 4)

    @staticmethod
    def _bucket(n: int) -> int:
        return n if n < 6 else 6 + sum(n >= limit for limit in (8, 12, 18, 30, 50))
