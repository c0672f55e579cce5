"""The nearest projective tree, for learners that can only produce projective ones (koo2007, footnote 4).

Each arc of the tree scores +1 and every other arc -1, so the projective argmax keeps as many arcs as any projective
tree can. O(n^3) time and O(n^2) memory for a tree that is not projective, O(n log n) for one that is.

If only some heads are known, the same scores keep as many of their arcs as any projective tree can have, always in
O(n^3): even arcs that do not cross may be part of no projective tree (three words with the heads 2, unknown, 1: the
second is covered by its own descendants). A known head that cannot be kept becomes unknown; no guess replaces it.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Ints
from headway.treebank.sentence import Sentence, require_partial_tree
from headway.treebank.trees import is_projective, roots


def projectivise(sentence: Sentence, *, single_root: bool = True) -> Sentence:
    """The sentence under a projective tree that changes as few heads as possible; a changed word keeps its label.

    With `single_root`, the tree has one word under the root, even if the sentence's own has several. A partial
    sentence keeps as many known heads as such a tree can have; the others become unknown and lose their labels.

    >>> projectivise(Sentence.from_words(["c", "a", "b"], heads=[-1, 3, 0, 2])).heads
    array([-1,  2,  0,  2])
    >>> projectivise(Sentence.from_words(["c", "a", "b"], heads=[-1, 3, 0, -1], partial=True)).heads
    array([-1, -1,  0, -1])
    """
    heads = require_partial_tree(sentence, single_root=False)
    if (heads[1:] < 0).any():
        return _with_fewer_heads(sentence, heads, _nearest(heads, single_root))
    if is_projective(heads) and not (single_root and len(roots(heads)) > 1):
        return sentence
    return sentence.with_tree(_nearest(heads, single_root), sentence.labels)


def _nearest(heads: Ints, single_root: bool) -> Ints:
    """A projective tree with as many of the known arcs as possible."""
    # Imported here: reading a treebank must not load the compiler.
    from headway.inference import argmax

    known = np.flatnonzero(heads >= 0)
    scores = np.full((len(heads), len(heads)), -1.0)
    scores[heads[known], known] = 1.0
    return argmax(scores, projective=True, single_root=single_root)


def _with_fewer_heads(sentence: Sentence, heads: Ints, tree: Ints) -> Sentence:
    """The sentence with only those known heads that the tree shares."""
    kept = np.where(heads == tree, heads, -1)
    if np.array_equal(kept, heads):
        return sentence
    labels = [label if m == 0 or kept[m] >= 0 else "_" for m, label in enumerate(sentence.labels or ())]
    return sentence.with_tree(kept, labels, partial=True)
