"""Sums, marginals, entropies and the best tree for scores of any finite size: what `first_order` does with wide ones.

Ordinary algorithms add scores up and round: a sum of size s is off by 1e-16 s, and that is the relative error of a
probability. Up to `batch.WIDE` this is 1e-12. A sentence with a larger score (a mask of -1e9, say) comes here, where
scores are only ever added exactly, as limbs in compiled sums (`exact_numbers`): some ten to a hundred times slower, and
as accurate as for small scores. `exact_trees` does the same for the best tree.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from headway.arrays import Floats, Ints, TreeClass
from headway.errors import PrecisionError
from headway.inference.batch import LARGEST_SCORE, Batch, allowed
from headway.inference.exact_numbers import (
    Numbers,
    add,
    divide,
    limbs_and_unit,
    log_of,
    log_ratio,
    set_score,
    set_zero,
    zeros,
)
from headway.inference.exact_spans import spans
from headway.inference.exact_walks import walks
from headway.inference.jit import kernel, part

# Nearer to 1, a Renyi entropy is Shannon's up to what its quotient would lose.
_NEAR_ONE = 1e-7
# The largest error, relative or absolute, with which a cross-entropy is still worth reporting.
_MOST_ROUNDING = 1e-8


class Totals(NamedTuple):
    """log Z, entropy and log P of the given trees, each (B,); log Z is -inf where no tree exists."""

    log_z: Floats
    entropy: Floats
    log_prob: Floats


class ArcSums(NamedTuple):
    """log Z (B,); log P(arc) and Cov(f, 1[arc]), shaped like the scores."""

    log_z: Floats
    log_mu: Floats
    slope: Floats


def totals(batch: Batch, trees: TreeClass, heads: Ints | None = None) -> Totals:
    """The sums that need no marginals; `heads` (B, N+1) are trees of the class."""
    size, nodes = batch.scores.shape[:2]
    if heads is None:
        heads = np.full((size, nodes), -1)
    result = Totals(np.zeros(size), np.zeros(size), np.zeros(size))
    _totals(batch.scores, batch.residuals(), batch.lengths, trees.projective, trees.single_root, heads, *result)
    return result


def arc_sums(batch: Batch, trees: TreeClass, f: Floats | None = None) -> ArcSums:
    """Log-marginals, and covariances with f."""
    shape = batch.scores.shape
    result = ArcSums(np.zeros(len(batch)), np.full(shape, -np.inf), np.zeros(shape))
    direction = np.zeros(shape) if f is None else f
    _arc_sums(batch.scores, batch.residuals(), batch.lengths, direction, trees.projective, trees.single_root, *result)
    return result


def renyi(sentence: Batch, trees: TreeClass, best: Ints, alpha: float) -> float:
    """log(sum P^alpha) / (1 - alpha) of one sentence, with all weights relative to its best tree."""
    one = totals(sentence, trees, best[None])
    if abs(alpha - 1) < _NEAR_ONE:
        return float(one.entropy[0])
    powers = totals(_scaled(sentence, alpha), trees, best[None])
    return float((alpha * one.log_prob[0] - powers.log_prob[0]) / (1.0 - alpha))


def _scaled(sentence: Batch, alpha: float) -> Batch:
    """The scores times alpha, and exactly: what a float64 has no room for becomes the residual."""
    scores, residual = np.full(sentence.scores.shape, -np.inf), np.zeros(sentence.scores.shape)
    for cell in np.argwhere(allowed(sentence)):
        at = tuple(cell)
        product = Fraction(alpha) * (Fraction(sentence.scores[at]) + Fraction(sentence.residuals()[at]))
        if abs(product) > LARGEST_SCORE:
            raise PrecisionError(
                f"a score of {sentence.scores[at]:g} times alpha, {alpha:g}, is beyond {LARGEST_SCORE:g}"
            )
        scores[at] = float(product)
        residual[at] = float(product - Fraction(float(product)))
    return replace(sentence, scores=scores, residual=residual)


def mean_cost(sentence: Batch, trees: TreeClass, best: Ints, mu: Floats) -> float:
    """log Z - E[score] of one sentence, the expectation under the marginals mu of another distribution.

    Scores are taken relative to the best tree. If they still cancel, so that what is left has no right digits, that is
    an error.
    """
    words = np.arange(1, len(best))
    arcs = allowed(sentence)[0]
    scores, residual = sentence.scores[0], sentence.residuals()[0]
    at_best = np.zeros(len(best)), np.zeros(len(best))
    at_best[0][1:], at_best[1][1:] = scores[best[1:], words], residual[best[1:], words]
    with np.errstate(invalid="ignore"):
        cost = np.where(arcs, (at_best[0] - scores) + (at_best[1] - residual), 0.0)
    terms = (mu * cost).ravel().tolist()
    value = -float(totals(sentence, trees, best[None]).log_prob[0]) + math.fsum(terms)
    rounding = len(best) * np.finfo(np.float64).eps * math.fsum(map(abs, terms))
    if rounding > _MOST_ROUNDING * max(1.0, abs(value)):
        raise PrecisionError(
            f"the cross-entropy cannot be told from scores this large: about {value:g}, within {rounding:.0e}; "
            "forbid arcs by -inf rather than by large negative scores"
        )
    return value


@kernel
def _totals(
    scores: Floats,
    residual: Floats,
    lengths: Ints,
    projective: bool,
    single_root: bool,
    heads: Ints,
    log_z: Floats,
    entropy: Floats,
    log_prob: Floats,
) -> None:
    nothing = np.zeros(scores.shape[1:])
    for b in range(len(lengths)):
        n = lengths[b]
        limbs, unit = limbs_and_unit(scores[b], residual[b], n)
        weights = _weights(scores[b], residual[b], nothing, n, limbs, unit)
        total = zeros(1, 1, limbs)
        if projective:
            found = spans(weights, n, single_root, unit, True, total, None)
        else:
            found = walks(scores[b], weights, n, single_root, unit, True, total, None)
        if not found:
            log_z[b] = -np.inf
            continue
        log_z[b] = log_of(total, 0, 0, unit)
        entropy[b] = total.mean[0, 0]
        for m in range(1, n + 1):
            if heads[b, m] >= 0:
                divide(total, 0, 0, weights, heads[b, m], m)
        log_prob[b] = -log_of(total, 0, 0, unit)


@kernel
def _arc_sums(
    scores: Floats,
    residual: Floats,
    lengths: Ints,
    f: Floats,
    projective: bool,
    single_root: bool,
    log_z: Floats,
    log_mu: Floats,
    slope: Floats,
) -> None:
    for b in range(len(lengths)):
        n = lengths[b]
        limbs, unit = limbs_and_unit(scores[b], residual[b], n)
        weights = _weights(scores[b], residual[b], f[b], n, limbs, unit)
        total, mass = zeros(1, 1, limbs), zeros(n + 1, n + 1, limbs)
        if projective:
            found = spans(weights, n, single_root, unit, False, total, mass)
        else:
            found = walks(scores[b], weights, n, single_root, unit, False, total, mass)
        log_z[b] = log_of(total, 0, 0, unit) if found else -np.inf
        if found:
            _normalise(mass, n, unit, log_mu[b], slope[b])


@part
def _weights(scores: Floats, residual: Floats, f: Floats, n: int, limbs: int, unit: int) -> Numbers:
    weights = zeros(n + 1, n + 1, limbs)
    for h in range(n + 1):
        for m in range(1, n + 1):
            if h != m:
                set_score(weights, h, m, scores[h, m], residual[h, m], f[h, m], unit)
    return weights


@part
def _normalise(mass: Numbers, n: int, unit: int, log_mu: Floats, slope: Floats) -> None:
    """P(h -> m) is an arc's share of the mass of m's arcs; dP = P (d log mass - its mean over the heads of m)."""
    total = zeros(1, 1, mass.whole.shape[2])
    for m in range(1, n + 1):
        set_zero(total, 0, 0)
        for h in range(n + 1):
            add(total, 0, 0, mass, h, m, unit, False)
        for h in range(n + 1):
            if mass.rest[h, m] > -np.inf:
                log_mu[h, m] = min(log_ratio(mass, h, m, total, 0, 0, unit), 0.0)
                slope[h, m] = np.exp(log_mu[h, m]) * (mass.mean[h, m] - total.mean[0, 0])
