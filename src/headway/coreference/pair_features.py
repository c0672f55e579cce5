"""Features of arcs between mentions: a readable table of templates, compiled into hashed keys.

One template per line: atoms, then after a bar the ways it fires.

    p.head p.sentences | - m am

An atom is an attribute of the antecedent (`a.lemma`) or of the mention (`m.first`), compares the two (`p.string`), or
is about the antecedent's cluster (`c.gender`); `attributes`, `pairs` and `cluster_atoms` list them. After the bar, `-`
means the atoms alone, `m` adds what the mention is (its pronoun, or its kind), and `am` what both are. Each way is a
template of its own. The root has no attributes; every template also sees whether the antecedent is the root.

The values of an arc are a row of numbers: the attributes of a, those of m, the atoms of the pair, and those of the
cluster if a template has any (`keyed_rows` makes keys of them). Blocks are sized from the keys of the arcs that fit the
gold clusters. Scoring K arcs with T templates is O(K T).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Floats, Ints
from headway.coreference.antecedents import Antecedents
from headway.coreference.attributes import ATTRIBUTES
from headway.coreference.cluster_atoms import CLUSTER_ATOMS
from headway.coreference.coding import CodedDocument
from headway.coreference.keyed_rows import CompiledTemplates, Template, add_at, compile_templates, fire_row, sum_at
from headway.coreference.pairs import PAIR_ATOMS, Atoms
from headway.errors import TemplateError
from headway.features.blocks import Keys, Weights, bits_for
from headway.inference.jit import kernel, part

_NAMES = (
    *(f"a.{name}" for name in ATTRIBUTES),
    *(f"m.{name}" for name in ATTRIBUTES),
    *(f"p.{name}" for name in PAIR_ATOMS),
    *(f"c.{name}" for name in CLUSTER_ATOMS),
)
_WAYS: dict[str, Template] = {"-": (), "m": ("m.cite",), "am": ("a.cite", "m.cite")}


def parse_pair_templates(text: str, source: str = "templates") -> tuple[Template, ...]:
    """The templates of a table, one for each way that a line fires.

    >>> parse_pair_templates("p.head | - m")
    (('p.head',), ('p.head', 'm.cite'))
    """
    found: dict[frozenset[str], Template] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        atoms, bar, ways = (part.strip() for part in content.partition("|"))
        unknown = [f"atom {x!r}" for x in atoms.split() if x not in _NAMES]
        unknown += [f"way {x!r}" for x in ways.split() if x not in _WAYS]
        if unknown or not (atoms and ways and bar):
            cause = f"unknown {unknown[0]}" if unknown else "not a template"
            raise TemplateError(f"{source}, line {number}: {cause}; write lines such as `p.head m.first | - m am`")
        for way in ways.split():
            template = tuple(dict.fromkeys((*atoms.split(), *_WAYS[way])))
            found.setdefault(frozenset(template), template)
    return tuple(found.values())


def pair_templates(*, types: bool, clusters: bool = False) -> tuple[Template, ...]:
    """Headway's own templates; those with entity types, or of clusters, only if these are to be used."""
    table = (resources.files("headway.coreference") / "pair_templates.txt").read_text("utf-8")
    return tuple(
        template
        for template in parse_pair_templates(table, "pair_templates.txt")
        if (types or not any(atom.endswith(".type") for atom in template))
        and (clusters or not any(atom.startswith("c.") for atom in template))
    )


class Stretch(NamedTuple):
    """Consecutive mentions of a document and their arcs: those to mention first + i are start[i] to start[i+1]."""

    codes: NDArray[np.int32]
    antecedent: Ints
    atoms: Atoms
    start: Ints
    first: int


def stretch(coded: CodedDocument, antecedents: Antecedents, first: int = 1, last: int | None = None) -> Stretch:
    """The mentions from `first` to `last` (numbered from 1), or all of them."""
    start = antecedents.start[first - 1 : None if last is None else last + 1]
    arcs = slice(int(start[0]), int(start[-1]))
    return Stretch(coded.codes, antecedents.antecedent[arcs], antecedents.atoms[arcs], start - start[0], first)


