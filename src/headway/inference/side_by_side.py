"""Log-partition and marginals of non-projective trees in float32, eight sentences at a time.

The algorithm is `matrix_tree`'s, by the walk of `escape_walks`: words are eliminated one after the other, and the
escapes of one half of the words need the other half eliminated. Nothing in it looks at a number to decide what to do
next, so eight sentences take the same steps side by side, one in each lane of a vector register (`lanes`).

Sentences are sorted by length. Words beyond a sentence's end, up to the longest of its group, have word 1 as their only
head, and are nobody's head: their pivots are 1, and whatever their own columns hold is not used.

*Numbers.* Weights are relative to each word's largest (single-root: the root's together). If no arc is forbidden and
none is more than `SAFE_SPREAD` below it, entries only grow, and no product of two underflows float32. Weights are never
subtracted, so errors stay at some units in the last place; differences of scores keep what their rounding loses. The
product of the pivots is float64. Sentences that do not meet this are not computed here: `computed` (B,) tells which
are.

Shapes: scores (B, N+1, N+1) to log Z (B,) and marginals like scores. O(n^3) time, O(n^2) memory a thread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Bools, Floats, Ints
from headway.inference.aligned import aligned_empty
from headway.inference.batch import over_sentences
from headway.inference.jit import kernel, part
from headway.inference.lanes import LANES, difference, exp, fill, load, store
from headway.parallel import Executor

Singles = NDArray[np.float32]

# exp(-37) squared is 7e-33: far enough above float32's smallest number for any length.
SAFE_SPREAD = np.float32(37.0)
# So many pivots, each above exp(-37), can be multiplied in float64.
_PIVOTS = 16
_NONE, _NO_CELLS = np.empty((0, 0, 0), np.float32), np.empty((0, 0), np.float32)
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


class Begun(NamedTuple):
    """log Z of a batch, which sentences were computed, and how far their marginals have got.

    `groups` (G, 8) has the sentences of each group. `cells` (G, ...) are their weights, and the tables that the walk to
    log Z left: two to three copies of the scores. `ready` (1,) tells whether they are there.
    """

    log_z: Floats
    computed: Bools
    scale: Singles
    groups: Ints
    cells: Singles
    ready: Bools


def log_partition(scores: Singles, lengths: Ints, *, single_root: bool, executor: Executor) -> tuple[Floats, Bools]:
    """log Z of every sentence, and which were computed."""
    begun = _nothing(scores, lengths, single_root, keep=False)
    _run(scores, lengths, single_root, executor, begun, _NONE)
    return begun.log_z, begun.computed


def begin(scores: Singles, lengths: Ints, *, single_root: bool, executor: Executor) -> Begun:
    """log Z of every sentence, which were computed, and what `marginals` can go on from."""
    begun = _nothing(scores, lengths, single_root, keep=True)
    _run(scores, lengths, single_root, executor, begun, _NONE)
    begun.ready[0] = True
    return begun


def marginals(
    scores: Singles, lengths: Ints, *, single_root: bool, executor: Executor, begun: Begun | None = None
) -> tuple[Floats, Singles, Bools]:
    """log Z and arc marginals [head, modifier] of every sentence, and which were computed. `begun` is used up."""
    mu = np.zeros(scores.shape, np.float32)
    done = begun or _nothing(scores, lengths, single_root, keep=False)
    _run(scores, lengths, single_root, executor, done, mu)
    return done.log_z, mu, done.computed


def _nothing(scores: Singles, lengths: Ints, single_root: bool, keep: bool) -> Begun:
    """Nothing begun yet but scales and groups, with room to keep cells or not."""
    size, nodes = scores.shape[:2]
    log_z, computed = np.zeros(size), np.zeros(size, np.bool_)
    scale = np.zeros((size, nodes), np.float32)
    _find_scale(scores, lengths, single_root, scale, computed)
    order = np.flatnonzero(computed & (lengths > 0))
    order = order[np.argsort(lengths[order], kind="stable")]
    # A group that is not full has its longest sentence more than once.
    places = np.arange(-(-len(order) // LANES) * LANES)
    groups = order[np.minimum(places, len(order) - 1)].reshape(-1, LANES)
    cells = aligned_empty((len(groups), LANES * _cells_of_tables(nodes - 1)), np.float32) if keep else _NO_CELLS
    return Begun(log_z, computed, scale, groups, cells, np.zeros(1, np.bool_))


def _run(scores: Singles, lengths: Ints, single_root: bool, executor: Executor, begun: Begun, mu: Singles) -> None:
    size, nodes = scores.shape[:2]
    resumed = bool(begun.ready[0])
    begun.ready[0] = False

    def run(start: int, stop: int) -> None:
        groups, cells = begun.groups[start:stop], begun.cells[start:stop]
        _groups(scores, lengths, begun.scale, groups, single_root, resumed, begun.log_z, cells, mu)

    over_sentences(run, begun.groups, work=0.3 * size * float(nodes) ** 3, executor=executor)


@kernel
def _find_scale(scores: Singles, lengths: Ints, single_root: bool, scale: Singles, computed: Bools) -> None:
    """Fill scale[b, m], each word's largest score, and scale[b, 0], the root's above those; tell safe spreads."""
    first = 1 if single_root else 0
    for b in range(scores.shape[0]):
        n = lengths[b]
        if n < 0 or n >= scores.shape[1]:
            continue
        top = scale[b]
        top[:] = -np.inf
        for h in range(first, n + 1):
            own = top[h]
            for m in range(1, n + 1):
                top[m] = scores[b, h, m] if scores[b, h, m] > top[m] else top[m]
            top[h] = own
        if single_root and n == 1:
            top[1] = _ZERO  # no word to be the head of
        top[0] = _ZERO
        if single_root and n > 0:
            root = np.float32(-np.inf)
            for m in range(1, n + 1):
                root = max(root, scores[b, 0, m] - top[m])
            top[0] = root
        wide = 0
        for h in range(n + 1):
            above = top[0] if h == 0 else _ZERO
            for m in range(1, n + 1):
                # nan and infinities are not safe either
                safe = scores[b, h, m] - top[m] - above >= -SAFE_SPREAD
                wide += (not safe) & (m != h)
        computed[b] = wide == 0


@kernel
def _groups(
    scores: Singles,
    lengths: Ints,
    scale: Singles,
    groups: Ints,
    single_root: bool,
    begun: bool,
    log_z: Floats,
    kept_cells: Singles,
    mu: Singles,
) -> None:
    """Groups of sentences, each sorted by length: log Z, unless it has begun, and marginals, if there is room."""
    if len(groups) == 0:
        return
    longest = lengths[groups[-1, LANES - 1]]
    own_cells = np.empty((1 if len(kept_cells) == 0 else 0, LANES * _count_cells(longest)), np.float32)
    escapes = np.zeros(LANES * longest * (longest + 1), np.float32)
    pivots = np.empty(LANES * 2 * longest, np.float32)
    path = np.empty((5, 66), dtype=np.int64)  # for more levels than there can be
    wanted = len(mu) > 0
    for turn in range(len(groups)):
        # What has begun last is gone on with first: it may still be in the cache.
        g = len(groups) - 1 - turn if begun else turn
        cells = kept_cells[g] if len(kept_cells) > 0 else own_cells[0]
        n = lengths[groups[g, LANES - 1]]
        if not begun:
            _fill_weights(scores, lengths, scale, groups[g], n, single_root, cells, pivots)
        _solve(cells, n, not single_root, begun, wanted, path, pivots, escapes)
        if not begun:
            for s in range(LANES):
                b = groups[g, s]
                log_z[b] = _log_product(pivots, n, s)
                for m in range(lengths[b] + 1):
                    log_z[b] += scale[b, m]
        if wanted:
            _normalise(cells, escapes, n)
            _store_marginals(lengths, groups[g], n, cells, mu)


@part
def _store_marginals(lengths: Ints, group: Ints, n: int, cells: Singles, mu: Singles) -> None:
    for s, b in enumerate(group):
        for h in range(lengths[b] + 1):
            for m in range(1, lengths[b] + 1):
                mu[b, h, m] = cells[LANES * ((m - 1) * (n + 1) + h) + s]


def _cells_of_tables(n: int) -> int:
    """The words' weights, and a table for each level, which holds all words of the level above."""
    total, size = n * (n + 1), n
    while size > 1:
        total += size * (size + 1)
        size = (size + 1) // 2
    return total


