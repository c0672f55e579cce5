"""The higher-order models: arcs, siblings, grandparents, as parts of head automata (koo2010 sections 3, 5 and 6).

    sibling        s(tree) = sum of w·f over its arcs (h, m) and its adjacent siblings (h, s, m)
    grandsibling   the same, and over grandparents (g, h, m) and grand-siblings (g, h, s, m)

The arcs' own features are those of the arc-factored model, the others come from a table of parts, `sibling` or
`grandsibling`; a template's nodes say which parts it is about. Only arcs that a pruner kept make parts, listed by
`headway.inference.candidates`; the weights are one vector, by kind of part.

`PartExamples` shows training sentences to `headway.learning` one at a time, as the scores of all their parts in a row;
`AutomataTrees` decodes them there: by the head automata alone, the set Z of the paper, or by dual decomposition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.errors import TemplateError
from headway.features.arc_features import ArcFeatures
from headway.features.blocks import Weights, collisions_of
from headway.features.coding import Coded, Coder
from headway.features.firing import distance_bin
from headway.features.part_features import PartFeatures, PartList
from headway.features.templates import Template, roles
from headway.inference.batch import Floats, Ints
from headway.inference.candidates import (
    Bools,
    Candidates,
    Nodes,
    candidates,
    grand_sibling_nodes,
    grandparent_nodes,
    sibling_nodes,
)
from headway.inference.dual_decomposition import Decoded, decode
from headway.inference.head_automata import (
    GrandSiblingParts,
    Parts,
    SiblingParts,
    arcs_of_tree,
    count_parts,
    decode_heads,
)
from headway.inference.jit import kernel

# Steps of branch and bound on a training sentence: the first weights make hard ones, and a good tree is enough.
_BUDGET = 1000

Order = Literal["sibling", "grandsibling"]
Decoding = Literal["automata", "dual"]

# The kinds of parts beside arcs, in the order of the weights: the nodes their templates are about.
KINDS = {"siblings": "hsm", "grandparents": "ghm", "grand_siblings": "ghsm"}


class Listing(NamedTuple):
    """The parts of some sentences: candidates a sentence, the number of every arc, and lists of the other parts."""

    candidates: list[Candidates]
    rows: Ints  # (B, N+1, N+1) the number of an arc among those of all the sentences, -1 where it was pruned
    arc_start: list[int]
    others: dict[str, PartList]


@dataclass(frozen=True)
class PartScorer:
    """Scores parts from weights; `others` has features for each kind of part the model has, in the order of KINDS."""

    arcs: ArcFeatures
    others: Mapping[str, PartFeatures]

    @classmethod
    def learn(
        cls, arcs: Sequence[Template], parts: Sequence[Template], coder: Coder, coded: Coded, heads: Ints
    ) -> PartScorer:
        """Size all blocks of weights from the training trees, heads (B, N+1)."""
        kinds = {name: [t for t in parts if _kind(t) == name] for name in KINDS}
        if not kinds["siblings"] or (kinds["grand_siblings"] and not kinds["grandparents"]):
            raise TemplateError("a table of parts needs templates over h, s, m, and where it names g, over g, h, m")
        gold = _gold_listing(coded, heads, [name for name, some in kinds.items() if some])
        others = {
            name: PartFeatures.learn(KINDS[name], some, coder, coded, gold[name])
            for name, some in kinds.items()
            if some
        }
        return cls(ArcFeatures.learn(arcs, coder, coded, heads), others)

    @property
    def grand(self) -> bool:
        """Whether any part has a grandparent."""
        return "grandparents" in self.others

    @property
    def size(self) -> int:
        """How many weights there are."""
        return self.arcs.size + sum(features.size for features in self.others.values())

    @property
    def collisions(self) -> float:
        """The share of the keys of the training trees that share their weight with another."""
        return collisions_of([*self.arcs.blocks, *(b for features in self.others.values() for b in features.blocks)])

    def list_parts(self, lengths: Ints, kept: Sequence[Bools]) -> Listing:
        """The parts that the kept arcs [head, modifier] of each sentence make."""
        return list_parts(lengths, kept, tuple(self.others))

    def score(self, weights: Weights, coded: Coded, which: Ints, parts: Listing) -> dict[str, Floats]:
        """The scores of arcs ("arcs") and of each kind of other parts, in the order they are listed."""
        scores = {"arcs": np.zeros(parts.arc_start[-1])}
        self.arcs.score_some(weights[: self.arcs.size], coded.some(which), parts.rows, scores["arcs"])
        for name, features, own in self._slices(weights):
            scores[name] = np.zeros(len(parts.others[name].nodes))
            features.score(own, coded.some(which), parts.others[name], scores[name])
        return scores

    def add(self, weights: Weights, coded: Coded, which: Ints, parts: Listing, amounts: Mapping[str, Floats]) -> None:
        """weights += amounts x features."""
        self.arcs.add_some(weights[: self.arcs.size], coded.some(which), parts.rows, amounts["arcs"])
        for name, features, own in self._slices(weights):
            features.add(own, coded.some(which), parts.others[name], amounts[name])

    def _slices(self, weights: Weights) -> Iterator[tuple[str, PartFeatures, Weights]]:
        start = self.arcs.size
        for name, features in self.others.items():
            yield name, features, weights[start : start + features.size]
            start += features.size

    def automata_parts(self, these: Candidates, scores: Mapping[str, Floats]) -> Parts:
        """One sentence's scores as the decoder takes them."""
        if not self.grand:
            return SiblingParts(these, scores["arcs"], scores["siblings"])
        triples = scores.get("grand_siblings", np.zeros(0))
        return GrandSiblingParts(these, scores["arcs"], scores["siblings"], scores["grandparents"], triples)


