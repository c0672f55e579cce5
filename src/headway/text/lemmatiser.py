"""Lemmas by rule: what to cut off the end of a word and what to put there, given its tag.

A rule is (characters to cut, characters to add, whether the word keeps its capitals). Among the training words with the
tag of a new word, those that share its longest ending, of at most `_LONGEST` characters, decide: the new word follows
their commonest rule. Training words that get a wrong lemma so are kept in a table of exceptions. O(1) per word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.saved_values import column_value, flag, whole_number
from headway.treebank import Sentence

Tag = tuple[str, str, str]  # UPOS, XPOS, FEATS
Rule = tuple[int, str, bool]

_LONGEST = 5


@dataclass(frozen=True, repr=False)
class Lemmatiser:
    """`rules[tag][ending]` and `exceptions[tag][form]`; the tag is XPOS, or UPOS with FEATS where there is none."""

    rules: Mapping[str, Mapping[str, Rule]]
    exceptions: Mapping[str, Mapping[str, str]]

    @classmethod
    def learn(cls, sentences: Sequence[Sentence]) -> Lemmatiser | None:
        """Learn from the lemmas of a treebank; None if it has none."""
        if all(lemma == "_" for s in sentences for lemma in s.lemmas):
            return None
        lemmas: dict[tuple[str, str], Counter[str]] = {}
        for s in sentences:
            for form, lemma, *tag in zip(s.forms, s.lemmas, s.upos, s.xpos, s.feats, strict=True):
                if lemma != "_" or form == "_":
                    lemmas.setdefault((_key(*tag), form), Counter())[lemma] += 1
        chosen = {word: counts.most_common(1)[0][0] for word, counts in lemmas.items()}
        taken: dict[str, dict[str, Counter[Rule]]] = {}
        for (key, form), lemma in chosen.items():
            rule, weight = _rule(form, lemma), lemmas[key, form].total()
            for ending in _endings(form):
                if len(ending) >= rule[0]:  # what is cut must be in it
                    taken.setdefault(key, {}).setdefault(ending, Counter())[rule] += weight
        rules = {key: _shortest(endings) for key, endings in taken.items()}
        bare = cls(rules, {})
        exceptions: dict[str, dict[str, str]] = {}
        for (key, form), lemma in chosen.items():
            if bare._by_rule(form, key) != lemma:
                exceptions.setdefault(key, {})[form] = lemma
        return cls(rules, exceptions)

    def lemma(self, form: str, tag: Tag) -> str:
        """The lemma of a word with this tag."""
        key = _key(*tag)
        return self.exceptions.get(key, {}).get(form) or self._by_rule(form, key)

    def lemmas(self, forms: Iterable[str], tags: Iterable[Tag]) -> tuple[str, ...]:
        """Those of many words; each that comes again is looked up once."""
        words = list(zip(forms, tags, strict=True))
        found = {word: self.lemma(*word) for word in set(words)}
        return tuple(map(found.__getitem__, words))

    def _by_rule(self, form: str, key: str) -> str:
        rules = self.rules.get(key, {})
        for ending in _endings(form):
            if ending in rules:
                return _apply(rules[ending], form)
        return form

    def to_data(self) -> dict[str, Any]:
        """As JSON."""
        rules = {key: {end: list(rule) for end, rule in some.items()} for key, some in self.rules.items()}
        return {"rules": rules, "exceptions": {key: dict(some) for key, some in self.exceptions.items()}}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Lemmatiser:
        """The lemmatiser that was saved."""
        rules = {key: {end: _checked(rule) for end, rule in some.items()} for key, some in data["rules"].items()}
        exceptions = {
            key: {form: column_value(lemma, "a lemma") for form, lemma in some.items()}
            for key, some in data["exceptions"].items()
        }
        return cls(rules, exceptions)


def _checked(rule: Any) -> Rule:
    cut, add, capitals = rule
    return whole_number(cut, "a cut"), add and column_value(add, "the end of a lemma"), flag(capitals, "capitals")


def _key(upos: str, xpos: str, feats: str) -> str:
    return f"{upos}|{feats}" if xpos == "_" else xpos


def _endings(form: str) -> list[str]:
    """The ends of a word in lower case, longest first, the empty one last."""
    lower = form.lower()
    return [lower[len(lower) - k :] for k in range(min(_LONGEST, len(lower)), -1, -1)]


def _rule(form: str, lemma: str) -> Rule:
    """The rule that makes the lemma of the form.

    >>> _rule("Cities", "city"), _rule("Paris", "Paris")
    ((3, 'y', False), (0, '', True))
    """
    capitals = lemma != lemma.lower()
    source = form if capitals else form.lower()
    same = 0
    while same < min(len(source), len(lemma)) and source[same] == lemma[same]:
        same += 1
    return (len(source) - same, lemma[same:], capitals)


def _apply(rule: Rule, form: str) -> str:
    cut, add, capitals = rule
    source = form if capitals else form.lower()
    return source[: max(0, len(source) - cut)] + add or form


def _shortest(endings: Mapping[str, Counter[Rule]]) -> dict[str, Rule]:
    """Each ending's commonest rule, without the endings that have the rule of the next shorter one."""
    best = {ending: counts.most_common(1)[0][0] for ending, counts in endings.items()}
    return {ending: rule for ending, rule in best.items() if not ending or best.get(ending[1:]) != rule}
