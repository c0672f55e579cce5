"""The CUDA kernels on a real GPU, beside plain operations in float64 on the CPU: `make gpu-test`. Skipped without one.

Kernels come in many variants, and each takes a second or more to compile. So not all lengths are tested with all
classes of trees, but each kind of table and chart with one or two; and all are compiled beforehand, side by side. Plain
operations need no compiler.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)
pytest.importorskip("cuda.bindings")

from headway.arrays import TreeClass
from headway.errors import ScoresError
from headway.torch import TreeDistribution
from headway.torch.cuda.cuda_kernels import CudaKernels, _Task, kernels_on
from headway.torch.plain_kernels import PlainKernels

CLASSES = [TreeClass(*flags) for flags in product((False, True), repeat=2)]
SINGLE_ROOT = CLASSES[1]
REALS = {torch.float32: "float", torch.float64: "double"}
KINDS = ("normal", "wide", "masks")


class Case(NamedTuple):
    """Sentences of up to n words; lengths of full tables, and of such with padding."""

    n: int
    trees: TreeClass
    dtype: Any
    kinds: tuple[str, ...] = KINDS


def cases(words: dict[int, bool], dtype: Any, kinds: tuple[str, ...] = KINDS) -> list[Case]:
    """Lengths, each with whether a tree has one word on the root; projective and non-projective."""
    return [Case(n, TreeClass(p, single), dtype, kinds) for n, single in words.items() for p in (False, True)]


SUMS = [
    *cases({3: True, 8: False, 13: False, 16: True, 32: True, 33: False, 60: True, 64: False}, torch.float32),
    *cases({100: False, 150: True}, torch.float32),
    *cases({31: False, 128: True}, torch.float32, ("normal",)),
    Case(256, CLASSES[0], torch.float32, ("normal",)),
    *cases({13: True, 60: False, 100: True}, torch.float64),
]
COVARIANCES = cases({3: False, 13: True, 30: False, 50: True, 70: False}, torch.float64)


def on_gpu() -> CudaKernels:
    kernels = kernels_on(0)
    assert kernels is not None
    return kernels


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """All kernels, each compiled by a thread of its own: NVRTC lets others work meanwhile."""
    kernels = on_gpu()
    sums = product(("marginals", "log_partition", "argmax"), SUMS)
    tasks = [(quantity, case) for quantity, case in (*sums, *product(("covariance",), COVARIANCES))]
    launches: dict[str, Any] = {}
    for quantity, case in tasks:
        for launch in kernels._plan(_Task(quantity, case.trees, REALS[case.dtype], case.n + 1)):
            launches.setdefault(launch.expression, launch)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda launch: launch._function, launches.values()))


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


def name(case: Case) -> str:
    return f"{case.n} words, {case.trees}, {case.dtype}"


@pytest.mark.parametrize("case", SUMS, ids=name)
def test_sums_and_best_trees(case: Case) -> None:
    tolerance = 1e-10 if case.dtype == torch.float64 else 2e-6
    for kind in case.kinds:
        scores, lengths = draw(case.n, 4, kind, case.n)
        scores = scores.to(case.dtype)
        given = scores.cuda(), lengths.cuda(), case.trees
        log_z, mu = (result.cpu().double() for result in on_gpu().marginals(*given))
        expected_z, expected = PlainKernels().marginals(scores.double(), lengths, case.trees)
        torch.testing.assert_close(mu, expected, rtol=0, atol=tolerance)
        torch.testing.assert_close(log_z, expected_z, rtol=tolerance / 2, atol=tolerance / 2)
        again = on_gpu().log_partition(*given).cpu().double()
        torch.testing.assert_close(again, expected_z, rtol=tolerance / 2, atol=tolerance / 2)
        heads = on_gpu().argmax(*given).cpu()
        assert torch.equal(heads, PlainKernels().argmax(scores.double(), lengths, case.trees))


@pytest.mark.parametrize("case", COVARIANCES, ids=name)
def test_covariances(case: Case) -> None:
    for kind in case.kinds:
        scores, lengths = draw(case.n, 3, kind, case.n)
        f = torch.randn(scores.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        found = on_gpu().covariance(scores.cuda(), lengths.cuda(), f.cuda(), case.trees).cpu()
        expected = PlainKernels().covariance(scores, lengths, f, case.trees)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("projective", [False, True])
def test_lists_are_empty_after_each_call(projective: bool) -> None:
    """Hard sentences in one call leave nothing behind for the next."""
    trees, kernels = TreeClass(projective), on_gpu()
    hard, lengths = draw(16, 64, "masks", 0)
    easy, _ = draw(16, 64, "normal", 1)
    expected, _ = PlainKernels().marginals(easy, lengths, trees)
    for _ in range(3):
        kernels.marginals(hard.float().cuda(), lengths.cuda(), trees)
        log_z, _ = kernels.marginals(easy.float().cuda(), lengths.cuda(), trees)
        torch.testing.assert_close(log_z.cpu().double(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("projective", [False, True])
def test_a_captured_graph_gives_the_same(projective: bool) -> None:
    trees, kernels = TreeClass(projective), on_gpu()
    scores, lengths = (tensor.cuda() for tensor in draw(16, 64, "masks", 2))
    scores = scores.float()
    expected = kernels.marginals(scores, lengths, trees)[1].clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        _, mu = kernels.marginals(scores, lengths, trees)
    for _ in range(2):
        mu.zero_()
        graph.replay()
        assert torch.equal(mu, expected)


def test_threads_with_streams_of_their_own() -> None:
    """In a thread that has not called CUDA before, too; all share the kernels, and take turns."""
    kernels, found = on_gpu(), {}
    batches = [[tensor.cuda() for tensor in draw(13, 32, "masks", seed)] for seed in range(4)]
    expected = [kernels.marginals(*batch, SINGLE_ROOT)[1] for batch in batches]
    torch.cuda.synchronize()

    def work(i: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(20):
                found[i] = kernels.marginals(*batches[i], SINGLE_ROOT)[1]

    def work_on_the_default_stream(i: int) -> None:
        found[i] = kernels.marginals(*batches[i], SINGLE_ROOT)[1]

    workers = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    workers.append(threading.Thread(target=work_on_the_default_stream, args=(3,)))
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    torch.cuda.synchronize()
    for i in range(4):
        assert torch.equal(found[i], expected[i])


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize(("batch", "n"), [(4096, 32), (256, 128)])
def test_memory_is_that_of_scores_and_marginals(batch: int, n: int, projective: bool) -> None:
    scores, lengths = torch.randn(batch, n + 1, n + 1, device="cuda"), torch.full((batch,), n, device="cuda")
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated() - scores.nbytes
    torch.cuda.reset_peak_memory_stats()
    on_gpu().marginals(scores, lengths, TreeClass(projective))
    torch.cuda.synchronize()
    assert torch.cuda.max_memory_allocated() - before < 1.1 * 2 * scores.nbytes


def test_gradients_through_the_distribution() -> None:
    """log Z's are its marginals, and the entropy's -Cov(score, arc)."""
    scores, lengths = draw(13, 6, "normal", 3)
    given = scores.cuda().requires_grad_()
    d = TreeDistribution(given, lengths.cuda())
    (d.log_partition.sum() + d.entropy.sum()).backward()
    plain = PlainKernels()
    expected = plain.marginals(scores, lengths, SINGLE_ROOT)[1] - plain.covariance(scores, lengths, scores, SINGLE_ROOT)
    torch.testing.assert_close(given.grad.cpu(), expected, rtol=0, atol=1e-9)


def test_scores_that_the_kernels_would_take_for_forbidden_are_refused() -> None:
    scores, lengths = (tensor.cuda() for tensor in draw(4, 2, "normal", 5))
    scores[0, 1, 2] = -1e12
    with pytest.raises(ScoresError, match="use -inf"):
        TreeDistribution(scores, lengths)


def test_where_there_are_no_kernels_plain_operations_serve() -> None:
    scores, lengths = draw(7, 4, "normal", 4)
    for trees in CLASSES:
        found = PlainKernels().marginals(scores.cuda(), lengths.cuda(), trees)[1].cpu()
        torch.testing.assert_close(found, PlainKernels().marginals(scores, lengths, trees)[1], rtol=0, atol=1e-9)
