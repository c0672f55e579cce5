"""The models that come with Headway. Their licences are in LICENCE.md, in this folder and in the wheel's metadata."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent


def embedded_models() -> dict[str, Path]:
    """The files of these models by name.

    >>> embedded_models()["en"].name
    'en.headway'
    """
    return {path.stem: path for path in _FOLDER.glob("*.headway")}
