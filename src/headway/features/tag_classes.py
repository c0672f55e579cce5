"""Coarse tags learnt from trees, for treebanks that have only one kind of tag.

Templates back off from fine tags to coarse ones. Where a treebank's coarse tags are its fine ones, as in CoNLL-X
Swedish with its eleven tags of verbs, there is nothing to back off to. Tags are then merged, two classes at a time
(the agglomerative information bottleneck of Slonim and Tishby 1999). What is known of a tag is how often it stands in
each context x: on either side of a head with a certain tag, or above a modifier on either side with a certain tag.
Merging the classes a and b, of n_a and n_b contexts, loses

    L(a, b) = (n_a + n_b) H(x | a or b) - n_a H(x | a) - n_b H(x | b)

nats about the contexts. The next two to be merged have the least L(a, b) / sqrt(n_a + n_b). The loss itself would merge
whatever is rare, and the divergence of the contexts alone (division by n_a + n_b) whatever is frequent; the root is
ours. O(T^3) for T tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.arrays import Floats, Ints
from headway.saved_values import mapping, texts

Tree = tuple[Sequence[str], Ints]
"""The tags of n words, and their heads (n+1,), -1 where unknown."""


@dataclass(frozen=True, repr=False)
class TagClasses:
    """The class of every tag that has one, called after its first tag."""

    classes: Mapping[str, str]

    @classmethod
    def learn(cls, trees: Iterable[Tree], count: int) -> TagClasses:
        """At most `count` classes of the tags of these trees.

        >>> trees = [(("DT", noun, "VB"), np.array([-1, 2, 3, 0])) for noun in ("NN", "NNS")]
        >>> TagClasses.learn(trees, 3).classes
        {'DT': 'DT', 'NN': 'NN', 'NNS': 'NN', 'VB': 'VB'}
        """
        return cls(_merged(list(trees), count))

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> TagClasses:
        """The classes as they were saved: an object of tags and classes."""
        texts(list(mapping(data, "the classes of tags").values()), "the classes of tags")
        return cls(data)


NO_CLASSES = TagClasses({})


def _merged(trees: Sequence[Tree], count: int) -> dict[str, str]:
    tags, contexts = _contexts(trees)
    classes = [[i] for i in range(len(tags))]
    loss = np.array([_losses(contexts, i) for i in range(len(tags))]).reshape(len(tags), -1)
    while len(classes) > max(1, count):
        i, j = sorted(divmod(int(loss.argmin()), len(classes)))
        classes[i] += classes.pop(j)
        contexts[i] += contexts[j]
        contexts = np.delete(contexts, j, axis=0)
        loss = np.delete(np.delete(loss, j, axis=0), j, axis=1)
        loss[i] = loss[:, i] = _losses(contexts, i)
    named = {tags[i]: tags[min(members)] for members in classes for i in members}
    return {tag: named[tag] for tag in tags}


def _contexts(trees: Sequence[Tree]) -> tuple[list[str], Floats]:
    """The tags, and how often each stands in every context, (T, 4 (T+1)): the root is one more tag of heads."""
    tags = sorted({tag for words, _ in trees for tag in words})
    number = {tag: i for i, tag in enumerate(tags)}
    root = len(tags)
    counts = np.zeros((root + 1, 4, root + 1))
    for words, heads in trees:
        codes = np.array([root, *map(number.__getitem__, words)])
        modifiers = np.flatnonzero(heads >= 0)
        of, above, side = codes[modifiers], codes[heads[modifiers]], (modifiers > heads[modifiers]).astype(np.int64)
        np.add.at(counts, (of, side, above), 1)
        np.add.at(counts, (above, 2 + side, of), 1)
    return tags, counts[:root].reshape(root, -1)


def _losses(contexts: Floats, i: int) -> Floats:
    """L / sqrt(n) of merging class i with each of the others; never with itself."""
    merged = contexts + contexts[i]
    alone = _nats(contexts)
    losses: Floats = (_nats(merged) - alone - alone[i]) / np.sqrt(np.maximum(1, merged.sum(axis=1)))
    losses[i] = np.inf
    return losses


def _nats(contexts: Floats) -> Floats:
    """n H(x) of each row of counts."""
    size = contexts.sum(axis=1)
    nats: Floats = _x_log_x(size) - _x_log_x(contexts).sum(axis=1)
    return nats


def _x_log_x(x: Floats) -> Floats:
    product: Floats = x * np.log(np.where(x > 0, x, 1.0))
    return product