_count_cells = part(_cells_of_tables)


@part
def _fill_weights(
    scores: Singles,
    lengths: Ints,
    scale: Singles,
    group: Ints,
    n: int,
    single_root: bool,
    cells: Singles,
    scales: Singles,
) -> None:
    """Cell (i, 1 + j): the scaled weight of the arc from word j to word i, both from 0; cell (i, 0): of the root."""
    width = n + 1
    roots = np.empty(LANES, np.float32)
    for s in range(LANES):
        b = group[s]
        roots[s] = scale[b, 0]
        for m in range(1, lengths[b] + 1):
            scales[LANES * (m - 1) + s] = scale[b, m]
    for s in range(LANES):
        b = group[s]
        for h in range(lengths[b] + 1):
            for m in range(1, lengths[b] + 1):
                cells[LANES * ((m - 1) * width + h) + s] = scores[b, h, m]
    root = load(roots, 0)
    for i in range(n):
        top = load(scales, i)
        x, lost = difference(load(cells, i * width), top)
        x, more = difference(x, root)
        store(cells, i * width, exp(x, lost + more))
        for j in range(1, width):
            x, lost = difference(load(cells, i * width + j), top)
            store(cells, i * width + j, exp(x, lost))
        store(cells, i * width + 1 + i, fill(_ZERO))
    for s in range(LANES):
        own = lengths[group[s]]
        for i in range(own):
            for j in range(own, n):
                cells[LANES * (i * width + 1 + j) + s] = _ZERO
        for i in range(own, n):
            for j in range(width):
                cells[LANES * (i * width + j) + s] = _ONE if j == 1 else _ZERO


