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
- `scale`: rows and columns of P are divided by that power of their sums before the SVD, and the rows of U and R by the
  same after it. Frequent strings decide the leading singular vectors of P itself. With 1/2, singular values are like
  the correlations of canonical correlation analysis, in which rare strings have a share. Without a ridge, and with as
  many states as P has singular values, what is learnt is the same.
- The statistics are sums over prefixes, not over sequences: with G(x), the sum over strings u that follow prefix x of
  U(u, :) times their count, and R(x), the sum of R over the strings v that end x,

      N A_a = sum over prefixes x that end in a, of G(x) R(parent of x)^T,

  and alpha_1 is G(empty prefix) / N, alpha_inf the sum of R(x) over the ends x of sequences / N. No P_a is ever stored.

The automata of fewer states are the leading blocks of those of more, so `states` can be chosen on development data
without learning again. Cost: O(prefixes context^2) for P, its leading singular vectors (`leading_svd`), and
O(prefixes s^2). All automata are learnt in one call of a kernel.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Floats, Ints
from headway.errors import TrainingError
from headway.inference.jit import kernel, part
from headway.inference.operator_automata import OperatorGrammar
from headway.learning.leading_svd import leading_svd
from headway.learning.modifier_trie import MIX, ModifierTrie

CONTEXT, RIDGE, LEAST = 3, 1.0, 20.0  # chosen on the development sentences of experiments/luque2012
_NONE = -1  # where there is no string


