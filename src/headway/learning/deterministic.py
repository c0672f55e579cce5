"""Deterministic head automata (luque2012 section 5.1): the baselines DET and DET+F, by relative frequency.

DET has one state: P(a | h, d), and P(STOP | h, d), whatever came before. DET+F has two: the first modifier of a
sequence is drawn from one distribution, all others, and STOP after them, from another.

Every symbol and STOP has SMOOTHING added to its count, so that no tree of any sentence is impossible; a head symbol
that no sequence was seen of has the counts of all heads together.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Floats
from headway.inference.operator_automata import OperatorGrammar
from headway.learning.modifier_trie import ModifierTrie

SMOOTHING = 0.01


def deterministic_grammar(trie: ModifierTrie, *, first: bool) -> OperatorGrammar:
    """DET, or with `first` DET+F.

    >>> trie = ModifierTrie.of(3, np.array([3]), np.array([1, 1, 2]), np.array([3, 3, 0]))
    >>> [det, det_f] = (deterministic_grammar(trie, first=first) for first in (False, True))
    >>> round(det.weight(2, 0, [1, 1]), 2), round(det_f.weight(2, 0, [1, 1]), 2)  # nearly (2/3)^2 1/3; 1 1/2 1/2
    (0.15, 0.24)
    """
    counts = _counts(trie, 2 if first else 1)
    probabilities = counts / counts.sum(axis=-1, keepdims=True)
    size, states = trie.size, counts.shape[2]
    initial = np.zeros((size, 2, states))
    initial[..., 0] = 1.0
    operators = np.zeros((size, 2, size, states, states))
    operators[..., -1, :] = probabilities.swapaxes(-1, -2)
    operators[:, :, 0] = 0.0  # STOP is no modifier
    return OperatorGrammar(initial, probabilities[..., 0], operators)


def _counts(trie: ModifierTrie, states: int) -> Floats:
    """How often each outcome followed, (H, 2, states, H); outcome 0 is STOP."""
    counts = np.zeros((2 * trie.size, states, trie.size))
    trees, depths = trie.trees, trie.depths
    below = trie.parents >= 0
    where = (trees[below], np.minimum(depths[below] - 1, states - 1), trie.symbols[below])
    np.add.at(counts, where, trie.through[below])
    np.add.at(counts[..., 0], (trees, np.minimum(depths, states - 1)), trie.ends)
    heads = counts.reshape(trie.size, 2, states, trie.size)
    unseen = trie.counts == 0
    heads[unseen] = np.broadcast_to(heads[1:].sum(axis=0), heads.shape)[unseen]
    return heads + SMOOTHING
