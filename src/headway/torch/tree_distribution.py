"""`TreeDistribution`: a distribution over dependency trees whose every answer can be differentiated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints, register_kl

from headway.arrays import TreeClass
from headway.errors import ArgumentError, ShapeError
from headway.torch import operators, sampling, support
from headway.torch.arcs import possible_arcs
from headway.torch.arguments import (
    as_arc_scores,
    as_function,
    as_heads,
    as_lengths,
    require_batch,
    require_heads,
    require_trees,
)
from headway.torch.kernels import Begun


class TreeDistribution(Distribution):
    """P(tree) proportional to exp(sum of its arcs' scores), over all trees of a class.

    `scores[..., head, modifier]` is a tensor (*batch_shape, N+1, N+1) on any device, float32 or float64 (bfloat16 and
    float16 are raised to float32); `lengths`, of shape `batch_shape`, has the words of each sentence of a padded batch.
    The conventions are those of `headway.inference`: node 0 is the root, column 0, the diagonal and padding are
    ignored, -inf forbids an arc, heads[0] is -1. Results have the leading dimensions `batch_shape`.

    It is a `torch.distributions.Distribution` over heads, with `event_shape` (N+1,), and differs in two points:
    `entropy` is a property, as in `headway.inference`, and `sample` takes a generator.

    `validate_args=False` leaves out all checks of values, for which a GPU would have to be waited for, as torch's
    distributions do. Heads are then taken to be trees of the class, and a sentence without a tree has log Z -inf and
    marginals of zero. Nothing waits for the GPU then, but for batches of more than 60 words or so, of which the host
    has to know whether any sentence needs wider numbers. Inside `torch.compile` no value raises an error. torch's
    global default does not count here, since torch.compile switches it off for the rest of the process.

    log Z and marginals are computed once and shared by all answers. So is their graph: to call `backward` twice, pass
    `retain_graph=True` the first time, or make a new distribution. The scores are not copied.

    Where no gradient is wanted, `log_partition` computes no marginals. On the CPU it keeps what they can go on from,
    two to three copies of the scores, until they are read too.

    >>> d = TreeDistribution(torch.tensor([[0.0, 1.0, 2.0], [0.0, 0.0, 2.0], [0.0, 1.5, 0.0]]))
    >>> d.argmax()
    tensor([-1,  2,  0])
    >>> d.log_partition
    tensor(3.9741)
    >>> d.marginals
    tensor([[0.0000, 0.3775, 0.6225],
            [0.0000, 0.0000, 0.3775],
            [0.0000, 0.6225, 0.0000]])
    """

    arg_constraints: dict[str, constraints.Constraint] = {}  # noqa: RUF012  as torch declares it

    def __init__(
        self,
        scores: Tensor,
        lengths: Tensor | Sequence[int] | None = None,
        projective: bool = False,
        single_root: bool = True,
        validate_args: bool | None = None,
    ) -> None:
        self.scores = as_arc_scores(scores)
        batch_shape, nodes = self.scores.shape[:-2], self.scores.shape[-1]
        self.lengths = as_lengths(lengths, batch_shape, nodes, self.scores)
        self.trees = TreeClass.of(projective, single_root)
        super().__init__(batch_shape, torch.Size([nodes]), validate_args is None or validate_args)
        self._log_z: Tensor | None = None
        self._mu: Tensor | None = None
        self._begun: Begun | None = None
        if self._looks_at_values():
            require_batch(self.scores, self.lengths)

    def __repr__(self) -> str:
        return f"TreeDistribution(scores of shape {tuple(self.scores.shape)}, {self.trees})"

    def expand(self, batch_shape: Any, _instance: Any = None) -> TreeDistribution:
        """The same distribution with more batch dimensions, without a copy of the scores."""
        shape = torch.Size(batch_shape)
        return self._like(self.scores.expand(*shape, *self.scores.shape[-2:]), self.lengths.expand(shape))

    @property
    def log_partition(self) -> Tensor:
        """log of the sum over trees of exp(score); its gradient are the marginals."""
        if self._wants_gradients():
            return self._inference()[0]
        if self._log_z is None:
            flat, sizes = self._flat(self.scores), self._sizes()
            begun = operators.begin(flat, sizes, self.trees)
            log_z = self._unflat(operators.log_partition(flat, sizes, self.trees) if begun is None else begun.log_z)
            self._require_sums(log_z)
            self._log_z, self._begun = log_z, begun
        return self._log_z

    @property
    def marginals(self) -> Tensor:
        """P(head -> modifier), shaped like the scores; every word's column sums to 1."""
        return self._inference()[1]

    @property
    def mean(self) -> Tensor:
        """`marginals`, by the name torch's distributions give it: the mean of a tree as a matrix of zeros and ones."""
        return self.marginals

    def argmax(self) -> Tensor:
        """Heads of the best tree; padding is -1."""
        heads = self._best(self.scores)
        if self._looks_at_values():
            require_trees(self._are_found(heads), self.scores, self.lengths, self.trees)
        return heads

    @property
    def mode(self) -> Tensor:
        """`argmax()`, by the name torch's distributions give it."""
        return self.argmax()

    @property
    def max(self) -> Tensor:
        """Score of the best tree; its gradient are the best tree's arcs."""
        heads = self.argmax()
        return torch.where(self._are_found(heads), self._score(heads.clamp(min=0)), -torch.inf)

    def mbr(self) -> Tensor:
        """Heads of the tree with the largest sum of marginals: fewest heads expected to be wrong."""
        return self._best(torch.where(self.scores > -torch.inf, self.marginals.detach(), -torch.inf))

    def score(self, heads: Tensor) -> Tensor:
        """Sum of the tree's arc scores; -inf for heads that are no tree of the class. Heads may have more leading
        dimensions than the batch, as samples do."""
        return self._score(self._heads(heads), check=self._validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        """log P(tree) of heads; -inf for heads that are no tree of the class."""
        return self.score(value) - self.log_partition

    def nll(self, heads: Tensor) -> Tensor:
        """-log P(tree): the loss of a tree CRF. One pass gives it and its gradient."""
        return -self.log_prob(heads)

    def log_partition_of(self, heads: Tensor) -> Tensor:
        """log of the sum over the trees that have the known arcs; unknown heads are -1. -inf if no tree has them."""
        known = self._heads(heads, least=-1)
        node = torch.arange(self.scores.shape[-1], device=known.device)
        kept = (known[..., None, :] < 0) | (known[..., None, :] == node[:, None])
        scores = torch.where(kept, self.scores, -torch.inf)
        return self._like(scores, self.lengths.expand(scores.shape[:-2]), validate_args=False).log_partition

    def partial_log_prob(self, heads: Tensor) -> Tensor:
        """log P(the tree has the known arcs); unknown heads are -1. The objective of partially annotated trees."""
        return self.log_partition_of(heads) - self.log_partition

    def expectation(self, f: Tensor) -> Tensor:
        """E[f] of an arc-factored f shaped like the scores; cells of forbidden arcs are ignored."""
        return (self.marginals * self._function(f, "f")).sum((-2, -1))

    def covariance(self, f: Tensor, g: Tensor) -> Tensor:
        """Cov(f, g) of two arc-factored functions, O(n^3)."""
        return (self.covariance_with_arcs(f) * self._function(g, "g")).sum((-2, -1))

    def covariance_with_arcs(self, f: Tensor) -> Tensor:
        """Cov(f, 1[arc]) for every arc, O(n^3): the gradient of E[f] by the scores, and the derivative of the
        marginals in the direction f."""
        values = self._flat(self._function(f, "f"))
        if self._looks_at_values():
            self.log_partition  # noqa: B018  raises NoTreeError where nothing covaries
        slope = operators.covariance(self._flat(self.scores), self._sizes(), values, self.trees)
        return self._like_scores(slope)

    @property
    def entropy(self) -> Tensor:  # type: ignore[override]
        """Shannon entropy in nats. A property, as in `headway.inference`."""
        log_z, mu = self._inference()
        return _mean_cost(mu, self.scores, self._possible(), log_z).clamp(min=0.0)

    def cross_entropy(self, other: TreeDistribution) -> Tensor:
        """-E[log other(tree)] under this distribution; inf if `other` forbids a tree that this one has."""
        if not isinstance(other, TreeDistribution):
            raise ArgumentError(f"expected another TreeDistribution, got {type(other).__name__}")
        if other.scores.shape != self.scores.shape:
            raise ShapeError("the other distribution is over sentences of other lengths")
        if self._looks_at_values() and bool((other.lengths != self.lengths).any()):
            raise ShapeError("the other distribution is over sentences of other lengths")
        mu, arcs = self.marginals, other._possible()
        result = _mean_cost(mu, other.scores, arcs, other.log_partition)
        outside = self._uses(self._possible() & ~arcs)
        if support.may_exceed(self.trees, other.trees):
            masks = torch.where(self._possible(), 0.0, -torch.inf).to(self.scores.dtype)
            found = support.have_trees_outside(self._flat(masks), self._sizes(), self.trees, other.trees)
            outside = outside | self._unflat(found)
        return torch.where(outside, torch.inf, result)

    def kl(self, other: TreeDistribution) -> Tensor:
        """Kullback-Leibler divergence of `other` from this distribution, in nats; also `kl_divergence` of torch."""
        return (self.cross_entropy(other) - self.entropy).clamp(min=0.0)

    def sample(self, sample_shape: Any = (), generator: torch.Generator | None = None) -> Tensor:
        """Exact, independent trees: heads of shape (*sample_shape, *batch_shape, N+1); a number k is the shape (k,)."""
        shape = torch.Size([sample_shape] if isinstance(sample_shape, int) else sample_shape)
        with torch.no_grad():
            scores, mu = self._flat(self.scores), self._flat(self.marginals)
            count = math.prod(shape)
            drawn = sampling.sample(scores, self._sizes(), mu, self.trees, count, generator)
        return drawn.movedim(1, 0).reshape(*shape, *self.batch_shape, *self.event_shape)

    def _inference(self) -> tuple[Tensor, Tensor]:
        """log Z and marginals; computed again if those at hand know no gradient, and one is wanted."""
        log_z, mu = self._log_z, self._mu
        if log_z is not None and mu is None and not self._wants_gradients():
            mu = self._mu = self._gone_on_with()
        if log_z is None or mu is None or (self._wants_gradients() and not mu.requires_grad):
            found = operators.marginals(self._flat(self.scores), self._sizes(), self.trees)
            log_z, mu = self._unflat(found[0]), self._like_scores(found[1])
            self._require_sums(log_z)
            self._log_z, self._mu, self._begun = log_z, mu, None
        return log_z, mu

    def _gone_on_with(self) -> Tensor | None:
        """The marginals, from where log Z has got; None if nothing was kept of it."""
        if torch.compiler.is_compiling():
            return None
        begun = self.__dict__.pop("_begun", None)  # at once, so that no other thread uses it too
        return None if begun is None else self._like_scores(begun.marginals())

    def _wants_gradients(self) -> bool:
        return torch.is_grad_enabled() and self.scores.requires_grad

    def _looks_at_values(self) -> bool:
        return self._validate_args and not torch.compiler.is_compiling()

    def _require_sums(self, log_z: Tensor) -> None:
        if self._looks_at_values():
            require_trees(log_z > -torch.inf, self.scores, self.lengths, self.trees)

    def _best(self, scores: Tensor) -> Tensor:
        heads = operators.argmax(self._flat(scores.detach()), self._sizes(), self.trees)
        return heads.reshape(self.scores.shape[:-1])

    def _are_found(self, heads: Tensor) -> Tensor:
        """Which sentences have a best tree."""
        return (heads[..., 1:] >= 0).any(-1) | (self.lengths == 0)

    def _score(self, heads: Tensor, check: bool = False) -> Tensor:
        """Of heads (*sample_shape, *batch_shape, N+1)."""
        nodes = heads.shape[-1]
        node = torch.arange(nodes, device=heads.device)
        words = (node > 0) & (node <= self.lengths[..., None])
        chosen = torch.where(words, heads, 0)
        if heads.ndim == self.scores.ndim - 1:
            picked = self.scores.gather(-2, chosen[..., None, :])[..., 0, :]
            total = torch.where(words, picked, 0.0).sum(-1)
        else:  # the samples of a sentence lie side by side, as rows of a matrix that selects from its scores
            rows = chosen.reshape(-1, *self.batch_shape, nodes).movedim(0, -2)
            picked = self.scores.gather(-2, rows)
            total = torch.where(words[..., None, :], picked, 0.0).sum(-1).movedim(-1, 0).reshape(heads.shape[:-1])
        if not check:
            return total
        flat = chosen.reshape(-1, nodes)
        valid = operators.in_class(flat, self.lengths.expand(heads.shape[:-1]).flatten(), self.trees)
        return torch.where(valid.reshape(heads.shape[:-1]), total, -torch.inf)

    def _heads(self, heads: Tensor, least: int = 0) -> Tensor:
        checked = as_heads(heads, self.batch_shape, self.scores.shape[-1], self.scores.device)
        if self._looks_at_values():
            require_heads(checked, self.lengths, least)
        return checked

    def _function(self, f: Tensor, name: str) -> Tensor:
        return torch.where(self._possible(), as_function(f, self.scores.shape, self.scores, name), 0.0)

    def _uses(self, arcs: Tensor) -> Tensor:
        """Which sentences have a tree with one of these arcs. Probabilities may underflow, counts of trees do not, but
        to know whether they are needed takes a look at the arcs."""
        if not self._looks_at_values():
            return ((self.marginals > 0) & arcs).flatten(-2).any(-1)
        if not bool(arcs.any()):
            return torch.zeros_like(self.lengths, dtype=torch.bool)
        uniform = torch.where(self._possible(), 0.0, -torch.inf).to(self.scores.dtype)
        return ((self._like(uniform, self.lengths).marginals > 0) & arcs).flatten(-2).any(-1)

    def _possible(self) -> Tensor:
        return possible_arcs(self._flat(self.scores), self._sizes()).reshape(self.scores.shape)

    def _like(self, scores: Tensor, lengths: Tensor, validate_args: bool | None = None) -> TreeDistribution:
        """A distribution of scores that need no check, over the same class."""
        result = TreeDistribution(scores, lengths, *self.trees, validate_args=False)
        result._validate_args = self._validate_args if validate_args is None else validate_args
        return result

    # Most batches have one dimension, for which a view would be time lost.

    def _flat(self, values: Tensor) -> Tensor:
        """(B, N+1, N+1) with one batch dimension."""
        return values if values.ndim == 3 else values.reshape(-1, *values.shape[-2:])

    def _like_scores(self, values: Tensor) -> Tensor:
        return values if self.scores.ndim == 3 else values.reshape(self.scores.shape)

    def _sizes(self) -> Tensor:
        return self.lengths if self.lengths.ndim == 1 else self.lengths.reshape(-1)

    def _unflat(self, values: Tensor) -> Tensor:
        return values if self.scores.ndim == 3 else values.reshape(self.batch_shape)


register_kl(TreeDistribution, TreeDistribution)(TreeDistribution.kl)


def _mean_cost(mu: Tensor, scores: Tensor, arcs: Tensor, log_z: Tensor) -> Tensor:
    """log Z - E[score] under some marginals; relative to each word's largest score, so that little cancels."""
    top = torch.where(arcs, scores, -torch.inf).detach().amax(-2, keepdim=True)
    top = torch.where(top > -torch.inf, top, 0.0)
    expected = (mu * torch.where(arcs, scores - top, 0.0)).sum((-2, -1))
    # Every word has mass one in its column, so what taking the tops out has changed is their sum.
    return log_z - top.sum((-2, -1)) - expected
