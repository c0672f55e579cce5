"""Parts of more than one arc: scores against features enumerated one by one, and what is chosen against enumeration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from headway.models.arc_factored import CodedTrees, code_trees
from headway.models.higher_order import KINDS, AutomataTrees, PartExamples, PartScorer, decode_parts
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.errors import TemplateError
from headway.features.arc_features import ArcFeatures
from headway.features.blocks import Block
from headway.features.coding import Coder
from headway.features.part_features import PartFeatures
from headway.features.templates import Atom, Template, load_templates, parse_templates
from headway.inference.brute_force import all_trees
from headway.inference.candidates import (
    Candidates,
    candidates,
    grand_sibling_nodes,
    grandparent_nodes,
    sibling_nodes,
)
from headway.inference.dual_decomposition import Status
from headway.inference.head_automata import decode_heads
from headway.treebank import Sentence

from ..features import naive
from ..features.strategies import part_templates, sentences
from ..inference.parts_oracle import parts_of
from .toy_treebank import sentences as toy_sentences

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Nodes = tuple[int, ...]

ORDERS: dict[str, tuple[str, ...]] = {
    "sibling": ("siblings",),
    "grandparent": ("siblings", "grandparents"),
    "grandsibling": tuple(KINDS),
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

    @property
    def examples(self) -> PartExamples:
        return PartExamples(self.scorer, self.trees.coded, self.trees.heads, self.kept)

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
                part = naive_part(KINDS[kind], nodes)
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
        name: PartFeatures.compile(KINDS[name], [Block(t, 4, 0, 0) for t in tables[name]], coder) for name in kinds
    }
    scorer = PartScorer(ArcFeatures.compile([Block(t, 4, 0, 0) for t in ARC_TABLE], coder), others)
    trees = code_trees(text, coder, ())
    kept = kept_arcs(np.random.default_rng(seed), trees, (0.0, 0.4, 1.0)[seed % 3])
    return World(text, coder, scorer, trees, kept, seed)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    kinds = ORDERS[draw(orders)]
    tables = {name: draw(st.lists(part_templates(KINDS[name]), min_size=1, max_size=2, unique=True)) for name in kinds}
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
            Template(tuple(Atom(role, 0, "form") for role in KINDS[name]), "dist"),
            Template(tuple(Atom(role, 0, "upos") for role in KINDS[name]), "dir"),
        ]
        for name in ORDERS[order]
    }
    return world(text, ORDERS[order], tables, 3 * seed + 1)


# Scores


@given(worlds())
def test_scores_of_all_parts(case: World) -> None:
    """Of several sentences at once, in any order."""
    weights = case.whole(case.scorer.size)
    which = np.random.default_rng(case.seed).permutation(len(case.text))
    listing = case.scorer.list_parts(case.trees.coded.lengths[which], [case.kept[i] for i in which])
    scores = case.scorer.score(weights, case.trees.coded, which, listing)
    assert list(scores) == ["arcs", *case.scorer.others]
    expected: dict[str, list[float]] = {name: [] for name in scores}
    for i in which.tolist():
        for (kind, _), score in zip(case.parts(i), case.scores(i, weights), strict=True):
            expected[kind].append(score)
    assert {name: values.tolist() for name, values in scores.items()} == expected


@given(worlds())
def test_adding_to_the_weights(case: World) -> None:
    """What is left in weights that were zero; it is the adjoint of scoring."""
    which = np.arange(len(case.text))
    listing = case.scorer.list_parts(case.trees.coded.lengths, case.kept)
    weights, rng = case.whole(case.scorer.size), np.random.default_rng(case.seed)
    scores = case.scorer.score(weights, case.trees.coded, which, listing)
    amounts = {name: rng.integers(-2, 3, len(values)).astype(float) for name, values in scores.items()}
    added, expected = np.zeros((2, case.scorer.size))
    case.scorer.add(added, case.trees.coded, which, listing, amounts)
    remaining = {name: iter(values.tolist()) for name, values in amounts.items()}
    for i in which.tolist():
        for kind, nodes in case.parts(i):
            np.add.at(expected, case.indices(i, kind, nodes), next(remaining[kind]))
    np.testing.assert_array_equal(added, expected)
    assert sum(float(amounts[name] @ scores[name]) for name in scores) == added @ weights


@pytest.mark.parametrize("order", list(ORDERS))
def test_blocks_are_sized_from_the_parts_of_the_trees(order: str) -> None:
    text = toy_sentences(8, 1, crossing=True)
    coder = Coder.learn(text)
    trees = code_trees(text, coder, ())
    parts = [
        template
        for name in ORDERS[order]
        for template in parse_templates(" ".join(f"{role}.xpos" for role in KINDS[name]) + " | dir dist")
    ]
    scorer = PartScorer.learn(ARC_TABLE, parts, coder, trees.coded, trees.heads)
    assert tuple(scorer.others) == ORDERS[order]
    assert scorer.grand == (order != "sibling")
    assert scorer.size == scorer.arcs.size + sum(features.size for features in scorer.others.values())
    assert 0.0 <= scorer.collisions < 1.0
    for name, features in scorer.others.items():
        assert features.roles == KINDS[name]
        for block in features.blocks:
            keys = set()
            for sentence in text:
                assert sentence.heads is not None
                for part in parts_of(tuple(sentence.heads.tolist()))[name]:
                    head = KINDS[name].index("h")
                    nodes = tuple(-1 if i > head and node == part[head] else node for i, node in enumerate(part))
                    keys.add(naive.part_key(block.template, sentence, coder, naive_part(KINDS[name], nodes)))
            assert block.keys == len(keys)


@pytest.mark.parametrize(("model", "kinds"), [("sibling", ORDERS["sibling"]), ("grandsibling", ORDERS["grandsibling"])])
def test_tables_that_come_with_headway(model: str, kinds: tuple[str, ...]) -> None:
    text = toy_sentences(4, 2)
    coder = Coder.learn(text)
    trees = code_trees(text, coder, ())
    scorer = PartScorer.learn(ARC_TABLE, load_templates(model), coder, trees.coded, trees.heads)
    assert tuple(scorer.others) == kinds


@pytest.mark.parametrize(
    "table", ["g.xpos h.xpos m.xpos | dir", "h.xpos m.xpos s.xpos | -\ng.form h.form s.form m.form"]
)
def test_tables_that_lack_a_kind(table: str) -> None:
    text = toy_sentences(4, 3)
    coder = Coder.learn(text)
    trees = code_trees(text, coder, ())
    with pytest.raises(TemplateError, match="a table of parts needs templates over h, s, m"):
        PartScorer.learn(ARC_TABLE, parse_templates(table), coder, trees.coded, trees.heads)


# Examples


@given(worlds())
def test_examples_are_all_parts_in_a_row(case: World) -> None:
    examples, weights = case.examples, case.whole(case.scorer.size)
    assert examples.size == case.scorer.size
    assert examples.lengths.tolist() == [len(sentence) for sentence in case.text]
    for i in np.random.default_rng(case.seed).permutation(len(case.text)).tolist():
        which, heads = np.array([i]), case.trees.heads[i].tolist()[: len(case.text[i]) + 1]
        scores, gold, cost = examples.score(weights, which), examples.gold(which), examples.cost(which)
        assert scores.tolist() == case.scores(i, weights)
        assert gold.tolist() == case.present(i, heads)
        assert cost.tolist() == [float(kind == "arcs" and heads[nodes[1]] != nodes[0]) for kind, nodes in case.parts(i)]
        by_kind = examples.by_kind(examples.listing(i), scores)
        assert list(by_kind) == ["arcs", *case.scorer.others]
        np.testing.assert_array_equal(np.concatenate(list(by_kind.values())), scores)
        added, expected = np.zeros((2, examples.size))
        examples.add(added, which, gold)
        for part, there in zip(case.parts(i), gold.tolist(), strict=True):
            np.add.at(expected, case.indices(i, *part), there)
        np.testing.assert_array_equal(added, expected)


def best_of_all(case: World, i: int, scores: Floats, **trees: bool) -> tuple[float, list[float]]:
    """The best tree over the kept arcs, as parts."""
    n = len(case.text[i])
    best: tuple[float, list[float]] = (-np.inf, [])
    for heads in all_trees(n, **trees).tolist():
        if all(case.kept[i][heads[m], m] for m in range(1, n + 1)):
            present = case.present(i, heads)
            best = max(best, (float(scores @ np.array(present)), present))
    return best


CLASSES: list[dict[str, bool]] = [
    {"projective": projective, "single_root": single} for projective in (False, True) for single in (False, True)
]


@pytest.mark.parametrize("order", list(ORDERS))
@pytest.mark.parametrize("trees", CLASSES)
def test_the_best_tree_is_chosen(order: str, trees: dict[str, bool]) -> None:
    case = toy_world(order, 1, 5)
    examples, rng = case.examples, np.random.default_rng(2)
    structures = AutomataTrees(examples, "dual", **trees)
    for i in range(len(case.text)):
        scores = examples.score(rng.normal(size=examples.size), np.array([i]))
        expected, parts = best_of_all(case, i, scores, **trees)
        assert expected > -np.inf
        found = structures.best(scores, examples.lengths[i : i + 1], np.array([i]))
        assert found.tolist() == parts


@pytest.mark.parametrize("order", list(ORDERS))
def test_automata_choose_every_head_by_itself(order: str) -> None:
    """Not a tree in general: what they choose scores more than the best one."""
    case = toy_world(order, 3)
    examples, rng = case.examples, np.random.default_rng(4)
    structures = AutomataTrees(examples, "automata", False, True)
    better = 0
    for i in range(len(case.text)):
        which = np.array([i])
        scores = examples.score(rng.normal(size=examples.size), which)
        found = structures.best(scores, examples.lengths[which], which)
        parts = case.scorer.automata_parts(case.candidates(i), examples.by_kind(examples.listing(i), scores))
        assert scores @ found == pytest.approx(decode_heads(parts.automata())[0], rel=1e-12)
        expected, _ = best_of_all(case, i, scores, projective=False, single_root=True)
        assert scores @ found >= expected - 1e-12
        better += bool(scores @ found > expected + 1e-9)
    assert better > 0


@pytest.mark.parametrize("order", list(ORDERS))
def test_decoding_of_several_sentences(order: str) -> None:
    case, which = toy_world(order, 5), np.array([3, 0, 5, 1])
    weights = np.random.default_rng(6).normal(size=case.scorer.size)
    kept = [case.kept[i] for i in which]
    found = decode_parts(case.scorer, weights, case.trees.coded, which, kept)
    for i, one in zip(which.tolist(), found, strict=True):
        expected, parts = best_of_all(case, i, np.array(case.scores(i, weights)), projective=False, single_root=True)
        assert one.score == pytest.approx(expected, rel=1e-12)
        assert case.present(i, one.heads.tolist()) == parts
        assert one.status is not Status.ITERATION_LIMIT
    for options in ({}, {"exact": False, "iterations": 2}):
        alone, together = (
            decode_parts(case.scorer, weights, case.trees.coded, which, kept, threads=threads, **options)
            for threads in (1, 2)
        )
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one.heads, other.heads)
            assert (one.score, one.bound, one.status) == (other.score, other.bound, other.status)
