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

An arc *matches* a rule if its head, its modifier, its direction and its distance do. The root has neither side nor
distance. In a list with tags, ROOT matches whatever direction and distance say; where no head is named, the root
matches only if neither direction nor distance is given.

A rule's *units* are the words that match `modifier` and that some arc from a node of their sentence would make match;
its *share* is the part of them whose head makes it match. With head = "ROOT" alone the units are the sentences with a
word that matches `modifier`, and the share is the number of such words on the root, a sentence. (A sentence in which a
verb could be the root has one root to give, however many verbs it has.)

`rules_from_trees` estimates rules from a few annotated sentences instead. `headway.features.rule_features` finds the
arcs that match.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import resources
from importlib.resources.abc import Traversable
from math import inf, log
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from headway.errors import RulesError
from headway.features.coding import fine_tags
from headway.treebank import Sentence, require_tree

Direction = Literal["left", "right"]
Tags = Literal["upos", "xpos"]
Band = tuple[float, float]

ROOT = "ROOT"
DIRECTIONS: tuple[Direction, ...] = ("left", "right")
TAGS: tuple[Tags, ...] = ("upos", "xpos")

_PREDICATE = ("head", "modifier", "direction", "distance")
_KEYS = (*_PREDICATE, "target", "weight", "name")
_LONGEST_SHOWN = 60  # characters of a wrong value that a message repeats

_HEADER = re.compile(r"\s*\[\[\s*([\"']?)rule\1\s*\]\]")
_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True)
class Rule:
    """One rule; see the module's text. `line` is where its file has it.

    >>> Rule(("NOUN",), ("DET", "ADJ"), "left", (1, 3), (0.9, 0.9)).name
    'DET/ADJ left of NOUN, 1 to 3 words away'
    """

    head: tuple[str, ...] | None
    modifier: tuple[str, ...] | None
    direction: Direction | None
    distance: Band | None
    target: Band
    weight: float = 1.0
    name: str = ""
    line: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        problem = _problem(vars(self))
        if problem is not None:
            raise RulesError(problem.cause)
        if not self.name:
            object.__setattr__(self, "name", _default_name(vars(self)))

    @property
    def only_root(self) -> bool:
        """Whether the units are sentences."""
        return self.head is not None and set(self.head) == {ROOT}

    @property
    def root_matches(self) -> bool:
        """Whether arcs from the root can match."""
        if self.head is None:
            return self.direction is None and self.distance is None
        return ROOT in self.head


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
    counts = _Counts(Counter(), Counter(), {})
    for sentence in trees:
        given = sentence.upos if tags == "upos" else fine_tags(sentence)  # as the coder has them
        counts.add(given, require_tree(sentence).tolist())
    gains = ((counts.gain(candidate), candidate) for candidate, units in counts.units.items() if units >= at_least)
    found = sorted((-gain, candidate) for gain, candidate in gains if gain > 0)[: max(most, 0)]
    if not found:
        raise RulesError(
            f"{len(trees)} annotated sentences give no rule with most={most} and at_least={at_least}; "
            "annotate more of them, or lower at_least"
        )
    return Rules(tuple(counts.rule(candidate) for _, candidate in found), tags, f"{len(trees)} annotated sentences")


def nearest(text: str, known: Iterable[str]) -> str | None:
    """What may have been meant, in upper or lower case; None if nothing known is like it.

    >>> nearest("noun", ["VERB", "NOUN"]), nearest("xyz", ["NOUN"])
    ('NOUN', None)
    """
    folded = {name.casefold(): name for name in known}
    close = get_close_matches(text.casefold(), folded, n=1)
    return folded[close[0]] if close else None


class _Problem(NamedTuple):
    """The key of a rule that is wrong, and why."""

    key: str
    cause: str


def _problem(values: Mapping[str, Any]) -> _Problem | None:
    """What is wrong with a rule whose values are as `Rule` holds them, if they are right."""
    for key in ("head", "modifier"):
        if not _are_tags(values.get(key)):
            wrong = _shown(values[key])
            return _Problem(key, f'{key} is {wrong}; expected a tag such as "NOUN", or a list of tags')
    if ROOT in (values.get("modifier") or ()):
        return _Problem("modifier", f'modifier is "{ROOT}", which has no head; name tags of words')
    direction, distance, target = values.get("direction"), values.get("distance"), values.get("target")
    if direction not in (None, *DIRECTIONS):
        return _Problem("direction", f'direction is {_shown(direction)}; expected "left" or "right"')
    if distance is not None and not _is_distance(distance):
        wrong = _shown(distance)
        return _Problem("distance", f"distance is {wrong}; expected whole numbers from 1 up, as [1, 3] or [4, inf]")
    if target is None:
        return _Problem("target", "target is missing; add the share of words the rule holds for, such as target = 0.9")
    if not (_is_band(target) and 0 <= target[0] <= target[1] <= 1):
        wrong = _shown(target)
        return _Problem("target", f"target is {wrong}; expected a share from 0 to 1, or a range such as [0.7, 1.0]")
    weight, name = values.get("weight", 1.0), values.get("name", "")
    if not (_is_number(weight) and 0 < weight < inf):
        return _Problem("weight", f"weight is {_shown(weight)}; expected a number above 0")
    if not (isinstance(name, str) and name.isprintable()):
        return _Problem("name", f"name is {_shown(name)}; expected one line of text")
    return _contradiction(values)


