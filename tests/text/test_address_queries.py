"""Queries of addresses without a scheme, against their definition as a pattern."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from headway.text.address_queries import joined_by_queries
from headway.text.characters import characters_of

ADDRESS = re.compile(
    r"(?<![A-Za-z0-9/._~%+,;:@=&-])"
    r"[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*(?<=[A-Za-z])"  # the host
    r"(?:/[A-Za-z0-9/._~%+,;:@=&-]*)?"
    r"\?[A-Za-z0-9._%-]+="
    r"[^\s\"'<>()\[\]{}]*"
)


def found_in(text: str) -> set[int]:
    """The characters of the text that are kept together with the next."""
    characters = characters_of(text)
    return set(characters.place[np.flatnonzero(joined_by_queries(characters.kind))].tolist())


def defined_in(text: str) -> set[int]:
    held: set[int] = set()
    for address in ADDRESS.finditer(text):
        if "." in re.split("[/?]", address[0])[0]:
            equals = address[0].index("=", address[0].index("?"))
            last = max(
                k for k, character in enumerate(address[0]) if k == equals or (k > equals and character.isalnum())
            )
            held |= set(range(address.start(), address.start() + last))
    return held


def test_queries_by_their_definition() -> None:
    rng = random.Random(0)
    pieces = ["a", "B7", ".", "/", "-", "://", "&", "#", " ", '"', ")", ",", ":"]
    some = 0
    for _ in range(3_000):
        first, second, third = ("".join(rng.choices(pieces, k=rng.randint(0, 4))) for _ in range(3))
        for text in (
            f"{first}?{second}={third}",
            f"a.b{first}?v={third} {second}",
            f"({first}a.b/{second}?v={third}&w=1). {third}?x=y",
        ):
            assert found_in(text) == defined_in(text), text
            some += bool(defined_in(text))
    assert some > 500


@pytest.mark.parametrize("text", ["What?", "Who? x=y", "I said no.Why?=", "http://a.org/b?c=d", "he/she?a=b"])
def test_nothing_else_is_held(text: str) -> None:
    assert found_in(text) == set()
