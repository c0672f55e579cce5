"""What every kind of model shares: the options of a prediction, and the description that `headway info` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Task = Literal["parsing", "coreference"]


@dataclass(frozen=True)
class Options:
    """How to parse.

    `mbr` maximises the expected number of right heads rather than the tree's score. Without `exact`, higher-order
    models stop where dual decomposition stops.
    """

    mbr: bool = False
    exact: bool = True


@dataclass(frozen=True)
class Table:
    """A table of a description: a row of titles and rows of text."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Description:
    """What `headway info` prints of a model: rows of name and value, then tables; `data` is the same for JSON.

    `templates` has the model's templates by table, as `headway train --templates` reads them.
    """

    rows: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    templates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
