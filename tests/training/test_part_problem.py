"""Sentences as the perceptron of a higher-order model sees them: all parts in a row, the best ones by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from headway.arrays import TreeClass
from headway.inference.head_automata import decode_heads
from headway.learning.problem import ARGMAX
from headway.models.part_scorer import sentence_parts, split_by_kind
from headway.training.part_problem import PartProblem
from headway.training.settings import Decoding

from ..models.part_cases import ORDERS, World, best_of_all, toy_world, worlds


def problem_of(case: World, decoding: Decoding = "automata", trees: TreeClass | None = None) -> PartProblem:
    return PartProblem(case.scorer, case.trees.coded, case.trees.heads, case.kept, decoding, trees or TreeClass())


def test_it_offers_the_best_choice_alone() -> None:
    assert PartProblem.offers == ARGMAX


@given(worlds())
def test_a_sentence_is_all_its_parts_in_a_row(case: World) -> None:
    problem, weights = problem_of(case), case.whole(case.scorer.size)
    assert problem.size == case.scorer.size
    assert problem.lengths.tolist() == [len(sentence) for sentence in case.text]
    for i in np.random.default_rng(case.seed).permutation(len(case.text)).tolist():
        this, heads = problem.some(np.array([i])), case.trees.heads[i].tolist()[: len(case.text[i]) + 1]
        scores, gold, cost = this.score(weights), this.gold(), this.cost()
        assert this.lengths.tolist() == [len(case.text[i])]
        assert scores.tolist() == case.scores(i, weights)
        assert gold.tolist() == case.present(i, heads)
        assert cost.tolist() == [float(kind == "arcs" and heads[nodes[1]] != nodes[0]) for kind, nodes in case.parts(i)]
        by_kind = split_by_kind(this.batch, scores)
        assert list(by_kind) == ["arcs", *case.scorer.others]
        np.testing.assert_array_equal(np.concatenate(list(by_kind.values())), scores)
        added, expected = np.zeros((2, problem.size))
        this.add(added, gold)
        for part, there in zip(case.parts(i), gold.tolist(), strict=True):
            np.add.at(expected, case.indices(i, *part), there)
        np.testing.assert_array_equal(added, expected)


CLASSES = [TreeClass(projective, single) for projective in (False, True) for single in (False, True)]


@pytest.mark.parametrize("order", list(ORDERS))
@pytest.mark.parametrize("trees", CLASSES, ids=str)
def test_the_best_tree_is_chosen(order: str, trees: TreeClass) -> None:
    case = toy_world(order, 1, 5)
    problem, rng = problem_of(case, "dual", trees), np.random.default_rng(2)
    for i in range(len(case.text)):
        this = problem.some(np.array([i]))
        scores = this.score(rng.normal(size=problem.size))
        expected, parts = best_of_all(case, i, scores, trees)
        assert expected > -np.inf
        assert this.best(scores).tolist() == parts


@pytest.mark.parametrize("order", list(ORDERS))
def test_automata_choose_every_head_by_itself(order: str) -> None:
    """Not a tree in general: what they choose scores more than the best one."""
    case = toy_world(order, 3)
    problem, rng = problem_of(case), np.random.default_rng(4)
    better = 0
    for i in range(len(case.text)):
        this = problem.some(np.array([i]))
        scores = this.score(rng.normal(size=problem.size))
        found = this.best(scores)
        [parts] = sentence_parts(this.batch, scores)
        assert scores @ found == pytest.approx(decode_heads(parts.automata())[0], rel=1e-12)
        expected, _ = best_of_all(case, i, scores, TreeClass())
        assert scores @ found >= expected - 1e-12
        better += bool(scores @ found > expected + 1e-9)
    assert better > 0
