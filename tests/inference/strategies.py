"""Score matrices for the tests: what hypothesis draws, and the fixed cases of the stability bars.

Everything here has garbage (nan, infinities) in column 0 and on the diagonal, which the conventions
say are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from .exact import Heads, arcs, sibling_parts, trees

Floats = NDArray[np.float64]

TREE_CLASSES = [
    pytest.param(
        {"projective": projective, "single_root": single_root},
        id=f"{'projective' if projective else 'non-projective'}-{'single' if single_root else 'multi'}-root",
    )
    for projective in (False, True)
    for single_root in (False, True)
]
BOOSTS = (10.0, 40.0, 100.0, 600.0)
SPREADS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
GARBAGE = (0.0, np.nan, np.inf, -np.inf)


def with_garbage(scores: Floats, garbage: float = np.nan) -> Floats:
    """A copy with `garbage` in column 0 and on the diagonal."""
    scores = scores.copy()
    scores[:, 0] = garbage
    np.einsum("ii...->i...", scores)[:] = garbage
    return scores


def normal_scores(n: int, seed: int, std: float = 1.0) -> Floats:
    return with_garbage(np.random.default_rng(seed).normal(0.0, std, (n + 1, n + 1)))


def astronomical_scores(n: int, seed: int) -> Floats:
    """1e299 times distinct powers of two: no two trees tie, and the best is all that is left."""
    powers = 0.5 ** np.arange((n + 1) ** 2)
    shuffled = np.random.default_rng(seed).permutation(powers).reshape(n + 1, n + 1)
    return with_garbage(1e299 * shuffled)


def boost_cycle(scores: Floats, cycle: list[int], boost: float) -> Floats:
    """A copy in which every word of the cycle prefers the one before it by `boost` nats more."""
    scores = scores.copy()
    for head, modifier in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        scores[head, modifier] += boost
    return scores


def pruned_scores(n: int, seed: int, levels: tuple[int, ...], others: int) -> Floats:
    """The word before (or the root) and a few other heads for each word, scored near one of the levels.

    The first few words have no head among the later ones: only they can be the child of a single root.
    """
    rng = np.random.default_rng(seed)
    scores = np.full((n + 1, n + 1), -np.inf)
    few = int(rng.integers(1, n // 2 + 1))
    for m in range(1, n + 1):
        for head in (m - 1, *rng.integers(0, (few if m <= few else n) + 1, others)):
            scores[head, m] = rng.choice(levels) + rng.normal()
    return with_garbage(scores)


def ladder_scores(seed: int, gap: float) -> Floats:
    """Pairs of words that prefer each other, then the pair before, and `gap` nats less the way to the root.

    Every tree takes some rare arc of each pair, so what float64 must hold is the product of three.
    """
    noise = np.random.default_rng(seed).normal(size=(7, 7))
    scores = np.full((7, 7), -np.inf)
    pairs = [[1, 2], [3, 4], [5, 6]]
    for i, pair in enumerate(pairs):
        scores[np.ix_(pair, pair)] = 0.0
        if i > 0:
            scores[np.ix_(pairs[i - 1], pair)] = -1.0
        scores[np.ix_(pairs[i + 1] if i < 2 else [0], pair)] = -gap
    return with_garbage(scores + noise)


def stability_cases(n: int) -> Sequence[object]:
    """The issue's table: boosted 2- and 3-cycles, nested and side by side, and every spread."""
    cases = []
    for boost in BOOSTS:
        two = boost_cycle(normal_scores(n, 1), [2, 4], boost)
        three = boost_cycle(normal_scores(n, 2), [1, 2, 3], boost)
        nested = boost_cycle(boost_cycle(normal_scores(n, 3), [1, 2], boost), [2, 3, 4], boost)
        beside = boost_cycle(boost_cycle(normal_scores(n, 4), [1, 2, 3], boost), [4, 5], boost)
        whole = boost_cycle(boost_cycle(normal_scores(n, 5), [1, 2], boost), [3, 4], boost)
        whole = boost_cycle(whole, list(range(1, n + 1)), boost / 2)
        cases += [
            pytest.param(two, id=f"2-cycle+{boost:g}"),
            pytest.param(three, id=f"3-cycle+{boost:g}"),
            pytest.param(nested, id=f"nested cycles+{boost:g}"),
            pytest.param(beside, id=f"cycles side by side+{boost:g}"),
            pytest.param(whole, id=f"cycles in a cycle+{boost:g}"),
        ]
    cases += [
        pytest.param(normal_scores(n, 10 + seed, std), id=f"std {std:g} seed {seed}")
        for std in SPREADS
        for seed in range(2)
    ]
    return cases


