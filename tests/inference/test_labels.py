"""Labelled trees: labels summed into arc scores and given back as labelled marginals."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from headway.errors import NoTreeError, ScoresError, ShapeError
from headway.inference import LabelledTreeDistribution, TreeDistribution

from .exact import assert_accurate, determinants, labelled_arcs, labelled_distribution, part_sum
from .strategies import TREE_CLASSES, Floats, boost_cycle, normal_scores, with_garbage

every_class = pytest.mark.parametrize("flags", TREE_CLASSES)


def labelled_scores(n: int, labels: int, seed: int, std: float = 1.0) -> Floats:
    scores = np.random.default_rng(seed).normal(0.0, std, (n + 1, n + 1, labels))
    return with_garbage(scores)


def no_garbage(scores: Floats) -> Floats:
    """Zeros where the conventions ignore, so that plain NumPy can sum over labels."""
    return with_garbage(scores, 0.0)


@every_class
@pytest.mark.parametrize("std", [1.0, 100.0, 1000.0])
def test_is_the_arc_distribution_of_the_summed_labels(flags: dict[str, bool], std: float) -> None:
    scores = labelled_scores(15, 6, 130, std)
    labelled = LabelledTreeDistribution(scores, **flags)
    summed = logsumexp(no_garbage(scores), axis=2)
    plain = TreeDistribution(summed, **flags)
    assert labelled.log_partition == pytest.approx(plain.log_partition, rel=1e-12)
    np.testing.assert_allclose(labelled.arc_marginals, plain.marginals, rtol=0, atol=1e-10)
    np.testing.assert_allclose(labelled.arcs.marginals, plain.marginals, rtol=0, atol=1e-10)
    np.testing.assert_allclose(labelled.marginals.sum(axis=2), labelled.arc_marginals, rtol=0, atol=1e-12)
    share = np.exp(no_garbage(scores) - summed[:, :, None])
    expected = plain.marginals[:, :, None] * share
    np.testing.assert_allclose(labelled.marginals, expected, rtol=0, atol=1e-10)


@every_class
def test_argmax_is_the_best_tree_of_best_labels(flags: dict[str, bool]) -> None:
    scores = labelled_scores(20, 5, 131)
    heads, labels = LabelledTreeDistribution(scores, **flags).argmax()
    best = TreeDistribution(no_garbage(scores).max(axis=2), **flags)
    np.testing.assert_array_equal(heads, best.argmax())
    words = np.arange(1, 21)
    np.testing.assert_array_equal(labels[1:], scores[heads[1:], words].argmax(axis=1))
    assert heads[0] == labels[0] == -1
    assert heads.dtype == labels.dtype == np.int64
    assert LabelledTreeDistribution(scores, **flags).max == pytest.approx(best.max, rel=1e-13)


@every_class
def test_one_label_is_no_label(flags: dict[str, bool]) -> None:
    scores = boost_cycle(normal_scores(10, 132), [2, 3, 4], 40.0)
    labelled, plain = (
        LabelledTreeDistribution(scores[..., None], **flags),
        TreeDistribution(scores, **flags),
    )
    assert labelled.log_partition == plain.log_partition
    np.testing.assert_array_equal(labelled.marginals[..., 0], plain.marginals)
    np.testing.assert_array_equal(labelled.argmax()[0], plain.argmax())
    np.testing.assert_array_equal(labelled.argmax()[1], [-1] + [0] * 10)
    assert labelled.entropy == pytest.approx(plain.entropy, rel=0, abs=1e-10)


@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("boost", [100.0, 600.0])
def test_stability(single_root: bool, boost: float) -> None:
    """All labels equal: L times the weights, L^-1 of the marginals."""
    scores = boost_cycle(boost_cycle(normal_scores(5, 133), [1, 2], boost), [3, 4, 5], boost)
    labelled = LabelledTreeDistribution(np.repeat(scores[..., None], 4, 2), single_root=single_root)
    log_partition, marginals = determinants(scores, single_root=single_root)
    for label in range(4):
        assert_accurate(
            labelled.log_partition - 5 * np.log(4),
            labelled.marginals[..., label] * 4,
            log_partition,
            marginals,
        )


@every_class
def test_forbidden_labels(flags: dict[str, bool]) -> None:
    scores = labelled_scores(3, 2, 134)
    scores[1, 2, 0] = -np.inf
    scores[0, 3, :] = -np.inf
    labelled, reference = (
        LabelledTreeDistribution(scores, **flags),
        labelled_distribution(scores, **flags),
    )
    expected = reference.marginals(scores.shape, labelled_arcs).astype(float)
    np.testing.assert_allclose(labelled.marginals, expected, rtol=0, atol=1e-12)
    assert labelled.marginals[1, 2, 0] == 0.0
    assert labelled.log_prob(np.array([-1, 0, 1, 1]), np.array([-1, 0, 0, 0])) == -np.inf
    scores[:, 2] = -np.inf
    with pytest.raises(NoTreeError) as caught:
        LabelledTreeDistribution(scores, **flags).log_partition  # noqa: B018
    assert caught.value.words == (2,)


@every_class
def test_samples_follow_the_distribution(flags: dict[str, bool]) -> None:
    scores = boost_cycle(labelled_scores(2, 2, 135), [1, 2], 40.0)
    reference = labelled_distribution(scores, **flags)
    size = 20_000
    heads, labels = LabelledTreeDistribution(scores, **flags).sample(size, rng=12)
    assert heads.shape == labels.shape == (size, 3)
    drawn = Counter((tuple(h), tuple(y)) for h, y in zip(heads.tolist(), labels.tolist(), strict=True))
    assert set(drawn) <= set(reference)
    expected = size * reference.probabilities
    common = expected >= 5
    observed = np.array([drawn[tree] for tree in reference])
    groups_observed = [*observed[common], observed[~common].sum()]
    groups_expected = [*expected[common], expected[~common].sum()]
    if groups_expected[-1] == 0:
        groups_observed.pop(), groups_expected.pop()
    assert len(groups_expected) > 2
    assert stats.chisquare(groups_observed, groups_expected).pvalue > 1e-4


@every_class
def test_a_batch_is_its_sentences(flags: dict[str, bool]) -> None:
    lengths = [4, 2, 0]
    batch = np.full((3, 5, 5, 3), np.nan)
    for b, n in enumerate(lengths):
        batch[b, : n + 1, : n + 1] = labelled_scores(n, 3, 136 + b)
    whole = LabelledTreeDistribution(batch, **flags, lengths=lengths)
    heads, labels = whole.argmax()
    drawn_heads, drawn_labels = whole.sample(4, rng=13)
    assert whole.marginals.shape == batch.shape
    assert drawn_heads.shape == drawn_labels.shape == (3, 4, 5)
    for b, n in enumerate(lengths):
        alone = LabelledTreeDistribution(batch[b, : n + 1, : n + 1], **flags)
        assert whole.log_partition[b] == alone.log_partition
        assert whole.max[b] == alone.max
        assert whole.entropy[b] == alone.entropy
        np.testing.assert_array_equal(whole.marginals[b, : n + 1, : n + 1], alone.marginals)
        np.testing.assert_array_equal(heads[b, : n + 1], alone.argmax()[0])
        np.testing.assert_array_equal(labels[b, : n + 1], alone.argmax()[1])
        for padded in (heads[b], labels[b], *drawn_heads[b], *drawn_labels[b]):
            assert (padded[n + 1 :] == -1).all()
        outside = whole.marginals[b].copy()
        outside[: n + 1, : n + 1] = 0.0
        assert not outside.any()
    np.testing.assert_allclose(whole.log_prob(heads, labels), whole.max - whole.log_partition, rtol=0, atol=1e-12)


def labelled_function(n: int, labels: int, seed: int) -> Floats:
    """Dyadic values, which the exact reference sums quickly; nan where it must be ignored."""
    return with_garbage(np.random.default_rng(seed).integers(-64, 65, (n + 1, n + 1, labels)) / 32.0)


@every_class
@pytest.mark.parametrize("boost", [0.0, 3.0, 40.0])
def test_covariance_with_labelled_arcs(flags: dict[str, bool], boost: float) -> None:
    """Against every labelled tree; some labels are forbidden, one arc with all of its labels."""
    scores, f = boost_cycle(labelled_scores(3, 2, 140), [1, 2], boost), labelled_function(3, 2, 141)
    scores[1, 2, 0] = scores[0, 1, 1] = -np.inf
    scores[0, 3, :] = -np.inf
    f[0, 3, :] = f[1, 2, 0] = np.nan
    reference = labelled_distribution(scores, **flags)
    value = {tree: part_sum(f, labelled_arcs(tree)) for tree in reference}
    mean = reference.expectation(value.__getitem__)
    expected = np.zeros(scores.shape)
    for arc in {arc for tree in reference for arc in labelled_arcs(tree)}:
        expected[arc] = reference.expectation(lambda tree, arc=arc: (value[tree] - mean) * (arc in labelled_arcs(tree)))
    got = LabelledTreeDistribution(scores, **flags).covariance_with_arcs(f)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)
    assert np.abs(expected).max() > 0.1
    assert not got[0, 3].any()


@every_class
def test_covariance_with_labelled_arcs_is_the_derivative_of_their_marginals(flags: dict[str, bool]) -> None:
    scores, f = labelled_scores(9, 4, 142), np.nan_to_num(labelled_function(9, 4, 143))
    step = 1e-4
    above, below = (LabelledTreeDistribution(scores + x * f, **flags).marginals for x in (step, -step))
    got = LabelledTreeDistribution(scores, **flags).covariance_with_arcs(f)
    assert np.abs(got).max() > 0.05
    np.testing.assert_allclose(got, (above - below) / (2 * step), rtol=0, atol=1e-7)


@every_class
def test_labelled_covariances_of_a_batch(flags: dict[str, bool]) -> None:
    """Each sentence's own; and what the labels of an arc share is the covariance of unlabelled arcs."""
    lengths = [4, 2, 0]
    batch, f = np.full((3, 5, 5, 3), np.nan), np.full((3, 5, 5, 3), np.nan)
    for b, n in enumerate(lengths):
        batch[b, : n + 1, : n + 1] = labelled_scores(n, 3, 144 + b)
        f[b, : n + 1, : n + 1] = labelled_function(n, 3, 147 + b)
    whole = LabelledTreeDistribution(batch, **flags, lengths=lengths)
    got = whole.covariance_with_arcs(f)
    assert got.shape == batch.shape
    for b, n in enumerate(lengths):
        alone = LabelledTreeDistribution(batch[b, : n + 1, : n + 1], **flags)
        np.testing.assert_array_equal(
            got[b, : n + 1, : n + 1], alone.covariance_with_arcs(f[b, : n + 1, : n + 1]), strict=True
        )
        outside = got[b].copy()
        outside[: n + 1, : n + 1] = 0.0
        assert not outside.any()
    same = np.repeat(f[..., :1], 3, axis=-1)  # a function that does not look at the label
    with_arcs = whole.arcs.covariance_with_arcs(f[..., 0])
    np.testing.assert_allclose(whole.covariance_with_arcs(same).sum(axis=-1), with_arcs, rtol=0, atol=1e-13)


def test_errors_name_the_cell() -> None:
    scores = labelled_scores(3, 2, 139)
    scores[1, 2, 1] = np.nan
    with pytest.raises(ScoresError, match=r"\[1, 2"):
        LabelledTreeDistribution(scores)
    with pytest.raises(ScoresError, match=r"sentence 1.*\[1, 2"):
        LabelledTreeDistribution(np.stack([np.zeros_like(scores), scores]))
    with pytest.raises(ShapeError, match=r"\(4, 4\)"):
        LabelledTreeDistribution(np.zeros((4, 4)))
    with pytest.raises(ShapeError, match=r"\(4, 4, 0\)"):
        LabelledTreeDistribution(np.zeros((4, 4, 0)))


def test_a_function_of_another_shape() -> None:
    with pytest.raises(ShapeError, match=r"f has shape \(3, 3\); expected that of scores, \(3, 3, 2\)"):
        LabelledTreeDistribution(np.zeros((3, 3, 2))).covariance_with_arcs(np.zeros((3, 3)))
