"""Where a command reads and writes: files and pipes, looked at before anything slow is begun."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from headway.atomic import remedy
from headway.errors import TreebankError
from headway.named_models import find_model


def require_one_standard_input(*names: str | None) -> None:
    """Standard input can only be read once."""
    if names.count("-") > 1:
        raise typer.BadParameter("standard input (-) is given twice; use a file for one of them")


def require_inputs(*names: str | None) -> None:
    """Refuse files that cannot be read before anything slow is begun. Nothing is opened: a pipe is read once."""
    for name in names:
        if name is None or name == "-":
            continue
        advice = "check its name"
        if not os.path.exists(name):  # noqa: PTH110  (a name with a zero byte is no error here)
            reason = os.strerror(errno.ENOENT)
            if " " in name:
                advice += ", or give the text itself through a pipe, with - as the name"
            elif find_model(name) is not None:
                advice = "that is the name of a model, so check the order"
        elif Path(name).is_dir():
            reason = os.strerror(errno.EISDIR)
        elif not os.access(name, os.R_OK):
            reason = os.strerror(errno.EACCES)
        else:
            continue
        raise TreebankError.unopened(name, reason, advice)


def require_output(name: str, *kept: str | os.PathLike[str] | None) -> None:
    """Refuse an output that cannot be written, and one that would replace a file to be kept, such as the input.

    Devices and pipes are left to whoever writes to them.
    """
    try:
        path = Path(name).resolve()
    except ValueError:  # no file can have such a name; whoever writes says so
        return
    if name == "-" or (path.exists() and not path.is_file() and not path.is_dir()):
        return
    if path.is_dir():
        code = errno.EISDIR
    elif not path.parent.is_dir():
        code = errno.ENOENT
    elif not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        code = errno.EACCES
    else:
        if is_one_of(path, *kept):
            raise TreebankError("writing would replace a file that is read; choose another name", name)
        return
    error = OSError(code, os.strerror(code))
    raise TreebankError(f"writing failed ({error.strerror}); {remedy(error)}", name)


def require_place_for(path: Path, *read: str | os.PathLike[str] | None, what: str = "a model") -> None:
    """Refuse an output that cannot be written before hours are spent on it, and one that is a file to be read."""
    if str(path) == "-" or path.is_dir():
        raise typer.BadParameter(f"{what} cannot be written to {path}; give a file name")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise typer.BadParameter(f"the folder of {path} does not exist; create it first")
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"the folder of {path} cannot be written to; choose another")
    if is_one_of(path, *read):
        raise typer.BadParameter(f"{what} would replace {path}, which is read; give another file name")


def files_in(settings: Mapping[str, Any]) -> list[str]:
    """What in settings may be the names of files that a training reads; several are joined by "+".

    >>> files_in({"clusters": "paths.txt", "templates": "standard+own.txt", "teacher": None, "seed": 1})
    ['paths.txt', 'standard+own.txt', 'standard', 'own.txt']
    """
    given = [settings.get(name) for name in ("clusters", "teacher", "templates", "parts")]
    return list(dict.fromkeys(file for names in given if names for file in (names, *names.split("+"))))


def is_one_of(path: Path, *others: str | os.PathLike[str] | None) -> bool:
    """Whether the path leads to one of these files, by whatever name."""
    if not path.is_file():
        return False
    return any(other is not None and os.path.exists(other) and path.samefile(other) for other in others)  # noqa: PTH110
