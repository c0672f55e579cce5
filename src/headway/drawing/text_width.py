"""The approximate width of a text without a font: the advance widths of Helvetica, shared by Arial and Liberation Sans.

Accented letters are as wide as plain ones. East Asian wide characters are as wide as they are high, combining
marks take no room, and all others count as an average capital or small letter. `columns` gives the width in a terminal,
and `counted` the words for a number of things.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_WIDTHS = {  # in thousandths of the size
    222: "'`ijl",
    260: "|",
    278: " !,./:;I[\\]ft",
    333: "()-r{}",
    355: '"',
    389: "*",
    469: "^",
    500: "Jcksvxyz",
    556: "#$0123456789?L_abdeghnopqu",
    584: "+<=>~",
    611: "FTZ",
    667: "&ABEKPSVXY",
    722: "CDHNRUw",
    778: "GOQ",
    833: "Mm",
    889: "%",
    944: "W",
    1000: "—…→",
    1015: "@",
}
_WIDTH = {character: width for width, characters in _WIDTHS.items() for character in characters}
_CAPITAL, _OTHER, _WIDE = 690, 556, 1000
_COMBINING = ("Mn", "Me", "Cf")


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The width of a text in a font of this size, in pixels.

    >>> text_width("dog", 10), text_width("犬", 10), text_width("e\u0301", 10) == text_width("\u00e9", 10)
    (16.68, 10.0, True)
    """
    return sum(map(_advance, text)) * size / 1000 * (1.07 if bold else 1.0)


@lru_cache(maxsize=1 << 14)
def _advance(character: str) -> int:
    if character in _WIDTH:
        return _WIDTH[character]
    category = unicodedata.category(character)
    if category in _COMBINING:
        return 0
    if unicodedata.east_asian_width(character) in "WF":
        return _WIDE
    base = unicodedata.normalize("NFD", character)[0]
    if base in _WIDTH:
        return _WIDTH[base]
    return _CAPITAL if category == "Lu" else _OTHER


def columns(text: str) -> int:
    """The number of columns that a text takes in a terminal.

    >>> columns("dog"), columns("犬"), columns("e\u0301")
    (3, 2, 1)
    """
    return sum(map(_columns, text))


@lru_cache(maxsize=1 << 14)
def _columns(character: str) -> int:
    if unicodedata.category(character) in _COMBINING:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, most: int, ellipsis: str = "…") -> str:
    """The text, or as much of it as fits with an ellipsis into `most` columns.

    >>> cut("hippopotamus", 6), cut("hippo", 6)
    ('hippo…', 'hippo')
    """
    if columns(text) <= most:
        return text
    kept, room = "", most - columns(ellipsis)
    for character in text:
        room -= _columns(character)
        if room < 0:
            break
        kept += character
    return kept + ellipsis


def counted(count: int, thing: str) -> str:
    """
    >>> counted(1, "mention"), counted(1200, "mention")
    ('1 mention', '1,200 mentions')
    """
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
