"""How often rules hold in annotated sentences, and how often they would by chance: what `rules_from_trees` estimates.

The candidates are the rules of one head tag (or the root), one modifier tag and a direction. A candidate's gain is
c log(target / chance), for c matching arcs; `headway.features.rules` says what target and chance are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log
from typing import cast

from headway.features.rule import ROOT, Direction, Rule

Candidate = tuple[str, str, str]  # head tag or ROOT, modifier tag, direction or "" for the root


@dataclass(frozen=True)
class RuleCounts:
    """Of every candidate: the matching arcs, the units, and the matching arcs that chance would give."""

    arcs: Counter[Candidate] = field(default_factory=Counter)
    units: Counter[Candidate] = field(default_factory=Counter)
    by_chance: dict[Candidate, float] = field(default_factory=dict)

    def add(self, tags: Sequence[str], heads: Sequence[int]) -> None:
        """One tree, O(n x tags)."""
        n = len(tags)
        before: Counter[str] = Counter()
        after = Counter(tags)
        for word, (tag, head) in enumerate(zip(tags, heads[1:], strict=True), start=1):
            after[tag] -= 1
            self._add_units(((other, tag, "left"), count / n) for other, count in after.items() if count)
            self._add_units(((other, tag, "right"), count / n) for other, count in before.items())
            before[tag] += 1
            if head:
                self.arcs[tags[head - 1], tag, "left" if word < head else "right"] += 1
        self._add_units(((ROOT, tag, ""), count / n) for tag, count in before.items())
        self.arcs.update({(ROOT, tag, "") for tag, head in zip(tags, heads[1:], strict=True) if not head})

    def _add_units(self, found: Iterable[tuple[Candidate, float]]) -> None:
        for candidate, chance in found:
            self.units[candidate] += 1
            self.by_chance[candidate] = self.by_chance.get(candidate, 0.0) + chance

    def best(self, most: int, at_least: int) -> tuple[Rule, ...]:
        """The rules with the largest gains above zero, `most` of those with `at_least` units."""
        gains = ((self._gain(candidate), candidate) for candidate, units in self.units.items() if units >= at_least)
        found = sorted((-gain, candidate) for gain, candidate in gains if gain > 0)[: max(most, 0)]
        return tuple(self._rule(candidate) for _, candidate in found)

    def _share(self, candidate: Candidate) -> float:
        return _smoothed(self.arcs[candidate], self.units[candidate])

    def _gain(self, candidate: Candidate) -> float:
        chance = _smoothed(self.by_chance[candidate], self.units[candidate])
        return self.arcs[candidate] * log(self._share(candidate) / chance)

    def _rule(self, candidate: Candidate) -> Rule:
        head, modifier, direction = candidate
        share = self._share(candidate)
        return Rule((head,), (modifier,), cast(Direction, direction) if direction else None, None, (share, share))


def _smoothed(count: float, units: int) -> float:
    return (count + 0.5) / (units + 1)
