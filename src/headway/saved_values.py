"""Values of a saved file, each checked before anything is made of it: a file may be damaged, or hostile.

What is wrong is a ValueError with the cause in words; whoever reads the file adds its name and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from numpy.typing import NDArray

LARGEST_WEIGHT = 2.0**100
"""Of a weight, either way: sums of thousands are far from where float64 ends, and no training comes near it. A power of
two: what is within it stays so when it is rounded to float32."""

_COUNT = 1 << 40  # more than any file counts


def whole_number(value: Any, name: str, low: int = 0, high: int = _COUNT) -> int:
    """An integer between these bounds.

    >>> whole_number(3, "max_heads", 1)
    3
    """
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name} is {_shown(value)}, not a whole number from {low} to {high}")
    return value


def number(value: Any, name: str) -> float:
    """A finite number.

    >>> number(1, "threshold")
    1.0
    """
    if type(value) not in (int, float) or not isfinite(value):
        raise ValueError(f"{name} is {_shown(value)}, not a finite number")
    return float(value)


def flag(value: Any, name: str) -> bool:
    """True or false, and nothing else."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} is neither true nor false")
    return value


def column_value(value: Any, name: str) -> str:
    r"""A text that can be written into a column of a treebank: not empty, and with nothing that would end it.

    >>> column_value("a\tb", "a label")
    Traceback (most recent call last):
    ValueError: a label is 'a\tb', which no treebank can have
    """
    if not isinstance(value, str) or not value or "\t" in value or "\n" in value or "\r" in value:
        raise ValueError(f"{name} is {_shown(value)}, which no treebank can have")
    return value


def column_values(values: Any, name: str) -> tuple[str, ...]:
    """Such texts in a list."""
    if not isinstance(values, list):
        raise ValueError(f"{name} is not in a list")
    return tuple(column_value(value, name) for value in values)


def texts(values: Iterable[Any], name: str) -> None:
    """Refuse anything in a list that is no text."""
    if not isinstance(values, list) or not set(map(type, values)) <= {str}:  # there may be hundreds of thousands
        raise ValueError(f"{name} are not a list of texts")


def mapping(value: Any, name: str) -> Mapping[str, Any]:
    """A JSON object."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} is not an object")
    return value


def numbers_in_range(array: NDArray[Any], name: str, largest: float = LARGEST_WEIGHT) -> None:
    """Refuse an array with numbers that are not finite, or so large that sums of them are no scores."""
    low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
    if not (-largest <= low and high <= largest):
        raise ValueError(f"{name} has numbers out of range: not finite, or beyond {largest:g}")


def _shown(value: Any) -> str:
    """A value in few characters."""
    text = ascii(value) if not isinstance(value, int) or abs(value) < _COUNT else "too large an integer"
    return text if len(text) <= 40 else f"{text[:37]}..."