def _contradiction(values: Mapping[str, Any]) -> _Problem | None:
    """What is wrong with values that are right one by one."""
    given = [key for key in ("direction", "distance") if values.get(key) is not None]
    head = values.get("head")
    if head is None and not given:
        return _Problem("modifier", "every word has some head; add a head, a direction or a distance")
    if head is not None and set(head) == {ROOT} and given:
        return _Problem(given[0], f'the root has no side and no distance; leave {given[0]} out where head is "{ROOT}"')
    return None


def _are_tags(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, tuple) and bool(value) and all(isinstance(t, str) and t and t.isprintable() for t in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_band(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value))


def _is_distance(value: Any) -> bool:
    if not _is_band(value) or not 1 <= value[0] <= value[1] or value[0] == inf:
        return False
    return all(end == inf or end == int(end) for end in value)


def _shown(value: Any) -> str:
    """A value as a file has it, more or less; a single one for a tuple that was made from it."""
    if isinstance(value, tuple):
        value = value[0] if len({repr(each) for each in value}) == 1 else list(value)
    text = json.dumps(value, ensure_ascii=False, default=str)
    text = text.replace("Infinity", "inf").replace("NaN", "nan")
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


def _wrong_tags(tags: object) -> str:
    return f'tags is {_shown(tags)}; expected "upos" or "xpos"'


def _predicate(rule: Rule) -> tuple[object, ...]:
    """Equal for rules about the same arcs."""
    head, modifier = (None if tags is None else frozenset(tags) for tags in (rule.head, rule.modifier))
    return head, modifier, rule.direction, rule.distance


def _default_name(values: Mapping[str, Any]) -> str:
    """The rule in words: "DET/ADJ left of NOUN, 1 to 3 words away"."""
    head, direction, distance = values.get("head"), values.get("direction"), values.get("distance")
    words = "/".join(values.get("modifier") or ("any word",))
    side = f"{direction} of" if direction else "on"
    return f"{words} {side} {'/'.join(head) if head else 'its head'}{_distance_in_words(distance)}"


def _distance_in_words(distance: Band | None) -> str:
    if distance is None:
        return ""
    low, high = distance
    if high == inf:
        return f", {low:.0f} or more words away"
    if low < high:
        return f", {low:.0f} to {high:.0f} words away"
    return f", {low:.0f} words away" if low > 1 else ", next to it"


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
    problem = _problem(values)
    if problem is not None:
        cause = f"{_called(values, number)}: {problem.cause}"
        raise RulesError(cause, source, lines.of_rule(number, problem.key))
    return Rule(**{**dict.fromkeys(_PREDICATE), **values}, line=lines.of_rule(number))


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
    about = {key: values.get(key) for key in _PREDICATE}
    if not name and _problem({**about, "target": (0, 1)}) is None:
        name = _default_name(about)
    return f'rule {number + 1} ("{name}")' if name else f"rule {number + 1}"


def _unknown_key(key: str, keys: Sequence[str], elsewhere: Sequence[str] = ()) -> str:
    """`elsewhere` are keys that have their place below [[rule]]."""
    if key in elsewhere:
        return f"{_shown(key)} stands outside of a rule; put it below a line [[rule]]"
    meant = nearest(key, keys)
    suggestion = f"did you mean {meant}?" if meant else f"the keys are {', '.join(keys)}"
    return f"unknown key {_shown(key)}; {suggestion}"


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
    if rule.name != _default_name(vars(rule)):
        yield f"name = {_quoted(rule.name)}"


def _ends(texts: list[str]) -> list[str]:
    """A band's ends, once if they are the same."""
    return texts[:1] if texts[0] == texts[1] else texts


def _list_text(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


Candidate = tuple[str, str, str]  # head tag or ROOT, modifier tag, direction or "" for the root


@dataclass(frozen=True)
class _Counts:
    """Of every candidate: the matching arcs, the units, and the matching arcs that chance would give."""

    arcs: Counter[Candidate]
    units: Counter[Candidate]
    by_chance: dict[Candidate, float]

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

    def share(self, candidate: Candidate) -> float:
        return _smoothed(self.arcs[candidate], self.units[candidate])

    def gain(self, candidate: Candidate) -> float:
        chance = _smoothed(self.by_chance[candidate], self.units[candidate])
        return self.arcs[candidate] * log(self.share(candidate) / chance)

    def rule(self, candidate: Candidate) -> Rule:
        head, modifier, direction = candidate
        share = self.share(candidate)
        return Rule((head,), (modifier,), cast(Direction, direction) if direction else None, None, (share, share))


def _smoothed(count: float, units: int) -> float:
    return (count + 0.5) / (units + 1)
