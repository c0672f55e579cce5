"""What scores a batch of sentences, whatever is scored: a function of weights, and its derivative transposed.

That is all a learner needs (`headway.learning.problem`), and what a neural network has by nature. A model parses with a
scorer whose weights are fixed (`Trained`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from headway.features.blocks import Weights
from headway.parallel import SERIAL, Executor

Batch = TypeVar("Batch", contravariant=True)


class Scorer(Protocol[Batch]):
    """Scores from weights. `Batch` is what it reads of some sentences; scores are shaped as its decoder likes."""

    @property
    def size(self) -> int:
        """How many weights there are."""
        ...

    def scores(self, weights: Weights, batch: Batch, executor: Executor = SERIAL) -> Any:
        """The scores of everything that can be chosen."""
        ...

    def pullback(self, into: Weights, batch: Batch, amounts: Any, executor: Executor = SERIAL) -> None:
        """into += the derivative of amounts·scores by the weights; amounts are shaped like the scores."""
        ...


S = TypeVar("S", bound=Scorer[Any])


@dataclass(frozen=True, repr=False)
class Trained(Generic[S]):
    """A scorer with its weights."""

    scorer: S
    weights: Weights

    def scores(self, batch: Any, executor: Executor = SERIAL) -> Any:
        """The scores of everything that can be chosen."""
        return self.scorer.scores(self.weights, batch, executor)
