"""The documents of a shard, in order, in bounded memory; what cannot be read comes as a document with a problem.

| kind | a document is | begins in the bytes start..stop if |
| --- | --- | --- |
| text, unit file | a file | the file does |
| text, unit line; JSONL | a line that is not blank | its first byte does |
| text, unit paragraph; CoNLL-U, CoNLL-X | a block of lines | the last blank line before it does |
| Parquet | a row | the first page of its row group does |

The first block of a file has no blank line before it, and belongs to the first bytes.

The id of a document is its file and the byte at which it begins there (the row, for Parquet; of a compressed file, the
byte of what it unpacks to), unless the data name one.
"""

from __future__ import annotations

import json
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from headway.errors import TreebankError
from headway.extras import require_extra
from headway.ray.places import place_of
from headway.ray.plan import LARGEST, Piece, Unit, is_compressed
from headway.treebank import Sentence
from headway.treebank.annotations import comment
from headway.treebank.conll_reader import Block, parse_block
from headway.treebank.streams import open_source

_BUFFER = 1 << 20
_ROWS = 1024  # of Parquet, read at a time
_BYTE_ORDER_MARK = "\ufeff".encode()
_TOO_LARGE = f"the document has more than {LARGEST:,} bytes; cut it into smaller ones"

# What reading raises when the data are damaged. gzip and Arrow raise an OSError then, too, but one without a number.
_DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError)


class Raw(NamedTuple):
    """A document as it came: text or a sentence to parse; or, with None, what its problem is.

    `source` is what an error keeps of it.
    """

    id: str
    content: str | Sentence | None
    source: str
    problem: str = ""


class _Line(NamedTuple):
    """A line and the byte at which it begins; None in place of one that is too long."""

    offset: int
    content: bytes | None


@dataclass(frozen=True)
class Fields:
    """Where the text of a JSON object or of a row is, and its id, if it has one."""

    text: str = "text"
    id: str | None = None


def documents(piece: Piece, unit: Unit, fields: Fields) -> Iterator[Raw]:
    """The documents that begin in a piece of a file.

    An OSError of the system passes through: the file may be there in a moment. Data that are damaged end with a
    document that says so.
    """
    try:
        with _open(piece) as stream:
            if piece.kind == "parquet":
                yield from _rows(stream, piece, fields)
            elif piece.kind == "text" and unit == "file":
                yield _text(piece.name, stream.read(LARGEST + 1))
            else:
                yield from _parts(stream, piece, unit, fields)
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = f"the data break off or are damaged ({error}); get a complete copy"
        yield Raw(f"{piece.name}:{piece.start}-{piece.stop}", None, "", reason)


@contextmanager
def _open(piece: Piece) -> Iterator[BinaryIO]:
    """The bytes of a file, uncompressed."""
    with place_of(piece.path).read(piece.path) as file:
        if not is_compressed(piece.path):
            yield file
            return
        with open_source(_without_zstandard(file) if piece.path.lower().endswith(".zst") else file) as stream:
            yield stream


def _without_zstandard(file: BinaryIO) -> Any:
    require_extra("pyarrow", "ray", "a .zst file")
    import pyarrow

    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), "zstd")


def _parts(stream: BinaryIO, piece: Piece, unit: Unit, fields: Fields) -> Iterator[Raw]:
    """The documents of a file that has several, line by line or block by block."""
    stop = sys.maxsize if is_compressed(piece.path) else piece.stop
    lines = _lines(stream, piece.start)
    if (piece.kind == "text" and unit == "line") or piece.kind == "jsonl":
        for offset, line in _begun_before(stop, lines):
            id = f"{piece.name}:{offset}"
            if line is None:
                yield Raw(id, None, "", _TOO_LARGE)
            elif line.strip():
                yield _object(id, line, fields) if piece.kind == "jsonl" else _text(id, line.rstrip(b"\r\n"))
        return
    for offset, block in _blocks(lines, piece.start, stop):
        id = f"{piece.name}:{offset}"
        if block is None:
            yield Raw(id, None, "", _TOO_LARGE)
        elif piece.kind == "text":
            yield _text(id, block)
        else:
            yield _sentence(id, block, piece)


def _lines(stream: BinaryIO, start: int) -> Iterator[_Line]:
    """The lines from the first that begins at `start` or later, to the end of the file."""
    offset = 0
    if start:
        stream.seek(start - 1)
        offset = start - 1 + len(stream.readline())
    while line := stream.readline(LARGEST + 1):
        begun, offset = offset, offset + len(line)
        if begun == 0:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if len(line) <= LARGEST:
            yield _Line(begun, line)
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(LARGEST)
            offset += len(line)
        yield _Line(begun, None)


