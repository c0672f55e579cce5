"""Parts of more than one arc: scores against features enumerated one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from headway.errors import TemplateError
from headway.features.coding import Coder
from headway.features.templates import load_templates, parse_templates
from headway.models.part_scorer import PartScorer, split_by_kind
from headway.training.data import code_trees

from ..features import naive
from ..inference.parts_oracle import parts_of
from .part_cases import ARC_TABLE, ORDERS, ROLES, World, naive_part, worlds
from .toy_treebank import sentences as toy_sentences


@given(worlds())
def test_scores_of_all_parts(case: World) -> None:
    """Of several sentences at once, in any order."""
    weights = case.whole(case.scorer.size)
    which = np.random.default_rng(case.seed).permutation(len(case.text))
    batch = case.scorer.batch(case.trees.coded.some(which), [case.kept[i] for i in which])
    row = case.scorer.scores(weights, batch)
    scores = split_by_kind(batch, row)
    np.testing.assert_array_equal(np.concatenate(list(scores.values())), row)
    assert list(scores) == ["arcs", *case.scorer.others]
    expected: dict[str, list[float]] = {name: [] for name in scores}
    for i in which.tolist():
        for (kind, _), score in zip(case.parts(i), case.scores(i, weights), strict=True):
            expected[kind].append(score)
    assert {name: values.tolist() for name, values in scores.items()} == expected


@given(worlds())
def test_adding_to_the_weights(case: World) -> None:
    """What is left in weights that were zero; it is the adjoint of scoring."""
    batch = case.scorer.batch(case.trees.coded, case.kept)
    weights, rng = case.whole(case.scorer.size), np.random.default_rng(case.seed)
    scores = case.scorer.scores(weights, batch)
    amounts = rng.integers(-2, 3, len(scores)).astype(float)
    added, expected = np.zeros((2, case.scorer.size))
    case.scorer.pullback(added, batch, amounts)
    remaining = {name: iter(values.tolist()) for name, values in split_by_kind(batch, amounts).items()}
    for i in range(len(case.text)):
        for kind, nodes in case.parts(i):
            np.add.at(expected, case.indices(i, kind, nodes), next(remaining[kind]))
    np.testing.assert_array_equal(added, expected)
    assert amounts @ scores == added @ weights


@pytest.mark.parametrize("order", list(ORDERS))
def test_blocks_are_sized_from_the_parts_of_the_trees(order: str) -> None:
    text = toy_sentences(8, 1, crossing=True)
    coder = Coder.learn(text)
    trees = code_trees(text, coder, ())
    parts = [
        template
        for name in ORDERS[order]
        for template in parse_templates(" ".join(f"{role}.xpos" for role in ROLES[name]) + " | dir dist")
    ]
    scorer = PartScorer.learn(ARC_TABLE, parts, coder, trees.coded, trees.heads)
    assert tuple(scorer.others) == ORDERS[order]
    assert scorer.order == ("sibling" if order == "sibling" else "grandsibling")
    assert tuple(kind.name for kind in scorer.kinds) == ORDERS[order]
    assert scorer.size == scorer.arcs.size + sum(features.size for features in scorer.others.values())
    assert 0.0 <= scorer.collisions < 1.0
    for name, features in scorer.others.items():
        assert features.roles == ROLES[name]
        for block in features.blocks:
            keys = set()
            for sentence in text:
                assert sentence.heads is not None
                for part in parts_of(tuple(sentence.heads.tolist()))[name]:
                    head = ROLES[name].index("h")
                    nodes = tuple(-1 if i > head and node == part[head] else node for i, node in enumerate(part))
                    keys.add(naive.part_key(block.template, sentence, coder, naive_part(ROLES[name], nodes)))
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
