"""`Kernels` on an NVIDIA GPU: one fused kernel a quantity, in tiers from fast to safe.

A sentence whose weights a tier cannot hold is put into a list on the device, which the next tier reads: float numbers,
then double ones, then such with an exponent of their own. Non-projective trees have their tables in registers in the
first two (`matrix_tree.cu`, and `long_matrix_tree.cu` for sentences that need two), in memory in the last
(`escape_walks.cu`); up to 32 words, one kernel does both the second and the last. Projective ones have a chart in
shared memory (`eisner.cu`). The next tier is always launched, and finds an empty list most often, so that nothing waits
for the host. Only where a later tier needs more memory than a multiprocessor has, in sentences of more than 60 words or
so, the host looks first how much there is to do, and waits for the tiers before. Nothing else here waits for
the GPU.

Which launches a quantity takes depends on the class of trees, the numbers and the length only: it is planned once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from headway.arrays import TreeClass
from headway.torch.cuda.launches import Launch, Record

_EXTENDED, _SLOPED = "Extended<double>", "Sloped<Extended<double>>"
_BYTES = {"float": 4, "double": 8, "Dual<double>": 16, _EXTENDED: 16, _SLOPED: 24}
_TIERS = {"float": ("float", "double"), "double": ("double",)}
_SLOPES = ("Dual<double>",)
_SIZES = (8, 16, 32, 64, 128)  # words of a table in registers
_MOST_WORDS = {"float": 128, "double": 64, "Dual<double>": 64}
_PLACES = (17, 33, 65, 97, 129)  # of a chart, whose rows take the next number that is 1 modulo 32
_PACKED_WORDS = 128  # of a chart with less memory a place, for float numbers
_PARTS = 2  # threads that share a span of a chart
_SMALL = 32  # words of sentences whose second and last tier are one kernel
_WALK_THREADS = 128
_MOST_BLOCKS = 16  # of a multiprocessor, where sentences are few or small
_ANY_NUMBER = 2**31 - 1  # of blocks

# What kernels take: fields of a record. A list comes with a count of the blocks that have read it.
_ALL = ("nothing", "nothing")
_LISTS = (("first_list", "first_done"), ("second_list", "second_done"))
_SUMS = {
    "log_partition": ("scores", "lengths", "batch", "nodes", "log_z"),
    "marginals": ("scores", "f", "lengths", "batch", "nodes", "log_z", "arcs"),
}
_WALKS = {
    "marginals": ("scores", "lengths", "batch", "nodes", "log_z", "arcs"),
    "covariance": ("scores", "f", "lengths", "batch", "nodes", "arcs"),
}
_DECODING = ("scores", "lengths", "batch", "nodes", "heads", "workspace")


def kernels_on(device: int) -> CudaKernels | None:
    """The kernels for a device, if NVRTC can make code for it."""
    if torch.version.cuda is None or torch.cuda.get_device_capability(device) < (7, 0):
        return None
    return CudaKernels(device)


@dataclass(frozen=True)
class _Task:
    """What a plan is made for: `log_partition`, `marginals`, `covariance` or `argmax` of so many nodes."""

    quantity: str
    trees: TreeClass
    real: str  # float or double
    nodes: int

    @property
    def multi_root(self) -> str:
        return "false" if self.trees.single_root else "true"

    @property
    def sums(self) -> str:
        """What kernels in tiers call it: they find covariances as they find marginals, of numbers with slopes."""
        return "log_partition" if self.quantity == "log_partition" else "marginals"

    @property
    def has_slopes(self) -> bool:
        return self.quantity == "covariance"

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers of the tiers that not every sentence gets through."""
        return _SLOPES if self.has_slopes else _TIERS[self.real]

    @property
    def halves(self) -> int:
        return 1 if self.quantity == "log_partition" else 2


@dataclass(frozen=True)
class _Lists:
    """Sentences that a tier leaves to the next, for two tiers: blocks that have read it, how many, their numbers."""

    memory: Tensor

    @classmethod
    def of(cls, batch: int, device: torch.device) -> _Lists:
        """Empty lists for so many sentences."""
        return cls(torch.zeros((2, 2 + batch), dtype=torch.int32, device=device))

    @cached_property
    def capacity(self) -> int:
        return self.memory.shape[1] - 2

    @cached_property
    def addresses(self) -> tuple[int, ...]:
        """As a record has them: each list, and its blocks."""
        first, second = (row.data_ptr() for row in self.memory)
        return first + 4, first, second + 4, second

    def count(self, number: int, most: int) -> int:
        """How many sentences are in a list, for which the host waits; at most that many in a graph that is captured."""
        return most if torch.cuda.is_current_stream_capturing() else int(self.memory[number, 1].item())


