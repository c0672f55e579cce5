"""Cards: what they hold survives saving, and what is no card is refused in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headway.card import Card, Measured, Source, require_licence

CARD = Card(
    language="pt",
    licence="CC-BY-SA-4.0 AND Apache-2.0",
    description="News.",
    sources=(Source("UD Portuguese-Bosque", "CC-BY-SA-4.0", "0123456789abcdef", "https://example.org", "A. and B."),),
    scores=(Measured("test, gold tokens", {"UAS": 90.25, "LAS": 87.0}), Measured("raw text", {"LAS": 80.5})),
    speed=(Measured("one thread", {"words/s": 1234.5}),),
    calibration=(Measured("dev", {"arcs": 0.0}),),
)


def test_json_gives_the_same_card() -> None:
    data = json.loads(json.dumps(CARD.to_data()))
    assert Card.from_data(data) == CARD
    assert data["sources"][0]["attribution"] == "A. and B."
    assert Card("xx").to_data() == {"language": "xx"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "the card is not an object"),
        ({}, "the card has no language"),
        ({"language": "Portuguese"}, "the language is 'Portuguese'; expected its code"),
        ({"language": 3}, "language is no text"),
        ({"language": "pt", "license": "MIT"}, "there is no field 'license'; the fields are language, licence"),
        ({"language": "pt", "licence": "CC BY-SA 4.0"}, "the licence 'CC BY-SA 4.0' is no SPDX expression"),
        ({"language": "pt", "description": "x" * 5000}, "description is no text of at most 4000 characters"),
        ({"language": "pt", "sources": {}}, "sources is no list"),
        ({"language": "pt", "sources": [{}] * 51}, "sources is no list of at most 50"),
        ({"language": "pt", "sources": [{"licence": "MIT"}]}, "sources: an entry has no 'name'"),
        ({"language": "pt", "sources": [{"name": "x", "sha256": "/etc"}]}, "not 16 to 64 hexadecimal digits"),
        ({"language": "pt", "scores": [{"on": "dev"}]}, "scores: the figures is not an object"),
        ({"language": "pt", "scores": [{"on": "dev", "figures": {}}]}, "has 0 figures"),
        ({"language": "pt", "scores": [{"on": "dev", "figures": {"UAS": "90"}}]}, "UAS is '90', not a finite number"),
        ({"language": "pt", "speed": [{"on": "dev", "figures": {"x": float("nan")}}]}, "not a finite number"),
    ],
)
def test_what_is_no_card(data: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        Card.from_data(data)


@pytest.mark.parametrize("licence", ["", "MIT", "(MIT OR Apache-2.0) AND CC-BY-SA-4.0", "GPL-2.0+", "LicenseRef-Mine"])
def test_licence_expressions(licence: str) -> None:
    require_licence(licence)


@pytest.mark.parametrize("licence", ["MIT Apache-2.0", "MIT and GPL", "AND", "(MIT", "MIT)(", "MIT\nX: y", "M" * 201])
def test_what_is_no_licence_expression(licence: str) -> None:
    with pytest.raises(ValueError, match="is no SPDX expression"):
        require_licence(licence)
