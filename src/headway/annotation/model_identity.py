"""Which model it is: enough to notice that another one is in use, and the labels that it knows."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from headway.annotation.decoding import Parses


def model_identity(parser: Parses | None) -> str | None:
    """A checksum of what a parser says of itself: settings, training data, figures."""
    if parser is None:
        return None
    described = json.dumps(_data(parser), sort_keys=True, default=str)
    return hashlib.sha256(described.encode()).hexdigest()[:16]


def labels_of(parser: Parses | None) -> tuple[str, ...]:
    """The labels that a parser can give."""
    return () if parser is None else tuple(_data(parser).get("labels", ()))


def _data(parser: Any) -> dict[str, Any]:
    describe = getattr(parser, "describe", None)
    return {} if describe is None else dict(describe().data)