def spectral_grammar(
    trie: ModifierTrie,
    states: int,
    *,
    context: int = CONTEXT,
    ridge: float = RIDGE,
    least: float = LEAST,
    scale: float = 0.0,
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
    if not 0 <= scale <= 1:
        raise TrainingError(f"the scale is {scale}; expected 0, to take counts as they are, to 1")
    size = trie.size
    if (size + 1) ** context >= 2**62:
        raise TrainingError(f"strings of {context} among {size} symbols are too many to number; take shorter ones")
    initial, final = np.zeros((2 * size, states)), np.zeros((2 * size, states))
    operators = np.zeros((2 * size, size, states, states))
    nodes = (trie.starts, trie.parents, trie.symbols, trie.through, trie.ends)
    _learn(*nodes, context, float(ridge), float(least), float(scale), initial, final, operators)
    return OperatorGrammar.of_automata(initial, final, operators)


@kernel
def _learn(
    starts: Ints,
    parents: Ints,
    symbols: Ints,
    through: Floats,
    ends: Floats,
    context: int,
    ridge: float,
    least: float,
    scale: float,
    initial: Floats,
    final: Floats,
    operators: Floats,
) -> None:
    """Fill in alpha_1 (2H, s), alpha_inf (2H, s) and A (2H, H, s, s), which are zero."""
    base, states = operators.shape[1] + 1, initial.shape[1]
    for tree in range(len(starts) - 1):
        first, last = starts[tree], starts[tree + 1]
        count = through[first]
        if count == 0:
            continue
        above, symbol = parents[first:last] - first, symbols[first:last]
        before, after = _codes(above, symbol, ends[first:last], base, context)
        columns = _number(before, through[first:last], ends[first:last], context, base, least)
        rows = _number(after, through[first:last], ends[first:last], context, base, least)
        passing, ending = through[first:last] / count, ends[first:last] / count
        p = _statistics(above, before, after, passing, ending, rows, columns)
        of_row, of_column = _scaled(p, scale)
        u, s, r = leading_svd(p, states)
        for q in range(len(s)):
            factor = s[q] / (s[q] * s[q] + ridge * ridge / count)
            for i in range(rows):
                u[i, q] *= of_row[i]
            for i in range(columns):
                r[i, q] *= factor * of_column[i]
        _operators(above, symbol, before, after, passing, ending, u, r, initial[tree], final[tree], operators[tree])


@part
def _codes(parents: Ints, symbols: Ints, ends: Floats, base: int, context: int) -> tuple[Ints, Ints]:
    """The strings around each prefix of a tree as numbers, `_NONE` where there is none.

    `before` (X, context): those of 1, 2, ... symbols that end the prefix. `after` (X, 2 context): the same as strings
    that follow the prefix so many symbols shorter; then those of 0, 1, ... symbols that end it, with STOP behind.
    Digits are symbol + 1, the last symbol lowest, STOP like START.
    """
    before, after = np.full((len(parents), context), _NONE), np.full((len(parents), 2 * context), _NONE)
    for x in range(len(parents)):
        above, digit = parents[x], symbols[x] + 1
        before[x, 0] = digit
        for i in range(1, context):
            if above >= 0 and before[above, i - 1] >= 0:
                before[x, i] = digit + base * before[above, i - 1]
        if above >= 0:
            after[x, 0] = digit
            for i in range(1, context):
                if after[above, i - 1] >= 0:
                    after[x, i] = digit + base * after[above, i - 1]
        if ends[x] > 0:
            after[x, context] = 1
            for i in range(1, context):
                if after[x, i - 1] >= 0:
                    after[x, context + i] = 1 + base * after[x, i - 1]
    return before, after


@part
def _number(codes: Ints, through: Floats, ends: Floats, context: int, base: int, least: float) -> int:
    """Replace codes by numbers from 0 in the same order, and rare ones by `_NONE`; how many are left.

    The first `context` codes of a prefix were seen each time a sequence went through it, the others when one ended.
    """
    slots = 16
    while slots < 2 * codes.size:
        slots *= 2
    known, seen, numbers = np.full(slots, _NONE), np.zeros(slots), np.full(slots, _NONE)
    for x in range(len(codes)):
        for i in range(codes.shape[1]):
            code = codes[x, i]
            if code == _NONE:
                continue
            slot = (code * MIX >> 32) & (slots - 1)
            while known[slot] != code and known[slot] != _NONE:
                slot = (slot + 1) & (slots - 1)
            known[slot] = code
            seen[slot] += through[x] if i < context else ends[x]
            codes[x, i] = slot
    slot_of = np.flatnonzero((known != _NONE) & ((seen >= least) | (known < base)))  # single symbols always
    numbers[slot_of[np.argsort(known[slot_of])]] = np.arange(len(slot_of))
    for x in range(len(codes)):
        for i in range(codes.shape[1]):
            if codes[x, i] != _NONE:
                codes[x, i] = numbers[codes[x, i]]
    return len(slot_of)


@part
def _statistics(
    parents: Ints, before: Ints, after: Ints, through: Floats, ends: Floats, rows: int, columns: int
) -> Floats:
    """P (rows, columns): for each prefix, every string before and every string after it."""
    context = before.shape[1]
    p = np.zeros((rows, columns))
    for y in range(len(parents)):
        x = y  # the prefix that the string after it follows
        for j in range(context + 1):
            for i in range(context):
                column = before[x, i]
                if column < 0:  # longer ones are as rare
                    break
                if j > 0 and after[y, j - 1] >= 0:
                    p[after[y, j - 1], column] += through[y]
                if j < context and after[y, context + j] >= 0:
                    p[after[y, context + j], column] += ends[y]
            x = parents[x]
            if x < 0:
                break
    return p


@part
def _scaled(p: Floats, scale: float) -> tuple[Floats, Floats]:
    """What rows and columns of P are multiplied by, so that they are divided by that power of their sums."""
    of_row, of_column = np.ones(p.shape[0]), np.ones(p.shape[1])
    if scale == 0:
        return of_row, of_column
    of_row, of_column = p.sum(axis=1) ** -scale, p.sum(axis=0) ** -scale
    for i in range(p.shape[0]):
        for j in range(p.shape[1]):
            p[i, j] *= of_row[i] * of_column[j]
    return of_row, of_column


@part
def _operators(
    parents: Ints,
    symbols: Ints,
    before: Ints,
    after: Ints,
    through: Floats,
    ends: Floats,
    u: Floats,
    r: Floats,
    initial: Floats,
    final: Floats,
    operators: Floats,
) -> None:
    """alpha_1 (s,), alpha_inf (s,) and A (H, s, s) from the prefixes of one tree; counts are shares of its N."""
    nodes, context = before.shape
    s = u.shape[1]
    following, ending = np.zeros((nodes, s)), np.zeros((nodes, s))  # G and R of each prefix
    for y in range(nodes):
        x = y
        for j in range(context + 1):
            if j > 0 and after[y, j - 1] >= 0:
                for q in range(s):
                    following[x, q] += through[y] * u[after[y, j - 1], q]
            if j < context and after[y, context + j] >= 0:
                for q in range(s):
                    following[x, q] += ends[y] * u[after[y, context + j], q]
            x = parents[x]
            if x < 0:
                break
        for i in range(context):
            if before[y, i] < 0:
                break
            for q in range(s):
                ending[y, q] += r[before[y, i], q]
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
    for q in range(s):
        initial[q] = following[0, q]
