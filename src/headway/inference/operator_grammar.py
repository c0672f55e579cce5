"""Inside-outside of operator split head-automata grammars: log Z, arc marginals, MBR (luque2012 sections 2.2, 3 and 4).

A head with symbol h generates its modifiers x_1 .. x_T on each side d, nearest first, with weight

    f(x_1 .. x_T | h, d) = alpha_inf A[x_T] ... A[x_1] alpha_1        (START and STOP are packed into the two vectors)

for s hidden states; a tree weighs the product over its heads and their two sides, and the root has a right side only.
A grammar found by the spectral method has negative numbers in it, and so may have negative weights, a negative Z and
marginals outside [0, 1]: nothing is clipped here. With a `ModifierFactor` the weight is also multiplied by a
deterministic automaton's (equation 21): its D states are carried beside the hidden ones. Both are in
`operator_automata`.

*Inside.* By head h, side d and width t (m is the word t places out from h), with chart items

    C(h, d, t)   a triangle, (D, s): h and the words up to t places out, all of them complete
    c(h, d, t)   the same, its sequence of modifiers closed: a number
    I(h, d, t)   a trapezoid, (s,): the last modifier m is taken, and its outer side still open

    C(h, d, 0)[0]   = alpha_1
    I(h, d, t)      = A[m] sum_u sum_q w[h, m, q] C(h, d, u)[q] c(m, -d, t - 1 - u)                   u = 0 .. t - 1
    C(h, d, t)[q]   = sum_u I(h, d, u) c(h + u, d, t - u)     over the u = 1 .. t whose word leads to state q
    c(h, d, t)      = sum_q stop[h, d, q] alpha_inf . C(h, d, t)[q]

and Z = c(0, right, n). Under single_root the root takes its only modifier at u = 0. The operator stands outside of the
sum over split points, and a finished side is a number, so all this is O(n^3 D s + n^2 s^2) where the paper's figures
apply the operator at every split point, O(n^3 s^2).

*Outside.* The derivatives of Z by every item, gathered from its parents, widest first. P(h -> m) = I . dZ/dI / Z.

*Range.* Numbers of both signs have no logarithm, so each item is a mantissa (a vector whose largest entry is in
[1/2, 1)) and a whole exponent of two (`extended_numbers`). No item can underflow because another is large, whatever the
length of the sentence; only within one vector of states are entries 2^-1022 of the largest lost. Sums stay below
2^1022, since mantissas are at most 1 and the grammar's numbers at most 1e300.

*Cancellation.* With operators of one sign every sum is of positive terms, and log Z and marginals have full relative
accuracy. With mixed signs they err by rounding times (the sum of the trees' absolute weights) / |Z|.

An empty sentence has one tree, of weight 1: there is nothing to generate.

The file is longer than most: inside and outside are one loop each, since with a function for each kind of item Numba's
counting of references to the charts took two thirds of the time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Bools, Floats, Ints, TreeClass
from headway.errors import NoTreeError
from headway.inference.batch import Batch, groups_by_length
from headway.inference.extended_numbers import (
    LOG_2,
    ZERO_EXPONENT,
    extended_exp,
    normalise,
    normalised,
    power_of_two,
    times_power_of_two,
    to_common_exponent,
)
from headway.inference.first_order import best_heads
from headway.inference.heads import as_heads
from headway.inference.jit import kernel, part
from headway.inference.operator_automata import LEFT, RIGHT, ModifierFactor, OperatorGrammar, as_factors, as_symbols
from headway.parallel import SERIAL, Executor

# Sums of both signs err by some 1e-16 of their terms, and by more after cancellation: a marginal below this is noise,
# and its logarithm (-28 at the floor) must not outweigh what the other arcs of the tree say.
FLOOR = 1e-12

_LARGEST_EXP = 709.0
_PADDED_CELLS = 2e6  # of a group decoded at once


@dataclass(frozen=True)
class Posterior:
    """What inside-outside finds for one sentence."""

    log_partition: float  # log |Z|
    sign: int  # of Z: -1 for a broken spectral grammar
    marginals: Floats  # (n+1, n+1), [head, modifier]; columns of words sum to 1; may be negative

    @property
    def probability(self) -> float:
        """Z: under a grammar of probabilities, that of the sentence; 0 or infinite where no float can hold it."""
        return self.sign * (math.exp(self.log_partition) if self.log_partition < _LARGEST_EXP else math.inf)


@dataclass(frozen=True)
class Floored:
    """How many of a sentence's n^2 marginals MBR raised to its floor."""

    negative: int
    tiny: int  # from 0 up to the floor