@part
def _log_product(pivots: Singles, n: int, s: int) -> float:
    total, product = 0.0, 1.0
    for k in range(n):
        product *= np.float64(pivots[LANES * k + s])
        if k % _PIVOTS == _PIVOTS - 1:
            total += np.log(product)
            product = 1.0
    return total + float(np.log(product))


@part
def _solve(
    cells: Singles, n: int, multi_root: bool, begun: bool, wanted: bool, path: Ints, pivots: Singles, escapes: Singles
) -> None:
    """Escapes, cell h (n + 1) + m, of the n words whose weights come first in `cells`; pivots k < n multiply to Z.

    What other pivots there are lie behind these. `escapes` has a column to spare, as columns are computed in pairs: the
    one too many is computed properly later. As in `escape_walks.solve`, the walk ends with log Z if no escapes are
    `wanted`, and goes on from there with the tables it left (`begun`).
    """
    begin, end, stage, at, width = path[0], path[1], path[2], path[3], path[4]
    stride = n + 1
    level = 0
    begin[0], end[0], stage[0], at[0], width[0], at[1] = 0, n, 0, 0, n + 1, n * (n + 1)
    while begun and end[level] > 2:
        size = end[level]
        stage[level] = 1
        level += 1
        begin[level], end[level], stage[level] = 0, size // 2, 0
        width[level], at[level + 1] = size + 1, at[level] + size * (size + 1)
    while level >= 0:
        lo, hi = begin[level], end[level]
        size = hi - lo
        to = 0 if lo == 0 else n
        if size <= 2:
            _solve_few(cells, at[level], width[level], size, multi_root, pivots, to, escapes, lo * stride + lo, stride)
            if lo == 0 and not wanted:
                return
            level -= 1
            continue
        half = size // 2
        below = level + 1
        if stage[level] == 1:
            _substitute(cells, at[below], width[below], size, half, escapes, stride, lo, lo + half)
        if stage[level] == 2:
            _substitute(cells, at[below], width[below], size, size - half, escapes, stride, lo + half, lo)
            level -= 1
            continue
        first, keep = (0, half) if stage[level] == 0 else (half, size - half)
        width[below] = size + 1
        at[below + 1] = at[below] + size * (size + 1)
        _copy(cells, at[level], width[level], first, keep, size, at[below])
        _eliminate(cells, at[below], size + 1, size, keep, multi_root, pivots, to if first == 0 else n)
        stage[level] += 1
        level += 1
        begin[level], end[level], stage[level] = lo + first, lo + first + keep, 0


