"""The plan of a corpus: which bytes of which files make up each shard.

A shard is what a worker does at once, and what is done again if that worker is lost. The plan follows from the names
and sizes of the files alone: nothing is read, and the same files give the same plan. Files that can be entered anywhere
are cut wherever a shard is full. A document belongs to the shard in which it begins (`headway.ray.documents` says what
that means), so every document is in one shard, whatever the cuts hit. Compressed files, and files that are one document
each, stay whole; small ones share a shard.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, NamedTuple

from headway.errors import ArgumentError, TreebankError
from headway.ray.places import Found, place_of
from headway.treebank.files import format_of

Kind = Literal["text", "jsonl", "parquet", "conllu", "conllx"]
Unit = Literal["file", "paragraph", "line"]

LARGEST = 1 << 24  # bytes of one document

_COMPRESSED = (".gz", ".xz", ".zst")
_KINDS: dict[str, Kind] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}


class Input(NamedTuple):
    """A file of the corpus: `name` is its path without the folders that all of them share."""

    path: str
    name: str
    kind: Kind
    size: int
    stamp: str


class Piece(NamedTuple):
    """The bytes of a file from `start` to `stop`."""

    path: str
    name: str
    kind: Kind
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Shard:
    """What a worker does at once."""

    number: int
    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        """Bytes of input."""
        return sum(piece.stop - piece.start for piece in self.pieces)


def inputs_of(patterns: Iterable[str], kind: Kind | None = None) -> list[Input]:
    """The files of all names, patterns and folders, each once: by argument, then by name."""
    found: dict[str, Found] = {}
    for pattern in patterns:
        try:
            files = place_of(pattern).expand(pattern)
        except OSError as error:
            raise TreebankError(f"cannot be read ({error.strerror or error}); check the name", pattern) from None
        if not files:
            raise TreebankError("no file has this name; check it", pattern)
        found.update((file.path, file) for file in files)
    shared = _shared_folder(found)
    return [Input(f.path, f.path[shared:], kind or kind_of(f.path), f.size, f.stamp) for f in found.values()]


def kind_of(name: str) -> Kind:
    """What a file holds, by its name.

    >>> kind_of("a.jsonl.gz"), kind_of("a.conllu.zst"), kind_of("README")
    ('jsonl', 'conllu', 'text')
    """
    plain = PurePath(name.lower())
    if plain.suffix in _COMPRESSED:
        plain = plain.with_suffix("")
    return _KINDS.get(plain.suffix) or format_of(plain) or "text"


def is_compressed(name: str) -> bool:
    """Whether the name says that a file is compressed."""
    return name.lower().endswith(_COMPRESSED)


def shard_bytes(inputs: Iterable[Input]) -> int:
    """A good size for shards: a 256th of the corpus, but no less than 256 kB, no more than 4 MB, and 50,000 at most.

    >>> [shard_bytes([Input("/a", "a", "text", size, "")]) for size in (10**6, 10**8, 10**10, 10**12)]
    [256000, 390625, 4000000, 20000000]
    """
    size = sum(each.size for each in inputs)
    return max(min(max(size // 256, 256_000), 4_000_000), size // 50_000)


def plan(inputs: Iterable[Input], unit: Unit, size: int) -> Iterator[Shard]:
    """The shards of some `size` bytes each, one after the other.

    >>> files = [Input("/a.txt", "a.txt", "text", 5, ""), Input("/b.txt", "b.txt", "text", 2, "")]
    >>> [[(piece.name, piece.start, piece.stop) for piece in shard.pieces] for shard in plan(files, "line", 4)]
    [[('a.txt', 0, 4)], [('a.txt', 4, 5), ('b.txt', 0, 2)]]
    """
    if size < 1:
        raise ArgumentError(f"the size of a shard is {size} bytes; expected at least 1")
    number, filled = 0, 0
    pieces: list[Piece] = []
    for each in inputs:
        whole = is_compressed(each.path) or (each.kind == "text" and unit == "file")
        start, left = 0, True
        while left:
            stop = each.size if whole else min(each.size, start + size - filled)
            pieces.append(Piece(each.path, each.name, each.kind, start, stop))
            filled += stop - start
            start, left = stop, stop < each.size
            if filled >= size:
                yield Shard(number, tuple(pieces))
                number, filled, pieces = number + 1, 0, []
    if pieces:
        yield Shard(number, tuple(pieces))


def require_documents(inputs: Iterable[Input], unit: Unit) -> None:
    """Refuse files that are too large to be one document each, before anything is begun."""
    for each in inputs:
        if each.kind == "text" and unit == "file" and not is_compressed(each.path) and each.size > LARGEST:
            cause = f"the file has {each.size:,} bytes, too many for one document; cut it with --documents paragraph"
            raise TreebankError(cause, each.path)


def _shared_folder(paths: Iterable[str]) -> int:
    """How many characters the folder that all files are in has, with the separator after it."""
    folders = [path[: path.rfind("/") + 1] for path in paths]
    return os.path.commonprefix(folders).rfind("/") + 1  # noqa: RUF071  (of addresses, too, which are no paths)
