"""Exact-rational references, sharing nothing with the library.

A tree's score is the exact sum of the float64 scores of its parts (a Fraction); its weight is the
exponential of that sum, taken with 80 significant digits. From there on everything is integer and
Fraction arithmetic, so every probability below is right to a relative error of about 1e-70 whatever
the magnitudes are (spreads up to some 1e5 nats). Two independent roads are offered:

* `Exact`, an explicit list of outcomes (trees, labelled trees) with their exact scores, made by the
  most naive enumeration there is;
* `determinants`, the matrix-tree theorem in integer arithmetic, for non-projective trees too many
  to list.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import cache, cached_property, partial
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Heads = tuple[int, ...]
LabelledTree = tuple[Heads, tuple[int, ...]]
Part = tuple[int, ...]
Outcome = TypeVar("Outcome", bound=Hashable)

EXACT = Context(prec=80, Emax=MAX_EMAX, Emin=MIN_EMIN)


def _decimal(value: Fraction) -> Decimal:
    return EXACT.divide(Decimal(value.numerator), Decimal(value.denominator))


class Exact(Generic[Outcome]):
    """A distribution over an explicit list of outcomes, p proportional to exp(score)."""

    def __init__(self, score_of: Mapping[Outcome, Fraction]) -> None:
        self.score_of = dict(score_of)

    def __len__(self) -> int:
        return len(self.score_of)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.score_of)

    @cached_property
    def max(self) -> Fraction:
        return max(self.score_of.values())

    @cached_property
    def _relative(self) -> dict[Outcome, Decimal]:
        """exp(score - max)."""
        return {o: EXACT.exp(_decimal(s - self.max)) for o, s in self.score_of.items()}

    @cached_property
    def weights(self) -> dict[Outcome, int]:
        """The same weights as integers, all scaled by one power of ten."""
        scale = max(map(_decimals, self._relative.values()))
        return {o: int(EXACT.scaleb(w, scale)) for o, w in self._relative.items()}

    @cached_property
    def total(self) -> int:
        return sum(self.weights.values())

    @cached_property
    def _log_partition(self) -> Decimal:
        total = Decimal(0)
        for weight in self._relative.values():
            total = EXACT.add(total, weight)
        return EXACT.add(_decimal(self.max), EXACT.ln(total))

    @property
    def log_partition(self) -> float:
        return float(self._log_partition)

    def _log_probability(self, outcome: Outcome) -> Decimal:
        return EXACT.subtract(_decimal(self.score_of[outcome]), self._log_partition)

    def log_probability(self, outcome: Outcome) -> float:
        return float(self._log_probability(outcome))

    def probability(self, outcome: Outcome) -> Fraction:
        return Fraction(self.weights[outcome], self.total)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Of every outcome, in the order of iteration."""
        return np.array([float(self.probability(outcome)) for outcome in self])

    @property
    def entropy(self) -> float:
        total = Decimal(0)
        for outcome in self:
            log_p = self._log_probability(outcome)
            total = EXACT.subtract(total, EXACT.multiply(EXACT.exp(log_p), log_p))
        return float(total)

    def renyi(self, alpha: int | Fraction) -> float:
        """log(sum p^alpha) / (1 - alpha), alpha != 1."""
        total = Decimal(0)
        for outcome in self:
            log_power = EXACT.multiply(_decimal(Fraction(alpha)), self._log_probability(outcome))
            total = EXACT.add(total, EXACT.exp(log_power))
        return float(EXACT.divide(EXACT.ln(total), _decimal(Fraction(1 - alpha))))

    def cross_entropy(self, other: Exact[Outcome]) -> float:
        """-sum p log q: infinite when an outcome of ours is none of the other's."""
        if not self.score_of.keys() <= other.score_of.keys():
            return math.inf
        total = Decimal(0)
        for outcome in self:
            p = EXACT.exp(self._log_probability(outcome))
            total = EXACT.subtract(total, EXACT.multiply(p, other._log_probability(outcome)))
        return float(total)

    def probability_that(self, event: Callable[[Outcome], bool]) -> Fraction:
        return Fraction(sum(w for o, w in self.weights.items() if event(o)), self.total)

    def expectation(self, value: Callable[[Outcome], Fraction]) -> Fraction:
        values = {outcome: value(outcome) for outcome in self}
        common = math.lcm(*(v.denominator for v in values.values()))
        total = sum(w * int(values[outcome] * common) for outcome, w in self.weights.items())
        return Fraction(total, common * self.total)

    def marginals(self, shape: tuple[int, ...], parts: Callable[[Outcome], Iterable[Part]]) -> NDArray[np.object_]:
        """For every index into `shape` the probability that it is among an outcome's parts."""
        sums = np.zeros(shape, dtype=object)
        for outcome, weight in self.weights.items():
            for part in parts(outcome):
                sums[part] += weight
        return _map_cells(sums, lambda cell: Fraction(cell, self.total))


