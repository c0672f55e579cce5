"""Classes of tags: each merge is the one of least loss, found by trying all pairs."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.features.tag_classes import NO_CLASSES, TagClasses, Tree

Contexts = Counter[tuple[str, int, str]]


@st.composite
def tagged_trees(draw: st.DrawFn) -> list[Tree]:
    trees = []
    for _ in range(draw(st.integers(1, 5))):
        tags = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6))
        heads = [draw(st.integers(-1, m - 1)) for m in range(1, len(tags) + 1)]
        trees.append((tags, np.array([-1, *heads])))
    return trees


def contexts_of(trees: list[Tree]) -> dict[str, Contexts]:
    found: dict[str, Contexts] = {tag: Counter() for tags, _ in trees for tag in tags}
    for tags, heads in trees:
        for m, h in enumerate(heads.tolist()):
            if h < 0:
                continue
            head = "ROOT" if h == 0 else tags[h - 1]
            found[tags[m - 1]]["below", m > h, head] += 1
            if h > 0:
                found[head]["above", m > h, tags[m - 1]] += 1
    return found


def nats(contexts: Contexts) -> float:
    size = contexts.total()
    return -sum(count * log(count / size) for count in contexts.values())


def loss(a: Contexts, b: Contexts) -> float:
    return (nats(a + b) - nats(a) - nats(b)) / sqrt(max(1, a.total() + b.total()))


@given(tagged_trees())
def test_every_merge_loses_least(trees: list[Tree]) -> None:
    contexts = contexts_of(trees)
    count = len(contexts)
    before = TagClasses.learn(trees, count).classes
    assert before == {tag: tag for tag in contexts}
    for fewer in range(count - 1, 0, -1):
        after = TagClasses.learn(trees, fewer).classes
        members = {name: [tag for tag in after if after[tag] == name] for name in set(after.values())}
        assert len(members) == fewer
        assert all(name == min(tags) for name, tags in members.items())
        sums = {name: sum((contexts[t] for t in before if before[t] == name), Counter()) for name in before.values()}
        [joined] = [{before[tag] for tag in tags} for tags in members.values() if len({before[t] for t in tags}) > 1]
        a, b = joined
        least = min(loss(sums[x], sums[y]) for x, y in combinations(sums, 2))
        assert loss(sums[a], sums[b]) == pytest.approx(least, abs=1e-9)
        before = after


def test_more_classes_than_tags_are_the_tags() -> None:
    trees = [(("A", "B"), np.array([-1, 2, 0]))]
    assert TagClasses.learn(trees, 9).classes == {"A": "A", "B": "B"}
    assert NO_CLASSES.classes == {}


@pytest.mark.parametrize("damaged", [[], {"A": 3}, {"A": None}])
def test_damaged_classes_are_refused(damaged: object) -> None:
    with pytest.raises(ValueError, match="the classes of tags"):
        TagClasses.from_data(damaged)  # type: ignore[arg-type]
