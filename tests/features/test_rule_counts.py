"""Rules from trees: by hand, and against counting every candidate on its own."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import RulesError, TreebankError
from headway.features.rule import DIRECTIONS
from headway.features.rules import rules_from_trees
from headway.treebank import Sentence

from .naive import fine_tag
from .strategies import TAGS, sentences


def tagged(tags: str, heads: Sequence[int]) -> Sentence:
    words = tags.split()
    return Sentence.from_words(words, upos=words, heads=[-1, *heads])


def test_rules_from_trees_by_hand() -> None:
    trees = [tagged("D N V D N", [2, 3, 0, 5, 3]), tagged("N V", [2, 0]), tagged("D D N", [3, 3, 0])]
    found = rules_from_trees(trees, most=100, at_least=1)
    assert [(rule.name, *rule.target) for rule in found.rules] == [
        ("D left of N", 4.5 / 5, 4.5 / 5),  # gain 4 log(4.5 / (2/5 + 1/5 + 1/3 + 1/3 + 0.5)) = 3.74
        ("V on ROOT", 2.5 / 3, 2.5 / 3),  # 2 log(2.5 / (1/5 + 1/2 + 0.5)) = 1.47
        ("N left of V", 2.5 / 3, 2.5 / 3),  # the same
        ("N right of V", 1.5 / 2, 1.5 / 2),  # log(1.5 / (1/5 + 0.5)) = 0.76
    ]  # one N in three sentences is the root: less than by chance, 2/5 + 1/2 + 1/3
    assert found.source == "3 annotated sentences"
    assert [rule.name for rule in rules_from_trees(trees, most=2, at_least=1).rules] == ["D left of N", "V on ROOT"]
    assert [rule.name for rule in rules_from_trees(trees, at_least=3).rules] == ["D left of N"]


def naive_estimates(trees: list[Sentence], fine: bool) -> dict[tuple[str, str, str], tuple[float, float, int]]:
    """Target, gain and units of every candidate, each counted on its own over all arcs of all trees."""
    kinds = [(h, m, d) for h in TAGS for m in TAGS for d in DIRECTIONS] + [("ROOT", m, "") for m in TAGS]
    estimates = {}
    for head, modifier, direction in kinds:
        arcs = units = 0
        chance = 0.0
        for tree in trees:
            n = len(tree)
            assert tree.heads is not None
            tag = {i: fine_tag(tree, i) if fine else tree.upos[i - 1] for i in range(1, n + 1)}
            words = [m for m in tag if tag[m] == modifier]
            if head == "ROOT":
                units += bool(words)
                chance += len(words) / n
                arcs += any(tree.heads[m] == 0 for m in words)
                continue
            for m in words:
                side = range(m + 1, n + 1) if direction == "left" else range(1, m)
                heads = [h for h in side if tag[h] == head]
                units += bool(heads)
                chance += len(heads) / n
                arcs += tree.heads[m] in heads
        target = (arcs + 0.5) / (units + 1)
        estimates[head, modifier, direction] = (target, arcs * log(target * (units + 1) / (chance + 0.5)), units)
    return estimates


@given(st.lists(sentences(), min_size=1, max_size=4), st.integers(1, 8), st.integers(0, 3), st.booleans())
def test_rules_from_trees_against_counting(trees: list[Sentence], most: int, at_least: int, fine: bool) -> None:
    estimates = naive_estimates(trees, fine)
    useful = {key: row for key, row in estimates.items() if row[2] >= max(at_least, 1) and row[1] > 1e-12}
    try:
        found = rules_from_trees(trees, most=most, at_least=at_least, tags="xpos" if fine else "upos")
    except RulesError:
        assert not useful
        return
    assert found.tags == ("xpos" if fine else "upos")
    gains = []
    for rule in found.rules:
        assert rule.head is not None
        assert rule.modifier is not None
        assert rule.distance is None
        target, gain, units = estimates[rule.head[0], rule.modifier[0], rule.direction or ""]
        assert rule.target == pytest.approx((target, target), abs=1e-12)
        assert gain > -1e-12
        assert units >= at_least
        gains.append(gain)
    best = sorted((row[1] for row in useful.values()), reverse=True)[:most]
    assert gains[: len(best)] == pytest.approx(best, abs=1e-9)


def test_rules_from_too_few_trees() -> None:
    tree = tagged("D N", [2, 0])
    with pytest.raises(RulesError, match=r"^1 annotated sentences give no rule with most=20 and at_least=5; annotate"):
        rules_from_trees([tree])
    with pytest.raises(RulesError, match=r"^0 annotated sentences give no rule"):
        rules_from_trees([])
    with pytest.raises(RulesError, match="most=-1"):
        rules_from_trees([tree] * 9, most=-1)
    with pytest.raises(TreebankError, match="has no heads"):
        rules_from_trees([Sentence.from_words(["a"])])
