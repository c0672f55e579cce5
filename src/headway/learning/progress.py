"""What a learner reports after each pass over the data, and what it needs to resume from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from headway.arrays import Floats
from headway.learning.problem import Quantity

State = dict[str, NDArray[Any]]
"""Arrays from which training resumes; saved in checkpoints."""


@dataclass(frozen=True)
class Pass:
    """A finished pass: the weights to decode with now, figures to print, and the state to resume from."""

    number: int
    weights: Floats
    figures: Mapping[str, float]
    state: State


Report = Callable[[Pass], bool]
"""Called after each pass; False ends the training."""


class Learner(Protocol):
    """Anything that finds weights for a problem."""

    @property
    def needs(self) -> frozenset[Quantity]:
        """What the problem's instances must be able to compute."""
        ...

    def fit(self, problem: Any, report: Report, resume: State | None = None) -> Floats:
        """Train, calling `report` after each pass; `resume` continues from a state that an earlier pass reported."""
        ...
