"""The distributions of headway.torch: shapes, dtypes, errors, samples, partial trees, two of them at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

torch = pytest.importorskip("torch")

from torch import Tensor

from headway import TreeDistribution as InNumpy
from headway.errors import ArgumentError, DtypeError, HeadsError, LengthsError, NoTreeError, ScoresError, ShapeError
from headway.torch import LabelledTreeDistribution, TreeDistribution
from headway.torch.kernels import Kernels
from headway.torch.numba_kernels import NumbaKernels
from headway.torch.plain_kernels import PlainKernels
from tests.inference import exact
from tests.inference.strategies import TREE_CLASSES, Floats, score_pairs
from tests.torch.cases import LENGTHS, TREES, masked, random_scores
from tests.torch.each_kernel import each_kernel, only

every_class = pytest.mark.parametrize("flags", TREE_CLASSES)


# --------------------------------------------------------------------------------- shapes and dtypes


@every_class
def test_any_number_of_batch_dimensions(flags: dict[str, bool]) -> None:
    flat = TreeDistribution(masked(random_scores(1)), LENGTHS, **flags)
    d = TreeDistribution(flat.scores.reshape(2, 3, 5, 5), LENGTHS.reshape(2, 3), **flags)
    assert d.batch_shape == (2, 3)
    assert d.event_shape == (5,)
    for name in ("log_partition", "marginals", "entropy", "max", "mode"):
        torch.testing.assert_close(getattr(d, name), getattr(flat, name).unflatten(0, (2, 3)))
    torch.testing.assert_close(d.log_prob(TREES.reshape(2, 3, 5)), flat.log_prob(TREES).reshape(2, 3))
    drawn = d.sample((4, 7))
    assert drawn.shape == (4, 7, 2, 3, 5)
    assert d.log_prob(drawn).shape == (4, 7, 2, 3)
    one = TreeDistribution(flat.scores[0], **flags)
    assert one.batch_shape == ()
    assert one.log_partition.shape == ()
    torch.testing.assert_close(one.marginals, flat.marginals[0])
    torch.testing.assert_close(TreeDistribution(flat.scores[1], LENGTHS[1], **flags).marginals, flat.marginals[1])


def test_heads_of_samples_are_scored_one_by_one() -> None:
    d = TreeDistribution(masked(random_scores(2)), LENGTHS)
    drawn = d.sample(50, generator=torch.Generator().manual_seed(0))
    expected = torch.stack([d.log_prob(heads) for heads in drawn])
    torch.testing.assert_close(d.log_prob(drawn), expected)
    assert d.log_prob(drawn).isfinite().all()


def test_mode_mean_and_one_sample_by_torchs_names() -> None:
    d = TreeDistribution(torch.randn(2, 5, 5, generator=torch.Generator().manual_seed(1)))
    assert torch.equal(d.mode, d.argmax())
    assert torch.equal(d.mean, d.marginals)
    assert d.sample().shape == (2, 5)


def test_expand() -> None:
    d = TreeDistribution(masked(random_scores(3)), LENGTHS, projective=True, validate_args=False)
    more = d.expand((4, 6))
    assert more.batch_shape == (4, 6)
    assert more.trees == d.trees
    assert more.scores.data_ptr() == d.scores.data_ptr()
    torch.testing.assert_close(more.marginals, d.marginals.expand(4, 6, 5, 5))
    assert not more._validate_args


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_raised(dtype: torch.dtype) -> None:
    scores = torch.randn(2, 5, 5, dtype=dtype, requires_grad=True)
    d = TreeDistribution(scores)
    assert d.marginals.dtype == torch.float32
    torch.testing.assert_close(d.marginals, TreeDistribution(scores.float()).marginals)
    d.log_partition.sum().backward()
    torch.testing.assert_close(scores.grad, d.marginals.to(dtype))


def test_scores_that_are_not_contiguous() -> None:
    scores = random_scores(4).transpose(1, 2)
    torch.testing.assert_close(TreeDistribution(scores).marginals, TreeDistribution(scores.contiguous()).marginals)


# --------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (lambda s: (s.numpy(),), ArgumentError, "torch.as_tensor"),
        (lambda s: (s.long(),), DtypeError, "int64"),
        (lambda s: (s[0, 0],), ShapeError, r"\(5,\)"),
        (lambda s: (s[:, :4],), ShapeError, r"\(6, 4, 5\)"),
        (lambda s: (s[:, :0, :0],), ShapeError, "root included"),
        (lambda s: (s, [4, 4]), LengthsError, r"\(2,\)"),
        (lambda s: (s, LENGTHS.double()), LengthsError, "integers"),
        (lambda s: (s, [4, 4, 5, 4, 4, 4]), LengthsError, "sentence 2: .*5"),
        (lambda s: (s, [4, -1, 4, 4, 4, 4]), LengthsError, "sentence 1"),
        (lambda s: (s, None, "no"), ArgumentError, "projective"),
        (lambda s: (with_cell(s, torch.nan),), ScoresError, r"sentence 3: scores\[1, 2\] is nan"),
        (lambda s: (with_cell(s, torch.inf),), ScoresError, r"sentence 3: scores\[1, 2\] is inf"),
        (lambda s: (with_cell(s, -1e301),), ScoresError, "use -inf"),
        (lambda s: (with_cell(s, 1e35).float(),), ScoresError, "use -inf"),
        (lambda s: (with_cell(s, torch.nan)[3],), ScoresError, r"^scores\[1, 2\]"),
    ],
)
def test_errors_of_the_constructor(
    arguments: Callable[[Tensor], tuple[Any, ...]], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        TreeDistribution(*arguments(random_scores(5)))


def with_cell(scores: Tensor, value: float) -> Tensor:
    scores = scores.clone()
    scores[3, 1, 2] = value
    return scores


@pytest.mark.parametrize(
    ("heads", "says"),
    [
        (TREES[:5], r"\(5, 5\)"),
        (TREES[:, :4], r"\(6, 4\)"),
        (TREES.double(), "float64"),
        (torch.where(TREES == 3, 5, TREES), r"sentence 0: heads\[2\] is 5; expected 0 \(the root\) to 4"),
        (torch.where(TREES == 3, -1, TREES), r"heads\[2\] is -1"),
        (TREES.clamp(min=0), r"heads\[0\] is 0; expected -1"),
        (torch.tensor(0), r"\(\)"),
    ],
)
def test_errors_of_heads(heads: Tensor, says: str) -> None:
    d = TreeDistribution(masked(random_scores(6)), LENGTHS)
    with pytest.raises(HeadsError, match=says):
        d.log_prob(heads)


def test_heads_within_the_padding_only_count_up_to_the_length() -> None:
    d = TreeDistribution(masked(random_scores(7)), LENGTHS)
    with pytest.raises(HeadsError, match=r"sentence 2: heads\[1\] is 3; expected 0 \(the root\) to 2"):
        d.score(torch.tensor([[-1, 0, 3, 1, 3]] * 2 + [[-1, 3, 0, 0, 0]] * 4))
    padding = torch.where(torch.arange(5) > LENGTHS[:, None], 99, TREES)
    torch.testing.assert_close(d.log_prob(padding), d.log_prob(TREES))


def test_other_errors() -> None:
    d = TreeDistribution(random_scores(8))
    with pytest.raises(ShapeError, match=r"f has shape \(4, 4\)"):
        d.expectation(torch.zeros(4, 4))
    with pytest.raises(ArgumentError, match="TreeDistribution"):
        d.kl(torch.zeros(1))
    with pytest.raises(ShapeError, match="other lengths"):
        d.kl(TreeDistribution(random_scores(8)[:3]))
    with pytest.raises(ShapeError, match="other lengths"):
        d.cross_entropy(TreeDistribution(random_scores(8), LENGTHS))


@every_class
def test_no_tree(flags: dict[str, bool]) -> None:
    """Named when somebody looks; -inf and zeros when nobody does."""
    scores = masked(random_scores(9))
    scores[2, :, 1] = -torch.inf
    d = TreeDistribution(scores, LENGTHS, **flags)
    for ask in (
        lambda: d.log_partition,
        lambda: d.marginals,
        d.argmax,
        d.mbr,
        d.sample,
        lambda: d.entropy,
        lambda: d.covariance_with_arcs(scores),
        lambda: TreeDistribution(scores.clone().requires_grad_(), LENGTHS, **flags).nll(TREES),
    ):
        with pytest.raises(
            NoTreeError, match="sentence 2: no tree exists: every head of word 1 is forbidden"
        ) as caught:
            ask()
        assert caught.value.words == (1,)
        assert caught.value.sentence == 2
    silent = TreeDistribution(scores, LENGTHS, **flags, validate_args=False)
    assert silent.log_partition[2] == -torch.inf
    assert silent.marginals.isfinite().all()
    assert not silent.marginals[2].any()
    assert (silent.argmax()[2] == -1).all()
    assert silent.max[2] == -torch.inf
    torch.testing.assert_close(silent.max[[0, 1, 3]], d._like(scores[[0, 1, 3]], LENGTHS[[0, 1, 3]]).max)
    for kernels in (NumbaKernels(), PlainKernels()):
        with only(kernels):
            assert (silent.sample(3)[:, 2] == -1).all()
            assert (silent.sample(3)[:, 0, 1:] >= 0).all()
    with pytest.raises(NoTreeError, match=r"^no tree exists"):
        TreeDistribution(scores[2], LENGTHS[2], **flags).log_partition  # noqa: B018


def test_values_are_checked_whatever_torch_compile_has_switched_off() -> None:
    scores = with_cell(random_scores(10), torch.nan)
    default = torch.distributions.Distribution._validate_args
    try:
        torch.distributions.Distribution.set_default_validate_args(False)
        with pytest.raises(ScoresError):
            TreeDistribution(scores)
        TreeDistribution(scores, validate_args=False)
    finally:
        torch.distributions.Distribution.set_default_validate_args(default)


# --------------------------------------------------------------------------------------- the rest of the answers


@each_kernel
@every_class
def test_the_same_answers_as_headway_inference(flags: dict[str, bool], kernels: Kernels) -> None:
    scores, other, f, g = (random_scores(seed, 2.0) for seed in (11, 12, 13, 14))
    scores, other = masked(scores), masked(other)
    expected = InNumpy(scores.numpy(), lengths=LENGTHS.numpy(), **flags)
    expected_other = InNumpy(other.numpy(), lengths=LENGTHS.numpy(), **flags)
    with only(kernels):
        d, q = TreeDistribution(scores, LENGTHS, **flags), TreeDistribution(other, LENGTHS, **flags)
        pairs = [
            (d.max, expected.max),
            (d.mbr(), expected.mbr()),
            (d.score(TREES), expected.score(TREES.numpy())),
            (d.nll(TREES), -expected.log_prob(TREES.numpy())),
            (d.expectation(f), expected.expectation(f.numpy())),
            (d.covariance(f, g), expected.covariance(f.numpy(), g.numpy())),
            (d.covariance_with_arcs(f), expected.covariance_with_arcs(f.numpy())),
            (d.cross_entropy(q), expected.cross_entropy(expected_other)),
            (d.kl(q), expected.kl(expected_other)),
            (torch.distributions.kl_divergence(d, q), expected.kl(expected_other)),
            (d.kl(d), np.zeros(6)),
        ]
    for got, right in pairs:
        np.testing.assert_allclose(got.numpy(), right, rtol=0, atol=1e-10)


def test_a_function_that_expands_to_the_scores() -> None:
    d, f = TreeDistribution(random_scores(15)), random_scores(16)[0]
    torch.testing.assert_close(d.expectation(f), d.expectation(f.expand(6, 5, 5)))
    words = torch.arange(5.0, dtype=torch.float64)
    torch.testing.assert_close(d.expectation(words), torch.full((6,), 10.0, dtype=torch.float64))


@each_kernel
@pytest.mark.parametrize("of", TREE_CLASSES)
@pytest.mark.parametrize("other", TREE_CLASSES)
@settings(max_examples=10)
@given(pair=score_pairs(max_words=4))
def test_cross_entropy_between_any_two_classes(
    of: dict[str, bool], other: dict[str, bool], kernels: Kernels, pair: tuple[Floats, Floats]
) -> None:
    """Infinite exactly if the one has a tree that the other lacks."""
    first, second = (np.clip(scores, -60.0, 60.0, where=np.isfinite(scores), out=scores.copy()) for scores in pair)
    p, q = exact.tree_distribution(first, **of), exact.tree_distribution(second, **other)
    with only(kernels):
        got = TreeDistribution(torch.tensor(first), **of).cross_entropy(TreeDistribution(torch.tensor(second), **other))
    assert got.item() == pytest.approx(p.cross_entropy(q), rel=1e-11, abs=1e-9)


def test_cross_entropy_is_infinite_however_improbable_the_forbidden_arc() -> None:
    scores = torch.zeros(3, 3)
    scores[0, 1] = -2000.0
    other = torch.zeros(3, 3)
    other[0, 1] = -torch.inf
    assert TreeDistribution(scores).marginals[0, 1] == 0
    assert TreeDistribution(scores).cross_entropy(TreeDistribution(other)) == torch.inf


@each_kernel
@every_class
def test_partial_trees_by_enumeration(flags: dict[str, bool], kernels: Kernels) -> None:
    scores = np.random.default_rng(17).normal(size=(5, 5))
    scores[4, 2] = -np.inf
    reference = exact.tree_distribution(scores, **flags)
    with only(kernels):
        d = TreeDistribution(torch.tensor(scores), **flags)
        for known in ({}, {1: 2}, {2: 1, 4: 3}, {1: 0, 2: 0}, {1: 2, 2: 1}, {2: 4}, {1: 3, 2: 3, 3: 0, 4: 3}):
            heads = torch.tensor([-1, *(known.get(m, -1) for m in range(1, 5))])
            p = reference.probability_that(lambda tree, known=known: all(tree[m] == h for m, h in known.items()))
            expected = math.log(p) if p else -math.inf
            assert d.partial_log_prob(heads).item() == pytest.approx(expected, rel=1e-12, abs=1e-12)
            log_z = d.log_partition.item()
            assert d.log_partition_of(heads).item() == pytest.approx(expected + log_z, rel=1e-12, abs=1e-12)


def test_partial_trees_of_a_batch() -> None:
    d = TreeDistribution(masked(random_scores(18)), LENGTHS)
    torch.testing.assert_close(d.partial_log_prob(TREES), d.log_prob(TREES))
    torch.testing.assert_close(d.partial_log_prob(torch.full((6, 5), -1)), torch.zeros(6, dtype=torch.float64))
    many = torch.stack([TREES, torch.full((6, 5), -1)])
    assert d.partial_log_prob(many).shape == (2, 6)
    with pytest.raises(HeadsError, match=r"-1 \(unknown\), 0 \(the root\) to 4"):
        d.partial_log_prob(torch.where(TREES == 3, 5, TREES))


@each_kernel
@every_class
def test_samples_follow_the_distribution(flags: dict[str, bool], kernels: Kernels) -> None:
    """Every tree as often as it should be, within five standard deviations."""
    scores = np.random.default_rng(19).normal(size=(4, 4))
    scores[1, 2] = -np.inf
    reference, count = exact.tree_distribution(scores, **flags), 4000
    batch = torch.zeros(2, 6, 6, dtype=torch.float64)
    batch[0, :4, :4] = torch.tensor(scores)
    with only(kernels):
        d = TreeDistribution(batch, [3, 5], **flags)
        drawn = d.sample(count, generator=torch.Generator().manual_seed(20))[:, 0]
        again = d.sample(count, generator=torch.Generator().manual_seed(20))[:, 0]
    assert torch.equal(drawn, again)
    assert (drawn[:, 4:] == -1).all()
    rows = [tuple(row) for row in drawn[:, :4].tolist()]
    assert set(rows) <= set(reference)
    for tree, p in zip(reference, reference.probabilities, strict=True):
        assert abs(rows.count(tree) - count * p) <= 5 * math.sqrt(count * p * (1 - p)) + 1


def test_sample_shapes() -> None:
    d = TreeDistribution(random_scores(21))
    assert d.sample().shape == (6, 5)
    assert d.sample(0).shape == (0, 6, 5)
    assert d.sample(torch.Size([2, 3])).shape == (2, 3, 6, 5)


def test_unchecked_heads_are_taken_for_trees() -> None:
    scores, cycle = random_scores(22)[0], torch.tensor([-1, 2, 1, 0, 3])
    assert TreeDistribution(scores).log_prob(cycle) == -torch.inf
    total = TreeDistribution(scores, validate_args=False).score(cycle)
    torch.testing.assert_close(total, scores[2, 1] + scores[1, 2] + scores[0, 3] + scores[3, 4])


# ---------------------------------------------------------------------------------------------- labels


def test_labelled_batches_are_their_sentences() -> None:
    scores = torch.randn(6, 5, 5, 3, generator=torch.Generator().manual_seed(23), dtype=torch.float64)
    scores[0, 1, 2, 0] = scores[1, 3, 1] = -torch.inf
    d = LabelledTreeDistribution(scores, LENGTHS)
    labels = torch.where(TREES < 0, -1, torch.arange(5) % 3)
    f = torch.randn_like(scores)
    heads_of_all, labels_of_all = d.argmax()
    assert d.batch_shape == (6,)
    for b, n in enumerate(LENGTHS.tolist()):
        one = LabelledTreeDistribution(scores[b, : n + 1, : n + 1])
        own = np.s_[: n + 1]
        torch.testing.assert_close(d.log_prob(TREES, labels)[b], one.log_prob(TREES[b, own], labels[b, own]))
        torch.testing.assert_close(d.nll(TREES, labels)[b], -one.log_prob(TREES[b, own], labels[b, own]))
        torch.testing.assert_close(d.entropy[b], one.entropy)
        torch.testing.assert_close(d.max[b], one.score(*one.argmax()))
        assert torch.equal(heads_of_all[b, own], one.argmax()[0])
        assert torch.equal(labels_of_all[b, own], one.argmax()[1])
        own_f = f[b, : n + 1, : n + 1]
        torch.testing.assert_close(d.expectation(f)[b], one.expectation(own_f))
        slope = d.covariance_with_arcs(f)[b]
        torch.testing.assert_close(slope[: n + 1, : n + 1], one.covariance_with_arcs(own_f))
        (grad,) = torch.autograd.grad(
            LabelledTreeDistribution(x := scores[b, : n + 1, : n + 1].clone().requires_grad_()).expectation(own_f), x
        )
        torch.testing.assert_close(slope[: n + 1, : n + 1], grad)


@every_class
def test_partially_labelled_trees_by_enumeration(flags: dict[str, bool]) -> None:
    scores = np.random.default_rng(24).normal(size=(4, 4, 2))
    reference = exact.labelled_distribution(scores, **flags)
    d = LabelledTreeDistribution(torch.tensor(scores), **flags)
    for heads, labels in (([-1, -1, 1, -1], [-1, -1, 0, -1]), ([-1, -1, -1, 0], [-1, 1, -1, -1]), ([-1] * 4, [-1] * 4)):

        def fits(tree: exact.LabelledTree, heads: list[int] = heads, labels: list[int] = labels) -> bool:
            return all(heads[m] in (-1, tree[0][m]) and labels[m] in (-1, tree[1][m]) for m in range(1, 4))

        expected = math.log(reference.probability_that(fits)) + reference.log_partition
        got = d.log_partition_of(torch.tensor(heads), torch.tensor(labels))
        assert got.item() == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_labelled_samples_follow_the_distribution() -> None:
    scores, count = np.random.default_rng(25).normal(size=(3, 3, 2)), 4000
    reference = exact.labelled_distribution(scores, projective=False, single_root=True)
    heads, labels = LabelledTreeDistribution(torch.tensor(scores)).sample(
        count, generator=torch.Generator().manual_seed(26)
    )
    rows = [(tuple(h), tuple(x)) for h, x in zip(heads.tolist(), labels.tolist(), strict=True)]
    for tree, p in zip(reference, reference.probabilities, strict=True):
        assert abs(rows.count(tree) - count * p) <= 5 * math.sqrt(count * p * (1 - p)) + 1


def test_labelled_errors() -> None:
    d = LabelledTreeDistribution(torch.zeros(3, 3, 2))
    heads = torch.tensor([-1, 0, 1])
    with pytest.raises(ShapeError, match="L >= 1"):
        LabelledTreeDistribution(torch.zeros(3, 3))
    with pytest.raises(HeadsError, match="shaped like heads"):
        d.log_prob(heads, torch.zeros(2, dtype=torch.int64))
    with pytest.raises(HeadsError, match=r"a label is outside 0 \.\. 1"):
        d.log_prob(heads, torch.tensor([-1, 0, 2]))
    for bad in (torch.nan, torch.inf):
        with pytest.raises(ScoresError, match=rf"scores\[0, 1\] is {bad}"):
            LabelledTreeDistribution(torch.full((3, 3, 2), bad))
