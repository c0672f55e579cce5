"""Matching rules: every count and sum against the definition, word by word in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.errors import ShapeError
from headway.features.coding import Coder
from headway.features.rule_features import RuleFeatures
from headway.features.rules import Rule, Rules, parse_rules, rules_from_trees
from headway.treebank import Sentence

from .naive import fine_tag
from .strategies import sentences
from .test_rules import any_rules

Floats = NDArray[np.float64]


def tag_of(sentence: Sentence, node: int, rules: Rules, coder: Coder) -> str | None:
    """None for a tag the coder never saw."""
    tag = sentence.upos[node - 1] if rules.tags == "upos" else fine_tag(sentence, node)
    return tag if tag in coder.fields[rules.tags] else None


def matches(rule: Rule, rules: Rules, sentence: Sentence, h: int, m: int, coder: Coder) -> bool:
    """The definition, arc by arc."""
    if m == 0 or m == h:
        return False
    if rule.modifier is not None and tag_of(sentence, m, rules, coder) not in rule.modifier:
        return False
    if h == 0:
        if rule.head is not None:
            return "ROOT" in rule.head
        return rule.direction is None and rule.distance is None
    if rule.head is not None and tag_of(sentence, h, rules, coder) not in rule.head:
        return False
    if rule.direction is not None and rule.direction != ("left" if m < h else "right"):
        return False
    return rule.distance is None or rule.distance[0] <= abs(h - m) <= rule.distance[1]


def units(rule: Rule, rules: Rules, text: list[Sentence], coder: Coder) -> int:
    counts = []
    for sentence in text:
        nodes = range(len(sentence) + 1)
        words = [m for m in nodes if any(matches(rule, rules, sentence, h, m, coder) for h in nodes)]
        counts.append(min(1, len(words)) if rule.head is not None and set(rule.head) == {"ROOT"} else len(words))
    return sum(counts)


texts = st.lists(sentences(), min_size=1, max_size=4)


@given(any_rules, texts, texts, st.data())
def test_all_against_the_definition(
    rules: Rules, seen: list[Sentence], new: list[Sentence], data: st.DataObject
) -> None:
    coder = Coder.learn(seen)
    text = [*new, Sentence.from_words([]), *seen]
    features = RuleFeatures.of(rules, coder, coder.code(text))
    assert len(features) == len(rules)
    assert features.units.tolist() == [units(rule, rules, text, coder) for rule in rules.rules]
    assert features.low.tolist() == [rule.target[0] for rule in rules.rules]
    assert features.high.tolist() == [rule.target[1] for rule in rules.rules]
    assert features.weights.tolist() == [rule.weight for rule in rules.rules]

    expected = []
    for i, sentence in enumerate(text):
        nodes = range(len(sentence) + 1)
        own = [[[matches(r, rules, sentence, h, m, coder) for m in nodes] for h in nodes] for r in rules.rules]
        assert features.matches(i).tolist() == own
        expected.append(np.array(own, np.float64))

    which = np.array(data.draw(st.lists(st.integers(0, len(text) - 1), max_size=5)), np.int64)
    width = max((len(text[i]) for i in which), default=0) + 1
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    mu = np.full((len(which), width + 1, width + 1), np.nan)  # padding must not be read
    coefficients = rng.normal(size=len(rules))
    each, sums = np.zeros((len(which), len(rules))), np.zeros((len(which), width, width))
    for b, i in enumerate(which):
        n = len(text[i])
        mu[b, : n + 1, : n + 1] = rng.random((n + 1, n + 1))
        each[b] = (expected[i] * mu[b, : n + 1, : n + 1]).sum(axis=(1, 2))
        sums[b, : n + 1, : n + 1] = np.tensordot(coefficients, expected[i], 1)
        mu[b, :, 0] = np.nan
        np.fill_diagonal(mu[b], np.nan)
    totals = each.sum(axis=0)
    np.testing.assert_allclose(features.totals_of_each(which, mu), each, rtol=1e-12, atol=0)
    np.testing.assert_allclose(features.totals(which, mu), totals, rtol=1e-12, atol=0)
    np.testing.assert_allclose(features.totals(which, mu[:, :width, :width]), totals, rtol=1e-12, atol=0)
    found = features.combined(which, coefficients)
    assert found.shape == sums.shape
    np.testing.assert_allclose(found, sums, rtol=1e-12, atol=1e-14)


def bound(text: str, *tagged: str) -> RuleFeatures:
    words = [tags.split() for tags in tagged]
    plain = [Sentence.from_words(tags, upos=tags) for tags in words]
    coder = Coder.learn(plain)
    return RuleFeatures.of(parse_rules(text, "my.toml"), coder, coder.code(plain))


def arcs(features: RuleFeatures, k: int = 0, i: int = 0) -> list[tuple[int, ...]]:
    return [tuple(arc) for arc in np.argwhere(features.matches(i)[k]).tolist()]


def test_direction_and_distance_by_hand() -> None:
    rule = '[[rule]]\nhead = "N"\nmodifier = "D"\ntarget = 1\n'
    tags = "D D N V N D"
    assert arcs(bound(rule, tags)) == [(3, 1), (3, 2), (3, 6), (5, 1), (5, 2), (5, 6)]
    assert arcs(bound(rule + 'direction = "left"', tags)) == [(3, 1), (3, 2), (5, 1), (5, 2)]
    assert arcs(bound(rule + 'direction = "right"', tags)) == [(3, 6), (5, 6)]
    assert arcs(bound(rule + "distance = [2, 3]", tags)) == [(3, 1), (3, 6), (5, 2)]
    assert arcs(bound(rule + "distance = [4, inf]", tags)) == [(5, 1)]
    assert arcs(bound(rule + "distance = 1", tags)) == [(3, 2), (5, 6)]
    assert arcs(bound(rule + f"distance = [1, {10**30}]", tags)) == arcs(bound(rule, tags))
    assert arcs(bound(rule + f"distance = {10**30}", tags)) == []


def test_the_root_by_hand() -> None:
    rule = '[[rule]]\nmodifier = "V"\ntarget = 1\n'
    tags = "V N V"
    assert arcs(bound(rule + 'head = "ROOT"', tags)) == [(0, 1), (0, 3)]
    assert arcs(bound(rule + 'head = ["ROOT", "N"]\ndirection = "left"', tags)) == [(0, 1), (0, 3), (2, 1)]
    assert arcs(bound(rule + 'head = ["ROOT", "N"]\ndistance = 5', tags)) == [(0, 1), (0, 3)]
    assert arcs(bound(rule + 'direction = "left"', tags)) == [(2, 1), (3, 1)]
    assert arcs(bound(rule + "distance = 2", tags)) == [(1, 3), (3, 1)]


def test_units_by_hand() -> None:
    """Words that have a candidate, not all that match; sentences for the root."""
    text = """
        [[rule]]
        head = "ROOT"
        modifier = "V"
        target = 1
        [[rule]]
        head = ["ROOT", "N"]
        modifier = "V"
        target = 1
        [[rule]]
        head = "N"
        modifier = "V"
        direction = "left"
        target = 1
        [[rule]]
        head = "N"
        target = 1
    """
    features = bound(text, "V N V", "V V", "N", "N N")
    assert features.units.tolist() == [2, 4, 1, 2 + 0 + 0 + 2]


def test_marginals_of_a_tree_give_its_share() -> None:
    """Rules estimated from trees hold of those trees, but for the smoothing."""
    rows = [("D N V D N", [2, 3, 0, 5, 3]), ("N V", [2, 0]), ("D D N", [3, 3, 0])]
    trees = [Sentence.from_words(t.split(), upos=t.split(), heads=[-1, *heads]) for t, heads in rows]
    coder = Coder.learn(trees)
    features = RuleFeatures.of(rules_from_trees(trees, at_least=1), coder, coder.code(trees))
    mu = np.zeros((3, 6, 6))
    for b, tree in enumerate(trees):
        for m in range(1, len(tree) + 1):
            assert tree.heads is not None
            mu[b, tree.heads[m], m] = 1.0
    totals = features.totals(np.arange(3), mu)
    np.testing.assert_allclose((totals + 0.5) / (features.units + 1), features.low)


def test_any_order_and_memory_layout() -> None:
    features = bound('[[rule]]\nhead = "N"\ntarget = 1', "D N", "N D D", "N")
    which = np.array([2, 1])
    mu = np.asfortranarray(np.random.default_rng(1).random((2, 4, 4)))
    assert features.totals(which, mu) == pytest.approx([mu[1, 1, 2] + mu[1, 1, 3]])
    assert features.totals(which, mu.astype(np.float32)) == pytest.approx([mu[1, 1, 2] + mu[1, 1, 3]], rel=1e-6)
    assert features.combined(which, np.array([2])).tolist()[1][1] == [0, 0, 2, 2]
    nothing = np.zeros(0, np.int64)
    assert features.totals(nothing, np.zeros((0, 1, 1))).tolist() == [0]
    assert features.combined(nothing, np.ones(1)).shape == (0, 1, 1)


def test_shapes_are_checked() -> None:
    features = bound('[[rule]]\nhead = "N"\ntarget = 1', "D N", "N D D")
    which = np.arange(2)
    for shape in ((2, 3, 3), (1, 4, 4), (2, 4, 5), (4, 4)):
        with pytest.raises(ShapeError, match=r"mu has shape .*; expected \(2, 4, 4\)"):
            features.totals(which, np.zeros(shape))
    for size in ((2,), (1, 1), ()):
        with pytest.raises(ShapeError, match=r"coefficients have shape .*; expected \(1,\)"):
            features.combined(which, np.zeros(size))


def test_words_of_unknown_tags_are_still_words() -> None:
    coder = Coder.learn([Sentence.from_words(["a"], upos=["N"])])
    coded = coder.code([Sentence.from_words(["a", "b"], upos=["N", "Z"])])
    rules = parse_rules('[[rule]]\nhead = "N"\ntarget = 1\n[[rule]]\nhead = "N"\nmodifier = "Z"\ntarget = 1')
    features = RuleFeatures.of(rules, coder, coded)
    assert arcs(features, 0) == [(1, 2)]
    assert arcs(features, 1) == []
    assert features.units.tolist() == [1, 0]


def test_no_sentences() -> None:
    coder = Coder.learn([])
    features = RuleFeatures.of(parse_rules('[[rule]]\nhead = "N"\ntarget = 1'), coder, coder.code([]))
    assert features.units.tolist() == [0]
    assert features.problems() == [
        'rules, line 1: rule "any word on N" matches nothing and names tags that the sentences do not have: N; '
        "the upos tags are none"
    ]


def test_problems_name_rule_file_line_and_tag() -> None:
    text = """[[rule]]
