"""Settings declared once: default, help text, choices and range of each field of a dataclass.

The command line makes its options from these declarations, and the checks read them, too. Nothing numerical is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from math import inf, isfinite
from typing import Any, Literal, get_args, get_origin, get_type_hints

from headway.errors import TrainingError


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


def require_choices(settings: Any) -> None:
    """Refuse a value that is none of a setting's choices."""
    for each in fields(settings):
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
