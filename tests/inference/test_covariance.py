"""Joint probabilities and covariances: enumeration, finite differences, the determinantal twin.

The twin is the inverse of DESIGN 5.2, which is right at moderate scores only; with dominant cycles
the comparison is with exact rationals.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.arrays import TreeClass
from headway.errors import ArcError, ScoresError, ShapeError, SizeError
from headway.inference import TreeDistribution, marginals
from headway.inference.batch import as_batch
from headway.inference.first_order import arc_covariances
from headway.inference.marginal_slopes import MOST_VISITS, most_visits, slopes_by_products
from headway.parallel import executor_for

from .exact import Exact, Heads, arcs, covariance_with_arcs, part_sum, tree_distribution
from .strategies import (
    BOOSTS,
    TREE_CLASSES,
    Floats,
    arc_functions,
    boost_cycle,
    ladder_scores,
    normal_scores,
    pruned_scores,
    score_matrices,
    with_garbage,
)

every_class = pytest.mark.parametrize("flags", TREE_CLASSES)
both_root_classes = pytest.mark.parametrize("single_root", [False, True])


def random_function(n: int, seed: int) -> Floats:
    """Dyadic values, which the exact reference sums quickly; nan where it must be ignored."""
    values = np.random.default_rng(seed).integers(-1024, 1025, (n + 1, n + 1)) / 1024.0
    return with_garbage(values)


def pair_probabilities(exact: Exact[Heads], n: int) -> Floats:
    return exact.marginals(
        (n + 1,) * 4, lambda heads: (a + b for a, b in itertools.product(arcs(heads), repeat=2))
    ).astype(float)


@every_class
@settings(max_examples=12)
@given(scores=score_matrices(max_words=4))
def test_pair_marginals(flags: dict[str, bool], scores: Floats) -> None:
    n = len(scores) - 1
    got = TreeDistribution(scores, **flags).pair_marginals()
    assert got.shape == (n + 1,) * 4
    expected = pair_probabilities(tree_distribution(scores, **flags), n)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-10)


@every_class
def test_pair_marginals_of_nine_words(flags: dict[str, bool]) -> None:
    """Consistent with the marginals, with conditioning, and with `arc_set_probability`."""
    n = 9
    scores = normal_scores(n, 60)
    distribution = TreeDistribution(scores, **flags)
    pairs, single = distribution.pair_marginals(), distribution.marginals
    np.testing.assert_allclose(pairs, pairs.transpose(2, 3, 0, 1), rtol=1e-12, atol=0)
    for m in range(1, n + 1):  # summed over the heads of one word, the other arc's marginal
        np.testing.assert_allclose(pairs[:, :, :, m].sum(axis=2), single, rtol=0, atol=1e-12)
    for h, m in [(0, 4), (2, 7), (9, 1)]:
        required = scores.copy()
        required[np.arange(n + 1) != h, m] = -np.inf
        conditional = marginals(required, **flags)
        np.testing.assert_allclose(pairs[h, m], single[h, m] * conditional, rtol=0, atol=1e-12)
        joint = distribution.arc_set_probability([(h, m), (2, 3)])
        assert joint == pytest.approx(pairs[h, m, 2, 3], rel=1e-9)


@every_class
def test_pair_marginals_of_a_long_sentence_are_refused(flags: dict[str, bool]) -> None:
    with pytest.raises(SizeError, match="64"):
        TreeDistribution(np.zeros((66, 66)), **flags).pair_marginals()


@every_class
@settings(max_examples=20)
@given(data=st.data())
def test_arc_set_probability(flags: dict[str, bool], data: st.DataObject) -> None:
    scores = data.draw(score_matrices(max_words=4))
    n = len(scores) - 1
    words, nodes = st.integers(1, n), st.integers(0, n)
    drawn = data.draw(st.lists(st.tuples(nodes, words), max_size=4))
    wanted = [(h, m) for h, m in drawn if h != m]
    expected = tree_distribution(scores, **flags).probability_that(lambda heads: set(wanted) <= set(arcs(heads)))
    got = TreeDistribution(scores, **flags).arc_set_probability(wanted)
    assert got == pytest.approx(float(expected), rel=1e-9, abs=1e-300)


@every_class
def test_arc_sets_no_tree_can_have(flags: dict[str, bool]) -> None:
    distribution = TreeDistribution(normal_scores(5, 61), **flags)
    assert distribution.arc_set_probability([]) == 1.0
    assert distribution.arc_set_probability([(1, 3), (2, 3)]) == 0.0
    assert distribution.arc_set_probability([(1, 2), (2, 3), (3, 1)]) == 0.0
    single = distribution.marginals[1, 3]
    assert distribution.arc_set_probability([(1, 3), (1, 3)]) == pytest.approx(single, rel=1e-10)
    for arc in [(3, 3), (1, 0), (6, 1), (-1, 2), (1, 6)]:
        with pytest.raises(ArcError, match=str(arc[1])):
            distribution.arc_set_probability([arc])


@every_class
def test_the_arcs_of_a_whole_tree_have_its_probability(flags: dict[str, bool]) -> None:
    distribution = TreeDistribution(normal_scores(12, 62, 2.0), **flags)
    heads = distribution.argmax()
    whole = distribution.arc_set_probability(arcs(heads.tolist()))
    assert whole == pytest.approx(np.exp(distribution.log_prob(heads)), rel=1e-9)


@every_class
@settings(max_examples=12)
@given(data=st.data())
def test_covariances_and_expectation(flags: dict[str, bool], data: st.DataObject) -> None:
    scores = data.draw(score_matrices(max_words=4))
    f, g = data.draw(arc_functions(scores)), data.draw(arc_functions(scores))
    distribution, reference = TreeDistribution(scores, **flags), tree_distribution(scores, **flags)
    value_f = {heads: part_sum(f, arcs(heads)) for heads in reference}
    value_g = {heads: part_sum(g, arcs(heads)) for heads in reference}
    mean_f = reference.expectation(value_f.__getitem__)
    mean_g = reference.expectation(value_g.__getitem__)
    covariance = reference.expectation(lambda t: (value_f[t] - mean_f) * (value_g[t] - mean_g))
    variance = reference.expectation(lambda t: (value_f[t] - mean_f) ** 2)
    assert distribution.expectation(f) == pytest.approx(float(mean_f), rel=0, abs=1e-10)
    assert distribution.covariance(f, g) == pytest.approx(float(covariance), rel=0, abs=1e-9)
    assert distribution.covariance(g, f) == pytest.approx(float(covariance), rel=0, abs=1e-9)
    assert distribution.covariance(f, f) == pytest.approx(float(variance), rel=0, abs=1e-9)
    with_arcs = distribution.covariance_with_arcs(f)
    expected = covariance_with_arcs(reference, f).astype(float)
    np.testing.assert_allclose(with_arcs, expected, rtol=0, atol=1e-10 * 4)


@every_class
@pytest.mark.parametrize("boost", BOOSTS)
def test_covariance_with_dominant_cycles(flags: dict[str, bool], boost: float) -> None:
    cycles = {
        "2-cycle": boost_cycle(normal_scores(5, 63), [2, 4], boost),
        "3-cycle": boost_cycle(normal_scores(5, 64), [3, 1, 2], boost),
        "both": boost_cycle(boost_cycle(normal_scores(5, 65), [4, 5], boost), [1, 2, 3], boost),
        "nested": boost_cycle(boost_cycle(normal_scores(5, 66), [1, 2], boost), [1, 2, 3], boost),
    }
    f = random_function(5, 67)
    largest = np.nanmax(np.abs(f))
    for name, scores in cycles.items():
        got = TreeDistribution(scores, **flags).covariance_with_arcs(f)
        expected = covariance_with_arcs(tree_distribution(scores, **flags), f).astype(float)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9 * largest, err_msg=name)


@every_class
@pytest.mark.parametrize("std", [10.0, 100.0, 1000.0])
def test_covariance_with_huge_spreads(flags: dict[str, bool], std: float) -> None:
    f = random_function(4, 68)
    for seed in range(3):
        scores = normal_scores(4, seed, std)
        scores[:, 1] = scores[:, 2] = 0.0  # some uncertainty is left
        got = TreeDistribution(scores, **flags).covariance_with_arcs(f)
        expected = covariance_with_arcs(tree_distribution(scores, **flags), f).astype(float)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9)


@every_class
@pytest.mark.parametrize("boost", [0.0, *BOOSTS])
def test_covariance_with_pruned_matrices(flags: dict[str, bool], boost: float) -> None:
    """Graphs in which some words cannot be the root's child, and two of those prefer each other."""
    f = random_function(5, 80)
    for seed, others in itertools.product(range(8), (1, 3)):
        scores = boost_cycle(pruned_scores(5, seed, (0, -1, -2), others), [4, 5], boost)
        got = TreeDistribution(scores, **flags).covariance_with_arcs(f)
        expected = covariance_with_arcs(tree_distribution(scores, **flags), f).astype(float)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9)