def _map_cells(array: NDArray[np.object_], function: Callable[[int], Fraction]) -> NDArray[np.object_]:
    result = np.empty(array.shape, dtype=object)
    for index, cell in np.ndenumerate(array):
        result[index] = function(cell)
    return result


# --- trees ---------------------------------------------------------------------------------------


def ancestors(heads: Sequence[int], word: int) -> list[int]:
    """The nodes above a word, nearest first; stops at the root, or after n steps in a cycle."""
    above: list[int] = []
    while word != 0 and len(above) < len(heads):
        word = heads[word]
        above.append(word)
    return above


def is_tree(heads: Sequence[int]) -> bool:
    """heads[0] == -1 and every word reaches the root."""
    return heads[0] == -1 and all(ancestors(heads, m)[-1] == 0 for m in range(1, len(heads)))


def is_projective(heads: Sequence[int]) -> bool:
    """Every word between a modifier and its head descends from that head."""
    return all(
        heads[m] in ancestors(heads, between)
        for m in range(1, len(heads))
        for between in range(min(heads[m], m) + 1, max(heads[m], m))
    )


def in_class(heads: Sequence[int], *, projective: bool, single_root: bool) -> bool:
    if not is_tree(heads):
        return False
    if projective and not is_projective(heads):
        return False
    return not single_root or len(heads) == 1 or list(heads).count(0) == 1


@cache
def trees(n: int, *, projective: bool, single_root: bool) -> tuple[Heads, ...]:
    """Every tree over n words: all n^n assignments of heads, those that are not trees dropped."""
    choices = [[h for h in range(n + 1) if h != m] for m in range(1, n + 1)]
    return tuple(
        heads
        for assignment in itertools.product(*choices)
        if in_class(heads := (-1, *assignment), projective=projective, single_root=single_root)
    )


def arcs(heads: Sequence[int]) -> list[Part]:
    """The arcs (head, modifier) of a tree."""
    return [(heads[m], m) for m in range(1, len(heads))]


def labelled_arcs(tree: LabelledTree) -> list[Part]:
    """The parts (head, modifier, label) of a labelled tree."""
    heads, labels = tree
    return [(heads[m], m, labels[m]) for m in range(1, len(heads))]


def sibling_parts(heads: Sequence[int]) -> list[Part]:
    """(h, h, first), (h, first, second), ..., (h, last, h) for each side of h that has children."""
    n = len(heads) - 1
    parts: list[Part] = []
    for h in range(n + 1):
        for side in (range(h - 1, 0, -1), range(h + 1, n + 1)):
            children = [m for m in side if heads[m] == h]
            if children:
                parts += [(h, a, b) for a, b in itertools.pairwise([h, *children, h])]
    return parts


def part_sum(table: NDArray[np.float64], parts: Iterable[Part]) -> Fraction | None:
    """The exact sum of the parts' entries; None if one of them is -inf."""
    values = [float(table[part]) for part in parts]
    if -math.inf in values:
        return None
    return sum(map(Fraction, values), Fraction(0))


def tree_distribution(scores: NDArray[np.float64], *, projective: bool, single_root: bool) -> Exact[Heads]:
    every = trees(len(scores) - 1, projective=projective, single_root=single_root)
    sums = {heads: part_sum(scores, arcs(heads)) for heads in every}
    return Exact({heads: score for heads, score in sums.items() if score is not None})


def labelled_distribution(scores: NDArray[np.float64], *, projective: bool, single_root: bool) -> Exact[LabelledTree]:
    n, labels = scores.shape[0] - 1, range(scores.shape[2])
    every = [
        (heads, (-1, *labelling))
        for heads in trees(n, projective=projective, single_root=single_root)
        for labelling in itertools.product(labels, repeat=n)
    ]
    sums = {tree: part_sum(scores, labelled_arcs(tree)) for tree in every}
    return Exact({tree: score for tree, score in sums.items() if score is not None})


def sibling_distribution(
    arc_scores: NDArray[np.float64], siblings: NDArray[np.float64], *, single_root: bool
) -> Exact[Heads]:
    score_of: dict[Heads, Fraction] = {}
    for heads in trees(len(arc_scores) - 1, projective=True, single_root=single_root):
        first = part_sum(arc_scores, arcs(heads))
        second = part_sum(siblings, sibling_parts(heads))
        if first is not None and second is not None:
            score_of[heads] = first + second
    return Exact(score_of)


def arc_marginals(exact: Exact[Heads], n: int) -> NDArray[np.object_]:
    return exact.marginals((n + 1, n + 1), arcs)


