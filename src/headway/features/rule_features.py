"""Rules bound to coded sentences: which arcs match which rules, compiled.

What a rule says, and what its units are, is in `headway.features.rule`. Tags that no rule names are one class of tags;
every other tag, and the root, is a class of its own. A table over (class of the head, class of the modifier, side)
lists the rules that may match such an arc, each with its band of distances; so an arc costs one look into the table and
one test for each rule listed there: O(n^2) per sentence, times the few rules that share a pair of tags.

Arrays over arcs are (B, N+1, N+1), padded, head first. Column 0, the diagonal and padding match nothing, and are never
read. Of the tags in a rule, those the coder does not know match nothing; a word whose tag it does not know is still
"any word".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Floats, Ints
from headway.errors import ShapeError
from headway.features.coding import UNKNOWN, Coded, Coder
from headway.features.numbering import Codes
from headway.features.rule import ROOT, Rule
from headway.features.rules import Rules, nearest
from headway.inference.jit import kernel, part

_ROOT_CLASS = 0
_FAR = 1 << 40  # beyond any distance
_MOST_TAGS_SHOWN = 20


class _Table(NamedTuple):
    """`classes[code]`; the entries of (head's class h, modifier's class m, side s) are start[c] .. start[c+1]-1 with
    c = (h size + m) 2 + s and s = 1 where the modifier stands right of its head. Entry e is rule[e], for distances
    low[e] .. high[e]."""

    classes: Ints
    size: int
    start: Ints
    rule: Ints
    low: Ints
    high: Ints


@dataclass(frozen=True, eq=False, repr=False)
class RuleFeatures:
    """K rules over coded sentences: targets from `low` to `high`, `weights`, and `units`, how many words (or
    sentences) each rule speaks of in all of them; (K,) each. `known` are the tags of the coder."""

    rules: Rules
    coded: Coded
    codes: Codes
    known: tuple[str, ...]
    table: _Table
    low: Floats
    high: Floats
    weights: Floats
    units: Floats

    @classmethod
    def of(cls, rules: Rules, coder: Coder, coded: Coded) -> RuleFeatures:
        """The rules over sentences that this coder coded; O(arcs)."""
        numbers = coder.fields[rules.tags]
        codes = coded.nodes.codes[coder.names.index(rules.tags)]
        table = _table(rules, numbers)
        per_sentence = np.array([rule.only_root for rule in rules.rules])
        return cls(
            rules=rules,
            coded=coded,
            codes=codes,
            known=tuple(numbers),
            table=table,
            low=np.array([rule.target[0] for rule in rules.rules], np.float64),
            high=np.array([rule.target[1] for rule in rules.rules], np.float64),
            weights=np.array([rule.weight for rule in rules.rules], np.float64),
            units=_units(table, codes, coded.roots, coded.lengths, per_sentence),
        )

    def only(self, which: Ints) -> RuleFeatures:
        """The rules over the sentences `which`, for somebody who has no others; `units` stay those of all."""
        codes = self.codes[self.coded.columns(which)]
        return replace(self, coded=self.coded.only(which), codes=codes)

    def __len__(self) -> int:
        """The number of rules."""
        return len(self.rules)

    def totals(self, which: Ints, mu: Floats) -> Floats:
        """(K,): the sum of mu[b, h, m] over the arcs of the sentences `which` that match each rule."""
        totals: Floats = self._sums(which, mu, np.zeros(len(which), np.int64), 1)[0]
        return totals

    def totals_of_each(self, which: Ints, mu: Floats) -> Floats:
        """(B, K): the same, sentence by sentence."""
        return self._sums(which, mu, np.arange(len(which)), len(which))

    def _sums(self, which: Ints, mu: Floats, rows: Ints, count: int) -> Floats:
        """(count, K), where the sum over sentence b of `which` goes to rows[b]."""
        width = self._width(which)
        if mu.ndim != 3 or mu.shape[0] != len(which) or mu.shape[1] != mu.shape[2] or mu.shape[1] < width:
            raise ShapeError(f"mu has shape {mu.shape}; expected ({len(which)}, {width}, {width}) for these sentences")
        lengths, roots = self.coded.lengths[which], self.coded.roots[which]
        sums = np.zeros((count, len(self)))
        _add_sums(self.table, self.codes, roots, lengths, np.ascontiguousarray(mu, np.float64), rows, sums)
        return sums

    def combined(self, which: Ints, coefficients: Floats) -> Floats:
        """(B, N+1, N+1): the sum of the coefficients (K,) of the rules that each arc matches."""
        if coefficients.shape != (len(self),):
            raise ShapeError(f"coefficients have shape {coefficients.shape}; expected ({len(self)},), one per rule")
        width = self._width(which)
        sums = np.zeros((len(which), width, width))
        given = np.ascontiguousarray(coefficients, np.float64)
        _combine(self.table, self.codes, self.coded.roots[which], self.coded.lengths[which], given, sums)
        return sums

    def matches(self, i: int) -> NDArray[np.bool_]:
        """(K, n+1, n+1): which arcs of sentence i match each rule."""
        n = int(self.coded.lengths[i])
        found = np.zeros((len(self), n + 1, n + 1), np.bool_)
        _match(self.table, self.codes, self.coded.roots[i], n, found)
        return found

    def problems(self) -> list[str]:
        """One sentence for each rule that names a tag the coder does not know, or that matches nothing here."""
        found = (self._problem(k, rule) for k, rule in enumerate(self.rules.rules))
        return [problem for problem in found if problem is not None]

    def _problem(self, k: int, rule: Rule) -> str | None:
        line = "" if rule.line is None else f", line {rule.line}"
        place = f'{self.rules.source}{line}: rule "{rule.name}"'
        nothing = "" if self.units[k] else "matches nothing and "
        unknown = [tag for tag in dict.fromkeys(_named(rule)) if tag not in self.known]
        if unknown:
            return f"{place} {nothing}names tags that the sentences do not have: {self._explained(unknown)}"
        if nothing:
            return f"{place} matches nothing in {len(self.coded)} sentences; check its tags, direction and distance"
        return None

    def _explained(self, unknown: list[str]) -> str:
        """Unknown tags, each with what may have been meant, or with the tags that there are."""
        meant = {tag: nearest(tag, self.known) for tag in unknown}
        explained = ", ".join(tag if near is None else f"{tag} (did you mean {near}?)" for tag, near in meant.items())
        if None not in meant.values():
            return explained
        shown = ", ".join(sorted(self.known)[:_MOST_TAGS_SHOWN]) or "none"
        more = ", ..." if len(self.known) > _MOST_TAGS_SHOWN else ""
        return f"{explained}; the {self.rules.tags} tags are {shown}{more}"

    def _width(self, which: Ints) -> int:
        return int(self.coded.lengths[which].max(initial=0)) + 1


def _named(rule: Rule) -> Iterator[str]:
    """The tags of words that a rule names."""
    yield from (tag for tag in (*(rule.head or ()), *(rule.modifier or ())) if tag != ROOT)


def _table(rules: Rules, numbers: Mapping[str, int]) -> _Table:
    tags = dict.fromkeys(tag for rule in rules.rules for tag in _named(rule) if tag in numbers)
    class_of = {tag: i for i, tag in enumerate(tags, start=_ROOT_CLASS + 1)}
    size = len(tags) + 2
    other = size - 1
    classes = np.full(max((*numbers.values(), UNKNOWN)) + 1, other, np.int64)
    for tag, number in class_of.items():
        classes[numbers[tag]] = number
    entries = [
        (((h * size) + m) * 2 + side, k, low, high)
        for k, rule in enumerate(rules.rules)
        for h, m, side, low, high in _entries(rule, class_of, other)
    ]
    cells, rule, low, high = np.array(sorted(entries), np.int64).reshape(-1, 4).T.copy()
    start = np.searchsorted(cells, np.arange(size * size * 2 + 1))
    return _Table(classes, size, start, rule, low, high)


def _entries(rule: Rule, class_of: Mapping[str, int], other: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Class of the head, class of the modifier, side, and the distances at which the rule then matches."""
    words = range(_ROOT_CLASS + 1, other + 1)
    heads, modifiers = (
        words if tags is None else sorted({class_of[tag] for tag in tags if tag in class_of})
        for tags in (rule.head, rule.modifier)
    )
    if rule.root_matches:
        yield from ((_ROOT_CLASS, m, 1, 0, _FAR) for m in modifiers)
    sides = {"left": (0,), "right": (1,), None: (0, 1)}[rule.direction]
    low, high = (int(min(end, _FAR)) for end in rule.distance or (1, _FAR))
    yield from ((h, m, side, low, high) for h, m, side in product(heads, modifiers, sides))