@every_class
@pytest.mark.parametrize("gap", [50.0, 150.0, 320.0, 600.0])
def test_covariance_with_ladders(flags: dict[str, bool], gap: float) -> None:
    scores, f = ladder_scores(0, gap), random_function(6, 81)
    got = TreeDistribution(scores, **flags).covariance_with_arcs(f)
    expected = covariance_with_arcs(tree_distribution(scores, **flags), f).astype(float)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9)


@every_class
def test_covariance_is_the_derivative_of_the_marginals(flags: dict[str, bool]) -> None:
    n = 12
    scores = normal_scores(n, 69)
    f = np.nan_to_num(random_function(n, 70))
    step = 1e-4
    difference = marginals(scores + step * f, **flags) - marginals(scores - step * f, **flags)
    got = TreeDistribution(scores, **flags).covariance_with_arcs(f)
    assert np.abs(got).max() > 0.05
    np.testing.assert_allclose(got, difference / (2 * step), rtol=0, atol=1e-7)


@every_class
@pytest.mark.parametrize("std", [1.0, 30.0])
def test_covariances_of_forty_words(flags: dict[str, bool], std: float) -> None:
    n = 40
    distribution = TreeDistribution(normal_scores(n, 71, std), **flags)
    f, g = random_function(n, 72), random_function(n, 73)
    with_arcs = distribution.covariance_with_arcs(f)
    # every word has exactly one head, whatever f is
    np.testing.assert_allclose(with_arcs[:, 1:].sum(axis=0), 0.0, rtol=0, atol=1e-11)
    inner = float((with_arcs * np.nan_to_num(g)).sum())
    assert distribution.covariance(f, g) == pytest.approx(inner, rel=1e-9, abs=1e-10)
    assert distribution.covariance(g, f) == pytest.approx(inner, rel=1e-9, abs=1e-10)
    assert distribution.covariance(f, f) >= 0
    expected = float((distribution.marginals * np.nan_to_num(f)).sum())
    assert distribution.expectation(f) == pytest.approx(expected, rel=1e-12)


