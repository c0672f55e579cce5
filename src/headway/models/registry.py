"""The kinds of models there are, by name: how a file finds the class that reads it.

A third party adds one through an entry point of the group `headway.model_kinds`, whose name is the kind and whose
object is a class that follows `headway.models.protocol.Model`; or, within a process, by `register`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from headway.archive import DAMAGE, Archive, cause_of, load_archive
from headway.errors import ArchiveError
from headway.models.protocol import Task

_GROUP = "headway.model_kinds"
# Where each kind is read: classes load when a file asks for them.
_KINDS: dict[str, str | type[Any]] = {
    "arc": "headway.models.arc_model:ArcModel",
    "higher-order": "headway.models.higher_order_model:HigherOrderModel",
    "neural": "headway.neural.model:NeuralModel",
    "grammar": "headway.models.grammar_model:GrammarModel",
    "coreference": "headway.coreference.model:CoreferenceModel",
}


def register(model: type[Any]) -> None:
    """Add a kind of model for this process."""
    _KINDS[model.kind] = model


def model_class(kind: str) -> type[Any] | None:
    """The class that reads models of this kind; None for a kind that nobody registered."""
    known = _KINDS.get(kind)
    if known is None:
        found = entry_points(group=_GROUP, name=kind)
        return next(iter(found)).load() if found else None
    if isinstance(known, str):
        module, _, name = known.partition(":")
        return getattr(import_module(module), name)  # type: ignore[no-any-return]
    return known


def kinds() -> list[str]:
    """The names of all kinds."""
    return sorted({*_KINDS, *(point.name for point in entry_points(group=_GROUP))})


def open_archive(path: str | os.PathLike[str], task: Task | None = None) -> Archive:
    """The archive of a model for this task, or for any."""
    archive = load_archive(path)
    model = model_class(archive.kind)
    if model is None:
        raise ArchiveError(
            f"{path}: holds a {archive.kind[:40]!r}, which is no kind of model known here ({', '.join(kinds())}); "
            "install the package that adds it, or give another file"
        )
    if task not in (None, model.task):
        raise ArchiveError(f"{path}: a model for {model.task}, not for {task}; give another file")
    return archive


def read_model(archive: Archive, source: str | os.PathLike[str]) -> Any:
    """The model of an archive."""
    model = model_class(archive.kind)
    assert model is not None  # `open_archive` has found it
    with damage_reported(str(source)):
        return model.from_archive(archive)


@contextmanager
def damage_reported(source: str) -> Iterator[None]:
    """Whatever reading a damaged model runs into, in one sentence."""
    try:
        yield
    except DAMAGE as error:
        raise ArchiveError(f"{source}: a damaged model, or not a model ({cause_of(error)}); save it again") from None
