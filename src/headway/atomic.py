"""Whole or not at all: how Headway writes its files.

The content goes to a draft beside the target, `.headway-….tmp`, which takes the target's name once it is complete and
on disk. A full disk or Ctrl-C leaves an earlier file as it was. Links stay links, and an existing file keeps its
permissions. Devices and pipes cannot be replaced; they are written to directly.

A draft is named after its target and locked while it is written. One that a kill left behind is locked by nobody: the
next that writes the same file removes it.

Errors of the system are handed to a `Failure`, which makes the exception to raise; errors of whoever writes the content
pass through unchanged.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Failure = Callable[[OSError], Exception]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # what the system says where nothing more can be written

_BUFFER = 1 << 18

_drafts: set[Path] = set()


def write_file(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write bytes, or text as UTF-8; an OSError names the path."""

    def failure(error: OSError) -> OSError:
        return OSError(error.errno, error.strerror, os.fspath(path))

    with replacing(path, failure) as file, reporting(failure):
        file.write(content.encode() if isinstance(content, str) else content)


def remedy(error: OSError) -> str:
    """What to do about a file that cannot be written.

    >>> remedy(FileNotFoundError(errno.ENOENT, "No such file or directory"))
    'create its folder first, or choose another name'
    """
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return "create its folder first, or choose another name"
    if error.errno in (*FULL, errno.EIO):
        return "make room, or choose another name"
    return "choose another name"


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
    begun: list[BinaryIO] = []
    try:
        with reporting(failure):
            if target.exists() and not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            file = _new_draft(target, begun)
        draft = Path(file.name)
        with closing(file, failure):
            yield file
            with reporting(failure):
                file.flush()
                os.fsync(file.fileno())  # only now may a full disk show
        with reporting(failure):
            if target.exists():
                shutil.copymode(target, draft)
            draft.replace(target)
    except BaseException:
        for file in begun:
            with suppress(OSError):
                file.close()
            with suppress(OSError):
                Path(file.name).unlink()
        raise
    finally:
        _drafts.difference_update(Path(file.name) for file in begun)


def remove_drafts() -> None:
    """Remove what is half written; for a process that must leave while another of its threads writes."""
    for draft in list(_drafts):
        with suppress(OSError):
            draft.unlink()


@contextmanager
def claimed(folder: Path, refusal: Exception) -> Iterator[None]:
    """Keep a folder to this process, by a lock beside it; where another process has it, the refusal is raised."""
    lock = folder.with_name(f".headway-{_short(folder.name)}.lock")
    try:
        file = lock.open("ab")
    except OSError:  # nothing can be written here, by another process neither
        yield
        return
    with file:
        if fcntl is not None and not _lock(file):
            raise refusal
        _drafts.add(lock)
        try:
            yield
        finally:
            _drafts.discard(lock)
            with suppress(OSError):
                lock.unlink()


def remove_abandoned_drafts(folder: Path) -> None:
    """Remove the drafts in a folder that nobody is writing."""
    for draft in folder.glob(".headway-*.tmp"):
        _remove_abandoned(draft)


def _new_draft(target: Path, begun: list[BinaryIO]) -> BinaryIO:
    """A new file, locked until it is closed; named after the target unless another process is just writing that.

    It is in `begun` before it is returned, and could be lost: a signal may come as soon as there is a file.
    """
    name = _short(target.name)
    for own in (name, f"{name}-{os.urandom(8).hex()}"):
        draft = target.with_name(f".headway-{own}.tmp")
        _remove_abandoned(draft)
        file: BinaryIO | None = None
        try:
            file = draft.open("xb", _BUFFER)
            _lock(file)
            if draft.exists() and os.path.samestat(draft.stat(), os.fstat(file.fileno())):
                begun.append(file)
                _drafts.add(draft)
                return file
            file.close()  # taken for abandoned in the moment before it was locked
        except FileExistsError:
            continue
        except BaseException:
            if file is not None:
                file.close()
            _remove_abandoned(draft)
            raise
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _short(name: str) -> str:
    """A name of fixed length for any name: with more around it, a long one would be too long for a file."""
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:16]


def _remove_abandoned(draft: Path) -> None:
    with suppress(OSError), draft.open("rb") as file:
        if _lock(file):
            draft.unlink()


def _lock(file: BinaryIO) -> bool:
    """Lock the file for this process until it is closed, unless another has; false also where nothing can be locked."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


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