def posteriors(
    grammar: OperatorGrammar,
    sentences: Sequence[Ints],
    factors: Sequence[ModifierFactor] | None = None,
    *,
    single_root: bool = True,
    executor: Executor = SERIAL,
) -> list[Posterior]:
    """log |Z|, its sign and the arcs' marginals of every sentence; NoTreeError names one whose Z is 0.

    A sentence is its symbols (n+1,), the root's 0 first.

    >>> ones = OperatorGrammar(np.ones((2, 2, 1)), np.ones((2, 2, 1)), np.ones((2, 2, 2, 1, 1)))
    >>> [found] = posteriors(ones, [np.array([0, 1, 1, 1])])
    >>> round(math.exp(found.log_partition), 9)  # seven projective trees with one root
    7.0
    >>> (7 * found.marginals).round(9)
    array([[0., 3., 1., 3.],
           [0., 0., 3., 2.],
           [0., 2., 0., 2.],
           [0., 2., 3., 0.]])
    """
    checked = [as_symbols(symbols, grammar, where) for where, symbols in enumerate(sentences)]
    used = as_factors(factors, checked)
    operators = _flat(grammar)

    def one(where: int) -> Posterior:
        symbols, factor = checked[where], used[where]
        marginals = np.zeros((len(symbols), len(symbols)))
        if len(symbols) == 1:
            return Posterior(0.0, 1, marginals)
        log_z, sign = _inside_outside(
            symbols, *operators, factor.log_weights, factor.log_stops, factor.follows, single_root, marginals
        )
        if sign == 0:
            raise no_weight(len(symbols) - 1, where)
        return Posterior(log_z, sign, marginals)

    return executor.map(one, range(len(checked)))


def tree_weight(
    grammar: OperatorGrammar, symbols: Ints, heads: ArrayLike, factor: ModifierFactor | None = None
) -> tuple[float, int]:
    """(log |f(y)|, its sign) of one choice of heads: the product over all heads' sequences of modifiers.

    (-inf, 0) for a weight of 0. Nothing asks for a tree: any heads have a product.

    >>> twos = OperatorGrammar(np.ones((2, 2, 1)), np.ones((2, 2, 1)), -2 * np.ones((2, 2, 2, 1, 1)))
    >>> log_weight, sign = tree_weight(twos, np.array([0, 1, 1, 1]), [-1, 2, 0, 2])
    >>> round(math.exp(log_weight), 9), sign
    (8.0, -1)
    """
    [checked] = [as_symbols(symbols, grammar, None)]
    [used] = as_factors(None if factor is None else [factor], [checked])
    chosen = as_heads(heads, len(checked) - 1)
    if len(checked) == 1:
        return 0.0, 1
    return _tree_weight(checked, *_flat(grammar), used.log_weights, used.log_stops, used.follows, chosen)


def mbr(
    posteriors: Sequence[Posterior],
    *,
    single_root: bool = True,
    floor: float = FLOOR,
    allowed: Sequence[Bools | None] | None = None,
) -> list[tuple[Ints, Floored]]:
    """The heads with the largest sum of log marginals (equation 14), and how many marginals had to be floored.

    Marginals below `floor`, the negative ones among them, count as `floor`. So every sentence has a tree, unless only
    some of its arcs are `allowed`, (n+1, n+1); nothing is floored on the others.

    >>> operators = np.ones((2, 2, 2, 1, 1))
    >>> operators[:, LEFT] = 9.0
    >>> leftward = OperatorGrammar(np.ones((2, 2, 1)), np.ones((2, 2, 1)), operators)
    >>> mbr(posteriors(leftward, [np.array([0, 1, 1])]))
    [(array([-1,  2,  0]), Floored(negative=0, tiny=0))]
    """
    lengths = np.array([len(one.marginals) - 1 for one in posteriors], dtype=np.int64)
    found: list[tuple[Ints, Floored]] = [(np.empty(0, np.int64), Floored(0, 0))] * len(posteriors)
    for group in groups_by_length(lengths, _PADDED_CELLS):
        longest = int(lengths[group].max())
        scores = np.zeros((len(group), longest + 1, longest + 1))
        counts = [
            _log_marginals(posteriors[where].marginals, None if allowed is None else allowed[where], floor, own)
            for where, own in zip(group, scores, strict=True)
        ]
        heads = best_heads(Batch(scores, lengths[group], single=False), TreeClass(True, single_root), SERIAL)
        for where, own, (negative, tiny) in zip(group, heads, counts, strict=True):
            found[where] = own[: lengths[where] + 1].copy(), Floored(negative, tiny)
    return found


