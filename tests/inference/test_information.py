"""Entropy, cross-entropy, KL and Renyi divergences against -sum p log p over every tree."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from headway.errors import HeadsError, ShapeError
from headway.inference import TreeDistribution, forbid

from .exact import tree_distribution
from .strategies import (
    BOOSTS,
    TREE_CLASSES,
    Floats,
    boost_cycle,
    normal_scores,
    score_matrices,
    score_pairs,
)

every_class = pytest.mark.parametrize("flags", TREE_CLASSES)


@every_class
@settings(max_examples=20)
@given(scores=score_matrices(max_words=4))
def test_renyi(flags: dict[str, bool], scores: Floats) -> None:
    distribution, reference = TreeDistribution(scores, **flags), tree_distribution(scores, **flags)
    best = max(reference, key=reference.score_of.__getitem__)
    expected = {
        0.0: math.log(len(reference)),
        0.5: reference.renyi(Fraction(1, 2)),
        1.0: reference.entropy,
        2.0: reference.renyi(2),
        math.inf: -reference.log_probability(best),
    }
    got = {alpha: distribution.renyi(alpha) for alpha in expected}
    finite = np.abs(scores[np.isfinite(scores)])
    rounding = 1e-13 * finite.max(initial=1000.0)  # log Z is as large as the scores
    assert got == pytest.approx(expected, rel=0, abs=rounding)
    assert got[1.0] == distribution.entropy


@every_class
def test_renyi_is_continuous_at_one(flags: dict[str, bool]) -> None:
    scores = normal_scores(4, 80, 2.0)
    distribution, reference = TreeDistribution(scores, **flags), tree_distribution(scores, **flags)
    for step in (-(2.0**-10), -(2.0**-20), 2.0**-20, 2.0**-10):
        expected = reference.renyi(Fraction(1 + step))
        assert expected != pytest.approx(distribution.entropy, rel=0, abs=1e-8)
        assert distribution.renyi(1 + step) == pytest.approx(expected, rel=0, abs=1e-8)


@every_class
def test_renyi_falls_with_alpha(flags: dict[str, bool]) -> None:
    distribution = TreeDistribution(normal_scores(20, 81), **flags)
    values = [distribution.renyi(a) for a in (0.0, 0.3, 0.5, 0.99, 1.0, 1.01, 2.0, 7.0, math.inf)]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1] + 1.0


@pytest.mark.parametrize("alpha", [-1.0, math.nan])
def test_renyi_needs_an_order(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        TreeDistribution(np.zeros((3, 3))).renyi(alpha)


@every_class
@settings(max_examples=20)
@given(pair=score_pairs())
def test_cross_entropy_and_kl(flags: dict[str, bool], pair: tuple[Floats, Floats]) -> None:
    p, q = (TreeDistribution(scores, **flags) for scores in pair)
    exact_p, exact_q = (tree_distribution(scores, **flags) for scores in pair)
    expected = exact_p.cross_entropy(exact_q)
    assert p.cross_entropy(q) == pytest.approx(expected, rel=1e-12, abs=1e-10)
    kl = p.kl(q)
    assert kl == pytest.approx(expected - exact_p.entropy, rel=1e-11, abs=1e-10)
    assert kl >= -1e-10
    assert p.kl(p) == pytest.approx(0.0, rel=0, abs=1e-10)
    assert p.cross_entropy(p) == pytest.approx(p.entropy, rel=0, abs=1e-10)


@every_class
def test_kl_is_infinite_only_where_support_is_missing(flags: dict[str, bool]) -> None:
    scores = normal_scores(4, 82)
    whole, part = (
        TreeDistribution(scores, **flags),
        TreeDistribution(forbid(scores, [(1, 2)]), **flags),
    )
    assert whole.kl(part) == math.inf
    assert whole.cross_entropy(part) == math.inf
    # conditioning on the arc's absence: KL is minus the log of that probability
    absent = -math.log1p(-whole.marginals[1, 2])
    assert part.kl(whole) == pytest.approx(absent, rel=1e-9)
    # an arc that no tree of p has may be forbidden in q
    no_tree_has_it = forbid(scores, [(h, 1) for h in (2, 3, 4)])
    q = TreeDistribution(forbid(no_tree_has_it, [(0, 2)]), **flags)
    p = TreeDistribution(forbid(no_tree_has_it, [(0, 2), (1, 3)]), **flags)
    assert math.isfinite(p.kl(q))


@every_class
def test_kl_is_infinite_however_rare_the_missing_trees_are(flags: dict[str, bool]) -> None:
    """They have probability exp(-2000): too rare for float64, not impossible."""
    scores = np.zeros((4, 4))
    scores[1, 2] = -2000.0
    p, q = TreeDistribution(scores, **flags), TreeDistribution(forbid(scores, [(1, 2)]), **flags)
    assert p.cross_entropy(q) == math.inf
    assert p.kl(q) == math.inf
    assert q.kl(p) == pytest.approx(0.0, rel=0, abs=1e-10)


def test_kl_between_classes() -> None:
    """Finite towards a larger class; infinite towards one that lacks some of the trees."""
    scores, others = normal_scores(4, 86), normal_scores(4, 87)
    every = [case.values[0] for case in TREE_CLASSES]
    for own, theirs in itertools.permutations(every, 2):
        expected = tree_distribution(scores, **own).cross_entropy(tree_distribution(others, **theirs))
        p, q = TreeDistribution(scores, **own), TreeDistribution(others, **theirs)
        assert p.cross_entropy(q) == pytest.approx(expected, rel=1e-12), (own, theirs)
        assert p.kl(q) == pytest.approx(expected - p.entropy, rel=1e-12), (own, theirs)


def test_kl_needs_the_same_sentences() -> None:
    with pytest.raises(ShapeError):
        TreeDistribution(np.zeros((4, 4))).kl(TreeDistribution(np.zeros((5, 5))))


@every_class
@pytest.mark.parametrize("boost", BOOSTS)
def test_entropy_of_dominant_cycles(flags: dict[str, bool], boost: float) -> None:
    scores = boost_cycle(boost_cycle(normal_scores(5, 83), [1, 2], boost), [3, 4, 5], boost)
    reference = tree_distribution(scores, **flags)
    assert reference.entropy > 0.1
    got = TreeDistribution(scores, **flags).entropy
    assert got == pytest.approx(reference.entropy, rel=0, abs=1e-10)


@every_class
def test_entropy_of_uniform_scores_is_the_log_of_the_count(flags: dict[str, bool]) -> None:
    distribution = TreeDistribution(np.zeros((31, 31)), **flags)
    assert distribution.entropy == pytest.approx(distribution.log_partition, rel=1e-12)
    assert distribution.renyi(0) == pytest.approx(distribution.log_partition, rel=1e-12)
    assert distribution.renyi(math.inf) == pytest.approx(distribution.log_partition, rel=1e-12)


@every_class
def test_a_certain_tree_has_no_entropy(flags: dict[str, bool]) -> None:
    scores = np.full((5, 5), -np.inf)
    scores[[0, 1, 2, 3], [1, 2, 3, 4]] = [700.0, -5000.0, 3.0, 1e9]
    distribution = TreeDistribution(scores, **flags)
    for alpha in (0.0, 0.5, 1.0, 2.0, math.inf):
        assert distribution.renyi(alpha) == pytest.approx(0.0, rel=0, abs=1e-6)
    assert distribution.log_prob(np.array([-1, 0, 1, 2, 3])) == pytest.approx(0.0, abs=1e-6)


@every_class
def test_what_is_no_tree_of_the_class_has_probability_zero(flags: dict[str, bool]) -> None:
    distribution = TreeDistribution(forbid(normal_scores(4, 84), [(1, 2)]), **flags)
    no_trees = {
        "a forbidden arc": [-1, 0, 1, 1, 1],
        "a cycle": [-1, 0, 3, 2, 1],
        "its own head": [-1, 0, 2, 1, 1],
    }
    if flags["single_root"]:
        no_trees["two roots"] = [-1, 0, 0, 2, 2]
    if flags["projective"]:
        no_trees["crossing arcs"] = [-1, 0, 4, 1, 1]
    for heads in no_trees.values():
        assert distribution.log_prob(np.array(heads)) == -math.inf
        assert distribution.score(np.array(heads)) == -math.inf


@every_class
@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([-1, 0, 1], r"\(3,\)"),
        ([-1, 0, 1, 4], r"heads\[3\] is 4"),
        ([-1, 0, -1, 1], r"heads\[2\] is -1"),
        ([0, 0, 1, 1], r"heads\[0\] is 0"),
        ([-1, 0.5, 1, 1], "float64"),
    ],
    ids=["short", "beyond", "headless", "rooted root", "fraction"],
)
def test_malformed_heads(flags: dict[str, bool], heads: list[float], message: str) -> None:
    distribution = TreeDistribution(normal_scores(3, 85), **flags)
    with pytest.raises(HeadsError, match=message):
        distribution.log_prob(np.array(heads))
    with pytest.raises(HeadsError, match=message):
        distribution.score(np.array(heads))
