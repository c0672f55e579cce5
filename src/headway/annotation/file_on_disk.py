"""The annotated file on disk: replaced as a whole, and never over what another program wrote.

Every look compares size, times and inode with those of the version that we read or wrote last, and the content only if
these differ. The last look comes just before the new version takes the file's name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from headway.annotation.journal import sync_folder
from headway.atomic import remedy, replacing, reporting
from headway.errors import TreebankError

_Signature = tuple[int, int, int, int]


class ChangedUnderneathError(Exception):
    """Another program has changed the file; nothing was written."""


class FileOnDisk:
    """A file and the version of it that is known."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sha256 = ""
        self._known: _Signature | None = None

    def read(self) -> bytes:
        """The file's content, which is the known version from now on."""
        try:
            known = _signature(self.path)
            data = self.path.read_bytes()
        except (OSError, ValueError) as error:
            cause = error.strerror if isinstance(error, OSError) else str(error)
            raise TreebankError.unopened(str(self.path), cause) from None
        self._known, self.sha256 = known, hashlib.sha256(data).hexdigest()
        return data

    def is_known(self) -> bool:
        """Whether the file is still the version that we know."""
        try:
            found = _signature(self.path)
            if found == self._known:
                return True
            same = hashlib.sha256(self.path.read_bytes()).hexdigest() == self.sha256
        except OSError:  # it is gone
            return False
        if same:
            self._known = found
        return same

    def write(self, parts: Sequence[bytes], announce: Callable[[str], None], *, anyway: bool = False) -> None:
        """Replace the file by these parts; `announce` is called with their checksum just before.

        ChangedUnderneathError if it is no longer the known version, unless `anyway`.
        """

        def failure(error: OSError) -> TreebankError:
            cause = f"the file cannot be written ({error.strerror}); its changes are in the journal; {remedy(error)}"
            return TreebankError(cause, str(self.path))

        digest = hashlib.sha256()
        with replacing(self.path, failure) as file:
            for part in parts:
                digest.update(part)
                with reporting(failure):
                    file.write(part)
            if not anyway and not self.is_known():
                raise ChangedUnderneathError
            announce(digest.hexdigest())
        sync_folder(self.path.parent)
        self.sha256, self._known = digest.hexdigest(), _signature(self.path)


def _signature(path: Path) -> _Signature:
    found = os.stat(path)  # noqa: PTH116  (a link's target, as everywhere)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