def no_weight(n: int, sentence: int) -> NoTreeError:
    """The error for a sentence all of whose trees weigh nothing."""
    return NoTreeError(
        "the grammar and its factor give every projective tree weight 0 (or their weights cancel exactly); "
        "smooth the grammar, or map rare symbols to the unknown one",
        tuple(range(1, n + 1)),
        sentence,
    )


def _flat(grammar: OperatorGrammar) -> tuple[Floats, Floats, Floats]:
    """Each array as rows of s numbers."""
    s = grammar.states
    return grammar.initial.reshape(-1, s), grammar.final.reshape(-1, s), grammar.operators.reshape(-1, s)


def _log_marginals(marginals: Floats, allowed: Bools | None, floor: float, scores: Floats) -> tuple[int, int]:
    """As `_log_floored`, with -inf on the arcs that are not allowed, which do not count."""
    if allowed is None:
        return _log_floored(marginals, floor, scores)
    counts = _log_floored(np.where(allowed, marginals, 1.0), floor, scores)
    scores[: len(allowed), : len(allowed)][~allowed] = -np.inf
    return counts


@kernel
def _log_floored(marginals: Floats, floor: float, scores: Floats) -> tuple[int, int]:
    """scores = log max(marginals, floor) on the arcs; how many marginals were negative, and how many tiny."""
    nodes = marginals.shape[0]
    negative, tiny = 0, 0
    for h in range(nodes):
        for m in range(1, nodes):
            if h == m:
                continue
            mu = marginals[h, m]
            negative += mu < 0.0
            tiny += (mu >= 0.0) & (mu < floor)
            scores[h, m] = math.log(max(mu, floor))
    return negative, tiny


# ---------------------------------------------------------------------------------- kernels


class _Sentence(NamedTuple):
    """One sentence as the kernels take it; automata are rows 2 * symbol + direction."""

    symbols: Ints
    initial: Floats  # (2H, s)
    final: Floats  # (2H, s)
    operators: Floats  # (2H * H * s, s)
    weights: Floats  # (n+1, n+1, D), with exponents
    weight_exponents: Ints
    stops: Floats  # (n+1, 2, D), with exponents
    stop_exponents: Ints
    follows: Ints
    single_root: bool


class _Chart(NamedTuple):
    """Items by their cells, vectors as rows; used for items, and for the derivatives of Z by them.

    The derivative kept for an arc is that by what its operator is applied to.
    """

    triangles: Floats  # (cells * D, s)
    triangle_exponents: Ints
    arcs: Floats  # (cells, s)
    arc_exponents: Ints


class _Sides(NamedTuple):
    """Closed sides by the cells of their heads, and by those of their ends."""

    by_head: Floats  # (cells,)
    by_head_exponents: Ints
    by_end: Floats  # (cells,)
    by_end_exponents: Ints


@kernel
def _inside_outside(
    symbols: Ints,
    initial: Floats,
    final: Floats,
    operators: Floats,
    log_weights: Floats,
    log_stops: Floats,
    follows: Ints,
    single_root: bool,
    marginals: Floats,
) -> tuple[float, int]:
    """(log |Z|, sign of Z), and the marginals unless Z is 0; n >= 1."""
    n, memory = symbols.shape[0] - 1, log_weights.shape[2]
    weights, weight_exponents = extended_exp(log_weights)
    stops, stop_exponents = extended_exp(log_stops)
    sentence = _Sentence(
        symbols,
        initial,
        final,
        operators,
        weights,
        weight_exponents,
        stops,
        stop_exponents,
        follows,
        single_root,
    )
    cells = (n + 1) * (n + 2)
    sides = _Sides(np.empty(cells), np.empty(cells, np.int64), np.empty(cells), np.empty(cells, np.int64))
    items = _empty_chart(cells, memory, initial.shape[1])
    _inside(sentence, items, sides)
    top = _cell(n, 0, RIGHT, n)
    z, exponent = sides.by_head[top], sides.by_head_exponents[top]
    if z == 0.0:
        return -np.inf, 0
    _outside(sentence, items, sides, _empty_chart(cells, memory, initial.shape[1]), z, exponent, marginals)
    return math.log(abs(z)) + exponent * LOG_2, 1 if z > 0.0 else -1


