"""Trees as tensors of heads: which of them belong to a class, all of a batch at once."""

from __future__ import annotations

import torch
from torch import Tensor

from headway.arrays import TreeClass


def are_in_class(heads: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    """(B,): is each row of heads (B, N+1) a tree of the class? Words have heads 0 .. n; padding may hold anything."""
    nodes = heads.shape[1]
    node = torch.arange(nodes, device=heads.device)
    words = (node > 0) & (node <= lengths[:, None])
    heads = torch.where(words, heads, 0)
    above = heads
    for _ in range(nodes.bit_length()):  # twice as far up each time, until every word is at the root, or never will be
        above = above.gather(1, above)
    result = (above == 0).all(1)
    if trees.single_root:
        result = result & (((heads == 0) & words).sum(1) <= 1)
    if trees.projective:
        result = result & ~_have_crossing(heads, words)
    return result


def _have_crossing(heads: Tensor, words: Tensor) -> Tensor:
    """(B,): does some arc cross another? In a tree, none crossing is what projectivity asks for."""
    node = torch.arange(heads.shape[1], device=heads.device)
    low, high = torch.minimum(heads, node)[:, :, None], torch.maximum(heads, node)[:, :, None]
    other = heads[:, None, :]
    between = (low < node) & (node < high) & words[:, None, :] & words[:, :, None]
    return (between & ((other < low) | (other > high))).flatten(1).any(1)
