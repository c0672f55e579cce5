"""Where treebanks and texts are read from and written to: paths, standard input and output, streams; gzip and xz.

Reading recognises gzip and xz by their first bytes, writing by the end of the name. Everything is streamed; no file is
held whole. A path is written whole or not at all (`headway.atomic`).
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal

from headway.atomic import Failure, closing, remedy, replacing, reporting
from headway.errors import ArgumentError, TreebankError

PathOrStream = str | os.PathLike[str] | IO[Any]

# What reading raises when the data are incomplete or damaged.
READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, UnicodeDecodeError)

_BUFFER = 1 << 18
_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\x00"
_XZ_MEMORY = 1 << 27  # twice what files of `xz -9` need


def name_of(place: PathOrStream, standard: str) -> str:
    """What messages call a source or target; `standard` is the word for "-"."""
    if isinstance(place, str | os.PathLike):
        return os.fspath(place) if place != "-" else standard
    name = getattr(place, "name", None)
    return name if isinstance(name, str) else "stream"


def require_stream(place: object, method: Literal["read", "write"]) -> None:
    """Refuse what is neither a path nor an open file, as soon as it is given."""
    if not isinstance(place, str | os.PathLike) and not hasattr(place, method):
        raise ArgumentError(f"expected a path or an open file to {method}, got {type(place).__name__}")


class Source(io.BufferedReader):
    """Uncompressed bytes to read, under the name that errors say. Opening it again changes nothing.

    >>> source = Source(_Peekable(io.BytesIO(b"Dogs\\nbark.\\n").read1), "a.txt")
    >>> list(source.peek_lines(8)), source.read(), source.name
    ([b'Dogs\\n'], b'Dogs\\nbark.\\n', 'a.txt')
    """

    def __init__(self, peekable: _Peekable, name: str) -> None:
        super().__init__(peekable, _BUFFER)
        peekable.name = name
        self._peekable = peekable

    def peek_lines(self, limit: int) -> Iterator[bytes]:
        """The first lines, as far as they end within `limit` bytes, each waited for only when it is asked for.

        Call this before anything is read; the lines are still to be read.
        """
        return self._peekable.lines(limit)


class _Peekable(io.RawIOBase):
    """What a function gives piece by piece, b"" at the end, as the raw stream that a buffer wants.

    `pending` is what was pulled and is still to be read.
    """

    name = ""

    def __init__(self, pull: Callable[[int], bytes]) -> None:
        self._pull = pull
        self.pending = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = len(buffer)
        piece = self.pending or self._pull(size)
        taken, self.pending = piece[:size], piece[size:]
        buffer[: len(taken)] = taken
        return len(taken)

    def starts_with(self, magic: bytes) -> bool:
        """Whether these bytes come first; no more is pulled than is needed to tell."""
        while len(self.pending) < len(magic) and magic.startswith(self.pending) and self._pull_more():
            pass
        return self.pending.startswith(magic)

    def lines(self, limit: int) -> Iterator[bytes]:
        """The lines that end within `limit` bytes."""
        start = 0
        while start < limit:
            end = self.pending.find(b"\n", start, limit) + 1
            if not end and len(self.pending) < limit:
                if self._pull_more():
                    continue
                end = len(self.pending)
            if end <= start:
                return
            yield self.pending[start:end]
            start = end

    def _pull_more(self) -> bool:
        piece = self._pull(_BUFFER)
        self.pending += piece
        return bool(piece)


@contextmanager
def open_source(source: PathOrStream) -> Iterator[Source]:
    """Uncompressed bytes to read, whatever the source is. A stream that was passed in stays open."""
    if isinstance(source, Source):
        yield source
        return
    name = name_of(source, "standard input")
    if not isinstance(source, str | os.PathLike):
        yield _uncompressed(_pull(source), name)
        return
    if source == "-":
        yield _uncompressed(_pull(getattr(sys.stdin, "buffer", sys.stdin)), name)
        return
    try:
        file = Path(source).open("rb")  # noqa: SIM115  (closed below; only opening has this error)
    except (OSError, ValueError) as error:  # a name with a NUL or a lone surrogate is a ValueError
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise TreebankError.unopened(name, cause) from None
    with file:
        yield _uncompressed(file.read1, name)


@contextmanager
def open_target(target: PathOrStream) -> Iterator[Callable[[str], None]]:
    """A function that writes text. A stream that was passed in stays open."""
    name = name_of(target, "standard output")

    def failure(error: OSError) -> TreebankError:
        return TreebankError(f"writing failed ({error.strerror}); {remedy(error)}", name)

    if not isinstance(target, str | os.PathLike):
        yield _writer(target, failure)
        return
    if target == "-":
        sys.stdout.flush()
        stream = getattr(sys.stdout, "buffer", sys.stdout)
        yield _writer(stream, failure)
        with reporting(failure):
            stream.flush()
        return
    with replacing(target, failure) as file, _compressed(file, Path(target), failure) as packed:
        yield _writer(packed, failure)


def _pull(stream: IO[Any]) -> Callable[[int], bytes]:
    """A function that gives about so many bytes, as soon as there are some; b"" at the end."""
    if not _is_text(stream):
        pull: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
        return pull
    # A lone surrogate passes here and is refused where lines are known.
    return lambda size: stream.readline(size).encode("utf-8", "surrogatepass")


def _is_text(stream: IO[Any]) -> bool:
    """Text streams have an encoding; wrappers such as tempfile's pass that on, though their class is another."""
    return hasattr(stream, "encoding")


def _uncompressed(pull: Callable[[int], bytes], name: str) -> Source:
    raw = _Peekable(pull)
    if raw.starts_with(_GZIP):
        return Source(_Peekable(gzip.GzipFile(fileobj=io.BufferedReader(raw, _BUFFER)).read1), name)
    if raw.starts_with(_XZ):
        pieces = _unxz(io.BufferedReader(raw, _BUFFER))
        return Source(_Peekable(lambda _: next(pieces, b"")), name)
    return Source(raw, name)


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
def _compressed(file: BinaryIO, path: Path, failure: Failure) -> Iterator[BinaryIO]:
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
    with closing(io.BufferedWriter(packed, _BUFFER), failure) as buffer:
        yield buffer


def _writer(stream: IO[Any], failure: Failure) -> Callable[[str], None]:
    """A function that writes text to a text stream, and UTF-8 to any other."""
    text = _is_text(stream)

    def write(words: str) -> None:
        with reporting(failure):
            if text:
                stream.write(words)
                return
            rest = words.encode()
            while rest:
                taken = stream.write(rest)  # an unbuffered stream may take only a part, and some return nothing
                rest = rest[len(rest) if taken is None else taken :]

    return write