@part
def _empty_chart(cells: int, memory: int, s: int) -> _Chart:
    return _Chart(
        np.empty((cells * memory, s)),
        np.empty(cells * memory, np.int64),
        np.empty((cells, s)),
        np.empty(cells, np.int64),
    )


@part
def _cell(n: int, h: int, d: int, width: int) -> int:
    """Where the item of head h, side d and width lies: outwards from the middle of row h.

    By its end e, an item lies at _cell(n, e, 1 - d, width). Sums run over stretches of cells that begin at the
    `lowest`, which is that of the narrowest item on the right and of the widest on the left.
    """
    return h * (n + 2) + h + (1 + width if d == RIGHT else -width)


# The two passes are one function each: whenever a tuple of arrays is handed to a function, or a field is taken from it,
# Numba counts references to the arrays, and with a function for each kind of item that took two thirds of the time.


@part
def _inside(sentence: _Sentence, items: _Chart, sides: _Sides) -> None:
    symbols, initial, final, operators, weights, weight_exponents, stops, stop_exponents, follows, single = sentence
    triangles, triangle_exponents, arcs, arc_exponents = items
    by_head, by_head_exponents, by_end, by_end_exponents = sides
    n, s, memory = symbols.shape[0] - 1, initial.shape[1], weights.shape[2]
    factors, exponents = np.empty((n + 1) * memory), np.empty((n + 1) * memory, np.int64)
    vector, tops = np.empty((1, s)), np.empty(memory, np.int64)
    for width in range(n + 1):
        for node in range(2 * n + 1):
            h, d = (node + 1) // 2, RIGHT if node % 2 == 0 else LEFT
            m = h + width if d == RIGHT else h - width
            if m > n or m < (0 if d == RIGHT else 1):
                continue
            cell = _cell(n, h, d, width)
            automaton = 2 * symbols[h] + d

            # the trapezoid: over the triangle inside it, and over the other side of m
            if width > 0:
                count = 1 if single and h == 0 else width
                lowest = 0 if d == RIGHT else width - 1
                first, inner = _cell(n, h, d, lowest), _cell(n, m, 1 - d, width - 1 - lowest)
                for q in range(memory):
                    weight, weight_exponent = weights[h, m, q], weight_exponents[h, m, q]
                    start, row = q * count, first * memory + q
                    for k in range(count):
                        factors[start + k] = weight * by_head[inner + k]
                        exponents[start + k] = (
                            weight_exponent + by_head_exponents[inner + k] + triangle_exponents[row + k * memory]
                        )
                top = to_common_exponent(factors, exponents, count * memory)
                for x in range(s):
                    vector[0, x] = 0.0
                for q in range(memory):
                    _combine(vector, 0, factors, q * count, count, triangles, first * memory + q, memory)
                _apply(operators, _operator(symbols, initial, h, d, m), vector, arcs, cell)
                normalise(arcs, arc_exponents, cell, top)
            if single and h == 0 and 0 < width < n:
                continue

            # the triangle: over its last modifier, apart for each state of the factor that leads to
            for q in range(memory):
                tops[q] = ZERO_EXPONENT
                for x in range(s):
                    triangles[cell * memory + q, x] = 0.0
            if width == 0:
                for x in range(s):
                    triangles[cell * memory, x] = initial[automaton, x]
                tops[0] = 0
            else:
                lowest, word = (1, h + 1) if d == RIGHT else (width, m)
                first, outer = _cell(n, h, d, lowest), _cell(n, m, 1 - d, width - lowest)
                for k in range(width):
                    exponents[k] = by_end_exponents[outer + k] + arc_exponents[first + k]
                    tops[follows[word + k]] = max(tops[follows[word + k]], exponents[k])
                for k in range(width):
                    q = follows[word + k]
                    factor = by_end[outer + k] * power_of_two(exponents[k] - tops[q])
                    for x in range(s):
                        triangles[cell * memory + q, x] += factor * arcs[first + k, x]
            for q in range(memory):
                normalise(triangles, triangle_exponents, cell * memory + q, tops[q])

            # the side: the triangle closed
            for q in range(memory):
                factors[q] = stops[h, d, q]
                exponents[q] = stop_exponents[h, d, q] + triangle_exponents[cell * memory + q]
            top = to_common_exponent(factors, exponents, memory)
            total = 0.0
            for q in range(memory):
                total += factors[q] * _dot(final, automaton, triangles, cell * memory + q)
            value, exponent = normalised(total, top)
            end = _cell(n, m, 1 - d, width)
            by_head[cell] = value
            by_head_exponents[cell] = exponent
            by_end[end] = value
            by_end_exponents[end] = exponent


