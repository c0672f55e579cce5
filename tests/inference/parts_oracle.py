"""Sibling and grand-sibling parts for the tests: random ones, and the best tree under them by enumeration.

Parts are a dictionary of dense arrays: `arcs` [h, m] and `siblings` [h, s, m] and, for grand-siblings, `grandparents`
[g, h, m] and `grand_siblings` [g, h, s, m] (or None). s == h is START, m == h is END, -inf forbids. Nothing here is
shared with the algorithms: a tree is scored by loops over its words.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.inference.brute_force import all_trees
from headway.inference.head_automata import GrandSiblingParts, SiblingParts

Floats = NDArray[np.float64]
Dense = dict[str, Floats | None]
Heads = tuple[int, ...]


def children(heads: Heads, head: int) -> tuple[list[int], list[int]]:
    """A head's modifiers on the left and on the right, outwards."""
    mine = [m for m in range(1, len(heads)) if heads[m] == head]
    return [m for m in reversed(mine) if m < head], [m for m in mine if m > head]


def parts_of(heads: Heads) -> dict[str, list[tuple[int, ...]]]:
    """Every part of a tree, as indices into the dense arrays."""
    found: dict[str, list[tuple[int, ...]]] = {"arcs": [], "siblings": [], "grandparents": [], "grand_siblings": []}
    for h in range(len(heads)):
        for side in children(heads, h):
            outwards = [h, *side, h] if side else []
            pairs = list(pairwise(outwards))
            found["arcs"] += [(h, m) for m in side]
            found["siblings"] += [(h, s, m) for s, m in pairs]
            if h > 0:
                found["grandparents"] += [(heads[h], h, m) for m in side]
                found["grand_siblings"] += [(heads[h], h, s, m) for s, m in pairs]
    return found


def score(heads: Heads, dense: Dense) -> float:
    """The sum of the scores of the tree's parts."""
    total = 0.0
    for kind, parts in parts_of(heads).items():
        scores = dense.get(kind)
        if scores is not None:
            for part in parts:
                total += float(scores[part])
    return total


@cache
def trees(n: int, projective: bool, single_root: bool) -> list[Heads]:
    return [tuple(heads) for heads in all_trees(n, projective=projective, single_root=single_root).tolist()]


def best(dense: Dense, *, projective: bool, single_root: bool) -> tuple[float, Heads | None]:
    """The best tree of the class and its score; (-inf, None) if every tree has a forbidden part. n <= 6."""
    arcs = dense["arcs"]
    assert arcs is not None
    top: tuple[float, Heads | None] = (-np.inf, None)
    for heads in trees(len(arcs) - 1, projective, single_root):
        found = score(heads, dense)
        if found > top[0]:
            top = (found, heads)
    return top


def random_tree(rng: np.random.Generator, n: int) -> Heads:
    """A projective tree with one root: one that is in every class."""
    heads = [-1] * (n + 1)
    spans = [(1, n, 0)] if n else []
    while spans:
        first, last, head = spans.pop()
        word = int(rng.integers(first, last + 1))
        heads[word] = head
        for low, high in ((first, word - 1), (word + 1, last)):
            if low < high and rng.random() < 0.5:  # more than one child on a side
                cut = int(rng.integers(low, high))
                spans += [(low, cut, word), (cut + 1, high, word)]
            elif low <= high:
                spans.append((low, high, word))
    return tuple(heads)


def random_sibling(rng: np.random.Generator, n: int, forbid: float = 0.3) -> Dense:
    """Standard normal scores; `forbid` is the share of arcs that are forbidden, of pairs a third of it.

    One random tree of every class keeps all its parts. Cells that are no part hold nan.
    """
    return _random(rng, n, forbid, {"arcs": 2, "siblings": 3})


def random_grandsibling(
    rng: np.random.Generator, n: int, forbid: float = 0.3, with_grand_siblings: bool = True
) -> Dense:
    """Like `random_sibling`, with grandparents and, or else None, grand-siblings: a third of `forbid` for each kind."""
    kinds = {"arcs": 2, "siblings": 3, "grandparents": 3}
    if with_grand_siblings:
        return _random(rng, n, forbid, {**kinds, "grand_siblings": 4})
    return {**_random(rng, n, forbid, kinds), "grand_siblings": None}


def _random(rng: np.random.Generator, n: int, forbid: float, kinds: dict[str, int]) -> Dense:
    keep = parts_of(random_tree(rng, n))
    dense: Dense = {}
    for kind, order in kinds.items():
        scores = rng.normal(size=(n + 1,) * order)
        forbidden = rng.random(scores.shape) < (forbid if kind == "arcs" else forbid / 3)
        for part in keep[kind]:
            forbidden[part] = False
        scores[forbidden] = -np.inf
        _spoil(kind, scores)
        dense[kind] = scores
    return dense


def _spoil(kind: str, scores: Floats) -> None:
    """nan where there is no part, as far as that is said by equal indices and by the root."""
    nodes = np.arange(len(scores))
    if kind == "arcs":
        scores[:, 0] = np.nan
        scores[nodes, nodes] = np.nan
    elif kind == "siblings":
        scores[nodes, nodes, nodes] = np.nan
    elif kind == "grandparents":
        scores[:, 0] = np.nan
        scores[:, :, 0] = np.nan
        scores[nodes, nodes] = np.nan
        scores[:, nodes, nodes] = np.nan
    else:
        scores[:, 0] = np.nan
        scores[nodes, nodes] = np.nan
        scores[:, nodes, nodes, nodes] = np.nan


def prune(rng: np.random.Generator, dense: Dense, heads_a_word: int) -> Dense:
    """Leave every word so many heads, near ones first of all, and at least one tree of every class."""
    arcs = dense["arcs"]
    assert arcs is not None
    n = len(arcs) - 1
    tree = random_tree(rng, n)
    kept = np.full(arcs.shape, -np.inf)
    for m in range(1, n + 1):
        others = [h for h in range(n + 1) if h not in (m, tree[m])]
        nearness = np.array([1.0 / abs(h - m) for h in others])
        chosen = rng.choice(others, min(heads_a_word - 1, len(others)), replace=False, p=nearness / nearness.sum())
        for h in [tree[m], *chosen.tolist()]:
            kept[h, m] = arcs[h, m]
    return {**dense, "arcs": kept}


def to_parts(dense: Dense) -> SiblingParts | GrandSiblingParts:
    """The parts as the algorithms take them."""
    arcs, siblings, grandparents = (dense.get(name) for name in ("arcs", "siblings", "grandparents"))
    assert arcs is not None
    assert siblings is not None
    if grandparents is None:
        return SiblingParts.dense(arcs, siblings)
    return GrandSiblingParts.dense(arcs, siblings, grandparents, dense.get("grand_siblings"))


_seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
_shares = st.sampled_from([0.0, 0.3, 0.6])


def sibling_cases(max_words: int = 5) -> st.SearchStrategy[Dense]:
    return st.builds(random_sibling, _seeds, st.integers(1, max_words), _shares)


def grandsibling_cases(max_words: int = 5) -> st.SearchStrategy[Dense]:
    return st.builds(random_grandsibling, _seeds, st.integers(1, max_words), _shares, st.booleans())
