"""A channel between two processes of this machine: a pipe, and memory that both ends see.

Messages are pickled, their arrays outside the pickle (PEP 574). One end writes the arrays into the memory, the other
copies them out: 3 ms for 30 MB, which take a pipe 30. The ends speak in turns, so one memory serves both directions. It
keeps the pages that the largest message so far has needed, since fresh ones cost ten times the copy. Arrays that do not
fit go through the pipe.

The memory is a file without a name (`memfd_create`): however the processes end, nothing is left of it, and it takes no
room in /dev/shm. Only Linux has it; elsewhere everything goes through the pipe.
"""

from __future__ import annotations

import os
import pickle
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import accumulate, pairwise
from mmap import mmap
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

import numpy as np

MEMORY = 1 << 28  # bytes; they take no room until they are written


@dataclass(frozen=True)
class Channel:
    """One end; without memory, only the pipe."""

    connection: Connection
    memory: mmap | None = None

    @classmethod
    def open(cls, connection: Connection) -> Channel:
        """The end of the process that makes the memory; fails as `send` does."""
        memory = None
        with ExitStack() as files:
            with suppress(AttributeError, OSError):  # the system has no such file, or allows none
                file = files.enter_context(os.fdopen(os.memfd_create("headway"), "r+b", buffering=0))
                file.truncate(MEMORY)
                memory = mmap(file.fileno(), MEMORY)
            connection.send(memory is not None)
            if memory is not None:
                send_handle(connection, file.fileno(), None)
        return cls(connection, memory)

    @classmethod
    def join(cls, connection: Connection) -> Channel:
        """The other end."""
        if not connection.recv():
            return cls(connection)
        with os.fdopen(recv_handle(connection), "r+b", buffering=0) as file:
            return cls(connection, mmap(file.fileno(), MEMORY))

    def send(self, message: Any) -> None:
        """A ConnectionError says that nobody is at the other end."""
        buffers: list[pickle.PickleBuffer] = []
        data = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
        arrays = [buffer.raw() for buffer in buffers]
        sizes = [array.nbytes for array in arrays]
        memory = self.memory if sum(sizes) <= MEMORY else None
        if memory is not None:
            for array, (start, stop) in zip(arrays, _places(sizes), strict=True):
                memory[start:stop] = array
        self.connection.send((data, sizes, memory is not None))
        if memory is None:
            for array in arrays:
                self.connection.send_bytes(array)

    def receive(self) -> Any:
        """The next message; its arrays are nobody else's. An EOFError says that nobody is at the other end."""
        data, sizes, in_memory = self.connection.recv()
        arrays = [np.empty(size, np.uint8) for size in sizes]
        if in_memory:
            assert self.memory is not None
            memory = np.frombuffer(self.memory, np.uint8)
            for array, (start, stop) in zip(arrays, _places(sizes), strict=True):
                array[:] = memory[start:stop]
        else:
            for array in arrays:
                if len(array):
                    self.connection.recv_bytes_into(array)
                else:
                    self.connection.recv_bytes()
        return pickle.loads(data, buffers=arrays)


def _places(sizes: list[int]) -> list[tuple[int, int]]:
    """Where arrays of these sizes lie, one after the other."""
    return list(pairwise(accumulate(sizes, initial=0)))
