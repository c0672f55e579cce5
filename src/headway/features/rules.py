"""Rules about arcs that a linguist writes, with the share of words they should hold for (druck2009 section 1.1).

A file of rules is TOML:

    tags = "upos"              # the column the tags are from: "upos" (if left out) or "xpos"

    [[rule]]
    head = "NOUN"              # a tag or a list of tags; "ROOT" is the artificial root; left out: any, root included
    modifier = ["DET", "ADJ"]  # a tag or a list of tags; left out: any word
    direction = "left"         # the modifier stands left (before) or right (after) of its head; left out: either
    distance = [1, 3]          # words from modifier to head; 2 is [2, 2], [4, inf] is 4 and more; left out: any
    target = 0.9               # the share, or a range it should lie in: [0.7, 1.0]
    weight = 2.0               # how much the rule matters beside others; left out: 1
    name = "determiners"       # how tables call it; left out: made from the rule, as "DET/ADJ left of NOUN"

Which arcs match a rule, and what its target is a share of, is in `headway.features.rule`. `rules_from_trees` estimates
rules from a few annotated sentences instead. `headway.features.rule_features` finds the arcs that match.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import resources
from importlib.resources.abc import Traversable
from math import inf
from pathlib import Path
from typing import Any, Literal, cast

from headway.errors import RulesError
from headway.features.coding import fine_tags
from headway.features.rule import PREDICATE, Rule, default_name, problem_of, shown
from headway.features.rule_counts import RuleCounts
from headway.treebank import Sentence, require_tree

__all__ = ["Rule", "Rules", "parse_rules", "read_rules", "rules_from_trees", "rules_names"]

Tags = Literal["upos", "xpos"]

TAGS: tuple[Tags, ...] = ("upos", "xpos")

_KEYS = (*PREDICATE, "target", "weight", "name")

_HEADER = re.compile(r"\s*\[\[\s*([\"']?)rule\1\s*\]\]")
_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True)
class Rules:
    """Rules over one column of tags; `source` is the file they are from."""

    rules: tuple[Rule, ...]
    tags: Tags = "upos"
    source: str = field(default="rules", compare=False)

    def __post_init__(self) -> None:
        if self.tags not in TAGS:
            raise RulesError(_wrong_tags(self.tags), self.source)
        if not self.rules:
            raise RulesError("there is no rule; begin each with a line [[rule]]", self.source)
        seen: dict[tuple[object, ...], Rule] = {}
        for rule in self.rules:
            first = seen.setdefault(_predicate(rule), rule)
            if first is not rule:
                place = "" if first.line is None else f" on line {first.line}"
                cause = f'rule "{rule.name}" is about the same arcs as "{first.name}"{place}; keep one of them'
                raise RulesError(cause, self.source, rule.line)

    def __len__(self) -> int:
        return len(self.rules)

    def to_toml(self) -> str:
        """A file that reads back as these rules.

        >>> print(Rules((Rule(("ROOT",), ("VERB",), None, None, (0.5, 1.0)),)).to_toml())
        tags = "upos"
        <BLANKLINE>
        [[rule]]
        head = "ROOT"
        modifier = "VERB"
        target = [0.5, 1.0]
        <BLANKLINE>
        """
        return "\n".join([f'tags = "{self.tags}"\n', *map(_rule_text, self.rules)])


def read_rules(name_or_path: str | Path) -> Rules:
    """The rules that come with Headway under this name, such as "universal", or those of a file.

    >>> len(read_rules("universal")) > 4
    True
    """
    name = str(name_or_path)
    packaged = _packaged() / f"{name}.toml"
    if "/" not in name and packaged.is_file():
        return parse_rules(packaged.read_text("utf-8"), name)
    try:
        text = Path(name_or_path).read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        known = ", ".join(rules_names())
        raise RulesError(f"cannot read rules from {name}: {error}; the rules at hand are {known}") from None
    return parse_rules(text, name)


def rules_names() -> tuple[str, ...]:
    """The rules that come with Headway."""
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in _packaged().iterdir()))


def parse_rules(text: str, source: str = "rules") -> Rules:
    """The rules of a file's text; a `RulesError` names the line, the rule, and what is wrong with it.

    >>> (rule,) = parse_rules('''
    ... [[rule]]
    ... head = "NOUN"
    ... modifier = "DET"
    ... target = 0.9
    ... ''').rules
    >>> rule.name, rule.target, rule.line
    ('DET on NOUN', (0.9, 0.9), 2)
    """
    content = _parse_toml(text, source)
    lines = _Lines(text)
    for key in content:
        if key not in ("tags", "rule"):
            raise RulesError(_unknown_key(key, ("tags", "rule"), _KEYS), source, lines.of_key(key))
    tags = content.get("tags", "upos")
    if tags not in TAGS:
        raise RulesError(_wrong_tags(tags), source, lines.of_key("tags"))
    tables = content.get("rule", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise RulesError("rule is not a list of tables; begin each with a line [[rule]]", source, lines.of_key("rule"))
    rules = tuple(_parse_rule(table, number, source, lines) for number, table in enumerate(tables))
    return Rules(rules, cast(Tags, tags), source)


def rules_from_trees(sentences: Iterable[Sentence], *, most: int = 20, at_least: int = 5, tags: Tags = "upos") -> Rules:
    """Rules of one head tag (or the root), one modifier tag and a direction, estimated from annotated sentences.

    With c matching arcs over u units, the target is (c + 1/2) / (u + 1). Chance is the same share where every word
    draws its head evenly from the other nodes of its sentence. Of the rules with at least `at_least` units, those
    `most` are kept for which c log(target / chance) is largest: they cover many arcs, and tell more of them than chance
    does. Rules at or below chance are left out. Several roots of one tag in a sentence count as one.
    """
    trees = list(sentences)
    counts = RuleCounts()
    for sentence in trees:
        given = sentence.upos if tags == "upos" else fine_tags(sentence)  # as the coder has them
        counts.add(given, require_tree(sentence).tolist())
    found = counts.best(most, at_least)
    if not found:
        raise RulesError(
            f"{len(trees)} annotated sentences give no rule with most={most} and at_least={at_least}; "
            "annotate more of them, or lower at_least"
        )
    return Rules(found, tags, f"{len(trees)} annotated sentences")


def nearest(text: str, known: Iterable[str]) -> str | None:
    """What may have been meant, in upper or lower case; None if nothing known is like it.

    >>> nearest("noun", ["VERB", "NOUN"]), nearest("xyz", ["NOUN"])
    ('NOUN', None)
    """
    folded = {name.casefold(): name for name in known}
    close = get_close_matches(text.casefold(), folded, n=1)
    return folded[close[0]] if close else None


def _wrong_tags(tags: object) -> str:
    return f'tags is {shown(tags)}; expected "upos" or "xpos"'


def _predicate(rule: Rule) -> tuple[object, ...]:
    """Equal for rules about the same arcs."""
    head, modifier = (None if tags is None else frozenset(tags) for tags in (rule.head, rule.modifier))
    return head, modifier, rule.direction, rule.distance


def _packaged() -> Traversable:
    return resources.files("headway.features") / "rule_files"


def _parse_toml(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise RulesError("the file is nested too deeply; write plain lists of tags and numbers", source) from None
    except ValueError as error:  # not every one is a TOMLDecodeError: numbers of thousands of digits are not
        place = _TOML_PLACE.search(str(error))
        cause = _TOML_PLACE.sub(f" at column {place[2]}" if place and place[2] else "", str(error))
        last = text.rstrip().count("\n") + 1
        line = int(place[1] or last) if place else None
        remedy = 'write lines such as head = "NOUN" and target = 0.9 below [[rule]]'
        raise RulesError(f"the file is not TOML, {cause}; {remedy}", source, line) from None


def _parse_rule(table: dict[str, Any], number: int, source: str, lines: _Lines) -> Rule:
    for key in table:
        if key not in _KEYS:
            cause = f"{_called(table, number)}: {_unknown_key(key, _KEYS)}"
            raise RulesError(cause, source, lines.of_rule(number, key))
    values = {key: _as_held(key, value) for key, value in table.items()}
    problem = problem_of(values)
    if problem is not None:
        cause = f"{_called(values, number)}: {problem.cause}"
        raise RulesError(cause, source, lines.of_rule(number, problem.key))
    return Rule(**{**dict.fromkeys(PREDICATE), **values}, line=lines.of_rule(number))


def _as_held(key: str, value: Any) -> Any:
    """A value of the file as `Rule` holds it; what is wrong stays wrong."""
    if isinstance(value, list):
        return tuple(value)
    if key in ("head", "modifier"):
        return (value,)
    if key in ("distance", "target"):
        return value, value
    return value


def _called(values: Mapping[str, Any], number: int) -> str:
    """How messages call a rule that may be wrong: by its own name, else in words as far as they make sense."""
    name = values.get("name")
    if not isinstance(name, str) or not name.isprintable():
        name = ""
    about = {key: values.get(key) for key in PREDICATE}
    if not name and problem_of({**about, "target": (0, 1)}) is None:
        name = default_name(about)
    return f'rule {number + 1} ("{name}")' if name else f"rule {number + 1}"


def _unknown_key(key: str, keys: Sequence[str], elsewhere: Sequence[str] = ()) -> str:
    """`elsewhere` are keys that have their place below [[rule]]."""
    if key in elsewhere:
        return f"{shown(key)} stands outside of a rule; put it below a line [[rule]]"
    meant = nearest(key, keys)
    suggestion = f"did you mean {meant}?" if meant else f"the keys are {', '.join(keys)}"
    return f"unknown key {shown(key)}; {suggestion}"


class _Lines:
    """Where a file has its rules and keys, which tomllib does not tell; lines count from 1."""

    def __init__(self, text: str) -> None:
        self.rows = text.split("\n")
        self.headers = [i for i, row in enumerate(self.rows) if _HEADER.match(row)]

    def of_key(self, key: str) -> int | None:
        return self._search(key, 0, len(self.rows))

    def of_rule(self, number: int, key: str | None = None) -> int | None:
        """The line of a key of a rule; that of the rule if it has no such key."""
        if number >= len(self.headers):
            return self.of_key("rule")  # a list of tables in line
        start, stop = (*self.headers, len(self.rows))[number : number + 2]
        return (key and self._search(key, start + 1, stop)) or start + 1

    def _search(self, key: str, start: int, stop: int) -> int | None:
        pattern = re.compile(rf"\s*\[{{0,2}}\s*([\"']?){re.escape(key)}\1\s*[\]=.]")
        return next((i + 1 for i in range(start, stop) if pattern.match(self.rows[i])), None)


def _rule_text(rule: Rule) -> str:
    return "".join(f"{line}\n" for line in ("[[rule]]", *_rule_lines(rule)))


def _rule_lines(rule: Rule) -> Iterator[str]:
    for key, tags in (("head", rule.head), ("modifier", rule.modifier)):
        if tags is not None:
            yield f"{key} = {_list_text([_quoted(tag) for tag in tags])}"
    if rule.direction is not None:
        yield f'direction = "{rule.direction}"'
    if rule.distance is not None:
        yield f"distance = {_list_text(_ends([str(end if end == inf else int(end)) for end in rule.distance]))}"
    yield f"target = {_list_text(_ends([repr(float(end)) for end in rule.target]))}"
    if rule.weight != 1:
        yield f"weight = {float(rule.weight)!r}"
    if rule.name != default_name(vars(rule)):
        yield f"name = {_quoted(rule.name)}"


def _ends(texts: list[str]) -> list[str]:
    """A band's ends, once if they are the same."""
    return texts[:1] if texts[0] == texts[1] else texts


def _list_text(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
