"""The learners as losses of a network's arc scores, per sentence of a batch.

All but the per-word one are losses over whole trees of a class, from the exact sums of `headway.torch`:

    loglinear       - log P(tree), or of the sum over all trees with the known heads (koo2007; partial annotation)
    cross-entropy   - sum over words of log P(head), each word by itself: what most neural parsers train
    margin          max over trees t of score(t) + wrong heads of t, minus the gold tree's (koo2007 section 3.1)
    expected-loss   expected number of wrong heads (druck2009)
    perceptron      the margin's without a margin

    a teacher       cross-entropy of the teacher's distribution over trees, of which only its arc marginals count:
                    - sum over trees t of P'(t) log P(t)  =  log Z(s) - sum over arcs a of mu'(a) s(a)

Unknown heads are -1. Losses of trees with some take the best tree with the known ones as the gold one.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from headway.arrays import TreeClass
from headway.torch import TreeDistribution

Loss = Callable[[Tensor, Tensor, Tensor, TreeClass], Tensor]


def log_likelihood(scores: Tensor, heads: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    """-log P of the tree (B,)."""
    return _distribution(scores, lengths, trees).nll(heads)


def partial_log_likelihood(scores: Tensor, heads: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    """-log P of the known heads: of all trees that have them together (B,)."""
    return -_distribution(scores, lengths, trees).partial_log_prob(heads)


def cross_entropy(scores: Tensor, heads: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    """Of each word's choice among all words but itself and the root (B,)."""
    nodes = scores.shape[1]
    place = torch.arange(nodes, device=scores.device)
    possible = (place <= lengths[:, None])[:, :, None] & (place[:, None] != place)
    rows = scores.masked_fill(~possible, -torch.inf).transpose(1, 2)
    known = (heads >= 0) & (place > 0) & (place <= lengths[:, None])
    chosen = rows.gather(2, heads.clamp(min=0)[..., None])[..., 0]
    losses = torch.logsumexp(rows[:, 1:], dim=2) - chosen[:, 1:]
    return torch.where(known[:, 1:], losses, 0.0).sum(dim=1)


def margin(scores: Tensor, heads: Tensor, lengths: Tensor, trees: TreeClass, cost: float = 1.0) -> Tensor:
    """The hinge loss with `cost` for every wrong head (B,)."""
    with torch.no_grad():
        gold = _completed(scores, heads, lengths, trees)
        augmented = scores + cost * ((heads >= 0)[:, None, :].to(scores.dtype) - _arcs(heads, scores))
        worst = TreeDistribution(augmented, lengths, **trees._asdict(), validate_args=False).argmax()
        wrong = cost * ((worst != heads) & (heads >= 0)).sum(dim=1)
    difference = _arcs(worst, scores) - _arcs(gold, scores)
    return (difference * scores).sum(dim=(1, 2)) + wrong


def perceptron(scores: Tensor, heads: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    """How much the best tree is better than the gold one (B,)."""
    return margin(scores, heads, lengths, trees, 0.0)


def expected_loss(scores: Tensor, heads: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    """The expected number of wrong ones among the known heads (B,)."""
    marginals = _distribution(scores, lengths, trees).marginals
    return ((heads >= 0).sum(dim=1) - (marginals * _arcs(heads, scores)).sum(dim=(1, 2))).to(scores.dtype)


def taught(scores: Tensor, marginals: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    """The cross-entropy of a distribution over trees with these arc marginals (B, N+1, N+1) by the scores' own (B,)."""
    return _distribution(scores, lengths, trees).log_partition - (marginals * scores).sum(dim=(1, 2))


def entropy(scores: Tensor, lengths: Tensor, trees: TreeClass, order: float = 1.0) -> Tensor:
    """Rényi's entropy of an order, of the trees of sentences without annotation (B,); Shannon's is of order 1."""
    d = _distribution(scores, lengths, trees)
    if order == 1:
        return d.entropy
    if order == float("inf"):
        return d.log_partition - d.max
    sharpened = _distribution(order * scores, lengths, trees)
    return (sharpened.log_partition - order * d.log_partition) / (1 - order)


LOSSES: dict[str, Loss] = {
    "loglinear": log_likelihood,
    "cross-entropy": cross_entropy,
    "margin": margin,
    "perceptron": perceptron,
    "expected-loss": expected_loss,
}


def _distribution(scores: Tensor, lengths: Tensor, trees: TreeClass) -> TreeDistribution:
    return TreeDistribution(scores, lengths, **trees._asdict(), validate_args=False)


def _completed(scores: Tensor, heads: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    """The best trees with the known heads."""
    known = heads[:, None, :] >= 0
    kept = _arcs(heads, scores).bool() | ~known
    forbidden = scores.masked_fill(~kept, -torch.inf)
    return TreeDistribution(forbidden, lengths, **trees._asdict(), validate_args=False).argmax()


def _arcs(heads: Tensor, scores: Tensor) -> Tensor:
    """1 for the arcs of trees, 0 for others (B, N+1, N+1); words without a head have none."""
    place = torch.arange(scores.shape[1], device=heads.device)
    return (heads[:, None, :] == place[:, None]).to(scores.dtype)
