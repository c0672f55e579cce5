"""The best non-projective trees by Chu and Liu's and Edmonds' algorithm, sentence by sentence on the CPU.

Every word takes its best head; as long as there is a cycle, it becomes one word, whose incoming arcs are worth what
they add to the cycle when they replace its own arc. O(n^3), and simple.

One word on the root: an arc from the root costs one *root* besides its score, and the fewest roots come first, scores
second. Pairs (roots, score) can be added, subtracted and compared, which is all the algorithm does; so no penalty has
to be chosen, and no digit of a score is lost to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headway.arrays import Bools, Floats, Ints
from headway.torch.arcs import possible_arcs


def best_heads(scores: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
    """Heads (B, N+1), padding -1; all -1 where there is no tree."""
    weights = torch.where(possible_arcs(scores, lengths), scores, -torch.inf).detach().cpu().numpy()
    heads = np.full(weights.shape[:2], -1, dtype=np.int64)
    for b, n in enumerate(lengths.tolist()):
        best = _best_tree(weights[b, : n + 1, : n + 1], single_root)
        if best is not None:
            heads[b, : n + 1] = best
    return torch.from_numpy(heads).to(scores.device)


@dataclass(frozen=True)
class _Arcs:
    """Arcs [head, modifier] between nodes, of which 0 is the root; -inf where there is none."""

    score: Floats
    roots: Ints

    def best_heads(self) -> Ints:
        """The best head of every node."""
        exists = self.score > -np.inf
        roots = np.where(exists, self.roots, np.iinfo(np.int64).max)
        fewest = exists & (roots == roots.min(axis=0))
        heads: Ints = np.where(fewest, self.score, -np.inf).argmax(axis=0)
        heads[0] = -1
        return heads


@dataclass(frozen=True)
class _Contraction:
    """A cycle that became the last node: what the other nodes were, and which arcs the new node's stand for."""

    heads: Ints
    cycle: Bools
    outside: Ints
    entered: Ints
    left: Ints


def _best_tree(scores: Floats, single_root: bool) -> Ints | None:
    """Heads (n+1,) of the best tree, None if there is none."""
    n = len(scores) - 1
    roots = np.zeros((n + 1, n + 1), dtype=np.int64)
    roots[0] = single_root
    arcs, contractions = _Arcs(scores, roots), []
    while True:
        heads = arcs.best_heads()
        if not np.isfinite(arcs.score[heads[1:], np.arange(1, len(heads))]).all():
            return None
        cycle = _cycle(heads)
        if cycle is None:
            break
        contraction, arcs = _contract(arcs, heads, cycle)
        contractions.append(contraction)
    for contraction in reversed(contractions):
        heads = _expand(contraction, heads)
    return None if single_root and (heads == 0).sum() > 1 else heads


def _cycle(heads: Ints) -> Bools | None:
    """The nodes of some cycle, None if there is none."""
    seen = np.zeros(len(heads), dtype=np.int64)
    seen[0] = -1
    for start in range(1, len(heads)):
        node = start
        while seen[node] == 0:
            seen[node] = start
            node = heads[node]
        if seen[node] != start:
            continue
        cycle = np.zeros(len(heads), dtype=np.bool_)
        while not cycle[node]:
            cycle[node] = True
            node = heads[node]
        return cycle
    return None


def _contract(arcs: _Arcs, heads: Ints, cycle: Bools) -> tuple[_Contraction, _Arcs]:
    inner, outside = np.flatnonzero(cycle), np.flatnonzero(~cycle)
    gain = _Arcs(
        arcs.score[np.ix_(outside, inner)] - arcs.score[heads[inner], inner],
        arcs.roots[np.ix_(outside, inner)] - arcs.roots[heads[inner], inner],
    )
    entered = _best_of_rows(gain)
    left = arcs.score[np.ix_(inner, outside)].argmax(axis=0)
    size = len(outside) + 1
    rows = np.arange(size - 1)
    score, roots = np.full((size, size), -np.inf), np.zeros((size, size), dtype=np.int64)
    score[:-1, :-1], roots[:-1, :-1] = arcs.score[np.ix_(outside, outside)], arcs.roots[np.ix_(outside, outside)]
    score[:-1, -1], roots[:-1, -1] = gain.score[rows, entered], gain.roots[rows, entered]
    score[-1, :-1] = arcs.score[inner[left], outside]
    return _Contraction(heads, cycle, outside, inner[entered], inner[left]), _Arcs(score, roots)


def _best_of_rows(arcs: _Arcs) -> Ints:
    """For each row, the column of its best arc."""
    exists = arcs.score > -np.inf
    roots = np.where(exists, arcs.roots, np.iinfo(np.int64).max)
    fewest = exists & (roots == roots.min(axis=1, keepdims=True))
    best: Ints = np.where(fewest, arcs.score, -np.inf).argmax(axis=1)
    return best


def _expand(contraction: _Contraction, heads: Ints) -> Ints:
    """The heads before the cycle became one node."""
    outside, node = contraction.outside, len(heads) - 1
    result = contraction.heads.copy()
    result[outside[1:]] = np.where(
        heads[1:-1] == node, contraction.left[1:], outside[np.minimum(heads[1:-1], node - 1)]
    )
    result[contraction.entered[heads[node]]] = outside[heads[node]]
    return result
