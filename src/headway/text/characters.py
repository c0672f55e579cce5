"""Text as the segmenter's classifiers see it: classes of characters, white space squeezed, and hashes of any stretch.

Substrings are hashed in constant time from prefix sums h[i+1] = h[i] B + c (modulo 2^64), of the characters, of their
lower case and of their classes.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Ints
from headway.inference.jit import kernel, part

Codes = NDArray[np.uint32]
Bytes = NDArray[np.int8]  # weights of a classifier

IGNORE, AUTO, KEEP = range(3)  # what a single line end is: a space, a space whose place is LINE_END, or a break
LINE_END = -2
PAD = 12  # characters of nothing on both sides of a text
MOST_FEATURES = 80  # of a classifier
_REACH = 40  # characters of a stretch that count

# Classes of characters. Each mark and symbol of ASCII is a class of its own, its code; all below are less than 32.
LINE, SPACE, BREAK, UPPER, LOWER, LETTER, DIGIT, MARK = range(1, 9)
LETTERS, ALPHANUMERIC = (UPPER, LOWER, LETTER), (UPPER, LOWER, LETTER, DIGIT)
OPEN, CLOSE, OPEN_QUOTE, CLOSE_QUOTE = range(9, 13)
JOINER, FLAG = 25, 26  # what joins emoji to one, and a letter of a pair that is a flag
_SPECIAL = {"\u200d": JOINER}
_SPECIAL |= dict.fromkeys(map(chr, range(0x1F3FB, 0x1F400)), MARK)  # tones of skin
_SPECIAL |= dict.fromkeys(map(chr, range(0xE0020, 0xE0080)), MARK)  # what says which region a flag is of
_SPECIAL |= dict.fromkeys(map(chr, range(0x1F1E6, 0x1F200)), FLAG)
_CATEGORIES = {
    "Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "Lm": LETTER, "Lo": LETTER, "Nd": DIGIT, "Nl": DIGIT, "No": DIGIT,
    "Mn": MARK, "Mc": MARK, "Me": MARK, "Ps": OPEN, "Pe": CLOSE, "Pi": OPEN_QUOTE, "Pf": CLOSE_QUOTE,
    "Pc": 13, "Pd": 14, "Po": 15, "Sc": 16, "Sk": 17, "Sm": 18, "So": 19, "Cf": 20, "Cc": 21, "Cs": 22, "Co": 23,
    "Cn": 24,
}  # fmt: skip
_DOT, _SLASH, _AT = map(ord, "./@")

_BASE = 0x1E3779B97F4A7C15
_MIX = 0x2F58476D1CE4E5B9
_STEP = 0x14D049BB133111EB

_POWERS = np.array([pow(_BASE, k, 1 << 64) for k in range(_REACH + 2 * PAD)], np.uint64).view(np.int64)


class Characters(NamedTuple):
    """A text in which white space is one SPACE, with PAD breaks around every paragraph: none sees another's text."""

    place: Ints  # of each character in the text, -1 for white space, LINE_END for that with a line end in it
    kind: Ints  # its class
    raw: Ints  # prefix hashes of the characters,
    low: Ints  # in lower case,
    shape: Ints  # of their classes
    first: Ints  # where the stretch between white space around it starts,
    last: Ints  # and ends
    traits: Ints  # what that stretch has


def class_of(character: str) -> int:
    """White space by `str.isspace`, everything else by its Unicode category."""
    if character in "\n\r\u2029":
        return LINE
    if character.isspace():
        return SPACE
    if character in _SPECIAL:
        return _SPECIAL[character]
    category = unicodedata.category(character)
    if character < "\x7f" and category[0] in "PS":
        return ord(character)
    return _CATEGORIES[category]


@part
def is_one_character(kind: Ints, i: int) -> bool:
    """Do characters i and i + 1 belong together, whatever they mean: a letter and its accent, parts of one emoji?"""
    if kind[i + 1] in (MARK, JOINER) or kind[i] == JOINER:
        return True
    if kind[i] != FLAG or kind[i + 1] != FLAG:
        return False
    before = i
    while kind[before - 1] == FLAG:
        before -= 1
    return (i - before) % 2 == 0


