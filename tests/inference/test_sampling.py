"""Samplers draw from the distribution: chi-square tests with fixed seeds, p-value above 1e-4.

With and without replacement, all four classes, dominant cycles (where a walk that is only erased
loop by loop would not end), the single-root trap, independence of consecutive draws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

import numpy as np
import pytest
from scipy import stats

from headway.inference import LabelledTreeDistribution, TreeDistribution, forbid

from .exact import Exact, Heads, in_class, tree_distribution
from .strategies import TREE_CLASSES, Floats, boost_cycle, normal_scores

every_class = pytest.mark.parametrize("flags", TREE_CLASSES)
SIGNIFICANCE = 1e-4


def p_value(draws: Iterable[Hashable], law: Mapping[Hashable, float]) -> float:
    """Chi-square of the draws against the law, rare outcomes (fewer than 5 expected) pooled."""
    counts = Counter(draws)
    assert counts.keys() <= law.keys(), "something impossible was drawn"
    size = counts.total()
    common = [outcome for outcome, p in law.items() if size * p >= 5]
    observed = [counts[outcome] for outcome in common]
    expected = [size * law[outcome] for outcome in common]
    pooled_observed, pooled_expected = size - sum(observed), size - sum(expected)
    if pooled_expected >= 5:
        observed.append(pooled_observed)
        expected.append(pooled_expected)
    else:
        observed[-1] += pooled_observed
        expected[-1] += pooled_expected
    assert len(observed) > 1, "a test with one outcome tests nothing"
    return float(stats.chisquare(observed, expected).pvalue)


def law_of(exact: Exact[Heads]) -> dict[Hashable, float]:
    return dict(zip(exact, exact.probabilities, strict=True))


def rows(heads: np.ndarray) -> list[Heads]:
    return [tuple(row) for row in heads.tolist()]


def scores_of(name: str) -> Floats:
    match name:
        case "normal":
            return normal_scores(4, 90)
        case "spread":
            return normal_scores(4, 91, 4.0)
        case "uniform":
            return np.zeros((4, 4))
        case "forbidden":
            return forbid(normal_scores(4, 92), [(0, 1), (2, 1), (3, 2), (4, 3)])
        case "two words":
            return normal_scores(2, 93)
    length, boost = name.split("-cycle+")
    return boost_cycle(normal_scores(4, 94), [3, 1, 2][: int(length)], float(boost))


@every_class
@pytest.mark.parametrize(
    "name",
    ["normal", "spread", "uniform", "forbidden", "two words"]
    + [f"{length}-cycle+{boost}" for length in (2, 3) for boost in (10, 40, 100, 600)],
)
def test_draws_follow_the_distribution(flags: dict[str, bool], name: str) -> None:
    scores = scores_of(name)
    drawn = TreeDistribution(scores, **flags).sample(20_000, rng=1)
    assert drawn.shape == (20_000, len(scores))
    assert drawn.dtype == np.int64
    law = law_of(tree_distribution(scores, **flags))
    assert p_value(rows(drawn), law) > SIGNIFICANCE


@every_class
def test_twelve_words_marginal_by_marginal(flags: dict[str, bool]) -> None:
    scores = boost_cycle(normal_scores(12, 95), [2, 3], 40.0)
    distribution = TreeDistribution(scores, **flags)
    size = 20_000
    drawn = distribution.sample(size, rng=2)
    assert all(in_class(heads, **flags) for heads in drawn[:200].tolist())
    for m in range(1, 13):
        law = {h: p for h, p in enumerate(distribution.marginals[:, m]) if p > 0}
        assert p_value(drawn[:, m].tolist(), law) > SIGNIFICANCE / 12


@pytest.mark.parametrize("projective", [False, True])
def test_the_single_root_trap(projective: bool) -> None:
    """Choosing the root by its weights and then walking is not the distribution: here far off."""
    scores = np.array(
        [
            [np.nan, 0.0, 0.0, 0.0],
            [np.nan, np.nan, 2.0, 1.0],
            [np.nan, -2.0, np.nan, 0.0],
            [np.nan, -3.0, -1.0, np.nan],
        ]
    )
    flags = {"projective": projective, "single_root": True}
    law = law_of(tree_distribution(scores, **flags))
    root_law = {word: sum(p for t, p in law.items() if t[word] == 0) for word in (1, 2, 3)}
    assert root_law[1] > 0.8  # the root's own weights say 1/3
    drawn = TreeDistribution(scores, **flags).sample(20_000, rng=3)
    roots = (np.argmax(drawn[:, 1:] == 0, axis=1) + 1).tolist()
    assert p_value(roots, root_law) > SIGNIFICANCE
    assert p_value(rows(drawn), law) > SIGNIFICANCE


@every_class
def test_consecutive_draws_are_independent(flags: dict[str, bool]) -> None:
    scores = boost_cycle(normal_scores(3, 96), [1, 2], 10.0)
    drawn = rows(TreeDistribution(scores, **flags).sample(20_000, rng=4))
    common = [tree for tree, count in Counter(drawn).items() if count > 400]
    assert len(common) > 1
    for lag in (1, 2):
        table = np.zeros((len(common), len(common)))
        for first, second in zip(drawn[:-lag:2], drawn[lag::2], strict=False):
            if first in common and second in common:
                table[common.index(first), common.index(second)] += 1
        assert stats.chi2_contingency(table).pvalue > SIGNIFICANCE


@every_class
def test_seeds_and_generators(flags: dict[str, bool]) -> None:
    distribution = TreeDistribution(normal_scores(8, 97), **flags)
    seeded = distribution.sample(20, rng=5)
    np.testing.assert_array_equal(distribution.sample(20, rng=5), seeded)
    np.testing.assert_array_equal(distribution.sample(20, rng=np.random.default_rng(5)), seeded)
    generator = np.random.default_rng(5)
    first, second = distribution.sample(20, rng=generator), distribution.sample(20, rng=generator)
    np.testing.assert_array_equal(first, seeded)
    assert (first != second).any()


@every_class
def test_no_draws_and_no_words(flags: dict[str, bool]) -> None:
    assert TreeDistribution(np.zeros((4, 4)), **flags).sample(0, rng=6).shape == (0, 4)
    empty = TreeDistribution(np.zeros((1, 1)), **flags)
    np.testing.assert_array_equal(empty.sample(3, rng=6), [[-1], [-1], [-1]])
    np.testing.assert_array_equal(empty.sample_without_replacement(3, rng=6), [[-1]])


@every_class
def test_a_batch_draws_for_every_sentence(flags: dict[str, bool]) -> None:
    batch = np.zeros((3, 5, 5))
    batch[0], batch[1, :4, :4] = normal_scores(4, 98), normal_scores(3, 99, 3.0)
    drawn = TreeDistribution(batch, **flags, lengths=[4, 3, 0]).sample(10_000, rng=7)
    assert drawn.shape == (3, 10_000, 5)
    for b, n in enumerate([4, 3]):
        assert (drawn[b, :, n + 1 :] == -1).all()
        law = law_of(tree_distribution(batch[b, : n + 1, : n + 1], **flags))
        assert p_value(rows(drawn[b, :, : n + 1]), law) > SIGNIFICANCE
    assert (drawn[2] == -1).all()


@every_class
@pytest.mark.parametrize("name", ["normal", "forbidden", "2-cycle+600", "uniform"])
def test_without_replacement_exhausts_the_support(flags: dict[str, bool], name: str) -> None:
    scores = scores_of(name)
    support = set(tree_distribution(scores, **flags))
    distribution = TreeDistribution(scores, **flags)
    for k in (1, len(support) // 2 + 1, len(support), len(support) + 10):
        drawn = rows(distribution.sample_without_replacement(k, rng=8))
        assert len(drawn) == len(set(drawn)) == min(k, len(support))
        assert set(drawn) <= support


def sequential_law(law: Mapping[Hashable, float]) -> dict[Hashable, float]:
    """Of the first two draws: p_i, then p_j among what is left."""
    return {
        (first, second): p * q / (1 - p) for first, p in law.items() for second, q in law.items() if first != second
    }


@every_class
@pytest.mark.parametrize("boost", [0.0, 100.0])
def test_without_replacement_follows_the_sequential_law(flags: dict[str, bool], boost: float) -> None:
    scores = boost_cycle(normal_scores(3, 100), [1, 2], boost)
    law = law_of(tree_distribution(scores, **flags))
    copies = np.repeat(scores[None], 6_000, axis=0)
    drawn = TreeDistribution(copies, **flags).sample_without_replacement(2, rng=9)
    pairs = [tuple(rows(pair)) for pair in drawn]
    assert all(len(pair) == 2 for pair in pairs)
    assert p_value((first for first, _ in pairs), law) > SIGNIFICANCE
    assert p_value(pairs, sequential_law(law)) > SIGNIFICANCE


@every_class
def test_without_replacement_one_sentence_at_a_time(flags: dict[str, bool]) -> None:
    scores = normal_scores(3, 101)
    distribution = TreeDistribution(scores, **flags)
    generator = np.random.default_rng(10)
    pairs = [tuple(rows(distribution.sample_without_replacement(2, rng=generator))) for _ in range(1_500)]
    law = sequential_law(law_of(tree_distribution(scores, **flags)))
    assert p_value(pairs, law) > SIGNIFICANCE


@every_class
def test_without_replacement_from_many_trees(flags: dict[str, bool]) -> None:
    distribution = TreeDistribution(normal_scores(20, 102), **flags)
    drawn = rows(distribution.sample_without_replacement(200, rng=11))
    assert len(set(drawn)) == 200
    assert all(in_class(heads, **flags) for heads in drawn)


def test_one_tree_and_a_generator_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch's distributions draw: `sample()` gives one tree, another every time."""
    real, hidden = np.random.default_rng, np.random.default_rng(7)
    monkeypatch.setattr(np.random, "default_rng", lambda seed=None: hidden if seed is None else real(seed))
    scores = normal_scores(4, 95)
    one, batch = TreeDistribution(scores), TreeDistribution(np.stack([scores, scores]), lengths=[4, 2])
    np.testing.assert_array_equal(one.sample(rng=3), one.sample(1, 3)[0])
    np.testing.assert_array_equal(batch.sample(rng=3), batch.sample(1, 3)[:, 0])
    drawn = [one.sample() for _ in range(600)]
    law = law_of(tree_distribution(scores, projective=False, single_root=True))
    assert p_value(rows(np.array(drawn)), law) > SIGNIFICANCE
    assert len(set(rows(one.sample(50)))) > 1
    assert len(one.sample_without_replacement(3)) == 3
    labelled = LabelledTreeDistribution(np.stack([scores, -scores], axis=-1))
    heads, labels = labelled.sample(rng=5)
    many_heads, many_labels = labelled.sample(1, 5)
    assert (heads.tolist(), labels.tolist()) == (many_heads[0].tolist(), many_labels[0].tolist())
    assert labelled.sample(4)[1].shape == (4, 5)


def test_mode_and_mean() -> None:
    scores = normal_scores(4, 96)
    law = law_of(tree_distribution(scores, projective=False, single_root=True))
    one = TreeDistribution(scores)
    assert tuple(one.mode.tolist()) == max(law, key=lambda tree: law[tree])
    mean = np.zeros((5, 5))
    for heads, probability in law.items():
        for m, h in enumerate(heads[1:], start=1):  # type: ignore[index]
            mean[h, m] += probability
    np.testing.assert_allclose(one.mean, mean, atol=1e-12)
    labelled = LabelledTreeDistribution(np.stack([scores, scores - 1], axis=-1))
    assert [each.tolist() for each in labelled.mode] == [one.mode.tolist(), [-1, 0, 0, 0, 0]]
    np.testing.assert_allclose(labelled.mean.sum(axis=-1), mean, atol=1e-12)
