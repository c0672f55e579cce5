"""Where sentences end, by the lower layers of a parser's encoder: a second look, while the trees are found.

A splitter of text ends sentences by what stands around (`headway.text.sentence_ends`), and overlooks ends after words
without a mark. The encoder that reads its sentences for their trees knows more. So text is split only where there is no
doubt, by the splitter's score, and what has places of doubt is a draft. A small convolutional network on one of the
encoder's lower layers scores an end at every joint of a draft:

    x_t = gelu(P h_t), s_t            h_t  vector of word t in that layer, s_t what the splitter knows (`signals_of`)
    y   = gelu(conv x),  z = y + gelu(conv y),  score_t = w [z_t, s_t]

A draft with a score above `above` is cut there, and its pieces are read again; all others are sentences, whose trees
come from the same reading. So all words are read once, and some percent of them twice. O(n) for n words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.errors import ArchiveError
from headway.neural.reading import padded
from headway.neural.session import Session
from headway.saved_values import number, whole_number
from headway.text.characters import BREAK, LINE, SPACE
from headway.treebank import Sentence
from headway.treebank.annotations import Doubt, Joints

MIDDLE = "middle"  # the output of the network that has the layer's vectors, of subwords
SIGNALS = 6
INPUTS, OUTPUTS = (MIDDLE, "words", "signals"), ("scores",)
_MOST = 10_000  # no score of a splitter is as far from zero

Floats = NDArray[np.float32]


@dataclass(frozen=True, repr=False)
class SentenceEnds:
    """The network over the layer, what it is asked about, and the score that is enough."""

    network: Session
    doubt: Doubt
    above: float

    def __repr__(self) -> str:
        return f"<SentenceEnds: scores of the splitter from {self.doubt.low} to {self.doubt.high} are looked at again>"

    @classmethod
    def of_graph(cls, graph: bytes, doubt: Doubt, above: float) -> SentenceEnds:
        """A ValueError where the graph is none of these."""
        return cls(Session(graph, INPUTS, OUTPUTS), doubt, above)

    def found(self, sentences: Sequence[Sentence], words: NDArray[np.int64], middle: Floats | None) -> list[list[int]]:
        """The words after which each is to be cut, if it is a draft; the encoder has read them all as one batch."""
        cuts: list[list[int]] = [[] for _ in sentences]
        rows = [i for i, sentence in enumerate(sentences) if sentence.layout.joints is not None]
        if not rows or middle is None:
            return cuts
        drafts = [sentences[i] for i in rows]
        signals = signals_of([draft.layout.joints for draft in drafts], words.shape[1] - 1)
        scores = self.network.run({MIDDLE: middle, "words": words[rows], "signals": signals})["scores"]
        for i, own in zip(rows, self.chosen(drafts, scores), strict=True):
            cuts[i] = own
        return cuts

    def chosen(self, drafts: Sequence[Sentence], scores: Floats) -> list[list[int]]:
        """The same from the network's scores (B, N)."""
        if scores.ndim != 2 or scores.shape[0] != len(drafts) or scores.shape[1] < max(map(len, drafts), default=0):
            raise ArchiveError("the network of sentence ends gives scores of another shape; save the model again")
        if not np.isfinite(scores).all():
            raise ArchiveError("the network of sentence ends gives scores that are no numbers; save the model again")
        rows = (scores > self.above) & joints_of(drafts, scores.shape[1])
        return [(np.flatnonzero(row) + 1).tolist() for row in rows]

    def to_data(self) -> dict[str, Any]:
        return {"doubt": list(self.doubt), "above": self.above}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], graph: bytes) -> SentenceEnds:
        """What was saved; a ValueError or KeyError if it is damaged."""
        low, high = (whole_number(each, "the doubt", low=-_MOST, high=_MOST) for each in data["doubt"])
        return cls.of_graph(graph, Doubt(low, high), number(data["above"], "above"))


def signals_of(joints: Sequence[Joints | None], width: int) -> Floats:
    """What a splitter knows of the places after the words (B, N, SIGNALS): its score, at two scales; is white space
    there, a line end, no place at all, being inside of a token; and is there a word (not padding)?"""
    known = [each or Joints((), ()) for each in joints]
    scores = padded([each.scores for each in known], width)
    gaps = padded([each.gaps for each in known], width)
    there = np.arange(width) < np.array([len(each.scores) for each in known], np.int64)[:, None]
    columns = (np.tanh(scores / 60), np.tanh(scores / 200), gaps == SPACE, gaps == LINE, gaps < 0, there)
    return np.stack(columns, axis=2).astype(np.float32)


def joints_of(drafts: Sequence[Sentence], width: int) -> NDArray[np.bool_]:
    """Where drafts may be cut: between tokens, not where a blank line ends them anyway, not after the last word."""
    gaps = padded([draft.layout.joints.gaps[:-1] if draft.layout.joints else () for draft in drafts], width, -1)
    found: NDArray[np.bool_] = (gaps >= 0) & (gaps != BREAK)
    return found
