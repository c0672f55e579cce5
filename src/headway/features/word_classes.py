"""Classes of words learnt from trees: word clusters for treebanks that come without any.

Koo, Carreras and Collins 2008 cluster the words of a text many times larger than the treebank. Of its own words the
treebank itself says more than such a text: their heads and children, on which side, and with what labels. Words that
are alike in these share a class, and the features of `headway.features.clusters` back off from words to classes:

1. Of each of the V words seen `LEAST` times or more, as it is in lower case, count the contexts x: its tags; the words
   and tags up to two places away; the words and tags of its heads and children, and the labels, by side.
2. Weigh the counts n(w, x) by max(0, log n(w, x) sum_y c(y) / n(w) c(x)), where c(x) = n(x)^0.75 keeps rare contexts
   from weighing too much (Levy, Goldberg and Dagan 2015).
3. Reduce the rows to D dimensions: U sqrt(S), of the truncated singular value decomposition, at length 1.
4. Divide the words in two, then the group with the largest squared distances from its mean, and so on (Boley's
   principal direction divisive partitioning, 1998, each division settled by 2-means). Words weigh by the root of their
   frequency. The path of a class is the way to it, bits as of a Brown cluster.

O(V D^2) time a division, fewer words each time, and no V x V distances.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from headway.arrays import Bools, Floats, Ints
from headway.features.clusters import NO_CLUSTERS, Clusters
from headway.features.coding import Coded, Coder
from headway.features.numbering import word_columns

if TYPE_CHECKING:
    from scipy.sparse import coo_array, csr_array  # imported where they are used: nobody else waits for them

LEAST = 3
DIMENSIONS = 60
_SMOOTHING = 0.75
_NEAR = (-2, -1, 1, 2)
_ROUNDS = 20  # of 2-means
_ALIKE = 1e-9  # a spread that is rounding

Seen = tuple[Ints, Ints]
"""Columns of words, and the number of the context that each stands in."""


def learn_word_classes(coder: Coder, coded: Coded, heads: Ints, labels: Ints, *, count: int) -> Clusters:
    """At most `count` classes of the words of these sentences; heads and labels (B, N+1) are -1 where unknown."""
    lower = coded.nodes.codes[coder.names.index("lower")]
    frequencies = np.bincount(lower[word_columns(coded.roots + 1, coded.lengths)])
    often = np.flatnonzero(frequencies >= LEAST)
    weights = weigh(context_counts(coder, coded, heads, labels, often))
    if min(count, len(often) - 1) < 2 or not weights.nnz:  # no weights: all words stand in the same contexts
        return NO_CLUSTERS
    paths = divide(_reduced(weights), np.sqrt(frequencies[often]), count)
    forms = dict(zip(coder.fields["lower"].values(), coder.fields["lower"], strict=True))
    return Clusters({forms[code]: path for code, path in zip(often.tolist(), paths, strict=True) if path})


def context_counts(coder: Coder, coded: Coded, heads: Ints, labels: Ints, words: Ints) -> coo_array:
    """How often the words with these codes stand in each context, (V, contexts)."""
    from scipy.sparse import hstack

    lower, tags = (coded.nodes.codes[coder.names.index(field)].astype(np.int64) for field in ("lower", "xpos"))
    row_of = np.full(lower.max(initial=0) + 1, -1)
    row_of[words] = np.arange(len(words))
    rows = row_of[lower]
    seen = (*_near(coded, lower, tags), *_in_trees(coded, heads, labels, lower, tags))
    return hstack([_counts(rows[columns], contexts, len(words)) for columns, contexts in seen], format="coo")


def _near(coded: Coded, lower: Ints, tags: Ints) -> Iterator[Seen]:
    """The tags of words, and the words and tags beside them."""
    words = word_columns(coded.roots + 1, coded.lengths)
    yield words, tags[words]
    for offset in _NEAR:
        yield words, lower[words + offset]
        yield words, tags[words + offset]


def _in_trees(coded: Coded, heads: Ints, labels: Ints, lower: Ints, tags: Ints) -> Iterator[Seen]:
    """What is above words and below them in their trees, as far as that is known."""
    sentences, places = np.nonzero(heads >= 0)
    above = heads[sentences, places]
    side = (places > above).astype(np.int64)
    modifiers, above = coded.roots[sentences] + places, coded.roots[sentences] + above
    label = labels[sentences, places] + 1
    yield modifiers, lower[above]
    yield modifiers, 2 * tags[above] + side
    yield modifiers, label
    yield above, lower[modifiers]
    yield above, 2 * tags[modifiers] + side
    yield above, 2 * label + side


def _counts(rows: Ints, contexts: Ints, size: int) -> csr_array:
    """How often each row's word stands in each context; -1 is a word that is left out."""
    from scipy.sparse import csr_array

    kept = rows >= 0
    rows, contexts = rows[kept], contexts[kept]
    shape = (size, int(contexts.max(initial=0)) + 1)
    return csr_array((np.ones(len(rows)), (rows, contexts)), shape=shape)


def weigh(counts: coo_array) -> csr_array:
    """The weights of step 2."""
    weights = counts.copy()
    of_context = counts.sum(axis=0) ** _SMOOTHING
    row, context = weights.coords
    expected = counts.sum(axis=1)[row] * of_context[context] / of_context.sum()
    weights.data = np.maximum(0.0, np.log(weights.data / expected))
    weights.eliminate_zeros()
    return weights.tocsr()


def _reduced(weights: csr_array) -> Floats:
    """The vectors of step 3, (V, D); a word without contexts of weight has zeros."""
    from scipy.sparse.linalg import svds

    start = np.random.default_rng(0).random(min(weights.shape))  # any will do, but always the same
    u, s, _ = svds(weights, k=min(DIMENSIONS, min(weights.shape) - 1), v0=start)
    vectors = u * np.sqrt(s)
    found: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return found


def divide(vectors: Floats, weights: Floats, count: int) -> list[str]:
    """The path of each row's class: at most `count` of them, by step 4."""
    paths = [""] * len(vectors)
    groups = [(-_spread(vectors, weights), "", np.arange(len(vectors)))]
    while len(groups) < count and groups[0][0] < -_ALIKE:
        _, path, members = heappop(groups)
        second = _second_half(vectors[members], weights[members])
        for bit, half in (("0", members[~second]), ("1", members[second])):
            heappush(groups, (-_spread(vectors[half], weights[half]), path + bit, half))
    for _, path, members in groups:
        for i in members.tolist():
            paths[i] = path
    return paths


def _second_half(vectors: Floats, weights: Floats) -> Bools:
    """Which rows are nearer to the second of two means; neither has none of them."""
    centred = vectors - _mean(vectors, weights)
    _, directions = np.linalg.eigh(centred.T @ (centred * weights[:, None]))
    second: Bools = centred @ directions[:, -1] > 0
    for _ in range(_ROUNDS):
        means = [_mean(vectors[half], weights[half]) for half in (~second, second)]
        first, other = (np.square(vectors - mean).sum(axis=1) for mean in means)
        nearer = other < first
        if (nearer == second).all() or nearer.all() or not nearer.any():
            break
        second = nearer
    return second


def _spread(vectors: Floats, weights: Floats) -> float:
    """The weighted squared distances from the mean."""
    return float(weights @ np.square(vectors - _mean(vectors, weights)).sum(axis=1))


def _mean(vectors: Floats, weights: Floats) -> Floats:
    mean: Floats = weights @ vectors / weights.sum()
    return mean
