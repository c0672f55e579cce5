"""How far a model meets rules: against loops over what the parser itself says of every arc."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from headway.arrays import Floats
from headway.features.rule import ROOT
from headway.features.rules import Rule, Rules
from headway.models.arc_model import ArcModel
from headway.parallel import Threads
from headway.pipeline import Parser
from headway.training.explanation import Explanation, explain
from headway.treebank import Sentence

from ..models.model_parts import weights_of, with_weights
from ..models.toy_treebank import sentences

TEXT = sentences(90, 1, crossing=True)  # more than are taken at once
RULES = Rules(
    (
        Rule(("N",), ("D", "J"), "left", None, (0.9, 0.9)),
        Rule((ROOT,), ("V",), None, None, (0.8, 1.0)),
        Rule((ROOT,), ("N", "D"), None, None, (0.0, 0.05)),
        Rule(("V",), ("N",), None, (1, 2), (0.7, 0.8)),
        Rule(None, ("A",), "right", (2, np.inf), (0.1, 0.2)),
        Rule((ROOT, "N"), None, None, None, (0.2, 0.3)),
        Rule(("NOUN",), ("DET",), None, None, (0.5, 0.5)),
        Rule(None, ("S",), "left", None, (0.9, 1.0)),
    )
)


def random_model(seed: int, **changed: Any) -> Parser:
    """Every arc of it is unsure."""
    trained = Parser.train(TEXT[:10], epochs=1, tags="gold", **{"labels": "none", **changed})
    assert isinstance(trained.model, ArcModel)
    weights = np.random.default_rng(seed).normal(size=weights_of(trained.model).shape) / 4
    return Parser(with_weights(trained.model, weights))


def matches(rule: Rule, sentence: Sentence, head: int, word: int) -> bool:
    """The definition of the rules file, once more."""
    if rule.modifier is not None and sentence.upos[word - 1] not in rule.modifier:
        return False
    if head == 0:
        return ROOT in rule.head if rule.head else rule.direction is None and rule.distance is None
    if rule.head is not None and sentence.upos[head - 1] not in rule.head:
        return False
    if rule.direction is not None and rule.direction != ("left" if word < head else "right"):
        return False
    return rule.distance is None or rule.distance[0] <= abs(head - word) <= rule.distance[1]


def naive_units(rule: Rule, sentence: Sentence, mu: Floats) -> Iterator[tuple[float, int]]:
    """The share of every unit, and its word (0: the sentence)."""
    shares: dict[int, float] = {}
    for word in range(1, len(sentence) + 1):
        for head in range(len(sentence) + 1):
            if head != word and matches(rule, sentence, head, word):
                unit = 0 if rule.head == (ROOT,) else word
                shares[unit] = shares.get(unit, 0.0) + float(mu[head, word])
    yield from ((share, unit) for unit, share in shares.items())


@pytest.mark.parametrize(
    "settings",
    [{}, {"projective": True}, {"single_root": False}, {"learner": "loglinear", "labels": "joint"}],
    ids=["plain", "projective", "multi-root", "joint"],
)
def test_units_and_expectations_are_those_of_loops_over_marginals(settings: dict[str, Any]) -> None:
    parser = random_model(2, **settings)
    found = explain(parser.model, RULES, iter(TEXT), examples=0)
    parsed = list(parser.parse(iter(TEXT)))
    for rule, each in zip(RULES.rules, found, strict=True):
        shares = [s for one in parsed for s, _ in naive_units(rule, one.sentence, one.marginals)]
        assert (each.rule, each.units, each.examples) == (rule, len(shares), ())
        if not shares:
            assert (each.expectation, each.verdict) == (None, "unmatched")
            continue
        mean = sum(shares) / len(shares)
        assert each.expectation == pytest.approx(mean, rel=1e-12)
        low, high = rule.target
        assert each.verdict == ("below" if mean < low - 0.01 else "above" if mean > high + 0.01 else "met")
    assert {each.verdict for each in found} >= {"below", "above", "unmatched"}
    assert sum(each.verdict == "unmatched" for each in found) == 2  # no tag NOUN; nothing right of the full stop


def test_examples_are_the_worst_words_of_the_worst_sentences() -> None:
    parser = random_model(3)
    most = 4
    parsed = list(parser.parse(iter(TEXT)))
    sides = set()
    for each in explain(parser.model, RULES, TEXT, examples=most):
        low, high = each.rule.target
        too_few = each.verdict == "below" or (each.verdict == "met" and low + high >= 1)
        sides.add((each.verdict, each.rule.only_root))
        worst = []
        for number, one in enumerate(parsed):
            sign = 1 if too_few else -1
            units = [(round(sign * s, 9), unit) for s, unit in naive_units(each.rule, one.sentence, one.marginals)]
            limit = low if too_few else -high
            worst += [(key, number, unit) for key, unit in sorted(units)[:1] if key < limit]
        worst = sorted(worst)[:most]
        assert len(each.examples) == len(worst)
        for example, (key, number, unit) in zip(each.examples, worst, strict=True):
            assert example.sentence is TEXT[number]
            assert abs(example.share) == pytest.approx(abs(key), abs=2e-9)
            heads, mu = parsed[number].heads, parsed[number].marginals
            assert example.head == heads[example.word]
            if unit:
                assert example.word == unit
            elif too_few:
                assert example.head == 0
            else:
                right = [m for m in range(1, len(heads)) if matches(each.rule, example.sentence, 0, m)]
                assert example.word == max(right, key=lambda m: mu[0, m])
    assert {("below", False), ("above", False), ("below", True), ("above", True)} <= sides


def test_a_rule_that_is_met_shows_its_exceptions() -> None:
    """Of a rule that mostly holds where it does not, of a ban where it is broken."""
    parser = random_model(4)

    def about(target: tuple[float, float]) -> Explanation:
        (found,) = explain(parser.model, Rules((Rule(("N",), ("D",), None, None, target),)), TEXT)
        return found

    mean = about((0.0, 1.0)).expectation
    assert mean is not None
    mostly, rarely = about((mean, 1.0)), about((0.0, mean))
    assert mostly.verdict == rarely.verdict == "met"
    assert [example.share < mean for example in mostly.examples] == [True] * 3
    assert [example.share > mean for example in rarely.examples] == [True] * 3
    assert about((0.0, 1.0)).examples == ()


def test_near_the_target_is_met() -> None:
    rule = Rule(("N",), ("D",), None, None, (0.5, 0.6))
    states = [Explanation(rule, 9, value, ()).verdict for value in (0.489, 0.491, 0.55, 0.609, 0.611, None)]
    assert states == ["below", "met", "met", "met", "above", "unmatched"]


def test_the_first_sentence_wins_a_tie_and_threads_change_nothing() -> None:
    parser = random_model(5)
    text = [TEXT[0]] * 100
    found = explain(parser.model, RULES, text, executor=Threads(2))
    assert [[id(example.sentence) for example in each.examples] for each in found] == [
        [id(TEXT[0])] * len(each.examples) for each in found
    ]
    distinct = [dataclasses.replace(TEXT[0]) for _ in range(100)]
    for each, again in zip(found, explain(parser.model, RULES, distinct), strict=True):
        assert again.expectation == each.expectation
        assert [example.sentence for example in again.examples] == distinct[: len(each.examples)]


def test_sentences_without_words_and_no_sentences() -> None:
    parser = random_model(6)
    nothing = explain(parser.model, RULES, [Sentence.from_words([])])
    assert all(each.verdict == "unmatched" and each.units == 0 for each in nothing)
    assert explain(parser.model, RULES, []) == nothing


def grammar() -> Parser:
    return Parser.induce(TEXT[:10], states=2, labels="none")


def higher_order() -> Parser:
    return Parser.train(TEXT[:10], model="sibling", epochs=1, tags="gold", labels="none")


@pytest.mark.parametrize("make", [grammar, higher_order])
def test_a_model_of_any_kind_is_explained_by_its_own_probabilities(make: Callable[[], Parser]) -> None:
    parser = make()
    parsed = list(parser.parse(iter(TEXT[:20])))
    for rule, each in zip(RULES.rules, explain(parser.model, RULES, TEXT[:20]), strict=True):
        shares = [s for one in parsed for s, _ in naive_units(rule, one.sentence, one.marginals)]
        assert each.units == len(shares)
        assert each.expectation == (pytest.approx(sum(shares) / len(shares), rel=1e-9) if shares else None)
