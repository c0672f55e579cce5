"""Headway finds the head of every word: exact inference over spanning trees, for dependency parsing.

Names load when first used, so that `import headway` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headway import errors
from headway.errors import HeadwayError, NoTreeError

if TYPE_CHECKING:
    from headway.inference import (
        LabelledTreeDistribution,
        SiblingDistribution,
        TreeDistribution,
        forbid,
        from_modifier_head,
        from_root_on_diagonal,
        require,
    )

__version__ = "0.1.0"

__all__ = [
    "HeadwayError",
    "LabelledTreeDistribution",
    "NoTreeError",
    "SiblingDistribution",
    "TreeDistribution",
    "__version__",
    "errors",
    "forbid",
    "from_modifier_head",
    "from_root_on_diagonal",
    "inference",
    "require",
]


def __getattr__(name: str) -> Any:
    """Load a public name's module on first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module 'headway' has no attribute {name!r}")
    inference = import_module("headway.inference")
    return inference if name == "inference" else getattr(inference, name)


def __dir__() -> list[str]:
    return __all__
