"""Where sentences end, by the lower layers of a parser's encoder: a second look at what the splitter found.

The splitter's linear classifier scores a sentence end after every token. Here small networks score it again, in
stages: each is asked about the tokens after which the one before (the first: the splitter) leaves an end in doubt, that
is, whose score is between `low` and `high`. A stage reads stretches of text around these tokens through the lower
layers of the encoder: it is a graph on top of the parser's own (`headway.neural.graph_joining`), and shares its
weights.

A network takes the words' vectors and what the splitter knows (`signals_of`). Reading n tokens costs O(n).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Bools, Ints
from headway.errors import ArchiveError
from headway.neural.graph_check import check_graph
from headway.neural.graph_joining import joined
from headway.neural.reading import groups_by_size
from headway.neural.session import Session
from headway.neural.subwords import SubwordReader
from headway.saved_values import mapping, number, whole_number
from headway.text.characters import BREAK, LINE, SPACE
from headway.treebank import Sentence

SIGNALS = 6
MOST_TOKENS = 200  # of a stretch: attention costs the square
SCALE = 50.0  # of the whole numbers that stand for log-odds
_MOST_SUBWORDS = 512  # of a batch, padding included
_INPUTS, _OUTPUTS = ("subwords", "shapes", "words", "signals"), ("scores",)
_FARTHEST, _MOST_STAGES = 1_000, 8

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Stage:
    """`head` is a graph on top of the encoder's; it sees `around` tokens on both sides of each it is asked about."""

    head: bytes
    low: float
    high: float
    around: int

    def to_data(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "around": self.around}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], head: bytes) -> Stage:
        """The stage that was saved; a ValueError or KeyError where it is damaged."""
        check_graph(head)
        low, high = (number(data[name], name) for name in ("low", "high"))
        return cls(head, low, high, whole_number(data["around"], "around", high=_FARTHEST))


@dataclass(frozen=True, repr=False)
class EncoderEnds:
    """`network` is the parser's graph."""

    reader: SubwordReader
    network: bytes
    stages: tuple[Stage, ...]

    def __repr__(self) -> str:
        return f"<EncoderEnds: {len(self.stages)} stages>"

    def rescored(self, forms: Sequence[str], gaps: Ints, scores: Ints) -> Ints:
        """The scores of sentence ends after tokens (N,), of which those above zero are ends."""
        signals = signals_of(scores, gaps)
        stops = np.flatnonzero(gaps == BREAK) + 1
        found, asked = scores.astype(np.float64), gaps != BREAK
        for stage, session in zip(self.stages, self._sessions, strict=True):
            asked &= (found > stage.low) & (found < stage.high)
            if not asked.any():
                break
            new = self._scores(session, forms, signals, stretches(asked, stops, stage.around))
            found = np.where(asked, SCALE * new, found)
        return np.rint(found).astype(np.int64)

    def _scores(self, session: Session, forms: Sequence[str], signals: Floats, spans: Ints) -> Floats:
        """Log-odds of an end after each token of the stretches `spans` (M, 2), zero elsewhere."""
        reading = self.reader.read([Sentence.from_words(forms[start:stop]) for start, stop in spans.tolist()])
        found = np.zeros(len(forms), np.float32)
        for which in groups_by_size(reading.sizes, _MOST_SUBWORDS):
            own = spans[which]
            width = int((own[:, 1] - own[:, 0]).max())
            places = own[:, :1] + np.arange(width)
            there = places < own[:, 1:]
            given = np.where(there[..., None], signals[np.where(there, places, 0)], np.float32(0))
            scores = session.run({**reading.batch(which), "signals": given})["scores"]
            if scores.shape != there.shape or not np.isfinite(scores).all():
                raise ArchiveError("the networks of sentence ends give no scores as they should; save the model again")
            found[places[there]] = scores[there]
        return found

    @cached_property
    def _sessions(self) -> list[Session]:
        """Opened when text is first split."""
        try:
            return [Session(joined(self.network, stage.head), _INPUTS, _OUTPUTS) for stage in self.stages]
        except ValueError as error:
            raise ArchiveError(f"the networks of sentence ends do not fit ({error}); save the model again") from None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_sessions"}

    def to_data(self) -> tuple[list[dict[str, Any]], dict[str, NDArray[np.uint8]]]:
        """JSON and arrays for an archive."""
        heads = {f"ends_{k}": np.frombuffer(stage.head, np.uint8) for k, stage in enumerate(self.stages)}
        return [stage.to_data() for stage in self.stages], heads

    @classmethod
    def from_data(
        cls, data: Any, arrays: Mapping[str, NDArray[Any]], reader: SubwordReader, network: bytes
    ) -> EncoderEnds:
        """What `to_data` gave; a ValueError or LookupError where it is damaged."""
        if not isinstance(data, list) or len(data) > _MOST_STAGES:
            raise ValueError("the stages of sentence ends are damaged")
        heads = [arrays[f"ends_{k}"] for k in range(len(data))]
        if any(head.dtype != np.uint8 or head.ndim != 1 for head in heads):
            raise ValueError("a network of sentence ends is no row of bytes")
        own = zip(data, heads, strict=True)
        return cls(
            reader, network, tuple(Stage.from_data(mapping(one, "a stage"), head.tobytes()) for one, head in own)
        )


def signals_of(scores: Ints, gaps: Ints) -> Floats:
    """What is known of each token (N, SIGNALS) besides its vector: the splitter's score, and what follows it."""
    columns = (np.tanh(scores / 60), np.tanh(scores / 200), gaps == SPACE, gaps == LINE, gaps == BREAK, gaps >= 0)
    return np.stack(columns, axis=1).astype(np.float32)


def stretches(asked: Bools, stops: Ints, around: int) -> Ints:
    """Spans (M, 2) of at most MOST_TOKENS tokens, with those asked about and `around` more on both sides.

    None goes beyond a paragraph; these end at `stops`.

    >>> stretches(np.array([0, 0, 1, 0, 0, 0, 1, 0], bool), np.array([5, 8]), 1).tolist()
    [[1, 4], [5, 8]]
    """
    places = np.flatnonzero(asked)
    paragraph = np.searchsorted(stops, places, side="right")
    starts = np.maximum(places - around, np.concatenate([[0], stops])[paragraph])
    ends = np.minimum(places + around + 1, stops[paragraph])
    fresh = np.ones(len(places), np.bool_)
    fresh[1:] = (starts[1:] > ends[:-1]) | (paragraph[1:] != paragraph[:-1])
    first, last = starts[fresh], ends[np.roll(fresh, -1)]  # a stretch ends before the next one, the last at the end
    pieces = -(-(last - first) // MOST_TOKENS)
    within = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begin, size, end = (np.repeat(each, pieces) for each in (first, -(-(last - first) // pieces), last))
    return np.stack([begin + within * size, np.minimum(begin + (within + 1) * size, end)], axis=1)
