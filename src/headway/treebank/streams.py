"""Where treebanks are read from and written to: paths, standard input and output, streams; gzip and xz.

Reading tells gzip and xz by their first bytes, writing by the name's end. All is streamed, nothing is read whole.
A path is written beside itself and renamed when complete: whatever happens, the name holds the old file or the new one.
"""

from __future__ import annotations

import errno
import gzip
import io
import lzma
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

from headway.errors import TreebankError

PathOrStream = str | os.PathLike[str] | IO[Any]

_BUFFER = 1 << 18
_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\x00"
_XZ_MEMORY = 1 << 27  # twice what files of `xz -9` need


def name_of(place: PathOrStream, standard: str) -> str:
    """How messages call a source or target; `standard` is the word for "-"."""
    if isinstance(place, str | os.PathLike):
        return os.fspath(place) if place != "-" else standard
    name = getattr(place, "name", None)
    return name if isinstance(name, str) else "stream"


@contextmanager
def open_source(source: PathOrStream) -> Iterator[io.BufferedReader]:
    """Uncompressed bytes to read, whatever the source is. A stream that was passed in stays open."""
    if not isinstance(source, str | os.PathLike):
        yield _uncompressed(_pull(source))
        return
    if source == "-":
        yield _uncompressed(_pull(getattr(sys.stdin, "buffer", sys.stdin)))
        return
    try:
        file = Path(source).open("rb")  # noqa: SIM115  (closed below; only opening has this error)
    except OSError as error:
        cause = f"the file cannot be opened ({error.strerror}); check its name"
        raise TreebankError(cause, os.fspath(source)) from None
    with file:
        yield _uncompressed(file.read1)


@contextmanager
def open_target(target: PathOrStream) -> Iterator[Callable[[str], None]]:
    """A function that writes text. A stream that was passed in stays open."""
    name = name_of(target, "standard output")
    if not isinstance(target, str | os.PathLike):
        yield _writer(target, name)
        return
    if target == "-":
        sys.stdout.flush()
        stream = getattr(sys.stdout, "buffer", sys.stdout)
        yield _writer(stream, name)
        with _reported(name):
            stream.flush()
        return
    path = Path(target)
    with _replacing(path, name) as file, _compressed(file, path, name) as packed:
        yield _writer(packed, name)


class _Pulled(io.RawIOBase):
    """`start` and then what a function gives, as the raw stream that a buffer wants."""

    def __init__(self, pull: Callable[[int], bytes], start: bytes) -> None:
        self._pull = pull
        self._rest = start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = len(buffer)
        piece = self._rest or self._pull(size)
        taken, self._rest = piece[:size], piece[size:]
        buffer[: len(taken)] = taken
        return len(taken)


def _pull(stream: IO[Any]) -> Callable[[int], bytes]:
    """A function that gives about so many bytes, as soon as there are some; b"" at the end."""
    if not _is_text(stream):
        pull: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
        return pull
    # A lone surrogate passes here and is refused where lines are known.
    return lambda size: stream.readline(size).encode("utf-8", "surrogatepass")


def _is_text(stream: IO[Any]) -> bool:
    """Text streams have an encoding; wrappers such as those of tempfile pass that on, unlike their class."""
    return hasattr(stream, "encoding")


def _uncompressed(pull: Callable[[int], bytes]) -> io.BufferedReader:
    start = b""
    while len(start) < len(_XZ) and (piece := pull(len(_XZ) - len(start))):
        start += piece
    raw: io.BufferedReader = io.BufferedReader(_Pulled(pull, start), _BUFFER)
    if start.startswith(_GZIP):
        return io.BufferedReader(gzip.GzipFile(fileobj=raw), _BUFFER)
    if start.startswith(_XZ):
        pieces = _unxz(raw)
        return io.BufferedReader(_Pulled(lambda _: next(pieces, b""), b""), _BUFFER)
    return raw


def _unxz(packed: io.BufferedReader) -> Iterator[bytes]:
    """What one or more xz streams hold, in bounded memory; lzma.open would take as much as the file asks for."""
    pending = packed.read1(_BUFFER)
    while pending:
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        while not decoder.eof:
            if decoder.needs_input and not (pending := pending or packed.read1(_BUFFER)):
                raise EOFError("Compressed file ended before the end-of-stream marker was reached")
            if piece := decoder.decompress(pending, _BUFFER):
                yield piece
            pending = b""
        pending = decoder.unused_data
        while not (pending := pending.lstrip(b"\0")) and (more := packed.read1(_BUFFER)):  # zeros pad streams
            pending = more


@contextmanager
def _compressed(file: BinaryIO, path: Path, name: str) -> Iterator[BinaryIO]:
    """The file itself, or a buffer that compresses into it, as the path's name asks."""
    packed: gzip.GzipFile | lzma.LZMAFile
    match path.suffix.lower():
        case ".gz":
            packed = gzip.GzipFile("", "wb", 6, file, mtime=0)  # no name and time: same text, same bytes
        case ".xz":
            packed = lzma.LZMAFile(file, "wb")  # noqa: SIM115  (closed below)
        case _:
            yield file
            return
    with _closed(io.BufferedWriter(packed, _BUFFER), name) as buffer:
        yield buffer


@contextmanager
def _replacing(path: Path, name: str) -> Iterator[BinaryIO]:
    """A new file that takes the path's name when all went well, and is removed otherwise."""
    if path.exists() and not path.is_file():  # a device or a pipe is no file to put another in the place of
        with _reported(name):
            device = path.open("wb")
        with _closed(device, name):
            yield device
        return
    path = path.resolve()  # a link stays a link
    temporary = path.with_name(f".headway-{secrets.token_hex(8)}.tmp")
    with _reported(name):
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        file = temporary.open("xb", _BUFFER)
    try:
        with _closed(file, name):
            yield file
            with _reported(name):
                file.flush()
                os.fsync(file.fileno())  # a full disk may tell only now
        with _reported(name):
            if path.exists():
                shutil.copymode(path, temporary)
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _closed(stream: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """Close at the end; after another error, that closing fails too is no news."""
    try:
        yield stream
    except BaseException:
        with suppress(OSError):
            stream.close()
        raise
    with _reported(name):
        stream.close()


@contextmanager
def _reported(name: str) -> Iterator[None]:
    """Turn what the system says into an error that names the target; a reader that went away is the caller's affair."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        cause = f"writing failed ({error.strerror}); make room, or choose another name"
        raise TreebankError(cause, name) from None


def _writer(stream: IO[Any], name: str) -> Callable[[str], None]:
    """A function that writes text to a text stream, and UTF-8 to any other."""
    text = _is_text(stream)

    def write(words: str) -> None:
        with _reported(name):
            if text:
                stream.write(words)
                return
            rest = words.encode()
            while rest:
                taken = stream.write(rest)  # an unbuffered stream may take a part only, and some do not say
                rest = rest[len(rest) if taken is None else taken :]

    return write