def _begun_before(stop: int, lines: Iterator[_Line]) -> Iterator[_Line]:
    for line in lines:
        if line.offset >= stop:
            return
        yield line


def _blocks(lines: Iterator[_Line], start: int, stop: int) -> Iterator[_Line]:
    """The blocks of lines that belong here, each as one."""
    block: list[bytes] = []
    begun, size, ours = 0, 0, start == 0
    for offset, line in lines:
        if line is None or line.strip():
            if not ours:
                continue
            begun = begun if size else offset
            size += LARGEST + 1 if line is None else len(line)
            if line is not None and size <= LARGEST:
                block.append(line)
            continue
        if size:
            yield _Line(begun, b"".join(block) if size <= LARGEST else None)
            block, size = [], 0
        if offset >= stop:
            return
        ours = True
    if size:
        yield _Line(begun, b"".join(block) if size <= LARGEST else None)


def _text(id: str, content: bytes) -> Raw:
    if len(content) > LARGEST:
        return Raw(id, None, "", _TOO_LARGE)
    try:
        text = content.removeprefix(_BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        return Raw(id, None, content.decode(errors="backslashreplace"), _not_utf8(error))
    return Raw(id, text, text)


def _not_utf8(error: UnicodeDecodeError) -> str:
    return f"0x{error.object[error.start]:02x} at byte {error.start + 1} of it is not valid UTF-8; save it as UTF-8"


def _object(id: str, line: bytes, fields: Fields) -> Raw:
    """A line of JSON."""
    shown = line.decode(errors="backslashreplace").rstrip("\r\n")
    try:
        data = json.loads(line)
    except UnicodeDecodeError as error:
        return Raw(id, None, shown, _not_utf8(error))
    except (ValueError, RecursionError) as error:
        return Raw(id, None, shown, f"the line is not valid JSON ({error}); write one object on each line")
    if not isinstance(data, dict):
        return Raw(id, None, shown, f"expected an object, got {type(data).__name__}; write one object on each line")
    return _fields(id, data, fields, shown)


def _fields(id: str, data: dict[str, Any], fields: Fields, shown: str) -> Raw:
    """A document whose text is a field, and perhaps its id."""
    if fields.id is not None:
        if data.get(fields.id) is None:
            return Raw(id, None, shown, f"there is no field {fields.id!r} for the id; give another, or none")
        id = str(data[fields.id])
    text = data.get(fields.text)
    if not isinstance(text, str):
        kind = "no field" if text is None else f"{type(text).__name__} in the field"
        return Raw(id, None, shown, f"there is {kind} {fields.text!r}; expected a text there")
    try:
        text.encode()
    except UnicodeEncodeError:
        return Raw(id, None, shown, "the text has half of a character (a lone surrogate); repair it")
    return Raw(id, text, text)


def _sentence(id: str, block: bytes, piece: Piece) -> Raw:
    """A sentence of a treebank, without its tree."""
    assert piece.kind in ("conllu", "conllx")
    shown = block.decode(errors="backslashreplace")
    try:
        sentence = parse_block(Block(block, 1), id, piece.kind, trees=False)
    except TreebankError as error:
        return Raw(id, None, shown, str(error))
    return Raw(comment(sentence, "sent_id") or id, sentence, shown)


def _rows(stream: BinaryIO, piece: Piece, fields: Fields) -> Iterator[Raw]:
    """The rows of the row groups that begin in the piece."""
    require_extra("pyarrow", "ray", "a Parquet file")
    import pyarrow
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(stream)
    except pyarrow.ArrowInvalid as error:
        raise EOFError(str(error)) from None
    columns = [fields.text, *([] if fields.id is None else [fields.id])]
    for column in columns:
        if column not in file.schema_arrow.names:
            raise TreebankError(f"there is no column {column!r}; the columns are {file.schema_arrow.names}", piece.path)
    row = 0
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        first = group.column(0)
        if piece.start <= (first.dictionary_page_offset or first.data_page_offset) < piece.stop:
            begun = row
            for batch in file.iter_batches(_ROWS, row_groups=[number], columns=columns):
                for data in batch.to_pylist():
                    shown = data[fields.text] if isinstance(data[fields.text], str) else ""
                    yield _fields(f"{piece.name}:{begun}", data, fields, shown)
                    begun += 1
        row += group.num_rows
