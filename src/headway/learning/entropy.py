"""Entropy regularisation: log-linear training on trees that also prefers confident trees on other text.

druck2009 section 1.3:

    L(w) = C [-sum_i log P(y_i | x_i; w) + weight (I / U) sum_u H(P(. | x_u; w))] + |w|^2 / 2

over I annotated and U unannotated sentences: at weight 1, the text counts as much as the trees. H is Shannon's entropy
or a Renyi entropy of order alpha, as Smith and Eisner 2007 have it; their gradients by the scores s are

    Shannon       -Cov(s, 1[arc])                        one covariance in O(n^3) per sentence
    Renyi         alpha (mu_alpha - mu) / (1 - alpha)     mu_alpha: the marginals under alpha s
    alpha = inf   mu - 1[arc of the best tree]

Only alpha = inf is not smooth, where two trees are best. L is not convex; at zero weights the gradient of H is zero
(for alpha = inf an arbitrary tree's), so that training starts out from the trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np

from headway.arrays import Floats, Ints, dot
from headway.learning.descent import Descent, Losses
from headway.learning.log_linear import LogLinear
from headway.learning.problem import COVARIANCE, Differentiable, Problem, chunks_by_length
from headway.learning.progress import Report, State
from headway.learning.sharded import Divisible, Shards, sum_over_shards

# Closer to 1 than this, the quotient that defines a Renyi entropy loses more digits than Shannon's entropy is away.
_NEAR_ONE = 1e-7


@dataclass(frozen=True)
class EntropyRegularised:
    """`text` has sentences without trees, `weight` is what it counts beside them, `alpha` the order of the entropy.

    `trees_per_text` is I / U, where it is not that of the sentences given: a shard has some of them only.
    """

    text: Problem[Differentiable]
    c: float = 0.1
    weight: float = 1.0
    alpha: float = 1.0
    descent: Descent = field(default_factory=Descent)
    trees_per_text: float | None = None

    needs = COVARIANCE

    def fit(self, problem: Problem[Differentiable], report: Report, resume: State | None = None) -> Floats:
        """Minimise L, calling `report` after each step or epoch; a report that answers False ends the training."""
        return self.descent.minimise_sum(self.losses(problem), report, resume)

    def part(self, problem: Divisible, which: Ints) -> tuple[EntropyRegularised, Any]:
        """For a shard with these trees: of the text, the sentences with the same numbers, up to the number of trees."""
        trees, text = len(problem.lengths), len(self.text.lengths)
        own = np.flatnonzero(np.isin(np.arange(text) % trees, which))
        return replace(self, text=cast(Divisible, self.text).only(own), trees_per_text=trees / text), problem.only(
            which
        )

    def fit_shards(self, shards: Shards[Any, Any], report: Report, resume: State | None = None) -> Floats:
        """The same over shards: each step asks all of them, and adds up."""
        return self.descent.minimise(sum_over_shards(shards), shards.size, report, resume)

    def objective(self, problem: Problem[Differentiable], weights: Floats) -> tuple[float, Floats]:
        """L(w) and its gradient."""
        return self.losses(problem).objective(weights)

    def losses(self, problem: Problem[Differentiable]) -> Losses:
        """The losses that L is the sum of."""
        annotated, text = len(problem.lengths), len(self.text.lengths)

        def chunks() -> Iterator[Ints]:
            """Numbers from `annotated` on are sentences of the text."""
            yield from chunks_by_length(problem)
            for which in chunks_by_length(self.text):
                yield annotated + which

        return Losses(problem.size, annotated + text, chunks, partial(self._add_loss, problem))

    def _add_loss(self, problem: Problem[Differentiable], weights: Floats, which: Ints, gradient: Floats) -> float:
        annotated = len(problem.lengths)
        trees, text = which[which < annotated], which[which >= annotated] - annotated
        value = 0.0
        if len(trees):
            value += LogLinear(self.c).add_loss(problem, weights, trees, gradient)
        if len(text) and self.weight:
            ratio = annotated / len(self.text.lengths) if self.trees_per_text is None else self.trees_per_text
            share = self.c * self.weight * ratio
            these = self.text.some(text)
            uncertainty, slope = entropy(these, these.score(weights), self.alpha)
            these.add(gradient, share * slope)
            value += share * uncertainty
        return value


def entropy(these: Differentiable, scores: Floats, alpha: float) -> tuple[float, Floats]:
    """The entropy of order alpha, summed over the sentences, and its gradient by the scores."""
    if abs(alpha - 1.0) < _NEAR_ONE:
        log_z, mu, covariance = these.covariance(scores, scores)
        return float(log_z.sum()) - dot(mu, scores), -covariance
    log_z, mu = these.marginals(scores)
    if alpha == np.inf:
        best = these.best(scores)
        return float(log_z.sum()) - dot(best, scores), mu - best
    log_z_alpha, mu_alpha = these.marginals(alpha * scores)
    value = float(log_z_alpha.sum() - alpha * log_z.sum()) / (1.0 - alpha)
    return value, alpha / (1.0 - alpha) * (mu_alpha - mu)
