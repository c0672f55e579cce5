"""What is known of a tree before it is parsed: heads and labels to keep, and arcs that it must not have.

A model parses under constraints by giving every arc that contradicts them the score -inf, before anything is computed
from the scores. Its tree is then the best one with the known heads, and all probabilities are conditioned on them.

A label is known only together with its head. Whichever model it is, the labels of a tree are scored arc by arc, so

    P(tree | h -> m labelled l) = P(tree | h -> m):

a known label says nothing of the other words, and is put in when the tree has been found, with probability 1. It need
not be a label that the model has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from headway.arrays import Bools, Floats, Ints, TreeClass
from headway.errors import ArgumentError, NoTreeError
from headway.inference.batch import as_batch
from headway.inference.first_order import try_best_heads
from headway.inference.scores import Arc, checked_arcs
from headway.models.labelling import NamedLabels
from headway.no_tree import no_tree_error
from headway.parallel import SERIAL
from headway.treebank import Sentence
from headway.treebank.trees import crossing_arcs, cycle


@dataclass(frozen=True, eq=False)
class Constraints:
    """Of one sentence of n words; `constraints_of` makes them, and `require_tree_under` tells whether a tree is left.

    `heads` (n+1,) are -1 where unknown, as is heads[0]. `labels` has n+1 entries, None or "_" where the label is
    unknown; only words with known heads have one. `forbidden` are arcs (head, modifier).
    """

    heads: Ints
    labels: tuple[str | None, ...] | None = None
    forbidden: tuple[Arc, ...] = ()

    @property
    def allowed(self) -> Bools:
        """The arcs (n+1, n+1) that the tree may have; column 0 and the diagonal do not count."""
        allowed: Bools = (self.heads < 0) | (self.heads == np.arange(len(self.heads))[:, None])
        allowed[tuple(np.array(self.forbidden, np.int64).reshape(-1, 2).T)] = False
        return allowed

    def labelled(self, found: NamedLabels) -> NamedLabels:
        """The labels that a model found, the known ones in their place."""
        known = {m: label for m, label in enumerate(self.labels or ()) if label not in (None, "_")}
        if not known:
            return found
        names = found.names or (None, *["_"] * (len(self.heads) - 1))
        probabilities = found.probabilities
        if probabilities is not None:
            probabilities = probabilities.copy()
            probabilities[list(known)] = 1.0
        return NamedLabels(tuple(known.get(m, name) for m, name in enumerate(names)), probabilities)

    def among(self, words: Ints) -> Constraints:
        """Those on the heads of some words, as a sentence of their own whose root stands for all heads elsewhere."""
        place = np.zeros(len(self.heads), np.int64)
        place[words] = np.arange(1, len(words) + 1)
        heads = np.where(self.heads[words] < 0, -1, place[self.heads[words]])
        inside = [(int(place[h]), int(place[m])) for h, m in self.forbidden if place[m] and (place[h] or not h)]
        return Constraints(np.append(-1, heads), None, tuple(inside))


def constraints_of(sentence: Sentence, forbid: Iterable[Arc] = ()) -> Constraints | None:
    """The heads and labels that a sentence has, and arcs to avoid; None if there is nothing to heed.

    >>> sentence = Sentence.from_words(["Dogs", "bark"], heads=[-1, 2, -1], partial=True)
    >>> constraints_of(sentence).heads
    array([-1,  2, -1])
    """
    forbidden = tuple(checked_arcs(forbid, len(sentence)))
    if sentence.heads is not None and (sentence.heads >= 0).any():
        return Constraints(sentence.heads, sentence.labels, forbidden)
    return Constraints(np.full(len(sentence) + 1, -1), None, forbidden) if forbidden else None


# ---------------------------------------------------------------------------------- masks


def allowed_arcs(constraints: Sequence[Constraints | None] | None, which: Ints, nodes: int) -> Bools | None:
    """The arcs (B, nodes, nodes) that the sentences numbered `which` may have; None where there are no constraints."""
    own = [] if constraints is None else [constraints[i] for i in which.tolist()]
    if not any(own):
        return None
    allowed = np.ones((len(own), nodes, nodes), np.bool_)
    for b, each in enumerate(own):
        if each is not None:
            allowed[b, : len(each.heads), : len(each.heads)] = each.allowed
    return allowed


def mask_arcs(scores: Floats, allowed: Bools | None) -> Floats:
    """Scores of arcs, (.., N+1, N+1) or with labels (.., N+1, N+1, L), with -inf on those that are not allowed."""
    if allowed is None:
        return scores
    masked: Floats = np.where(allowed if scores.ndim == allowed.ndim else allowed[..., None], scores, -np.inf)
    return masked


# ---------------------------------------------------------------------------------- contradictions


def require_tree_under(sentence: Sentence, given: Constraints, trees: TreeClass) -> None:
    """Refuse constraints that no tree of the class meets: NoTreeError names the words, and where the sentence stands.

    Where `require_agreement` has no objection, only forbidden arcs may leave no tree.
    """
    require_agreement(sentence, given, trees)
    if not given.forbidden:
        return
    scores = np.where(given.allowed, 0.0, -np.inf)
    if not try_best_heads(as_batch(scores), trees, SERIAL)[1].all():
        raise no_tree_error(scores, trees, None, forms=sentence.forms, place=_place(sentence))


def require_agreement(sentence: Sentence, given: Constraints, trees: TreeClass) -> None:
    """Refuse known heads that no tree of the class has, and those that are forbidden, too.

    There must be no cycle and, for a single root, no second word under the root. Where trees are projective, known arcs
    must not cross, nor pass over a word that their head depends on. That is enough. To make a tree, attach every word t
    without a head to h, where h -> m is the innermost arc over t: an arc that crossed this one would have been further
    in. What is under no arc goes to the root or, if only one word may be there, to that word.
    """
    if given.heads.shape != (len(sentence) + 1,):
        raise ArgumentError(
            f"the constraints have {len(given.heads)} heads for {len(sentence)} words; expected {len(sentence) + 1}"
        )
    cause, words = (
        _cycle(sentence, given.heads)
        or (_roots(sentence, given.heads) if trees.single_root else None)
        or (_crossing(sentence, given.heads) if trees.projective else None)
        or (_passing_over(sentence, given.heads) if trees.projective else None)
        or _required_and_forbidden(sentence, given)
        or ("", ())
    )
    if cause:
        raise NoTreeError(cause, words, place=_place(sentence))


_Contradiction = tuple[str, tuple[int, ...]] | None


def _cycle(sentence: Sentence, heads: Ints) -> _Contradiction:
    closed = np.maximum(heads, 0)  # a word under the root is on no cycle
    closed[0] = -1
    words = cycle(closed)
    if not words:
        return None
    path = " -> ".join(named(sentence, m) for m in (*words, words[0]))
    return f"the given heads form a cycle, {path}; leave one of them open", words


def _roots(sentence: Sentence, heads: Ints) -> _Contradiction:
    words = tuple(np.flatnonzero(heads == 0).tolist())
    if len(words) < 2:
        return None
    *first, last = (named(sentence, m) for m in words)
    both = "both" if len(words) == 2 else "all"
    return (
        f"words {', '.join(first)} and {last} are {both} under the root, which may have one child; keep one of them "
        "there",
        words,
    )


def _crossing(sentence: Sentence, heads: Ints) -> _Contradiction:
    nodes = np.arange(len(heads))
    near = np.where(heads < 0, nodes - 1, heads)  # the arc to a neighbour crosses no other
    crossed = np.flatnonzero(crossing_arcs(near))
    if not len(crossed):
        return None
    left, right = np.minimum(near, nodes)[crossed], np.maximum(near, nodes)[crossed]
    across = ((left[0] < left) & (left < right[0]) & (right[0] < right)) | (
        (left < left[0]) & (left[0] < right) & (right < right[0])
    )
    first, second = int(crossed[0]), int(crossed[across][0])
    one, other = (f"from {named(sentence, int(heads[m]))} to {named(sentence, m)}" for m in (first, second))
    return (
        f"the given arcs {one} and {other} cross, and the model's trees are projective; leave one of them open, or "
        "parse with non-projective trees",
        (first, second),
    )


def _passing_over(sentence: Sentence, heads: Ints) -> _Contradiction:
    words = np.flatnonzero(heads > 0)
    above = heads[heads[words]]  # of each arc's head: its head, then that one's, up to the root or an unknown one
    while (above > 0).any():
        words, above = words[above > 0], above[above > 0]
        over = (np.minimum(words, heads[words]) < above) & (above < np.maximum(words, heads[words]))
        if over.any():
            m, k = int(words[over][0]), int(above[over][0])
            h = int(heads[m])
            return (
                f"the given arc from {named(sentence, h)} to {named(sentence, m)} passes over {named(sentence, k)}, on "
                f"which {named(sentence, h)} depends, and the model's trees are projective; leave one of them open, or "
                "parse with non-projective trees",
                (m, h, k),
            )
        above = heads[above]
    return None


def _required_and_forbidden(sentence: Sentence, given: Constraints) -> _Contradiction:
    for h, m in given.forbidden:
        if given.heads[m] == h:
            return f"{named(sentence, h)} is given as the head of {named(sentence, m)}, and forbidden as such", (m,)
    return None


def named(sentence: Sentence, node: int) -> str:
    """A word as errors call it."""
    return f"{node} ({sentence.forms[node - 1]})" if node else "0 (the root)"


def _place(sentence: Sentence) -> str | None:
    return str(sentence.place) if sentence.place.line else None
