"""Whole or not at all: how Headway writes its files.

The content goes to a temporary file beside the target, `.headway-….tmp`, which takes the target's name once it is
complete and on disk. A full disk or Ctrl-C leaves an earlier file as it was. Links stay links, and an existing file
keeps its permissions. Devices and pipes cannot be replaced; they are written to directly.

Errors of the system are handed to a `Failure`, which makes the exception to raise; errors of whoever writes the content
pass through unchanged.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

Failure = Callable[[OSError], Exception]

_BUFFER = 1 << 18

_drafts: set[Path] = set()


def write_file(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write bytes, or text as UTF-8; an OSError names the path."""

    def failure(error: OSError) -> OSError:
        return OSError(error.errno, error.strerror, os.fspath(path))

    with replacing(path, failure) as file, reporting(failure):
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: str | os.PathLike[str], failure: Failure) -> Iterator[BinaryIO]:
    """A new file that takes the path's name if all goes well, and is removed otherwise."""
    target = Path(path)
    with reporting(failure):
        _require_name(target)
    if target.exists() and not target.is_file():
        with reporting(failure):
            device = target.open("wb")
        with closing(device, failure):
            yield device
        return
    target = target.resolve()
    # Named before it exists, so that an interruption at any moment finds what to remove.
    temporary = target.with_name(f".headway-{os.urandom(8).hex()}.tmp")
    _drafts.add(temporary)
    try:
        with reporting(failure):
            if target.exists() and not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            file = temporary.open("xb", _BUFFER)
        with closing(file, failure):
            yield file
            with reporting(failure):
                file.flush()
                os.fsync(file.fileno())  # only now may a full disk show
        with reporting(failure):
            if target.exists():
                shutil.copymode(target, temporary)
            temporary.replace(target)
    except BaseException:
        with suppress(OSError):  # it may never have existed
            temporary.unlink()
        raise
    finally:
        _drafts.discard(temporary)


def remove_drafts() -> None:
    """Remove what is half written; for a process that must leave while another of its threads writes."""
    for draft in list(_drafts):
        with suppress(OSError):
            draft.unlink()


@contextmanager
def closing(stream: BinaryIO, failure: Failure) -> Iterator[BinaryIO]:
    """Close the stream at the end; after another error, a failure to close is not reported."""
    try:
        yield stream
    except BaseException:
        with suppress(OSError):
            stream.close()
        raise
    with reporting(failure):
        stream.close()


@contextmanager
def reporting(failure: Failure) -> Iterator[None]:
    """Turn an error of the system into the failure's exception; a closed pipe is for the caller to handle."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise failure(error) from None


def _require_name(path: Path) -> None:
    """Refuse what no file can be called, as the system does with other names."""
    try:
        path.lstat()
    except ValueError as error:  # a NUL, or a lone surrogate
        raise OSError(errno.EINVAL, str(error)) from None
    except OSError:
        pass
