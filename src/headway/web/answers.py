"""Parsed sentences as answers: JSON with alternatives and k best trees, CoNLL-U, pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headway.errors import SizeError
from headway.parsed import Parsed
from headway.web.problems import to_json

ALTERNATIVES = 5  # heads of a word
_DIGITS = 6


def json_of(kbest: int | None, alternatives: bool) -> Callable[[Parsed], bytes]:
    """How to write a sentence as JSON."""

    def written(parsed: Parsed) -> bytes:
        data = {"text": parsed.text, **parsed.to_dict()}
        if alternatives:
            data["alternatives"] = likely_heads(parsed)
        if kbest is not None:
            data["kbest"] = best_trees(parsed, kbest)
        return to_json(data)

    return written


def likely_heads(parsed: Parsed) -> list[list[dict[str, Any]]] | None:
    """The most probable heads of each word, the best first; None for a sentence parsed in stretches."""
    try:
        marginals = parsed.marginals
    except SizeError:
        return None
    most = min(ALTERNATIVES, len(parsed))
    heads = np.argsort(-marginals[:, 1:], axis=0, kind="stable")[:most]
    shown = np.take_along_axis(marginals[:, 1:], heads, axis=0)
    return [
        [
            {"head": head, "probability": round(probability, _DIGITS)}
            for head, probability in zip(own, values, strict=True)
            if probability > 0
        ]
        for own, values in zip(heads.T.tolist(), shown.T.tolist(), strict=True)
    ]


def best_trees(parsed: Parsed, k: int) -> list[dict[str, Any]] | None:
    """The k best trees, or all if there are fewer; None where the distribution cannot list them."""
    distribution = parsed.distribution
    listed = getattr(distribution, "kbest", None)
    if listed is None:
        return None
    return [
        {"heads": heads[1:].tolist(), "probability": float(np.exp(distribution.log_prob(heads)))}
        for heads, _ in (listed(k) if len(parsed) else ())
    ]
