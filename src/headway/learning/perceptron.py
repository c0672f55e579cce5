"""The averaged structured perceptron, and its large-margin version.

Collins 2002, as koo2007 uses it; fernandes2012 section 2.2 (figure 2.2) for the margin. For each sentence: decode,
and where the tree is wrong add the features of the right arcs and subtract those of the wrong ones. With a margin C,
every arc that is not in the right tree has C added to its score before decoding, so that a right tree must win by C
per wrong arc. The result is the average of the weights after each sentence (`averaging`). On shards, whose sentences
cannot wait for each other, weights are mixed instead (`parameter_mixing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from headway.arrays import Floats, Ints
from headway.learning.averaging import RunPass, average, run_passes, untrained
from headway.learning.parameter_mixing import Figures, mixed_pass
from headway.learning.problem import ARGMAX, Examples, Instances, Problem
from headway.learning.progress import Pass, Report, State, continued
from headway.learning.sharded import Divisible, Shards


@dataclass(frozen=True)
class Perceptron:
    """`margin` is C of the large-margin version; 0 is Collins' perceptron."""

    epochs: int = 10
    margin: float = 0.0
    seed: int = 0

    needs = ARGMAX

    def fit(self, problem: Problem[Instances], report: Report, resume: State | None = None) -> Floats:
        """Train, calling `report` after each epoch; a report that answers False ends the training."""
        return averaged(partial(self.run, problem), problem, self, report, resume)

    def part(self, problem: Divisible, which: Ints) -> tuple[Perceptron, Any]:
        """For a shard with these sentences."""
        return self, problem.only(which)

    def fit_shards(self, shards: Shards[Any, Any], report: Report, resume: State | None = None) -> Floats:
        """Train on shards by parameter mixing."""
        return averaged(partial(mixed_pass, shards), shards, self, report, resume)

    def run(self, problem: Problem[Instances], order: Ints, weights: Floats, total: Floats, seen: int) -> Figures:
        """One pass; the figure is how many of the right arcs, labels or parts were missed."""
        examples = enumerate(order.tolist(), start=seen)
        return {"mistakes": sum(self._step(problem.some(np.array([i])), weights, total, now) for now, i in examples)}

    def over(self, lengths: Ints) -> Mapping[str, int]:
        """Mistakes are shown per word."""
        return {"mistakes": int(lengths.sum())}

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


class Passes(Protocol):
    """How many passes are made, and in which orders; what the sums of a pass are divided by to be shown."""

    @property
    def epochs(self) -> int: ...

    @property
    def seed(self) -> int: ...

    def over(self, lengths: Ints) -> Mapping[str, int]: ...


def averaged(
    run: RunPass[Figures],
    problem: Examples,
    passes: Passes,
    report: Report,
    resume: State | None,
    *,
    until_converged: bool = False,
) -> Floats:
    """Passes over the sentences in random order; the average of the weights."""
    count, over = len(problem.lengths), passes.over(problem.lengths)
    state = continued(resume, untrained(problem.size))
    result = average(state, int(state["pass"][0]) * count)
    for epoch, sums in run_passes(run, np.arange(count), state, passes.epochs, passes.seed):
        is_converged = until_converged and not sums["mistakes"]
        # After a pass without a mistake no other would change anything, but all of them count in the average.
        result = average(state, (passes.epochs if is_converged else epoch) * count)
        figures = {name: value / max(1, over[name]) for name, value in sums.items()}
        if not report(Pass(epoch, result, figures, state, is_converged)) or is_converged:
            break
    return result
