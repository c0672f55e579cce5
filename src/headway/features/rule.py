"""What a rule about arcs says, and which arcs match it (druck2009 section 1.1).

An arc *matches* a rule if its head, its modifier, its direction and its distance do. The root has neither side nor
distance. In a list with tags, ROOT matches whatever direction and distance say; where no head is named, the root
matches only if neither direction nor distance is given.

A rule's *units* are the words that match `modifier` and that some arc from a node of their sentence would make match;
its *share* is the part of them whose head makes it match. With head = "ROOT" alone the units are the sentences with a
word that matches `modifier`, and the share is the number of such words on the root, a sentence. (A sentence in which a
verb could be the root has one root to give, however many verbs it has.)

`headway.features.rules` reads rules, `headway.features.rule_features` finds the arcs that match.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal, NamedTuple

from headway.errors import RulesError

Direction = Literal["left", "right"]
Band = tuple[float, float]

ROOT = "ROOT"
DIRECTIONS: tuple[Direction, ...] = ("left", "right")
PREDICATE = ("head", "modifier", "direction", "distance")  # what says which arcs match

_LONGEST_SHOWN = 60  # characters of a wrong value that a message repeats


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
        problem = problem_of(vars(self))
        if problem is not None:
            raise RulesError(problem.cause)
        if not self.name:
            object.__setattr__(self, "name", default_name(vars(self)))

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


class Problem(NamedTuple):
    """The key of a rule that is wrong, and why."""

    key: str
    cause: str


def problem_of(values: Mapping[str, Any]) -> Problem | None:
    """What is wrong with a rule whose values are as `Rule` holds them, if they are right."""
    for key in ("head", "modifier"):
        if not _are_tags(values.get(key)):
            wrong = shown(values[key])
            return Problem(key, f'{key} is {wrong}; expected a tag such as "NOUN", or a list of tags')
    if ROOT in (values.get("modifier") or ()):
        return Problem("modifier", f'modifier is "{ROOT}", which has no head; name tags of words')
    direction, distance, target = values.get("direction"), values.get("distance"), values.get("target")
    if direction not in (None, *DIRECTIONS):
        return Problem("direction", f'direction is {shown(direction)}; expected "left" or "right"')
    if distance is not None and not _is_distance(distance):
        wrong = shown(distance)
        return Problem("distance", f"distance is {wrong}; expected whole numbers from 1 up, as [1, 3] or [4, inf]")
    if target is None:
        return Problem("target", "target is missing; add the share of words the rule holds for, such as target = 0.9")
    if not (_is_band(target) and 0 <= target[0] <= target[1] <= 1):
        wrong = shown(target)
        return Problem("target", f"target is {wrong}; expected a share from 0 to 1, or a range such as [0.7, 1.0]")
    weight, name = values.get("weight", 1.0), values.get("name", "")
    if not (_is_number(weight) and 0 < weight < inf):
        return Problem("weight", f"weight is {shown(weight)}; expected a number above 0")
    if not (isinstance(name, str) and name.isprintable()):
        return Problem("name", f"name is {shown(name)}; expected one line of text")
    return _contradiction(values)


def _contradiction(values: Mapping[str, Any]) -> Problem | None:
    """What is wrong with values that are right one by one."""
    given = [key for key in ("direction", "distance") if values.get(key) is not None]
    head = values.get("head")
    if head is None and not given:
        return Problem("modifier", "every word has some head; add a head, a direction or a distance")
    if head is not None and set(head) == {ROOT} and given:
        return Problem(given[0], f'the root has no side and no distance; leave {given[0]} out where head is "{ROOT}"')
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


def shown(value: Any) -> str:
    """A value as a file has it, more or less; a single one for a tuple that was made from it."""
    if isinstance(value, tuple):
        value = value[0] if len({repr(each) for each in value}) == 1 else list(value)
    text = json.dumps(value, ensure_ascii=False, default=str)
    text = text.replace("Infinity", "inf").replace("NaN", "nan")
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


def default_name(values: Mapping[str, Any]) -> str:
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