def kernel_matrix(scores: Floats, single_root: bool) -> tuple[list[tuple[int, int]], Floats]:
    """DESIGN 5.2's K over all arcs, by the plain inverse: the naive twin."""
    n = len(scores) - 1
    weight = np.exp(scores)
    unit = np.vstack([np.zeros(n), np.eye(n)])
    m_matrix = np.zeros((n, n))
    every_arc = [(h, m) for h in range(n + 1) for m in range(1, n + 1) if h != m]
    for h, m in every_arc:
        if h > 0:
            m_matrix[m - 1, m - 1] += weight[h, m]
            m_matrix[m - 1, h - 1] -= weight[h, m]
        elif not single_root:
            m_matrix[m - 1, m - 1] += weight[h, m]
    vectors = np.array([unit[m] - unit[h] for h, m in every_arc])
    if single_root:
        m_matrix[:, 0] = weight[0, 1:]
        vectors[:, 0] = 0.0
        for i, (h, _) in enumerate(every_arc):
            if h == 0:
                vectors[i] = unit[1]
    b_matrix = np.linalg.inv(m_matrix)
    modifiers = np.array([m - 1 for _, m in every_arc])
    weights = np.array([weight[arc] for arc in every_arc])
    return every_arc, (vectors @ b_matrix)[:, modifiers] * weights