def covariance_with_arcs(exact: Exact[Heads], f: NDArray[np.float64]) -> NDArray[np.object_]:
    """Cov(f, 1[arc]) of every arc, exactly."""
    value = {heads: _finite_sum(f, heads) for heads in exact}
    mean = exact.expectation(lambda heads: value[heads])
    result = np.zeros(f.shape, dtype=object)
    for arc in {arc for heads in exact for arc in arcs(heads)}:
        result[arc] = exact.expectation(partial(_deviation_with, arc, value, mean))
    return result


def _finite_sum(f: NDArray[np.float64], heads: Heads) -> Fraction:
    total = part_sum(f, arcs(heads))
    assert total is not None
    return total


def _deviation_with(arc: tuple[int, ...], value: dict[Heads, Fraction], mean: Fraction, heads: Heads) -> Fraction:
    """The value's difference from its mean where the tree has the arc, 0 elsewhere."""
    return (value[heads] - mean) * (heads[arc[1]] == arc[0])


def _decimals(number: Decimal) -> int:
    """How many digits the number has after the point."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)  # it is finite
    return -exponent


# --- the matrix-tree theorem in integers ---------------------------------------------------------


def _integer_weights(scores: NDArray[np.float64]) -> tuple[list[list[int]], Decimal]:
    """exp(score) of every arc as integers, each column scaled by its own power of ten.

    Also the logarithm of what one product over the columns was multiplied by.
    """
    n = len(scores) - 1
    weights = [[0] * (n + 1) for _ in range(n + 1)]
    log_scale = Decimal(0)
    for m in range(1, n + 1):
        column = {
            h: EXACT.exp(Decimal(float(scores[h, m]))) for h in range(n + 1) if h != m and scores[h, m] != -math.inf
        }
        scale = max(map(_decimals, column.values()), default=0)
        for h, weight in column.items():
            weights[h][m] = int(EXACT.scaleb(weight, scale))
        log_scale = EXACT.add(log_scale, EXACT.multiply(Decimal(scale), EXACT.ln(Decimal(10))))
    return weights, log_scale


def _determinant(matrix: list[list[int]]) -> int:
    """Bareiss: fraction-free elimination, every division exact."""
    rows = [list(row) for row in matrix]
    sign, previous = 1, 1
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return 0
        if pivot != k:
            rows[k], rows[pivot] = rows[pivot], rows[k]
            sign = -sign
        for i in range(k + 1, len(rows)):
            for j in range(k + 1, len(rows)):
                product = rows[i][j] * rows[k][k] - rows[i][k] * rows[k][j]
                rows[i][j] = product // previous
        previous = rows[k][k]
    return sign * previous


def _count(weights: list[list[int]], single_root: bool) -> int:
    """The total weight of all trees: koo2007's determinants."""
    words = range(1, len(weights))
    laplacian = [[-weights[h][m] for m in words] for h in words]
    for m in words:
        inside = sum(weights[h][m] for h in words if h != m)
        laplacian[m - 1][m - 1] = inside if single_root else inside + weights[0][m]
    if single_root:
        laplacian[0] = [weights[0][m] for m in words]
    return _determinant(laplacian)


def determinants(scores: NDArray[np.float64], *, single_root: bool) -> tuple[float, NDArray[np.object_]]:
    """log Z and the marginals of non-projective trees, n >= 1.

    The marginal of an arc is the total of the trees that have it (all other heads of its modifier
    removed) over the total of all.
    """
    n = len(scores) - 1
    weights, log_scale = _integer_weights(scores)
    total = _count(weights, single_root)
    log_partition = EXACT.subtract(EXACT.ln(Decimal(total)), log_scale)
    marginals = np.zeros((n + 1, n + 1), dtype=object)
    for h, m in itertools.product(range(n + 1), range(1, n + 1)):
        if weights[h][m]:
            only = [[w if k != m or i == h else 0 for k, w in enumerate(row)] for i, row in enumerate(weights)]
            marginals[h, m] = Fraction(_count(only, single_root), total)
    return float(log_partition), marginals


# --- the bars ------------------------------------------------------------------------------------


def assert_accurate(
    log_partition: float,
    marginals: NDArray[np.float64],
    true_log_partition: float,
    true_marginals: NDArray[np.object_],
) -> None:
    """The issue's bar for stability, against exact values."""
    assert np.isfinite(marginals).all(), marginals
    assert abs(log_partition - true_log_partition) <= 1e-12 * max(1.0, abs(true_log_partition))
    for arc, truth in np.ndenumerate(true_marginals):
        got = Fraction(float(marginals[arc]))
        if truth > Fraction(1, 10**300):
            assert abs(got - truth) <= truth / 10**9, (arc, float(got), float(truth))
        elif truth > 0:
            assert 0 <= got <= Fraction(2, 10**300), (arc, float(got), float(truth))
        else:
            assert got == 0, (arc, float(got))
    columns = marginals[:, 1:].sum(axis=0)
    assert np.abs(columns - 1.0).max(initial=0.0) <= 1e-12, columns
