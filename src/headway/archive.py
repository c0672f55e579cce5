"""Arrays and JSON in one zip file: how models and checkpoints are saved.

An archive holds `headway.json` (what it is, its version, and anything that is not an array) and one `.npy` file per
array. Nothing is pickled, so loading cannot run code. Everything is bounded before it is read: the number of members,
the size each one declares; and an array's header must account for exactly the bytes it has. A file that is not such an
archive, or a damaged one, is an `ArchiveError` in one sentence.

Arrays of single bytes are packed already: they are stored without compression, and mapped into memory rather than read.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import time
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.atomic import replacing, reporting
from headway.errors import ArchiveError, MissingFileError

VERSION = 2
_JSON = "headway.json"
_MOST_MEMBERS = 64
_MOST_JSON = 1 << 28
_MOST_EASE, _MOST_RATIO = 1 << 28, 100  # bytes that any file may unpack to, and times its own size beyond them
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(rb"\{'descr': '(<[fi][48]|\|[iu]1)', 'fortran_order': False, 'shape': \(([0-9, ]{0,80})\), \} *\n")


@dataclass(frozen=True)
class Archive:
    """What a file holds: `kind` says what for, `data` is JSON, `arrays` are by name."""

    kind: str
    data: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


def save_archive(archive: Archive, path: str | os.PathLike[str], *, compress: bool = True) -> None:
    """Write an archive; the path holds either the old file or the complete new one."""
    level = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED

    def failure(error: OSError) -> ArchiveError:
        return ArchiveError(f"{path}: cannot be written ({error.strerror or error}); what was there is untouched")

    with (
        replacing(path, failure) as file,
        reporting(failure),
        zipfile.ZipFile(file, "w", level, compresslevel=4) as members,
    ):
        head = {"headway": VERSION, "kind": archive.kind, **archive.data}
        members.writestr(_JSON, json.dumps(head, ensure_ascii=False))
        for name, array in archive.arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy", time.localtime()[:6])
            info.compress_type = zipfile.ZIP_STORED if array.dtype.itemsize == 1 else level
            with members.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def load_archive(path: str | os.PathLike[str], kind: str | None = None) -> Archive:
    """Read an archive of this kind, or a model of any kind."""
    what = kind or "model"
    try:
        with zipfile.ZipFile(path) as members:
            data = _read_json(members, path)
            found = data.get("kind")
            if not isinstance(found, str) or kind not in (None, found):
                raise ArchiveError(f"{path}: holds a {str(found)[:40]!r}, not a {what}; give another file")
            arrays = {
                info.filename.removesuffix(".npy"): _read_array(members, info, path)
                for info in members.infolist()
                if info.filename != _JSON
            }
            return Archive(found, data, arrays)
    except ArchiveError:
        raise
    except FileNotFoundError:
        raise MissingFileError(f"{path}: no such file; give the path of a saved {what}") from None
    except OSError as error:
        raise ArchiveError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, OverflowError) as error:
        raise ArchiveError(f"{path}: not a {what}, or a damaged one ({error}); save it again") from None


def _read_json(members: zipfile.ZipFile, path: str | os.PathLike[str]) -> dict[str, Any]:
    _check_members(members.infolist(), path)
    try:
        info = members.getinfo(_JSON)
    except KeyError:
        raise ArchiveError(f"{path}: a zip file, but not one that Headway wrote") from None
    if info.file_size > _MOST_JSON:
        raise ArchiveError(f"{path}: its {_JSON} claims {info.file_size} bytes, more than any model has")
    try:
        data = json.loads(members.read(info))
    except (ValueError, RecursionError):
        raise ArchiveError(f"{path}: its {_JSON} is damaged; save it again") from None
    if not isinstance(data, dict) or not isinstance(data.get("headway"), int):
        raise ArchiveError(f"{path}: a zip file, but not one that Headway wrote")
    if data["headway"] != VERSION:
        raise ArchiveError(
            f"{path}: written in version {data['headway']} of the format, this is version {VERSION}; "
            + ("update headway" if data["headway"] > VERSION else "convert it with experiments/convert_models.py")
        )
    return data


def _check_members(infos: Sequence[zipfile.ZipInfo], path: str | os.PathLike[str]) -> None:
    """Refuse what would fill the memory, before anything is unpacked."""
    if len(infos) > _MOST_MEMBERS:
        raise ArchiveError(f"{path}: has {len(infos)} members; an archive of Headway has a few")
    if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in infos):
        raise ArchiveError(f"{path}: compressed in a way that Headway never does; save it again")
    packed, unpacked = Path(path).stat().st_size, sum(info.file_size for info in infos)
    if unpacked > _MOST_EASE + _MOST_RATIO * packed:
        raise ArchiveError(f"{path}: claims to unpack {packed} bytes to {unpacked}, more than any archive of Headway")


def _read_array(members: zipfile.ZipFile, info: zipfile.ZipInfo, path: str | os.PathLike[str]) -> NDArray[Any]:
    if not info.filename.endswith(".npy"):
        raise ArchiveError(f"{path}: has a member {info.filename[:40]!r} that no archive of Headway has")
    with members.open(info) as member:
        start = member.read(10)
        header = member.read(int.from_bytes(start[8:], "little"))
        # As save_archive writes it; NumPy's own reader would evaluate whatever a hostile header says.
        match = _HEADER.fullmatch(header) if start[:8] == _MAGIC else None
        if match is None:
            raise ArchiveError(f"{path}: {info.filename} is damaged, or no array of numbers; save it again")
        dtype, shape = np.dtype(match[1].decode()), tuple(map(int, match[2].replace(b",", b" ").split()))
        first = member.tell()
        if dtype.itemsize * math.prod(shape) != info.file_size - first:
            raise ArchiveError(f"{path}: {info.filename} does not hold the array it claims; save it again")
        if dtype.itemsize > 1 or info.compress_type != zipfile.ZIP_STORED:
            return np.frombuffer(member.read(), dtype).reshape(shape).copy()
    return _mapped(info, path)[first:].view(dtype).reshape(shape)


def _mapped(info: zipfile.ZipInfo, path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """A stored member, mapped into memory; its checksum is compared all the same."""
    file = np.memmap(path, np.uint8, "r")
    start = info.header_offset
    names = int(file[start + 26 : start + 28].view("<u2")[0]) + int(file[start + 28 : start + 30].view("<u2")[0])
    content = file[start + 30 + names :][: info.file_size]
    if zlib.crc32(content.data) != info.CRC:
        raise zipfile.BadZipFile(f"bad CRC-32 for {info.filename}")
    return content
