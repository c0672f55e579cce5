"""Scorers and examples of the models, against features enumerated one by one."""

from __future__ import annotations

import numpy as np
import pytest
from headway.models.arc_factored import ArcExamples, ArcScorer, ArcText, code_trees
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.features.arc_features import ArcFeatures, Block
from headway.features.coding import Coder
from headway.features.part_features import PartFeatures
from headway.features.templates import Atom, Template
from headway.models.labeller import ROLES, LabelExamples, LabelScorer, surroundings
from headway.treebank import Sentence

from ..features import naive
from ..features.strategies import part_templates, sentences, templates

Floats = NDArray[np.float64]
LABELS = ("x", "y", "z")
tables = st.lists(templates(), min_size=1, max_size=3, unique=True)
texts = st.lists(sentences(4), min_size=1, max_size=3)


def features(table: list[Template], coder: Coder, bits: int = 4) -> ArcFeatures:
    return ArcFeatures.compile([Block(template, bits, 0, 0) for template in table], coder)


def labelled(text: list[Sentence], seed: int) -> list[Sentence]:
    rng = np.random.default_rng(seed)
    return [s.with_tree(s.heads, [None, *rng.choice(LABELS, len(s)).tolist()]) for s in text]  # type: ignore[arg-type]


def whole(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(float)


def arc_mask(text: list[Sentence]) -> NDArray[np.bool_]:
    width = max(map(len, text)) + 1
    mask = np.zeros((len(text), width, width), np.bool_)
    for b, sentence in enumerate(text):
        for h, m in naive.arcs(sentence):
            mask[b, h, m] = True
    return mask


@given(texts, tables, tables)
def test_joint_scores_are_those_of_the_arc_and_of_its_label(
    text: list[Sentence], first: list[Template], second: list[Template]
) -> None:
    """The weights are one vector: the arcs', then the labels'."""
    coder = Coder.learn(text)
    arcs, joint = features(first, coder), features(second, coder, 3)
    scorer = ArcScorer(arcs, joint, LABELS)
    assert scorer.size == arcs.size + joint.size
    weights, coded, every = whole(1, scorer.size), coder.code(text), np.arange(len(text))
    scores, mask = scorer.score(weights, coded, every), arc_mask(text)
    expected = naive.score(arcs, text, coder, weights[: arcs.size])[..., None]
    expected = expected + naive.score_labels(joint, text, coder, weights[arcs.size :], 3)
    np.testing.assert_array_equal(scores[mask], expected[mask])
    amounts = whole(2, *scores.shape) * mask[..., None]
    added = np.zeros(scorer.size)
    scorer.add(added, coded, every, amounts)
    np.testing.assert_array_equal(added[: arcs.size], naive.add(arcs, text, coder, amounts.sum(axis=-1)))
    np.testing.assert_array_equal(added[arcs.size :], naive.add_labels(joint, text, coder, amounts))
    assert np.vdot(amounts, scores) == added @ weights


@given(texts, tables)
def test_arc_scores_without_labels(text: list[Sentence], table: list[Template]) -> None:
    coder = Coder.learn(text)
    arcs = features(table, coder)
    scorer = ArcScorer(arcs)
    weights, mask = whole(3, scorer.size), arc_mask(text)
    scores = scorer.score(weights, coder.code(text), np.arange(len(text)))
    np.testing.assert_array_equal(scores[mask], naive.score(arcs, text, coder, weights)[mask])


@given(texts, tables, st.booleans())
def test_gold_is_one_on_the_arcs_of_the_tree(text: list[Sentence], table: list[Template], joint: bool) -> None:
    text = labelled(text, 4)
    coder = Coder.learn(text)
    compiled = features(table, coder)
    scorer = ArcScorer(compiled, compiled, LABELS) if joint else ArcScorer(compiled)
    examples = ArcExamples(scorer, *code_trees(text, coder, LABELS))
    assert examples.size == scorer.size
    assert examples.lengths.tolist() == [len(sentence) for sentence in text]
    for which in (np.arange(len(text))[::-1], np.array([0])):
        gold = examples.gold(which)
        assert gold.shape == examples.score(np.zeros(scorer.size), which).shape
        expected = set()
        for b, i in enumerate(which.tolist()):
            heads, labels = text[i].heads, text[i].labels
            assert heads is not None
            assert labels is not None
            for m in range(1, len(text[i]) + 1):
                label = (LABELS.index(str(labels[m])),) if joint else ()
                expected.add((b, int(heads[m]), m, *label))
        assert set(zip(*(axis.tolist() for axis in np.nonzero(gold)), strict=True)) == expected
        assert set(np.unique(gold)) <= {0.0, 1.0}
        np.testing.assert_array_equal(examples.cost(which), 1.0 - gold)


@given(texts, tables, st.booleans())
def test_text_without_trees_is_scored_as_with_them(text: list[Sentence], table: list[Template], joint: bool) -> None:
    """Heads and labels, which it lacks, are all that tells the one from the other."""
    text = labelled(text, 8)
    coder = Coder.learn(text)
    compiled = features(table, coder)
    scorer = ArcScorer(compiled, compiled, LABELS) if joint else ArcScorer(compiled)
    columns = ("lemmas", "upos", "xpos", "feats")
    bare = [Sentence.from_words(s.forms, **{name: getattr(s, name) for name in columns}) for s in text]
    unannotated, examples = ArcText(scorer, coder.code(bare)), ArcExamples(scorer, *code_trees(text, coder, LABELS))
    assert not hasattr(unannotated, "gold")
    assert unannotated.size == examples.size == scorer.size
    assert unannotated.lengths.tolist() == examples.lengths.tolist() == [len(sentence) for sentence in text]
    weights = whole(9, scorer.size)
    for which in (np.arange(len(text))[::-1], np.array([0])):
        scores = unannotated.score(weights, which)
        np.testing.assert_array_equal(scores, examples.score(weights, which))
        mask = arc_mask([text[i] for i in which.tolist()])
        amounts = whole(10, *scores.shape) * (mask[..., None] if joint else mask)
        added = np.zeros((2, scorer.size))
        unannotated.add(added[0], which, amounts)
        examples.add(added[1], which, amounts)
        np.testing.assert_array_equal(added[0], added[1])
        assert added[0] @ weights == np.vdot(amounts, scores)


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
    examples = LabelExamples(scorer, *code_trees(text, coder, LABELS))
    weights, every = whole(6, scorer.size), np.arange(len(text))
    scores, gold = examples.score(weights, every), examples.gold(every)
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
    np.testing.assert_array_equal(examples.cost(every), 1.0 - gold)
    added = np.zeros(scorer.size)
    examples.add(added, every, amounts)
    np.testing.assert_array_equal(added[: compiled.size], naive.add_labels(compiled, text, coder, at_arcs))
    np.testing.assert_array_equal(added[compiled.size :], added_around)


def test_labels_are_learnt_from_the_arc_and_from_the_tree() -> None:
    text = labelled([Sentence.from_words(list("abca"), upos=list("NVNA"), heads=[-1, 2, 0, 2, 3])] * 2, 6)
    coder = Coder.learn(text)
    trees = code_trees(text, coder, LABELS)
    plain, scorer = (LabelScorer.learn(coder, trees, LABELS, tree=tree) for tree in (False, True))
    assert plain.labels == scorer.labels == LABELS
    assert plain.around is None
    assert scorer.around is not None
    assert scorer.around.roles == ROLES
    assert scorer.features.blocks == plain.features.blocks
    assert scorer.size == plain.size + scorer.around.size > plain.size > 0


def test_coded_trees_are_padded_with_minus_one() -> None:
    text = [
        Sentence.from_words(["a"], heads=[-1, 0], labels=[None, "y"]),
        Sentence.from_words(["a", "b"], heads=[-1, 2, 0], labels=[None, "new", "z"]),
    ]
    coded, heads, labels = code_trees(text, Coder.learn(text), LABELS)
    assert coded.lengths.tolist() == [1, 2]
    assert heads.tolist() == [[-1, 0, -1], [-1, 2, 0]]
    assert labels.tolist() == [[-1, 1, -1], [-1, 0, 2]]  # an unknown label is taken for the first
    assert code_trees(text, Coder.learn(text), ()).labels.tolist() == [[-1] * 3] * 2


@pytest.mark.parametrize("joint", [False, True])
def test_threads_change_nothing(joint: bool) -> None:
    rng = np.random.default_rng(7)
    text = [Sentence.from_words(rng.choice(["a", "b", "c"], 6).tolist()) for _ in range(12)]
    coder = Coder.learn(text)
    table = [Template((Atom(node, offset, "form"),), "dist") for node in "hm" for offset in (-1, 0, 1)]
    compiled = features(table, coder)
    one, four = (
        ArcScorer(compiled, compiled if joint else None, LABELS if joint else (), threads) for threads in (1, 4)
    )
    coded, every, weights = coder.code(text), np.arange(12), rng.normal(size=one.size)
    scores = one.score(weights, coded, every)
    np.testing.assert_array_equal(four.score(weights, coded, every), scores)
    amounts = rng.normal(size=scores.shape)
    added = np.zeros((2, one.size))
    one.add(added[0], coded, every, amounts)
    four.add(added[1], coded, every, amounts)
    np.testing.assert_array_equal(added[0], added[1])
