"""The latent structure perceptron (fernandes2012 section 2.3, figure 2.3).

Where an output y is hard to predict itself, a structure h behind it may not be: a tree of mentions that stands for a
cluster, or a whole tree for a sentence of which some heads are known. Nobody annotated h. For each example:

    h~ = argmax of w·f(h) over H(x, y)              the best structure that leads to the right output
    h^ = argmax of w·f(h) + C l(h~, h) over H(x)    the best of all, each part that is not in h~ costing what it costs
    w += f(h~) - f(h^)

The result is the average of the weights after each example. The paper's target predictor F_y is a map here, `output`:
in our uses nothing is left to choose once h is known. An output with weights of its own is a part of h.

With h~ given, whatever the weights, this is `perceptron.Perceptron`, update by update. The objective that the updates
descend, stochastically, is the mean over the examples of max_h (w·f(h) + C l(h~, h)) - max_h~ w·f(h~): a difference of
convex functions, of which a local optimum is found. It has converged when a pass changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from headway.arrays import Floats, Ints
from headway.learning.parameter_mixing import Figures, mixed_pass
from headway.learning.perceptron import averaged
from headway.learning.problem import ARGMAX, Examples, Scored
from headway.learning.progress import Report, State
from headway.learning.sharded import Divisible, Shards


class LatentInstances(Scored, Protocol):
    """Some inputs whose right output is known, but not the structure behind it: what is scored are its parts."""

    def constrained(self, scores: Floats) -> Floats:
        """1 on the best structure that leads to the right output, 0 elsewhere."""
        ...

    def cost(self, latent: Floats) -> Floats:
        """l(h~, h), part by part: what each costs where a margin is asked for, 0 on `latent`, which is h~."""
        ...

    def output(self, latent: Floats) -> Any:
        """What a structure leads to."""
        ...

    def loss(self, output: Any) -> float:
        """How far an output is from the right one; 0 if it is right."""
        ...


class LatentProblem(Examples, Protocol):
    """Training inputs with the right output, but not the structure behind it, taken some at a time."""

    def some(self, which: Ints) -> LatentInstances: ...


@dataclass(frozen=True)
class LatentPerceptron:
    """`margin` is C; 0 asks for no margin. Training ends early when a pass changes nothing."""

    epochs: int = 10
    margin: float = 0.0
    seed: int = 0

    needs = ARGMAX

    def fit(self, problem: LatentProblem, report: Report, resume: State | None = None) -> Floats:
        """Train, calling `report` after each epoch; a report that answers False ends the training.

        The figures are means: parts missed per word (or mention), loss and objective per example.
        """
        return averaged(partial(self.run, problem), problem, self, report, resume, until_converged=True)

    def part(self, problem: Divisible, which: Ints) -> tuple[LatentPerceptron, Any]:
        """For a shard with these examples."""
        return self, problem.only(which)

    def fit_shards(self, shards: Shards[Any, Any], report: Report, resume: State | None = None) -> Floats:
        """Train on shards by parameter mixing."""
        return averaged(partial(mixed_pass, shards), shards, self, report, resume, until_converged=True)

    def run(self, problem: LatentProblem, order: Ints, weights: Floats, total: Floats, seen: int) -> Figures:
        """One pass; the figures are sums."""
        sums: Counter[str] = Counter({"mistakes": 0.0, "loss": 0.0, "objective": 0.0})
        for now, i in enumerate(order.tolist(), start=seen):
            sums.update(self._step(problem.some(np.array([i])), weights, total, now))
        return sums

    def over(self, lengths: Ints) -> Mapping[str, int]:
        """What the sums are divided by."""
        return {"mistakes": int(lengths.sum()), "loss": len(lengths), "objective": len(lengths)}

    def _step(self, this: LatentInstances, weights: Floats, total: Floats, seen: int) -> Figures:
        scores = this.score(weights)
        latent = this.constrained(scores)
        augmented = scores + self.margin * this.cost(latent) if self.margin else scores
        chosen = this.best(augmented)
        amounts = latent - chosen
        loss = this.loss(this.output(chosen))
        if not amounts.any():
            return {"mistakes": 0.0, "loss": loss, "objective": 0.0}
        this.add(weights, amounts)
        this.add(total, seen * amounts)
        objective = float((augmented * chosen).sum() - (scores * latent).sum())  # BLAS would not repeat the last bit
        return {"mistakes": float(amounts[amounts > 0].sum()), "loss": loss, "objective": objective}
