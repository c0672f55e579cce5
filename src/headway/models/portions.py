"""Sentences taken some at once: as many as fill the kernels' batches, few enough to stay small in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headway.treebank import Sentence

SENTENCES = 512
_ARCS = 4_000_000


def portions(sentences: Iterable[Sentence], most: int = SENTENCES) -> Iterator[list[Sentence]]:
    """Lists of at most so many sentences, in their order; long sentences make shorter lists."""
    portion: list[Sentence] = []
    arcs = 0
    for sentence in sentences:
        portion.append(sentence)
        arcs += (len(sentence) + 1) ** 2
        if len(portion) == most or arcs > _ARCS:
            yield portion
            portion, arcs = [], 0
    if portion:
        yield portion
