"""Does a class of trees, under a mask, have trees that another class lacks? Needed where two distributions meet.

Both questions are put to counts of trees, with all allowed arcs scored 0, since probabilities may underflow.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headway.arrays import TreeClass
from headway.torch import operators


def may_exceed(trees: TreeClass, other: TreeClass) -> bool:
    """Is there any tree of the class that the other class lacks?"""
    return (other.projective and not trees.projective) or (other.single_root and not trees.single_root)


def have_trees_outside(masks: Tensor, lengths: Tensor, trees: TreeClass, other: TreeClass) -> Tensor:
    """(B,): is there such a tree under each sentence's mask (0 allowed, -inf not)?"""
    result = torch.zeros_like(lengths, dtype=torch.bool)
    if other.single_root and not trees.single_root:
        result = result | _have_two_roots(masks, lengths, trees)
    if other.projective and not trees.projective:
        result = result | _have_crossing(masks, lengths, trees)
    return result


def _have_two_roots(masks: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    root = torch.arange(masks.shape[-1], device=masks.device)[:, None] == 0
    heads = operators.argmax(torch.where(root, masks + 1.0, masks), lengths, trees)
    return (heads == 0).sum(-1) > 1


def _have_crossing(masks: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    """Given each arc in turn: has an arc that crosses it a chance?"""
    size, nodes = masks.shape[:2]
    node = torch.arange(nodes, device=masks.device)
    head = node[:, None, None]  # of the given arc; the last two dimensions are the other arc's
    left, right = torch.minimum(node[:, None], node), torch.maximum(node[:, None], node)
    result = torch.zeros_like(lengths, dtype=torch.bool)
    for m in range(1, nodes):
        given = torch.where((node[:, None] != head) & (node == m), -torch.inf, masks[:, None])
        _, mu = operators.marginals(given.flatten(0, 1), lengths.repeat_interleave(nodes), trees)
        low, high = head.clamp(max=m), head.clamp(min=m)
        crosses = ((low < left) & (left < high) & (high < right)) | ((left < low) & (low < right) & (right < high))
        possible = (mu > 0).reshape(size, nodes, nodes, nodes) & crosses
        result = result | (possible.flatten(1).any(1) & (lengths >= m))
    return result
