"""The best projective trees of a batch, in O(n^3) per sentence: the chart of `span_chart` with max for sum.

Shapes: scores (B, N+1, N+1) to heads (B, N+1). O(n^2) memory a thread.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Floats, Ints
from headway.inference import span_chart
from headway.inference.batch import Batch, decoded
from headway.inference.jit import kernel, part
from headway.parallel import Executor


def argmax(batch: Batch, *, single_root: bool, executor: Executor) -> tuple[Ints, Ints]:
    """Best projective heads (B, N+1) and, per sentence, whether a tree exists (1) or not (0)."""
    size, nodes = batch.scores.shape[:2]
    return decoded(batch, _decode, single_root=single_root, work=0.5 * size * float(nodes) ** 3, executor=executor)


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
    chart = np.empty((span_chart.CHART, nodes, nodes))
    for b in range(start, stop):
        if lengths[b] > 0:
            found[b] = best_tree(scores[b], lengths[b], single_root, chart, heads[b])


@part
def best_tree(scores: Floats, n: int, single_root: bool, chart: Floats, heads: Ints) -> bool:
    """The chart of `span_chart` with max for sum; the way back looks again for the terms that attain it."""
    c, ct, arcs, q = chart
    first = 1 if single_root else 0
    for i in range(first, n + 1):
        c[i, i] = 0.0
        ct[i, i] = 0.0
    for width in range(1, n + 1 - first):
        for i in range(first, n + 1 - width):
            j = i + width
            best = _max(c, i, i, c, j, i + 1, width)
            q[i, j] = best
            arcs[i, j] = best + scores[i, j]
            arcs[j, i] = best + scores[j, i] if i > 0 else -np.inf
            c[i, j] = _max(arcs, i, i + 1, ct, j, i + 1, width)
            c[j, i] = _max(arcs, j, i, ct, i, i, width)
            ct[j, i] = c[i, j]
            ct[i, j] = c[j, i]

    todo = np.empty((2 * n + 2, 3), dtype=np.int64)
    if single_root:
        child, top = 0, -np.inf
        for m in range(1, n + 1):
            if scores[0, m] + c[m, 1] + c[m, n] > top:
                child, top = m, scores[0, m] + c[m, 1] + c[m, n]
        if child == 0:
            return False
        heads[child] = 0
        todo[0] = (0, child, 1)
        todo[1] = (0, child, n)
        left = 2
    else:
        if c[0, n] == -np.inf:
            return False
        todo[0] = (0, 0, n)
        left = 1
    while left > 0:
        left -= 1
        is_arc, h, e = todo[left]
        i, j = min(h, e), max(h, e)
        if i == j:
            continue
        if is_arc:
            k = i + _where(q[i, j], c, i, i, c, j, i + 1)
            heads[e] = h
            todo[left] = (0, i, k)
            todo[left + 1] = (0, j, k + 1)
        else:
            x = i + 1 if h < e else i
            k = x + _where(c[h, e], arcs, h, x, ct, e, x)
            todo[left] = (1, h, k)
            todo[left + 1] = (0, k, e)
        left += 2
    return True


@part
def _max(a: Floats, i: int, x: int, b: Floats, j: int, y: int, count: int) -> float:
    top = -np.inf
    for t in range(count):
        top = max(top, a[i, x + t] + b[j, y + t])
    return top


@part
def _where(value: float, a: Floats, i: int, x: int, b: Floats, j: int, y: int) -> int:
    t = 0
    while a[i, x + t] + b[j, y + t] != value:
        t += 1
    return t
