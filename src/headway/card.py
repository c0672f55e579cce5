"""A model's card: what it is for, what it was made from, under which licence, and what was measured.

It travels in the model's own file, as JSON under "card", so that a model cannot be separated from its licence.
`headway info` shows it, and `headway package` makes the metadata of a package from it.

```python
card = Card(
    language="pt",
    licence="CC-BY-SA-4.0",
    sources=(Source("UD Portuguese-Bosque 2.17", "CC-BY-SA-4.0", attribution="Alexandre Rademaker and others"),),
    scores=(Measured("test, gold tokens", {"UAS": 90.1, "LAS": 87.5}),),
)
replace(parser, card=card).save("pt.headway")
```
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headway.archive import Archive
from headway.saved_values import mapping, number

LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")  # BCP 47, as far as models need it

_SHA256 = re.compile(r"[0-9a-f]{16,64}")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")
_OPERATORS = ("AND", "OR", "WITH")
_MOST, _LONGEST = 50, 4000  # entries of a list, characters of a text


@dataclass(frozen=True)
class Source:
    """What a model was made from: a treebank, a text, a pretrained encoder.

    `licence` is an SPDX expression, `sha256` the checksum of the file, or its first digits; `attribution` is whom to
    name.
    """

    name: str
    licence: str = ""
    sha256: str = ""
    url: str = ""
    attribution: str = ""

    def __post_init__(self) -> None:
        _require_texts(self)
        require_licence(self.licence)
        if self.sha256 and not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"sha256 is {self.sha256[:40]!r}, not 16 to 64 hexadecimal digits")


@dataclass(frozen=True)
class Measured:
    """Figures measured on some data, or in some way: Measured("test, gold tokens", {"UAS": 92.8, "LAS": 90.8})."""

    on: str
    figures: Mapping[str, float]

    def __post_init__(self) -> None:
        _text(self.on, "on")
        if not self.figures or len(self.figures) > _MOST:
            raise ValueError(f"{self.on[:40]!r} has {len(self.figures)} figures; expected 1 to {_MOST}")
        for name, value in self.figures.items():
            _text(name, "the name of a figure")
            number(value, name[:40])


@dataclass(frozen=True, repr=False)
class Card:
    """What a model says of itself to whoever uses it; every field but the language may be empty.

    `licence` is the SPDX expression that the model is under. Scores and calibration errors are in percent; speed is
    in words per second, and `on` says of which machine.

    >>> Card("pt", "CC-BY-SA-4.0")
    <Card: pt, CC-BY-SA-4.0>
    """

    language: str
    licence: str = ""
    description: str = ""
    sources: tuple[Source, ...] = ()
    scores: tuple[Measured, ...] = ()
    speed: tuple[Measured, ...] = ()
    calibration: tuple[Measured, ...] = ()

    def __post_init__(self) -> None:
        _require_texts(self)
        if not LANGUAGE.fullmatch(self.language):
            raise ValueError(f"the language is {self.language[:40]!r}; expected its code, such as en, pt or zh-Hant")
        require_licence(self.licence)

    def __repr__(self) -> str:
        return f"<Card: {', '.join(filter(None, (self.language, self.licence)))}>"

    def to_data(self) -> dict[str, Any]:
        """The card as JSON, without what is empty."""
        return {name: _plain(value) for name, value in asdict(self).items() if value}

    @classmethod
    def from_data(cls, data: Any) -> Card:
        """The card of JSON; a ValueError where it is none."""
        given = dict(_known(data, cls, "the card"))
        if "language" not in given:
            raise ValueError("the card has no language")
        for name, kind in (("sources", Source), ("scores", Measured), ("speed", Measured), ("calibration", Measured)):
            given[name] = tuple(_entry(kind, each, name) for each in _list(given.get(name, []), name))
        return cls(**given)


def card_of(data: Mapping[str, Any]) -> Card | None:
    """The card in the JSON of an archive, if there is one; a ValueError where it is damaged."""
    return None if data.get("card") is None else Card.from_data(data["card"])


def with_card(archive: Archive, card: Card | None) -> Archive:
    """The archive with this card in it, or without one."""
    data = {name: value for name, value in archive.data.items() if name != "card"}
    return Archive(archive.kind, data if card is None else {"card": card.to_data(), **data}, archive.arrays)


def require_licence(licence: str) -> None:
    """Refuse what is no SPDX expression; whether there is such a licence is not looked up.

    >>> require_licence("Apache-2.0 AND CC-BY-SA-4.0")
    >>> require_licence("CC BY-SA 4.0")
    Traceback (most recent call last):
    ValueError: the licence 'CC BY-SA 4.0' is no SPDX expression, such as CC-BY-SA-4.0 or Apache-2.0 AND MIT
    """
    if not licence:
        return
    words = licence.replace("(", " ").replace(")", " ").split()
    names, operators = words[::2], words[1::2]
    sound = len(names) == len(operators) + 1 and set(operators) <= set(_OPERATORS) and _is_balanced(licence)
    if len(licence) > 200 or not sound or not all(map(_is_identifier, names)):
        raise ValueError(
            f"the licence {licence[:40]!r} is no SPDX expression, such as CC-BY-SA-4.0 or Apache-2.0 AND MIT"
        )


def _is_identifier(word: str) -> bool:
    return word not in _OPERATORS and _IDENTIFIER.fullmatch(word) is not None


def _is_balanced(text: str) -> bool:
    depth = 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if depth < 0:
            return False
    return depth == 0


def _plain(value: Any) -> Any:
    """Tuples of dataclasses, as `asdict` leaves them, for JSON: lists of objects without what is empty."""
    if isinstance(value, tuple):
        return [{name: inner for name, inner in each.items() if inner} for each in value]
    return value


def _entry(kind: type[Any], data: Any, name: str) -> Any:
    given = dict(_known(data, kind, name))
    needed = "name" if kind is Source else "on"
    if needed not in given:
        raise ValueError(f"{name}: an entry has no {needed!r}")
    if kind is Measured:
        given["figures"] = mapping(given.get("figures"), f"{name}: the figures")
    return kind(**given)


def _known(data: Any, kind: type[Any], name: str) -> Mapping[str, Any]:
    """An object with fields of this dataclass only."""
    fields = kind.__dataclass_fields__
    for field in mapping(data, name):
        if field not in fields:
            raise ValueError(f"{name}: there is no field {str(field)[:40]!r}; the fields are {', '.join(fields)}")
    found: Mapping[str, Any] = data
    return found


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list) or len(value) > _MOST:
        raise ValueError(f"{name} is no list of at most {_MOST} entries")
    return value


def _require_texts(given: Any) -> None:
    for name, field in type(given).__dataclass_fields__.items():
        if field.type == "str":
            _text(getattr(given, name), name)


def _text(value: Any, name: str) -> None:
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise ValueError(f"{name} is no text of at most {_LONGEST} characters")
