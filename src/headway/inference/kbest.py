"""The k best trees, distinct and in order, for every class of trees (Lawler 1972, Murty 1968).

The best tree of a subproblem splits the rest of it into disjoint ones: for each word m that is still free, "the
words before m as in the tree, and m otherwise". Each gets its own argmax, a heap keeps them by score, and the next
best tree of all is the best of the best. n argmaxes for each tree returned: O(k n^3) non-projective, O(k n^4)
projective.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

import numpy as np

from headway.arrays import Floats, Ints, TreeClass
from headway.inference.batch import Batch, as_count
from headway.inference.first_order import try_best_heads
from headway.parallel import Executor


def kbest(sentence: Batch, k: int, trees: TreeClass, executor: Executor) -> list[tuple[Ints, float]]:
    """At most k (heads, score) of one sentence, best first; fewer when there are fewer trees."""
    k, scores = as_count(k, "k"), sentence.scores[0]
    n = len(scores) - 1
    order = count()  # breaks ties in the heap by age, so that arrays are never compared
    heap: list[tuple[float | Fraction, int, Ints, _Part]] = []
    score = tree_score if sentence.wide is None else exact_tree_score

    def push(parts: list[_Part]) -> None:
        if not parts:
            return
        batch = sentence.variants(np.array([part.scores() for part in parts]))
        heads, found = try_best_heads(batch, trees, executor)
        for tree, part, ok in zip(heads, parts, found, strict=True):
            if ok:
                heapq.heappush(heap, (-score(sentence, tree), next(order), tree, part))

    push([_Part(scores, np.full(n + 1, -1), 1, None)])
    best: list[tuple[Ints, float | Fraction]] = []
    while heap and len(best) < k:
        negative, _, heads, part = heapq.heappop(heap)
        best.append((heads, -negative))
        if len(best) < k:
            free = part.other or 1
            allowed = part.scores()
            push([_Part(allowed, heads, free, m) for m in range(free, n + 1)])
    return [(heads, float(total)) for heads, total in sorted(best, key=lambda entry: -entry[1])]


@dataclass(frozen=True)
class _Part:
    """Trees within `allowed` whose words free .. other-1 have these heads and whose word `other` has not (None: all).

    The matrix is made when it is needed, so that the heap stays small.
    """

    allowed: Floats
    heads: Ints
    free: int
    other: int | None

    def scores(self) -> Floats:
        if self.other is None:
            return self.allowed
        result = self.allowed.copy()
        fixed = np.arange(self.free, self.other)
        result[:, fixed] = -np.inf
        result[self.heads[fixed], fixed] = self.allowed[self.heads[fixed], fixed]
        result[self.heads[self.other], self.other] = -np.inf
        return result


def tree_score(sentence: Batch, heads: Ints) -> float:
    """Sum of the arcs' scores, rounded once."""
    return math.fsum(_arc_scores(sentence, heads))


def exact_tree_score(sentence: Batch, heads: Ints) -> Fraction:
    """The same sum, not rounded."""
    return sum(map(Fraction, _arc_scores(sentence, heads)), Fraction())


def _arc_scores(sentence: Batch, heads: Ints) -> list[float]:
    arcs = heads[1:], np.arange(1, len(heads))
    own: list[float] = sentence.scores[0][arcs].tolist()
    return own if sentence.residual is None else own + sentence.residual[0][arcs].tolist()
