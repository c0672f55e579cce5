"""One rule: how it is called, when two are equal, and what is refused."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from headway.errors import RulesError
from headway.features.rule import Rule


@pytest.mark.parametrize(
    ("predicate", "name"),
    [
        ((("NOUN",), ("DET", "ADJ"), "left", (1, 3)), "DET/ADJ left of NOUN, 1 to 3 words away"),
        ((("NOUN",), None, "right", (1, 1)), "any word right of NOUN, next to it"),
        ((None, ("DET",), None, (2, 2)), "DET on its head, 2 words away"),
        ((None, ("DET",), "left", (4, inf)), "DET left of its head, 4 or more words away"),
        ((("ROOT",), ("VERB",), None, None), "VERB on ROOT"),
        ((("ROOT", "VERB"), ("ADV",), "right", None), "ADV right of ROOT/VERB"),
    ],
)
def test_names_say_what_the_rule_is(predicate: tuple[Any, Any, Any, Any], name: str) -> None:
    assert Rule(*predicate, (0.5, 0.5)).name == name
    assert Rule(*predicate, (0.5, 0.5), name="mine").name == "mine"


def test_equality_is_what_the_rule_says() -> None:
    rule = Rule(("A",), None, None, None, (0.5, 0.5), line=3)
    assert rule == Rule(("A",), None, None, None, (0.5, 0.5), line=8)
    assert rule != Rule(("A",), None, None, None, (0.5, 0.6), line=3)


def test_rules_made_in_python_are_checked_too() -> None:
    made: Any = Rule
    with pytest.raises(RulesError, match=r"^target is 2; expected a share"):
        made(("A",), None, None, None, (2, 2))
    with pytest.raises(RulesError, match=r'^head is "A"; expected a tag'):
        made("A", None, None, None, (1, 1))
    with pytest.raises(RulesError, match="weight is nan"):
        made(("A",), None, None, None, (1, 1), weight=nan)
