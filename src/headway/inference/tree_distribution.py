"""`TreeDistribution`: every question about a distribution over dependency trees, for one sentence or a padded batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headway.arrays import Floats, Ints, TreeClass
from headway.errors import ArgumentError, HeadsError, PrecisionError, ShapeError
from headway.inference import any_scale, joint, kbest, mbr, sampling
from headway.inference.batch import (
    Batch,
    allowed,
    as_array,
    as_batch,
    as_count,
    as_function,
    as_scores,
)
from headway.inference.first_order import (
    arc_covariances,
    arc_marginals,
    begin,
    best_heads,
    require_trees,
    tree_sums,
)
from headway.inference.heads import as_heads, is_in_class
from headway.inference.hopeless_arcs import without_hopeless_arcs
from headway.inference.support import has_tree_outside
from headway.parallel import SERIAL, executor_for

# Closer to 1 than this, the quotient that defines a Renyi entropy loses more digits than two terms of its expansion.
_NEAR_ONE = 1e-5
# An entropy that is the difference of larger numbers is summed exactly instead.
_LARGEST_COST = 2.0**8


class TreeDistribution:
    """P(tree) proportional to exp(sum of its arcs' scores), over all trees of a class.

    `scores[head, modifier]` has shape (n+1, n+1); a padded batch is (B, N+1, N+1) with `lengths` words each, and every
    result then has a leading axis B. `threads` are used over the sentences of a batch (None: every core).

    Marginals go on from where `log_partition` has got, if it was read before them. Until then it keeps what they need:
    two copies of the scores, three if trees are projective.

    >>> d = TreeDistribution([[0.0, 1.0, 2.0], [0.0, 0.0, 2.0], [0.0, 1.5, 0.0]])
    >>> d.argmax()
    array([-1,  2,  0])
    >>> round(d.log_partition, 4)
    3.9741
    >>> d.marginals.round(3)
    array([[0.   , 0.378, 0.622],
           [0.   , 0.   , 0.378],
           [0.   , 0.622, 0.   ]])
    """

    def __init__(
        self,
        scores: ArrayLike,
        projective: bool = False,
        single_root: bool = True,
        lengths: ArrayLike | None = None,
        threads: int | None = None,
    ) -> None:
        # A copy, so that results computed later still belong to the scores given now.
        self._batch = as_batch(np.array(as_scores(scores)), lengths)
        self.trees = TreeClass.of(projective, single_root)
        self._executor = executor_for(threads)

    @classmethod
    def of_batch(cls, batch: Batch, trees: TreeClass, known: tuple[Floats, Floats] | None = None) -> TreeDistribution:
        """The distribution of scores that were checked before; `known` are log Z (B,) and marginals, if computed."""
        distribution = cls.__new__(cls)
        distribution._batch, distribution.trees, distribution._executor = batch, trees, SERIAL
        if known is not None:
            distribution.__dict__["_inference"] = known
        return distribution

    def _with_residual(self, residual: Floats) -> TreeDistribution:
        """The distribution of scores + residual; both are small, or their sum is not rounded."""
        batch, extra = self._batch, residual[None] if self._batch.single else residual
        if batch.wide is not None:
            self._batch = replace(batch, residual=extra)
        else:
            self._batch = replace(batch, scores=batch.scores + extra)
        return self

    def __repr__(self) -> str:
        shape = self._batch.scores.shape[1:] if self._batch.single else self._batch.scores.shape
        return f"TreeDistribution(scores of shape {shape}, {self.trees})"

    @property
    def log_partition(self) -> Any:
        """log of the sum over trees of exp(score): a float, or (B,)."""
        return self._unbatch(self._log_z)

    @property
    def marginals(self) -> Floats:
        """P(head -> modifier), shaped like the scores; every word's column sums to 1."""
        return self._unbatch(self._mu)  # type: ignore[no-any-return]

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """Which cells of `scores` are arcs that some tree might have: not padding, not forbidden."""
        return self._unbatch(allowed(self._batch))  # type: ignore[no-any-return]

    @property
    def mean(self) -> Floats:
        """`marginals`, by the name torch's distributions give it: the mean of a tree as a matrix of zeros and ones."""
        return self.marginals

    def argmax(self) -> Ints:
        """Heads of the best tree; padding is -1."""
        return self._unbatch(self._best)  # type: ignore[no-any-return]

    @property
    def mode(self) -> Ints:
        """`argmax()`, by the name torch's distributions give it."""
        return self.argmax()

    @property
    def max(self) -> Any:
        """Score of the best tree."""
        return self._each(lambda b, sentence: kbest.tree_score(sentence, self._tree(self._best, b)))

    def mbr(self) -> Ints:
        """Heads of the tree with the largest sum of marginals: fewest heads expected to be wrong."""
        heads = mbr.mbr(self._batch, self._mu, self.trees, self._executor)
        return self._unbatch(heads)  # type: ignore[no-any-return]

    def score(self, heads: ArrayLike) -> Any:
        """Sum of the tree's arc scores; -inf for heads that are no tree of the class."""
        return self._unbatch(self._scores_of(self._heads(heads)))

    def log_prob(self, heads: ArrayLike) -> Any:
        """log P(tree); -inf for heads that are no tree of the class."""
        trees = self._heads(heads)
        result = self._scores_of(trees)
        possible = result > -np.inf
        result[possible] -= self._log_z[possible]
        wide = self._batch.wide
        if wide is not None:
            known = any_scale.totals(self._batch.only_wide(), self.trees, np.where(possible[:, None], trees, -1)[wide])
            result[wide] = np.where(possible[wide], known.log_prob, -np.inf)
        return self._unbatch(result)

    def expectation(self, f: ArrayLike) -> Any:
        """E[f] of an arc-factored f shaped like the scores; cells of forbidden arcs are ignored."""
        values = as_function(f, self._batch, "f")
        return self._unbatch((self._mu * values).sum(axis=(1, 2)))

    def covariance(self, f: ArrayLike, g: ArrayLike) -> Any:
        """Cov(f, g) of two arc-factored functions, O(n^3)."""
        values = as_function(g, self._batch, "g")
        with np.errstate(over="ignore", invalid="ignore"):
            result = (self._covariance_with_arcs(f) * values).sum(axis=(1, 2))
        if not np.isfinite(result).all():
            raise PrecisionError("the covariance is beyond 1.8e308, which float64 cannot hold; scale f or g down")
        return self._unbatch(result)

    def covariance_with_arcs(self, f: ArrayLike) -> Floats:
        """Cov(f, 1[arc]) for every arc, O(n^3): the gradient of E[f] by the scores, and the derivative of the
        marginals in the direction f."""
        return self._unbatch(self._covariance_with_arcs(f))  # type: ignore[no-any-return]

    def arc_set_probability(self, arcs: Any) -> Any:
        """P(all these arcs (head, modifier) are in the tree); for a batch, one list of arcs per sentence."""
        lists = [arcs] if self._batch.single else list(arcs)
        if len(lists) != len(self._batch):
            raise ShapeError(
                f"there are {len(lists)} lists of arcs for {len(self._batch)} sentences; expected one each"
            )
        return self._each(lambda b, sentence: joint.arc_set_probability(sentence, lists[b], self.trees, self._executor))

    def pair_marginals(self) -> Floats:
        """P((h, m) and (h2, m2) in the tree) at [h, m, h2, m2]; n^4 numbers, so for n <= 64 only."""
        size, nodes = self._batch.scores.shape[:2]
        joint.require_small(nodes)
        result = np.zeros((size, nodes, nodes, nodes, nodes))
        for b, sentence in enumerate(self._batch.sentences()):
            own = slice(0, self._batch.lengths[b] + 1)
            result[b, own, own, own, own] = joint.pair_marginals(
                sentence, self._mu[b, own, own], self.trees, self._executor
            )
        return self._unbatch(result)  # type: ignore[no-any-return]

    @property
    def entropy(self) -> Any:
        """Shannon entropy in nats."""
        return self._unbatch(self._entropy)

    def cross_entropy(self, other: TreeDistribution) -> Any:
        """-E[log other(tree)] under this distribution; inf if `other` forbids an arc this one may use."""
        return self._unbatch(self._cross_entropy(other))

    def kl(self, other: TreeDistribution) -> Any:
        """Kullback-Leibler divergence of `other` from this distribution, in nats."""
        return self._unbatch(np.maximum(self._cross_entropy(other) - self._entropy, 0.0))

    def renyi(self, alpha: float) -> Any:
        """Renyi entropy: log(sum P^alpha) / (1 - alpha); alpha 1 is Shannon's, inf -log of the largest P."""
        if not isinstance(alpha, Real) or not alpha >= 0:
            raise ArgumentError(
                f"alpha is {alpha!r}; expected a number of at least 0, for which Renyi entropies are defined"
            )
        if alpha == 1:
            return self.entropy
        if alpha == np.inf:
            return -self.log_prob(self.argmax())
        if self._batch.wide is not None:
            return self._each(
                lambda b, sentence: any_scale.renyi(sentence, self.trees, self._tree(self._best, b), alpha)
            )
        if abs(alpha - 1) < _NEAR_ONE:
            f = self._batch.scores[0] if self._batch.single else self._batch.scores
            return self.entropy - (alpha - 1) / 2 * self.covariance(f, f)
        arcs = allowed(self._batch)
        powers = np.where(arcs, alpha * np.where(arcs, self._batch.scores, 0.0), -np.inf)
        log_z = self._sums(as_batch(powers, self._batch.lengths))
        return self._unbatch((log_z - alpha * self._log_z) / (1.0 - alpha))

    def sample(self, k: int | None = None, rng: np.random.Generator | int | None = None) -> Ints:
        """k exact, independent trees: (k, n+1), or (B, k, N+1) padded with -1. Without k one tree, (n+1,) or (B, N+1).

        `rng` is a generator or a seed; without it, every call draws other trees.
        """
        if k is None:
            return self.sample(1, rng)[..., 0, :]
        generator, k = sampling.as_generator(rng), as_count(k, "k", least=0)
        size, nodes = self._batch.scores.shape[:2]
        result = np.full((size, k, nodes), -1, dtype=np.int64)
        for b, sentence in enumerate(self._batch.sentences()):
            inside = slice(0, self._batch.lengths[b] + 1)
            mu = self._mu[b, inside, inside]
            result[b, :, inside] = sampling.sample(sentence, mu, k, generator, self.trees, self._executor)
        return self._unbatch(result)  # type: ignore[no-any-return]

    def sample_without_replacement(self, k: int, rng: np.random.Generator | int | None = None) -> Any:
        """min(k, number of trees) distinct trees in the order drawn; for a batch, a list of such arrays."""
        generator = sampling.as_generator(rng)
        self._log_z  # noqa: B018  raises NoTreeError if there is nothing to draw
        results = [
            sampling.sample_without_replacement(sentence, k, generator, self.trees, self._executor)
            for sentence in self._batch.sentences()
        ]
        return results[0] if self._batch.single else results

    def kbest(self, k: int) -> Any:
        """The k best distinct (heads, score), best first, or all if there are fewer; for a batch, a list of these."""
        self._best  # noqa: B018  raises NoTreeError if there is nothing to list
        results = [kbest.kbest(sentence, k, self.trees, self._executor) for sentence in self._batch.sentences()]
        return results[0] if self._batch.single else results

    @cached_property
    def _log_z(self) -> Floats:
        if "_inference" in self.__dict__:
            return self._inference[0]
        begun = begin(self._batch, self.trees, self._executor)
        require_trees(begun.log_z > -np.inf, self._batch, self.trees)
        self.__dict__["_begun"] = begun
        return begun.log_z

    @property
    def _mu(self) -> Floats:
        return self._inference[1]

    @cached_property
    def _inference(self) -> tuple[Floats, Floats]:
        begun = self.__dict__.pop("_begun", None)  # at once, so that no other thread uses it too
        return arc_marginals(self._batch, self.trees, self._executor, begun)

    @cached_property
    def _best(self) -> Ints:
        return best_heads(self._batch, self.trees, self._executor)

    def _sums(self, batch: Batch) -> Floats:
        log_z = tree_sums(batch, self.trees, self._executor)
        require_trees(log_z > -np.inf, batch, self.trees)
        return log_z

    def _covariance_with_arcs(self, f: ArrayLike) -> Floats:
        values = as_function(f, self._batch, "f")
        return arc_covariances(self._batch, values, self.trees, self._executor)[2]

    @cached_property
    def _entropy(self) -> Floats:
        tame, (log_z, mu) = self._batch, self._inference
        if tame.wide is not None:
            tame, _ = without_hopeless_arcs(tame, self.trees, self._executor)
            log_z, mu = arc_marginals(tame.ordinary(), self.trees, self._executor)
        result, size = _mean_cost(mu, tame, log_z)
        exact = size > _LARGEST_COST
        if tame.wide is not None:
            exact |= tame.wide
        if exact.any():
            result[exact] = any_scale.totals(replace(self._batch, wide=exact).only_wide(), self.trees).entropy
        return np.maximum(result, 0.0)  # a difference of two roundings may end below

    def _cross_entropy(self, other: TreeDistribution) -> Floats:
        if not isinstance(other, TreeDistribution):
            raise ArgumentError(f"expected another TreeDistribution, got {type(other).__name__}")
        if other._batch.scores.shape != self._batch.scores.shape or (other._batch.lengths != self._batch.lengths).any():
            raise ShapeError("the other distribution is over sentences of other lengths")
        result, _ = _mean_cost(self._mu, other._batch, other._log_z)
        if other._batch.wide is not None:
            for b, (own, theirs) in enumerate(zip(self._batch.sentences(), other._batch.sentences(), strict=True)):
                if theirs.wide is not None:
                    result[b] = self._mean_cost_of_wide(other, b, own, theirs)
        result[self._uses(allowed(self._batch) & ~allowed(other._batch))] = np.inf
        if self._may_exceed(other):
            outside = [self._has_tree_outside(other, sentence.scores[0]) for sentence in self._batch.sentences()]
            result[outside] = np.inf
        return result

    def _mean_cost_of_wide(self, other: TreeDistribution, b: int, own: Batch, theirs: Batch) -> float:
        """The same for sentence b, with scores of any size: relative to the other's best tree."""
        if self.trees == other.trees and own.same_scores(theirs):
            return float(self._entropy[b])
        n = self._batch.lengths[b]
        best = self._tree(other._best, b)
        return any_scale.mean_cost(theirs, other.trees, best, self._mu[b, : n + 1, : n + 1])

    def _uses(self, arcs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which sentences have a tree with one of these arcs; probabilities may underflow, counts of trees do not."""
        if not arcs.any():
            return np.zeros(len(self._batch), dtype=np.bool_)
        uniform = np.where(allowed(self._batch), 0.0, -np.inf)
        batch = self._batch.with_scores(uniform)
        _, mu = arc_marginals(batch, self.trees, self._executor)
        return np.asarray(((mu > 0) & arcs).any(axis=(1, 2)))

    def _may_exceed(self, other: TreeDistribution) -> bool:
        more_projective = other.trees.projective and not self.trees.projective
        return more_projective or (other.trees.single_root and not self.trees.single_root)

    def _has_tree_outside(self, other: TreeDistribution, scores: Floats) -> bool:
        arcs = np.where(scores > -np.inf, 0.0, -np.inf)
        return has_tree_outside(arcs, self.trees, other.trees, self._executor)

    def _unbatch(self, result: NDArray[Any]) -> Any:
        return self._batch.unbatch(result)

    def _scores_of(self, trees: Ints) -> Floats:
        """Of checked heads, one row per sentence."""
        sentences = zip(self._batch.sentences(), trees, self._batch.lengths, strict=True)
        return np.array([self._score_of(sentence, tree[: n + 1]) for sentence, tree, n in sentences])

    def _score_of(self, sentence: Batch, tree: Ints) -> float:
        return kbest.tree_score(sentence, tree) if is_in_class(tree, self.trees) else -np.inf

    def _each(self, one: Callable[[int, Batch], float]) -> Any:
        return self._unbatch(np.array([one(b, sentence) for b, sentence in enumerate(self._batch.sentences())]))

    def _tree(self, heads: Ints, b: int) -> Ints:
        return heads[b, : self._batch.lengths[b] + 1]

    def _heads(self, heads: ArrayLike) -> Ints:
        """Heads of every sentence, checked, padding cut to what the sentence has."""
        given = as_array(heads, "heads", HeadsError)
        array = given[None] if self._batch.single else given
        size, nodes = self._batch.scores.shape[:2]
        if array.shape != (size, nodes):
            expected = (nodes,) if self._batch.single else (size, nodes)
            raise HeadsError(f"heads have shape {given.shape}; expected {expected}")
        checked = np.full((size, nodes), -1, dtype=np.int64)
        for b, n in enumerate(self._batch.lengths):
            checked[b, : n + 1] = as_heads(array[b, : n + 1], int(n))
        return checked


def _mean_cost(mu: Floats, batch: Batch, log_z: Floats) -> tuple[Floats, Floats]:
    """log Z - E[score], by the scores of a batch and some marginals; and the size of what it is the difference of.

    Scores are taken relative to each word's largest, so that little cancels.
    """
    arcs = allowed(batch)
    top = np.where(arcs, batch.scores, -np.inf).max(axis=1, keepdims=True)
    top = np.where(np.isneginf(top), 0.0, top)
    relative = np.where(arcs, batch.scores - top, 0.0)
    expected = (mu * relative).sum(axis=(1, 2))
    # Every word has mass one in its column, so what taking the tops out has changed is their sum.
    return np.asarray(log_z - top.sum(axis=(1, 2)) - expected), -expected