@pytest.mark.parametrize("single_root", [False, True])
def test_the_determinantal_twin(single_root: bool) -> None:
    scores = normal_scores(8, 74)
    every_arc, kernel = kernel_matrix(scores, single_root)
    distribution = TreeDistribution(scores, single_root=single_root)
    heads, modifiers = np.array(every_arc).T
    single = np.diag(kernel)
    np.testing.assert_allclose(distribution.marginals[heads, modifiers], single, atol=1e-12)

    pairs = distribution.pair_marginals()[heads[:, None], modifiers[:, None], heads[None], modifiers[None]]
    twin = np.outer(single, single) - kernel * kernel.T
    np.fill_diagonal(twin, single)
    np.testing.assert_allclose(pairs, twin, rtol=0, atol=1e-12)

    f = random_function(8, 75)
    covariance = -kernel * kernel.T
    np.fill_diagonal(covariance, single * (1 - single))
    got = distribution.covariance_with_arcs(f)[heads, modifiers]
    np.testing.assert_allclose(got, covariance @ f[heads, modifiers], rtol=0, atol=1e-11)

    rng = np.random.default_rng(76)
    for size in (3, 4, 5):
        chosen = rng.choice(len(every_arc), size, replace=False)
        expected = np.linalg.det(kernel[np.ix_(chosen, chosen)])
        got = distribution.arc_set_probability([every_arc[i] for i in chosen])
        assert got == pytest.approx(expected, rel=0, abs=1e-12)


@every_class
def test_constants_have_no_covariance(flags: dict[str, bool]) -> None:
    distribution = TreeDistribution(normal_scores(10, 77), **flags)
    ones = np.ones((11, 11))
    assert distribution.expectation(ones) == pytest.approx(10.0, rel=1e-13)
    np.testing.assert_allclose(distribution.covariance_with_arcs(ones), 0.0, rtol=0, atol=1e-12)
    if flags["single_root"]:
        root = np.zeros((11, 11))
        root[0] = 1.0
        assert distribution.expectation(root) == pytest.approx(1.0, rel=1e-12)
        assert distribution.covariance(root, root) == pytest.approx(0.0, rel=0, abs=1e-12)


@every_class
def test_functions_must_fit_the_scores(flags: dict[str, bool]) -> None:
    distribution = TreeDistribution(normal_scores(4, 78), **flags)
    with pytest.raises(ShapeError, match=r"\(5, 5\)"):
        distribution.expectation(np.zeros((4, 4)))
    bad = np.zeros((5, 5))
    bad[2, 3] = np.nan
    with pytest.raises(ScoresError, match=r"2, 3"):
        distribution.covariance_with_arcs(bad)


def test_rare_arcs_keep_their_joint_probability() -> None:
    """Two arcs of probability near 1e-100 each: a difference of products would lose all digits."""
    scores = normal_scores(5, 79)
    scores[1, 2] -= 230.0
    scores[3, 4] -= 230.0
    for single_root in (False, True):
        reference = tree_distribution(scores, projective=False, single_root=single_root)
        expected = reference.probability_that(lambda heads: heads[2] == 1 and heads[4] == 3)
        assert 0 < expected < Fraction(1, 10**190)
        got = TreeDistribution(scores, single_root=single_root).arc_set_probability([(1, 2), (3, 4)])
        assert got == pytest.approx(float(expected), rel=1e-9, abs=0)


# --- marginals' slopes by matrix products ---------------------------------------------------------


def naive_escapes(scores: Floats, single_root: bool) -> tuple[Floats, Floats, Floats]:
    """Weights [head, modifier] of a few words, escapes and 1 / totals, by one linear system a word."""
    n = len(scores) - 1
    weights = np.exp(with_garbage(scores, -np.inf))
    escape, inverse_totals = np.zeros((n, n)), np.ones(n + 1)
    row_sums = weights[int(single_root) :].sum(axis=0)
    for m in range(1, n + 1):
        others = np.array([h for h in range(1, n + 1) if h != m], dtype=int)
        system = np.diag(row_sums[others]) - weights[np.ix_(others, others)].T
        escape[others - 1, m - 1] = np.linalg.solve(system, weights[0, others])
        inverse_totals[m] = 1 / (weights[0, m] + weights[1:, m] @ escape[:, m - 1])
    return weights, escape, inverse_totals


