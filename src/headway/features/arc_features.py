"""Compiled templates: the features of every arc of a sentence, as indices into a weight vector.

A template's key (see `firing`) is 64 random-looking bits. Its top `bits` index the template's own block of weights:

    index = offset_t + (key >> (64 - bits_t))

To score all arcs of a sentence of n words, each template costs O(n) for the words' parts of the keys, and then two
additions, a shift and one read of the weights per arc.

Two keys that fall on the same index share a weight; `ArcFeatures.collisions` counts them (see `blocks`). Scoring is
split by sentence and adding by block, so no two threads write the same number, and threads never change a result.

Labels. The number of an arc's label can be one more atom; `score_labels` then scores every label of an arc. The blocks
are sized for the pairs of feature and label that occur in training, not for all pairs.

The kernels share their parts, not their outer loop over templates and sentences. Scoring and adding are one kernel
where they visit the same arcs, compiled once for each. A generator of keys under all of them gave the same numbers but
made every kernel slower: Numba keeps a generator's state in memory, which hides from the compiler what does not change
inside the loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Floats, Ints
from headway.errors import TemplateError
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
from headway.features.coding import Coded, CodedNodes, Coder
from headway.features.firing import (
    Compiled,
    Work,
    arcs_at_once,
    fire,
    fire_listed,
    fires_once,
    heads_at_once,
    way_of,
    word_keys,
    work_for,
)
from headway.features.hashing import multiplier, multipliers
from headway.features.templates import CONJUNCTIONS, Template, roles
from headway.inference.jit import kernel, part
from headway.parallel import SERIAL, Executor, run_slices


@dataclass(frozen=True, repr=False)
class ArcFeatures(HashedFeatures):
    """Templates compiled for a coder: `size` weights in all."""

    compiled: Compiled

    @classmethod
    def compile(cls, blocks: Sequence[Block], coder: Coder) -> ArcFeatures:
        """Compile templates whose blocks are known, as in a saved model."""
        check_bits(block.bits for block in blocks)
        return cls(tuple(blocks), _compile([b.template for b in blocks], [b.bits for b in blocks], coder))

    @classmethod
    def learn(
        cls, templates: Sequence[Template], coder: Coder, coded: Coded, heads: Ints, labels: Ints | None = None
    ) -> ArcFeatures:
        """Size every block from the training trees; templates that repeat an earlier one are left out.

        `heads` is (B, N+1), padded with -1. So is `labels`, the labels' numbers, given if features include the label.
        """
        useful = distinct(templates, coder, coded)
        compiled = _compile(useful, [0] * len(useful), coder)
        gold = (heads, np.zeros_like(heads) if labels is None else labels)
        blocks = []
        for t, template in enumerate(useful):
            fired = _tree_keys(compiled, t, coded.nodes, coded.roots, coded.lengths, *gold)
            blocks.append(Block.sized(template, fired, labelled=labels is not None))
        return cls.compile(blocks, coder)

    def score(self, weights: Weights, batch: Coded, scores: Floats, executor: Executor = SERIAL) -> None:
        """Add w·f(h, m) to `scores` (B, N+1, N+1); O(T n^2) for a sentence of n words."""
        flat = scores.reshape(len(batch), -1)

        def run(start: int, stop: int) -> None:
            part = slice(start, stop)
            _score(self.compiled, batch.nodes, batch.roots[part], batch.lengths[part], weights, flat[part])

        run_slices(run, len(batch), executor)

    def add(self, weights: Weights, batch: Coded, amounts: Floats, executor: Executor = SERIAL) -> None:
        """Add `amounts[b, h, m]` times f(h, m) to the weights; zeros cost next to nothing."""
        flat = amounts.reshape(len(batch), -1)

        def run(start: int, stop: int) -> None:
            _add(self.compiled, start, stop, batch.nodes, batch.roots, batch.lengths, flat, weights)

        run_slices(run, len(self.blocks), executor)

    def score_some(self, weights: Weights, batch: Coded, rows: Ints, scores: Floats) -> None:
        """Add w·f(h, m) to scores[rows[b, h, m]]; arcs with a negative row are skipped at little cost."""
        wanted = rows.reshape(len(batch), -1)
        _run_some(self.compiled, batch.nodes, batch.roots, batch.lengths, wanted, weights, scores, None)

    def add_some(self, weights: Weights, batch: Coded, rows: Ints, amounts: Floats) -> None:
        """Add amounts[rows[b, h, m]] times f(h, m) to the weights; arcs with a negative row are skipped."""
        counts = (rows >= 0) & (np.abs(amounts) > NEGLIGIBLE)[rows] if len(amounts) else np.zeros(rows.shape, np.bool_)
        wanted = np.where(counts, rows, -1).reshape(len(batch), -1)
        _run_some(self.compiled, batch.nodes, batch.roots, batch.lengths, wanted, weights, None, amounts)

    def score_labels(self, weights: Weights, batch: Coded, wanted: Ints, scores: Floats) -> None:
        """Add w·f(h, m, l) to `scores` (R, L) for every label l.

        The row of the arc [b, h, m] is wanted[b, h, m]; arcs with a negative row are skipped.
        """
        rows = wanted.reshape(len(batch), -1)
        _run_labels(self.compiled, batch.nodes, batch.roots, batch.lengths, rows, weights, scores, None)

    def add_labels(self, weights: Weights, batch: Coded, wanted: Ints, amounts: Floats) -> None:
        """Add `amounts` (R, L) times f(h, m, l) to the weights, for the wanted arcs and every label."""
        rows = wanted.reshape(len(batch), -1)
        _run_labels(self.compiled, batch.nodes, batch.roots, batch.lengths, rows, weights, None, amounts)


def require_arc_templates(templates: Sequence[Template]) -> None:
    """Refuse templates of larger parts."""
    for template in templates:
        if roles(template) - set("hmb"):
            raise TemplateError(
                f"{template}: a table of arcs has the nodes h, m and b only; others are for larger parts"
            )


def _compile(templates: Sequence[Template], bits: Sequence[int], coder: Coder) -> Compiled:
    require_arc_templates(templates)
    count = len(templates)
    most = max((len(template.atoms) for template in templates), default=1)
    drawn = np.array([multipliers(template, most + 3) for template in templates], np.uint64).reshape(count, most + 3)
    side = np.full((count, most), -1, np.int8)
    shift, field = np.zeros((count, most), np.int64), np.zeros((count, most), np.int64)
    between = np.full(count, -1, np.int64)
    head_feat, modifier_feat = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    for t, template in enumerate(templates):
        for k, atom in enumerate(template.atoms):
            if atom.node == "b":
                between[t] = coder.names.index(atom.field)
            elif atom.field == "feat":
                (head_feat if atom.node == "h" else modifier_feat)[t] = True
            else:
                side[t, k] = 0 if atom.node == "h" else 1
                shift[t, k], field[t, k] = atom.offset, coder.names.index(atom.field)
    offset, drop = offsets_and_drops(bits)
    return Compiled(
        side=side,
        shift=shift,
        field=field,
        multiplier=np.ascontiguousarray(drawn[:, 3:]),
        conjunction=np.array([CONJUNCTIONS.index(template.conjunction) for template in templates], np.int64),
        conjunction_multiplier=drawn[:, 0].copy(),
        between=between,
        head_feat=head_feat,
        modifier_feat=modifier_feat,
        each_multiplier=np.ascontiguousarray(drawn[:, 1:3]),
        label_multiplier=np.array([multiplier(template, "label") for template in templates], np.uint64),
        offset=offset,
        drop=drop,
    )


@kernel
def _score(
    templates: Compiled, nodes: CodedNodes, roots: Ints, lengths: Ints, weights: Weights, scores: Floats
) -> None:
    """scores[b, cell] += weights of the features of the arc; scores is (B, width^2)."""
    width = int(np.sqrt(scores.shape[1]) + 0.5)
    most_feats, work = work_for(nodes.feat_start, roots, lengths)
    head_keys, modifier_keys, span_keys, _, cells, keys = work
    for t in range(len(templates.offset)):
        block = weights[templates.offset[t] :]
        drop, way = templates.drop[t], way_of(templates, t)
        for b in range(len(roots)):
            root, n = roots[b], lengths[b]
            word_keys(t, templates, nodes.codes, root, n, work)
            if fires_once(way):  # nearly every template: no need to list what fires
                for h in range(n + 1):
                    head_key, before = head_keys[h], n - h
                    if before < 0:  # never; it tells the compiler the sign of the index
                        return
                    for m in range(1, n + 1):
                        key = head_key + modifier_keys[m] + span_keys[before + m]
                        scores[b, h * width + m] += block[key >> drop]
                continue
            heads = heads_at_once(way, n, most_feats, len(keys))
            for start in range(0, n + 1, heads):
                count = fire(way, nodes, root, n, start, min(n + 1, start + heads), width, work)
                for k in range(count):
                    scores[b, cells[k]] += block[keys[k] >> drop]


@kernel
def _add(
    templates: Compiled,
    first: int,
    last: int,
    nodes: CodedNodes,
    roots: Ints,
    lengths: Ints,
    amounts: Floats,
    weights: Weights,
) -> None:
    """weights += amounts[b, cell] x features of the arc, for the templates first .. last-1."""
    width = int(np.sqrt(amounts.shape[1]) + 0.5)
    _, work = work_for(nodes.feat_start, roots, lengths)
    head_keys, modifier_keys, span_keys, _, cells, keys = work
    edges, heads, modifiers = _arcs_listed(np.abs(amounts) > NEGLIGIBLE, lengths, width)
    for t in range(first, last):
        block = weights[templates.offset[t] :]
        drop, way = templates.drop[t], way_of(templates, t)
        for b in range(len(roots)):
            if edges[b] == edges[b + 1]:
                continue
            root, n = roots[b], lengths[b]
            word_keys(t, templates, nodes.codes, root, n, work)
            if fires_once(way):
                for k in range(edges[b], edges[b + 1]):
                    h, m = heads[k], modifiers[k]
                    key = head_keys[h] + modifier_keys[m] + span_keys[n + m - h]
                    block[key >> drop] += amounts[b, h * width + m]
                continue
            h = -1
            for k in range(edges[b], edges[b + 1]):
                if heads[k] == h:
                    continue
                h = heads[k]
                count = fire(way, nodes, root, n, h, h + 1, width, work)
                for j in range(count):
                    amount = amounts[b, cells[j]]
                    if abs(amount) > NEGLIGIBLE:
                        block[keys[j] >> drop] += amount


@part
def _arcs_listed(listed: NDArray[np.bool_], lengths: Ints, width: int) -> tuple[Ints, Ints, Ints]:
    """Head and modifier of every arc for which listed[b, cell]; those of sentence b are edges[b] .. edges[b+1]-1."""
    edges = np.zeros(len(lengths) + 1, np.int64)
    for b in range(len(lengths)):
        count = 0
        for h in range(lengths[b] + 1):
            for m in range(1, lengths[b] + 1):
                count += listed[b, h * width + m] & (h != m)
        edges[b + 1] = edges[b] + count
    heads, modifiers = np.empty(edges[-1], np.int64), np.empty(edges[-1], np.int64)
    k = 0
    for b in range(len(lengths)):
        for h in range(lengths[b] + 1):
            for m in range(1, lengths[b] + 1):
                if listed[b, h * width + m] & (h != m):
                    heads[k], modifiers[k] = h, m
                    k += 1
    return edges, heads, modifiers


@kernel
def _run_some(
    templates: Compiled,
    nodes: CodedNodes,
    roots: Ints,
    lengths: Ints,
    wanted: Ints,
    weights: Weights,
    scores: Floats | None,
    amounts: Floats | None,
) -> None:
    """scores[wanted[b, cell]] += weights of the arc's features, or weights += amounts[wanted[b, cell]] x features.

    One of scores and amounts is None; the kernel is compiled for either.
    """
    width = int(np.sqrt(wanted.shape[1]) + 0.5)
    most_feats, work = work_for(nodes.feat_start, roots, lengths)
    cells, keys = work.cells, work.keys
    edges, heads, modifiers = _arcs_listed(wanted >= 0, lengths, width)
    for t in range(len(templates.offset)):
        block = weights[templates.offset[t] :]
        drop, way = templates.drop[t], way_of(templates, t)
        for b in range(len(roots)):
            root, n = roots[b], lengths[b]
            first, last = edges[b], edges[b + 1]
            if first == last:
                continue
            word_keys(t, templates, nodes.codes, root, n, work)
            if fires_once(way):
                arcs = (heads[first:last], modifiers[first:last], wanted[b])
                _run_once(arcs, width, n, work, drop, block, scores, amounts)
                continue
            step = arcs_at_once(way, n, most_feats, len(keys))
            for start in range(first, last, step):
                stop = min(last, start + step)
                count = fire_listed(way, nodes, root, n, heads[start:stop], modifiers[start:stop], width, work)
                for k in range(count):
                    row, index = wanted[b, cells[k]], keys[k] >> drop
                    if scores is not None:
                        scores[row] += block[index]
                    if amounts is not None:
                        block[index] += amounts[row]


@part
def _run_once(
    arcs: tuple[Ints, Ints, Ints],
    width: int,
    n: int,
    work: Work,
    drop: np.uint64,
    block: Weights,
    scores: Floats | None,
    amounts: Floats | None,
) -> None:
    """The same for a template that fires once; arcs are listed by head, modifier, and row of every cell.

    Indices are unsigned, so that they are not tested for counting from the end; that halves the time.
    """
    heads, modifiers, rows = arcs
    head_keys, modifier_keys, span_keys, _, _, _ = work
    for k in range(len(heads)):
        h, m = heads[k], modifiers[k]
        key = head_keys[np.uint64(h)] + modifier_keys[np.uint64(m)] + span_keys[np.uint64(n + m - h)]
        row = np.uint64(rows[np.uint64(h * width + m)])
        if scores is not None:
            scores[row] += block[key >> drop]
        if amounts is not None:
            block[key >> drop] += amounts[row]


@kernel
def _run_labels(
    templates: Compiled,
    nodes: CodedNodes,
    roots: Ints,
    lengths: Ints,
    wanted: Ints,
    weights: Weights,
    scores: Floats | None,
    amounts: Floats | None,
) -> None:
    """scores[wanted[b, cell], l] += weights of the arc's features with label l, or weights += amounts x features.

    One of scores and amounts is None; the kernel is compiled for either.
    """
    width = int(np.sqrt(wanted.shape[1]) + 0.5)
    most_feats, work = work_for(nodes.feat_start, roots, lengths)
    cells, keys = work.cells, work.keys
    if amounts is not None:
        counts = _rows_that_count(amounts)
    for t in range(len(templates.offset)):
        block = weights[templates.offset[t] :]
        drop, way, multiplier = templates.drop[t], way_of(templates, t), templates.label_multiplier[t]
        for b in range(len(roots)):
            root, n = roots[b], lengths[b]
            word_keys(t, templates, nodes.codes, root, n, work)
            heads = heads_at_once(way, n, most_feats, len(keys))
            for start in range(0, n + 1, heads):
                count = fire(way, nodes, root, n, start, min(n + 1, start + heads), width, work)
                for k in range(count):
                    row = wanted[b, cells[k]]
                    if row < 0:
                        continue
                    if scores is not None:
                        for label in range(scores.shape[1]):
                            scores[row, label] += block[(keys[k] + multiplier * np.uint64(label)) >> drop]
                    if amounts is not None and counts[row]:
                        for label in range(amounts.shape[1]):
                            if abs(amounts[row, label]) > NEGLIGIBLE:
                                block[(keys[k] + multiplier * np.uint64(label)) >> drop] += amounts[row, label]


@part
def _rows_that_count(amounts: Floats) -> NDArray[np.bool_]:
    """Which rows have something to add."""
    counts = np.zeros(len(amounts), np.bool_)
    for row in range(len(amounts)):
        for label in range(amounts.shape[1]):
            counts[row] |= abs(amounts[row, label]) > NEGLIGIBLE
    return counts


@kernel
def _tree_keys(
    templates: Compiled, t: int, nodes: CodedNodes, roots: Ints, lengths: Ints, gold: Ints, labels: Ints
) -> Keys:
    """The keys of template t on the labelled arcs of every tree; gold (B, width) are heads."""
    width = gold.shape[1]
    _, work = work_for(nodes.feat_start, roots, lengths)
    cells, keys = work.cells, work.keys
    way = way_of(templates, t)
    found = np.empty(1024, np.uint64)
    size = 0
    for b in range(len(roots)):
        root, n = roots[b], lengths[b]
        word_keys(t, templates, nodes.codes, root, n, work)
        for h in range(n + 1):
            count = fire(way, nodes, root, n, h, h + 1, width, work)
            if size + count > len(found):
                larger = np.empty(2 * (size + count), np.uint64)
                larger[:size] = found[:size]
                found = larger
            for k in range(count):
                m = cells[k] - h * width
                if gold[b, m] == h:
                    found[size] = keys[k] + templates.label_multiplier[t] * np.uint64(labels[b, m])
                    size += 1
    return found[:size]
