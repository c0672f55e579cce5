"""The weights of `matrix_tree`'s walk, relative to each word's largest; and which words can be the root's child."""

from __future__ import annotations

import numpy as np

from headway.arrays import Bools, Floats, Ints
from headway.inference.fast_exp import fast_exp
from headway.inference.jit import part

# If no factor is smaller than this (334 nats below its row's largest), no product of two underflows.
SMALLEST_FACTOR = 1e-145
_SMALLEST_LOG_FACTOR = np.log(SMALLEST_FACTOR)
# With no arc forbidden, entries only grow: a spread of 300 nats needs no watching (products stay above 1e-261).
_SAFE_SPREAD = 300.0


@part
def find_scale(scores: Floats, n: int, single_root: bool, scale: Floats) -> tuple[bool, bool, float]:
    """Fill `scale[m]`, each word's largest score; return (try linear?, watch factors?, the shift of log Z).

    Single-root trees use the root once, so its scores are scaled together (`scale[0]`), after each word's own.
    """
    first = 1 if single_root else 0
    for m in range(n + 1):
        scale[m] = -np.inf
    for h in range(first, n + 1):
        own = scale[h]
        for m in range(1, n + 1):
            scale[m] = scores[h, m] if scores[h, m] > scale[m] else scale[m]
        scale[h] = own
    scale[0] = 0.0
    shift = 0.0
    for m in range(1, n + 1):
        scale[m] = scale[m] if scale[m] > -np.inf else 0.0
        shift += scale[m]
    if single_root:
        top = -np.inf
        for m in range(1, n + 1):
            top = max(top, scores[0, m] - scale[m])
        scale[0] = top if top > -np.inf else 0.0
        shift += scale[0]
    wide = 0
    for h in range(n + 1):
        extra = scale[0] if h == 0 else 0.0
        for m in range(1, n + 1):
            wide += (scores[h, m] - scale[m] - extra < -_SAFE_SPREAD) & (m != h)
    if wide == 0:
        return True, False, shift
    forbidden, extreme = 0, 0
    for h in range(n + 1):
        extra = scale[0] if h == 0 else 0.0
        for m in range(1, n + 1):
            x = scores[h, m] - scale[m] - extra
            forbidden += (x == -np.inf) & (m != h)
            extreme += (x < _SMALLEST_LOG_FACTOR) & (x != -np.inf) & (m != h)
    return forbidden > 0 and extreme == 0, forbidden > 0, shift


@part
def find_core(scores: Floats, n: int, reducible: bool, queue: Ints, core: Bools) -> bool:
    """Mark the words that can be the root's child as far as words' heads go; False if there are none.

    Going from head to modifier, a word is such if it reaches every word. The start of the last search that found new
    words is the only candidate; if it reaches all, the core is every word that reaches it.
    """
    for m in range(1, n + 1):
        core[m] = True
    if not reducible:
        return True
    seen = np.zeros(n + 1, dtype=np.bool_)
    candidate = 0
    for m in range(1, n + 1):
        if not seen[m]:
            candidate = m
            _reach(scores, n, m, True, queue, seen)
    seen[:] = False
    if _reach(scores, n, candidate, True, queue, seen) < n:
        return False
    core[1 : n + 1] = False
    _reach(scores, n, candidate, False, queue, core)
    return True


@part
def _reach(scores: Floats, n: int, start: int, downwards: bool, queue: Ints, seen: Bools) -> int:
    """Mark what can be reached from `start`, from heads to modifiers or back; return how many are new."""
    seen[start] = True
    queue[0] = start
    count, done = 1, 0
    while done < count:
        v = queue[done]
        done += 1
        for u in range(1, n + 1):
            if not seen[u] and (scores[v, u] if downwards else scores[u, v]) > -np.inf:
                seen[u] = True
                queue[count] = u
                count += 1
    return count


@part
def fill_weights(
    scores: Floats,
    n: int,
    single_root: bool,
    logs: bool,
    scale: Floats,
    core: Bools,
    weights: Floats,
) -> None:
    """Scaled weights [head, modifier], or their logarithms; nothing on the diagonal, no root outside the core."""
    nothing = -np.inf if logs else 0.0
    for m in range(1, n + 1):
        weights[0, m] = scores[0, m] - scale[m] - scale[0]
    if not logs:
        for m in range(1, n + 1):
            weights[0, m] = fast_exp(weights[0, m])
    for h in range(1, n + 1):
        for m in range(1, n + 1):
            x = scores[h, m] - scale[m]
            weights[h, m] = x if logs else fast_exp(x)
        weights[h, h] = nothing
    if single_root:
        for m in range(1, n + 1):
            if not core[m]:
                weights[0, m] = nothing