def decode_parts(
    scorer: PartScorer,
    weights: Weights,
    coded: Coded,
    which: Ints,
    kept: Sequence[Bools],
    *,
    threads: int = 1,
    **options: Any,
) -> list[Decoded]:
    """The best trees of some sentences over the arcs kept; `options` are those of `dual_decomposition.decode`."""
    parts = scorer.list_parts(coded.lengths[which], kept)
    scores = scorer.score(weights, coded, which, parts)

    def solve(b: int) -> Decoded:
        return decode(scorer.automata_parts(parts.candidates[b], _one_of(scores, parts, b)), **options)

    if threads <= 1:
        return [solve(b) for b in range(len(which))]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(solve, range(len(which))))


def _one_of(scores: Mapping[str, Floats], parts: Listing, b: int) -> dict[str, Floats]:
    """The scores of sentence b of a listing."""
    own = {"arcs": scores["arcs"][parts.arc_start[b] : parts.arc_start[b + 1]]}
    for name, listed in parts.others.items():
        own[name] = scores[name][listed.start[b] : listed.start[b + 1]]
    return own


@dataclass(frozen=True)
class PartExamples:
    """Coded sentences with their heads (B, N+1), padded with -1, and the arcs kept of each, right ones among them."""

    scorer: PartScorer
    coded: Coded
    heads: Ints
    kept: Sequence[Bools]
    _latest: dict[int, Listing] = field(default_factory=dict, compare=False)

    @property
    def lengths(self) -> Ints:
        return self.coded.lengths

    @property
    def size(self) -> int:
        return self.scorer.size

    def listing(self, i: int) -> Listing:
        """The parts of sentence i; a step asks for them several times."""
        if i not in self._latest:
            self._latest.clear()
            self._latest[i] = self.scorer.list_parts(self.lengths[i : i + 1], [self.kept[i]])
        return self._latest[i]

    def score(self, weights: Weights, which: Ints) -> Floats:
        scores = self.scorer.score(weights, self.coded, which, self.listing(int(which[0])))
        return np.concatenate(list(scores.values()))

    def add(self, weights: Weights, which: Ints, amounts: Floats) -> None:
        parts = self.listing(int(which[0]))
        self.scorer.add(weights, self.coded, which, parts, self.by_kind(parts, amounts))

    def gold(self, which: Ints) -> Floats:
        i = int(which[0])
        these = self.listing(i).candidates[0]
        return self.count(these, *arcs_of_tree(these, self.heads[i, : these.n + 1]))

    def cost(self, which: Ints) -> Floats:
        """1 for every wrong arc; other parts cost nothing."""
        i = int(which[0])
        parts = self.listing(i)
        these = parts.candidates[0]
        cost = np.zeros(parts.arc_start[-1] + sum(len(listed.nodes) for listed in parts.others.values()))
        cost[: len(these.heads)] = self.heads[i, these.modifiers] != these.heads
        return cost

    def count(self, these: Candidates, taken: Bools, above: Ints) -> Floats:
        """1 for every part there is when these arcs are taken, the parts in a row."""
        return count_parts(these, taken, above, self.scorer.grand, "grand_siblings" in self.scorer.others)

    @staticmethod
    def by_kind(parts: Listing, values: Floats) -> dict[str, Floats]:
        """A row of all parts, taken apart."""
        sizes = [parts.arc_start[-1], *(len(listed.nodes) for listed in parts.others.values())]
        edges = list(accumulate(sizes, initial=0))
        return {
            name: values[start:stop]
            for name, (start, stop) in zip(("arcs", *parts.others), pairwise(edges), strict=True)
        }


