"""Entropy regularisation: log-linear training on trees that is also sure of its own on other text.

druck2009 section 1.3:

    L(w) = C [-sum_i log P(y_i | x_i; w) + weight (I / U) sum_u H(P(. | x_u; w))] + |w|^2 / 2

over I annotated and U unannotated sentences: at weight 1, the text counts as much as the trees. H is Shannon's entropy
or a Renyi entropy of order alpha, as Smith and Eisner 2007 have it; their gradients by the scores s are

    Shannon       -Cov(s, 1[arc])                        one covariance in O(n^3) a sentence
    Renyi         alpha (mu_alpha - mu) / (1 - alpha)     mu_alpha: the marginals under alpha s
    alpha = inf   mu - 1[arc of the best tree]

Only alpha = inf is not smooth, where two trees are best. L is not convex; at zero weights the gradient of H is zero
(for alpha = inf an arbitrary tree's), so that training starts out from the trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from headway.inference.batch import Floats, Ints
from headway.learning.descent import Descent, Losses
from headway.learning.examples import Differentiable, Examples, Trees, Unannotated, chunks_by_length
from headway.learning.log_linear import LogLinear
from headway.learning.progress import Report, State

# Closer to 1 than this, the quotient that defines a Renyi entropy loses more digits than Shannon's entropy is away.
_NEAR_ONE = 1e-7


@dataclass(frozen=True)
class EntropyRegularised:
    """`unannotated` is the text, `weight` what it counts beside the trees, `alpha` the order of the entropy."""

    unannotated: Unannotated
    structures: Differentiable = field(default_factory=Trees)
    regularisation: float = 0.1
    weight: float = 1.0
    alpha: float = 1.0
    descent: Descent = field(default_factory=Descent)

    def fit(self, examples: Examples, report: Report, resume: State | None = None) -> Floats:
        """Minimise L, calling `report` after each step or epoch; a report that answers False ends the training."""
        return self.descent.minimise_sum(self._losses(examples), report, resume)

    def objective(self, examples: Examples, weights: Floats) -> tuple[float, Floats]:
        """L(w) and its gradient."""
        return self._losses(examples).objective(weights)

    def _losses(self, examples: Examples) -> Losses:
        annotated, text = len(examples.lengths), len(self.unannotated.lengths)

        def chunks() -> Iterator[Ints]:
            """Numbers from `annotated` on are sentences of the text."""
            yield from chunks_by_length(examples)
            for which in chunks_by_length(self.unannotated):
                yield annotated + which

        return Losses(examples.size, annotated + text, chunks, partial(self._add_loss, examples))

    def _add_loss(self, examples: Examples, weights: Floats, which: Ints, gradient: Floats) -> float:
        annotated = len(examples.lengths)
        trees, text = which[which < annotated], which[which >= annotated] - annotated
        value = 0.0
        if len(trees):
            supervised = LogLinear(self.structures, self.regularisation)
            value += supervised.add_loss(examples, weights, trees, gradient)
        if len(text) and self.weight:
            share = self.regularisation * self.weight * annotated / len(self.unannotated.lengths)
            value += share * self._add_entropy(weights, text, share, gradient)
        return value

    def _add_entropy(self, weights: Floats, which: Ints, share: float, gradient: Floats) -> float:
        """The entropy of these sentences; `share` times its gradient is added to `gradient`."""
        scores = self.unannotated.score(weights, which)
        value, slope = entropy(self.structures, scores, self.unannotated.lengths[which], self.alpha)
        self.unannotated.add(gradient, which, share * slope)
        return value


def entropy(structures: Differentiable, scores: Floats, lengths: Ints, alpha: float) -> tuple[float, Floats]:
    """The entropy of order alpha, summed over the sentences, and its gradient by the scores."""
    if abs(alpha - 1.0) < _NEAR_ONE:
        log_z, mu, covariance = structures.covariance(scores, lengths, scores)
        return float(log_z.sum() - np.vdot(mu, scores)), -covariance
    log_z, mu = structures.marginals(scores, lengths)
    if alpha == np.inf:
        best = structures.best(scores, lengths, np.arange(len(lengths)))
        return float(log_z.sum() - np.vdot(best, scores)), mu - best
    log_z_alpha, mu_alpha = structures.marginals(alpha * scores, lengths)
    value = float(log_z_alpha.sum() - alpha * log_z.sum()) / (1.0 - alpha)
    return value, alpha / (1.0 - alpha) * (mu_alpha - mu)
