"""Corpora and training on a cluster: the extra `ray`. `headway parse-corpus` is the command.

Names load when first used: a corpus parsed on one machine needs no Ray.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headway.ray.dataset import parse
    from headway.ray.executor import Executor

_WHERE = {"Executor": "headway.ray.executor", "parse": "headway.ray.dataset"}

__all__ = ["Executor", "parse"]


def __getattr__(name: str) -> Any:
    """Load a public name's module on first use (PEP 562)."""
    if name not in _WHERE:
        raise AttributeError(f"module 'headway.ray' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
