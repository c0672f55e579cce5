"""The higher-order scorer: arcs, siblings, grandparents, as parts of head automata (koo2010 sections 3, 5 and 6).

    sibling        s(tree) = sum of w·f over its arcs (h, m) and its adjacent siblings (h, s, m)
    grandsibling   the same, and over grandparents (g, h, m) and grand-siblings (g, h, s, m)

The arcs' own features are those of the arc-factored model, the others come from a table of parts, `sibling` or
`grandsibling`; a template's nodes say which kind of part it is about (`headway.inference.parts`). Only arcs that a
pruner kept make parts, listed by `headway.inference.candidates`; the weights are one vector, by kind of part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Bools, Floats, Ints
from headway.errors import TemplateError
from headway.features.arc_features import ArcFeatures
from headway.features.blocks import Weights, collisions_of
from headway.features.coding import Coded, Coder
from headway.features.firing import distance_bin
from headway.features.part_features import PartFeatures, PartList
from headway.features.templates import Template, roles
from headway.inference.candidates import Candidates, NodeRows, candidates
from headway.inference.head_automata import GrandSiblingParts, Parts, SiblingParts
from headway.inference.jit import kernel
from headway.inference.part_counts import arcs_of_tree, count_parts
from headway.inference.parts import GRAND_SIBLINGS, GRANDPARENTS, KINDS, SIBLINGS, PartKind
from headway.parallel import SERIAL, Executor


class PrunedBatch(NamedTuple):
    """Coded sentences and their parts: candidate arcs, each arc's number, and lists of the other parts by kind."""

    coded: Coded
    candidates: list[Candidates]
    rows: Ints  # (B, N+1, N+1) the number of an arc among those of all the sentences, -1 where it was pruned
    arc_start: list[int]
    others: dict[str, PartList]

    def sizes(self) -> list[int]:
        """How many arcs there are, and how many parts of each other kind."""
        return [self.arc_start[-1], *(len(listed.nodes) for listed in self.others.values())]


@dataclass(frozen=True, repr=False)
class PartScorer:
    """Scores parts from weights; `others` has features for each kind of part the model has, in the order of KINDS."""

    arcs: ArcFeatures
    others: Mapping[str, PartFeatures]

    def __post_init__(self) -> None:
        if "siblings" not in self.others or ("grand_siblings" in self.others and "grandparents" not in self.others):
            raise TemplateError("a table of parts needs templates over h, s, m, and where it names g, over g, h, m")

    @classmethod
    def learn(
        cls, arcs: Sequence[Template], parts: Sequence[Template], coder: Coder, coded: Coded, heads: Ints
    ) -> PartScorer:
        """Size all blocks of weights from the training trees, heads (B, N+1)."""
        by_kind = {kind: [t for t in parts if kind_of(t) is kind] for kind in KINDS}
        present = [kind for kind, some in by_kind.items() if some]
        gold = _gold_parts(coded, heads, present)
        others = {
            kind.name: PartFeatures.learn(kind.roles, by_kind[kind], coder, coded, gold[kind.name]) for kind in present
        }
        return cls(ArcFeatures.learn(arcs, coder, coded, heads), others)

    @property
    def kinds(self) -> tuple[PartKind, ...]:
        """The kinds of parts beside arcs."""
        return tuple(kind for kind in KINDS if kind.name in self.others)

    @property
    def order(self) -> str:
        """The name of the model: grandsibling if any part has a grandparent."""
        return "grandsibling" if any(kind.below_grandparent for kind in self.kinds) else "sibling"

    @property
    def size(self) -> int:
        """How many weights there are."""
        return self.arcs.size + sum(features.size for features in self.others.values())

    @property
    def collisions(self) -> float:
        """The share of the keys of the training trees that share their weight with another."""
        return collisions_of([*self.arcs.blocks, *(b for features in self.others.values() for b in features.blocks)])

    def batch(self, coded: Coded, kept: Sequence[Bools]) -> PrunedBatch:
        """The parts that the kept arcs [head, modifier] of each sentence make."""
        return list_parts(coded, kept, self.kinds)

    def scores(self, weights: Weights, batch: PrunedBatch, executor: Executor = SERIAL) -> Floats:
        """The scores of all parts in a row: arcs, then kind by kind, each in the order it is listed."""
        scores = np.zeros(sum(batch.sizes()))
        by_kind = split_by_kind(batch, scores)
        self.arcs.score_some(weights[: self.arcs.size], batch.coded, batch.rows, by_kind["arcs"])
        for name, features, own in self._slices(weights):
            features.score(own, batch.coded, batch.others[name], by_kind[name])
        return scores

    def pullback(self, into: Weights, batch: PrunedBatch, amounts: Floats, executor: Executor = SERIAL) -> None:
        """into += amounts x features; amounts are shaped like the scores."""
        by_kind = split_by_kind(batch, amounts)
        self.arcs.add_some(into[: self.arcs.size], batch.coded, batch.rows, by_kind["arcs"])
        for name, features, own in self._slices(into):
            features.add(own, batch.coded, batch.others[name], by_kind[name])

    def _slices(self, weights: Weights) -> Iterator[tuple[str, PartFeatures, Weights]]:
        start = self.arcs.size
        for name, features in self.others.items():
            yield name, features, weights[start : start + features.size]
            start += features.size


