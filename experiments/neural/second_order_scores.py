"""Second-order scores of a network, and the losses that train them; what for is in `second_order.py`.

Low-rank and trilinear, from the vectors of words:

    sibling(h, s, m)      =  sum_r  a_r(h) b_r(s) c_r(m)     s and m are neighbours on one side of h, or START or END
    grandparent(g, h, m)  =  sum_r  d_r(g) e_r(h) f_r(m)

A sum over all trees with such scores is out of reach, so they are trained by

    conditional   - sum over m of log P(head of m | the heads of all other words), by arcs, siblings and grandparents:
                  Besag's (1975) pseudolikelihood. O(n^2) once there are scores
    automata      - sum over h of log P(modifiers of h), by arcs and siblings: each head's automaton on its own
                  (koo2010). O(n^3). A tree's probability by arcs times that of all automata, without the pairs that
                  disagree, is the model arcs + arcs + siblings; so this loss and that of trees by arcs together are an
                  upper bound on its log-loss, as in dual decomposition

All tensors are [batch, head, ...]; words count from 1, and 0 is the root.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from headway.arrays import TreeClass
from headway.neural.encoders.lstm import SharedDropout

RANK = 100


class Scores(NamedTuple):
    """Of a batch, as `headway.decode` takes them: siblings [h, s, m], where s == h is START and m == h is END, and
    grandparents [g, h, m] or none; (B, N+1, N+1, N+1) each."""

    siblings: Tensor
    grandparents: Tensor | None


class SecondOrder(nn.Module):
    """The scorer. A head has a vector for either side, and so have START and END."""

    def __init__(self, width: int, dropout: float, grandparents: bool) -> None:
        super().__init__()

        def role(size: int) -> nn.Sequential:
            return nn.Sequential(nn.Linear(width, size), nn.LeakyReLU(0.1), SharedDropout(dropout))

        self.heads, self.siblings, self.modifiers = role(2 * RANK), role(RANK), role(RANK)
        self.start, self.end = (nn.Parameter(torch.ones(2, RANK)) for _ in range(2))
        self.taken = nn.Linear(RANK, 1)  # how likely a word is taken by any head: changes no tree, but automata need it
        nn.init.constant_(self.taken.bias, -3.0)  # by few
        self.above = nn.ModuleList([role(RANK) for _ in range(3)]) if grandparents else None
        for middle in (self.siblings, *(self.above[1:2] if self.above else ())):
            nn.init.ones_(middle[0].bias)  # nearly a product of two at first: a product of three small ones stays small

    def forward(self, words: Tensor) -> Scores:
        heads = self.heads(words).unflatten(-1, (2, RANK))
        siblings, modifiers = self.siblings(words), self.modifiers(words)
        place = torch.arange(words.shape[1], device=words.device)
        side = (place > place[:, None])[..., None]  # [h, x]: whether x is to the right of h
        on_side = torch.where(side, heads[:, :, None, 1], heads[:, :, None, 0])
        pairs = on_side * siblings[:, None]
        scores = torch.einsum("bhsr,bmr->bhsm", pairs, modifiers)
        start = torch.einsum("bhmr,bmr->bhm", on_side * torch.where(side, self.start[1], self.start[0]), modifiers)
        end = (pairs * torch.where(side, self.end[1], self.end[0])).sum(-1)
        same = place == place[:, None]
        scores = torch.where(same[:, :, None], start[:, :, None], scores) + self.taken(modifiers)[:, None, None, :, 0]
        scores = torch.where(same[:, None, :], end[..., None], scores)
        scores = scores.masked_fill(same[:, :, None] & same[:, None, :], 0.0)  # a side without modifiers
        if self.above is None:
            return Scores(scores, None)
        return Scores(scores, torch.einsum("bgr,bhr,bmr->bghm", *(role(words) for role in self.above)))


def neighbours(taken: Tensor) -> tuple[Tensor, Tensor]:
    """For every h and m, the nearest other modifiers of h inwards and outwards of m on its side, or h where there are
    none; `taken` are the arcs of a tree (B, N+1, N+1)."""
    nodes = taken.shape[-1]
    place = torch.arange(nodes, device=taken.device)
    head = place[:, None]
    right, left = taken & (place > head), taken & (place < head)

    def before(found: Tensor) -> Tensor:  # the last one in front of each word, -1 where there is none
        return nn.functional.pad(torch.where(found, place, -1).cummax(-1).values[..., :-1], (1, 0), value=-1)

    def after(found: Tensor) -> Tensor:  # the first one behind it, `nodes` where there is none
        turned = torch.where(found, place, nodes).flip(-1).cummin(-1).values
        return nn.functional.pad(turned.flip(-1)[..., 1:], (0, 1), value=nodes)

    inner = torch.where(place > head, before(right), after(left))
    outer = torch.where(place > head, after(right), before(left))
    inner, outer = (torch.where((x >= 0) & (x < nodes), x, head) for x in (inner, outer))
    return inner, outer


def arcs_of(heads: Tensor) -> Tensor:
    """The arcs of trees (B, N+1), as [head, modifier]."""
    return heads[:, None, :] == torch.arange(heads.shape[1], device=heads.device)[:, None]


def at(scores: Tensor, second: Tensor, third: Tensor) -> Tensor:
    """scores[h, second(h, m), third(h, m)] for every h and m."""
    nodes = scores.shape[-1]
    return scores.flatten(2).gather(2, second * nodes + third)


def conditional_scores(arcs: Tensor, scores: Scores, heads: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    """The score of each head of m with all other words' heads as they are, up to what is the same for all [h, m]; -inf
    where that is no tree of the class."""
    place = torch.arange(arcs.shape[1], device=arcs.device)
    taken = arcs_of(heads)
    inner, outer = neighbours(taken)
    word = place.expand_as(inner)
    total = arcs + at(scores.siblings, inner, word) + at(scores.siblings, word, outer)
    total = total - at(scores.siblings, inner, outer)  # they are neighbours no more
    if scores.grandparents is not None:
        total = total + (scores.grandparents * taken[..., None]).sum(1)
        total = total + (scores.grandparents * taken[:, None]).sum(3)
    below = taken.float() + (place == place[:, None]).float()  # [h, m]: m is h or descends from it
    for _ in range(arcs.shape[1].bit_length()):
        below = (below @ below).clamp(max=1)
    possible = (below.transpose(1, 2) == 0) & (place <= lengths[:, None])[:, :, None]
    if trees.single_root:
        possible[:, 0] &= heads == 0
    return total.masked_fill(~possible, -torch.inf)


def conditional_loss(arcs: Tensor, scores: Scores, heads: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    """-sum over words of log P(head | the heads of all other words) (B,)."""
    by_head = conditional_scores(arcs, scores, heads, lengths, trees)[:, :, 1:]
    words = heads[:, 1:] >= 0
    chosen = by_head.gather(1, heads[:, None, 1:].clamp(min=0))[:, 0]
    by_head = by_head.masked_fill(~words[:, None], 0.0)  # padding has no head
    return torch.where(words, by_head.logsumexp(1) - torch.where(words, chosen, 0.0), 0.0).sum(1)


def automata_loss(arcs: Tensor, scores: Scores, heads: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    """-sum over heads of log P(modifiers on the left) + log P(modifiers on the right) (B,), by a recursion outwards:

    alpha(m) = arc(h, m) + log sum over s before m, or START, of exp(alpha(s) + sibling(h, s, m))
    """
    place = torch.arange(arcs.shape[1], device=arcs.device)
    taken = arcs_of(heads)
    inner, outer = neighbours(taken)
    word = place.expand_as(inner)
    gold = arcs + at(scores.siblings, inner, word)
    gold = gold + torch.where(outer == place[:, None], at(scores.siblings, word, outer), 0.0)
    start, end = scores.siblings.diagonal(dim1=1, dim2=2).mT, scores.siblings.diagonal(dim1=1, dim2=3).mT
    exists = place <= lengths[:, None]
    total = -torch.where(taken, gold, 0.0).sum((1, 2))
    for outwards in (range(1, len(place)), range(len(place) - 1, 0, -1)):
        possible = (place > place[:, None] if outwards.step > 0 else place < place[:, None]) & exists[:, None, :]
        alpha: list[Tensor] = []
        for m in outwards:
            through = [start[..., m : m + 1]]
            if alpha and outwards.step > 0:
                through.append(torch.stack(alpha, -1) + scores.siblings[:, :, 1:m, m])
            elif alpha:
                through.append(torch.stack(alpha, -1) + scores.siblings[:, :, m + 1 :, m].flip(-1))
            found = arcs[..., m] + torch.cat(through, -1).logsumexp(-1)
            alpha.append(found.masked_fill(~possible[..., m], -torch.inf))
        stopped = torch.stack(alpha, -1) + (end[..., 1:] if outwards.step > 0 else end[..., 1:].flip(-1))
        sides = torch.cat([torch.zeros_like(stopped[..., :1]), stopped], -1).logsumexp(-1)
        total = total + torch.where(exists, sides, 0.0).sum(1)
    return total
