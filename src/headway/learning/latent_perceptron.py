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

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from headway.inference.batch import Floats, Ints
from headway.learning.examples import Choices, Unannotated
from headway.learning.perceptron import Figures, averaged
from headway.learning.progress import Report, State


class LatentExamples(Unannotated, Protocol):
    """Training inputs with the right output, but not the structure behind it."""

    def constrained(self, scores: Floats, which: Ints) -> Floats:
        """1 on the best structure that leads to the right output, 0 elsewhere; shaped like the scores."""
        ...

    def cost(self, latent: Floats, which: Ints) -> Floats:
        """l(h~, h), part by part: what each costs while a margin is asked for, 0 on `latent`, which is h~."""
        ...

    def output(self, latent: Floats, which: Ints) -> Any:
        """What a structure leads to."""
        ...

    def loss(self, output: Any, which: Ints) -> float:
        """How far an output is from the right one; 0 if it is right."""
        ...


@dataclass(frozen=True)
class LatentPerceptron:
    """`margin` is C; 0 asks for no margin. Passes end early when one of them changes nothing."""

    structures: Choices
    epochs: int = 10
    margin: float = 0.0
    seed: int = 0

    def fit(self, examples: LatentExamples, report: Report, resume: State | None = None) -> Floats:
        """Train, calling `report` after each epoch; a report that answers False ends the training.

        The figures are means: of the parts missed a word (or mention), and of loss and objective an example.
        """
        count, parts = len(examples.lengths), int(examples.lengths.sum())
        over = {"mistakes": parts, "loss": count, "objective": count}

        def step(weights: Floats, total: Floats, i: int, seen: int) -> Figures:
            return self._step(examples, weights, total, i, seen)

        return averaged(step, examples, over, (self.epochs, self.seed), report, resume, until_converged=True)

    def _step(self, examples: LatentExamples, weights: Floats, total: Floats, i: int, seen: int) -> Figures:
        which = np.array([i])
        scores = examples.score(weights, which)
        latent = examples.constrained(scores, which)
        augmented = scores + self.margin * examples.cost(latent, which) if self.margin else scores
        chosen = self.structures.best(augmented, examples.lengths[which], which)
        amounts = latent - chosen
        loss = examples.loss(examples.output(chosen, which), which)
        if not amounts.any():
            return {"mistakes": 0.0, "loss": loss, "objective": 0.0}
        examples.add(weights, which, amounts)
        examples.add(total, which, seen * amounts)
        objective = float((augmented * chosen).sum() - (scores * latent).sum())  # BLAS would not repeat the last bit
        return {"mistakes": float(amounts[amounts > 0].sum()), "loss": loss, "objective": objective}
