"""`Kernels` on an NVIDIA GPU: one fused kernel a quantity, in tiers from fast to safe, without a synchronisation.

A sentence whose weights a tier cannot hold is put into a list on the device, which the next tier reads: floats in
registers, doubles in registers, numbers with an exponent of their own in memory (`matrix_tree.cu`, `escape_walks.cu`);
doubles, then such numbers (`eisner.cu`). The later tiers are always launched, and find an empty list most often. Memory
beyond shared memory's is lent in the outputs' own size: a tenth of it, or what a few blocks need.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from headway.arrays import TreeClass
from headway.torch.cuda.nvrtc import Kernel, kernel

_SIZES = (8, 16, 32, 64, 128)  # words of a table in registers
_LARGEST = {"float": 128, "double": 64, "Dual<double>": 32}  # of these numbers
_BYTES = {"float": 4, "double": 8, "Dual<double>": 16}
_WALK_THREADS = 128
_PARTS = 4  # lanes that share a span of Eisner's chart
_FEWEST = 4  # blocks with memory of their own


def kernels_on(device: int) -> CudaKernels | None:
    """The kernels for a device, if NVRTC can make code for it."""
    if torch.version.cuda is None or torch.cuda.get_device_capability(device) < (7, 0):
        return None
    return CudaKernels(device)


@dataclass(frozen=True)
class CudaKernels:
    """All four classes of trees on one device, in float32 and float64."""

    device: int

    def log_partition(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
        """log Z (B,)."""
        log_z = scores.new_empty(len(scores))
        if not len(scores):
            return log_z
        if trees.projective:
            self._eisner("log_partition", 3, scores, (), lengths, (log_z,), trees)
            return log_z
        numbers = ["float", "double"] if scores.dtype == torch.float32 else ["double"]
        rest = self._in_registers("log_partition", 1, numbers, scores, (), lengths, (log_z,), trees)
        self._walks("marginals", 16, scores, (), lengths, (log_z, None, rest), trees)
        return log_z

    def marginals(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> tuple[Tensor, Tensor]:
        """log Z (B,) and marginals."""
        log_z, mu = scores.new_empty(len(scores)), torch.empty_like(scores)
        if not len(scores):
            return log_z, mu
        if trees.projective:
            self._eisner("marginals", 4, scores, (), lengths, (log_z, mu), trees)
            return log_z, mu
        numbers = ["float", "double"] if scores.dtype == torch.float32 else ["double"]
        rest = self._in_registers("marginals", 2, numbers, scores, (None,), lengths, (log_z, mu), trees)
        self._walks("marginals", 16, scores, (), lengths, (log_z, mu, rest), trees)
        return log_z, mu

    def covariance(self, scores: Tensor, lengths: Tensor, f: Tensor, trees: TreeClass) -> Tensor:
        """Cov(f, 1[arc])."""
        result = torch.empty_like(scores)
        if not len(scores):
            return result
        if trees.projective:
            self._eisner("covariance", 4, scores, (f,), lengths, (result,), trees)
            return result
        rest = self._in_registers("marginals", 2, ["Dual<double>"], scores, (f,), lengths, (None, result), trees)
        self._walks("covariance", 24, scores, (f,), lengths, (result, rest), trees)
        return result

    def argmax(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
        """Heads (B, N+1)."""
        batch, nodes = scores.shape[:2]
        heads = torch.empty((batch, nodes), dtype=torch.int64, device=scores.device)
        if not batch:
            return heads
        if trees.projective:
            size, threads = self._chart_bytes(nodes, trees, 3, 8), self._chart_threads(nodes)
            source, name = "eisner.cu", f"eisner_argmax<{_type(scores)}, {_multi(trees)}, {_PARTS}>"
        else:
            size, threads = _rounded(10 * ((nodes - 1) // 2) * nodes + 48 * nodes, 16), 32
            source, name = "spanning_tree.cu", f"spanning_tree_argmax<{_type(scores)}, {_multi(trees)}>"
        blocks, shared, workspace = self._memory(scores, size)
        self._kernel(source, name, shared).launch(
            blocks, threads, shared, scores, lengths, batch, nodes, heads, workspace
        )
        return heads

    def _in_registers(
        self,
        quantity: str,
        halves: int,
        numbers: list[str],
        scores: Tensor,
        directions: tuple[Tensor | None, ...],
        lengths: Tensor,
        results: tuple[Tensor | None, ...],
        trees: TreeClass,
    ) -> Tensor | None:
        """Run the tiers whose tables are in registers; what they leave, or None if that is everything."""
        batch, nodes = scores.shape[:2]
        which: Tensor | None = None
        lists = scores.new_empty((len(numbers), 1 + batch), dtype=torch.int32)
        lists[:, 0] = 0
        for each, rest in zip(numbers, lists, strict=True):
            size = next((size for size in _SIZES if nodes - 1 <= size <= _LARGEST[each]), None)
            if size is None:
                continue
            threads = max(64, halves * size)
            groups = threads // (halves * size)
            shared = _BYTES[each] * groups * _register_workspace(size, halves)
            name = f"matrix_tree_{quantity}<{_type(scores)}, {each}, {size}, {_multi(trees)}>"
            blocks = -(-batch // groups) if which is None else min(-(-batch // groups), 4 * self._multiprocessors)
            self._kernel("matrix_tree.cu", name, shared).launch(
                blocks, threads, shared, scores, *directions, lengths, batch, nodes, *results, which, rest
            )
            which = rest
        return which

    def _walks(
        self,
        quantity: str,
        number: int,
        scores: Tensor,
        directions: tuple[Tensor, ...],
        lengths: Tensor,
        results: tuple[Tensor | None, ...],
        trees: TreeClass,
    ) -> None:
        """Any scale, any length: the sentences in the last of the results, or all if that is None."""
        batch, nodes = scores.shape[:2]
        blocks, shared, workspace = self._memory(scores, number * max(1, _walk_numbers(nodes - 1)))
        name = f"escape_walks_{quantity}<{_type(scores)}, {_multi(trees)}>"
        self._kernel("escape_walks.cu", name, shared).launch(
            blocks, _WALK_THREADS, shared, scores, *directions, lengths, batch, nodes, *results, workspace
        )

    def _eisner(
        self,
        quantity: str,
        squares: int,
        scores: Tensor,
        directions: tuple[Tensor, ...],
        lengths: Tensor,
        results: tuple[Tensor, ...],
        trees: TreeClass,
    ) -> None:
        batch, nodes = scores.shape[:2]
        rest = scores.new_zeros(1 + batch, dtype=torch.int32)
        sizes = (16, 24) if quantity == "covariance" else (8, 16)
        for wide, size in zip(("false", "true"), sizes, strict=True):
            blocks, shared, workspace = self._memory(scores, self._chart_bytes(nodes, trees, squares, size))
            name = f"eisner_{quantity}<{_type(scores)}, {_multi(trees)}, {wide}, {_PARTS}>"
            threads = self._chart_threads(nodes)
            self._kernel("eisner.cu", name, shared).launch(
                blocks, threads, shared, scores, *directions, lengths, batch, nodes, *results, rest, workspace
            )

    def _memory(self, scores: Tensor, size: int) -> tuple[int, int, Tensor | None]:
        """Blocks, bytes of shared memory and workspace where a block needs so many bytes."""
        batch = len(scores)
        if size <= self._shared_memory:
            most = self._multiprocessors * min(32, max(1, self._shared_memory // (size + 1024)))
            return min(batch, most), size, None
        size = _rounded(size, 256)
        lent = scores.numel() * scores.element_size() // 5
        blocks = min(batch, self._multiprocessors, max(_FEWEST, lent // size))
        return blocks, 0, torch.empty(blocks * size, dtype=torch.uint8, device=scores.device)

    def _chart_bytes(self, nodes: int, trees: TreeClass, squares: int, size: int) -> int:
        """As `eisner.cu` says."""
        places = nodes - 1 + (not trees.single_root)
        pitch = places + (_PARTS - 1 - places) % 16
        return _rounded(squares * places * pitch * size + 48 * (places + 1), 256)

    def _chart_threads(self, nodes: int) -> int:
        return min(512, max(32, _rounded(nodes * _PARTS // 2, 32)))

    def _kernel(self, source: str, expression: str, shared: int) -> Kernel:
        return kernel(self.device, source, expression, shared)

    @cached_property
    def _multiprocessors(self) -> int:
        return torch.cuda.get_device_properties(self.device).multi_processor_count

    @cached_property
    def _shared_memory(self) -> int:
        """Bytes that a block can have."""
        return torch.cuda.get_device_properties(self.device).shared_memory_per_block_optin


def _type(scores: Tensor) -> str:
    return "float" if scores.dtype == torch.float32 else "double"


def _multi(trees: TreeClass) -> str:
    return "false" if trees.single_root else "true"


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def _register_workspace(n: int, halves: int) -> int:
    """Numbers of shared memory that `matrix_tree.cu` needs for a sentence: its `workspace_size`."""
    if halves == 1:
        return n * (n + 5) + _lines(n) + 16
    return n * (2 * n + 9) + 2 * (n // 2) * (n // 2 + 4) + 2 * _lines(n)


def _lines(n: int) -> int:
    return 0 if n <= 32 else max(4 * n + 4, 2 * _lines(n // 2))


def _walk_numbers(n: int) -> int:
    """Numbers of memory that `escape_walks.cu` needs: the weights and escapes, and a table for each level."""
    return 2 * n * (n + 1) + sum(size * (size + 1) for size in _levels(n))


def _levels(n: int) -> Iterator[int]:
    while n > 1:
        yield n
        n = (n + 1) // 2
