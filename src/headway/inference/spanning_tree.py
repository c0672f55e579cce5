"""Maximum spanning arborescence: the best non-projective tree, multi- or single-root, in O(n^2).

Tarjan's (1977) algorithm for dense graphs. Every node keeps its best incoming arc; a walk that follows those arcs
ends in the root, in finished ground, or in a cycle. A cycle C is contracted into one new node, whose gain for being
entered from h is

    enter_C[h] = max over members x of C:  enter_x[h] - value[x]

(enter x from h instead of by its arc in the cycle). Heads are never contracted: rows stay indexed by original
heads, `component[h]` says where a head lives now, and heads inside C are forbidden to C. Contracting k members
costs O(kn) and removes k - 1 nodes, so all contractions together cost O(n^2). A row is no longer needed once its
node has been contracted, so the new node takes over the row of one member and n rows suffice. No recursion
anywhere.

Single root. The tree must use the root once: the best tree under the lexicographic order (fewest root arcs, then
score). A node therefore takes a root arc only if every other head is forbidden to it. A node that took one can
never lie on a cycle, so every value subtracted above belongs to a non-root arc and the order needs no big constant
and no pair arithmetic: "the root last" is all of it. If two nodes are forced to take the root, no single-root tree
exists. The best multi-root tree is tried first, since it is cheaper to find and most often has one root already.

Ties go to the lower head when a node first chooses, and to the member met first in a cycle: deterministic.

Shapes: scores (B, N+1, N+1), lengths (B,), heads (B, N+1) filled with -1 beyond each sentence.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Floats, Ints
from headway.inference.batch import Batch, decoded
from headway.inference.jit import kernel, part
from headway.parallel import Executor


def argmax(batch: Batch, *, single_root: bool, executor: Executor) -> tuple[Ints, Ints]:
    """Best heads (B, N+1) and, per sentence, whether a tree exists (1) or not (0)."""
    size, nodes = batch.scores.shape[:2]
    return decoded(batch, _decode, single_root=single_root, work=8.0 * size * nodes * nodes, executor=executor)


@kernel
def _decode(
    scores: Floats,
    lengths: Ints,
    single_root: bool,
    start: int,
    stop: int,
    heads: Ints,
    found: Ints,
) -> None:
    nodes = scores.shape[1]
    enter = np.empty((nodes, nodes))
    via = np.empty((nodes, nodes), dtype=np.int32)
    value = np.empty(2 * nodes)
    index = np.empty((6, 2 * nodes), dtype=np.int64)
    for b in range(start, stop):
        n = lengths[b]
        if n == 0:
            continue
        found[b] = best_tree(scores[b], n, single_root, enter, via, value, index, heads[b])


@part
def best_tree(
    scores: Floats,
    n: int,
    single_root: bool,
    enter: Floats,
    via: NDArray[np.int32],
    value: Floats,
    index: Ints,
    heads: Ints,
) -> bool:
    """One sentence's best heads of the class; False if there are none. The arrays before `heads` are workspace."""
    for attempt in range(1 + single_root):
        if not arborescence(scores, n, attempt > 0, enter, via, value, index, heads):
            return False
        if not single_root or _one_root(heads, n):
            return True
    return False


@part
def _one_root(heads: Ints, n: int) -> bool:
    roots = 0
    for m in range(1, n + 1):
        roots += heads[m] == 0
    return roots == 1


