"""Reading log Z before marginals, or after: the same bits, gradients and errors, whoever else looks at the scores."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from headway.errors import LengthsError, ScoresError
from headway.torch import TreeDistribution
from tests.inference import exact
from tests.inference.strategies import TREE_CLASSES, Floats, normal_scores, score_matrices
from tests.torch.test_kernels import padded

every_class = pytest.mark.parametrize("flags", TREE_CLASSES)
each_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def check(scores: Tensor, lengths: Tensor | None, flags: dict[str, bool]) -> TreeDistribution:
    """Both orders give the same bits; returns what has been asked for log Z first."""
    first, last = (TreeDistribution(scores, lengths, **flags, validate_args=False) for _ in range(2))
    log_z, mu = first.log_partition, first.marginals
    assert torch.equal(mu, last.marginals)
    assert torch.equal(log_z, last.log_partition)
    assert torch.equal(log_z, first.log_partition)
    assert log_z.dtype == mu.dtype == scores.dtype
    return first


@every_class
@each_dtype
@settings(max_examples=15)
@given(matrices=st.lists(score_matrices(max_words=4, solvable=False), min_size=1, max_size=10))
def test_any_batch(dtype: Any, flags: dict[str, bool], matrices: list[Floats]) -> None:
    """Sentences that float32 holds beside others, and some without a tree; right by enumeration."""
    scores, lengths = padded([matrix.astype(np.float32).astype(np.float64) for matrix in matrices])
    found = check(scores.to(dtype), lengths, flags)
    error = 1e-6 if dtype == torch.float32 else 1e-10
    for b, n in enumerate(lengths.tolist()):
        reference = exact.tree_distribution(scores[b, : n + 1, : n + 1].numpy(), **flags)
        if len(reference) == 0:
            assert found.log_partition[b] == -torch.inf
            assert not found.marginals[b].any()
            continue
        mu = np.zeros(scores.shape[1:])
        mu[: n + 1, : n + 1] = exact.arc_marginals(reference, n)
        np.testing.assert_allclose(found.marginals[b].numpy(), mu, rtol=0, atol=error)
        assert found.log_partition[b].item() == pytest.approx(reference.log_partition, rel=error, abs=error)


@every_class
@each_dtype
def test_long_batch(dtype: Any, flags: dict[str, bool]) -> None:
    lengths = [40, 0, 3, 1, 17, 2, 33, 4, 5, 6, 7, 8, 9, 16, 15, 21] * 2
    scores, sizes = padded([normal_scores(n, seed) for seed, n in enumerate(lengths)])
    check(scores.to(dtype), sizes, flags)
    check(scores[4, :18, :18].to(dtype), None, flags)


@every_class
@each_dtype
def test_shapes_and_copies(dtype: Any, flags: dict[str, bool]) -> None:
    scores = torch.randn(2, 3, 7, 7, dtype=dtype, generator=torch.Generator().manual_seed(1))
    expected = TreeDistribution(scores, **flags).marginals
    found = TreeDistribution(scores.transpose(0, 1), **flags)
    found.log_partition  # noqa: B018
    for other in (found, copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert torch.equal(other.marginals, expected.transpose(0, 1))


@every_class
def test_gradients_after_reading_without(flags: dict[str, bool]) -> None:
    scores = torch.randn(3, 6, 6, dtype=torch.float64, requires_grad=True)
    found = TreeDistribution(scores, **flags)
    with torch.no_grad():
        log_z, mu = found.log_partition, found.marginals
    assert not log_z.requires_grad
    assert not mu.requires_grad
    (slope,) = torch.autograd.grad(found.log_partition.sum(), scores)
    assert torch.equal(slope, mu)
    also = TreeDistribution(scores, **flags)
    with torch.no_grad():
        also.log_partition  # noqa: B018
    assert also.marginals.requires_grad


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, while it compiles
@every_class
def test_transforms_see_the_operators(flags: dict[str, bool]) -> None:
    """What is kept for marginals must not hide the scores from those who follow them."""

    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        d = TreeDistribution(x, **flags, validate_args=False)
        return d.log_partition, d.marginals

    scores = torch.randn(4, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    log_z, mu = both(scores)
    for found in (torch.vmap(both)(scores), torch.compile(both, backend="eager", fullgraph=True)(scores)):
        torch.testing.assert_close(found, (log_z, mu), rtol=1e-12, atol=1e-12)
    slope = torch.func.grad(lambda x: both(x)[0].sum())(scores)
    torch.testing.assert_close(slope, mu, rtol=1e-12, atol=1e-12)
    graph = make_fx(both)(scores)
    other = torch.randn(4, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(graph(other), both(other), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("names", [("log_partition",), ("marginals",), ("log_partition", "marginals")])
def test_errors_name_the_sentence_of_the_batch(names: tuple[str, ...]) -> None:
    """Also where only some sentences are computed in float64, of which the one with the error is the first."""
    scores = torch.zeros(5, 4, 4)
    scores[3, 1, 2] = torch.nan
    with pytest.raises(ScoresError, match=r"^sentence 3: scores\[1, 2\] is nan"):
        read(TreeDistribution(scores, validate_args=False), names)
    with pytest.raises(LengthsError, match=r"^sentence 4 has length 7"):
        read(TreeDistribution(torch.zeros(5, 4, 4), [3, 3, 3, 3, 7], validate_args=False), names)


def read(distribution: TreeDistribution, names: tuple[str, ...]) -> None:
    for name in names:
        getattr(distribution, name)
