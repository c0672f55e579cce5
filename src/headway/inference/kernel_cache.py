# mypy: allow-untyped-calls
"""Compiled kernels on disk: Numba's cache, which a damaged file, a full disk or a read-only machine cannot stop.

Numba keeps an index and a file per signature beside the source, or in a folder of the user. Five things are added:

* Both end with a checksum. What is damaged, or of other versions of types, is dropped and compiled again; garbled
  machine code would not be noticed before it runs.
* A kernel is compiled again when any source that kernels are made of has changed. Numba itself looks at the file of the
  kernel only, not at those of the parts and constants in it.
* What was compiled beside the source, as when an image was built (`headway warm-up`), serves all users,
  though they cannot write there.
* Where nothing can be written, as in a container without a home, a temporary folder serves, and one line says so. It is
  the user's own and closed to others, since what is in it is run.
* Where a file cannot be saved, as on a full disk or without even a temporary folder, one line says so, and the kernel
  runs from memory.
"""

from __future__ import annotations

import os
import pickle
import re
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache

_CHECKSUM = 4  # bytes


class KernelCache(FunctionCache):
    """The cache of one kernel."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._impl_class = _Kept
        super().__init__(function)
        stamp = (self._impl.locator.get_source_stamp(), kernel_sources())
        beside = os.path.join(os.path.dirname(function.__code__.co_filename), "__pycache__")  # noqa: PTH118, PTH120
        self._cache_file: _CheckedFile = _CheckedFile(self._cache_path, self._impl.filename_base, stamp)
        if beside != self._cache_path:
            self._cache_file.beside = _CheckedFile(beside, self._impl.filename_base, stamp)

    def is_empty(self) -> bool:
        """Whether nothing is kept for the kernel as its sources are now."""
        with suppress(Exception):  # unpickling what is damaged can raise anything
            return not self._cache_file.index()
        return True

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


def cache_of(function: Callable[..., Any]) -> Any:
    """The cache of a kernel; one that keeps nothing where no folder at all can be written."""
    try:
        made = KernelCache(function)
        _caches.setdefault(function.__module__, []).append(made)
        return made
    except (OSError, RuntimeError):
        _say_once(
            "compiled kernels cannot be kept, as not even the temporary folder can be written, and are compiled "
            "again next time; name a folder in NUMBA_CACHE_DIR"
        )
        return NullCache()


_caches: dict[str, list[KernelCache]] = {}


def must_compile(module: str) -> bool:
    """Whether nothing is kept of any kernel of a module that is loaded, though it could be."""
    caches = _caches.get(module, [])
    return bool(caches) and all(each.is_empty() for each in caches)


class _CheckedFile(IndexDataCacheFile):
    """Index and data with a checksum behind each; pickles end before it. What is not found may be in those `beside`."""

    beside: _CheckedFile | None = None

    def load(self, key: Any) -> Any:
        """What is kept for a signature, or None."""
        found = super().load(key)
        if found is None and self.beside is not None:
            with suppress(Exception):  # unpickling what is damaged can raise anything
                return self.beside.load(key)
        return found

    def index(self) -> Any:
        """What is kept, by signature."""
        return self._load_index() or (self.beside.index() if self.beside else {})

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
def kernel_sources(package: Path = Path(__file__).parents[1]) -> str:
    """A hash of the sources that kernels are made of: of the files with kernels or parts, and of what these import."""
    sources = {path.relative_to(package.parent).with_suffix(""): path.read_bytes() for path in package.rglob("*.py")}
    by_module = {".".join(name.parts).removesuffix(".__init__").encode(): content for name, content in sources.items()}
    with_kernels = {name for name, content in by_module.items() if b"headway.inference.jit import" in content}
    imported = {name for each in with_kernels for name in _IMPORTS.findall(by_module[each])}
    digest = sha256()
    for name in sorted((with_kernels | imported) & by_module.keys()):
        digest.update(name + b"\0" + by_module[name] + b"\0")
    return digest.hexdigest()


_IMPORTS = re.compile(rb"^from (headway[.\w]*) import", re.MULTILINE)


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
