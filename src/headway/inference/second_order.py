"""Projective trees scored by arcs and adjacent siblings, in O(n^3) (McDonald and Pereira 2006).

The parts of a tree, as koo2010's sibling automata see them: arcs h -> m, and for the children of a head on one
side, ordered outwards, c1 .. ck (k >= 1), the pairs (start, c1), (c1, c2), .. (ck, end). `siblings[h, s, m]` scores
the pair (s, m) of head h; s == h is the start and m == h the end. A side without children has no pairs (a score for
that could always be moved into the start pairs), so siblings[h, h, h] is never read.

Items, C and I as in `span_chart`:  S[i, j] = sum_k C[i, k] C[j, k + 1], two neighbouring siblings i < j, and, for
h -> m,

    I[h, m] = w[h, m] ( w[h, h, m] X  +  sum over s between h and m:  I[h, s] w[h, s, m] S[s, m] )
    C[h, e] = sum over m up to e:  I[h, m] w[h, m, h] C[m, e]

where X is C of m up to the neighbour of h. Everything is kept in logarithms: max and log-sum-exp over the same
terms. Marginals go from the top down: an item of posterior mu hands `mu * term / sum` to the parts of each term.

Shapes: arcs (n+1, n+1), siblings (n+1, n+1, n+1). O(n^3) time and memory.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Floats, Ints, TreeClass
from headway.errors import NoTreeError, PrecisionError, ScoresError, ShapeError
from headway.inference.batch import LARGEST_SCORE, as_batch, as_scores
from headway.inference.fast_exp import fast_exp
from headway.inference.heads import as_heads, is_in_class
from headway.inference.jit import kernel, part
from headway.no_tree import no_tree_error

# Rounding a sum of this size costs a probability some 1e-9 of its value.
_LARGEST_SUM = 2.0**20


class SiblingDistribution:
    """The projective trees of one sentence, weighted by exp of their arcs' and adjacent siblings' scores.

    >>> d = SiblingDistribution(np.zeros((4, 4)), np.zeros((4, 4, 4)))
    >>> round(float(np.exp(d.log_partition)))  # single-root projective trees over three words
    7
    """

    def __init__(self, arcs: ArrayLike, siblings: ArrayLike, single_root: bool = True) -> None:
        self._arcs = as_batch(np.array(as_scores(arcs))).scores[0]
        self._siblings = _as_siblings(siblings, len(self._arcs))
        self.single_root = single_root
        self._trees = TreeClass.of(True, single_root)

    @property
    def log_partition(self) -> float:
        """log of the sum over trees of exp(score)."""
        return self._inference[0]

    @property
    def marginals(self) -> Floats:
        """P(head -> modifier)."""
        return self._inference[1]

    @property
    def sibling_marginals(self) -> Floats:
        """P(the pair is in the tree), indexed like `siblings`, starts and ends included."""
        return self._inference[2]

    def argmax(self) -> Ints:
        """Heads of the best tree."""
        return self._best

    @property
    def max(self) -> float:
        """Score of the best tree."""
        return self.score(self._best)

    def score(self, heads: ArrayLike) -> float:
        """Sum of the scores of the tree's arcs and sibling pairs; -inf for what is not a projective tree."""
        tree = as_heads(heads, len(self._arcs) - 1)
        if not is_in_class(tree, self._trees):
            return -np.inf
        return float(_score(self._arcs, self._siblings, tree))

    def log_prob(self, heads: ArrayLike) -> float:
        """log P(tree)."""
        return self.score(heads) - self.log_partition

    @property
    def entropy(self) -> float:
        """Shannon entropy in nats."""
        used = self.marginals > 0
        used_pairs = self.sibling_marginals > 0
        expected = (self.marginals[used] * self._arcs[used]).sum() + (
            self.sibling_marginals[used_pairs] * self._siblings[used_pairs]
        ).sum()
        return float(self.log_partition - expected)

    @cached_property
    def _inference(self) -> tuple[float, Floats, Floats]:
        mu, pairs = np.zeros(self._arcs.shape), np.zeros(self._siblings.shape)
        if len(mu) == 1:
            return 0.0, mu, pairs
        log_z = _inside_outside(self._arcs, self._siblings, self.single_root, mu, pairs)
        if log_z == -np.inf:
            raise self._no_tree()
        self._require_precision(mu, pairs)
        return float(log_z), mu, pairs

    def _require_precision(self, mu: Floats, pairs: Floats) -> None:
        """Sums of scores are rounded here. Where several trees count, they must not score too much, either way.

        One that leaves all others behind may score anything.
        """
        if ((mu == 0.0) | (mu == 1.0)).all():
            return
        size = (mu * np.abs(np.where(mu > 0, self._arcs, 0.0))).sum()
        size += (pairs * np.abs(np.where(pairs > 0, self._siblings, 0.0))).sum()
        if size > _LARGEST_SUM:
            raise PrecisionError(
                f"the scores of a likely tree add up to {size:.3g} without their signs; beyond {_LARGEST_SUM:g}, sums "
                "in float64 cannot tell trees with siblings apart. Subtract a constant from the scores of each word's "
                "arcs, and forbid by -inf rather than by large numbers"
            )

    @cached_property
    def _best(self) -> Ints:
        heads = np.full(len(self._arcs), -1, dtype=np.int64)
        if len(heads) > 1 and not _decode(self._arcs, self._siblings, self.single_root, heads):
            raise self._no_tree()
        return heads

    def _no_tree(self) -> NoTreeError:
        return no_tree_error(self._arcs, self._trees, None)