def _base_scores(shape: tuple[int, ...]) -> st.SearchStrategy[Floats]:
    smooth = st.floats(-3.0, 3.0, allow_subnormal=False)
    ties = st.integers(-2, 2).map(float)
    return st.one_of(
        hnp.arrays(np.float64, shape, elements=smooth),
        hnp.arrays(np.float64, shape, elements=ties),
        st.builds(
            lambda base, scale: base * scale,
            hnp.arrays(np.float64, shape, elements=smooth),
            st.sampled_from([10.0, 100.0, 1000.0]),
        ),
    )


def _masks(shape: tuple[int, ...]) -> st.SearchStrategy[NDArray[np.bool_]]:
    """Which arcs are forbidden: none, a few, or about half."""
    return st.one_of(
        st.just(np.zeros(shape, dtype=np.bool_)),
        hnp.arrays(np.bool_, shape, elements=st.just(True), fill=st.just(False)),
        hnp.arrays(np.bool_, shape, elements=st.booleans()),
    )


def some_tree(n: int) -> st.SearchStrategy[Heads]:
    """A projective single-root tree: one that is in every class."""
    return st.sampled_from(trees(n, projective=True, single_root=True))


@st.composite
def score_matrices(
    draw: st.DrawFn,
    min_words: int = 1,
    max_words: int = 4,
    labels: int | None = None,
    solvable: bool = True,
    keep: Heads | None = None,
) -> Floats:
    """Scores (n+1, n+1), or (n+1, n+1, labels), with all that is known to break implementations.

    `solvable` keeps the arcs of one tree that is in every class from being forbidden: of `keep`, or
    of one that is drawn.
    """
    n = draw(st.integers(min_words, max_words))
    shape = (n + 1, n + 1) if labels is None else (n + 1, n + 1, labels)
    scores = draw(_base_scores(shape))
    length = draw(st.sampled_from([0, 0, 2, 3]))
    if 0 < length <= n:
        words = draw(st.permutations(range(1, n + 1)))
        scores = boost_cycle(scores, list(words[:length]), draw(st.sampled_from(BOOSTS)))
    forbidden = draw(_masks(shape))
    if solvable:
        for arc in arcs(keep or draw(some_tree(n))):
            forbidden[arc] = False
    return with_garbage(np.where(forbidden, -np.inf, scores), draw(st.sampled_from(GARBAGE)))


@st.composite
def sibling_scores(draw: st.DrawFn, max_words: int = 4, solvable: bool = True) -> tuple[Floats, Floats]:
    """Arc scores (n+1, n+1) and sibling scores (n+1, n+1, n+1), some parts of both forbidden."""
    n = draw(st.integers(1, max_words))
    heads = draw(some_tree(n))
    arc_scores = draw(score_matrices(n, n, solvable=solvable, keep=heads))
    shape = (n + 1,) * 3
    forbidden = draw(_masks(shape))
    if solvable:
        for part in sibling_parts(heads):
            forbidden[part] = False
    siblings = np.where(forbidden, -np.inf, draw(_base_scores(shape)))
    nodes = np.arange(n + 1)
    siblings[nodes, nodes, nodes] = draw(st.sampled_from(GARBAGE))
    return arc_scores, siblings


@st.composite
def score_pairs(draw: st.DrawFn, max_words: int = 4) -> tuple[Floats, Floats]:
    """Two matrices over the same words, both solvable, with forbidden arcs of their own."""
    first = draw(score_matrices(max_words=max_words))
    n = len(first) - 1
    return first, draw(score_matrices(min_words=n, max_words=n))


@st.composite
def arc_functions(draw: st.DrawFn, scores: Floats) -> Floats:
    """An arc-factored function of the shape of `scores`; nan wherever it must be ignored."""
    f = draw(hnp.arrays(np.float64, scores.shape, elements=st.integers(-64, 64).map(float)))
    return with_garbage(np.where(np.isneginf(scores), np.nan, f / 16.0))
