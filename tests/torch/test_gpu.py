"""The CUDA kernels on a real GPU, beside `headway.inference` on the CPU: `make gpu-test`. Skipped without one."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)
pytest.importorskip("cuda.bindings")

from headway.arrays import TreeClass
from headway.errors import ScoresError
from headway.torch import TreeDistribution
from headway.torch.cuda.cuda_kernels import CudaKernels, kernels_on
from headway.torch.numba_kernels import NumbaKernels
from headway.torch.plain_kernels import PlainKernels

CLASSES = [TreeClass(*flags) for flags in product((False, True), repeat=2)]
# One length of each kind of table and chart: small groups, one warp, several warps, memory of their own.
WORDS = (3, 13, 30, 33, 60, 100, 150)


def on_gpu() -> CudaKernels:
    kernels = kernels_on(0)
    assert kernels is not None
    return kernels


def draw(n: int, batch: int, kind: str, seed: int) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(batch, n + 1, n + 1, generator=generator, dtype=torch.float64)
    if kind == "wide":
        scores *= 100
    if kind == "masks":
        forbidden = torch.rand(scores.shape, generator=generator) < 0.3
        forbidden[:, 0] = False
        scores = scores.masked_fill(forbidden, -torch.inf)
    lengths = torch.randint(0, n + 1, (batch,), generator=generator)
    lengths[0] = n
    return scores, lengths


@pytest.mark.parametrize("n", WORDS)
@pytest.mark.parametrize("kind", ["normal", "wide", "masks"])
@pytest.mark.parametrize("trees", CLASSES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_sums_and_best_trees(n: int, kind: str, trees: TreeClass, dtype: Any) -> None:
    scores, lengths = draw(n, 5, kind, n)
    scores = scores.to(dtype)
    exact = scores.double(), lengths
    given = scores.cuda(), lengths.cuda()
    log_z, mu = (result.cpu().double() for result in on_gpu().marginals(*given, trees))
    expected_z, expected = NumbaKernels().marginals(*exact, trees)
    tolerance = 1e-10 if dtype == torch.float64 else 2e-6
    torch.testing.assert_close(mu, expected, rtol=0, atol=tolerance)
    torch.testing.assert_close(log_z, expected_z, rtol=tolerance / 2, atol=tolerance / 2)
    again = on_gpu().log_partition(*given, trees).cpu().double()
    torch.testing.assert_close(again, expected_z, rtol=tolerance / 2, atol=tolerance / 2)
    heads = on_gpu().argmax(*given, trees).cpu()
    assert torch.equal(heads, NumbaKernels().argmax(*exact, trees))


@pytest.mark.parametrize("n", [3, 13, 30, 50, 70])
@pytest.mark.parametrize("kind", ["normal", "wide", "masks"])
@pytest.mark.parametrize("trees", CLASSES, ids=str)
def test_covariances(n: int, kind: str, trees: TreeClass) -> None:
    scores, lengths = draw(n, 4, kind, n)
    f = torch.randn(scores.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = on_gpu().covariance(scores.cuda(), lengths.cuda(), f.cuda(), trees).cpu()
    torch.testing.assert_close(found, NumbaKernels().covariance(scores, lengths, f, trees), rtol=0, atol=1e-9)


def test_lists_are_empty_after_each_call() -> None:
    """Hard sentences in one call leave nothing behind for the next."""
    hard, lengths = draw(20, 64, "masks", 0)
    for _ in range(3):
        on_gpu().marginals(hard.float().cuda(), lengths.cuda(), CLASSES[1])
        easy, _ = draw(20, 64, "normal", 1)
        log_z, _ = on_gpu().marginals(easy.float().cuda(), lengths.cuda(), CLASSES[1])
        expected, _ = NumbaKernels().marginals(easy, lengths, CLASSES[1])
        torch.testing.assert_close(log_z.cpu().double(), expected, rtol=1e-6, atol=1e-6)


def test_a_captured_graph_gives_the_same() -> None:
    scores, lengths = (tensor.cuda() for tensor in draw(20, 64, "masks", 2))
    scores = scores.float()
    kernels = on_gpu()
    expected = kernels.marginals(scores, lengths, CLASSES[1])[1].clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        _, mu = kernels.marginals(scores, lengths, CLASSES[1])
    for _ in range(2):
        mu.zero_()
        graph.replay()
        assert torch.equal(mu, expected)


def test_gradients_through_the_distribution() -> None:
    scores, lengths = draw(9, 6, "masks", 3)
    results = []
    for device in ("cpu", "cuda"):
        given = scores.to(device).requires_grad_()
        d = TreeDistribution(given, lengths.to(device))
        (d.log_partition.sum() + d.entropy.sum()).backward()
        results.append(given.grad.cpu())
    torch.testing.assert_close(*results, rtol=0, atol=1e-9)


def test_scores_that_the_kernels_would_take_for_forbidden_are_refused() -> None:
    scores, lengths = (tensor.cuda() for tensor in draw(4, 2, "normal", 5))
    scores[0, 1, 2] = -1e12
    with pytest.raises(ScoresError, match="use -inf"):
        TreeDistribution(scores, lengths)


def test_where_there_are_no_kernels_plain_operations_serve() -> None:
    scores, lengths = draw(7, 4, "normal", 4)
    for trees in CLASSES:
        found = PlainKernels().marginals(scores.cuda(), lengths.cuda(), trees)[1].cpu()
        torch.testing.assert_close(found, NumbaKernels().marginals(scores, lengths, trees)[1], rtol=0, atol=1e-9)