def visits(scores: Floats, single_root: bool) -> float:
    return most_visits(*naive_escapes(scores, single_root), len(scores) - 1, single_root)


def slopes(scores: Floats, f: Floats, single_root: bool) -> Floats:
    """The derivatives by products, whether or not the walk circles for long."""
    n = len(scores) - 1
    weights, escape, inverse_totals = naive_escapes(scores, single_root)
    wide = np.full((n + 1, 2 * (n + 16)), np.nan)  # what lies beyond must not matter
    wide[:n, :n] = escape
    mu = np.zeros_like(weights)
    mu[0], mu[1:, 1:] = weights[0] * inverse_totals, weights[1:, 1:] * escape * inverse_totals[1:]
    result = np.zeros_like(weights)
    workspace = np.full((3, n + 1, n + 16), np.nan)
    values = np.where(np.isfinite(with_garbage(scores)), f, 0.0)
    slopes_by_products(weights, values, wide, inverse_totals, n, single_root, workspace, mu, result)
    return result


def with_forbidden_arcs(scores: Floats, seed: int) -> Floats:
    """A third of the arcs forbidden; neighbours stay connected both ways, so that any word can be the root's child."""
    n = len(scores) - 1
    forbidden = np.random.default_rng(seed).random(scores.shape) < 1 / 3
    forbidden[np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1))) == 1] = False
    return with_garbage(np.where(forbidden, -np.inf, scores))


@both_root_classes
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_products_give_the_covariances(single_root: bool, n: int) -> None:
    for seed in range(4):
        scores = normal_scores(n, 90 + seed, 1.5)
        scores = with_forbidden_arcs(scores, seed) if seed >= 2 else scores
        f = random_function(n, 94 + seed)
        exact = tree_distribution(scores, projective=False, single_root=single_root)
        expected = covariance_with_arcs(exact, f).astype(float)
        np.testing.assert_allclose(slopes(scores, f, single_root), expected, rtol=0, atol=2e-14)


def test_visits_are_those_of_the_walk() -> None:
    """Multi-root: powers of the walk's matrix of steps add up to the visits; how many more, if it starts there."""
    scores = boost_cycle(normal_scores(7, 98), [2, 5], 3.0)
    weights = np.exp(with_garbage(scores, -np.inf))
    steps = (weights / np.maximum(weights.sum(axis=0), 1e-300))[1:, 1:].T
    expected, walk = np.zeros((7, 7)), np.eye(7)
    for _ in range(20_000):
        expected += walk
        walk = walk @ steps
    more = (np.diag(expected) - expected).max()
    assert visits(scores, False) == pytest.approx(more, rel=1e-11)
    assert more > 1.5


def with_detour(scores: Floats, f: Floats, single_root: bool) -> tuple[Floats, Floats]:
    """Two more words that head no other, which leave the other words' distribution alone but not how it is computed.

    They prefer each other by 30 nats. Single-root, they make the graph reducible, too.
    """
    n = len(scores) - 1
    longer, function = np.full((n + 3, n + 3), -np.inf), np.ones((n + 3, n + 3))
    longer[: n + 1, : n + 1], function[: n + 1, : n + 1] = scores, f
    longer[1 if single_root else 0, n + 1 :] = -30.0
    longer[n + 1, n + 2] = longer[n + 2, n + 1] = 0.0
    return with_garbage(longer), with_garbage(function)


@both_root_classes
@pytest.mark.parametrize("std", [0.0, 1.0, 3.0, 5.0])
@pytest.mark.parametrize("forbidden", [False, True])
def test_products_agree_with_the_elimination(single_root: bool, std: float, forbidden: bool) -> None:
    by_products = 0
    for n, seed in [(2, 0), (3, 1), (9, 2), (16, 3), (23, 4), (40, 5), (41, 6)]:
        scores, f = normal_scores(n, 100 + seed, std), random_function(n, 110 + seed)
        scores = with_forbidden_arcs(scores, seed) if forbidden else scores
        longer, function = with_detour(scores, f, single_root)
        short = TreeDistribution(scores, single_root=single_root)
        detour = TreeDistribution(longer, single_root=single_root)
        np.testing.assert_allclose(short.marginals, detour.marginals[: n + 1, : n + 1], rtol=0, atol=1e-13)
        got = short.covariance_with_arcs(f)
        expected = detour.covariance_with_arcs(function)[: n + 1, : n + 1]
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)
        by_products += visits(scores, single_root) < MOST_VISITS
        assert visits(longer, False) > MOST_VISITS
    assert by_products >= 5


