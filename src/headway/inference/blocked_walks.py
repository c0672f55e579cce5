"""The walk of `escape_walks` in plain numbers, level by level, so that small groups of words are solved side by side.

Eliminating one half of the words to solve the other is fast while rows are long. Most of the time would go to the many
small groups at the end, whose loops are over before a vector register is full. Here all groups of one level are made
before the next, a panel of each at a time, so that the divisions of one do not wait for those of another. Groups of up
to `FEW_WORDS` words are then taken together, eight of them in the lanes of vector registers (`lanes`), and the escapes
of each word computed apart. Their sizes differ by one at most; a word that a group
lacks has the first word as its only head, and is nobody's head, so that its pivot is 1.

Only for weights that need no watching (`walk_weights.find_scale`). Each sentence is computed on its own: results do not
depend on what else is in a batch.

Shapes: table (levels, 2 nodes, columns). The table of the group from word lo on is at level 0 for the whole sentence;
a group's halves have theirs, of as many rows as the group has words, at 2 lo and behind it, one level down.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headway.arrays import Floats, Ints
from headway.inference.escape_walks import FEW_WORDS, copy_words, flat, log_product
from headway.inference.jit import part
from headway.inference.lanes import LANES, fill, load, store
from headway.inference.panel_elimination import PANEL, leave_panel, substitute, update


class LaneSpace(NamedTuple):
    """What groups are computed in, side by side.

    `begin` (levels, groups + 1) has the first word of each group of a level. `tables` (3, halves) tells of the halves
    of one level's groups in which row their table begins, how many words it has, and how many of them are kept.
    """

    cells: Floats
    rest: Floats
    pivots: Floats
    escapes: Floats
    begin: Ints
    tables: Ints


@part
def lane_space(levels: int, nodes: int) -> LaneSpace:
    """Workspace for sentences of so many nodes."""
    size = LANES * FEW_WORDS * (FEW_WORDS + 1)
    cells = aligned(size)
    cells[:] = 1.0  # lanes that are not used are computed too
    begin, tables = np.empty((levels, nodes + 1), np.int64), np.empty((3, 2 * nodes), np.int64)
    return LaneSpace(cells, aligned(size), aligned(LANES * FEW_WORDS), aligned(size), begin, tables)


@part
def aligned(count: int) -> Floats:
    """So many numbers that nothing has been written to, from the beginning of a cache line on."""
    room = np.empty(count + LANES)
    start = -(room.ctypes.data // 8) % LANES
    return room[start : start + count]


@part
def solve_plain(
    table: Floats, n: int, multi_root: bool, begun: bool, wanted: bool, work: Floats, escape: Floats, space: LaneSpace
) -> float:
    """log Z of the n words in table[0], and their escapes, if `wanted`. `begun` is as in `escape_walks.solve`."""
    rows, height, begin = flat(table), table.shape[1], space.begin
    begin[0, 0], begin[0, 1] = 0, n
    log_z, groups, level, most = 0.0, 1, 0, n
    while most > FEW_WORDS:
        own = begin[level, 1]
        known = begun and own > FEW_WORDS
        halves = _halve(rows, level, groups, height, known, wanted, begin, space.tables)
        _eliminate_others(rows, space.tables, halves, known, (most + 1) // 2, multi_root, work)
        if not known:
            log_z += log_product(work[PANEL], own // 2, own, False)
        groups, level, most = 2 * groups, level + 1, (most + 1) // 2
    for first in range(0, groups if wanted else 1, LANES):
        count = min(LANES, groups - first) if wanted else 1
        for q in range(count):
            lo, hi = begin[level, first + q], begin[level, first + q + 1]
            _to_lane(rows, _row_of(begin, level, first + q, height), hi - lo, most, q, space.cells)
        _solve_few(space.cells, most, multi_root, most if wanted else 1, space.rest, space.pivots, space.escapes)
        if first == 0:
            log_z += log_product(space.pivots[: LANES * most : LANES], 0, most, False)
        if wanted:
            for q in range(count):
                lo, hi = begin[level, first + q], begin[level, first + q + 1]
                _from_lane(space.escapes, most, q, lo, hi, escape)
    if not wanted:
        return log_z
    while level > 0:
        groups, level = groups // 2, level - 1
        for g in range(groups):
            lo, hi = begin[level, g], begin[level, g + 1]
            size, half, below = hi - lo, (hi - lo) // 2, (level + 1) * height + 2 * lo
            substitute(rows, below, lo, half, lo + half, size, escape)
            substitute(rows, below + size, lo + half, size - half, lo, size, escape)
    return log_z


@part
def _halve(
    rows: Floats, level: int, groups: int, height: int, known: bool, wanted: bool, begin: Ints, tables: Ints
) -> int:
    """Copy every group's words twice, one half first, then the other; returns how many halves there are.

    If no escapes are wanted, the first half of the first group is all. It is not copied if its table is `known`.
    """
    halves = 0
    for g in range(groups):
        lo, hi = begin[level, g], begin[level, g + 1]
        size, half = hi - lo, (hi - lo) // 2
        begin[level + 1, 2 * g], begin[level + 1, 2 * g + 1] = lo, lo + half
        at, to = _row_of(begin, level, g, height), (level + 1) * height + 2 * lo
        for side in range(2 if wanted else 1 if g == 0 else 0):
            first, keep = (0, half) if side == 0 else (half, size - half)
            if halves > 0 or not known:
                copy_words(rows, at, first, keep, size, to)
            tables[0, halves], tables[1, halves], tables[2, halves] = to, size, keep
            halves, to = halves + 1, to + size
    begin[level + 1, 2 * groups] = begin[level, groups]
    return halves


@part
def _eliminate_others(
    rows: Floats, tables: Ints, halves: int, known: bool, most: int, multi_root: bool, work: Floats
) -> None:
    """In every table, eliminate the words that are not kept, at most so many; the first table's d_k are left in `work`.

    One panel of each table at a time: its divisions wait for each other, but not for those of other tables.
    """
    for done in range(0, most, PANEL):
        for t in range(1 if known else 0, halves):
            at, top, keep = tables[0, t], tables[1, t] - done, tables[2, t]
            if top > keep:
                row = PANEL if t == 0 else PANEL + 1
                leave_panel(rows, at, top, max(keep, top - PANEL), multi_root, False, work, row, 1.0)
        for t in range(1 if known else 0, halves):
            at, top, keep = tables[0, t], tables[1, t] - done, tables[2, t]
            if top > keep:
                update(rows, at, top, max(keep, top - PANEL))


@part
def _row_of(begin: Ints, level: int, g: int, height: int) -> int:
    """Where the table of a group is."""
    if level == 0:
        return 0
    lo, hi = begin[level - 1, g // 2], begin[level - 1, g // 2 + 1]
    return int(level * height + 2 * lo + (g % 2) * (hi - lo))


@part
def _to_lane(rows: Floats, at: int, own: int, most: int, q: int, cells: Floats) -> None:
    """Put the table of `own` words into lane q, with words behind them that only the first word can be the head of."""
    width = most + 1
    if at < 0 or own < 0 or q < 0 or width < 0:  # never: tells the compiler that no index counts from the end
        return
    for i in range(own):
        for j in range(own + 1):
            cells[LANES * (i * width + j) + q] = rows[at + i, j]
        for j in range(own + 1, width):
            cells[LANES * (i * width + j) + q] = 0.0
    for i in range(own, most):
        for j in range(width):
            cells[LANES * (i * width + j) + q] = 1.0 if j == 1 else 0.0


@part
def _from_lane(escapes: Floats, most: int, q: int, lo: int, hi: int, escape: Floats) -> None:
    """Escapes of the words lo .. hi from lane q."""
    if lo < 0 or q < 0 or most < 0:  # never; see _to_lane
        return
    for h in range(hi - lo):
        for m in range(hi - lo):
            escape[lo + h, lo + m] = escapes[LANES * (h * (most + 1) + m) + q]


@part
def _solve_few(
    cells: Floats, n: int, multi_root: bool, columns: int, rest: Floats, pivots: Floats, escapes: Floats
) -> None:
    """Escapes, cell h (n + 1) + m, of n words for the first columns m, and the pivots that multiply to Z.

    Cell i (n + 1) + 1 + j is the weight of stepping from word i to word j, cell i (n + 1) to the root. For each column
    all other words are eliminated: with few words that takes no longer than divide and conquer.
    """
    width = n + 1
    for m in range(columns):
        for i in range(n):
            row = width * _word(i, m)
            store(rest, i * width, load(cells, row))
            for j in range(n):
                store(rest, i * width + 1 + j, load(cells, row + 1 + _word(j, m)))
        for k in range(n - 1, 0, -1):
            row = k * width
            d = load(rest, row) if multi_root else fill(0.0)
            for j in range(1, k + 1):
                d = d + load(rest, row + j)
            if m == 0:
                store(pivots, k, d)
            inverse = fill(1.0) / d
            for j in range(k + 1):
                store(rest, row + j, load(rest, row + j) * inverse)
            for i in range(k):
                factor = load(rest, i * width + 1 + k)
                for j in range(k + 1):
                    store(rest, i * width + j, load(rest, i * width + j) + factor * load(rest, row + j))
        if m == 0:
            store(pivots, 0, load(rest, 0))
        store(escapes, m * width + m, fill(0.0))
        for k in range(1, n):
            escape = load(rest, k * width)
            for j in range(1, k):
                escape = escape + load(rest, k * width + 1 + j) * load(escapes, _word(j, m) * width + m)
            store(escapes, _word(k, m) * width + m, escape)


@part
def _word(i: int, m: int) -> int:
    """The i-th word when word m comes first, and the others in order after it."""
    if i == 0:
        return m
    return i - 1 if i <= m else i
