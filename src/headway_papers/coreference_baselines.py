"""Baselines without learning: every mention apart, all together, or together when their heads match."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from headway.arrays import Ints
from headway.coreference.attributes import PRONOUN, describe_mentions
from headway.coreference.documents import Document


def all_singletons(document: Document) -> Ints:
    """Every mention is a cluster of its own."""
    return np.arange(len(document.mentions))


def one_cluster(document: Document) -> Ints:
    """All mentions form one cluster."""
    return np.zeros(len(document.mentions), np.int64)


def head_match(document: Document) -> Ints:
    """Mentions whose heads have the same lemma form a cluster; so do pronouns of the same form."""
    numbers: dict[Hashable, int] = {}
    found = [
        (mention.kind == PRONOUN, attributes["cite"] if mention.kind == PRONOUN else attributes["lemma"])
        for mention, attributes in describe_mentions(document)
    ]
    return np.array([numbers.setdefault(key, len(numbers)) for key in found], np.int64)


BASELINES: dict[str, Callable[[Document], Ints]] = {
    "all singletons": all_singletons,
    "one cluster": one_cluster,
    "head match": head_match,
}