@dataclass(frozen=True)
class CudaKernels:
    """All four classes of trees on one device, in float32 and float64."""

    device: int
    _plans: dict[tuple[Any, ...], list[Launch]] = field(default_factory=dict)
    # One call at a time may use the record, and the lists, of which each stream keeps its own: the kernels that read
    # them leave them empty.
    _lock: Lock = field(default_factory=Lock)
    _record: Record = field(default_factory=Record)
    _kept: dict[int, _Lists] = field(default_factory=dict)

    def log_partition(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
        """log Z (B,)."""
        log_z = scores.new_empty(scores.shape[0])
        self._compute("log_partition", trees, scores, lengths, log_z=log_z)
        return log_z

    def marginals(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> tuple[Tensor, Tensor]:
        """log Z (B,) and marginals."""
        log_z, mu = scores.new_empty(scores.shape[0]), torch.empty_like(scores)
        self._compute("marginals", trees, scores, lengths, log_z=log_z, arcs=mu)
        return log_z, mu

    def covariance(self, scores: Tensor, lengths: Tensor, f: Tensor, trees: TreeClass) -> Tensor:
        """Cov(f, 1[arc])."""
        result = torch.empty_like(scores)
        self._compute("covariance", trees, scores, lengths, f=f, arcs=result)
        return result

    def argmax(self, scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
        """Heads (B, N+1)."""
        heads = lengths.new_empty(scores.shape[:2])
        self._compute("argmax", trees, scores, lengths, heads=heads)
        return heads

    def _compute(
        self,
        quantity: str,
        trees: TreeClass,
        scores: Tensor,
        lengths: Tensor,
        f: Tensor | None = None,
        log_z: Tensor | None = None,
        arcs: Tensor | None = None,
        heads: Tensor | None = None,
    ) -> None:
        batch, nodes, _ = scores.shape
        if batch == 0:
            return
        key = (quantity, trees, scores.dtype, nodes)
        with self._lock, self._guard:
            plan = self._plans.get(key)
            if plan is None:
                real = "float" if scores.dtype == torch.float32 else "double"
                plan = self._plans[key] = list(self._plan(_Task(quantity, trees, real, nodes)))
            stream = torch._C._cuda_getCurrentRawStream(self.device)
            lists = self._lists(stream, batch, scores.device)
            self._record.fill(
                scores.data_ptr(), _address(f), lengths.data_ptr(), batch, nodes, _address(log_z), _address(arcs),
                _address(heads), *lists.addresses,
            )  # fmt: skip
            try:
                self._queue(plan, batch, stream, lists)
            except BaseException:  # an interrupt, too: nobody has read what may be in the lists
                self._kept.pop(stream, None)
                raise

    def _queue(self, plan: list[Launch], batch: int, stream: int, lists: _Lists) -> None:
        for launch in plan:
            sentences = batch if launch.unless_empty is None else lists.count(launch.unless_empty, batch)
            if sentences == 0:
                return
            size = launch.blocks(sentences) * launch.workspace
            workspace = torch.empty(size, dtype=torch.uint8, device=lists.memory.device) if size else None
            self._record.set_workspace(_address(workspace))  # 0 for kernels that have room in shared memory
            launch.queue(sentences, stream)

    def _lists(self, stream: int, batch: int, device: torch.device) -> _Lists:
        """Empty lists for a stream. A graph that is captured has its own."""
        if torch.cuda.is_current_stream_capturing():
            return _Lists.of(batch, device)
        kept = self._kept.get(stream)
        if kept is None or kept.capacity < batch:
            kept = self._kept[stream] = _Lists.of(batch, device)
        return kept

    # ------------------------------------------------------------------------------------------------------- plans

    def _plan(self, task: _Task) -> Iterator[Launch]:
        if task.quantity == "argmax":
            return self._decoding(task)
        return self._charts(task) if task.trees.projective else self._tables_and_walks(task)

    def _decoding(self, task: _Task) -> Iterator[Launch]:
        nodes = task.nodes
        if task.trees.projective:
            places, size = self._chart(task, 24)
            name = f"eisner_argmax<{task.real}, {task.multi_root}, {places}, {_PARTS}>"
            yield self._launch("eisner_argmax.cu", name, _DECODING, _chart_threads(nodes), size)
        else:
            size = _rounded(10 * ((nodes - 1) // 2) * nodes + 48 * nodes, 16)
            name = f"spanning_tree_argmax<{task.real}, {task.multi_root}>"
            yield self._launch("spanning_tree.cu", name, _DECODING, 32, size)

    def _tables_and_walks(self, task: _Task) -> Iterator[Launch]:
        """Non-projective trees: tables in registers as far as there are any for so many words, then walks."""
        which, words = None, task.nodes - 1
        for numbers in task.numbers:
            if which is not None and words <= _SMALL:
                yield self._rest(task, which)
                return
            rest = 0 if which is None else which + 1
            if words <= _MOST_WORDS[numbers]:
                yield self._table(task, numbers, which, rest)
            elif words <= 2 * _MOST_WORDS[numbers] and not task.has_slopes:
                yield self._two_tables(task, numbers, which, rest)
            else:
                continue
            which = rest
        yield self._walks(task, which)

    def _table(self, task: _Task, numbers: str, which: int | None, rest: int) -> Launch:
        size = next(size for size in _SIZES if task.nodes - 1 <= size)
        threads = max(64, task.halves * size)
        sentences = threads // (task.halves * size)
        shared = _BYTES[numbers] * sentences * _table_numbers(size, task.halves)
        name = f"matrix_tree_{task.sums}<{task.real}, {numbers}, {size}, {task.multi_root}"
        if task.sums == "marginals":  # whose kernel for tables without padding has its addresses made beforehand
            name += ", true" if which is None and task.nodes == size + 1 else ", false"
        name += ">"
        takes = (*_SUMS[task.sums], *_list(which), _LISTS[rest][0])
        blocks = _ANY_NUMBER if which is None else self._blocks(shared)
        return Launch(self._record, self.device, "matrix_tree.cu", name, takes, threads, shared, blocks, sentences)

    def _two_tables(self, task: _Task, numbers: str, which: int | None, rest: int) -> Launch:
        """Twice as many words as a table has, in two halves."""
        size = _MOST_WORDS[numbers]
        shared = _long_bytes(size, _BYTES[numbers])
        name = f"long_matrix_tree<{task.real}, {numbers}, {size}, {task.multi_root}>"
        takes = ("scores", "lengths", "batch", "nodes", "log_z", "arcs", *_list(which), _LISTS[rest][0])
        blocks = self._blocks(shared)
        return Launch(self._record, self.device, "long_matrix_tree.cu", name, takes, 2 * size, shared, blocks)

    def _rest(self, task: _Task, which: int) -> Launch:
        """What float numbers could not hold of short sentences: double numbers and walks in one kernel."""
        shared = max(_BYTES["double"] * _table_numbers(_SMALL, 2), _walk_bytes(task))
        name = f"matrix_tree_rest<{task.real}, {_SMALL}, {task.multi_root}>"
        takes = ("scores", "lengths", "nodes", "log_z", "arcs", *_list(which))
        blocks = self._blocks(shared)
        return Launch(self._record, self.device, "matrix_tree.cu", name, takes, 2 * _SMALL, shared, blocks)

    def _walks(self, task: _Task, which: int | None) -> Launch:
        """Any scale and any length: the sentences in a list, or all."""
        kind = "covariance" if task.has_slopes else "marginals"
        name = f"escape_walks_{kind}<{task.real}, {task.multi_root}>"
        takes = (*_WALKS[kind], *_list(which), "workspace")
        return self._launch("escape_walks.cu", name, takes, _WALK_THREADS, _walk_bytes(task), which)

    def _charts(self, task: _Task) -> Iterator[Launch]:
        """Projective trees."""
        last = _SLOPED if task.has_slopes else _EXTENDED
        for tier, numbers in enumerate((*task.numbers, last)):
            which = None if tier == 0 else tier - 1
            size = _BYTES[numbers]
            cell = 3 * size if task.sums == "log_partition" else 4 * size + _BYTES[task.real]
            places, size = self._chart(task, cell)
            shape = f"{places}, {_PARTS}"
            if numbers == "float" and task.sums == "marginals" and self._has_room_packed(task, places):
                places, size = _packed_chart(task.trees.single_root)
                shape = f"{places}, {_PARTS}, true"
            name = f"eisner_{task.sums}<{task.real}, {numbers}, {task.multi_root}, {shape}>"
            takes = (*_SUMS[task.sums], *_list(which), _LISTS[tier][0] if numbers != last else "nothing", "workspace")
            yield self._launch("eisner.cu", name, takes, _chart_threads(task.nodes), size, which)

    def _has_room_packed(self, task: _Task, places: int) -> bool:
        """Whether a packed chart saves a workspace."""
        return (
            places == 0
            and task.nodes - 1 <= _PACKED_WORDS
            and _packed_chart(task.trees.single_root)[1] <= self._shared_memory
        )

    def _chart(self, task: _Task, cell: int) -> tuple[int, int]:
        """Places of a chart in shared memory, 0 if it has no room there, and its bytes."""
        least = task.nodes - task.trees.single_root
        for places in _PLACES:
            size = _chart_bytes(places, cell)
            if least <= places and size <= self._shared_memory:
                return places, size
        return 0, _chart_bytes(least, cell)

    def _launch(
        self, source: str, name: str, takes: tuple[str, ...], threads: int, size: int, which: int | None = None
    ) -> Launch:
        """A kernel whose blocks need so many bytes each, and share the sentences of a list out among themselves."""
        if size <= self._shared_memory:
            return Launch(self._record, self.device, source, name, takes, threads, size, self._blocks(size))
        size = _rounded(size, 256)
        blocks = self._multiprocessors
        return Launch(
            self._record, self.device, source, name, takes, threads, 0, blocks, workspace=size, unless_empty=which
        )

    def _blocks(self, shared: int) -> int:
        """As many as the device runs at once, by their shared memory."""
        return self._multiprocessors * min(_MOST_BLOCKS, max(1, self._shared_memory // (shared + 1024)))

    @cached_property
    def _guard(self) -> torch.cuda.device:
        return torch.cuda.device(self.device)

    @cached_property
    def _multiprocessors(self) -> int:
        return int(torch.cuda.get_device_properties(self.device).multi_processor_count)

    @cached_property
    def _shared_memory(self) -> int:
        """Bytes that a block can have."""
        properties = torch.cuda.get_device_properties(self.device)
        return int(properties.shared_memory_per_block_optin)  # type: ignore[attr-defined]  # not in torch's stubs


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _list(number: int | None) -> tuple[str, str]:
    return _ALL if number is None else _LISTS[number]


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


def _long_bytes(n: int, size: int) -> int:
    """Bytes of shared memory that `long_matrix_tree.cu` needs, with numbers of `size` bytes: its `long_bytes`."""
    return size * (n * (2 * n + 1) + n * (n + 5) + 3 * n) + 16 * n


def _walk_bytes(task: _Task) -> int:
    """Bytes of memory that `walks.cuh` needs for weights, escapes, and a table for each level."""
    n = task.nodes - 1
    numbers = 2 * n * (n + 1) + sum(size * (size + 1) for size in _levels(n))
    return max(1, numbers) * _BYTES[_SLOPED if task.has_slopes else _EXTENDED]


def _levels(n: int) -> Iterator[int]:
    while n > 1:
        yield n
        n = (n + 1) // 2


def _chart_bytes(places: int, cell: int) -> int:
    """Bytes of memory that `eisner_chart.cuh` needs."""
    pitch = places + (_PARTS - 1 - places) % 32
    return _rounded(places * pitch * cell + 48 * (places + 1), 256)


def _packed_chart(single_root: bool) -> tuple[int, int]:
    """Places of a packed chart, and its bytes: `eisner_packed_bytes` in `eisner_chart.cuh`."""
    places = _PACKED_WORDS if single_root else _PACKED_WORDS + 1
    pitch = places + (_PARTS - 1 - places) % 32
    words = _rounded(12 * places, 8) if single_root else 0
    return places, _rounded(_rounded(12 * places * pitch, 8) + words + 2 * (places - 1) * (places - 2), 16)


def _chart_threads(nodes: int) -> int:
    return min(256, max(64, _rounded(nodes * _PARTS - _PARTS, 32)))
