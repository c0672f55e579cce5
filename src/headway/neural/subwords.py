"""Words as the subwords of a pretrained encoder.

Each word is cut by itself, so what a word becomes is remembered. A word is then the mean of its first and its last
subword. Sentences longer than the encoder can read are read in windows that overlap by half; each word is
taken from the window in which it is nearest to the middle.

Tokenizers of many encoders write everything in small letters. So the network is also told each word's shape: whether
all, some or none of its letters are capitals.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Ints
from headway.errors import ArchiveError, MissingExtraError
from headway.extras import required
from headway.neural.reading import Inputs, padded
from headway.saved_values import whole_number
from headway.treebank import Sentence

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # no character, so no tokenizer takes it
_MOST_PIECES = 16  # of a word: more than any but a URL has; the first and the last are what counts
_REMEMBERED = 100_000  # words
_NUMBERS = ("longest", "start", "end", "padding", "unknown")
_LARGEST, _LEAST = 1 << 31, 8
LEAST_AT_ONCE = 2 * _MOST_PIECES + 2  # of subwords: any word is then whole in some window


class _Word(NamedTuple):
    pieces: tuple[int, ...]
    shape: int


@dataclass(frozen=True, repr=False)
class SubwordReader:
    """`tokenizer` is the text of a tokenizer.json, `longest` how many subwords the encoder can read at once."""

    tokenizer: str
    longest: int
    start: int
    end: int
    padding: int
    unknown: int

    kind: ClassVar[str] = "subwords"
    inputs: ClassVar[tuple[str, ...]] = ("subwords", "shapes", "words")
    requires: ClassVar[frozenset[str]] = frozenset({"words"})

    _known: dict[str, _Word] = field(default_factory=dict, init=False, repr=False, compare=False)

    def read(self, sentences: Sequence[Sentence]) -> SubwordReading:
        """Sentences as windows of subwords."""
        known = self._cut({form for sentence in sentences for form in sentence.forms})
        windows: list[list[int]] = []
        shapes: list[list[int]] = []
        first, places = np.zeros(len(sentences) + 1, np.int64), []
        for i, sentence in enumerate(sentences):
            words = [known[form] for form in sentence.forms]
            pieces = [piece for word in words for piece in word.pieces]
            shape = [word.shape for word in words for _ in word.pieces]
            starts, place = self._windows(np.cumsum([0, *(len(word.pieces) for word in words)]))
            room = self.longest - 2
            windows += ([self.start, *pieces[s : s + room], self.end] for s in starts)
            shapes += ([0, *shape[s : s + room], 0] for s in starts)
            places.append(place)
            first[i + 1] = len(windows)
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        return SubwordReading(windows, shapes, first, places, lengths, self.padding)

    def _windows(self, ends: Ints) -> tuple[list[int], Ints]:
        """Where the windows over a sentence start; and for each word its window, its first and last subword there."""
        room = self.longest - 2
        pieces, words = int(ends[-1]), len(ends) - 1
        if pieces <= room:
            return [0], np.stack([np.zeros(words, np.int64), ends[:-1] + 1, ends[1:]], axis=1)
        starts = np.arange(0, pieces - room // 2, room // 2)
        starts[-1] = pieces - room
        middles = (ends[:-1] + ends[1:]) / 2
        chosen = np.abs(middles[:, None] - (starts + room / 2)).argmin(axis=1)
        place = np.stack([chosen, ends[:-1] + 1 - starts[chosen], ends[1:] - starts[chosen]], axis=1)
        return starts.tolist(), place

    def _cut(self, forms: set[str]) -> dict[str, _Word]:
        """The words, cut; other threads may remember and forget some meanwhile."""
        found = {form: word for form in forms if (word := self._known.get(form)) is not None}
        new = sorted(forms - found.keys())
        if not new:
            return found
        whole = [[_LONE_SURROGATE.sub("\ufffd", form)] for form in new]
        try:
            cut = self._tokenizer.encode_batch(whole, is_pretokenized=True)
        except Exception as error:  # the tokenizer's library raises bare ones
            raise ArchiveError(f"the tokenizer cannot cut these words ({error!s:.80}); save the model again") from None
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        for form, own in zip(new, cut, strict=True):
            pieces = tuple(own.ids) or (self.unknown,)
            if len(pieces) > _MOST_PIECES:
                pieces = (*pieces[: _MOST_PIECES - 1], pieces[-1])
            found[form] = self._known[form] = _Word(pieces, shape_of(form))
        return found

    @cached_property
    def _tokenizer(self) -> Any:
        with required("tokenizers"):
            from tokenizers import Tokenizer

        made = Tokenizer.from_str(self.tokenizer)
        made.no_truncation()
        made.no_padding()
        return made

    @property
    def highest(self) -> int:
        """The highest number of a subword."""
        numbers: list[int] = list(self._tokenizer.get_vocab().values())
        return max(self.start, self.end, self.padding, self.unknown, *numbers)

    @property
    def description(self) -> str:
        return f"{self._tokenizer.get_vocab_size()} subwords, {self.longest} at once"

    def to_data(self) -> dict[str, Any]:
        return {"tokenizer": self.tokenizer, **{name: getattr(self, name) for name in _NUMBERS}}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> SubwordReader:
        """The reader that was saved."""
        text = data["tokenizer"]
        if not isinstance(text, str):
            raise ValueError("the tokenizer is no text")
        made = cls(text, **{name: whole_number(data[name], name, high=_LARGEST) for name in _NUMBERS})
        if made.longest < _LEAST:
            raise ValueError(f"longest is {made.longest}, which no encoder has")
        try:
            made._tokenizer  # noqa: B018  # read now, so that a damaged one is found
        except MissingExtraError:
            raise
        except Exception as error:  # the tokenizer's library raises bare ones
            raise ValueError(f"the tokenizer is damaged: {error!s:.80}") from None
        return made

    @classmethod
    def from_files(cls, tokenizer: str, config: Mapping[str, Any], longest: int) -> SubwordReader:
        """From the content of tokenizer.json, words cut one by one, without anything put around them."""
        from tokenizers import Tokenizer

        data = json.loads(tokenizer)
        before = data.get("pre_tokenizer")
        for part in (before or {}).get("pretokenizers", [before] if before else []):
            if part.get("type") in ("ByteLevel", "Metaspace") and "add_prefix_space" in part:
                part["add_prefix_space"] = True  # as every word but the first has it
        ids = Tokenizer.from_str(json.dumps(data)).token_to_id
        data["post_processor"] = None

        def first(*names: str) -> int:
            found = [number for number in map(ids, names) if number is not None]
            if not found:
                raise ArchiveError(f"the tokenizer has none of {', '.join(names)}; give an encoder of a known kind")
            return found[0]

        padding = config.get("pad_token_id")
        return cls(
            json.dumps(data, ensure_ascii=False),
            longest,
            first("[CLS]", "<s>"),
            first("[SEP]", "</s>"),
            first("[PAD]", "<pad>") if padding is None else int(padding),
            first("[UNK]", "<unk>"),
        )


@dataclass(frozen=True)
class SubwordReading:
    """`places` has for each word its window within the sentence, and its first and last subword within the window."""

    windows: Sequence[Sequence[int]]
    shapes: Sequence[Sequence[int]]
    first: Ints
    places: Sequence[Ints]
    lengths: Ints
    padding: int

    @cached_property
    def sizes(self) -> Ints:
        """Subwords of each sentence."""
        counts = np.fromiter(map(len, self.windows), np.int64, len(self.windows))
        return np.add.reduceat(counts, self.first[:-1]) if len(counts) else counts

    @cached_property
    def _words(self) -> NDArray[np.int64]:
        """All places one below the other."""
        return np.concatenate(self.places) if self.places else np.zeros((0, 3), np.int64)

    @cached_property
    def _starts(self) -> Ints:
        return np.concatenate([[0], np.cumsum(self.lengths)])

    def batch(self, which: Ints) -> Inputs:
        """`subwords` and `shapes` (W, T); `words` (B, N+1, 2): where each word's first and last are among all W T."""
        rows = [w for i in which.tolist() for w in range(int(self.first[i]), int(self.first[i + 1]))]
        width = max((len(self.windows[w]) for w in rows), default=0)
        subwords = padded([self.windows[w] for w in rows], width, self.padding)
        shapes = padded([self.shapes[w] for w in rows], width)
        lengths = self.lengths[which]
        nodes = int(lengths.max(initial=0)) + 1
        inside = np.arange(1, nodes) <= lengths[:, None]
        own = self._words[
            np.concatenate([np.arange(*self._starts[i : i + 2]) for i in which] or [np.zeros(0, np.int64)])
        ]
        counts = self.first[which + 1] - self.first[which]
        before = np.repeat(np.cumsum(counts) - counts, lengths)
        words = np.zeros((len(which), nodes, 2), np.int64)
        words[:, 1:][inside] = (before + own[:, 0])[:, None] * subwords.shape[1] + own[:, 1:]
        return {"subwords": subwords, "shapes": shapes, "words": words}


def shape_of(form: str) -> int:
    """Which letters of a word are capitals: 0 none, 1 the first alone, 2 all, 3 some.

    >>> [shape_of(form) for form in ("in", "In", "I", "IN", "iPhone", "McCoy", "1990")]
    [0, 1, 1, 2, 3, 3, 0]
    """
    if form == form.lower():
        return 0
    if form[1:] == form[1:].lower():
        return 1
    return 2 if form == form.upper() else 3


SHAPES = 4
