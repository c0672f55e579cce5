"""How the CUDA kernels are launched, on a machine without a GPU: plans beside the sources, and one call at a time."""

from __future__ import annotations

import ctypes
import re
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("cuda.bindings")

from headway.arrays import TreeClass
from headway.torch.cuda import cuda_kernels, launches
from headway.torch.cuda.cuda_kernels import CudaKernels
from tests.torch.cuda_on_cpu import compiled

SOURCES = Path(cuda_kernels.__file__).parent
CLASSES = [TreeClass(*flags) for flags in product((False, True), repeat=2)]
QUANTITIES = ("log_partition", "marginals", "covariance", "argmax")
# What kernels call the fields of a record.
FIELDS = {"mu": "arcs", "covariance": "arcs"}


SIZES = """
#include "eisner_chart.cuh"
extern "C" int table_numbers(int n, int halves) { return workspace_size(n, halves); }
extern "C" int walk_numbers(int n) { return walks::walk_numbers(n); }
extern "C" int chart_bytes(int places, int cell) { return eisner_bytes(places, 2, cell); }
extern "C" int packed_bytes(bool multi) { return eisner_packed_bytes(128 + multi, 2, multi); }
extern "C" int long_float() { return long_bytes<float, 128>(); }
extern "C" int long_double() { return long_bytes<double, 64>(); }
"""


class Queued:
    """What was launched, instead of a GPU: each launch, and the values of the arguments it would have read."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, int]]] = []
        self.fail_at = -1

    def function(self, device: int, source: str, expression: str, shared: int) -> str:
        return expression

    def queue(self, function: str, device: int, configuration: Any, blocks: int, stream: int, at: int) -> None:
        if len(self.calls) == self.fail_at:
            raise KeyboardInterrupt
        names = parameters(function.partition("<")[0])
        own = dict(zip(names, values(at, len(names)), strict=True))
        early = configuration.numAttrs == 1
        assert early == (own.get("which", 0) != 0)  # whoever reads a list waits for who wrote it
        self.calls.append((function, own))


def values(address: int, count: int) -> Iterator[int]:
    for place in (ctypes.c_void_p * count).from_address(address):
        time.sleep(1e-4)  # another thread may run now
        yield ctypes.c_int64.from_address(place).value


def parameters(kernel: str) -> list[str]:
    """The names of a kernel's parameters, from its source."""
    for source in SOURCES.glob("*.cu"):
        found = re.search(rf"__global__[^;{{]*?\b{kernel}\(([^)]*)\)", source.read_text())
        if found:
            return [re.findall(r"\w+", parameter)[-1] for parameter in found[1].split(",")]
    raise AssertionError(kernel)


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> Queued:
    stub = Queued()
    monkeypatch.setattr(launches, "function", stub.function)
    monkeypatch.setattr(launches, "queue", stub.queue)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 7, raising=False)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    return stub


def kernels() -> CudaKernels:
    """Of an H200."""
    made = CudaKernels(0)
    made.__dict__.update(_multiprocessors=132, _shared_memory=232448, _guard=nullcontext())
    return made


@pytest.mark.parametrize("nodes", [1, 2, 9, 18, 33, 34, 60, 99, 130, 257, 300])
@pytest.mark.parametrize("trees", CLASSES, ids=str)
def test_launches_take_what_the_kernels_do(nodes: int, trees: TreeClass) -> None:
    for quantity, real in product(QUANTITIES, ("float", "double")):
        plan = list(kernels()._plan(cuda_kernels._Task(quantity, trees, real, nodes)))
        left: str | None = None  # the list that the kernel before has left
        for launch in plan:
            names = parameters(launch.expression.partition("<")[0])
            taken = dict(zip(names, launch.takes, strict=True))
            assert taken.pop("which", "nothing") == (left or "nothing")
            assert taken.pop("done", "nothing") == (left or "nothing").replace("list", "done")
            rest = taken.pop("rest", "nothing")
            assert all(field == FIELDS.get(name, name) for name, field in taken.items())
            left = None if rest == "nothing" else rest
        assert left is None  # nothing is left over


