"""What a model says of itself (its settings, figures and data), as rows of a description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def about_rows(about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and values, one level deep; the history of a training is left out.

    >>> list(about_rows({"settings": {"seed": 0}, "best_pass": 3, "history": []}))
    [('settings.seed', '0'), ('best_pass', '3')]
    """
    for name, value in about.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", str(each)) for inner, each in value.items())
        elif name != "history":
            yield name, str(value)