def split_by_kind(batch: PrunedBatch, values: Floats) -> dict[str, Floats]:
    """A row of all parts, taken apart: views of the arcs' values and of each other kind's."""
    edges = accumulate(batch.sizes(), initial=0)
    return {
        name: values[start:stop] for name, (start, stop) in zip(("arcs", *batch.others), pairwise(edges), strict=True)
    }


def sentence_parts(batch: PrunedBatch, scores: Floats) -> list[Parts]:
    """Each sentence's scores as the decoder takes them."""
    by_kind = split_by_kind(batch, scores)
    found: list[Parts] = []
    for b, these in enumerate(batch.candidates):
        arcs = by_kind["arcs"][batch.arc_start[b] : batch.arc_start[b + 1]]
        own = {name: by_kind[name][each.start[b] : each.start[b + 1]] for name, each in batch.others.items()}
        found.append(_parts(these, arcs, own))
    return found


def _parts(these: Candidates, arcs: Floats, others: Mapping[str, Floats]) -> Parts:
    if GRANDPARENTS.name not in others:
        return SiblingParts(these, arcs, others[SIBLINGS.name])
    triples = others.get(GRAND_SIBLINGS.name, np.zeros(0))
    return GrandSiblingParts(these, arcs, others[SIBLINGS.name], others[GRANDPARENTS.name], triples)


def list_parts(coded: Coded, kept: Sequence[Bools], kinds: Sequence[PartKind]) -> PrunedBatch:
    """The parts of some sentences, those of the first sentence first."""
    lengths = coded.lengths
    found = [candidates(arcs[: n + 1, : n + 1]) for arcs, n in zip(kept, lengths.tolist(), strict=True)]
    arc_start = list(accumulate((len(these.heads) for these in found), initial=0))
    width = int(lengths.max(initial=0)) + 1
    rows = np.full((len(found), width, width), -1, np.int64)
    for b, these in enumerate(found):
        rows[b, these.heads, these.modifiers] = np.arange(arc_start[b], arc_start[b + 1])
    others = {kind.name: _part_list(kind, [kind.nodes(these) for these in found]) for kind in kinds}
    return PrunedBatch(coded, found, rows, arc_start, others)


def _part_list(kind: PartKind, nodes: Sequence[NodeRows]) -> PartList:
    start = np.fromiter(accumulate(map(len, nodes), initial=0), np.int64, len(nodes) + 1)
    stacked = np.concatenate([np.empty((0, len(kind.roles)), np.int32), *nodes])
    return PartList(start, stacked, _ways(stacked, kind.below_grandparent, kind.on_pairs))


@kernel
def _ways(nodes: NodeRows, with_grandparent: bool, with_sibling: bool) -> NDArray[np.int32]:
    """(P, 2) codes of direction, and of direction and distance.

    The direction says on which side of its head the child is, and where the grandparent stands: left or right of the
    head, this or that side of the child. The distance is from the sibling to the child, or from the head where there
    is no sibling; binned as for arcs. What ends a side has none.
    """
    ways = np.empty((len(nodes), 2), np.int32)
    head = 1 if with_grandparent else 0
    for p in range(len(nodes)):
        h, m = nodes[p, head], nodes[p, -1]
        s = nodes[p, head + 1] if with_sibling else -1
        child = m if m >= 0 else s
        direction = int(child > h)
        if with_grandparent:
            g = nodes[p, 0]
            direction += 2 * int(g > h) + 4 * int(g > child)
        distance = 0 if m < 0 else distance_bin(abs(m - (s if s >= 0 else h)))
        ways[p, 0] = direction
        ways[p, 1] = direction + 8 * distance
    return ways


def _gold_parts(coded: Coded, heads: Ints, kinds: Sequence[PartKind]) -> dict[str, PartList]:
    """The parts of the training trees."""
    nodes: dict[str, list[NodeRows]] = {kind.name: [] for kind in kinds}
    for i, n in enumerate(coded.lengths.tolist()):
        tree = heads[i, : n + 1]
        allowed = np.zeros((n + 1, n + 1), np.bool_)
        allowed[tree[1:], np.arange(1, n + 1)] = True
        these = candidates(allowed)
        there = count_parts(these, *arcs_of_tree(these, tree), tuple(kinds))
        start = n
        for kind in kinds:
            every = kind.nodes(these)
            nodes[kind.name].append(every[there[start : start + len(every)] > 0])
            start += len(every)
    return {kind.name: _part_list(kind, nodes[kind.name]) for kind in kinds}


def kind_of(template: Template) -> PartKind:
    """The kind of part a template is about: the first whose nodes it needs."""
    for kind in KINDS:
        if roles(template) <= set(kind.roles) and not any(atom.field == "feat" for atom in template.atoms):
            return kind
    raise TemplateError(f"{template}: not a template of parts; those are over g, h, s and m, without b or feat")
