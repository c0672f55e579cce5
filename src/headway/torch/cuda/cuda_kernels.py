"""`Kernels` on an NVIDIA GPU: one fused kernel a quantity, in tiers from fast to safe.

A sentence whose weights a tier cannot hold is put into a list on the device, which the next tier reads: float numbers,
then double ones, then such with an exponent of their own. Non-projective trees have their tables in registers in the
first two (`matrix_tree.cu`), in memory in the last (`escape_walks.cu`); up to 32 words, one kernel does both the second
and the last. Projective ones have a chart in shared memory (`eisner.cu`). The next tier is always launched, and finds
an empty list most often, so that nothing waits for the host. Only where a later tier needs more memory than a
multiprocessor has, in sentences of more than 60 words or so, the host looks first whether there is anything to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock

import torch
from torch import Tensor

from headway.arrays import TreeClass
from headway.torch.cuda.nvrtc import Kernel, kernel

_EXTENDED, _SLOPED = "Extended<double>", "Sloped<Extended<double>>"
_BYTES = {"float": 4, "double": 8, "Dual<double>": 16, _EXTENDED: 16, _SLOPED: 24}
_TIERS = {torch.float32: ("float", "double"), torch.float64: ("double",)}
_SLOPES = ("Dual<double>",)
_SIZES = (8, 16, 32, 64, 128)  # words of a table in registers
_MOST_WORDS = {"float": 128, "double": 64, "Dual<double>": 64}
_PLACES = (17, 33, 65, 97)  # of a chart, whose rows take the next number that is 1 modulo 32
_PARTS = 2  # threads that share a span of a chart
_SMALL = 32  # words of sentences whose second and last tier are one kernel
_WALK_THREADS = 128
_MOST_BLOCKS = 16  # of a multiprocessor, where sentences are few or small


def kernels_on(device: int) -> CudaKernels | None:
    """The kernels for a device, if NVRTC can make code for it."""
    if torch.version.cuda is None or torch.cuda.get_device_capability(device) < (7, 0):
        return None
    return CudaKernels(device)


@dataclass(frozen=True)
class _Work:
    """What every kernel is told of a batch; `f` is the direction of derivatives, if there are any."""

    scores: Tensor
    f: Tensor | None
    lengths: Tensor
    trees: TreeClass

    @property
    def batch(self) -> int:
        return len(self.scores)

    @property
    def nodes(self) -> int:
        return self.scores.shape[1]

    @property
    def real(self) -> str:
        return "float" if self.scores.dtype == torch.float32 else "double"

    @property
    def multi_root(self) -> str:
        return "false" if self.trees.single_root else "true"

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers of the tiers that not every sentence gets through."""
        return _TIERS[self.scores.dtype] if self.f is None else _SLOPES


@dataclass(frozen=True)
class _Lists:
    """Sentences that a tier leaves to the next, for two tiers: how many, and their numbers; and a count of blocks."""

    which: Tensor
    done: Tensor

    @classmethod
    def of(cls, batch: int, device: torch.device) -> _Lists:
        """Empty lists for so many sentences."""
        which = torch.zeros((2, 1 + batch), dtype=torch.int32, device=device)
        return cls(which, torch.zeros(2, dtype=torch.int32, device=device))

    @property
    def capacity(self) -> int:
        return self.which.shape[1] - 1


