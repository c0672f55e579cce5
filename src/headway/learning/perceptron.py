"""The averaged structured perceptron, and its large-margin version.

Collins 2002, as koo2007 uses it; fernandes2012 section 2.2 (figure 2.2) for the margin. For each sentence: decode,
and where the tree is wrong add the features of the right arcs and subtract those of the wrong ones. With a margin C,
every arc that is not in the right tree has C added to its score before decoding, so that a right tree must win by C
per wrong arc. The result is the average of the weights after each sentence (`averaging`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from headway.arrays import Floats, Ints
from headway.learning.averaging import average, run_passes, untrained
from headway.learning.problem import ARGMAX, Examples, Instances, Problem
from headway.learning.progress import Pass, Report, State, continued

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Perceptron:
    """`margin` is C of the large-margin version; 0 is Collins' perceptron."""

    epochs: int = 10
    margin: float = 0.0
    seed: int = 0

    needs = ARGMAX

    def fit(self, problem: Problem[Instances], report: Report, resume: State | None = None) -> Floats:
        """Train, calling `report` after each epoch; a report that answers False ends the training."""

        def step(weights: Floats, total: Floats, i: int, seen: int) -> Figures:
            return {"mistakes": self._step(problem.some(np.array([i])), weights, total, seen)}

        over = {"mistakes": int(problem.lengths.sum())}
        return averaged(step, problem, over, (self.epochs, self.seed), report, resume)

    def _step(self, this: Instances, weights: Floats, total: Floats, seen: int) -> float:
        """One sentence; returns how many of the right arcs, labels or parts were missed."""
        scores, gold = this.score(weights), this.gold()
        if self.margin:
            scores += self.margin * this.cost()
        amounts = gold - this.best(scores)
        if not amounts.any():
            return 0.0
        this.add(weights, amounts)
        this.add(total, seen * amounts)
        return float(amounts[amounts > 0].sum())


def averaged(
    step: Callable[[Floats, Floats, int, int], Figures],
    problem: Examples,
    over: Mapping[str, int],
    passes: tuple[int, int],
    report: Report,
    resume: State | None,
    *,
    until_converged: bool = False,
) -> Floats:
    """Passes of `step(weights, total, i, seen)` over the sentences in random order; the average of the weights.

    A figure of a pass is the sum of the steps' divided by its number in `over`. `passes` are how many, and the seed.
    """
    epochs, seed = passes
    count = len(problem.lengths)
    state = continued(resume, untrained(problem.size))

    def run(order: Ints, weights: Floats, total: Floats, seen: int) -> dict[str, float]:
        sums = dict.fromkeys(over, 0.0)
        for now, i in enumerate(order, start=seen):
            for name, value in step(weights, total, i, now).items():
                sums[name] += value
        return sums

    result = average(state, int(state["pass"][0]) * count)
    for epoch, sums in run_passes(run, np.arange(count), state, epochs, seed):
        is_converged = until_converged and not sums["mistakes"]
        # After a pass without a mistake no other would change anything, but all of them count in the average.
        result = average(state, (epochs if is_converged else epoch) * count)
        figures = {name: value / max(1, over[name]) for name, value in sums.items()}
        if not report(Pass(epoch, result, figures, state, is_converged)) or is_converged:
            break
    return result