@part
def arborescence(
    scores: Floats,
    n: int,
    root_last: bool,
    enter: Floats,
    via: NDArray[np.int32],
    value: Floats,
    index: Ints,
    heads: Ints,
) -> bool:
    """One sentence's best heads; False if none exist. The arrays before `heads` are workspace."""
    head, modifier, mark, row, parent, component = index
    if not _choose_first_heads(scores, n, root_last, value, head):
        return False
    for m in range(1, n + 1):
        modifier[m] = m
        row[m] = m
    for v in range(2 * n + 1):
        mark[v] = _UNSEEN
        parent[v] = 0
    for v in range(n + 1):
        component[v] = v
    mark[0] = _DONE

    newest = n
    for m in range(1, n + 1):
        first = component[m]
        if mark[first] == _DONE:
            continue
        node = first
        while True:
            mark[node] = _ON_WALK
            following = component[head[node]]
            if mark[following] == _DONE:
                break
            if mark[following] == _UNSEEN:
                node = following
                continue
            newest += 1
            _contract(scores, n, following, newest, enter, via, value, head, row, parent, component)
            node = newest
            h = _best_entry(enter[row[node]], n, root_last)
            if enter[row[node], h] == -np.inf:
                return False
            value[node] = enter[row[node], h]
            head[node] = h
            modifier[node] = via[row[node], h]
        node = component[m]
        while mark[node] == _ON_WALK:
            mark[node] = _DONE
            node = component[head[node]]

    _expand(newest, head, modifier, parent, mark, heads)
    return True


_UNSEEN, _ON_WALK, _DONE = 0, 1, 2


@part
def _choose_first_heads(scores: Floats, n: int, root_last: bool, value: Floats, head: Ints) -> bool:
    """Each word's best head, row by row so that memory is read in order; False if a word has none."""
    for m in range(1, n + 1):
        value[m] = -np.inf if root_last else scores[0, m]
        head[m] = 0
    for h in range(1, n + 1):
        own_value, own_head = value[h], head[h]
        for m in range(1, n + 1):
            better = scores[h, m] > value[m]
            value[m] = scores[h, m] if better else value[m]
            head[m] = h if better else head[m]
        value[h], head[h] = own_value, own_head
    for m in range(1, n + 1):
        if value[m] == -np.inf:
            value[m] = scores[0, m]
            if value[m] == -np.inf:
                return False
    return True


@part
def _contract(
    scores: Floats,
    n: int,
    first: int,
    new: int,
    enter: Floats,
    via: NDArray[np.int32],
    value: Floats,
    head: Ints,
    row: Ints,
    parent: Ints,
    component: Ints,
) -> None:
    """Merge the cycle through `first` into node `new`, which takes over the row of `first`."""
    target = row[first]
    node = first
    while parent[node] == 0:
        if node <= n:
            for h in range(n + 1):
                enter[node, h] = scores[h, node]
                via[node, h] = node
        if node == first:
            for h in range(n + 1):
                enter[target, h] -= value[node]
        else:
            _merge(enter[target], via[target], enter[row[node]], via[row[node]], value[node], n)
        parent[node] = new
        node = component[head[node]]
    row[new] = target
    for v in range(1, n + 1):
        if parent[component[v]] == new:
            component[v] = new
            enter[target, v] = -np.inf


@part
def _merge(
    enter: Floats, via: NDArray[np.int32], member_enter: Floats, member_via: NDArray[np.int32], value: float, n: int
) -> None:
    """Keep the better of two ways in, for every head; written as selections so that it vectorises."""
    for h in range(n + 1):
        gain = member_enter[h] - value
        better = gain > enter[h]
        enter[h] = gain if better else enter[h]
        via[h] = member_via[h] if better else via[h]


@part
def _best_entry(gains: Floats, n: int, root_last: bool) -> int:
    best = 0
    top = -np.inf if root_last else gains[0]
    for h in range(1, n + 1):
        if gains[h] > top:
            top = gains[h]
            best = h
    return best


@part
def _expand(newest: int, head: Ints, modifier: Ints, parent: Ints, settled: Ints, heads: Ints) -> None:
    """Open the contracted nodes, newest first: the arc that enters a node replaces one arc of its cycle."""
    for node in range(1, newest + 1):
        settled[node] = 0
    for node in range(newest, 0, -1):
        if settled[node]:
            continue
        heads[modifier[node]] = head[node]
        inner = modifier[node]
        while inner != node:
            settled[inner] = 1
            inner = parent[inner]
