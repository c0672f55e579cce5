"""The averaged structured perceptron, and its large-margin version.

Collins 2002, as koo2007 uses it; fernandes2012 section 2.2 (figure 2.2) for the margin. For each sentence: decode,
and where the tree is wrong add the features of the right arcs and subtract those of the wrong ones. With a margin C,
every arc that is not in the right tree has C added to its score before decoding, so that a right tree must win by C
an arc. The result is the average of the weights after each sentence (`averaging`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from headway.inference.batch import Floats, Ints
from headway.learning.averaging import average, run_passes, untrained
from headway.learning.examples import Choices, Examples, Trees, Unannotated
from headway.learning.progress import Pass, Report, State

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Perceptron:
    """`margin` is C of the large-margin version; 0 is Collins' perceptron."""

    structures: Choices = field(default_factory=Trees)
    epochs: int = 10
    margin: float = 0.0
    seed: int = 0

    def fit(self, examples: Examples, report: Report, resume: State | None = None) -> Floats:
        """Train, calling `report` after each epoch; a report that answers False ends the training."""

        def step(weights: Floats, total: Floats, i: int, seen: int) -> Figures:
            return {"mistakes": self._step(examples, weights, total, i, seen)}

        over = {"mistakes": int(examples.lengths.sum())}
        return averaged(step, examples, over, (self.epochs, self.seed), report, resume)

    def _step(self, examples: Examples, weights: Floats, total: Floats, i: int, seen: int) -> float:
        """One sentence; returns how many of the right arcs, labels or parts were missed."""
        which = np.array([i])
        scores, gold = examples.score(weights, which), examples.gold(which)
        if self.margin:
            scores += self.margin * examples.cost(which)
        amounts = gold - self.structures.best(scores, examples.lengths[which], which)
        if not amounts.any():
            return 0.0
        examples.add(weights, which, amounts)
        examples.add(total, which, seen * amounts)
        return float(amounts[amounts > 0].sum())


def averaged(
    step: Callable[[Floats, Floats, int, int], Figures],
    examples: Unannotated,
    over: Mapping[str, int],
    passes: tuple[int, int],
    report: Report,
    resume: State | None,
    *,
    until_converged: bool = False,
) -> Floats:
    """Passes of `step(weights, total, i, seen)` over the examples in random order; the average of the weights.

    A figure of a pass is the sum of the steps' divided by its number in `over`. `passes` are how many, and the seed.
    """
    epochs, seed = passes
    count = len(examples.lengths)
    state = resume or untrained(examples.size)

    def run(order: Ints, weights: Floats, total: Floats, seen: int) -> dict[str, float]:
        sums = dict.fromkeys(over, 0.0)
        for now, i in enumerate(order, start=seen):
            for name, value in step(weights, total, i, now).items():
                sums[name] += value
        return sums

    result = average(state, int(state["epoch"][0]) * count)
    for epoch, sums in run_passes(run, np.arange(count), state, epochs, seed):
        is_converged = until_converged and not sums["mistakes"]
        # After a pass without a mistake no other would change anything, but all of them count in the average.
        result = average(state, (epochs if is_converged else epoch) * count)
        figures = {name: value / max(1, over[name]) for name, value in sums.items()}
        if not report(Pass(epoch, result, figures, state)) or is_converged:
            break
    return result
