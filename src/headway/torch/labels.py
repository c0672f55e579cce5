"""Labelled trees for torch: every arc carries one label, scores are [..., head, modifier, label].

Labels are independent given the tree, so they are summed (or maximised) out of the arcs first, and what remains is a
distribution over unlabelled trees, as in `headway.inference.labels`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from headway.errors import HeadsError, ShapeError
from headway.torch.arguments import as_function, as_heads, as_scores
from headway.torch.log_numbers import log_sum
from headway.torch.tree_distribution import TreeDistribution


class LabelledTreeDistribution:
    """A distribution over labelled trees, from scores (*batch_shape, N+1, N+1, L); `arcs` is that of their trees.

    Everything else is as for `TreeDistribution`. A labelled tree is two tensors, `heads` and `labels`; labels are -1
    for the root and for padding.

    >>> d = LabelledTreeDistribution(torch.zeros(3, 3, 2))
    >>> round(float(d.log_partition.exp()))  # two trees, two labels on each of two arcs
    8
    """

    def __init__(
        self,
        scores: Tensor,
        lengths: Tensor | Sequence[int] | None = None,
        projective: bool = False,
        single_root: bool = True,
        validate_args: bool | None = None,
    ) -> None:
        self.scores = as_scores(scores)
        if self.scores.ndim < 3 or self.scores.shape[-1] == 0:
            raise ShapeError(
                f"scores have shape {tuple(self.scores.shape)}; expected (n+1, n+1, L) or (..., N+1, N+1, L), L >= 1"
            )
        # A nan or +inf stays, and the check of the arcs names its cell.
        self._arc_scores = log_sum(self.scores, -1)
        self.arcs = TreeDistribution(self._arc_scores, lengths, projective, single_root, validate_args)
        self._best_arcs = TreeDistribution(
            self.scores.amax(-1), self.arcs.lengths, projective, single_root, validate_args=False
        )

    @property
    def batch_shape(self) -> torch.Size:
        """The leading dimensions of all results."""
        return self.arcs.batch_shape

    @property
    def log_partition(self) -> Tensor:
        """log of the sum over labelled trees of exp(score)."""
        return self.arcs.log_partition

    @property
    def arc_marginals(self) -> Tensor:
        """P(head -> modifier), whatever the label."""
        return self.arcs.marginals

    @property
    def label_probabilities(self) -> Tensor:
        """P(label | arc) for every allowed arc, zero elsewhere; shaped like the scores."""
        allowed = self.arcs._possible()
        shares = torch.exp(self.scores - torch.where(allowed, self._arc_scores, 0.0)[..., None])
        return torch.where(allowed[..., None], shares, 0.0)

    @property
    def marginals(self) -> Tensor:
        """P(head -> modifier with label), shaped like the scores."""
        return self.arc_marginals[..., None] * self.label_probabilities

    def argmax(self) -> tuple[Tensor, Tensor]:
        """Heads and labels of the best labelled tree."""
        if self.arcs._looks_at_values():
            self.arcs.argmax()  # raises NoTreeError if there is none
        heads = self._best_arcs.argmax()
        return heads, torch.where(heads < 0, -1, self._at(heads).argmax(-1))

    @property
    def max(self) -> Tensor:
        """Score of the best labelled tree."""
        if self.arcs._looks_at_values():
            self.arcs.argmax()
        return self._best_arcs.max

    def score(self, heads: Tensor, labels: Tensor) -> Tensor:
        """Sum of the labelled arcs' scores; -inf for heads that are no tree of the class."""
        tree = self._heads(heads)
        words = tree >= 0
        chosen = self._at(tree).gather(-1, self._labels(labels, tree)[..., None])[..., 0]
        total = torch.where(words, chosen, 0.0).sum(-1)
        return torch.where(self.arcs.score(tree) > -torch.inf, total, -torch.inf)

    def log_prob(self, heads: Tensor, labels: Tensor) -> Tensor:
        """log P(labelled tree)."""
        return self.score(heads, labels) - self.log_partition

    def nll(self, heads: Tensor, labels: Tensor) -> Tensor:
        """-log P(labelled tree)."""
        return -self.log_prob(heads, labels)

    def log_partition_of(self, heads: Tensor, labels: Tensor) -> Tensor:
        """log of the sum over the labelled trees that have the known heads and labels; -1 stands for unknown, and a
        word's label may be known without its head."""
        known = as_heads(heads, self.batch_shape, self.scores.shape[-2], self.scores.device)
        given = as_heads(labels, self.batch_shape, self.scores.shape[-2], self.scores.device)[..., None, :, None]
        label = torch.arange(self.scores.shape[-1], device=self.scores.device)
        kept = torch.where((given < 0) | (given == label), self.scores, -torch.inf)
        lengths = self.arcs.lengths.expand(kept.shape[:-3])
        arcs = TreeDistribution(log_sum(kept, -1), lengths, *self.arcs.trees, validate_args=False)
        return arcs.log_partition_of(known)

    @property
    def entropy(self) -> Tensor:
        """Shannon entropy in nats: the tree's, and on average each arc's label's."""
        share = self.label_probabilities
        logs = torch.where(share > 0, self.scores - self._arc_scores[..., None], 0.0)
        return self.arcs.entropy - (self.arc_marginals * (share * logs).sum(-1)).sum((-2, -1))

    def expectation(self, f: Tensor) -> Tensor:
        """E[f] of a function of labelled arcs, shaped like the scores."""
        return (self.marginals * self._function(f)).sum((-3, -2, -1))

    def covariance_with_arcs(self, f: Tensor) -> Tensor:
        """Cov(f, 1[labelled arc]) for every labelled arc, f and result shaped like the scores: the gradient of E[f]."""
        share, values = self.label_probabilities, self._function(f)
        mean = (share * values).sum(-1)
        arcs = self.arcs.covariance_with_arcs(mean)
        return share * (arcs[..., None] + self.arc_marginals[..., None] * (values - mean[..., None]))

    def sample(
        self, sample_shape: int | Sequence[int] = (), generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Exact, independent labelled trees: heads and labels, each (*sample_shape, *batch_shape, N+1)."""
        heads = self.arcs.sample(sample_shape, generator)
        with torch.no_grad():
            below = self._at(heads, self.label_probabilities).cumsum(-1)
            chance = torch.rand(heads.shape, generator=generator, device=below.device, dtype=below.dtype)
            drawn = (below <= (chance * below[..., -1])[..., None]).sum(-1).clamp(max=below.shape[-1] - 1)
        return heads, torch.where(heads < 0, -1, drawn)

    def _at(self, heads: Tensor, values: Tensor | None = None) -> Tensor:
        """The labels' entries for each word's arc: (*sample_shape, *batch_shape, N+1, L)."""
        nodes = heads.shape[-1]
        rows = heads.clamp(min=0).reshape(-1, *self.batch_shape, nodes).movedim(0, -2)
        table = self.scores if values is None else values
        picked = table.gather(-3, rows[..., None].expand(*rows.shape, table.shape[-1]))
        return picked.movedim(-3, 0).reshape(*heads.shape, table.shape[-1])

    def _heads(self, heads: Tensor) -> Tensor:
        """Checked heads, -1 in padding."""
        tree = self.arcs._heads(heads)
        node = torch.arange(tree.shape[-1], device=tree.device)
        return torch.where((node > 0) & (node <= self.arcs.lengths[..., None]), tree, -1)

    def _labels(self, labels: Tensor, heads: Tensor) -> Tensor:
        given = torch.as_tensor(labels, device=heads.device)
        if given.shape != heads.shape or given.is_floating_point() or given.dtype == torch.bool:
            raise HeadsError(
                f"labels have shape {tuple(given.shape)} and dtype {given.dtype}; expected integers shaped like heads, "
                f"{tuple(heads.shape)}"
            )
        count = self.scores.shape[-1]
        if self.arcs._looks_at_values() and bool(((heads >= 0) & ((given < 0) | (given >= count))).any()):
            raise HeadsError(f"a label is outside 0 .. {count - 1}")
        return torch.where(heads >= 0, given, 0).to(torch.int64)

    def _function(self, f: Tensor) -> Tensor:
        values = as_function(f, self.scores.shape, self.scores, "f")
        allowed = self.arcs._possible()[..., None] & (self.scores > -torch.inf)
        return torch.where(allowed, values, 0.0)