@part
def _solve_few(
    cells: Singles,
    at: int,
    width: int,
    size: int,
    multi_root: bool,
    pivots: Singles,
    to: int,
    escapes: Singles,
    place: int,
    stride: int,
) -> None:
    """One word or two."""
    store(escapes, place, fill(_ZERO))
    if size == 1:
        store(pivots, to, load(cells, at))
        return
    root_0, root_1 = load(cells, at), load(cells, at + width)
    to_1, to_0 = load(cells, at + 2), load(cells, at + width + 1)
    d_0 = to_1 + root_0 if multi_root else to_1
    d_1 = to_0 + root_1 if multi_root else to_0
    escape = root_1 / d_1
    store(escapes, place + stride, escape)
    store(escapes, place + 1, root_0 / d_0)
    store(escapes, place + stride + 1, fill(_ZERO))
    store(pivots, to + 1, d_1)
    store(pivots, to, root_0 + to_1 * escape)


@part
def _copy(cells: Singles, at: int, width: int, first: int, keep: int, size: int, to: int) -> None:
    """Copy `size` words one level down, so that the `keep` words from `first` on come first, the others after them."""
    others = 0 if first > 0 else keep
    for i in range(size):
        row = at + width * (first + i if i < keep else others + i - keep)
        store(cells, to, load(cells, row))
        for j in range(keep):
            store(cells, to + 1 + j, load(cells, row + 1 + first + j))
        for j in range(size - keep):
            store(cells, to + 1 + keep + j, load(cells, row + 1 + others + j))
        to += size + 1


@part
def _eliminate(
    cells: Singles, at: int, width: int, size: int, keep: int, multi_root: bool, pivots: Singles, to: int
) -> None:
    """Eliminate words size-1 .. keep, four at a time while there are as many. Row k is left as p_k."""
    top = size
    while top > keep:
        count = 4 if top - keep >= 4 else 1
        for k in range(top - 1, top - 1 - count, -1):
            row = at + k * width
            for q in range(top - 1, k, -1):
                factor, pivot = load(cells, row + 1 + q), at + q * width
                for j in range(q + 1):
                    store(cells, row + j, load(cells, row + j) + factor * load(cells, pivot + j))
            d, odd = fill(_ZERO), fill(_ZERO)
            for j in range(0 if multi_root else 1, k, 2):
                d = d + load(cells, row + j)
                odd = odd + load(cells, row + j + 1)
            d = d + odd
            if (k + 1 - (0 if multi_root else 1)) % 2 == 1:
                d = d + load(cells, row + k)
            store(pivots, to + k, d)
            inverse = fill(_ONE) / d
            for j in range(k + 1):
                store(cells, row + j, load(cells, row + j) * inverse)
        if count == 1:
            _update_by_one(cells, at, width, top - 1)
        else:
            _update_by_four(cells, at, width, top)
        top -= count


@part
def _update_by_one(cells: Singles, at: int, width: int, k: int) -> None:
    pivot = at + k * width
    for i in range(k):
        row = at + i * width
        factor = load(cells, row + 1 + k)
        for j in range(k + 1):
            store(cells, row + j, load(cells, row + j) + factor * load(cells, pivot + j))


@part
def _update_by_four(cells: Singles, at: int, width: int, top: int) -> None:
    """Rows above the panel, each word's factor brought up to date by the pivots before it."""
    p0 = at + (top - 1) * width
    p1, p2, p3 = p0 - width, p0 - 2 * width, p0 - 3 * width
    for i in range(top - 4):
        row = at + i * width
        f0 = load(cells, row + top)
        f1 = load(cells, row + top - 1) + f0 * load(cells, p0 + top - 1)
        f2 = load(cells, row + top - 2) + f0 * load(cells, p0 + top - 2) + f1 * load(cells, p1 + top - 2)
        f3 = load(cells, row + top - 3) + f0 * load(cells, p0 + top - 3) + f1 * load(cells, p1 + top - 3)
        f3 = f3 + f2 * load(cells, p2 + top - 3)
        for j in range(top - 3):
            x = load(cells, row + j) + f0 * load(cells, p0 + j) + f1 * load(cells, p1 + j)
            store(cells, row + j, x + f2 * load(cells, p2 + j) + f3 * load(cells, p3 + j))