def _as_siblings(siblings: ArrayLike, nodes: int) -> Floats:
    array = as_scores(siblings, "siblings")
    if array.shape != (nodes, nodes, nodes):
        raise ShapeError(
            f"siblings have shape {array.shape}; expected {(nodes, nodes, nodes)}, [head, sibling, modifier]"
        )
    # The cells no part of any tree reads may hold anything; they become 0 so that the kernels need not skip them.
    h, s, m = np.ogrid[:nodes, :nodes, :nodes]
    outwards = ((h < s) & (s < m)) | ((h > s) & (s > m) & (m > 0))
    start, end = (s == h) & (m != h) & (m > 0), (m == h) & (s != h) & (s > 0)
    array = np.where(outwards | start | end, array, 0.0)
    bad = np.argwhere(~((array <= LARGEST_SCORE) & ((array >= -LARGEST_SCORE) | np.isneginf(array))))
    if len(bad):
        cell = tuple(int(i) for i in bad[0])
        raise ScoresError(f"siblings{list(cell)} is {array[cell]}; scores are finite, or -inf to forbid a pair")
    return array


@kernel
def _score(arcs: Floats, siblings: Floats, heads: Ints) -> float:
    """Walk each head's two sides outwards."""
    n = heads.shape[0] - 1
    total = 0.0
    for h in range(n + 1):
        for step, edge in ((-1, 0), (1, n + 1)):
            last = h
            for m in range(h + step, edge, step):
                if m > 0 and heads[m] == h:
                    total += arcs[h, m] + siblings[h, last, m]
                    last = m
            if last != h:
                total += siblings[h, last, h]
    return total


@part
def _sibling_terms(c: Floats, i: int, j: int, terms: Floats) -> int:
    """S[i, j], neighbouring siblings i < j; term t splits the words between them after i + t."""
    for t in range(j - i):
        terms[t] = c[i, i + t] + c[j, i + t + 1]
    return j - i


@part
def _arc_terms(arcs: Floats, siblings: Floats, c: Floats, arc: Floats, s: Floats, h: int, m: int, terms: Floats) -> int:
    """I[h, m]; term 0 has m as first child, term t its sibling t places from h."""
    step = 1 if m > h else -1
    count = abs(m - h)
    terms[0] = arcs[h, m] + siblings[h, h, m] + c[m, h + step]
    for t in range(1, count):
        k = h + t * step
        terms[t] = arcs[h, m] + siblings[h, k, m] + arc[h, k] + s[min(k, m), max(k, m)]
    return count


