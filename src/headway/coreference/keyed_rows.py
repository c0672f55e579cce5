"""Templates over rows of numbers, compiled into hashed keys: what the features of arcs and those of spans share.

A row x has a number for each of some named atoms; a template is a few of the names. Its key is the sum of odd
multipliers times x + 1, modulo 2^64. The upper bits of the key are the place of its weight in the template's block, as
in `headway.features`. Firing T templates of a few atoms on a row is O(T).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headway.arrays import Ints
from headway.errors import TemplateError
from headway.features.blocks import Keys, Weights, check_bits, offsets_and_drops
from headway.features.hashing import multiplier
from headway.inference.jit import ordered_part, part

Template = tuple[str, ...]


class CompiledTemplates(NamedTuple):
    """The templates as arrays; the atoms of template t are start[t] to start[t+1]."""

    start: Ints  # (T+1,)
    place: Ints  # in the row
    multiplier: Keys
    offset: Ints  # (T,) where the block begins
    drop: Keys  # (T,) 64 - bits: what is shifted out of the key


def compile_templates(templates: Sequence[Template], names: Sequence[str], bits: Sequence[int]) -> CompiledTemplates:
    """Templates over rows with these names, each with a block of 2^bits weights."""
    check_bits(bits)
    place = {name: i for i, name in enumerate(names)}
    if len(bits) != len(templates) or any(atom not in place for template in templates for atom in template):
        raise TemplateError("the templates of mentions or of their pairs are damaged")
    return CompiledTemplates(
        np.concatenate(([0], np.cumsum([len(atoms) for atoms in templates]))).astype(np.int64),
        np.array([place[atom] for atoms in templates for atom in atoms], np.int64),
        np.array([multiplier(" ".join(atoms), atom) for atoms in templates for atom in atoms], np.uint64),
        *offsets_and_drops(bits),
    )


@part
def fire_row(row: Ints, start: Ints, place: Ints, multipliers: Keys, keys: Keys) -> None:
    """The keys of all templates on one row."""
    for t in range(len(keys)):
        key = np.uint64(0)
        for k in range(start[t], start[t + 1]):
            key += multipliers[k] * np.uint64(row[place[k]] + 1)
        keys[t] = key


@ordered_part  # so that training repeats to the last bit, wherever in memory the arrays are
def sum_at(weights: Weights, offset: Ints, drop: Keys, keys: Keys) -> float:
    """The sum of the weights at these keys."""
    total = 0.0
    for t in range(len(keys)):
        total += weights[offset[t] + np.int64(keys[t] >> drop[t])]
    return total


@part
def add_at(weights: Weights, offset: Ints, drop: Keys, keys: Keys, amount: float) -> None:
    """Add an amount to the weights at these keys."""
    for t in range(len(keys)):
        weights[offset[t] + np.int64(keys[t] >> drop[t])] += amount
