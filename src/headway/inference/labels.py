"""Labelled trees: every arc carries one label, scores are [head, modifier, label] (koo2007 section 3.4).

Labels are independent given the tree, so they are summed (or maximised) out of the arcs first, in O(L n^2), and
what remains is a distribution over unlabelled trees; labelled marginals are P(arc) times the label's share of the
arc.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Floats, Ints
from headway.errors import HeadsError, ShapeError
from headway.inference.batch import as_array, as_floats, as_scores
from headway.inference.first_order import argmax
from headway.inference.sampling import as_generator
from headway.inference.tree_distribution import TreeDistribution


class LabelledTreeDistribution:
    """A distribution over labelled trees, from scores (n+1, n+1, L), or (B, N+1, N+1, L) with lengths.

    >>> d = LabelledTreeDistribution(np.zeros((3, 3, 2)))
    >>> round(float(np.exp(d.log_partition)))  # two trees, two labels on each of two arcs
    8
    """

    def __init__(
        self,
        scores: ArrayLike,
        projective: bool = False,
        single_root: bool = True,
        lengths: ArrayLike | None = None,
        threads: int | None = None,
    ) -> None:
        self._scores = np.array(as_scores(scores))
        if self._scores.ndim not in (3, 4) or self._scores.shape[-1] == 0:
            raise ShapeError(
                f"scores have shape {self._scores.shape}; expected (n+1, n+1, L) or (B, N+1, N+1, L), L >= 1"
            )
        with np.errstate(invalid="ignore"):
            top = self._scores.max(axis=-1)
            shift = np.where(np.isfinite(top), top, 0.0)
            total = np.exp(self._scores - shift[..., None]).sum(axis=-1)
        # What the other labels of an arc add to its best one's score. A nan or +inf stays in `top`, where the check of
        # TreeDistribution names its cell.
        self._gain = np.log(total, where=total > 0, out=np.zeros_like(total))
        self._top = top
        self._options = {"projective": projective, "single_root": single_root, "threads": threads}
        arcs = TreeDistribution(top, lengths=lengths, **self._options)  # type: ignore[arg-type]
        self.arcs = arcs._with_residual(self._gain)
        self._lengths = lengths

    @property
    def log_partition(self) -> Any:
        """log of the sum over labelled trees of exp(score): a float, or (B,)."""
        return self.arcs.log_partition

    @property
    def arc_marginals(self) -> Floats:
        """P(head -> modifier), whatever the label."""
        return self.arcs.marginals

    @cached_property
    def label_probabilities(self) -> Floats:
        """P(label | arc) for every allowed arc, zero elsewhere; shaped like the scores."""
        allowed = self.arcs.allowed[..., None]
        inside = np.where(allowed, self._scores, -np.inf)
        top = np.where(allowed, inside.max(axis=-1, keepdims=True), 0.0)
        share = np.exp(inside - top)
        result: Floats = share / np.where(allowed, share.sum(axis=-1, keepdims=True), 1.0)
        return result

    @property
    def marginals(self) -> Floats:
        """P(head -> modifier with label), shaped like the scores."""
        return self.arc_marginals[..., None] * self.label_probabilities

    def covariance_with_arcs(self, f: ArrayLike) -> Floats:
        """Cov(f, 1[labelled arc]) for every labelled arc, f and result shaped like the scores: the gradient of E[f].

        With f's mean over the labels of an arc in place of f, the arcs covary as unlabelled ones do; a label adds how
        far its own value is from that mean, where the arc is in the tree.
        """
        share = self.label_probabilities
        given = as_floats(f, "f")
        if given.shape != share.shape:
            raise ShapeError(f"f has shape {given.shape}; expected that of scores, {share.shape}")
        values = np.where(share > 0, given, 0.0)
        mean = (share * values).sum(axis=-1)
        arcs = self.arcs.covariance_with_arcs(mean)
        result: Floats = share * (arcs[..., None] + self.arc_marginals[..., None] * (values - mean[..., None]))
        return result

    @property
    def mean(self) -> Floats:
        """`marginals`, by the name torch's distributions give it."""
        return self.marginals

    @property
    def mode(self) -> tuple[Ints, Ints]:
        """`argmax()`, by the name torch's distributions give it."""
        return self.argmax()

    def argmax(self) -> tuple[Ints, Ints]:
        """Heads and labels of the best labelled tree; labels are -1 for the root and for padding."""
        with np.errstate(invalid="ignore"):
            best = argmax(self._scores.max(axis=-1), lengths=self._lengths, **self._options)  # type: ignore[arg-type]
        scores = self._arc_scores(best)
        return best, np.where(best < 0, -1, scores.argmax(axis=-1))

    @property
    def max(self) -> Any:
        """Score of the best labelled tree."""
        heads, labels = self.argmax()
        return self.score(heads, labels)

    def score(self, heads: ArrayLike, labels: ArrayLike) -> Any:
        """Sum of the labelled arcs' scores; -inf for what is not a tree of the class."""
        valid = self.arcs.score(heads) > -np.inf
        chosen = self._chosen(np.asarray(heads), as_array(labels, "labels", HeadsError))
        total = np.where(valid, np.apply_along_axis(math.fsum, -1, chosen), -np.inf)
        return float(total) if total.ndim == 0 else total

    def log_prob(self, heads: ArrayLike, labels: ArrayLike) -> Any:
        """log P(labelled tree): of the tree, and of its labels."""
        tree = np.asarray(heads)
        chosen = self._chosen(tree, np.asarray(labels))
        with np.errstate(invalid="ignore"):
            shares = np.where(
                tree < 0, 0.0, (chosen - self._at_heads(self._top, tree)) - self._at_heads(self._gain, tree)
            )
        log_p = self.arcs.log_prob(heads)
        total = np.where(np.isneginf(log_p), -np.inf, log_p + shares.sum(axis=-1))
        return float(total) if total.ndim == 0 else total

    @property
    def entropy(self) -> Any:
        """Shannon entropy in nats: the tree's, and on average each arc's label's."""
        share = self.label_probabilities
        label_entropy = -(share * np.log(share, where=share > 0, out=np.zeros_like(share))).sum(-1)
        return self.arcs.entropy + (self.arc_marginals * label_entropy).sum(axis=(-2, -1))

    def sample(self, k: int | None = None, rng: np.random.Generator | int | None = None) -> tuple[Ints, Ints]:
        """k independent labelled trees: heads and labels, each (k, n+1) or (B, k, N+1). Without k one, (n+1,) each.

        `rng` is a generator or a seed; without it, every call draws other trees.
        """
        if k is None:
            one, its_labels = self.sample(1, rng)
            return one[..., 0, :], its_labels[..., 0, :]
        generator = as_generator(rng)
        heads = self.arcs.sample(k, generator)
        words = np.arange(heads.shape[-1])
        if self._scores.ndim == 4:
            batch = np.arange(len(heads))[:, None, None]
            share = self.label_probabilities[batch, heads, words]
        else:
            share = self.label_probabilities[heads, words]
        below = share.cumsum(axis=-1) <= generator.random((*heads.shape, 1)) * share.sum(-1, keepdims=True)
        return heads, np.where(heads < 0, -1, np.minimum(below.sum(axis=-1), share.shape[-1] - 1))

    def _arc_scores(self, heads: Ints) -> Floats:
        """Label scores of each word's arc: (.., N+1, L)."""
        return self._at_heads(self._scores, heads)

    def _at_heads(self, values: Floats, heads: Ints) -> Floats:
        """The entries of each word's arc, of values [.., head, modifier, ..]."""
        words = np.arange(heads.shape[-1])
        if self._scores.ndim == 4:
            return values[np.arange(len(heads))[:, None], heads, words]
        return values[heads, words]

    def _chosen(self, heads: Ints, labels: Ints) -> Floats:
        if labels.shape != heads.shape or labels.dtype.kind not in "iu":
            raise HeadsError(
                f"labels have shape {labels.shape} and dtype {labels.dtype}; expected integers shaped like heads"
            )
        count = self._scores.shape[-1]
        if ((heads >= 0) & ((labels < 0) | (labels >= count))).any():
            raise HeadsError(f"a label is outside 0 .. {count - 1}")
        scores = self._arc_scores(heads)
        chosen = np.take_along_axis(scores, np.maximum(labels, 0)[..., None], axis=-1)[..., 0]
        return np.where(heads < 0, 0.0, chosen)
