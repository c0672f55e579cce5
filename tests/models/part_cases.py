"""Sentences with parts of more than one arc, every part and feature enumerated one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.arrays import Bools, Floats, TreeClass
from headway.features.arc_features import ArcFeatures
from headway.features.blocks import Block
from headway.features.coding import Coder
from headway.features.part_features import PartFeatures
from headway.features.templates import Atom, Template
from headway.inference.brute_force import all_trees
from headway.inference.candidates import (
    Candidates,
    candidates,
    grand_sibling_nodes,
    grandparent_nodes,
    sibling_nodes,
)
from headway.inference.parts import KINDS
from headway.models.part_scorer import PartScorer
from headway.training.data import CodedTrees, code_trees
from headway.treebank import Sentence

from ..features import naive
from ..features.strategies import part_templates, sentences
from ..inference.parts_oracle import parts_of

Nodes = tuple[int, ...]

ROLES = {kind.name: kind.roles for kind in KINDS}
ORDERS: dict[str, tuple[str, ...]] = {
    "sibling": ("siblings",),
    "grandparent": ("siblings", "grandparents"),
    "grandsibling": tuple(ROLES),
}
orders = st.sampled_from(list(ORDERS))
texts = st.lists(sentences(5), min_size=1, max_size=3)
seeds = st.integers(0, 999)
ARC_TABLE = [Template((Atom("h", 0, "upos"), Atom("m", offset, "form")), "dist") for offset in (0, 1)]


def with_start_and_end(nodes: Nodes, head: int) -> Nodes:
    """A part as `parts_of` names it: START and END are the head."""
    return tuple(nodes[head] if node < 0 else node for node in nodes)


@dataclass(frozen=True)
class World:
    """Sentences with trees, a scorer of random templates, and the arcs that are kept: those of the tree among them."""

    text: list[Sentence]
    coder: Coder
    scorer: PartScorer
    trees: CodedTrees
    kept: list[Bools]
    seed: int

    def whole(self, *shape: int) -> Floats:
        """Whole numbers, whose sums are exact in any order."""
        return np.random.default_rng(self.seed).integers(-9, 10, shape).astype(float)

    def candidates(self, i: int) -> Candidates:
        n = len(self.text[i]) + 1
        return candidates(self.kept[i][:n, :n])

    def parts(self, i: int) -> list[tuple[str, Nodes]]:
        """All parts of a sentence, by kind, in the order of their numbers; -1 is START and END."""
        these = self.candidates(i)
        siblings = sibling_nodes(these)
        nodes: dict[str, NDArray[Any]] = {
            "arcs": np.stack([these.heads, these.modifiers], axis=1),
            "siblings": siblings,
            "grandparents": grandparent_nodes(these),
            "grand_siblings": grand_sibling_nodes(these, siblings),
        }
        return [(kind, tuple(row)) for kind in ("arcs", *self.scorer.others) for row in nodes[kind].tolist()]

    def present(self, i: int, heads: list[int]) -> list[float]:
        """1 for the parts of a tree, in the order of the parts."""
        found = parts_of(tuple(heads))
        head = {"siblings": 0, "grand_siblings": 1}
        return [
            float((with_start_and_end(nodes, head[kind]) if kind in head else nodes) in found[kind])
            for kind, nodes in self.parts(i)
        ]

    def indices(self, i: int, kind: str, nodes: Nodes) -> list[int]:
        """Every weight that a part touches."""
        sentence, scorer = self.text[i], self.scorer
        if kind == "arcs":
            return naive.indices(scorer.arcs, sentence, self.coder, *nodes)
        offset = scorer.arcs.size
        for name, features in scorer.others.items():
            if name == kind:
                part = naive_part(ROLES[kind], nodes)
                return [offset + index for index in naive.part_indices(features, sentence, self.coder, part)]
            offset += features.size
        raise AssertionError(kind)

    def scores(self, i: int, weights: Floats) -> list[float]:
        return [float(weights[self.indices(i, *part)].sum()) for part in self.parts(i)]


def naive_part(roles: str, nodes: Nodes) -> naive.Part:
    """Direction: where the child is, and the grandparent; distance: from the sibling, or else from the head."""
    named = {role: None if node < 0 else node for role, node in zip(roles, nodes, strict=True)}
    h, m, s, g = (named.get(role) for role in "hmsg")
    assert h is not None
    child = s if m is None else m
    assert child is not None
    direction = 1 if child > h else 0
    if g is not None:
        direction += (2 if g > h else 0) + (4 if g > child else 0)
    distance = 0 if m is None else naive.bin_of(abs(m - (h if s is None else s)))
    return naive.Part(named, direction, direction + 8 * distance)


def kept_arcs(rng: np.random.Generator, trees: CodedTrees, share: float) -> list[Bools]:
    kept = []
    for heads, n in zip(trees.heads, trees.coded.lengths.tolist(), strict=True):
        arcs = rng.random((n + 1, n + 1)) < share
        arcs[heads[1 : n + 1], np.arange(1, n + 1)] = True
        kept.append(arcs)
    return kept


def world(text: list[Sentence], kinds: tuple[str, ...], tables: dict[str, list[Template]], seed: int) -> World:
    coder = Coder.learn(text)
    others = {
        name: PartFeatures.compile(ROLES[name], [Block(t, 4, 0, 0) for t in tables[name]], coder) for name in kinds
    }
    scorer = PartScorer(ArcFeatures.compile([Block(t, 4, 0, 0) for t in ARC_TABLE], coder), others)
    trees = code_trees(text, coder, ())
    kept = kept_arcs(np.random.default_rng(seed), trees, (0.0, 0.4, 1.0)[seed % 3])
    return World(text, coder, scorer, trees, kept, seed)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    kinds = ORDERS[draw(orders)]
    tables = {name: draw(st.lists(part_templates(ROLES[name]), min_size=1, max_size=2, unique=True)) for name in kinds}
    return world(draw(texts), kinds, tables, draw(seeds))


def toy_world(order: str, seed: int, count: int = 6) -> World:
    """Short sentences, and templates that tell parts apart."""
    rng = np.random.default_rng(seed)
    text = [
        Sentence.from_words(rng.choice(list("abcdef"), n).tolist(), upos=rng.choice(list("NV"), n).tolist(), heads=tree)
        for n, tree in ((n, all_trees(n, projective=False, single_root=True)[0]) for n in [4, 1, 3, 5, 2, 4][:count])
    ]
    tables = {
        name: [
            Template(tuple(Atom(role, 0, "form") for role in ROLES[name]), "dist"),
            Template(tuple(Atom(role, 0, "upos") for role in ROLES[name]), "dir"),
        ]
        for name in ORDERS[order]
    }
    return world(text, ORDERS[order], tables, 3 * seed + 1)


def best_of_all(case: World, i: int, scores: Floats, trees: TreeClass) -> tuple[float, list[float]]:
    """The best tree over the kept arcs, as parts."""
    n = len(case.text[i])
    best: tuple[float, list[float]] = (-np.inf, [])
    for heads in all_trees(n, **trees._asdict()).tolist():
        if all(case.kept[i][heads[m], m] for m in range(1, n + 1)):
            present = case.present(i, heads)
            best = max(best, (float(scores @ np.array(present)), present))
    return best
