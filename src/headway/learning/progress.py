"""What a learner reports after each pass over the data, and what it needs to resume from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from headway.arrays import Floats
from headway.errors import CheckpointError
from headway.learning.problem import Quantity

State = dict[str, NDArray[Any]]
"""Arrays from which training resumes; saved in checkpoints."""


@dataclass(frozen=True)
class Pass:
    """A finished pass: the weights to decode with now, figures to print, and the state to resume from.

    The state's array `pass` holds the number of the pass. A state that is kept elsewhere is fetched when its arrays are
    asked for, before the next pass. After the one that `is_last`, the learner ends by itself.
    """

    number: int
    weights: Floats
    figures: Mapping[str, float]
    state: Mapping[str, NDArray[Any]]
    is_last: bool = False


Report = Callable[[Pass], bool]
"""Called after each pass; False ends the training."""


def continued(resume: State | None, fresh: State) -> State:
    """The state to continue from; it must be like that of a fresh start: compiled code indexes without looking."""
    if resume is None:
        return fresh
    for name, array in fresh.items():
        found = resume.get(name)
        if found is None or (found.shape, found.dtype) != (array.shape, array.dtype):
            raise CheckpointError(f"{name} is not as this training has it")
    return {name: resume[name] for name in fresh}


class Learner(Protocol):
    """Anything that finds weights for a problem."""

    @property
    def needs(self) -> frozenset[Quantity]:
        """What the problem's instances must be able to compute."""
        ...

    def fit(self, problem: Any, report: Report, resume: State | None = None) -> Floats:
        """Train, calling `report` after each pass; `resume` continues from a state that an earlier pass reported."""
        ...
