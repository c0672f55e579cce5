"""Odd 64-bit numbers drawn from text, the multipliers that make the keys of hashed features.

They depend on nothing but the text, so that adding or dropping a template leaves the keys of the others alone, and a
saved model needs no table of them. Being odd, they lose no bit of what they multiply, modulo 2^64.
"""

from __future__ import annotations

from hashlib import blake2b


def odd_number(text: str) -> int:
    """An odd 64-bit number that depends on the text alone."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") | 1


def multiplier(template: object, name: int | str) -> int:
    """The multiplier of one part of a template, which is known by its text."""
    return odd_number(f"{template} {name}")


def multipliers(template: object, count: int) -> list[int]:
    """For direction and distance, two for what fires once per value, then one per atom."""
    return [multiplier(template, k) for k in range(count)]