@dataclass(frozen=True, repr=False)
class PairFeatures:
    """Templates, each with a block of 2^bits weights."""

    templates: tuple[Template, ...]
    bits: tuple[int, ...]
    compiled: CompiledTemplates

    @classmethod
    def learn(cls, templates: Sequence[Template], arcs: Iterable[tuple[Stretch, Ints]]) -> PairFeatures:
        """Features with blocks sized from some arcs of each stretch."""
        sketch = cls.compile(templates, [1] * len(templates))
        fired = [list(map(np.unique, sketch.keys(each, which).T)) for each, which in arcs]
        counts = [len(np.unique(np.concatenate(keys))) for keys in zip(*fired, strict=True)] or [0] * len(templates)
        return cls.compile(templates, list(map(bits_for, counts)))

    @classmethod
    def compile(cls, templates: Sequence[Template], bits: Sequence[int]) -> PairFeatures:
        """Features with blocks of these sizes, as listed in a saved model."""
        compiled = compile_templates([(*template, "p.root") for template in templates], _NAMES, bits)
        return cls(tuple(templates), tuple(bits), compiled)

    @property
    def of_clusters(self) -> bool:
        """Whether there are templates with atoms of clusters."""
        return any(atom.startswith("c.") for template in self.templates for atom in template)

    @property
    def size(self) -> int:
        """The number of weights."""
        return sum(1 << bits for bits in self.bits)

    def score(self, weights: Weights, arcs: Stretch) -> Floats:
        """w·f of every arc, (K,)."""
        scores = np.zeros(len(arcs.antecedent))
        _score(weights, arcs, self.compiled, scores)
        return scores

    def add(self, weights: Weights, arcs: Stretch, amounts: Floats) -> None:
        """weights += amounts (K,) x features."""
        _add(weights, arcs, self.compiled, amounts)

    def keys(self, arcs: Stretch, which: Ints) -> Keys:
        """The keys of some arcs, (len(which), T)."""
        keys = np.zeros((len(which), len(self.templates)), np.uint64)
        _fire_some(arcs, self.compiled, which, keys)
        return keys


# The arrays of a tuple are named before the loops: taking them out inside would count references for each arc.
@kernel
def _score(weights: Weights, arcs: Stretch, c: CompiledTemplates, scores: Floats) -> None:
    codes, antecedent, atoms = arcs.codes, arcs.antecedent, arcs.atoms
    starts, places, multipliers, offset, drop = c.start, c.place, c.multiplier, c.offset, c.drop
    values, keys = room_for_arc(codes, atoms), np.empty(len(offset), np.uint64)
    for i in range(len(arcs.start) - 1):
        for k in range(arcs.start[i], arcs.start[i + 1]):
            fire_arc(codes, atoms[k], antecedent[k], arcs.first + i, starts, places, multipliers, values, keys)
            scores[k] = sum_at(weights, offset, drop, keys)


@kernel
def _add(weights: Weights, arcs: Stretch, c: CompiledTemplates, amounts: Floats) -> None:
    codes, antecedent, atoms = arcs.codes, arcs.antecedent, arcs.atoms
    starts, places, multipliers, offset, drop = c.start, c.place, c.multiplier, c.offset, c.drop
    values, keys = room_for_arc(codes, atoms), np.empty(len(offset), np.uint64)
    for i in range(len(arcs.start) - 1):
        for k in range(arcs.start[i], arcs.start[i + 1]):
            if amounts[k] == 0.0:
                continue
            fire_arc(codes, atoms[k], antecedent[k], arcs.first + i, starts, places, multipliers, values, keys)
            add_at(weights, offset, drop, keys, amounts[k])


@kernel
def _fire_some(arcs: Stretch, c: CompiledTemplates, which: Ints, fired: Keys) -> None:
    values = room_for_arc(arcs.codes, arcs.atoms)
    for row in range(len(which)):
        k = which[row]
        m = arcs.first + np.searchsorted(arcs.start, k, side="right") - 1
        fire_arc(arcs.codes, arcs.atoms[k], arcs.antecedent[k], m, c.start, c.place, c.multiplier, values, fired[row])


@part
def room_for_arc(codes: NDArray[np.int32], atoms: Atoms) -> Ints:
    """For the values of one arc."""
    return np.empty(2 * codes.shape[1] + atoms.shape[1], np.int64)


@part
def fire_arc(
    codes: NDArray[np.int32],
    atoms: Atoms,
    a: int,
    m: int,
    start: Ints,
    place: Ints,
    multipliers: Keys,
    values: Ints,
    keys: Keys,
) -> None:
    """The keys of all templates on one arc, from its values: a's attributes, m's, and the atoms of the pair."""
    count = codes.shape[1]
    for i in range(count):
        values[i] = codes[a, i]
        values[count + i] = codes[m, i]
    for i in range(len(atoms)):
        values[2 * count + i] = atoms[i]
    fire_row(values, start, place, multipliers, keys)
