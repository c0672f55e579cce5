"""How kernels are compiled, and the one line that says so.

A *kernel* is called from Python. It compiles when first called and is cached on disk (`kernel_cache`), so the wait
happens once a machine. It is announced on standard error, once a process and only when something really is compiled
(`HEADWAY_QUIET=1` silences it).

A *part* is called from kernels only, and compiled into each that calls it. It must not be cached itself: what Numba
loads from its cache is object code, which cannot be inlined, and a kernel built from it can be several times
slower. It is always inlined: where that is left to LLVM, a process that compiles a kernel calls the part as compiled
alone, one that loads the kernel calls the part as compiled with it, and their results differ in the last bits.

Fast-math is limited to reassociation, contraction into fused multiply-adds and the sign of zero: nan and infinity
keep their IEEE meaning, which the kernels rely on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from numba import njit
from numba.core import event

from headway.inference.kernel_cache import KernelCache

P = ParamSpec("P")
R = TypeVar("R")

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A function called from Python: compiled on first call, cached on disk, free of the interpreter lock."""
    compiled: Any = njit(nogil=True, **_OPTIONS)(function)
    if hasattr(compiled, "_cache"):  # not where NUMBA_DISABLE_JIT leaves the function as it is
        compiled._cache = KernelCache(function)
    return compiled  # type: ignore[no-any-return]


def part(function: Callable[P, R]) -> Callable[P, R]:
    """A function called from kernels, compiled into each of them."""
    compiled: Callable[P, R] = njit(forceinline=True, **_OPTIONS)(function)
    return compiled


def ordered_part(function: Callable[P, R]) -> Callable[P, R]:
    """A part whose operations must not be reassociated."""
    compiled: Callable[P, R] = njit(forceinline=True, error_model="numpy", fastmath={"contract"})(function)
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
            "(up to half a minute each; cached on disk from then on)",
            file=sys.stderr,
        )

    def on_end(self, event: Any) -> None:
        """Required by the interface; there is nothing to say when a kernel is done."""


event.register("numba:compile", _Announcement())  # type: ignore[no-untyped-call]
