"""How kernels are compiled, and the one line that says so.

A *kernel* is called from Python. It compiles when first called and is cached on disk (`kernel_cache`), so the wait
happens once a machine. It is announced on standard error, once a process and only when compiling has taken three
seconds (`HEADWAY_QUIET=1` silences it).

A *part* is called from kernels only, and compiled into each that calls it. It must not be cached itself: what Numba
loads from its cache is object code, which cannot be inlined, and a kernel built from it can be several times
slower. It is always inlined: where that is left to LLVM, a process that compiles a kernel calls the part as compiled
alone, one that loads the kernel calls the part as compiled with it, and their results differ in the last bits. Numba's
entries for Python and C, into each of which the part would be inlined again, are left out, which saves time.

Fast-math is limited to reassociation, contraction into fused multiply-adds and the sign of zero: nan and infinity
keep their IEEE meaning, which the kernels rely on.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from threading import Timer
from typing import Any, ParamSpec, TypeVar

from numba import njit
from numba.core import event

from headway.inference.kernel_cache import cache_of

P = ParamSpec("P")
R = TypeVar("R")

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
_KERNEL: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
_WITHOUT_ENTRY: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A function called from Python: compiled on first call, cached on disk, free of the interpreter lock."""
    compiled: Any = njit(**_KERNEL, **_OPTIONS)(function)
    if hasattr(compiled, "_cache"):  # not where NUMBA_DISABLE_JIT leaves the function as it is
        compiled._cache = cache_of(function)
    return compiled  # type: ignore[no-any-return]


def part(function: Callable[P, R]) -> Callable[P, R]:
    """A function called from kernels, compiled into each of them."""
    return _inlined(function, **_OPTIONS)


def ordered_part(function: Callable[P, R]) -> Callable[P, R]:
    """A part whose operations must not be reassociated."""
    return _inlined(function, error_model="numpy", fastmath={"contract"})


def _inlined(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    compiled: Any = njit(**options, **_WITHOUT_ENTRY)(function)
    if hasattr(compiled, "_insert"):  # not where NUMBA_DISABLE_JIT leaves the function as it is
        with_entry = njit(**options)(function)
        # Python would find a null pointer where there is no entry. What calls a part, as tests do, gets one with entry.
        compiled._insert = lambda *_, **__: None
        compiled._compile_for_args = lambda *_, **__: with_entry
    return compiled  # type: ignore[no-any-return]


class _Announcement(event.Listener):
    """Says once that kernels are being compiled, when that has taken some seconds.

    Numba fires this event on a miss of its disk cache only, and again for whatever else a kernel needs compiled.
    """

    def __init__(self) -> None:
        self._left, self._depth = _PATIENCE, 0
        self._since = 0.0
        self._timer: Timer | None = None

    def on_start(self, event: Any) -> None:
        """The clock runs while a kernel is compiled."""
        module = getattr(event.data["dispatcher"].py_func, "__module__", "")
        if self._depth or module.startswith("headway."):
            self._depth += 1
        if self._depth != 1 or self._left <= 0:
            return
        self._since = time.monotonic()
        self._timer = Timer(self._left, self._say)
        self._timer.daemon = True
        self._timer.start()

    def on_end(self, event: Any) -> None:
        """The clock stops when the kernel is done, with all that it needed."""
        self._depth = max(0, self._depth - 1)
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._left -= time.monotonic() - self._since

    def _say(self) -> None:
        self._left = 0.0
        if not os.environ.get("HEADWAY_QUIET"):
            print(
                "headway: compiling kernels for their first use on this machine, which may take half a minute; they "
                "are kept, and `headway warm-up` compiles them beforehand",
                file=sys.stderr,
            )


_PATIENCE = 3.0  # seconds

_announcement = _Announcement()
event.register("numba:compile", _announcement)  # type: ignore[no-untyped-call]
