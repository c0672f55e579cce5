"""The models that come with Headway: `en`, described in docs/models/en.md (from UD English-EWT, CC BY-SA 4.0)."""

from __future__ import annotations

import os
from pathlib import Path

_FOLDER = Path(__file__).parent


def embedded_model(name: str | os.PathLike[str]) -> Path | None:
    """The file of a model that comes with Headway; None for any other name, which is a path.

    >>> embedded_model("en").name, embedded_model("en.headway"), embedded_model("xx")
    ('en.headway', None, None)
    """
    if not isinstance(name, str) or not name.isalpha():
        return None
    path = _FOLDER / f"{name}.headway"
    return path if path.is_file() and not Path(name).exists() else None
