"""Which mentions of a parsed text refer to the same thing, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.coreference.documents import Document, Mention
from headway.coreference.resolver import Resolver
from headway.parsed import Parsed
from headway.treebank.annotations import spaces_after


def clusters_of(resolver: Resolver, parsed: Sequence[Parsed]) -> list[list[dict[str, Any]]]:
    """The clusters of two mentions or more, in the order of their first mentions."""
    given = Document.from_sentences(each.sentence for each in parsed)
    [resolved] = resolver.resolve([given], find_mentions=True)
    found = resolved.document.without_singletons()
    clusters: list[list[dict[str, Any]]] = [[] for _ in range(int(found.clusters.max(initial=-1)) + 1)]
    for mention, cluster in zip(found.mentions, found.clusters.tolist(), strict=True):
        clusters[cluster].append(
            {"sentence": mention.sentence, "words": list(mention.words), "text": _text(mention, parsed)}
        )
    return clusters


def _text(mention: Mention, parsed: Sequence[Parsed]) -> str:
    """Its words as they are written."""
    sentence = parsed[mention.sentence].sentence
    spaces = spaces_after(sentence)
    return "".join(sentence.forms[m - 1] + " " * spaces[m - 1] for m in mention.words).strip()
