"""Models by name: which file `en` is, or `pt`.

A name is looked for in three places, in this order; the first that has it wins, and hides it in the others:

1. *included*: the models that come with Headway. Nothing that is installed changes what `en` means.
2. *packages*: installed packages with an entry point of the group `headway.models` (`headway package` makes them). Its
   name is the model's; its value is the folder, beside the package's metadata, that holds `model.headway`. The entry
   point is never loaded and no package imported: a package of a model is data.
3. *folder*: `NAME.headway` in the folder `$HEADWAY_MODELS`, or, if that is not set, in the user's data folder.

A path comes before any name: what has a separator or a suffix is a path, and so is whatever a file in the current
folder is called.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from headway.embedded import embedded_models
from headway.errors import ArchiveError, MissingFileError

GROUP = "headway.models"
MEMBER = "model.headway"  # in the folder of a package
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

_LIKE_A_NAME = re.compile(r"\w[\w-]{0,79}")
_SUFFIX = ".headway"
_FOLDER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # of a package: beside its metadata, never elsewhere


@dataclass(frozen=True)
class NamedModel:
    """A model that has a name. `origin` says in words where it comes from."""

    name: str
    path: Path
    origin: str


def is_name(model: str | os.PathLike[str]) -> bool:
    """Whether this is the name of a model rather than the path of a file.

    >>> is_name("en"), is_name("en.headway"), is_name("models/en")
    (True, False, False)
    """
    if not isinstance(model, str) or not _LIKE_A_NAME.fullmatch(model):
        return False
    path = Path(model)
    return path.is_dir() or not path.exists()


def find_model(model: str | os.PathLike[str]) -> Path | None:
    """The file of the model that has this name; None for a path, and for a name that no model has."""
    if not is_name(model):
        return None
    name = str(model)
    return embedded_models().get(name) or _in_packages(name) or _in_folder(name)


def path_of_model(model: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The file of a model given by name; a path stays what it is. A name that nobody has is an error."""
    if not is_name(model):
        return model
    found = find_model(model)
    if found is None:
        raise MissingFileError(_unknown(str(model)))
    return found


def paths_of_models(models: str) -> list[str | os.PathLike[str]]:
    """The files of one model, or of several joined by "+"."""
    return [path_of_model(model) for model in ([models] if Path(models).is_file() else models.split("+"))]


def named_models() -> list[NamedModel]:
    """All models that have a name, in the order in which they are looked for: of one name the first is used."""
    packaged = [model for point in _entry_points() if (model := _of_point(point)) is not None]
    return [
        *(NamedModel(name, path, "included") for name, path in sorted(embedded_models().items())),
        *sorted(packaged, key=lambda model: (model.name, model.origin)),
        *_of_folder(),
    ]


def models_folder() -> Path | None:
    """The user's folder of models: `$HEADWAY_MODELS`, or the platform's place for data; None where there is no home."""
    if chosen := os.environ.get("HEADWAY_MODELS"):
        return Path(chosen)
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "darwin":
        data = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        data = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return data / "headway" / "models"


def _in_packages(name: str) -> Path | None:
    """The model of the one package that has this name."""
    points = [point for point in _entry_points() if point.name == name]
    if len(points) > 1:
        packages = " and ".join(sorted(map(_package, points)))
        raise ArchiveError(f"the packages {packages} both have a model {name!r}; uninstall one of them, or give a path")
    if not points:
        return None
    found = _of_point(points[0])
    if found is None:
        raise ArchiveError(
            f"the package {_package(points[0])} has no model where it says {name!r} is; install it again"
        )
    return found.path


def _in_folder(name: str) -> Path | None:
    return next((model.path for model in _of_folder() if model.name == name), None)


def _of_folder() -> Iterator[NamedModel]:
    folder = models_folder()
    try:
        files = [] if folder is None else sorted(folder.glob(f"*{_SUFFIX}"))
    except OSError:  # a folder that may not be read has nothing to offer
        files = []
    for path in files:
        if NAME.fullmatch(path.stem) and path.is_file():
            yield NamedModel(path.stem, path, f"folder {path.parent}")


def _entry_points() -> list[EntryPoint]:
    try:
        return [point for point in entry_points(group=GROUP) if NAME.fullmatch(point.name)]
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ArchiveError(
            f"the entry points of an installed package cannot be read ({error}); find it with pip check"
        ) from None


def _of_point(point: EntryPoint) -> NamedModel | None:
    """The model behind an entry point, None where there is none."""
    if point.dist is None or not _FOLDER.fullmatch(point.value):
        return None
    path = Path(str(point.dist.locate_file(f"{point.value}/{MEMBER}")))
    return NamedModel(point.name, path, f"package {_package(point)}") if path.is_file() else None


def _package(point: EntryPoint) -> str:
    return "?" if point.dist is None else f"{point.dist.name} {point.dist.version}"


def _unknown(name: str) -> str:
    """No model has this name: what there is, and what may have been meant."""
    names = sorted({model.name for model in named_models()})
    near = get_close_matches(name.lower(), names, n=1)
    meant = f"did you mean {near[0]}? There" if near else "there"
    are = f"{meant} {'is' if len(names) == 1 else 'are'} {', '.join(names)}" if names else "there are none here"
    found = "a folder, not the file of a model" if Path(name).is_dir() else "no such file"
    return f"{name}: {found}, and no model of this name; {are}"
