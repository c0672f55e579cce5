"""Launches that cost the host little: planned once, their arguments in one record.

The kernels of a call have most of their arguments in common. These are fields of one record, of eight bytes each, and a
launch is a function, the shape of its grid, and the addresses of the fields that it takes. So a call fills in the
record, and hands addresses to the driver, which copies what they point to. One call at a time may do so.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headway.torch.cuda.nvrtc import configuration, function, queue

# A field is an address, a number of 32 bits, or 0 for what a call does not have; `nothing` always is.
_FIELDS = (
    "nothing", "scores", "f", "lengths", "batch", "nodes", "log_z", "arcs", "heads",
    "first_list", "first_done", "second_list", "second_done", "workspace",
)  # fmt: skip
_WORKSPACE = _FIELDS.index("workspace")
_BYTES = 8


class Record:
    """The arguments of all launches of a call."""

    def __init__(self) -> None:
        self._fields = (ctypes.c_int64 * len(_FIELDS))()

    def fill(self, *values: int) -> None:
        """Set all fields but the first and the last."""
        self._fields[1:_WORKSPACE] = list(values)

    def set_workspace(self, address: int) -> None:
        """Set the last, which each launch may have its own of."""
        self._fields[_WORKSPACE] = address

    def address(self, field: str) -> int:
        """Where a field is."""
        return ctypes.addressof(self._fields) + _BYTES * _FIELDS.index(field)


@dataclass(frozen=True)
class Launch:
    """A kernel, compiled when first launched, and all that is known of its launch before the batch is."""

    record: Record
    device: int
    source: str
    expression: str
    takes: tuple[str, ...]  # fields of the record
    threads: int  # of a block
    shared: int  # bytes of a block's shared memory
    most_blocks: int
    sentences: int = 1  # that a block has at a time
    workspace: int = 0  # bytes of device memory that each block needs
    unless_empty: int | None = None  # the number of a list that the host looks at before it launches

    def blocks(self, batch: int) -> int:
        """So many for a batch."""
        return min(-(-batch // self.sentences), self.most_blocks)

    def queue(self, batch: int, stream: int) -> None:
        """Launch it with the record as it is now."""
        queue(self._function, self.device, self._configuration, self.blocks(batch), stream, self._address)

    @cached_property
    def _configuration(self) -> Any:
        reads_list = any(field.endswith("_done") for field in self.takes)
        return configuration(self.threads, self.shared, early=reads_list)

    @cached_property
    def _function(self) -> Any:
        return function(self.device, self.source, self.expression, self.shared)

    @cached_property
    def _addresses(self) -> ctypes.Array[ctypes.c_void_p]:
        return (ctypes.c_void_p * len(self.takes))(*map(self.record.address, self.takes))

    @cached_property
    def _address(self) -> int:
        return ctypes.addressof(self._addresses)
