"""The nearest projective tree, for learners that can only produce projective ones (koo2007, footnote 4).

Each arc of the tree scores +1 and every other arc -1; the projective argmax then keeps as many arcs as any projective
tree can. O(n^3) time and O(n^2) memory for a tree that is not projective, O(n log n) for one that is.
"""

from __future__ import annotations

import numpy as np

from headway.treebank.sentence import Sentence, require_tree
from headway.treebank.trees import is_projective, roots


def projectivise(sentence: Sentence, *, single_root: bool = True) -> Sentence:
    """The sentence under a projective tree that changes as few heads as possible; a changed word keeps its label.

    With `single_root` the tree has one word under the root, even where the sentence's own has several.

    >>> projectivise(Sentence.from_words(["c", "a", "b"], heads=[-1, 3, 0, 2])).heads
    array([-1,  2,  0,  2])
    """
    heads = require_tree(sentence)
    n = len(sentence)
    if is_projective(heads) and not (single_root and len(roots(heads)) > 1):
        return sentence
    # Imported here: reading a treebank must not load the compiler.
    from headway.inference import argmax

    scores = np.full((n + 1, n + 1), -1.0)
    scores[heads[1:], np.arange(1, n + 1)] = 1.0
    return sentence.with_tree(argmax(scores, projective=True, single_root=single_root), sentence.labels)
