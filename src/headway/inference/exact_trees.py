"""The best tree for scores of any size, by Python's integers: no difference of two trees' scores is ever rounded.

*Non-projective*: Chu and Liu's and Edmonds' contractions, as `spanning_tree` describes them. Single-root trees come
from a penalty on root arcs larger than any difference of scores, which integers can afford. *Projective*: Eisner's
chart (`span_chart`) with max for sum. O(n^3) either way. Few sentences come here, those whose scores are vast and
differ by thousands even without `hopeless_arcs`, so none of it is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from headway.arrays import Floats, Ints, TreeClass
from headway.inference.batch import Batch

# Beyond this, scores of trees are compared exactly. Below, the best tree is so up to 1e-10 of a score.
VAST = 2.0**20

# Scores of the arcs into each word, by head; forbidden ones are left out.
Entries = dict[int, dict[int, int]]


def argmax(batch: Batch, trees: TreeClass) -> tuple[Ints, Ints]:
    """Best heads (B, N+1) and, per sentence, whether a tree exists (1) or not (0)."""
    heads = np.full(batch.scores.shape[:2], -1, dtype=np.int64)
    found = np.ones(len(batch), dtype=np.int64)
    residuals = batch.residuals()
    for b, n in enumerate(batch.lengths.tolist()):
        own = np.s_[b, : n + 1, : n + 1]
        best = _best(_integers(batch.scores[own], residuals[own]), n, trees)
        found[b] = best is not None
        for m, h in (best or {}).items():
            heads[b, m] = h
    return heads, found


def _integers(scores: Floats, residual: Floats) -> Entries:
    """The scores as whole numbers of one unit small enough for all of them."""
    n = len(scores) - 1
    arcs = [(h, m) for m in range(1, n + 1) for h in range(n + 1) if h != m and scores[h, m] > -np.inf]
    ratios = [(scores[arc].item().as_integer_ratio(), residual[arc].item().as_integer_ratio()) for arc in arcs]
    unit = max((bottom for pair in ratios for _, bottom in pair), default=1)
    entries: Entries = {m: {} for m in range(1, n + 1)}
    for (h, m), pair in zip(arcs, ratios, strict=True):
        entries[m][h] = sum(top * (unit // bottom) for top, bottom in pair)
    return entries


def _best(entries: Entries, n: int, trees: TreeClass) -> dict[int, int] | None:
    if trees.projective:
        return _best_projective(entries, n, trees.single_root)
    if not trees.single_root:
        return _arborescence(entries)
    sizes = [abs(score) for heads in entries.values() for score in heads.values()]
    penalty = 2 * n * max(sizes, default=0) + 1
    dear = {m: {h: s - penalty * (h == 0) for h, s in heads.items()} for m, heads in entries.items()}
    heads = _arborescence(dear)
    return heads if heads is not None and list(heads.values()).count(0) <= 1 else None


class _Contraction(NamedTuple):
    """A cycle made into node `new`: the arc each member had in it, and the words inside each member."""

    new: int
    arcs: dict[int, tuple[int, int]]
    inside: dict[int, frozenset[int]]


def _arborescence(entries: Entries) -> dict[int, int] | None:
    """Heads of the best arborescence; None if there is none. Ties go to the lower head."""
    # enter[node][head] = (gain, the arc (h, m) between words that it stands for)
    enter = {m: {h: (s, (h, m)) for h, s in heads.items()} for m, heads in entries.items()}
    inside = {m: frozenset([m]) for m in entries}
    contractions: list[_Contraction] = []
    new = max(entries, default=0)
    while True:
        if not all(enter.values()):
            return None
        head = {node: max(heads, key=lambda h: (heads[h][0], -h)) for node, heads in enter.items()}
        cycle = _cycle(head)
        if not cycle:
            break
        new += 1
        arcs = {x: enter[x][head[x]][1] for x in cycle}
        contractions.append(_Contraction(new, arcs, {x: inside[x] for x in cycle}))
        entries_of_new = _best_by_head(
            (h, (gain - enter[x][head[x]][0], arc))
            for x in cycle
            for h, (gain, arc) in enter[x].items()
            if h not in cycle
        )
        enter = {
            node: _best_by_head((new if h in cycle else h, entry) for h, entry in heads.items())
            for node, heads in enter.items()
            if node not in cycle
        }
        enter[new] = entries_of_new
        inside[new] = frozenset().union(*(inside[x] for x in cycle))
    chosen = {node: enter[node][h][1] for node, h in head.items()}
    for contraction in reversed(contractions):
        h, m = chosen.pop(contraction.new)
        for x, arc in contraction.arcs.items():
            chosen[x] = (h, m) if m in contraction.inside[x] else arc
    return {m: h for h, m in chosen.values()}


def _best_by_head(entries: Iterable[tuple[int, tuple[int, tuple[int, int]]]]) -> dict[int, tuple[int, tuple[int, int]]]:
    best: dict[int, tuple[int, tuple[int, int]]] = {}
    for h, entry in entries:
        if h not in best or entry[0] > best[h][0]:
            best[h] = entry
    return best


def _cycle(head: dict[int, int]) -> set[int]:
    """The nodes of a cycle among the heads; none if every node reaches the root."""
    done: set[int] = {0}
    for start in head:
        walk: dict[int, int] = {}
        node = start
        while node not in done and node not in walk:
            walk[node] = len(walk)
            node = head[node]
        if node in walk:
            return {other for other, place in walk.items() if place >= walk[node]}
        done.update(walk)
    return set()


def _best_projective(entries: Entries, n: int, single_root: bool) -> dict[int, int] | None:
    """Spans are built from narrow to wide; those that cannot be built are left out."""
    first = 1 if single_root else 0
    # C is span[h, e], I is arc[h, m]; each with the split point that was best.
    span: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(first, n + 1)}
    arc: dict[tuple[int, int], tuple[int, int]] = {}
    for width in range(1, n + 1 - first):
        for i in range(first, n + 1 - width):
            j = i + width
            q = _best_split(
                (span[i, k][0] + span[j, k + 1][0], k) for k in range(i, j) if (i, k) in span and (j, k + 1) in span
            )
            for h, m in ((i, j), (j, i)):
                if q is not None and m > 0 and h in entries[m]:
                    arc[h, m] = (q[0] + entries[m][h], q[1])
            for h, e in ((i, j), (j, i)):
                inner = range(i + 1, j + 1) if h == i else range(i, j)
                best = _best_split((arc[h, k][0] + span[k, e][0], k) for k in inner if (h, k) in arc and (k, e) in span)
                if best is not None:
                    span[h, e] = best
    if not single_root:
        return None if (0, n) not in span else _trace(span, arc, [(0, n)])
    root = _best_split(
        (entries[m][0] + span[m, 1][0] + span[m, n][0], m)
        for m in range(1, n + 1)
        if 0 in entries[m] and (m, 1) in span and (m, n) in span
    )
    if root is None:
        return None if n > 0 else {}
    return {root[1]: 0} | _trace(span, arc, [(root[1], 1), (root[1], n)])


def _best_split(options: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    return max(options, key=lambda option: (option[0], -option[1]), default=None)


def _trace(
    span: dict[tuple[int, int], tuple[int, int]],
    arc: dict[tuple[int, int], tuple[int, int]],
    todo: list[tuple[int, int]],
) -> dict[int, int]:
    """The heads of the spans in `todo`, followed back through their splits."""
    heads: dict[int, int] = {}
    while todo:
        h, e = todo.pop()
        if h == e:
            continue
        m = span[h, e][1]
        heads[m] = h
        k = arc[h, m][1]
        low, high = min(h, m), max(h, m)
        todo += [(m, e), (low, k), (high, k + 1)]
    return heads
