"""The one way kernels are compiled, and the one line that says so.

Kernels compile when first called and are cached on disk by Numba, so the wait happens once a machine. It is
announced on standard error, once a process and only when something really is compiled (`HEADWAY_QUIET=1` silences
it). Fast-math is limited to reassociation, contraction into fused multiply-adds and the sign of zero: nan and
infinity keep their IEEE meaning, which the kernels rely on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from numba import njit
from numba.core import event

P = ParamSpec("P")
R = TypeVar("R")

_FASTMATH = {"reassoc", "contract", "nsz"}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` on first call; cached on disk, free of the interpreter lock, numpy's division rules."""
    compiled: Callable[P, R] = njit(cache=True, nogil=True, error_model="numpy", fastmath=_FASTMATH)(function)
    return compiled


class _Announcement(event.Listener):
    """Says once that kernels are being compiled. Numba fires this event on a miss of its disk cache only."""

    said = False

    def on_start(self, event: Any) -> None:
        module = getattr(event.data["dispatcher"].py_func, "__module__", "")
        if self.said or not module.startswith("headway.") or os.environ.get("HEADWAY_QUIET"):
            return
        self.said = True
        print(
            "headway: compiling kernels for their first use on this machine "
            "(some seconds; cached on disk from then on)",
            file=sys.stderr,
        )

    def on_end(self, event: Any) -> None:
        """Required by the interface; there is nothing to say when a kernel is done."""


event.register("numba:compile", _Announcement())  # type: ignore[no-untyped-call]
