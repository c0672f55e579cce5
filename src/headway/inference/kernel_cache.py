# mypy: allow-untyped-calls
"""Compiled kernels on disk: Numba's cache, which a damaged file, a full disk or a read-only machine cannot stop.

Numba keeps an index and a file per signature beside the source, or in a folder of the user. Three things are added:

* Both end with a checksum. What is damaged, or of other versions of types, is dropped and compiled again; garbled
  machine code would not be noticed before it runs.
* Where nothing can be written, as in a container without a home, a temporary folder serves, and one line says so. It is
  the user's own and closed to others, since what is in it is run.
* Where a file cannot be saved, as on a full disk, one line says so, and the kernel runs from memory.
"""

from __future__ import annotations

import os
import pickle
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

_CHECKSUM = 4  # bytes


class KernelCache(FunctionCache):
    """The cache of one kernel."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._impl_class = _Kept
        super().__init__(function)
        file = self._cache_file
        file.__class__ = _CheckedFile  # made by Numba, which knows no other class

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for a signature; None where there is nothing, or nothing that can be used."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unpickling what is damaged can raise anything
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, if that is possible."""
        try:
            super().save_overload(sig, data)
        except RuntimeError:  # a signal came while the machine code was handed over, so there is none to keep
            return
        except OSError as error:
            _say_once(
                f"compiled kernels cannot be kept in {self.cache_path} ({error.strerror or error}), and are compiled "
                "again next time; make room there, or name another folder in NUMBA_CACHE_DIR"
            )


class _CheckedFile(IndexDataCacheFile):
    """Index and data with a checksum behind each; pickles end before it."""

    def _dump(self, obj: Any) -> bytes:
        content: bytes = super()._dump(obj)
        return content + zlib.crc32(content).to_bytes(_CHECKSUM, "little")

    def _load_index(self) -> Any:
        with suppress(FileNotFoundError), open(self._index_path, "rb") as file:  # noqa: PTH123
            version = pickle.load(file)
            if version == self._version:
                _checked(file.read())
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        return pickle.loads(_checked(Path(self._data_path(name)).read_bytes()))


def _checked(content: bytes) -> bytes:
    """The content without its checksum."""
    whole, checksum = content[:-_CHECKSUM], content[-_CHECKSUM:]
    if zlib.crc32(whole).to_bytes(_CHECKSUM, "little") != checksum:
        raise ValueError("a file of Numba's cache is damaged")
    return whole


_Named = CompileResultCacheImpl._locator_classes[0]  # keeps its files in the folder that NUMBA_CACHE_DIR names


class _Temporary(_Named):  # type: ignore[misc, valid-type]
    """Keeps its files in the temporary folder."""

    def __init__(self, function: Any, source: Any) -> None:
        super().__init__(function, source)
        self._cache_path: str = os.path.join(_temporary_folder(), os.path.basename(self._cache_path))  # noqa: PTH118, PTH119

    @classmethod
    def from_function(cls, function: Any, source: Any) -> Any:
        """Always one."""
        return cls(function, source)


class _Kept(CompileResultCacheImpl):
    _locator_classes = [*CompileResultCacheImpl._locator_classes, _Temporary]  # noqa: RUF012


@cache
def _temporary_folder() -> str:
    """The user's own folder for kernels among the temporary files; a new one where that name is not safe."""
    named = Path(tempfile.gettempdir()) / f"headway-kernels-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    with suppress(OSError):
        named.mkdir(mode=0o700)
    folder = str(named) if _is_own(named) else tempfile.mkdtemp(prefix="headway-kernels-")
    _say_once(
        f"compiled kernels are kept in {folder}, as nothing can be written beside them or at home; "
        "name a folder that stays in NUMBA_CACHE_DIR"
    )
    return folder


def _is_own(folder: Path) -> bool:
    """Whether nobody else can have put anything there."""
    if not hasattr(os, "getuid"):
        return folder.is_dir()
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


@cache
def _say_once(sentence: str) -> None:
    if not os.environ.get("HEADWAY_QUIET"):
        print(f"headway: {sentence}", file=sys.stderr)