@part
def _substitute(
    cells: Singles,
    at: int,
    width: int,
    size: int,
    keep: int,
    escapes: Singles,
    stride: int,
    columns: int,
    others: int,
) -> None:
    """Escapes of the eliminated words (from place `others` on), last eliminated first, for `keep` columns.

    Two columns at a time, and four words, so that each number read takes part in several sums.
    """
    k = keep
    while k < size:
        count = 4 if k + 4 <= size else 1
        for m in range(columns, columns + keep, 2):
            near, far = columns * stride + m, others * stride + m
            if count == 4:
                _four_words(cells, at + k * width, width, k, keep, escapes, stride, near, far)
            else:
                _one_word(cells, at + k * width, k, keep, escapes, stride, near, far)
        k += count


@part
def _one_word(cells: Singles, row: int, k: int, keep: int, escapes: Singles, stride: int, near: int, far: int) -> None:
    a = load(cells, row)
    b = a
    for start, stop, first in ((0, keep, near), (keep, k, far)):
        e = first
        for j in range(1 + start, 1 + stop):
            p = load(cells, row + j)
            a = a + p * load(escapes, e)
            b = b + p * load(escapes, e + 1)
            e += stride
    to = far + (k - keep) * stride
    store(escapes, to, a)
    store(escapes, to + 1, b)


@part
def _four_words(
    cells: Singles, row: int, width: int, k: int, keep: int, escapes: Singles, stride: int, near: int, far: int
) -> None:
    r1, r2, r3 = row + width, row + 2 * width, row + 3 * width
    a0, a1, a2, a3 = load(cells, row), load(cells, r1), load(cells, r2), load(cells, r3)
    b0, b1, b2, b3 = a0, a1, a2, a3
    for start, stop, first in ((0, keep, near), (keep, k, far)):
        e = first
        for j in range(1 + start, 1 + stop):
            x, y = load(escapes, e), load(escapes, e + 1)
            p0, p1, p2, p3 = load(cells, row + j), load(cells, r1 + j), load(cells, r2 + j), load(cells, r3 + j)
            a0, b0 = a0 + p0 * x, b0 + p0 * y
            a1, b1 = a1 + p1 * x, b1 + p1 * y
            a2, b2 = a2 + p2 * x, b2 + p2 * y
            a3, b3 = a3 + p3 * x, b3 + p3 * y
            e += stride
    p = load(cells, r1 + 1 + k)
    a1, b1 = a1 + p * a0, b1 + p * b0
    p, q = load(cells, r2 + 1 + k), load(cells, r2 + 2 + k)
    a2, b2 = a2 + p * a0 + q * a1, b2 + p * b0 + q * b1
    p, q, r = load(cells, r3 + 1 + k), load(cells, r3 + 2 + k), load(cells, r3 + 3 + k)
    a3, b3 = a3 + p * a0 + q * a1 + r * a2, b3 + p * b0 + q * b1 + r * b2
    to = far + (k - keep) * stride
    store(escapes, to, a0)
    store(escapes, to + 1, b0)
    store(escapes, to + stride, a1)
    store(escapes, to + stride + 1, b1)
    store(escapes, to + 2 * stride, a2)
    store(escapes, to + 2 * stride + 1, b2)
    store(escapes, to + 3 * stride, a3)
    store(escapes, to + 3 * stride + 1, b3)


@part
def _normalise(cells: Singles, escapes: Singles, n: int) -> None:
    """The weights become P(h -> m), an arc's share of W E over the heads of m."""
    width = n + 1
    for i in range(n):
        row = i * width
        total = load(cells, row)
        for h in range(n):
            w = load(cells, row + 1 + h) * load(escapes, h * width + i)
            total = total + w
            store(cells, row + 1 + h, w)
        share = fill(_ONE) / total
        for h in range(width):
            store(cells, row + h, load(cells, row + h) * share)
