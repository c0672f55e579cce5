"""How far a model meets rules about arcs, and the sentences that speak most against them (druck2009 section 1.1).

A unit's *share* is the probability, under the model, that its head matches the rule: the sum of its marginals over the
heads that match; for a rule about the root alone, whose units are sentences, the expected number of matching words
there. The *expectation* of a rule is the mean over its units, the quantity that generalized expectation trains.

An example is the unit of a sentence whose share lies farthest outside the target: below it where the rule holds too
rarely, above it where it holds too often; of a rule that is met, on the side where exceptions to it are. Sentences are
taken some at a time, O(n^3) each for the marginals and O(K n^2) for K rules; nothing is kept but the examples.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from headway.arrays import Bools, Floats, Ints
from headway.features.coding import Coder
from headway.features.rule_features import RuleFeatures
from headway.features.rules import Rule, Rules
from headway.models.portions import portions
from headway.models.protocol import Options, Prediction, TreeModel
from headway.parallel import SERIAL, Executor
from headway.treebank import Sentence

Verdict = Literal["met", "below", "above", "unmatched"]

TOLERANCE = 0.01  # an expectation this close to its target meets it
_SENTENCES_AT_ONCE = 64
_DIGITS = 9  # shares that differ beyond are the same, so that rounding does not choose among examples
_TOO_FEW, _TOO_MANY = 0, 1  # the sides: units that match too rarely, and those that match too often


@dataclass(frozen=True)
class Example:
    """A word of a sentence, its head in the model's best tree, and the share of the unit it stands for.

    Of a rule about the root that holds too rarely, the word is the one that the tree has there.
    """

    sentence: Sentence
    word: int
    head: int
    share: float


@dataclass(frozen=True)
class Explanation:
    """One rule: how many units it has in the text, its expectation under the model (None without any), examples."""

    rule: Rule
    units: int
    expectation: float | None
    examples: tuple[Example, ...]

    @property
    def verdict(self) -> Verdict:
        """Whether the expectation is in the target, give or take `TOLERANCE`; `unmatched` where nothing matches."""
        return "unmatched" if self.expectation is None else _verdict(self.rule, self.expectation)


def explain(
    model: TreeModel,
    rules: Rules,
    sentences: Iterable[Sentence],
    *,
    examples: int = 3,
    executor: Executor = SERIAL,
) -> tuple[Explanation, ...]:
    """Every rule, in their order, with at most so many `examples`, the worst first, one per sentence.

    The tags are those of the sentences; heads in them are ignored.
    """
    kept = _Kept(rules, examples)
    units, totals = np.zeros((2, len(rules)))
    for portion in portions((sentence for sentence in sentences if len(sentence)), _SENTENCES_AT_ONCE):
        coder = Coder.learn(portion)
        bound = RuleFeatures.of(rules, coder, coder.code(portion))
        units += bound.units
        for i, found in enumerate(model.predict(portion, Options(), executor)):
            shares = _shares(bound.matches(i), found.distribution.marginals, kept.about_root)
            totals += shares.values.sum(axis=1)
            kept.offer(shares, portion[i], found)
    expectations = (totals / np.maximum(units, 1)).tolist()
    return tuple(
        Explanation(rule, int(count), expectation if count else None, kept.of(k, expectation))
        for k, (rule, count, expectation) in enumerate(zip(rules.rules, units.tolist(), expectations, strict=True))
    )


def _verdict(rule: Rule, expectation: float) -> Verdict:
    low, high = rule.target
    if expectation < low - TOLERANCE:
        return "below"
    return "above" if expectation > high + TOLERANCE else "met"


class _Shares(NamedTuple):
    """Of K rules in a sentence, (K, n+1): the share of every unit, and where there is one. Units are words; that of a
    rule about the root is at node 0, and `likeliest` (K,) the word most probable to match it."""

    values: Floats
    exists: Bools
    likeliest: Ints


def _shares(matches: Bools, mu: Floats, about_root: Bools) -> _Shares:
    """From (K, n+1, n+1) matches and marginals (n+1, n+1)."""
    values = np.einsum("khm,hm->km", matches, mu)
    exists: Bools = np.any(matches, axis=1)
    likeliest = values.argmax(axis=1)
    values[about_root, 0] = values[about_root].sum(axis=1)
    exists[about_root, 0] = exists[about_root].any(axis=1)
    values[about_root, 1:], exists[about_root, 1:] = 0.0, False
    return _Shares(values, exists, likeliest)


@dataclass
class _Kept:
    """The worst examples so far, of each rule on either side."""

    rules: Rules
    most: int
    about_root: Bools = field(init=False)
    limits: Floats = field(init=False)
    found: list[list[list[tuple[float, Example]]]] = field(init=False)

    def __post_init__(self) -> None:
        rules = self.rules.rules
        self.about_root = np.array([rule.only_root for rule in rules])
        self.limits = np.array([[rule.target[0] for rule in rules], [-rule.target[1] for rule in rules]], np.float64)
        if self.most < 1:
            self.limits[:] = -np.inf
        self.found = [[[] for _ in rules] for _ in (_TOO_FEW, _TOO_MANY)]

    def offer(self, shares: _Shares, sentence: Sentence, found: Prediction) -> None:
        """Keep what lies farther outside of a target than what was kept; the earlier sentence where they are equal."""
        rounded = shares.values.round(_DIGITS)
        keys = np.where(shares.exists, np.stack([rounded, -rounded]), np.inf)  # (sides, rules, nodes), worst first
        for side, k in np.argwhere(keys.min(axis=2) < self.limits).tolist():
            unit = int(keys[side, k].argmin())
            word = unit or _on_root(found.heads, int(shares.likeliest[k]), side)
            example = Example(sentence, word, int(found.heads[word]), float(shares.values[k, unit]))
            kept = self.found[side][k]
            kept.append((float(keys[side, k, unit]), example))
            kept.sort(key=lambda entry: entry[0])
            del kept[self.most :]
            if len(kept) == self.most:
                self.limits[side, k] = kept[-1][0]

    def of(self, k: int, expectation: float) -> tuple[Example, ...]:
        """The examples of the side that is wrong; of a rule that is met, of the side with the exceptions."""
        rule = self.rules.rules[k]
        verdict = _verdict(rule, expectation)
        often = verdict == "below" or (verdict == "met" and sum(rule.target) >= 1)
        return tuple(example for _, example in self.found[_TOO_FEW if often else _TOO_MANY][k])


def _on_root(heads: Ints, likeliest: int, side: int) -> int:
    """What is wrong about the root: the word that is there instead, or the match that is too likely there."""
    return likeliest if side == _TOO_MANY else int(np.flatnonzero(heads == 0)[0])