@dataclass(frozen=True)
class AutomataTrees:
    """What the perceptron chooses among: with `automata` the paper's Z, with `dual` trees of the class."""

    examples: PartExamples
    decoding: Decoding
    projective: bool
    single_root: bool

    def best(self, scores: Floats, lengths: Ints, which: Ints) -> Floats:
        """1 on the parts of the best choice, 0 elsewhere."""
        examples, listed = self.examples, self.examples.listing(int(which[0]))
        these = listed.candidates[0]
        parts = examples.scorer.automata_parts(these, examples.by_kind(listed, scores))
        if self.decoding == "automata":
            _, taken, above = decode_heads(parts.automata())
        else:
            trees = {"projective": self.projective, "single_root": self.single_root}
            found = decode(parts, budget=_BUDGET, **trees)
            taken, above = arcs_of_tree(these, found.heads)
        return examples.count(these, taken, above)


def list_parts(lengths: Ints, kept: Sequence[Bools], kinds: Sequence[str]) -> Listing:
    """The parts of some sentences, those of the first sentence first."""
    found = [candidates(arcs[: n + 1, : n + 1]) for arcs, n in zip(kept, lengths.tolist(), strict=True)]
    arc_start = list(accumulate((len(these.heads) for these in found), initial=0))
    width = int(lengths.max(initial=0)) + 1
    rows = np.full((len(found), width, width), -1, np.int64)
    nodes: dict[str, list[Nodes]] = {name: [] for name in kinds}
    for b, these in enumerate(found):
        rows[b, these.heads, these.modifiers] = np.arange(arc_start[b], arc_start[b + 1])
        for name, some in _nodes(these, kinds):
            nodes[name].append(some)
    return Listing(found, rows, arc_start, {name: _part_list(name, some) for name, some in nodes.items()})


def _nodes(these: Candidates, kinds: Sequence[str]) -> Iterator[tuple[str, Nodes]]:
    siblings = sibling_nodes(these)
    for name in kinds:
        if name == "siblings":
            yield name, siblings
        elif name == "grandparents":
            yield name, grandparent_nodes(these)
        else:
            yield name, grand_sibling_nodes(these, siblings)


def _part_list(name: str, nodes: Sequence[Nodes]) -> PartList:
    start = np.fromiter(accumulate(map(len, nodes), initial=0), np.int64, len(nodes) + 1)
    stacked = np.concatenate([np.empty((0, len(KINDS[name])), np.int32), *nodes])
    return PartList(start, stacked, _ways(stacked, "g" in KINDS[name], "s" in KINDS[name]))


@kernel
def _ways(nodes: Nodes, with_grandparent: bool, with_sibling: bool) -> NDArray[np.int32]:
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


def _gold_listing(coded: Coded, heads: Ints, kinds: Sequence[str]) -> dict[str, PartList]:
    """The parts of the training trees."""
    nodes: dict[str, list[Nodes]] = {name: [] for name in kinds}
    for i, n in enumerate(coded.lengths.tolist()):
        tree = heads[i, : n + 1]
        allowed = np.zeros((n + 1, n + 1), np.bool_)
        allowed[tree[1:], np.arange(1, n + 1)] = True
        these = candidates(allowed)
        there = count_parts(these, *arcs_of_tree(these, tree), True, True)
        sizes = (these.pairs[-1], these.grands[-1], these.grand_pairs[-1])
        edges = list(accumulate(map(int, sizes), initial=n))
        spans = dict(zip(KINDS, pairwise(edges), strict=True))
        for name, some in _nodes(these, kinds):
            nodes[name].append(some[there[slice(*spans[name])] > 0])
    return {name: _part_list(name, some) for name, some in nodes.items()}


def _kind(template: Template) -> str:
    """The kind of part a template is about: the first whose nodes it needs."""
    for name, nodes in KINDS.items():
        if roles(template) <= set(nodes) and not any(atom.field == "feat" for atom in template.atoms):
            return name
    raise TemplateError(f"{template}: not a template of parts; those are over g, h, s and m, without b or feat")
