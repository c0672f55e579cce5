"""Labels of given trees: scores against features enumerated one by one, and what stands around an arc."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headway.features.blocks import Block
from headway.features.coding import Coder
from headway.features.part_features import PartFeatures
from headway.features.templates import Template
from headway.models.labeller import ROLES, CodedArcs, LabelScorer, surroundings
from headway.training.data import code_trees
from headway.training.labels import LabelProblem
from headway.treebank import Sentence

from ..features import naive
from ..features.strategies import part_templates, sentences, templates
from .scorer_cases import LABELS, arc_mask, features, labelled, whole

tables = st.lists(templates(), min_size=1, max_size=3, unique=True)
texts = st.lists(sentences(4), min_size=1, max_size=3)


def naive_surroundings(heads: list[int], m: int) -> naive.Part:
    """What stands around the arc into m, by looking at every word of the tree."""
    h = heads[m]
    children = [k for k in range(1, len(heads)) if heads[k] == m]
    siblings = [k for k in range(1, len(heads)) if heads[k] == h and (k > h) == (m > h)]
    inner = [k for k in siblings if abs(k - h) < abs(m - h)]
    outer = [k for k in siblings if abs(k - h) > abs(m - h)]
    nodes: dict[str, int | None] = {
        "h": h,
        "m": m,
        "g": heads[h] if h > 0 else None,
        "s": max(inner, key=lambda k: abs(k - h), default=None),
        "n": min(outer, key=lambda k: abs(k - h), default=None),
        "c": min(children, default=None),
        "d": max(children, default=None),
    }
    return naive.Part(nodes, int(m > h), int(m > h))


@given(texts)
def test_surroundings_of_every_arc(text: list[Sentence]) -> None:
    trees = code_trees(text, Coder.learn(text), ())
    found = surroundings(trees.heads, trees.coded.lengths)
    assert found.start.tolist() == np.cumsum([0, *map(len, text)]).tolist()
    for b, heads in enumerate(trees.heads.tolist()):
        for m in range(1, len(text[b]) + 1):
            expected = naive_surroundings(heads[: len(text[b]) + 1], m)
            row = found.start[b] + m - 1
            nodes = [-1 if node is None else node for node in (expected.nodes[role] for role in ROLES)]
            assert found.nodes[row].tolist() == nodes
            assert found.ways[row].tolist() == [expected.direction, expected.distance]


@given(texts, tables, st.lists(part_templates(ROLES), max_size=3, unique=True))
def test_labels_of_given_arcs(text: list[Sentence], table: list[Template], around_table: list[Template]) -> None:
    """From the arc and, where there are templates for that, from what stands around it in the tree."""
    text = labelled(text, 5)
    coder = Coder.learn(text)
    compiled = features(table, coder)
    blocks = [Block(template, 4, 0, 0) for template in around_table]
    around = PartFeatures.compile(ROLES, blocks, coder) if blocks else None
    scorer = LabelScorer(compiled, around, LABELS)
    assert scorer.size == compiled.size + 16 * len(blocks)
    problem, weights = LabelProblem(scorer, code_trees(text, coder, LABELS)), whole(6, scorer.size)
    assert problem.size == scorer.size
    assert problem.lengths.tolist() == [len(sentence) for sentence in text]
    these = problem.some(np.arange(len(text)))
    scores, gold = these.score(weights), these.gold()
    assert scores.shape == gold.shape == (len(text), max(map(len, text)) + 1, 3)
    amounts, at_arcs = np.zeros_like(scores), np.zeros((*arc_mask(text).shape, 3))
    full = naive.score_labels(compiled, text, coder, weights, 3)
    added_around = np.zeros(scorer.size - compiled.size)
    for b, sentence in enumerate(text):
        assert sentence.heads is not None
        assert sentence.labels is not None
        heads = sentence.heads.tolist()
        for m, h in enumerate(heads[1:], start=1):
            expected = full[b, h, m].copy()
            amounts[b, m] = at_arcs[b, h, m] = whole(b + m, 3)
            part = naive_surroundings(heads, m)
            for label in range(3):
                touched = list(naive.part_indices(around, sentence, coder, part, label)) if around else []
                expected[label] += weights[compiled.size :][touched].sum()
                np.add.at(added_around, touched, amounts[b, m, label])
            np.testing.assert_array_equal(scores[b, m], expected)
            assert gold[b, m].tolist() == [float(label == sentence.labels[m]) for label in LABELS]
        assert not scores[b, len(sentence) + 1 :].any()
        assert not gold[b, len(sentence) + 1 :].any()
        assert not scores[b, 0].any()
    np.testing.assert_array_equal(these.cost(), 1.0 - gold)
    added = np.zeros(scorer.size)
    these.add(added, amounts)
    np.testing.assert_array_equal(added[: compiled.size], naive.add_labels(compiled, text, coder, at_arcs))
    np.testing.assert_array_equal(added[compiled.size :], added_around)


def test_labels_are_learnt_from_the_arc_and_from_the_tree() -> None:
    text = labelled([Sentence.from_words(list("abca"), upos=list("NVNA"), heads=[-1, 2, 0, 2, 3])] * 2, 6)
    coder = Coder.learn(text)
    trees = code_trees(text, coder, LABELS)
    plain, scorer = (
        LabelScorer.learn(coder, CodedArcs(trees.coded, trees.heads), trees.labels, LABELS, tree=tree)
        for tree in (False, True)
    )
    assert plain.labels == scorer.labels == LABELS
    assert plain.around is None
    assert scorer.around is not None
    assert scorer.around.roles == ROLES
    assert scorer.features.blocks == plain.features.blocks
    assert scorer.size == plain.size + scorer.around.size > plain.size > 0