@part
def _outside(
    sentence: _Sentence, items: _Chart, sides: _Sides, derivatives: _Chart, z: float, z_exponent: int, marginals: Floats
) -> None:
    symbols, initial, final, operators, weights, weight_exponents, stops, stop_exponents, follows, single = sentence
    triangles, triangle_exponents, arcs, arc_exponents = items
    by_head, by_head_exponents, by_end, by_end_exponents = sides
    out_triangles, out_triangle_exponents, out_arcs, out_arc_exponents = derivatives
    n, s, memory = symbols.shape[0] - 1, initial.shape[1], weights.shape[2]
    factors, exponents = np.empty((n + 1) * memory), np.empty((n + 1) * memory, np.int64)
    vector = np.empty((1, s))
    for width in range(n, -1, -1):
        for node in range(2 * n + 1):
            h, d = (node + 1) // 2, RIGHT if node % 2 == 0 else LEFT
            m = h + width if d == RIGHT else h - width
            if m > n or m < (0 if d == RIGHT else 1):
                continue
            cell = _cell(n, h, d, width)
            automaton = 2 * symbols[h] + d
            widest = n - h if d == RIGHT else h - 1
            jump = n + 2 if d == LEFT else -(n + 2)  # from an item to that of the next head back, one wider

            if h > 0 or width == n or not single:
                # by the closed side: it is the outer side of modifier h, or its inner side
                side, side_exponent = (0.5, 1) if h == 0 and width == n else (0.0, ZERO_EXPONENT)
                if h > 0:
                    # heads 1, 2, .. places back; a single root only if the triangle reaches the end
                    outer = h - (single and m < n) if d == RIGHT else n - h
                    arc = _cell(n, h, d, 0) + jump
                    whole, q = cell + jump, follows[h]
                    for k in range(outer):
                        factors[k] = 1.0
                        exponents[k] = (
                            arc_exponents[arc + k * jump] + out_triangle_exponents[(whole + k * jump) * memory + q]
                        )
                    # heads ahead, beyond the triangle; a single root only if nothing is between
                    inner = n - m if d == RIGHT else m - (single and m > 1)
                    g = m + 1 if d == RIGHT else m - 1
                    beyond, start = _cell(n, g, 1 - d, width + 1), _cell(n, g, 1 - d, 0)
                    for q in range(memory):
                        for k in range(inner):
                            g = m + 1 + k if d == RIGHT else m - 1 - k
                            at = outer + q * inner + k
                            factors[at] = weights[g, h, q]
                            exponents[at] = (
                                weight_exponents[g, h, q]
                                + out_arc_exponents[beyond - k * jump]
                                + triangle_exponents[(start - k * jump) * memory + q]
                            )
                    top = to_common_exponent(factors, exponents, outer + memory * inner)
                    total = _sum_dots(
                        factors, 0, outer, arcs, arc, jump, out_triangles, whole * memory + follows[h], jump * memory
                    )
                    for q in range(memory):
                        total += _sum_dots(
                            factors,
                            outer + q * inner,
                            inner,
                            out_arcs,
                            beyond,
                            -jump,
                            triangles,
                            start * memory + q,
                            -jump * memory,
                        )
                    side, side_exponent = normalised(total, top)

                # by the triangle: it is closed, or takes a further modifier
                count = widest - width
                lowest, word = (width + 1, m + 1) if d == RIGHT else (widest, 1)
                further = _cell(n, h, d, lowest)
                inner = _cell(n, m + 1 if d == RIGHT else m - 1, d, lowest - width - 1)
                for q in range(memory):
                    row = cell * memory + q
                    for k in range(count):
                        factors[k] = weights[h, word + k, q] * by_end[inner + k]
                        exponents[k] = (
                            weight_exponents[h, word + k, q]
                            + by_end_exponents[inner + k]
                            + out_arc_exponents[further + k]
                        )
                    factors[count] = side * stops[h, d, q]
                    exponents[count] = side_exponent + stop_exponents[h, d, q]
                    top = to_common_exponent(factors, exponents, count + 1)
                    for x in range(s):
                        out_triangles[row, x] = factors[count] * final[automaton, x]
                    _combine(out_triangles, row, factors, 0, count, out_arcs, further, 1)
                    normalise(out_triangles, out_triangle_exponents, row, top)

            # by the trapezoid: it is in every wider triangle; then back through the operator
            if width > 0:
                narrowest = n if single and h == 0 else width
                count = widest + 1 - narrowest
                lowest = narrowest if d == RIGHT else widest
                first, outer = _cell(n, h, d, lowest), _cell(n, m, d, lowest - width)
                q = follows[m]
                for k in range(count):
                    factors[k] = by_head[outer + k]
                    exponents[k] = by_head_exponents[outer + k] + out_triangle_exponents[(first + k) * memory + q]
                top = to_common_exponent(factors, exponents, count)
                for x in range(s):
                    vector[0, x] = 0.0
                _combine(vector, 0, factors, 0, count, out_triangles, first * memory + q, memory)
                together = _dot(arcs, cell, vector, 0)
                if together != 0.0:
                    marginals[h, m] = times_power_of_two(together / z, top + arc_exponents[cell] - z_exponent)
                _apply_transposed(operators, _operator(symbols, initial, h, d, m), vector, out_arcs, cell)
                normalise(out_arcs, out_arc_exponents, cell, top)


