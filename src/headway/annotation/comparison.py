"""Which of two models is better at what annotators have fixed: heads first, labelled heads where heads tie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from headway.annotation.decoding import Parses
from headway.annotation.state import shown_heads, shown_labels
from headway.evaluation.attachment import percent
from headway.treebank import Sentence


@dataclass(frozen=True, order=True)
class Accuracy:
    """Percentages of the known heads that a parser finds, and of the known heads with their labels; of how many."""

    uas: float
    las: float
    words: int

    def to_dict(self) -> dict[str, float]:
        """As JSON has it."""
        return asdict(self)


def accuracy(parser: Parses, sentences: Sequence[Sentence]) -> Accuracy:
    """How well a parser does on sentences of which some heads or all are known; it sees their words and tags only."""
    given = [replace(sentence, heads=None, labels=None) for sentence in sentences]
    words = heads = arcs = 0
    for sentence, parsed in zip(sentences, parser.parse(given), strict=True):
        found_heads, found_labels = parsed.heads.tolist(), parsed.labels
        known = zip(shown_heads(sentence)[1:], shown_labels(sentence)[1:], strict=True)
        for m, (head, label) in enumerate(known, start=1):
            if head >= 0:
                words += 1
                heads += found_heads[m] == head
                arcs += found_heads[m] == head and found_labels[m] == label
    return Accuracy(percent(heads, words), percent(arcs, words), words)
