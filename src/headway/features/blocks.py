"""Blocks of weights, one per template, sized from the training trees.

Every template has a block of its own, a power of two sized from the distinct keys it has on the training trees, so
that a template over tags stays within a few cache lines and cannot disturb one over words. Two keys that fall on the
same index share a weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Ints
from headway.errors import TemplateError
from headway.features.coding import Coded, Coder
from headway.features.templates import Template

Keys = NDArray[np.uint64]
Weights = NDArray[np.floating[Any]]  # kernels take either precision

# An amount this small is lost when a useful weight is rounded; most marginals of a trained model are that small.
NEGLIGIBLE = 1e-15

# A block has this many slots for every distinct key of the training trees: wrong arcs have keys too.
_SLOTS_PER_KEY = 2
_SLOTS_PER_LABELLED_KEY = 4  # and so have wrong labels of right arcs
_MOST_BITS = 22


@dataclass(frozen=True)
class Block:
    """One template's share of the weights, and how crowded it is on the training trees."""

    template: Template
    bits: int
    keys: int
    collisions: int

    @classmethod
    def sized(cls, template: Template, fired: Keys, *, labelled: bool) -> Block:
        """The block of a template with the keys `fired` on the training trees, in any order, repeated or not."""
        room = _SLOTS_PER_LABELLED_KEY if labelled else _SLOTS_PER_KEY
        keys = np.unique(fired)
        bits = bits_for(len(keys), room)
        slots = len(np.unique(keys >> np.uint64(64 - bits)))
        return cls(template, bits, len(keys), len(keys) - slots)


@dataclass(frozen=True, repr=False)
class HashedFeatures:
    """Templates with a block of weights for each."""

    blocks: tuple[Block, ...]

    @property
    def size(self) -> int:
        """How many weights there are."""
        return sum(1 << block.bits for block in self.blocks)

    @property
    def collisions(self) -> float:
        """The share of the training trees' keys whose weight also serves another key."""
        return collisions_of(self.blocks)


def bits_for(keys: int, room: int = _SLOTS_PER_KEY) -> int:
    """The size of a block for `keys` distinct keys, with `room` slots for each."""
    return min(_MOST_BITS, max(1, int(room * max(1, keys) - 1).bit_length()))


def check_bits(bits: Iterable[int]) -> None:
    """Refuse sizes no block has; a saved model may be damaged."""
    if any(not 0 < each <= _MOST_BITS for each in bits):
        raise TemplateError(f"a block has between 2 and 2^{_MOST_BITS} weights")


def collisions_of(blocks: Sequence[Block]) -> float:
    """The share of the training trees' keys whose weight also serves another key."""
    return sum(block.collisions for block in blocks) / max(1, sum(block.keys for block in blocks))


def offsets_and_drops(bits: Sequence[int]) -> tuple[Ints, Keys]:
    """Where each block begins, and how many bits of a key are shifted out to leave an index into it."""
    sizes = np.left_shift(1, np.array(bits, np.int64))
    return np.cumsum(sizes) - sizes, np.uint64(64) - np.array(bits, np.uint64)


def distinct(templates: Sequence[Template], coder: Coder, coded: Coded) -> list[Template]:
    """Leave out templates over a field that never varies, and those that repeat another over an identical field."""
    codes = coded.nodes.codes
    same: dict[str, str] = {}
    for row, field in enumerate(coder.names):
        twin = next(
            (other for other in same.values() if np.array_equal(codes[coder.names.index(other)], codes[row])), field
        )
        same[field] = twin
    constant = {field for field, values in coder.fields.items() if len(values) < 2}
    constant |= set() if coder.feats else {"feat"}
    kept: dict[tuple[object, ...], Template] = {}
    for template in templates:
        if any(atom.field in constant for atom in template.atoms):
            continue
        atoms = {(atom.node, atom.offset, same.get(atom.field, atom.field)) for atom in template.atoms}
        kept.setdefault((frozenset(atoms), template.conjunction), template)
    if not kept:
        raise TemplateError("no field of the templates varies in the training data; add templates over one that does")
    return list(kept.values())