def test_blocks_have_the_memory_that_their_kernels_ask_for() -> None:
    sizes = compiled("long_matrix_tree.cu", SIZES)
    for n, halves in product(cuda_kernels._SIZES, (1, 2)):
        assert cuda_kernels._table_numbers(n, halves) == sizes.table_numbers(n, halves)
    for nodes in (2, 3, 33, 60, 257):
        task = cuda_kernels._Task("marginals", CLASSES[0], "float", nodes)
        assert cuda_kernels._walk_bytes(task) == 16 * sizes.walk_numbers(nodes - 1)
    for places, cell in product((*cuda_kernels._PLACES, 200), (12, 20, 24, 40)):
        assert cuda_kernels._chart_bytes(places, cell) == sizes.chart_bytes(places, cell)
    assert [cuda_kernels._packed_chart(single)[1] for single in (True, False)] == [
        sizes.packed_bytes(False),
        sizes.packed_bytes(True),
    ]
    assert (cuda_kernels._long_bytes(128, 4), cuda_kernels._long_bytes(64, 8)) == (
        sizes.long_float(),
        sizes.long_double(),
    )


@pytest.mark.parametrize("trees", CLASSES, ids=str)
def test_arguments_reach_the_kernels(queued: Queued, trees: TreeClass) -> None:
    scores, lengths = torch.randn(3, 8, 8), torch.tensor([7, 2, 5])
    log_z, mu = kernels().marginals(scores, lengths, trees)
    assert len(queued.calls) == (3 if trees.projective else 2)
    for _, given in queued.calls:
        assert given["scores"] == scores.data_ptr()
        assert given["lengths"] == lengths.data_ptr()
        assert given["log_z"] == log_z.data_ptr()
        assert given["mu"] == mu.data_ptr()
        assert given["nodes"] == 8
        assert given.get("batch", 3) == 3
        assert given.get("f", 0) == 0
    first, *others = (given for _, given in queued.calls)
    assert first["which"] == 0
    for before, after in zip((first, *others), others, strict=False):
        assert after["which"] == before["rest"] != 0


@pytest.mark.parametrize("trees", CLASSES, ids=str)
@pytest.mark.parametrize("quantity", ["argmax", "marginals"])
def test_a_workspace_is_for_its_own_launch_only(queued: Queued, trees: TreeClass, quantity: str) -> None:
    """What is freed after a long batch must not be written to by the kernels of a short one."""
    made = kernels()
    compute = getattr(made, quantity)
    compute(torch.randn(1, 260, 260, dtype=torch.float64), torch.tensor([259]), trees)
    made._kept[7].memory[:, 1] = 1  # as if sentences had been left to the next kernel
    compute(torch.randn(1, 260, 260, dtype=torch.float64), torch.tensor([259]), trees)
    assert any(given.get("workspace") for _, given in queued.calls)
    queued.calls.clear()
    compute(torch.randn(1, 40, 40, dtype=torch.float64), torch.tensor([39]), trees)
    assert [given.get("workspace", 0) for _, given in queued.calls] == [0] * len(queued.calls)
    assert queued.calls


def test_no_sentences_need_no_launch(queued: Queued) -> None:
    log_z, mu = kernels().marginals(torch.empty(0, 4, 4), torch.empty(0, dtype=torch.int64), CLASSES[0])
    assert (log_z.shape, mu.shape) == ((0,), (0, 4, 4))
    assert not queued.calls


def test_lists_that_nobody_has_read_are_not_used_again(queued: Queued) -> None:
    """An interrupt between two launches may leave sentences in a list, of a batch that is gone."""
    made, scores, lengths = kernels(), torch.randn(3, 8, 8), torch.tensor([7, 2, 5])
    made.marginals(scores, lengths, CLASSES[0])
    kept = made._kept[7].memory  # not freed, so that its address stays its own
    queued.fail_at = 3
    with pytest.raises(KeyboardInterrupt):
        made.marginals(scores, lengths, CLASSES[0])
    queued.fail_at = -1
    made.marginals(scores, lengths, CLASSES[0])
    assert made._kept[7].memory is not kept
    assert queued.calls[0][1]["rest"] != queued.calls[-2][1]["rest"]


def test_threads_do_not_mix_their_arguments(queued: Queued) -> None:
    made, lengths = kernels(), torch.tensor([7, 2, 5])
    batches = [torch.randn(3, 8, 8) for _ in range(4)]
    results: dict[int, Any] = {}

    def work(scores: Any) -> None:
        results[scores.data_ptr()] = made.marginals(scores, lengths, CLASSES[0])

    workers = [threading.Thread(target=work, args=(scores,)) for scores in batches]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(queued.calls) == 8
    for _, given in queued.calls:
        log_z, mu = results[given["scores"]]
        assert (given["log_z"], given["mu"]) == (log_z.data_ptr(), mu.data_ptr())