head = "NOUN"
modifier = "DET"
target = 1
[[rule]]
name = "typing"
head = ["noun", "VERB"]
modifier = "DETT"
target = 1

[[rule]]
head = ["NOUN", "Q"]
modifier = "DET"
target = 1
[[rule]]
head = "NOUN"
modifier = "DET"
distance = 9
target = 1
[[rule]]
head = "ROOT"
modifier = "VERBS"
target = 1
"""
    assert bound(text, "DET NOUN VERB", "NOUN VERB").problems() == [
        'my.toml, line 5: rule "typing" matches nothing and names tags that the sentences do not have: '
        "noun (did you mean NOUN?), DETT (did you mean DET?)",
        'my.toml, line 11: rule "DET on NOUN/Q" names tags that the sentences do not have: Q; '
        "the upos tags are DET, NOUN, VERB",
        'my.toml, line 15: rule "DET on NOUN, 9 words away" matches nothing in 2 sentences; '
        "check its tags, direction and distance",
        'my.toml, line 20: rule "VERBS on ROOT" matches nothing and names tags that the sentences do not have: '
        "VERBS (did you mean VERB?)",
    ]


def test_problems_without_a_file_and_with_many_tags() -> None:
    many = [f"T{i:02d}" for i in range(30)]
    text = [Sentence.from_words(many, upos=many)]
    coder = Coder.learn(text)
    rules = Rules((Rule(("q",), None, None, None, (1, 1)), Rule(("T01",), ("T02",), None, None, (1, 1))))
    (problem,) = RuleFeatures.of(rules, coder, coder.code(text)).problems()
    assert problem.startswith('rules: rule "any word on q" matches nothing and names tags')
    assert problem.endswith("T18, T19, ...")