@dataclass(frozen=True)
class CudaKernels:
    """All four classes of trees on one device, in float32 and float64."""

    device: int
    # The kernels that read lists leave them empty, so each stream keeps its own; one call at a time may use them.
    _kept: dict[int, _Lists] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def log_partition(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
        """log Z (B,)."""
        log_z = scores.new_empty(len(scores))
        self._sums(_Work(scores, None, lengths, trees), log_z, None)
        return log_z

    def marginals(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> tuple[Tensor, Tensor]:
        """log Z (B,) and marginals."""
        log_z, mu = scores.new_empty(len(scores)), torch.empty_like(scores)
        self._sums(_Work(scores, None, lengths, trees), log_z, mu)
        return log_z, mu

    def covariance(self, scores: Tensor, lengths: Tensor, f: Tensor, trees: TreeClass) -> Tensor:
        """Cov(f, 1[arc])."""
        result = torch.empty_like(scores)
        self._sums(_Work(scores, f, lengths, trees), None, result)
        return result

    def argmax(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
        """Heads (B, N+1)."""
        work = _Work(scores, None, lengths, trees)
        heads = torch.empty((work.batch, work.nodes), dtype=torch.int64, device=scores.device)
        if not work.batch:
            return heads
        if trees.projective:
            places, size = self._chart(work, 24)
            source, name = "eisner_argmax.cu", f"eisner_argmax<{work.real}, {work.multi_root}, {places}, {_PARTS}>"
            threads = _chart_threads(work.nodes)
        else:
            size = _rounded(10 * ((work.nodes - 1) // 2) * work.nodes + 48 * work.nodes, 16)
            source, name, threads = "spanning_tree.cu", f"spanning_tree_argmax<{work.real}, {work.multi_root}>", 32
        self._launch(work, source, name, threads, size, scores, lengths, work.batch, work.nodes, heads)
        return heads

    def _sums(self, work: _Work, log_z: Tensor | None, arcs: Tensor | None) -> None:
        if not work.batch:
            return
        if work.trees.projective:
            self._charts(work, log_z, arcs)
            return
        with self._lock:
            self._tables_and_walks(work, log_z, arcs, self._lists(work))

    def _lists(self, work: _Work) -> _Lists:
        """Empty lists for the current stream. A graph that is captured has its own."""
        device = work.scores.device
        if torch.cuda.is_current_stream_capturing():
            return _Lists.of(work.batch, device)
        stream = torch.cuda.current_stream(device).cuda_stream
        kept = self._kept.get(stream)
        if kept is None or kept.capacity < work.batch:
            kept = self._kept[stream] = _Lists.of(work.batch, device)
        return kept

    def _tables_and_walks(self, work: _Work, log_z: Tensor | None, arcs: Tensor | None, lists: _Lists) -> None:
        """Non-projective trees: tables in registers as far as there are any for so many words, then walks."""
        halves = 1 if arcs is None else 2
        quantity, arguments = _quantity(work, log_z, arcs)
        which, done = None, None  # at first, all sentences
        for numbers, rest, counter in zip(work.numbers, lists.which, lists.done, strict=False):
            size = next((size for size in _SIZES if work.nodes - 1 <= size <= _MOST_WORDS[numbers]), None)
            if size is None:
                continue
            if which is not None and work.nodes <= _SMALL + 1:
                self._rest(work, log_z, arcs, which, done)
                return
            threads = max(64, halves * size)
            groups = threads // (halves * size)
            shared = _BYTES[numbers] * groups * _table_numbers(size, halves)
            blocks = -(-work.batch // groups)
            name = f"matrix_tree_{quantity}<{work.real}, {numbers}, {size}, {work.multi_root}"
            if arcs is not None:  # whose kernel for tables without padding has its addresses made beforehand
                name += ", true" if which is None and work.nodes == size + 1 else ", false"
            name += ">"
            kernel(self.device, "matrix_tree.cu", name, shared).launch(
                blocks if which is None else min(blocks, self._blocks(shared)),
                threads, shared, *arguments, which, done, rest,
            )  # fmt: skip
            which, done = rest, counter
        self._walks(work, log_z, arcs, which, done)

    def _rest(self, work: _Work, log_z: Tensor | None, arcs: Tensor | None, which: Tensor, done: Tensor | None) -> None:
        """What float numbers could not hold of short sentences: double numbers and walks in one kernel."""
        shared = max(_BYTES["double"] * _table_numbers(_SMALL, 2), _walk_bytes(work))
        name = f"matrix_tree_rest<{work.real}, {_SMALL}, {work.multi_root}>"
        kernel(self.device, "matrix_tree.cu", name, shared).launch(
            min(work.batch, self._blocks(shared)),
            2 * _SMALL, shared, work.scores, work.lengths, work.nodes, log_z, arcs, which, done,
        )  # fmt: skip

    def _walks(
        self, work: _Work, log_z: Tensor | None, arcs: Tensor | None, which: Tensor | None, done: Tensor | None
    ) -> None:
        """Any scale and any length: the sentences in a list, or all."""
        size = _walk_bytes(work)
        if which is not None and size > self._shared_memory and _is_empty(which):
            return
        name = f"escape_walks_{'marginals' if work.f is None else 'covariance'}<{work.real}, {work.multi_root}>"
        given = (work.scores, work.lengths) if work.f is None else (work.scores, work.f, work.lengths)
        results = (log_z, arcs) if work.f is None else (arcs,)
        arguments = (*given, work.batch, work.nodes, *results, which, done)
        self._launch(work, "escape_walks.cu", name, _WALK_THREADS, size, *arguments)

    def _charts(self, work: _Work, log_z: Tensor | None, arcs: Tensor | None) -> None:
        """Projective trees."""
        last = _EXTENDED if work.f is None else _SLOPED
        lists = work.scores.new_empty((len(work.numbers), 1 + work.batch), dtype=torch.int32)
        lists[:, 0] = 0
        which: Tensor | None = None
        for numbers, rest in zip((*work.numbers, last), (*lists, None), strict=True):
            cell = 3 * _BYTES[numbers] if arcs is None else 4 * _BYTES[numbers] + work.scores.element_size()
            places, size = self._chart(work, cell)
            if which is not None and not places and _is_empty(which):
                return
            quantity, arguments = _quantity(work, log_z, arcs)
            name = f"eisner_{quantity}<{work.real}, {numbers}, {work.multi_root}, {places}, {_PARTS}>"
            self._launch(work, "eisner.cu", name, _chart_threads(work.nodes), size, *arguments, which, rest)
            which = rest

    def _chart(self, work: _Work, cell: int) -> tuple[int, int]:
        """Places of a chart in shared memory, 0 if it has no room there, and its bytes."""
        least = work.nodes - work.trees.single_root
        for places in _PLACES:
            size = _chart_bytes(places, cell)
            if least <= places and size <= self._shared_memory:
                return places, size
        return 0, _chart_bytes(least, cell)

    def _launch(
        self, work: _Work, source: str, name: str, threads: int, size: int, *arguments: Tensor | int | None
    ) -> None:
        """A kernel whose blocks need so many bytes each and share the sentences out among themselves."""
        if size <= self._shared_memory:
            blocks, shared, workspace = min(work.batch, self._blocks(size)), size, None
        else:
            size = _rounded(size, 256)
            blocks, shared = min(work.batch, self._multiprocessors), 0
            workspace = torch.empty(blocks * size, dtype=torch.uint8, device=work.scores.device)
        chosen: Kernel = kernel(self.device, source, name, shared)
        chosen.launch(blocks, threads, shared, *arguments, workspace)

    def _blocks(self, shared: int) -> int:
        """As many as the device runs at once, by their shared memory."""
        return self._multiprocessors * min(_MOST_BLOCKS, max(1, self._shared_memory // (shared + 1024)))

    @cached_property
    def _multiprocessors(self) -> int:
        return int(torch.cuda.get_device_properties(self.device).multi_processor_count)

    @cached_property
    def _shared_memory(self) -> int:
        """Bytes that a block can have."""
        properties = torch.cuda.get_device_properties(self.device)
        return int(properties.shared_memory_per_block_optin)  # type: ignore[attr-defined]  # not in torch's stubs


def _quantity(work: _Work, log_z: Tensor | None, arcs: Tensor | None) -> tuple[str, tuple[Tensor | int | None, ...]]:
    """What is asked for, as kernels in tiers name it, and the arguments that they begin with."""
    if arcs is None:
        return "log_partition", (work.scores, work.lengths, work.batch, work.nodes, log_z)
    return "marginals", (work.scores, work.f, work.lengths, work.batch, work.nodes, log_z, arcs)


def _is_empty(which: Tensor) -> bool:
    """Whether a list is empty, for which the host has to wait; a graph that is captured takes it as it may come."""
    return not torch.cuda.is_current_stream_capturing() and int(which[0].item()) == 0


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def _table_numbers(n: int, halves: int) -> int:
    """Numbers of shared memory that `matrix_tree.cu` needs for a sentence: its `workspace_size`."""
    if halves == 1:
        return n * (n + 5) + _line_numbers(n) + 16
    handed_down = {8: 24, 16: 112}.get(n, (n // 2) * (n // 2 + 4))
    return n * (2 * n + 9) + 2 * handed_down + 2 * _line_numbers(n)


def _line_numbers(n: int) -> int:
    return 0 if n <= 32 else max(4 * n + 4, 2 * _line_numbers(n // 2))


def _walk_bytes(work: _Work) -> int:
    """Bytes of memory that `walks.cuh` needs for weights, escapes, and a table for each level."""
    n = work.nodes - 1
    numbers = 2 * n * (n + 1) + sum(size * (size + 1) for size in _levels(n))
    return max(1, numbers) * (16 if work.f is None else 24)


def _levels(n: int) -> Iterator[int]:
    while n > 1:
        yield n
        n = (n + 1) // 2


def _chart_bytes(places: int, cell: int) -> int:
    """Bytes of memory that `eisner_chart.cuh` needs."""
    pitch = places + (_PARTS - 1 - places) % 32
    return _rounded(places * pitch * cell + 48 * (places + 1), 256)


def _chart_threads(nodes: int) -> int:
    return min(256, max(64, _rounded(nodes * _PARTS - _PARTS, 32)))