@part
def _span_terms(siblings: Floats, c: Floats, arc: Floats, h: int, e: int, terms: Floats) -> int:
    """C[h, e]; term t has its outermost child t + 1 places from h."""
    step = 1 if e > h else -1
    for t in range(abs(e - h)):
        m = h + (t + 1) * step
        terms[t] = arc[h, m] + siblings[h, m, h] + c[m, e]
    return abs(e - h)


@part
def _combine(terms: Floats, count: int, maximise: bool) -> float:
    top = -np.inf
    for t in range(count):
        top = max(top, terms[t])
    if maximise or top == -np.inf:
        return top
    total = 0.0
    for t in range(count):
        total += fast_exp(terms[t] - top)
    return float(top + np.log(total))


@part
def _fill_chart(
    arcs: Floats, siblings: Floats, n: int, first: int, maximise: bool, chart: Floats, terms: Floats
) -> None:
    c, arc, s = chart
    for i in range(first, n + 1):
        c[i, i] = 0.0
    for width in range(1, n + 1 - first):
        for i in range(first, n + 1 - width):
            j = i + width
            s[i, j] = _combine(terms, _sibling_terms(c, i, j, terms), maximise)
            arc[i, j] = _combine(terms, _arc_terms(arcs, siblings, c, arc, s, i, j, terms), maximise)
            c[i, j] = _combine(terms, _span_terms(siblings, c, arc, i, j, terms), maximise)
            if i == 0:
                arc[j, i], c[j, i] = -np.inf, -np.inf
                continue
            arc[j, i] = _combine(terms, _arc_terms(arcs, siblings, c, arc, s, j, i, terms), maximise)
            c[j, i] = _combine(terms, _span_terms(siblings, c, arc, j, i, terms), maximise)


@part
def _root_terms(arcs: Floats, siblings: Floats, c: Floats, n: int, terms: Floats) -> int:
    """Single-root trees; term t has word t + 1 as the root's child."""
    for t in range(n):
        m = t + 1
        terms[t] = arcs[0, m] + siblings[0, 0, m] + siblings[0, m, 0] + c[m, 1] + c[m, n]
    return n


@kernel
def _inside_outside(arcs: Floats, siblings: Floats, single_root: bool, mu: Floats, pairs: Floats) -> float:
    """log Z; fills arc and pair marginals."""
    n = arcs.shape[0] - 1
    first = 1 if single_root else 0
    chart = np.empty((3, n + 1, n + 1))
    terms = np.empty(n + 1)
    _fill_chart(arcs, siblings, n, first, False, chart, terms)
    c, _, s = chart
    posterior = np.zeros((3, n + 1, n + 1))
    in_c, _, in_s = posterior
    if single_root:
        count = _root_terms(arcs, siblings, c, n, terms)
        log_z = _combine(terms, count, False)
        if log_z == -np.inf:
            return log_z
        for t in range(count):
            part = np.exp(terms[t] - log_z)
            mu[0, t + 1] = part
            pairs[0, 0, t + 1] = part
            pairs[0, t + 1, 0] = part
            in_c[t + 1, 1] += part
            in_c[t + 1, n] += part
    else:
        log_z = float(c[0, n])
        if log_z == -np.inf:
            return log_z
        in_c[0, n] = 1.0
    for width in range(n - first, 0, -1):
        for i in range(first, n + 1 - width):
            j = i + width
            _hand_down_span(siblings, chart, posterior, i, j, mu, pairs, terms)
            _hand_down_arc(arcs, siblings, chart, posterior, i, j, mu, pairs, terms)
            if i > 0:
                _hand_down_span(siblings, chart, posterior, j, i, mu, pairs, terms)
                _hand_down_arc(arcs, siblings, chart, posterior, j, i, mu, pairs, terms)
            if in_s[i, j] > 0.0:
                for t in range(_sibling_terms(c, i, j, terms)):
                    part = in_s[i, j] * np.exp(terms[t] - s[i, j])
                    in_c[i, i + t] += part
                    in_c[j, i + t + 1] += part
    return log_z


