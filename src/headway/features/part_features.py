"""Compiled templates over parts of a tree with any nodes: siblings, grandparents, an arc with the tree around it.

A part is a row of nodes, one for each of the `roles` the features were compiled for: "hsm" for a head, a child and its
next child, "ghm" for an arc with the head's own head, and so on (see `templates`). As in `firing`, its key under a
template is the sum of multiplier times code over the atoms, plus a multiplier times the code of direction or distance,
modulo 2^64. The top bits of the key index the template's block of weights (see `blocks`).

The sum splits by role. For each template and sentence, the keys of all n+1 nodes are computed once per role, O(n). Each
part then costs one read and one addition per role, a shift, and one read of the weights: O(T (n + P)) for T templates
and P parts. Reading the weights is the bottleneck, so templates are taken one at a time: the block stays in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headway.arrays import Floats, Ints
from headway.errors import ShapeError, TemplateError
from headway.features.blocks import (
    NEGLIGIBLE,
    Block,
    HashedFeatures,
    Keys,
    Weights,
    check_bits,
    distinct,
    offsets_and_drops,
)
from headway.features.coding import Coded, Coder
from headway.features.hashing import multiplier, multipliers
from headway.features.numbering import Codes
from headway.features.templates import CONJUNCTIONS, PART_NODES, Template, roles
from headway.inference.jit import kernel, part


class PartList(NamedTuple):
    """The parts of B sentences, end to end: those of sentence b are start[b] .. start[b+1]-1."""

    start: Ints  # (B+1,)
    nodes: Codes  # (P, R) the node of each role: 0 the root, 1 .. n the words, -1 none
    ways: Codes  # (P, 2) the code of `dir` and of `dist`, not negative

    def some(self, which: Ints) -> PartList:
        """The parts numbered `which`, in ascending order."""
        return PartList(np.searchsorted(which, self.start), self.nodes[which], self.ways[which])


class CompiledParts(NamedTuple):
    """The templates as arrays, with one entry or row per template."""

    row: Ints  # (T, K) which of the template's roles an atom looks at, -1: no atom
    shift: Ints  # (T, K) how many words away
    field: Ints  # (T, K) row of CodedNodes.codes
    multiplier: Keys  # (T, K)
    role: Ints  # (T, R) column of PartList.nodes of each role the template uses, -1: no more
    way: Ints  # (T,) column of PartList.ways
    way_multiplier: Keys  # (T,) 0: alone
    label_multiplier: Keys  # (T,)
    offset: Ints  # (T,) where the block begins
    drop: Keys  # (T,) 64 - bits: what is shifted out of the key


@dataclass(frozen=True, repr=False)
class PartFeatures(HashedFeatures):
    """Templates over `roles` compiled for a coder: `size` weights in all."""

    roles: str
    compiled: CompiledParts

    @classmethod
    def compile(cls, roles: str, blocks: Sequence[Block], coder: Coder) -> PartFeatures:
        """Compile templates whose blocks are known, as in a saved model."""
        check_bits(block.bits for block in blocks)
        bits = [block.bits for block in blocks]
        return cls(tuple(blocks), roles, _compile(roles, [block.template for block in blocks], bits, coder))

    @classmethod
    def learn(
        cls,
        roles: str,
        templates: Sequence[Template],
        coder: Coder,
        coded: Coded,
        parts: PartList,
        labels: Ints | None = None,
    ) -> PartFeatures:
        """Size every block from the `parts` of the training trees, which are those of all sentences of `coded`.

        `labels` (P,) are the labels' numbers, given if features include the label. Templates that repeat an earlier one
        are left out.
        """
        useful = distinct(templates, coder, coded)
        compiled = _compile(roles, useful, [0] * len(useful), coder)
        _check(roles, parts, coded.lengths)
        gold = np.zeros(len(parts.nodes), np.int64) if labels is None else labels
        blocks = []
        for t, template in enumerate(useful):
            fired = _all_keys(compiled, t, coded.nodes.codes, coded.roots, coded.lengths, parts, gold)
            blocks.append(Block.sized(template, fired, labelled=labels is not None))
        return cls.compile(roles, blocks, coder)

    def score(self, weights: Weights, batch: Coded, parts: PartList, scores: Floats) -> None:
        """Add w·f of every part to `scores` (P,), or with each label to `scores` (P, L)."""
        _check(self.roles, parts, batch.lengths, scores)
        self._run(batch, parts, weights, scores, None)

    def add(self, weights: Weights, batch: Coded, parts: PartList, amounts: Floats) -> None:
        """Add `amounts`, (P,) or (P, L), times f to the weights; zeros cost next to nothing."""
        _check(self.roles, parts, batch.lengths, amounts)
        labels = tuple(range(1, amounts.ndim))
        counts = np.flatnonzero((np.abs(amounts) > NEGLIGIBLE).any(axis=labels))
        self._run(batch, parts.some(counts), weights, None, amounts[counts])

    def _run(
        self, batch: Coded, parts: PartList, weights: Weights, scores: Floats | None, amounts: Floats | None
    ) -> None:
        _run(self.compiled, batch.nodes.codes, batch.roots, batch.lengths, parts, weights, scores, amounts)


def _check(roles: str, parts: PartList, lengths: Ints, values: Floats | None = None) -> None:
    """Refuse a list made for other roles or sentences; the kernels do not check bounds."""
    size = len(parts.nodes)
    if parts.nodes.shape != (size, len(roles)) or parts.ways.shape != (size, 2):
        raise ShapeError(f"parts over {roles} need nodes (P, {len(roles)}) and ways (P, 2)")
    if len(parts.start) != len(lengths) + 1 or parts.start[0] != 0 or parts.start[-1] != size:
        raise ShapeError(f"the parts of {len(lengths)} sentences must start at 0 and end with the list")
    if values is not None and len(values) != size:
        raise ShapeError(f"{len(values)} values for {size} parts")
    if size and not -1 <= parts.nodes.min() <= parts.nodes.max() <= lengths.max():
        raise ShapeError("a part has a node outside the longest sentence")


def _compile(over: str, templates: Sequence[Template], bits: Sequence[int], coder: Coder) -> CompiledParts:
    if len(set(over)) < len(over) or set(over) - {"h", "m", *PART_NODES}:
        raise TemplateError(f"{over}: roles are some of h, m, {', '.join(PART_NODES)}, each once")
    for template in templates:
        if roles(template) - set(over) or any(atom.field == "feat" for atom in template.atoms):
            raise TemplateError(f"{template}: not a template over {', '.join(over)}, without feat")
    count, most = len(templates), max((len(template.atoms) for template in templates), default=1)
    row, role = np.full((count, most), -1, np.int64), np.full((count, len(over)), -1, np.int64)
    shift, field = np.zeros((count, most), np.int64), np.zeros((count, most), np.int64)
    atom_multiplier, way_multiplier = np.zeros((count, most), np.uint64), np.zeros(count, np.uint64)
    for t, template in enumerate(templates):
        used = sorted(map(over.index, roles(template)))
        drawn = multipliers(template, most + 3)
        role[t, : len(used)] = used
        way_multiplier[t] = 0 if template.conjunction == "-" else drawn[0]
        atom_multiplier[t] = drawn[3:]
        for k, atom in enumerate(template.atoms):
            row[t, k] = used.index(over.index(atom.node))
            shift[t, k], field[t, k] = atom.offset, coder.names.index(atom.field)
    offset, drop = offsets_and_drops(bits)
    return CompiledParts(
        row=row,
        shift=shift,
        field=field,
        multiplier=atom_multiplier,
        role=role,
        way=np.array([max(0, CONJUNCTIONS.index(template.conjunction) - 1) for template in templates], np.int64),
        way_multiplier=way_multiplier,
        label_multiplier=np.array([multiplier(template, "label") for template in templates], np.uint64),
        offset=offset,
        drop=drop,
    )


@kernel
def _run(
    templates: CompiledParts,
    codes: Codes,
    roots: Ints,
    lengths: Ints,
    parts: PartList,
    weights: Weights,
    scores: Floats | None,
    amounts: Floats | None,
) -> None:
    """scores[p] += weights of the features of part p, or weights += amounts[p] x features of part p.

    One of scores and amounts is None. The other is (P,), or (P, L) for the features with every label. Numba compiles
    the kernel for each case and drops the branches of the others.
    """
    start, nodes, ways = parts
    node_keys, keys = _room(lengths, start, nodes.shape[1])
    for t in range(len(templates.offset)):
        block, drop, step = weights[templates.offset[t] :], templates.drop[t], templates.label_multiplier[t]
        for b in range(len(roots)):
            first, last = start[b], start[b + 1]
            if first == last:
                continue
            _part_keys(templates, t, codes, roots[b], lengths[b], nodes[first:last], ways[first:last], node_keys, keys)
            if scores is not None:
                _gather(keys, step, drop, block, scores[first:last])
            if amounts is not None:
                _scatter(keys, step, drop, amounts[first:last], block)


@kernel
def _all_keys(
    templates: CompiledParts, t: int, codes: Codes, roots: Ints, lengths: Ints, parts: PartList, labels: Ints
) -> Keys:
    """The key of every part under template t, with its label."""
    start, nodes, ways = parts
    node_keys, _ = _room(lengths, start, nodes.shape[1])
    keys = np.empty(len(nodes), np.uint64)
    for b in range(len(roots)):
        first, last = start[b], start[b + 1]
        _part_keys(
            templates, t, codes, roots[b], lengths[b], nodes[first:last], ways[first:last], node_keys, keys[first:last]
        )
        for p in range(first, last):
            keys[p] += templates.label_multiplier[t] * np.uint64(labels[p])
    return keys


@part
def _room(lengths: Ints, start: Ints, width: int) -> tuple[Keys, Keys]:
    """Space for the node keys of the longest sentence, one row per role, and for the keys of the most parts."""
    longest, most = 0, 0
    for b in range(len(lengths)):
        longest = max(longest, lengths[b])
        most = max(most, start[b + 1] - start[b])
    return np.zeros((width, longest + 2), np.uint64), np.empty(most, np.uint64)


@part
def _part_keys(
    templates: CompiledParts,
    t: int,
    codes: Codes,
    root: int,
    n: int,
    nodes: Codes,
    ways: Codes,
    node_keys: Keys,
    keys: Keys,
) -> None:
    """The key of every part of one sentence under template t."""
    _node_keys(templates, t, codes, root, n, node_keys)
    way, multiplier = templates.way[t], templates.way_multiplier[t]
    for p in range(len(nodes)):
        keys[p] = multiplier * np.uint64(ways[p, way])
    for k in range(templates.role.shape[1]):
        role = templates.role[t, k]
        if role < 0:
            return
        of_role = node_keys[k]
        for p in range(len(nodes)):
            keys[p] += of_role[np.uint64(nodes[p, role] + 1)]  # unsigned: no test for an index from the end


@part
def _node_keys(templates: CompiledParts, t: int, codes: Codes, root: int, n: int, node_keys: Keys) -> None:
    """What node i contributes in each role of template t, at i + 1; a missing node contributes 0, at 0."""
    for k in range(templates.role.shape[1]):
        if templates.role[t, k] < 0:
            break
        for i in range(1, n + 2):
            node_keys[k, i] = 0
    for k in range(templates.row.shape[1]):
        row = templates.row[t, k]
        if row < 0:
            return
        multiplier = templates.multiplier[t, k]
        field, first = templates.field[t, k], root + templates.shift[t, k]
        of_role = node_keys[row]
        for i in range(n + 1):
            of_role[i + 1] += multiplier * np.uint64(codes[field, first + i])


@part
def _gather(keys: Keys, step: np.uint64, drop: np.uint64, block: Weights, scores: Floats) -> None:
    """Add the weights at the keys to the scores."""
    if scores.ndim == 1:
        for p in range(len(scores)):
            scores[p] += block[keys[p] >> drop]
    else:
        for p in range(scores.shape[0]):
            key = keys[p]
            for label in range(scores.shape[1]):
                scores[p, label] += block[(key + step * np.uint64(label)) >> drop]


@part
def _scatter(keys: Keys, step: np.uint64, drop: np.uint64, amounts: Floats, block: Weights) -> None:
    """Add the amounts to the weights at the keys."""
    if amounts.ndim == 1:
        for p in range(len(amounts)):
            block[keys[p] >> drop] += amounts[p]
    else:
        for p in range(amounts.shape[0]):
            key = keys[p]
            for label in range(amounts.shape[1]):
                if abs(amounts[p, label]) > NEGLIGIBLE:
                    block[(key + step * np.uint64(label)) >> drop] += amounts[p, label]
