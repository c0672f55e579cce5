"""What a learner tells after each pass over the data, and what it needs to go on from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from headway.inference.batch import Floats
from headway.learning.examples import Examples

State = dict[str, NDArray[Any]]
"""Arrays from which training resumes; saved in checkpoints."""


@dataclass(frozen=True)
class Pass:
    """One pass done: the weights to decode with now, figures to print, and the state to resume from."""

    number: int
    weights: Floats
    figures: Mapping[str, float]
    state: State


Report = Callable[[Pass], bool]
"""Called after each pass; False ends the training."""


class Learner(Protocol):
    """Anything that finds weights for examples."""

    def fit(self, examples: Examples, report: Report, resume: State | None = None) -> Floats:
        """Train, calling `report` after each pass; `resume` goes on from a state an earlier pass reported."""
        ...