# ---------------------------------------------------------------------------------- rows of numbers


@part
def _combine(
    target: Floats, to: int, factors: Floats, start: int, count: int, vectors: Floats, row: int, stride: int
) -> None:
    """target[to] += the sum of `count` rows, each `stride` after the one before, times the factors from `start` on."""
    for k in range(count):
        factor = factors[start + k]
        if factor == 0.0:
            continue
        for x in range(vectors.shape[1]):
            target[to, x] += factor * vectors[row + k * stride, x]


@part
def _sum_dots(
    factors: Floats, start: int, count: int, a: Floats, i: int, stride_a: int, b: Floats, j: int, stride_b: int
) -> float:
    """The sum of factors times the products of two rows, each pair so many rows after the one before."""
    total = 0.0
    for k in range(count):
        total += factors[start + k] * _dot(a, i + k * stride_a, b, j + k * stride_b)
    return total


@part
def _dot(a: Floats, i: int, b: Floats, j: int) -> float:
    total = 0.0
    for x in range(a.shape[1]):
        total += a[i, x] * b[j, x]
    return total


@part
def _apply(operators: Floats, first: int, vector: Floats, result: Floats, row: int) -> None:
    """result[row] = A vector, A the operator whose rows begin at `first`."""
    for y in range(vector.shape[1]):
        result[row, y] = _dot(operators, first + y, vector, 0)


@part
def _apply_transposed(operators: Floats, first: int, vector: Floats, result: Floats, row: int) -> None:
    """result[row] = A' vector."""
    s = vector.shape[1]
    for x in range(s):
        result[row, x] = 0.0
    for y in range(s):
        factor = vector[0, y]
        for x in range(s):
            result[row, x] += factor * operators[first + y, x]


@part
def _operator(symbols: Ints, initial: Floats, h: int, d: int, m: int) -> int:
    """The first row of the operator of modifier m on side d of h."""
    automata, s = initial.shape
    return int(((2 * symbols[h] + d) * (automata // 2) + symbols[m]) * s)


@kernel
def _tree_weight(
    symbols: Ints,
    initial: Floats,
    final: Floats,
    operators: Floats,
    log_weights: Floats,
    log_stops: Floats,
    follows: Ints,
    heads: Ints,
) -> tuple[float, int]:
    """(log |weight|, sign) of the product of all heads' sequences, each walked outwards."""
    n, s = symbols.shape[0] - 1, initial.shape[1]
    state, after = np.empty((1, s)), np.empty((1, s))
    exponents = np.empty(1, np.int64)
    log_weight, sign = 0.0, 1
    for h in range(n + 1):
        for d in range(RIGHT if h == 0 else LEFT, 2):
            automaton = 2 * symbols[h] + d
            step = 1 if d == RIGHT else -1
            state[0] = initial[automaton]
            normalise(state, exponents, 0, 0)
            q, exponent = 0, exponents[0]
            m = h + step
            while 1 <= m <= n:
                if heads[m] == h:
                    log_weight += log_weights[h, m, q]
                    first = _operator(symbols, initial, h, d, m)
                    _apply(operators, first, state, after, 0)
                    state[0] = after[0]
                    normalise(state, exponents, 0, exponent)
                    q, exponent = follows[m], exponents[0]
                m += step
            weight = _dot(final, automaton, state, 0)
            log_weight += log_stops[h, d, q]
            if weight == 0.0 or log_weight == -np.inf:
                return -np.inf, 0
            log_weight += math.log(abs(weight)) + exponent * LOG_2
            sign *= 1 if weight > 0.0 else -1
    return log_weight, sign