def coded(text: str) -> tuple[Codes, Codes]:
    """The code of each character, and its entry: its class and, from the ninth bit on, the code of its lower case."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    pages = codes >> 8
    used = np.bincount(pages, minlength=1) > 0
    used[0] = True  # nearly every text has characters of this page, and the empty text needs some page
    table = np.concatenate([_page(number) for number in np.flatnonzero(used).tolist()])
    return codes, table[256 * (np.cumsum(used) - 1)[pages] + (codes & 255)]


@cache
def _page(number: int) -> Codes:
    """The entries of 256 characters in a row; a text takes its characters from few of these pages."""
    characters = [chr(code) for code in range(256 * number, 256 * (number + 1))]
    page = np.array([class_of(c) | ord(c.lower() if len(c.lower()) == 1 else c) << 8 for c in characters], np.uint32)
    page.setflags(write=False)
    return page


def characters_of(text: str, newlines: int = IGNORE) -> Characters:
    """The text, squeezed."""
    return _squeeze(*coded(text), newlines)


@kernel
def _squeeze(codes: Codes, entries: Codes, newlines: int) -> Characters:
    return squeezed(codes, entries, newlines)


@part
def squeezed(codes: Codes, entries: Codes, newlines: int) -> Characters:
    """White space with two line ends in it (one, to keep them) is a break, any other a space; none at start and end."""
    most = 0 if newlines == KEEP else 1  # line ends of a space
    n = len(codes)
    size = n + 2 * PAD
    for i in range(n):
        if entries[i] & 255 == LINE:
            size += PAD
    place, kind = np.full(size, -1, np.int64), np.full(size, BREAK, np.int64)
    raw, low, shape = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
    end = PAD
    i = 0
    while i < n and entries[i] & 255 <= SPACE:
        i += 1
    while i < n:
        if entries[i] & 255 > SPACE:
            place[end], kind[end] = i, entries[i] & 255
            end += 1
            i += 1
            continue
        lines = 0
        while i < n and entries[i] & 255 <= SPACE:
            c = codes[i]
            if c == 10 or (c == 13 and not (i + 1 < n and codes[i + 1] == 10)):
                lines += 1
            elif c == 0x2029:
                lines += 2
            i += 1
        if i == n:
            break
        if lines > most:
            end += PAD
        else:
            kind[end] = SPACE
            if lines and newlines == AUTO:
                place[end] = LINE_END
            end += 1
    size = end + PAD
    for k in range(size):
        p = place[k]
        code, lower = (np.int64(codes[p]), np.int64(entries[p] >> 8)) if p >= 0 else (kind[k], kind[k])
        raw[k + 1] = raw[k] * _BASE + code
        low[k + 1] = low[k] * _BASE + lower
        shape[k + 1] = shape[k] * _BASE + kind[k]
    first, last, traits = _stretches(kind[:size])
    return Characters(
        place[:size], kind[:size], raw[: size + 1], low[: size + 1], shape[: size + 1], first, last, traits
    )


@part
def _stretches(kind: Ints) -> tuple[Ints, Ints, Ints]:
    """Start and end of the stretch between white space that each character is in, and its traits as one number."""
    size = len(kind)
    first, last, traits = np.arange(size), np.arange(size), np.zeros(size, np.int64)
    k = 0
    while k < size:
        stop = k
        at = slash = dots = digit = letters = 0
        while kind[stop] > BREAK:
            at |= kind[stop] == _AT
            slash |= kind[stop] == _SLASH and kind[stop + 1] == _SLASH
            dots += kind[stop] == _DOT
            digit |= kind[stop] == DIGIT
            letters |= kind[stop] in LETTERS
            stop += 1
        trait = at + 2 * slash + 4 * min(dots, 3) + 16 * digit + 32 * letters + 64 * min(stop - k, 3)
        for j in range(k, stop):
            first[j], last[j], traits[j] = k, stop, trait
        k = stop + 1
    return first, last, traits


@part
def between(prefix: Ints, start: int, end: int) -> int:
    """The hash of a stretch, of its first _REACH characters if it is longer."""
    length = min(end - start, _REACH)
    return int(prefix[start + length] - prefix[start] * _POWERS[length])


@part
def both(one: int, other: int) -> int:
    """One hash of two."""
    return (one ^ (one >> 29)) * _MIX + other


@part
def slot(template: int, value: int) -> int:
    """A feature as a number of 23 bits; the lowest of them say where its weight is."""
    mixed = (value ^ (value >> 32)) * _MIX + template * _STEP
    mixed = (mixed ^ (mixed >> 29)) * _STEP
    return (mixed >> 40) & 0x7FFFFF
