"""The signature of every figure: version, seed, options, and the checksum of each file it was computed from.

Checksums are taken while files are read, since a pipe cannot be read twice.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast

import typer

from headway import __version__
from headway.errors import TreebankError

_DIGITS = 16


class SummedFile(io.BufferedReader):
    """A file to be read once; afterwards `checksum` is the SHA-256 of its bytes, before any decompression.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     with SummedFile(file.name) as summed:
    ...         _ = summed.read1()
    >>> summed.checksum
    'e3b0c44298fc1c14'
    """

    def __init__(self, name: str) -> None:
        self._standard = name == "-"
        super().__init__(cast(io.RawIOBase, sys.stdin.buffer if self._standard else _opened(name)))
        self._name = "standard input" if self._standard else name
        self._digest = hashlib.sha256()

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self._name

    @property
    def checksum(self) -> str:
        """The first digits of the checksum of what has been read so far."""
        return self._digest.hexdigest()[:_DIGITS]

    def read1(self, size: int = -1, /) -> bytes:
        """The next bytes, added to the checksum."""
        piece = super().read1(size)
        self._digest.update(piece)
        return piece

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._standard:
            self.detach()  # standard input stays open
        else:
            self.close()


def summed(name: str) -> SummedFile:
    """A file, read for its checksum."""
    with SummedFile(name) as file:
        while file.read1(1 << 20):
            pass
    return file


def summed_or_none(name: str | None) -> AbstractContextManager[SummedFile | None]:
    """The file, if there is one."""
    return nullcontext() if name is None else SummedFile(name)


def signature(seed: int | None, options: Mapping[str, Any], files: Iterable[SummedFile | None]) -> dict[str, Any]:
    """What goes under `signature` in JSON.

    >>> signature(7, {"quick": True}, [])["seed"]
    7
    """
    data = {file.name: file.checksum for file in files if file is not None}
    return {"headway": __version__, "seed": seed, "options": dict(options), "data": data}


def signature_line(given: Mapping[str, Any]) -> str:
    """The signature as the last line of a report.

    >>> signature_line({"headway": "0.1.0", "seed": 0, "options": {}, "data": {"a.conllu": "e3b0c44298fc1c14"}})
    'headway 0.1.0, seed 0, a.conllu sha256 e3b0c44298fc1c14'
    """
    seed = [] if given["seed"] is None else [f"seed {given['seed']}"]
    data = [f"{name} sha256 {checksum}" for name, checksum in given["data"].items()]
    return ", ".join([f"headway {given['headway']}", *seed, *data])


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on standard output, in ASCII so that any terminal can show it; infinity becomes text."""
    typer.echo(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    """JSON has no infinity.

    >>> _finite({"a": [1, float("inf")]})
    {'a': [1, 'inf']}
    """
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def _opened(name: str) -> BinaryIO:
    try:
        return Path(name).open("rb", buffering=0)
    except OSError as error:
        raise TreebankError.unopened(name, error.strerror) from None
