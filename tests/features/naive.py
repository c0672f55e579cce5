"""Features without arrays: what an arc's features are, as tuples of text, and where the documented hash puts them.

Everything is looked up word by word in the sentence's own columns; keys are Python integers modulo 2^64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from headway.features.arc_features import ArcFeatures
from headway.features.coding import Coder
from headway.features.part_features import PartFeatures
from headway.features.templates import Template
from headway.treebank import Sentence

Floats = NDArray[np.float64]
Value = str | int  # text of a word; 0 outside the sentence, 1 at the root, 2 where it is not known
Feature = tuple[
    Template, tuple[Value, ...], int, tuple[Value, ...]
]  # atoms, direction and distance, what fires for each

OUTSIDE, ROOT, UNKNOWN, FIRST = 0, 1, 2, 3


def words_shape(form: str) -> str:
    found = ""
    for character in form:
        kind = "."
        if character.isdigit():
            kind = "0"
        if character.isalpha():
            kind = "X" if character.isupper() else "x"
        if not found.endswith(kind):
            found += kind
    return found


def fine_tag(sentence: Sentence, node: int) -> str:
    """The universal tag stands in where a word has no other."""
    own = sentence.xpos[node - 1]
    return sentence.upos[node - 1] if own == "_" else own


def value(sentence: Sentence, node: int, field: str, coder: Coder) -> Value:
    """A field of a node; node 0 is the root. Only the clusters come from the coder."""
    if node == 0:
        return ROOT
    if not 0 < node <= len(sentence):
        return OUTSIDE
    form = sentence.forms[node - 1]
    match field:
        case "form":
            return form
        case "lower":
            return form.lower()
        case "lemma":
            return sentence.lemmas[node - 1]
        case "prefix":
            return form[:5]
        case "suffix":
            return form[-3:]
        case "shape":
            return words_shape(form)
        case "word":
            lemma = sentence.lemmas[node - 1]
            return lemma if lemma != "_" else sentence.forms[node - 1].lower()
        case "upos":
            return sentence.upos[node - 1]
        case "xpos":
            return fine_tag(sentence, node)
        case "feats":
            return sentence.feats[node - 1]
        case "morph":
            return f"{fine_tag(sentence, node)}/{sentence.feats[node - 1]}"
        case "bits" | "bits6" | "bits4":
            paths = coder.clusters.paths
            path = paths[form] if form in paths else paths.get(form.lower(), "_")
            return path if field == "bits" else path[: int(field[-1])]
    raise AssertionError(field)


def single(sentence: Sentence, node: int, coder: Coder) -> list[str]:
    """The features of a node that the coder knows."""
    if node == 0 or sentence.feats[node - 1] == "_":
        return []
    return [feature for feature in sentence.feats[node - 1].split("|")[:32] if feature in coder.feats]


def bin_of(distance: int) -> int:
    return sum(distance >= least for least in (1, 2, 3, 4, 5, 7, 11, 21))


def span(template: Template, head: int, modifier: int) -> int:
    """One number for direction and distance, as far as the template looks at them."""
    if template.conjunction == "-":
        return 0
    distance = 1 if template.conjunction == "dir" else bin_of(abs(head - modifier))
    return 2 * distance + (modifier < head)


def features(template: Template, sentence: Sentence, coder: Coder, head: int, modifier: int) -> Iterator[Feature]:
    """What a template says of an arc."""
    nodes = {"h": head, "m": modifier}
    plain = [atom for atom in template.atoms if atom.node != "b" and atom.field != "feat"]
    values = tuple(value(sentence, nodes[atom.node] + atom.offset, atom.field, coder) for atom in plain)
    each: list[tuple[Value, ...]] = [()]
    for atom in template.atoms:
        if atom.node == "b":
            between = range(min(head, modifier) + 1, max(head, modifier))
            values_between = [value(sentence, node, atom.field, coder) for node in between]
            each = [
                (v,) for v in dict.fromkeys(v if v in coder.fields[atom.field] else UNKNOWN for v in values_between)
            ]
    for node in "hm":  # the head's feature comes first, whatever the order of the atoms
        if any(atom.node == node and atom.field == "feat" for atom in template.atoms):
            each = [(*before, feature) for before in each for feature in single(sentence, nodes[node], coder)]
    for fired in each:
        yield template, values, span(template, head, modifier), fired


@lru_cache
def multiplier(template: Template, number: int | str) -> int:
    digest = blake2b(f"{template} {number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") | 1


def code(coder: Coder, field: str, text: Value) -> int:
    if isinstance(text, int):
        return text
    known = list(coder.fields[field])
    return FIRST + known.index(text) if text in known else UNKNOWN


def key(feature: Feature, coder: Coder) -> int:
    """The multilinear hash: 0 multiplies direction and distance, 1 and 2 what fires for each, 3 and up the atoms."""
    template, values, where, fired = feature
    total = multiplier(template, 0) * where
    remaining = iter(values)
    for position, atom in enumerate(template.atoms, start=3):
        if atom.node == "b":
            total += multiplier(template, 1) * code(coder, atom.field, fired[0])
        elif atom.field == "feat":
            number = 0 if atom.node == "h" else -1
            total += multiplier(template, 1 if atom.node == "h" else 2) * list(coder.feats).index(str(fired[number]))
        else:
            total += multiplier(template, position) * code(coder, atom.field, next(remaining))
    return total % 2**64


def arcs(sentence: Sentence) -> Iterator[tuple[int, int]]:
    n = len(sentence)
    yield from ((h, m) for h in range(n + 1) for m in range(1, n + 1) if h != m)


def indices(
    compiled: ArcFeatures, sentence: Sentence, coder: Coder, head: int, modifier: int, label: int = 0
) -> list[int]:
    """Every weight an arc touches, as often as it does; arcs without labels have label 0."""
    found, offset = [], 0
    for block in compiled.blocks:
        for feature in features(block.template, sentence, coder, head, modifier):
            hashed = (key(feature, coder) + label * multiplier(block.template, "label")) % 2**64
            found.append(offset + (hashed >> (64 - block.bits)))
        offset += 1 << block.bits
    return found


def score_labels(
    compiled: ArcFeatures, sentences: Sequence[Sentence], coder: Coder, weights: Floats, labels: int
) -> Floats:
    """(B, N+1, N+1, L); zeros where there is no arc."""
    width = max(map(len, sentences)) + 1
    scores = np.zeros((len(sentences), width, width, labels))
    for b, sentence in enumerate(sentences):
        for h, m in arcs(sentence):
            for label in range(labels):
                for index in indices(compiled, sentence, coder, h, m, label):
                    scores[b, h, m, label] += weights[index]
    return scores


def add_labels(compiled: ArcFeatures, sentences: Sequence[Sentence], coder: Coder, amounts: Floats) -> Floats:
    """What adding the amounts (B, N+1, N+1, L) leaves in weights that were zero."""
    weights = np.zeros(compiled.size)
    for b, sentence in enumerate(sentences):
        for h, m in arcs(sentence):
            for label, amount in enumerate(amounts[b, h, m].tolist()):
                for index in indices(compiled, sentence, coder, h, m, label):
                    weights[index] += amount
    return weights


def score(compiled: ArcFeatures, sentences: Sequence[Sentence], coder: Coder, weights: Floats) -> Floats:
    """(B, N+1, N+1); zeros where there is no arc."""
    return score_labels(compiled, sentences, coder, weights, 1)[..., 0]


def add(compiled: ArcFeatures, sentences: Sequence[Sentence], coder: Coder, amounts: Floats) -> Floats:
    """What adding the amounts (B, N+1, N+1) leaves in weights that were zero."""
    return add_labels(compiled, sentences, coder, amounts[..., None])


@dataclass(frozen=True)
class Part:
    """A part of a tree: the node of each role, None where it has none; codes of direction and of distance."""

    nodes: dict[str, int | None]
    direction: int = 0
    distance: int = 0


def part_key(template: Template, sentence: Sentence, coder: Coder, part: Part) -> int:
    ways = {"-": 0, "dir": part.direction, "dist": part.distance}
    total = multiplier(template, 0) * ways[template.conjunction]
    for position, atom in enumerate(template.atoms, start=3):
        node = part.nodes[atom.node]
        if node is not None:  # a code of 0 would add nothing
            text = value(sentence, node + atom.offset, atom.field, coder)
            total += multiplier(template, position) * code(coder, atom.field, text)
    return total % 2**64


def part_indices(compiled: PartFeatures, sentence: Sentence, coder: Coder, part: Part, label: int = 0) -> Iterator[int]:
    """The weight a part touches in every block; parts without labels have label 0."""
    offset = 0
    for block in compiled.blocks:
        hashed = part_key(block.template, sentence, coder, part) + label * multiplier(block.template, "label")
        yield offset + (hashed % 2**64 >> (64 - block.bits))
        offset += 1 << block.bits
