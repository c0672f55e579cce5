"""Documents with their latent trees, as `headway draw --coref` shows them.

The tree is the model's. Without a model, it links every mention to the previous one in its cluster. If the file has
clusters and a model is given, arcs that join two clusters are wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.arrays import Ints
    from headway.coreference import Document, Mention
    from headway.drawing import Drawing, MentionText
    from headway.treebank import Sentence


@dataclass(frozen=True)
class CoreferencePicture:
    """A document, a tree over its mentions, heads (M+1,), and the nodes whose arcs are wrong."""

    document: Document
    heads: Ints
    wrong: frozenset[int]
    by_model: bool

    def drawing(self) -> Drawing:
        """The latent trees."""
        from headway.drawing import coreference_drawing

        return coreference_drawing(self._mentions(), self.heads, wrong=self.wrong)

    def page(self) -> str:
        """The text and the latent trees, as HTML."""
        from headway.drawing import coreference_page
        from headway.treebank.annotations import spaces_after

        words = [list(zip(s.forms, spaces_after(s), strict=True)) for s in self.document.sentences]
        title = self.document.name or "Document"
        trees = "the model's latent trees" if self.by_model else "each mention below the previous one in its cluster"
        note = f"Trees: {trees}. Clusters of one mention are not shown."
        return coreference_page(title, words, self._mentions(), self.heads, wrong=self.wrong, notes=[note])

    def _mentions(self) -> list[MentionText]:
        from headway.drawing import MentionText

        return [
            MentionText(m.sentence, m.words[0], m.words[-1], _text(self.document.sentences[m.sentence], m))
            for m in self.document.mentions
        ]


def coreference_pictures(documents: Iterable[Document], model: str | None) -> Iterator[CoreferencePicture]:
    """Each document with its tree."""
    import numpy as np

    if model is None:
        for document in documents:
            yield CoreferencePicture(document, _chains(document.clusters), frozenset(), by_model=False)
        return
    from headway.coreference.resolver import Resolver

    resolver = Resolver.load(model)
    for document in documents:
        found = next(resolver.resolve([document], find_mentions=not document.mentions))
        wrong: Iterable[int] = ()
        if document.mentions:
            nodes = 1 + np.flatnonzero(found.heads[1:] > 0)
            apart = document.clusters[nodes - 1] != document.clusters[found.heads[nodes] - 1]
            wrong = nodes[apart].tolist()
        yield CoreferencePicture(found.document, found.heads, frozenset(wrong), by_model=True)


def _chains(clusters: Ints) -> Ints:
    """Every mention below the previous one in its cluster."""
    import numpy as np

    last: dict[int, int] = {}
    heads = [-1]
    for node, cluster in enumerate(clusters.tolist(), start=1):
        heads.append(last.get(cluster, 0))
        last[cluster] = node
    return np.array(heads, np.int64)


def _text(sentence: Sentence, mention: Mention) -> str:
    """The words of a mention, dots where it has gaps."""
    from headway.treebank.annotations import spaces_after

    spaces = spaces_after(sentence)
    parts = []
    for word, after in zip(mention.words, (*mention.words[1:], 0), strict=True):
        parts.append(sentence.forms[word - 1])
        if after:
            parts.append(" ... " if after > word + 1 else " " * spaces[word - 1])
    return "".join(parts)
