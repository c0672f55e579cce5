"""Spectral learning of operator automata: substring statistics, an SVD per head and direction (luque2012 section 3).

Every head symbol and direction has its own automaton, learnt by algorithm 1 from the `ModifierTrie`. Let P(u, v) be the
expected number of occurrences of the string v u in START x STOP, for x a modifier sequence, and P_a(u, v) that of
v a u. With the thin SVD P = U S V^T of `states` singular values,

    A_a = U^T P_a R,   alpha_1 = U^T P(:, START),   alpha_inf = P(STOP, :) R,   R = V S^-1.

In the paper u and v are single symbols (`context` 1), so that all statistics are of substrings of length three. They
may be strings of up to `context` symbols, as in Balle et al. (2012): more of what is remembered can be told apart.
Those of two and more symbols must have been seen `least` times; rarer ones add to the size of P, and little else.

Where we differ:
- With START and STOP as symbols, the paper's alpha_1 = U^T p_1 is the state before START, which no bigram can show:
  its A_START, by (13), is zero. We take the states after START, U^T P(:, START), and before STOP, P(STOP, :) R,
  directly; these are what footnote 6 packs.
- `ridge`: R = V S / (S^2 + ridge^2 / N) for N sequences. A singular value is uncertain by about 1 / sqrt(N); those near
  that are noise, and the paper's inverse multiplies it. With 0 this is the paper's; the term vanishes as N grows.
- The statistics are sums over prefixes, not over sequences: with G(x), the sum over strings u that follow prefix x of
  U(u, :) times their count, and R(x), the sum of R over the strings v that end x,

      N A_a = sum over prefixes x that end in a, of G(x) R(parent of x)^T,

  and alpha_1 is G(empty prefix) / N, alpha_inf the sum of R(x) over the ends x of sequences / N. No P_a is ever stored.

The automata of fewer states are the leading blocks of those of more, so `states` can be chosen on development data
without learning again. Cost: O(prefixes context^2) for P, an SVD, and O(prefixes s^2). The SVD is LAPACK's for small P,
and Lanczos' (ARPACK) on the sparse matrix for large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds

from headway.arrays import Floats, Ints
from headway.errors import TrainingError
from headway.inference.jit import kernel
from headway.inference.operator_automata import OperatorGrammar
from headway.learning.modifier_trie import ModifierTrie

CONTEXT, RIDGE, LEAST = 3, 1.0, 20.0  # chosen on the development sentences of experiments/luque2012
_DENSE = 150  # rows or columns up to which LAPACK's whole SVD is the faster one
_RANK = 1e-9  # singular values below this share of the first are rounding


_Entries = tuple[Floats, tuple[Ints, Ints]]


@dataclass(frozen=True)
class _Strings:
    """Numbers, within its tree, of the strings around each prefix; -1 where there is none.

    `before` (X, context): those of 1, 2, ... symbols that end the prefix. `after` (X, context): the same as strings
    that follow the prefix so many symbols shorter. `stop` (X, context): those of 0, 1, ... symbols that end it, then
    STOP.
    `rows` and `columns` of every tree: how many strings follow, and how many come before.
    """

    before: Ints
    after: Ints
    stop: Ints
    rows: Ints
    columns: Ints


def spectral_grammar(
    trie: ModifierTrie, states: int, *, context: int = CONTEXT, ridge: float = RIDGE, least: float = LEAST
) -> OperatorGrammar:
    """The operator grammar of `states` states; automata that have fewer singular values leave the last states unused.

    >>> trie = ModifierTrie.of(3, np.array([3]), np.array([1, 1, 2]), np.array([3, 3, 0]))
    >>> grammar = spectral_grammar(trie, 3, ridge=0.0, least=1.0)
    >>> bool(abs(grammar.weight(2, 0, [1, 1]) - 1) < 1e-12)  # one sequence was seen, so it is certain
    True
    """
    if states < 1 or context < 1:
        raise TrainingError(f"{states} states and strings of {context} symbols; at least one of each is needed")
    if not (ridge >= 0 and np.isfinite(ridge)):
        raise TrainingError(f"the ridge is {ridge}; expected 0 or a number above")
    if np.isnan(least):
        raise TrainingError("strings must have been seen nan times; expected a number")
    strings = _number_strings(trie, context, least)
    size = trie.size
    initial, final = np.zeros((2 * size, states)), np.zeros((2 * size, states))
    operators = np.zeros((2 * size, size, states, states))
    for tree in range(2 * size):
        first, last = trie.starts[tree : tree + 2].tolist()
        count = trie.through[first]
        if not count:
            continue
        some = slice(first, last)
        around = (strings.before[some], strings.after[some], strings.stop[some])
        above = trie.parents[some] - first
        counts = (trie.through[some] / count, trie.ends[some] / count)
        entries = _entries(above, *around, *counts)
        u, s, v = _thin_svd(entries, (int(strings.rows[tree]), int(strings.columns[tree])), states)
        r = v * (s / (s * s + ridge * ridge / count))
        rank = len(s)
        alpha, omega, a = _operators(above, trie.symbols[some], *around, *counts, u, r, size)
        initial[tree, :rank], final[tree, :rank], operators[tree, :, :rank, :rank] = alpha, omega, a
    return OperatorGrammar.of_automata(initial, final, operators)


def _thin_svd(entries: _Entries, shape: tuple[int, int], states: int) -> tuple[Floats, Floats, Floats]:
    """U (rows, k), S (k,), V (columns, k) of the k <= states largest singular values of P that are not zero."""
    values, (rows, columns) = entries
    if min(shape) <= max(_DENSE, states + 1):
        p = np.bincount(rows * shape[1] + columns, values, shape[0] * shape[1]).reshape(shape)
        u, s, vt = np.linalg.svd(p, full_matrices=False)
    else:
        # a fixed start, so that results repeat; only to rounding where P's rank is below ARPACK's 2 states + 1 vectors,
        # since it then goes on from one that it draws
        u, s, vt = svds(csr_matrix(entries, shape), states, v0=np.ones(min(shape)))
        u, s, vt = u[:, ::-1], s[::-1], vt[::-1]
    rank = min(states, int((s > _RANK * s[0]).sum()))
    return np.ascontiguousarray(u[:, :rank]), s[:rank], np.ascontiguousarray(vt[:rank].T)


def _number_strings(trie: ModifierTrie, context: int, least: float) -> _Strings:
    base = trie.size + 1
    codes = base**context  # of a tree
    if 2 * trie.size * codes >= 2**62:
        raise TrainingError(f"strings of {context} among {trie.size} symbols are too many to number; take shorter ones")
    before, after, stop = _codes(trie.parents, trie.symbols, trie.ends, base, context)
    edges = np.arange(2 * trie.size + 1) * codes
    through, ends = (np.repeat(counts, context).reshape(-1, context) for counts in (trie.through, trie.ends))
    columns, before = _numbered(before, through, trie.trees, edges, base, least)
    both, counts = np.concatenate((after, stop), axis=1), np.concatenate((through, ends), axis=1)
    rows, both = _numbered(both, counts, trie.trees, edges, base, least)
    return _Strings(before, both[:, :context], both[:, context:], rows, columns)


def _numbered(codes: Ints, counts: Floats, trees: Ints, edges: Ints, base: int, least: float) -> tuple[Ints, Ints]:
    """How many codes each tree has, and the codes numbered from 0 within each; -1 for none, and for rare strings."""
    keys = np.where(codes < 0, -1, edges[trees][:, None] + codes)
    known, which = np.unique(keys, return_inverse=True)
    which = which.reshape(codes.shape)
    seen = np.bincount(which.ravel(), counts.ravel())
    kept = (known >= 0) & ((seen >= least) | (known % edges[1] < base))  # single symbols always
    starts = np.searchsorted(known[kept], edges)
    numbers = np.cumsum(kept) - 1
    return np.diff(starts), np.where(kept[which], numbers[which] - starts[trees][:, None], -1)


@kernel
def _codes(parents: Ints, symbols: Ints, ends: Floats, base: int, context: int) -> tuple[Ints, Ints, Ints]:
    """The strings of `_Strings` as numbers: digits symbol + 1, the last symbol lowest, STOP like START."""
    shape = (len(parents), context)
    before, after, stop = np.full(shape, -1), np.full(shape, -1), np.full(shape, -1)
    for x in range(len(parents)):
        above, digit = parents[x], symbols[x] + 1
        before[x, 0] = digit
        if ends[x] > 0:
            stop[x, 0] = 1
        for i in range(1, context):
            if above >= 0 and before[above, i - 1] >= 0:
                before[x, i] = digit + base * before[above, i - 1]
        if above >= 0:
            after[x, 0] = digit
            for i in range(1, context):
                if after[above, i - 1] >= 0:
                    after[x, i] = digit + base * after[above, i - 1]
        if ends[x] > 0:
            for i in range(1, context):
                if after[x, i - 1] >= 0:
                    stop[x, i] = 1 + base * after[x, i - 1]
    return before, after, stop


@kernel
def _entries(parents: Ints, before: Ints, after: Ints, stop: Ints, through: Floats, ends: Floats) -> _Entries:
    """P as values and their (rows, columns), one for each prefix, string before and string after; repeats add up."""
    nodes, context = before.shape
    most = 2 * nodes * context * context
    values, rows, columns = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)
    count = 0
    for y in range(nodes):
        x = y  # the prefix that the string after it follows
        for j in range(context + 1):
            for i in range(context):
                if before[x, i] < 0:
                    break
                if j > 0 and after[y, j - 1] >= 0:
                    values[count], rows[count], columns[count] = through[y], after[y, j - 1], before[x, i]
                    count += 1
                if j < context and stop[y, j] >= 0:
                    values[count], rows[count], columns[count] = ends[y], stop[y, j], before[x, i]
                    count += 1
            x = parents[x]
            if x < 0:
                break
    return values[:count], (rows[:count], columns[:count])


@kernel
def _operators(
    parents: Ints,
    symbols: Ints,
    before: Ints,
    after: Ints,
    stop: Ints,
    through: Floats,
    ends: Floats,
    u: Floats,
    r: Floats,
    size: int,
) -> tuple[Floats, Floats, Floats]:
    """alpha_1 (s,), alpha_inf (s,) and A (size, s, s) from the prefixes of one tree; counts are shares of its N."""
    nodes, context = before.shape
    s = u.shape[1]
    following, ending = np.zeros((nodes, s)), np.zeros((nodes, s))  # G and R of each prefix
    for y in range(nodes):
        x = y
        for j in range(context + 1):
            for q in range(s):
                if j > 0 and after[y, j - 1] >= 0:
                    following[x, q] += through[y] * u[after[y, j - 1], q]
                if j < context and stop[y, j] >= 0:
                    following[x, q] += ends[y] * u[stop[y, j], q]
            x = parents[x]
            if x < 0:
                break
        for i in range(context):
            if before[y, i] < 0:
                break
            for q in range(s):
                ending[y, q] += r[before[y, i], q]
    final, operators = np.zeros(s), np.zeros((size, s, s))
    for x in range(nodes):
        for q in range(s):
            final[q] += ends[x] * ending[x, q]
        if parents[x] < 0:
            continue
        a, g, r_above = operators[symbols[x]], following[x], ending[parents[x]]
        for q in range(s):
            row, factor = a[q], g[q]
            for p in range(s):
                row[p] += factor * r_above[p]
    return following[0], final, operators
