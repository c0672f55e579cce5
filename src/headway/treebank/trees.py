"""Trees as arrays of heads: is it a tree, is it projective, which arcs cross, which arcs are non-projective?

`heads` is (n+1,): `heads[m]` is the head of word m, 0 is the root, `heads[0] == -1`. Every word has a head here; only
`as_heads` accepts arrays in which some are unknown.

- Two arcs *cross* if exactly one end of one lies strictly inside the other; the root stands to the left of all words.
- An arc is *non-projective* if it spans a word that does not descend from its head. Arcs from the root never are.
- A tree is *projective* if no arc is non-projective, or equivalently if no two arcs cross.

The two kinds of arcs are counted separately because one non-projective arc may cross many projective ones.

Both properties depend on the words strictly between the ends of an arc. A sparse table of minima and maxima (Bender and
Farach-Colton 2000) decides them for all arcs at once, in O(n log n) time and memory. `headway.inference.heads` has the
compiled test of the tree class; this module compiles nothing, so that reading a treebank stays light.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Bools, Ints
from headway.errors import HeadsError


def as_heads(heads: ArrayLike, *, partial: bool = False) -> Ints:
    """A new int64 array (n+1,) that gives every word a head 0..n other than itself, or an error that names the word.

    With `partial`, a word may also have -1: its head is unknown.

    >>> as_heads([-1, 2, 0]), as_heads([-1, 2, -1], partial=True)
    (array([-1,  2,  0]), array([-1,  2, -1]))
    """
    try:
        array = np.asarray(heads)
    except ValueError:
        raise HeadsError("heads are ragged lists; expected heads[0] == -1 followed by one integer per word") from None
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.size == 0 or array[0] != -1:
        raise HeadsError("heads must be heads[0] == -1 followed by one integer per word")
    result: Ints = array.astype(np.int64)
    n = len(result) - 1
    lowest = -1 if partial else 0
    wrong = (result < lowest) | (result > n) | (result == np.arange(n + 1))
    wrong[0] = False
    if wrong.any():
        m = int(np.argmax(wrong))
        expected = f"0 (the root) to {n}, other than {m} itself"
        if partial:
            expected = f"-1 (unknown) or {expected}"
        raise HeadsError(f"heads[{m}] is {result[m]}; expected {expected}")
    return result


def roots(heads: ArrayLike) -> Ints:
    """The words whose head is the root.

    >>> roots([-1, 2, 0, 2, 0])
    array([2, 4])
    """
    return np.flatnonzero(as_heads(heads) == 0)


def is_tree(heads: ArrayLike) -> bool:
    """Do the heads lead from every word to the root? Several words may depend on the root.

    >>> is_tree([-1, 2, 0]), is_tree([-1, 2, 1])
    (True, False)
    """
    return not _lost(as_heads(heads)).any()


def is_projective(heads: ArrayLike) -> bool:
    """Is it a tree without crossing arcs?

    >>> is_projective([-1, 2, 0, 2]), is_projective([-1, 3, 0, 2])
    (True, False)
    """
    return is_tree(heads) and not crossing_arcs(heads).any()


def crossing_arcs(heads: ArrayLike) -> Bools:
    """(n+1,) by modifier: does the word's arc cross another arc? Any choice of heads will do, tree or not.

    >>> crossing_arcs([-1, 3, 0, 2])
    array([False,  True,  True, False])
    """
    array = as_heads(heads)
    words = np.arange(1, len(array))
    # The leftmost and rightmost node that each node shares an arc with.
    leftmost = array.copy()
    rightmost = array.copy()
    np.minimum.at(leftmost, array[1:], words)
    np.maximum.at(rightmost, array[1:], words)
    left, right = _ends(array)
    lowest, highest = _extremes_between(leftmost, rightmost, left, right)
    return np.append(False, (lowest < left) | (highest > right))


def non_projective_arcs(heads: ArrayLike) -> Bools:
    """(n+1,) by modifier: does the word's arc span a word that does not descend from its head? Trees only.

    >>> non_projective_arcs([-1, 3, 0, 2])
    array([False,  True, False, False])
    """
    array = as_heads(heads)
    words_on_cycle = cycle(array)
    if words_on_cycle:
        raise HeadsError(f"the heads of words {', '.join(map(str, words_on_cycle))} form a cycle; expected a tree")
    start, end = map(np.array, preorder(children_of(array.tolist()))[1:])
    left, right = _ends(array)
    head = array[1:]
    lowest, highest = _extremes_between(start, start, left, right)
    return np.append(False, (lowest < start[head]) | (highest >= end[head]))


def cycle(heads: ArrayLike) -> tuple[int, ...]:
    """The words of one cycle, lowest first and then from head to head; () for a tree.

    >>> cycle([-1, 3, 1, 2, 0])
    (1, 3, 2)
    """
    array = as_heads(heads)
    lost = _lost(array)
    if not lost.any():
        return ()
    head = array.tolist()
    word = int(np.argmax(lost))
    seen: set[int] = set()
    while word not in seen:
        seen.add(word)
        word = head[word]
    found = [word]
    while head[found[-1]] != word:
        found.append(head[found[-1]])
    lowest = found.index(min(found))
    return tuple(found[lowest:] + found[:lowest])


def children_of(heads: Sequence[int]) -> list[list[int]]:
    """The words below each node, in order.

    >>> children_of([-1, 2, 0, 2])
    [[2], [], [1, 3], []]
    """
    children: list[list[int]] = [[] for _ in heads]
    for m, head in enumerate(heads):
        if head >= 0:
            children[head].append(m)
    return children


def preorder(children: Sequence[Sequence[int]]) -> tuple[list[int], list[int], list[int]]:
    """The nodes in the order of a walk from the root; when it enters each node, and when it has left it.

    Node k descends from h if k is entered in between.

    >>> preorder([[2], [], [1, 3], []])
    ([0, 2, 3, 1], [0, 3, 1, 2], [4, 4, 4, 3])
    """
    order: list[int] = []
    stack = [0]
    while stack:
        order.append(stack.pop())
        stack += children[order[-1]]
    entered, left = [0] * len(order), [0] * len(order)
    for time in range(len(order) - 1, -1, -1):
        node = order[time]
        entered[node] = time
        left[node] = left[children[node][0]] if children[node] else time + 1  # the first child is entered last
    return order, entered, left


def _lost(heads: Ints) -> Bools:
    """The words that never reach the root, by jumps of doubling length along the heads: O(n log n)."""
    ancestor = np.maximum(heads, 0)
    for _ in range(len(heads).bit_length()):
        ancestor = ancestor[ancestor]
    return ancestor > 0


def _ends(heads: Ints) -> tuple[Ints, Ints]:
    """The left and the right end of each word's arc, (n,)."""
    words = np.arange(1, len(heads))
    return np.minimum(heads[1:], words), np.maximum(heads[1:], words)


def _extremes_between(low: Ints, high: Ints, left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """The minimum of `low` and the maximum of `high` strictly between each pair of ends; (size, -1) of nothing."""
    size = len(low)
    lowest = np.full(len(left), size, dtype=np.int64)
    highest = np.full(len(left), -1, dtype=np.int64)
    between = right - left - 1
    width = 1
    while width <= between.max(initial=0):
        # Two windows of the largest power of two that fits cover everything between the ends.
        fits = np.flatnonzero((between >= width) & (between < 2 * width))
        first, last = left[fits] + 1, right[fits] - width
        lowest[fits] = np.minimum(low[first], low[last])
        highest[fits] = np.maximum(high[first], high[last])
        low = np.minimum(low[:-width], low[width:])
        high = np.maximum(high[:-width], high[width:])
        width *= 2
    return lowest, highest
