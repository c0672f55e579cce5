"""A graph that runs on ONNX Runtime: one session, which any number of threads may share.

Each run takes one thread; several batches at once take several. A graph is looked at before the runtime reads it
(`headway.neural.graph_check`), and comes from memory: neither the disk nor a network is touched. Since 1.31 the runtime
itself would give the machine a number, keep it on disk and send events to its makers; it is told not to.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from llvmlite.binding import get_host_cpu_features  # type: ignore[import-untyped]
from numpy.typing import NDArray

from headway.errors import ArchiveError
from headway.extras import required
from headway.neural.graph_check import check_graph

_MOST_BYTES = 1 << 31
_QUIET = 4  # of the runtime's own log: fatal errors only, since ours say what is wrong


class Session:
    """`inputs` and `outputs` are the names that the graph must have, in any order."""

    def __init__(self, graph: bytes, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        if len(graph) > _MOST_BYTES:
            raise ValueError(f"the graph has {len(graph)} bytes, more than any network of Headway")
        check_graph(graph)
        self.graph, self.inputs, self.outputs = graph, tuple(inputs), tuple(outputs)
        self._session = _opened(graph)
        for what, own, wanted in (
            ("inputs", self._session.get_inputs(), self.inputs),
            ("outputs", self._session.get_outputs(), self.outputs),
        ):
            names = sorted(each.name for each in own)
            if names != sorted(wanted):
                raise ValueError(f"the graph has the {what} {', '.join(names)[:60]}, not {', '.join(sorted(wanted))}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Session, (self.graph, self.inputs, self.outputs)

    def run(
        self, inputs: Mapping[str, NDArray[Any]], wanted: Sequence[str] | None = None
    ) -> dict[str, NDArray[np.float32]]:
        """The outputs by name, all or those that are wanted."""
        names = self.outputs if wanted is None else wanted
        try:
            found = self._session.run(names, inputs)
        except Exception as error:  # the runtime raises bare ones
            raise ArchiveError(
                f"the network of the model cannot be run ({_cause(error)}); save the model again"
            ) from None
        return dict(zip(names, found, strict=True))


def _opened(graph: bytes) -> Any:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    with required("onnxruntime"):
        import onnxruntime

    onnxruntime.disable_telemetry_events()  # where it was imported before
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _QUIET
    if _overflows():
        options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        # Without a second attempt, which the runtime would announce on stdout.
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"], enable_fallback=0)
    except Exception as error:  # the runtime raises bare ones
        raise ValueError(f"the runtime refuses the graph: {_cause(error)}") from None


def _overflows() -> bool:
    """Whether this processor adds products of bytes in 16 bits, which is too few, unless it is told to be slow."""
    features = get_host_cpu_features()
    return platform.machine().lower() in ("x86_64", "amd64") and not (
        features.get("avx512vnni") or features.get("avxvnni")
    )


def _cause(error: Exception) -> str:
    return " ".join(str(error).split())[:120]