@part
def _classes(table: _Table, codes: Codes, root: int, n: int, classes: Ints) -> None:
    """The class of every node of a sentence."""
    classes[0] = _ROOT_CLASS
    for i in range(1, n + 1):
        classes[i] = table.classes[codes[root + i]]


@part
def _fire(table: _Table, classes: Ints, n: int, h: int, rules: Ints, modifiers: Ints) -> int:
    """List rule and modifier of all matches of head h; both lists have room for every rule with every word."""
    row = classes[h] * table.size
    count = 0
    for m in range(1, n + 1):
        cell = (row + classes[m]) * 2 + (m > h)
        distance = abs(m - h)  # 0 on the diagonal, which is in no band of a word
        for e in range(table.start[cell], table.start[cell + 1]):
            if table.low[e] <= distance <= table.high[e]:
                rules[count], modifiers[count] = table.rule[e], m
                count += 1
    return count


@part
def _room(lengths: Ints, rules: int) -> tuple[Ints, Ints, Ints]:
    """Room for the classes of a sentence and the matches of a head."""
    most = 0
    for n in lengths:
        most = max(most, n)
    return np.empty(most + 1, np.int64), np.empty(most * rules, np.int64), np.empty(most * rules, np.int64)


@kernel
def _add_sums(table: _Table, codes: Codes, roots: Ints, lengths: Ints, mu: Floats, rows: Ints, sums: Floats) -> None:
    classes, rules, modifiers = _room(lengths, sums.shape[1])
    for b in range(len(roots)):
        n = lengths[b]
        _classes(table, codes, roots[b], n, classes)
        for h in range(n + 1):
            for j in range(_fire(table, classes, n, h, rules, modifiers)):
                sums[rows[b], rules[j]] += mu[b, h, modifiers[j]]