@part
def _hand_down_span(
    siblings: Floats,
    chart: Floats,
    posterior: Floats,
    h: int,
    e: int,
    mu: Floats,
    pairs: Floats,
    terms: Floats,
) -> None:
    c, arc, _ = chart
    in_c = posterior[0]
    if in_c[h, e] == 0.0:
        return
    step = 1 if e > h else -1
    for t in range(_span_terms(siblings, c, arc, h, e, terms)):
        m = h + (t + 1) * step
        part = in_c[h, e] * np.exp(terms[t] - c[h, e])
        pairs[h, m, h] += part
        posterior[1, h, m] += part
        in_c[m, e] += part


@part
def _hand_down_arc(
    arcs: Floats,
    siblings: Floats,
    chart: Floats,
    posterior: Floats,
    h: int,
    m: int,
    mu: Floats,
    pairs: Floats,
    terms: Floats,
) -> None:
    c, arc, s = chart
    share = posterior[1, h, m]
    mu[h, m] = share
    if share == 0.0:
        return
    step = 1 if m > h else -1
    for t in range(_arc_terms(arcs, siblings, c, arc, s, h, m, terms)):
        part = share * np.exp(terms[t] - arc[h, m])
        k = h + t * step
        pairs[h, k, m] += part
        if t == 0:
            posterior[0, m, h + step] += part
        else:
            posterior[1, h, k] += part
            posterior[2, min(k, m), max(k, m)] += part


_SPAN, _ARC, _SIBLINGS = 0, 1, 2


@kernel
def _decode(arcs: Floats, siblings: Floats, single_root: bool, heads: Ints) -> bool:
    """The best tree: the chart with max for sum, then back along the terms that attain it."""
    n = arcs.shape[0] - 1
    first = 1 if single_root else 0
    chart = np.empty((3, n + 1, n + 1))
    terms = np.empty(n + 1)
    _fill_chart(arcs, siblings, n, first, True, chart, terms)
    c, arc, s = chart
    todo = np.empty((4 * n + 4, 3), dtype=np.int64)
    if single_root:
        count = _root_terms(arcs, siblings, c, n, terms)
        child = 1 + np.argmax(terms[:count])
        if terms[child - 1] == -np.inf:
            return False
        heads[child] = 0
        todo[0] = (_SPAN, child, 1)
        todo[1] = (_SPAN, child, n)
        left = 2
    else:
        if c[0, n] == -np.inf:
            return False
        todo[0] = (_SPAN, 0, n)
        left = 1
    while left > 0:
        left -= 1
        kind, a, b = todo[left]
        if a == b:
            continue
        step = 1 if b > a else -1
        if kind == _SPAN:
            t = np.argmax(terms[: _span_terms(siblings, c, arc, a, b, terms)])
            m = a + (t + 1) * step
            todo[left] = (_ARC, a, m)
            todo[left + 1] = (_SPAN, m, b)
        elif kind == _ARC:
            heads[b] = a
            t = np.argmax(terms[: _arc_terms(arcs, siblings, c, arc, s, a, b, terms)])
            k = a + t * step
            if t == 0:
                todo[left] = (_SPAN, b, a + step)
                todo[left + 1] = (_SPAN, a, a)
            else:
                todo[left] = (_ARC, a, k)
                todo[left + 1] = (_SIBLINGS, min(k, b), max(k, b))
        else:
            t = np.argmax(terms[: _sibling_terms(c, a, b, terms)])
            todo[left] = (_SPAN, a, a + t)
            todo[left + 1] = (_SPAN, b, a + t + 1)
        left += 2
    return True
