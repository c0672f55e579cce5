"""Labels that stand on the root's children and nowhere else: `root`, in most treebanks.

Where a treebank's labels of words on the root and those of all other words are disjoint, so are a parser's: a label
that the word's head rules out is impossible, and never chosen however well it scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headway.arrays import Bools, Floats, Ints

_USUAL = ("root", "ROOT")  # of models saved before they said which of their labels are the root's


def possible_labels(names: Sequence[str], roots: Sequence[str]) -> Bools | None:
    """Which labels a word may have, (2, L): row 1 where its head is the root, row 0 elsewhere; None if all, anywhere.

    >>> possible_labels(["nsubj", "root"], ["root"]).tolist()
    [[True, False], [False, True]]
    """
    if not roots:
        return None
    on_root = np.isin(names, roots)
    return np.stack([~on_root, on_root])


def mask_labels(scores: Floats, heads: Ints, names: Sequence[str], roots: Sequence[str]) -> Floats:
    """The scores of labels (.., L) with -inf on those that these heads (..) rule out."""
    possible = possible_labels(names, roots)
    if possible is None:
        return scores
    masked: Floats = np.where(possible[(heads == 0).astype(np.int64)], scores, -np.inf)
    return masked


def mask_arc_labels(scores: Floats, names: Sequence[str], roots: Sequence[str]) -> Floats:
    """The same for the scores of all labelled arcs, (B, N+1, N+1, L)."""
    return mask_labels(scores, np.arange(scores.shape[1])[:, None], names, roots)


def roots_among(names: Sequence[str], roots: Sequence[str]) -> tuple[str, ...]:
    """Those of the root's labels that a model has; none where it has no other labels.

    >>> roots_among(["nsubj", "root"], ["root", "ROOT"]), roots_among(["root"], ["root"])
    (('root',), ())
    """
    found = tuple(name for name in names if name in roots)
    return found if len(found) < len(names) else ()


def roots_of(data: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """The root's labels among the saved `names`; the usual ones where the model is too old to say."""
    roots = data.get("roots", list(_USUAL))
    if not isinstance(roots, list) or not all(isinstance(name, str) for name in roots):
        raise ValueError("its labels of the root are not a list of labels")
    return roots_among(names, roots)