@kernel
def _combine(table: _Table, codes: Codes, roots: Ints, lengths: Ints, coefficients: Floats, sums: Floats) -> None:
    classes, rules, modifiers = _room(lengths, len(coefficients))
    for b in range(len(roots)):
        n = lengths[b]
        _classes(table, codes, roots[b], n, classes)
        for h in range(n + 1):
            for j in range(_fire(table, classes, n, h, rules, modifiers)):
                sums[b, h, modifiers[j]] += coefficients[rules[j]]


@kernel
def _match(table: _Table, codes: Codes, root: int, n: int, found: NDArray[np.bool_]) -> None:
    classes, rules, modifiers = _room(np.full(1, n, np.int64), len(found))
    _classes(table, codes, root, n, classes)
    for h in range(n + 1):
        for j in range(_fire(table, classes, n, h, rules, modifiers)):
            found[rules[j], h, modifiers[j]] = True


@kernel
def _units(table: _Table, codes: Codes, roots: Ints, lengths: Ints, per_sentence: NDArray[np.bool_]) -> Floats:
    """Words with a matching arc; sentences with one, where `per_sentence`."""
    size = len(per_sentence)
    units = np.zeros(size)
    classes, rules, modifiers = _room(lengths, size)
    seen = np.zeros((size, len(classes)), np.bool_)  # [rule, word], or [rule, 0] for the sentence
    for b in range(len(roots)):
        n = lengths[b]
        _classes(table, codes, roots[b], n, classes)
        seen[:, : n + 1] = False
        for h in range(n + 1):
            for j in range(_fire(table, classes, n, h, rules, modifiers)):
                k = rules[j]
                unit = 0 if per_sentence[k] else modifiers[j]
                if not seen[k, unit]:
                    seen[k, unit] = True
                    units[k] += 1.0
    return units
