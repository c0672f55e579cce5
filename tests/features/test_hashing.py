"""The multipliers are those that saved models were trained with."""

from __future__ import annotations

from hashlib import blake2b

from hypothesis import given
from hypothesis import strategies as st

from headway.features.hashing import multiplier, multipliers, odd_number
from headway.features.templates import parse_templates


@given(st.text(st.characters(codec="utf-8")))
def test_an_odd_number_of_64_bits_by_the_text_alone(text: str) -> None:
    digest = blake2b(text.encode(), digest_size=8).digest()
    assert odd_number(text) == int.from_bytes(digest, "little") | 1


def test_numbers_that_must_not_change() -> None:
    assert odd_number("level 0") == 0xC18B8C7825FC86B1
    assert odd_number("") == 0xB4B2797457A0A6E5


def test_parts_of_a_template() -> None:
    template = parse_templates("h.form m.xpos | dir")[0]
    assert multiplier(template, "label") == odd_number(f"{template} label")
    assert multipliers(template, 3) == [odd_number(f"{template} {k}") for k in range(3)]
