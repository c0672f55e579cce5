"""Headway finds the head of every word: exact inference over spanning trees, and dependency parsers built on it.

Names load when first used, so that `import headway` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headway import errors
from headway.errors import HeadwayError, NoTreeError

if TYPE_CHECKING:
    from headway.coreference.resolver import Resolver
    from headway.document import Document
    from headway.evaluation import evaluate
    from headway.inference import (
        GrandSiblingParts,
        LabelledTreeDistribution,
        SiblingDistribution,
        SiblingParts,
        StateParts,
        TreeDistribution,
        decode,
        forbid,
        from_modifier_head,
        from_root_on_diagonal,
        require,
    )
    from headway.parsed import Parsed
    from headway.pipeline import Parser
    from headway.treebank import Sentence, read_treebank, write_treebank
    from headway.word import Word

__version__ = "0.1.0"

_WHERE = {
    "Document": "headway.document",
    "GrandSiblingParts": "headway.inference",
    "LabelledTreeDistribution": "headway.inference",
    "Parsed": "headway.parsed",
    "Parser": "headway.pipeline",
    "Resolver": "headway.coreference.resolver",
    "Sentence": "headway.treebank",
    "SiblingDistribution": "headway.inference",
    "SiblingParts": "headway.inference",
    "StateParts": "headway.inference",
    "TreeDistribution": "headway.inference",
    "Word": "headway.word",
    "decode": "headway.inference",
    "evaluate": "headway.evaluation",
    "forbid": "headway.inference",
    "from_modifier_head": "headway.inference",
    "from_root_on_diagonal": "headway.inference",
    "read_treebank": "headway.treebank",
    "require": "headway.inference",
    "write_treebank": "headway.treebank",
}

__all__ = [
    "Document",
    "GrandSiblingParts",
    "HeadwayError",
    "LabelledTreeDistribution",
    "NoTreeError",
    "Parsed",
    "Parser",
    "Resolver",
    "Sentence",
    "SiblingDistribution",
    "SiblingParts",
    "StateParts",
    "TreeDistribution",
    "Word",
    "__version__",
    "decode",
    "errors",
    "evaluate",
    "forbid",
    "from_modifier_head",
    "from_root_on_diagonal",
    "inference",
    "read_treebank",
    "require",
    "write_treebank",
]


def __getattr__(name: str) -> Any:
    """Load a public name's module on first use (PEP 562)."""
    if name == "inference":
        return import_module("headway.inference")
    if name not in _WHERE:
        raise AttributeError(f"module 'headway' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
