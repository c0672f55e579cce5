"""Arrays and JSON in one zip file: how models and checkpoints are saved.

An archive holds `headway.json` (what it is, its version, and anything that is not an array) and one `.npy` file per
array. Nothing is pickled, so loading cannot run code. Everything is bounded before it is read or built: the number of
members, the size each one declares, the number of values in the JSON; and an array's header must account for exactly
the bytes it has. A file that is not such an archive, or a damaged one, is an `ArchiveError` in one sentence.

The same content makes the same file, byte for byte: members have no dates. Arrays of single bytes are packed already,
and stored without compression.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.atomic import remedy, replacing, reporting
from headway.errors import ArchiveError, ArgumentError, CheckpointError, MissingFileError, printable

VERSION = 2
CHECKPOINT = "checkpoint"
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What reading the content of a damaged archive may run into."""

_JSON = "headway.json"
_MOST_MEMBERS = 64
_MOST_JSON = 1 << 27
_MOST_VALUES = 4_000_000  # in the JSON: each takes a hundred bytes or so of memory, however short it is in the file
_MOST_EASE, _MOST_RATIO = 1 << 28, 100  # bytes that any file may unpack to, and times its own size beyond them
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # of a character beyond the 65,536th: what may be alone is looked at
_LONGEST_CAUSE = 160
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(rb"\{'descr': '(<[fi][48]|\|[iu]1)', 'fortran_order': False, 'shape': \(([0-9, ]{0,80})\), \} *\n")


@dataclass(frozen=True, repr=False)
class Archive:
    """What a file holds: `kind` says what for, `data` is JSON, `arrays` are by name."""

    kind: str
    data: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


def save_archive(archive: Archive, path: str | os.PathLike[str], *, compress: bool = True) -> None:
    """Write an archive; the path holds either the old file or the complete new one."""
    _require_path(path)
    level = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED

    def failure(error: OSError) -> ArchiveError:
        cause = f"cannot be written ({error.strerror or error}); {remedy(error)}"
        return ArchiveError(f"{path}: {cause}; what was there is untouched")

    with (
        replacing(path, failure) as file,
        reporting(failure),
        zipfile.ZipFile(file, "w") as members,
    ):
        head = {"headway": VERSION, "kind": archive.kind, **archive.data}
        with members.open(_member(_JSON, level), "w") as member:
            member.write(json.dumps(head, ensure_ascii=False).encode())
        for name, array in archive.arrays.items():
            info = _member(f"{name}.npy", zipfile.ZIP_STORED if array.dtype.itemsize == 1 else level)
            with members.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def _member(name: str, compression: int) -> zipfile.ZipInfo:
    """A member without a date: the same content makes the same file."""
    info = zipfile.ZipInfo(name)
    info.compress_type = compression
    return info


def load_archive(path: str | os.PathLike[str], kind: str | None = None) -> Archive:
    """Read an archive of this kind, or a model of any kind."""
    with _members(path, kind) as members:
        return _read(members, path, kind)


def load_data(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """The JSON of a model alone: what it says of itself, without its arrays."""
    with _members(path, None) as members:
        _check_members(members)
        return _read_json(members)


@contextmanager
def _members(path: str | os.PathLike[str], kind: str | None) -> Iterator[zipfile.ZipFile]:
    """The members of an archive; whatever is wrong with the file is said in one sentence."""
    _require_path(path)
    what = kind or "model"
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as members:  # noqa: PTH123
            yield members
    except ArchiveError:
        raise
    except FileNotFoundError:
        raise MissingFileError(f"{path}: no such file; give the path of a saved {what}") from None
    except OSError as error:
        raise ArchiveError(f"{path}: cannot be read ({error.strerror or error})") from None
    except _DamageError as error:
        raise _damaged(path, kind, str(error)) from None
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, OverflowError) as error:
        raise _damaged(path, kind, f"not a {what}, or a damaged one ({cause_of(error)})") from None


def _require_path(path: object) -> None:
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(f"expected the path of a file, got {type(path).__name__}")
    if not os.fspath(path):
        raise ArgumentError("expected the path of a file, got an empty text")


class _DamageError(ValueError):
    """What is wrong with an archive; the path and the remedy are added where it is known what was asked for."""


