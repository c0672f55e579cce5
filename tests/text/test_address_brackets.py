"""Brackets within addresses, against their definition tried at all pairs of characters."""

from __future__ import annotations

import random
import re

import numpy as np

from headway.text.address_brackets import bracketed_in_addresses
from headway.text.characters import characters_of


def found_in(text: str) -> set[int]:
    """The characters of the text that are kept together with the next."""
    characters = characters_of(text)
    held = np.flatnonzero(bracketed_in_addresses(characters.kind))
    return set(characters.place[held].tolist())


def defined_in(text: str) -> set[int]:
    """Likewise, by definition: brackets of an address that are each other's, with no other pair around them."""
    held: set[int] = set()
    place = 0
    while address := re.compile(r'(?<=[^\W\d_])://[^\s/]*([^\s"<>]*)').search(text, place):
        start = address.start(1)
        most = next((k for k in range(len(address[1])) if surplus(address[1][: k + 1]) < 0), len(address[1]))
        path = address[1][:most]
        place = start + most
        for opened, closed in ((a, b) for b in range(len(path)) for a in range(b)):
            if is_pair(path, opened, closed) and is_closed(path[:opened]):
                held |= set(range(start + opened - 1, start + closed))
                if after := re.match(r"[./?#&_]?(?=[^\W_])", text[start + closed + 1 :]):
                    held |= set(range(start + closed, start + closed + 1 + after.end()))
    return held


def is_pair(text: str, opened: int, closed: int) -> bool:
    return text[opened] == "(" and text[closed] == ")" and is_closed(text[opened + 1 : closed])


def is_closed(text: str) -> bool:
    """Whether each bracket has its other."""
    return surplus(text) == 0 == min(surplus(text[:k]) for k in range(len(text) + 1))


def surplus(text: str) -> int:
    return text.count("(") - text.count(")")


def test_brackets_by_their_definition() -> None:
    rng = random.Random(0)
    pieces = ["(", ")"] * 4 + ["a", "É", "1", "://", "/", ".", "_", "?", "#", " ", '"', "<"]
    some = 0
    for _ in range(2_000):
        text = "".join(rng.choices(pieces, k=12))
        for given in (text, f"http://a/{text}", f"(http://a/{text}) b"):
            assert found_in(given) == defined_in(given), given
            some += bool(defined_in(given))
    assert some > 500
