"""Settings declared once: default, help text, choices and range of each field of a dataclass.

The command line makes its options from these declarations, and the checks read them, too. Nothing numerical is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from math import inf, isfinite
from numbers import Integral, Real
from types import NoneType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from headway.errors import ArgumentError, TrainingError

LARGEST_WHOLE = 2**63 - 1  # what an array can hold

_CALLED = {int: "a whole number", float: "a number", str: "text", bool: "True or False", NoneType: "None"}


@dataclass(frozen=True)
class Option:
    """How a setting appears on the command line: its help, and what it is called there if not by its own name.

    `off` is the name of a flag that switches a setting off. `default` is what help shows where the default depends on
    other settings.
    """

    help: str
    metavar: str | None = None
    default: str | None = None
    off: str | None = None
    choices: tuple[str, ...] | None = None
    minimum: float | None = None


def setting(value: Any, help: str, **more: Any) -> Any:
    """A field with its default and its option."""
    return field(default=value, metadata={"option": Option(help, **more)})


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields; working them out takes longer than all the rest of an option."""
    return get_type_hints(kind)


def choices_of(kind: type, name: str) -> tuple[str, ...]:
    """The values that a setting may have, where it has a choice of them.

    >>> from headway.training.settings import Settings
    >>> choices_of(Settings, "tags"), choices_of(Settings, "seed")
    (('predicted', 'gold'), ())
    """
    hint = hints_of(kind)[name]
    literals = [hint] if get_origin(hint) is Literal else [each for each in get_args(hint) if get_args(each)]
    return tuple(value for literal in literals for value in get_args(literal))


Made = TypeVar("Made")


def settings_of(kind: Callable[..., Made], given: Mapping[str, Any]) -> Made:
    """Settings with these fields given; an error names one that does not exist."""
    known = hints_of(cast(type, kind))
    for name in given:
        if name not in known:
            raise ArgumentError(f"there is no setting {name!r}; the settings are {', '.join(known)}")
    return kind(**given)


def require_choices(settings: Any) -> None:
    """Refuse a value that is not of a setting's type, or none of its choices."""
    hints = hints_of(settings.__class__)
    for each in fields(settings):
        _require_type(each.name, getattr(settings, each.name), hints[each.name])
        value, known = getattr(settings, each.name), choices_of(type(settings), each.name)
        if known and value not in known and not (value is None and each.default is None):
            raise TrainingError(f"{each.name} is {value!r}; expected any of {', '.join(known)}")


def require_minimums(settings: Any) -> None:
    """Refuse a number below a setting's minimum, or one that is not finite."""
    for each in fields(settings):
        value, minimum = getattr(settings, each.name), each.metadata["option"].minimum
        if minimum is not None and value is not None and not minimum <= value < inf:
            finite = "" if isfinite(value) else ", and finite"
            raise TrainingError(f"{each.name} is {value}; expected {minimum} or more{finite}")


def _require_type(name: str, value: Any, hint: Any) -> None:
    types = [_plain(each) for each in (get_args(hint) if NoneType in get_args(hint) else (hint,))]
    if not any(_is_a(value, each) for each in types):
        expected = " or ".join(_CALLED[each] for each in types)
        raise TrainingError(f"{name} is {value!r:.60}; expected {expected}")
    if isinstance(value, Integral) and abs(int(value)) > LARGEST_WHOLE:
        raise TrainingError(f"{name} is {value!r:.60}; expected at most {LARGEST_WHOLE}")


def _plain(hint: Any) -> type:
    """The type of a choice is text; others are as they are."""
    return hint if isinstance(hint, type) else str


def _is_a(value: Any, kind: type) -> bool:
    """As type checkers see it: a whole number is a number, also NumPy's; True is neither."""
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    return isinstance(value, kind)