def cause_of(error: BaseException) -> str:
    """One of `DAMAGE` as a cause: its own words, or for an error that Python raises, its name with them.

    What it quotes from the file is cut short, and cannot steer a terminal.
    """
    text = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
    short = text if len(text) <= _LONGEST_CAUSE else f"{text[:_LONGEST_CAUSE]}..."
    return printable(" ".join(short.split()))  # NumPy's run over several lines


def _damaged(path: str | os.PathLike[str], kind: str | None, cause: str) -> ArchiveError:
    if kind == CHECKPOINT:
        return CheckpointError(f"{path}: the checkpoint is damaged ({cause}); delete it, or name another")
    return ArchiveError(f"{path}: {cause}; save it again")


def _read(members: zipfile.ZipFile, path: str | os.PathLike[str], kind: str | None) -> Archive:
    _check_members(members)
    data = _read_json(members)
    if data["headway"] != VERSION:
        if kind == CHECKPOINT:
            raise _DamageError("written by another version of Headway")
        raise ArchiveError(
            f"{path}: written in version {data['headway']} of the format, this is version {VERSION}; "
            + ("update headway" if data["headway"] > VERSION else "convert it with experiments/convert_models.py")
        )
    found = data.get("kind")
    if not isinstance(found, str) or kind not in (None, found):
        if kind == CHECKPOINT:
            raise _DamageError(f"holds a {str(found)[:40]!r}, not a checkpoint")
        raise ArchiveError(f"{path}: holds a {str(found)[:40]!r}, not a {kind or 'model'}; give another file")
    infos = [info for info in members.infolist() if info.filename != _JSON]
    return Archive(found, data, {info.filename.removesuffix(".npy"): _read_array(members, info) for info in infos})


def _check_members(members: zipfile.ZipFile) -> None:
    """Refuse what would fill the memory, before anything is unpacked."""
    infos = members.infolist()
    if len(infos) > _MOST_MEMBERS:
        raise _DamageError(f"has {len(infos)} members, and an archive of Headway a few")
    if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in infos):
        raise _DamageError("compressed in a way that Headway never does")
    assert members.fp is not None
    packed, unpacked = members.fp.seek(0, os.SEEK_END), sum(info.file_size for info in infos)
    if unpacked > _MOST_EASE + _MOST_RATIO * packed:
        raise _DamageError(f"claims to unpack {packed} bytes to {unpacked}, more than any archive of Headway")


def _read_json(members: zipfile.ZipFile) -> dict[str, Any]:
    if _JSON not in members.namelist():
        raise _DamageError("a zip file, but not one that Headway wrote")
    size = members.getinfo(_JSON).file_size
    if size > _MOST_JSON:
        raise _DamageError(f"its {_JSON} claims {size} bytes, more than any archive of Headway")
    text = members.read(_JSON)
    if sum(map(text.count, (b",", b"[", b"{"))) > _MOST_VALUES:
        raise _DamageError(f"its {_JSON} has more values than any archive of Headway")
    try:
        data = json.loads(text.decode())
        if _HALF.search(text):
            json.dumps(data, ensure_ascii=False).encode()  # a ValueError where a half is alone
    except (ValueError, RecursionError):
        raise _DamageError(f"its {_JSON} is damaged") from None
    if not isinstance(data, dict) or type(data.get("headway")) is not int:
        raise _DamageError("a zip file, but not one that Headway wrote")
    return data


def _read_array(members: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    if not info.filename.endswith(".npy"):
        raise _DamageError(f"has a member {info.filename[:40]!r} that no archive of Headway has")
    with members.open(info) as member:
        start = member.read(10)
        header = member.read(int.from_bytes(start[8:], "little"))
        # As save_archive writes it; NumPy's own reader would evaluate whatever a hostile header says.
        match = _HEADER.fullmatch(header) if start[:8] == _MAGIC else None
        if match is None:
            raise _DamageError(f"{info.filename} is damaged, or no array of numbers")
        dtype, shape = np.dtype(match[1].decode()), tuple(map(int, match[2].replace(b",", b" ").split()))
        if dtype.itemsize * math.prod(shape) != info.file_size - member.tell():
            raise _DamageError(f"{info.filename} does not hold the array it claims")
        if dtype.itemsize == 1 and info.compress_type != zipfile.ZIP_STORED:
            # Packed weights stand for more than they are, so compressed ones could fill the memory.
            raise _DamageError(f"{info.filename} is compressed, which bytes never are")
        content = np.frombuffer(member.read(), dtype).reshape(shape)
        return content if dtype.itemsize == 1 else content.copy()