@both_root_classes
@pytest.mark.parametrize("cycle", [[2, 4], [3, 1, 2]])
def test_no_jump_where_the_way_changes(single_root: bool, cycle: list[int]) -> None:
    """A cycle that grows more confident until the walk circles too long for the products."""
    base, f = normal_scores(4, 120), random_function(4, 121)
    circled = []
    for boost in np.arange(0.0, 17.0):
        scores = boost_cycle(base, cycle, float(boost))
        circled.append(visits(scores, single_root))
        exact = tree_distribution(scores, projective=False, single_root=single_root)
        got = TreeDistribution(scores, single_root=single_root).covariance_with_arcs(f)
        np.testing.assert_allclose(got, covariance_with_arcs(exact, f).astype(float), rtol=0, atol=2e-12)
    assert min(circled) < MOST_VISITS / 30
    assert max(circled) > MOST_VISITS * 30


@both_root_classes
def test_products_are_given_up_before_they_err(single_root: bool) -> None:
    """Past the bound they lose what the elimination keeps."""
    scores, f = boost_cycle(normal_scores(5, 122), [2, 4], 25.0), random_function(5, 123)
    exact = tree_distribution(scores, projective=False, single_root=single_root)
    expected = covariance_with_arcs(exact, f).astype(float)
    assert visits(scores, single_root) > 1e9
    assert np.abs(slopes(scores, f, single_root) - expected).max() > 1e-9
    got = TreeDistribution(scores, single_root=single_root).covariance_with_arcs(f)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13)


@both_root_classes
def test_a_batch_of_both_ways_is_its_sentences(single_root: bool) -> None:
    """Lengths, forbidden arcs, confident cycles and reducible graphs mixed: nothing is left from the one before."""
    sentences = [
        normal_scores(12, 130),
        boost_cycle(normal_scores(7, 131), [1, 2], 20.0),
        normal_scores(3, 132),
        with_forbidden_arcs(normal_scores(9, 133), 0),
        np.zeros((1, 1)),
        pruned_scores(8, 134, (0, -1, -2), 2),
        normal_scores(1, 135),
        normal_scores(11, 136, 400.0),
        normal_scores(12, 137),
    ]
    lengths = [len(one) - 1 for one in sentences]
    batch, f = np.full((len(sentences), 13, 13), np.nan), np.full((len(sentences), 13, 13), np.nan)
    for b, one in enumerate(sentences):
        batch[b, : len(one), : len(one)] = one
        f[b, : len(one), : len(one)] = random_function(len(one) - 1, 140 + b)
    together = TreeDistribution(batch, single_root=single_root, lengths=lengths).covariance_with_arcs(f)
    for b, one in enumerate(sentences):
        size = len(one)
        alone = TreeDistribution(one, single_root=single_root).covariance_with_arcs(f[b, :size, :size])
        np.testing.assert_array_equal(together[b, :size, :size], alone)
        assert np.count_nonzero(together[b]) == np.count_nonzero(alone)
    assert np.count_nonzero(together) > 300


@every_class
def test_covariances_come_with_log_partition_and_marginals(flags: dict[str, bool]) -> None:
    scores = np.array([normal_scores(9, 150), boost_cycle(normal_scores(9, 151), [3, 4], 20.0)])
    f = np.nan_to_num(np.array([random_function(9, 152), random_function(9, 153)]))
    log_z, mu, slope = arc_covariances(as_batch(scores), f, TreeClass(**flags), executor_for(None))
    distribution = TreeDistribution(scores, **flags)
    np.testing.assert_allclose(log_z, distribution.log_partition, rtol=1e-13)
    np.testing.assert_allclose(mu, distribution.marginals, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(slope, distribution.covariance_with_arcs(f))
