"""Where a corpus is read from and its trees are written to: this machine's files, or any file system of fsspec.

A name with "://" in it (`s3://bucket/news/*.jsonl.gz`) belongs to fsspec, which comes with the extra `ray`; the package
of that file system has to be installed, too. Any other name is a path, which all nodes of a cluster must see.
"""

from __future__ import annotations

import glob
import io
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from headway.atomic import write_file
from headway.extras import require_extra

_BUFFER = 1 << 20


class Found(NamedTuple):
    """A file: its path, how many bytes it has, and what changes when its content does."""

    path: str
    size: int
    stamp: str


class Place(Protocol):
    """A file system, as far as a corpus needs it."""

    def expand(self, pattern: str) -> list[Found]:
        """The files that a name or pattern stands for, sorted; all below it where it is a folder."""
        ...

    def read(self, path: str) -> BinaryIO:
        """A file, open to be read from any position."""
        ...

    def create(self, path: str) -> BinaryIO:
        """A new file in a folder, which is made where it is missing."""
        ...

    def finish(self, file: BinaryIO) -> None:
        """Close a created file, with all of it on disk."""
        ...

    def write(self, path: str, content: str) -> None:
        """Write a file, whole or not at all."""
        ...

    def move(self, path: str, target: str) -> None:
        """Give a file another name, in place of what had it."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file or a folder, if it is there."""
        ...


def place_of(name: str) -> Place:
    """The file system of a path or address."""
    return _remote(name.partition("://")[0]) if "://" in name else LOCAL


@dataclass(frozen=True)
class Local:
    """The files of this machine, those of the network among them."""

    def expand(self, pattern: str) -> list[Found]:
        names = [pattern] if os.path.lexists(pattern) else glob.glob(pattern, recursive=True)  # noqa: PTH207
        paths = [inner for name in names for inner in (_below(Path(name)) if Path(name).is_dir() else [Path(name)])]
        return [_found(path.absolute()) for path in sorted(paths)]

    def read(self, path: str) -> BinaryIO:
        return Path(path).open("rb")

    def create(self, path: str) -> BinaryIO:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return Path(path).open("wb")

    def finish(self, file: BinaryIO) -> None:
        with file:
            file.flush()
            os.fsync(file.fileno())  # only now may a full disk show

    def write(self, path: str, content: str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)

    def move(self, path: str, target: str) -> None:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(path).replace(target)

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            shutil.rmtree(path) if Path(path).is_dir() else Path(path).unlink()


LOCAL = Local()


@dataclass(frozen=True)
class Remote:
    """A file system of fsspec. A file appears there when it is complete."""

    system: Any

    def expand(self, pattern: str) -> list[Found]:
        address = self.system.unstrip_protocol
        found = self.system.find(pattern, detail=True) or self.system.glob(pattern, detail=True)
        stamps = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "updated", "created")
        return [
            Found(address(path), int(info["size"]), str(next((info[key] for key in stamps if info.get(key)), "")))
            for path, info in sorted(found.items())
            if info["type"] == "file"
        ]

    def read(self, path: str) -> BinaryIO:
        return io.BufferedReader(self.system.open(path, "rb"), _BUFFER)

    def create(self, path: str) -> BinaryIO:
        self.system.makedirs(path.rpartition("/")[0], exist_ok=True)
        file: BinaryIO = self.system.open(path, "wb")
        return file

    def finish(self, file: BinaryIO) -> None:
        file.close()

    def write(self, path: str, content: str) -> None:
        self.system.makedirs(path.rpartition("/")[0], exist_ok=True)
        self.system.pipe_file(path, content.encode())

    def move(self, path: str, target: str) -> None:
        self.system.makedirs(target.rpartition("/")[0], exist_ok=True)
        self.system.mv(path, target)

    def remove(self, path: str) -> None:
        if self.system.exists(path):
            self.system.rm(path, recursive=True)


@lru_cache
def _remote(protocol: str) -> Remote:
    require_extra("fsspec", "ray", f"a name that begins with {protocol}://")
    import fsspec

    return Remote(fsspec.filesystem(protocol))


def _below(folder: Path) -> list[Path]:
    """The files in a folder and its folders; hidden ones are nobody's documents."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def _found(path: Path) -> Found:
    stat = path.stat()
    return Found(path.as_posix(), stat.st_size, str(stat.st_mtime_ns))
