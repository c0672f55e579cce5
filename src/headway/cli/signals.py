"""Ctrl-C and SIGTERM: a command leaves within a second, whatever it is doing.

The ordinary way is an exception in the main thread, which closes and removes files as it goes. But Python raises it
between two of its own instructions only, and a kernel may run for minutes. The number of a signal is also written to a
pipe at once (`signal.set_wakeup_fd`), where a thread waits for it; kernels hold no interpreter lock. If the main thread
is still there after a moment, that thread writes out the whole lines that are waiting, removes half-written files and
ends the process. Checkpoints stay: they are written whole or not at all.

There is one place where the exception would do harm: to return a named tuple from a kernel, Numba calls Python, and
does not look whether that failed. A signal that comes there is heard a moment later.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from types import FrameType

from headway.atomic import remove_drafts

_MOMENT = 0.3  # seconds
_LATER = 0.001
_DEEPEST = 4  # calls below those that Numba makes
_FOR_THE_READER = 0.2  # a reader who takes nothing more is not waited for

_SHOW_CURSOR = b"\x1b[?25h"  # progress bars hide it


class _State:
    """What a signal finds: whether a command runs, what to say of it, and which one the main thread has heard."""

    running = False
    done = False
    heard = 0
    moment = _MOMENT
    remedy: Callable[[], str] = staticmethod(lambda: "")


def heed_signals() -> None:
    """From now on, Ctrl-C (unless it is ignored, as in the background) and SIGTERM end the process."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    Thread(target=_wait, args=[reader], daemon=True).start()
    signal.signal(signal.SIGTERM, _leave)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _leave)


@contextmanager
def command_running() -> Iterator[None]:
    """While this lasts, Ctrl-C is a KeyboardInterrupt; otherwise there is nobody to handle it."""
    _State.running = True
    try:
        yield
    finally:
        _State.running = False


@contextmanager
def if_interrupted(remedy: Callable[[], str]) -> Iterator[None]:
    """What to say after "interrupted", should that happen in here."""
    before, _State.remedy = _State.remedy, remedy
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted(remedy()) from error
    finally:
        _State.remedy = before


@contextmanager
def time_to_close(seconds: float) -> Iterator[None]:
    """In here, the main thread has this long to close what is open, once it has heard a signal."""
    before, _State.moment = _State.moment, seconds
    try:
        yield
    finally:
        _State.moment = before


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, and what to do next."""


def all_is_written() -> None:
    """A signal that comes now, while Python shuts down, ends the process on the spot."""
    _State.done = True


def leave_if_told() -> None:
    """End the process if a signal came: its exception may have been lost in a callback, and shown as another one."""
    if _State.heard:
        _clear_up(_State.heard)
        os._exit(128 + _State.heard)


def end_with_status() -> None:
    """End the process if a signal came, once all is written, with the status that tells so.

    Python would end with another one, killed by the signal, if the exception was raised in a text that was executed.
    """
    if _State.heard:
        _write_out()
        os._exit(128 + _State.heard)


def _leave(number: int, frame: FrameType | None) -> None:
    """The ordinary way: an exception in the main thread."""
    _State.heard = number
    sys.unraisablehook = lambda _: None  # the exception may hit a destructor; that is no news
    if _State.done:
        os._exit(128 + number)
    if _is_called_by_kernel(frame) and hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda _, later: _leave(number, later))
        signal.setitimer(signal.ITIMER_REAL, _LATER)
        return
    if number == signal.SIGINT and _State.running:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def _is_called_by_kernel(frame: FrameType | None) -> bool:
    """Whether the code that runs makes a kernel's result: Numba looks up the class of a named tuple, and calls it."""
    for _ in range(_DEEPEST):
        if frame is None:
            return False
        if frame.f_code.co_name == "_numba_unpickle":
            return True
        if (frame.f_code.co_filename, frame.f_code.co_name) == ("<string>", "<lambda>"):
            return True  # the `__new__` that `collections` makes from a text
        frame = frame.f_back
    return False


def _wait(reader: int) -> None:
    """The other way, where the main thread is in a kernel, or waits for threads that are."""
    number = 0
    while number not in (signal.SIGINT, signal.SIGTERM):
        number = os.read(reader, 1)[0]
    time.sleep(_State.moment)
    try:
        _clear_up(number)
    finally:
        os._exit(128 + number)


def _clear_up(number: int) -> None:
    remove_drafts()
    writing = Thread(target=_write_out, daemon=True)
    writing.start()
    writing.join(_FOR_THE_READER)
    if os.isatty(2):
        os.write(2, _SHOW_CURSOR)
    if number == signal.SIGINT and not _State.heard:
        os.write(2, f"\nheadway: interrupted{_State.remedy()}\n".encode())


def _write_out() -> None:
    with suppress(OSError, ValueError):  # closed, perhaps
        sys.stdout.flush()
