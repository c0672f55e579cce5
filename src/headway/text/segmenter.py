"""Sentences and words from raw text, by two linear classifiers learnt from a treebank.

White space and paragraph ends are given: both end a token, and a blank line ends a sentence too. (A treebank's words
with spaces in them come out as several words.) The other ends of tokens, and of words inside them, are decided by
`boundaries`, the other ends of sentences by `sentence_ends`. Both read the text as `characters` prepares it, and have
weights of one byte. Splitting n characters costs O(n), whatever the text.

A multiword token whose words are not pieces of it (Portuguese "do" = "de" + "o") comes from a table: the tokens that
are mostly those words in training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Floats, Ints
from headway.errors import ArgumentError, TrainingError
from headway.inference.jit import kernel
from headway.text.boundaries import BOUNDARY_SLOTS, FEWEST_SLOTS, boundaries_of, learn_boundaries
from headway.text.characters import AUTO, BREAK, IGNORE, KEEP, Bytes, Characters, Codes, characters_of, coded, squeezed
from headway.text.layouts import concatenated, laid_out, run_on
from headway.text.sentence_ends import SENTENCE_SLOTS, learn_sentence_ends, sentence_ends_of, sentence_scores, tokens_in
from headway.text.web_words import with_web_words
from headway.treebank.annotations import NO_JOINT, Doubt, Joints
from headway.treebank.raw_text import (
    LONGEST_PARAGRAPH,
    NOTHING,
    TOKEN,
    WORD,
    Newlines,
    RawText,
    raw_text,
    sentence_from_tokens,
    split_paragraphs,
    tokens_of,
)
from headway.treebank.sentence import Sentence

NEWLINES: Mapping[str, int] = {"auto": AUTO, "keep": KEEP, "ignore": IGNORE}
LONGEST = 1_000  # words of a sentence
_MOST_WORDS = 16  # of a multiword token


@dataclass(frozen=True, eq=False, repr=False)
class Segmenter:
    """Splits text into sentences and words."""

    boundaries: Bytes  # (slots, 3)
    sentence_ends: Bytes  # (slots,)
    table: Mapping[str, tuple[str, ...]]  # multiword tokens in lower case, and their words
    most_words: int  # of a multiword token
    silent_hyphen: bool  # is a hyphen between the words of a multiword token part of neither?
    reads_lines: bool = False  # did it learn what line ends mean? Those of before 1.1 did not

    @classmethod
    def learn(cls, sentences: Sequence[Sentence], *, seed: int = 0, passes: int = 5) -> Segmenter:
        """Learn from a treebank; if it nowhere says SpaceAfter=No, spaces are guessed as in `raw_text`."""
        if passes < 1:
            raise TrainingError(f"passes is {passes}; make at least one")
        if not cls.can_learn(sentences):
            raise TrainingError("there are no words to learn to split text from; give a treebank with sentences")
        multiword = _Multiword.of(sentences)
        source = raw_text(sentences, guess_spaces=not multiword.spaces_known)
        text, ends = _known(concatenated([source, with_web_words(source, seed)]))
        inside = (text.kind > BREAK) & np.roll(text.kind > BREAK, -1)
        return cls(
            _quantised(learn_boundaries(text, ends, np.flatnonzero(inside), seed, passes)),
            sentence_end_weights(source, seed, passes),
            multiword.table(),
            multiword.most_words,
            multiword.silent_hyphen,
            reads_lines=True,
        )

    @staticmethod
    def can_learn(sentences: Iterable[Sentence]) -> bool:
        """Whether there is any text behind the sentences."""
        return any(token.form.strip() for sentence in sentences for token in tokens_of(sentence))

    def sentences(self, text: str, offset: int = 0, *, newlines: Newlines = "auto") -> list[Sentence]:
        """The sentences of a text; TokenRange counts its characters from `offset`.

        A blank line always ends a sentence. A single line end does where it looks like one ("auto"), always ("keep"),
        or no more than a space does ("ignore").
        """
        return self._sentences(text, offset, newlines, None)

    def drafts(self, text: str, doubt: Doubt, offset: int = 0, *, newlines: Newlines = "auto") -> list[Sentence]:
        """Likewise, cut only where there is no doubt; those in which there is some have joints."""
        return self._sentences(text, offset, newlines, doubt)

    def sentence(self, text: str, offset: int = 0) -> Sentence:
        """All of the text as one sentence, however long."""
        return next(self._split(text, offset, None), Sentence.from_words([]))

    def to_data(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """JSON and arrays for an archive. Four weights are one number there: archives do not compress single bytes."""
        data = {
            "table": {token: list(words) for token, words in self.table.items()},
            "most_words": self.most_words,
            "silent_hyphen": self.silent_hyphen,
            "reads_lines": self.reads_lines,
        }
        weights = {"boundaries": self.boundaries, "sentence_ends": self.sentence_ends}
        return data, {name: array.reshape(-1).view("<i4") for name, array in weights.items()}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Segmenter:
        """What `to_data` gave; ValueError or KeyError if it is damaged."""
        table, most_words, silent_hyphen = data["table"], data["most_words"], data["silent_hyphen"]
        if not isinstance(table, Mapping) or not all(map(_is_entry, table.items())):
            raise ValueError("the segmenter's table of multiword tokens is damaged")
        reads_lines = data.get("reads_lines", False)
        switches = type(silent_hyphen) is type(reads_lines) is bool
        if type(most_words) is not int or not 1 <= most_words <= _MOST_WORDS or not switches:
            raise ValueError("the segmenter's settings are damaged")
        return cls(
            _unpacked(arrays["boundaries"], (_slots(arrays["boundaries"]), 3)),
            _unpacked(arrays["sentence_ends"], (SENTENCE_SLOTS,)),
            {token: tuple(words) for token, words in table.items()},
            most_words,
            silent_hyphen,
            reads_lines,
        )

    def _sentences(self, text: str, offset: int, newlines: Newlines, doubt: Doubt | None) -> list[Sentence]:
        if newlines not in NEWLINES:
            raise ArgumentError(f"newlines is {newlines!r}; expected one of {', '.join(NEWLINES)}")
        mode = IGNORE if newlines == "auto" and not self.reads_lines else NEWLINES[newlines]
        found: list[Sentence] = []
        for start, paragraph in [(0, text)] if len(text) <= LONGEST_PARAGRAPH else split_paragraphs([text]):
            found += self._split(paragraph, offset + start, mode, doubt)
        return found

    def _split(self, text: str, offset: int, newlines: int | None, doubt: Doubt | None = None) -> Iterator[Sentence]:
        """The sentences of a text; everything as one sentence where nobody asks what line ends are."""
        codes, entries = coded(text)
        starts, ends, gaps, scores, cuts = _analyse(
            codes,
            entries,
            IGNORE if newlines is None else newlines,
            self.boundaries,
            self.sentence_ends,
            self.most_words,
        )
        found = list(self._with_words(text, zip(starts.tolist(), ends.tolist(), strict=True), cuts.tolist()))
        lasts = [len(found) - 1] if found else []
        if newlines is not None:
            counts = np.array([len(token.words) for token in found], np.int64)
            least = doubt.high if doubt else 0
            lasts = np.flatnonzero(sentence_ends_of(scores - least, gaps, counts, LONGEST)).tolist()
        spaces = (gaps > 0).tolist()
        first = 0
        for last in lasts:
            own = slice(first, last + 1)
            sentence = _as_sentence(found[own], spaces[own], offset)
            in_doubt = doubt is not None and last > first and scores[first:last].max() > doubt.low
            yield _as_draft(sentence, found[own], scores[own], gaps[own]) if in_doubt else sentence
            first = last + 1

    def _with_words(self, text: str, spans: Iterable[tuple[int, int]], cuts: Sequence[int]) -> Iterator[_Found]:
        """The words of every token; `cuts` are where words end inside tokens."""
        rest = iter((*cuts, len(text) + 1))
        cut = next(rest)
        for start, end in spans:
            form = text[start:end]
            if cut < end:
                words: list[str] = []
                ranges = []
                while start < end:
                    stop = min(cut, end)
                    begin = start + (self.silent_hyphen and bool(words) and text[start] == "-" and stop > start + 1)
                    words.append(text[begin:stop])
                    ranges.append((begin, stop))
                    start = stop
                    if cut < end:
                        cut = next(rest)
                yield _Found(form, tuple(words), tuple(ranges))
            elif words_of_token := self.table.get(form.lower()):
                yield _Found(form, _in_case(words_of_token, form), ((start, end),) * len(words_of_token))
            else:
                yield _Found(form, (form,), ((start, end),))


@kernel
def _analyse(
    codes: Codes, entries: Codes, newlines: int, boundaries: Bytes, sentence_ends: Bytes, most_words: int
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """First character of every token and the one after its last, what follows it, and the score of a sentence end;
    and where words end inside tokens. One kernel for all, since most paragraphs are short.
    """
    text = squeezed(codes, entries, newlines)
    ends = boundaries_of(text, boundaries, most_words)
    tokens = tokens_in(text, ends)
    scores = sentence_scores(text, tokens, sentence_ends)
    place = text.place
    return place[tokens.start], place[tokens.end - 1] + 1, tokens.gap, scores, place[np.flatnonzero(ends == WORD)] + 1


def sentence_end_weights(source: RawText, seed: int = 0, passes: int = 5) -> Bytes:
    """Learnt from the text as it is, without its paragraphs, and laid out in lines twice."""
    laid = [laid_out(source, seed=2 * seed + copy) for copy in range(2)]
    return _quantised(learn_sentence_ends(*_known(concatenated([source, run_on(source), *laid])), seed, passes))


def _known(source: RawText) -> tuple[Characters, Ints]:
    """Training text as the classifiers see it, and what ends after each of its characters."""
    text = characters_of(source.text, AUTO)
    ends = np.where(text.place >= 0, source.ends[text.place], NOTHING).astype(np.int64)
    space = text.kind <= BREAK
    before_space = ~space & np.roll(space, -1)
    ends[before_space] = np.maximum(ends[before_space], TOKEN)  # a word with spaces inside comes apart
    return text, ends


class _Found(NamedTuple):
    """A token of a text: its words, and where each stands."""

    form: str
    words: tuple[str, ...]
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _Multiword:
    """What training sentences say about multiword tokens, and whether they say where spaces are."""

    tokens: Counter[str]  # in lower case
    analyses: dict[str, Counter[tuple[str, ...]]]  # where the words are not pieces of the token
    most_words: int
    silent_hyphen: bool
    spaces_known: bool

    @classmethod
    def of(cls, sentences: Sequence[Sentence]) -> _Multiword:
        tokens: Counter[str] = Counter()
        analyses: dict[str, Counter[tuple[str, ...]]] = {}
        most_words, hyphens, spaces_known = 1, 0, False
        for sentence in sentences:
            for token in tokens_of(sentence):
                lower = token.form.lower()
                tokens[lower] += 1
                spaces_known |= not token.space_after
                if len(token.words) == 1:
                    continue
                cuts = token.cuts()
                if cuts is None:
                    words = tuple(word.lower() for word in token.words)
                    analyses.setdefault(lower, Counter())[words] += 1
                else:
                    most_words = max(most_words, len(token.words))
                    for cut, word in zip(cuts, token.words[1:], strict=True):
                        if token.form[cut] == "-":
                            hyphens += -1 if word.startswith("-") else 1
        return cls(tokens, analyses, min(most_words, _MOST_WORDS), hyphens > 0, spaces_known)

    def table(self) -> dict[str, tuple[str, ...]]:
        """The tokens that are mostly the same words."""
        table = {}
        for token, analyses in sorted(self.analyses.items()):
            words, count = analyses.most_common(1)[0]
            if 2 * count > self.tokens[token] and _is_entry((token, list(words))):
                table[token] = words
        return table


def _quantised(weights: Floats) -> Bytes:
    """The weights as bytes, the largest as 127."""
    largest = np.abs(weights).max()
    return np.rint(weights * (127 / largest if largest else 0.0)).astype(np.int8)


def _slots(packed: NDArray[Any]) -> int:
    """How many slots the boundaries' weights have: fewer in older models, always a power of two."""
    return BOUNDARY_SLOTS if packed.size * 4 != 3 * FEWEST_SLOTS else FEWEST_SLOTS


def _unpacked(packed: NDArray[Any], shape: tuple[int, ...]) -> Bytes:
    """Weights from an archive, their number checked: compiled code indexes them without checks."""
    if packed.dtype != np.dtype("<i4") or packed.ndim != 1 or 4 * packed.size != np.prod(shape):
        raise ValueError("the segmenter's weights do not fit")
    return np.ascontiguousarray(packed).view(np.int8).reshape(shape)


def _is_entry(entry: tuple[Any, Any]) -> bool:
    """Is it a token and its words, as the table has them?"""
    token, words = entry
    texts = [token, *words] if isinstance(words, list) else []
    return 2 < len(texts) <= _MOST_WORDS + 1 and all(isinstance(text, str) and text.split() == [text] for text in texts)


def _in_case(words: tuple[str, ...], form: str) -> tuple[str, ...]:
    """Words of the table in the case of the token: "Do" is "De" and "o", "DO" is "DE" and "O".

    >>> _in_case(("de", "o"), "Do"), _in_case(("de", "o"), "DO"), _in_case(("a", "a"), "À")
    (('De', 'o'), ('DE', 'O'), ('A', 'a'))
    """
    if form.isupper() and len(form) > 1:
        return tuple(word.upper() for word in words)
    if form[0].isupper():
        return (words[0][0].upper() + words[0][1:], *words[1:])
    return words


def _as_sentence(tokens: Sequence[_Found], spaces: Sequence[bool], offset: int) -> Sentence:
    """A sentence with its offsets; `spaces` are where white space, or the end, follows a token."""
    found = zip([token.form for token in tokens], [token.words for token in tokens], spaces, strict=True)
    offsets = tuple((start + offset, end + offset) for token in tokens for start, end in token.ranges)
    return sentence_from_tokens(found, offsets)


def _as_draft(sentence: Sentence, tokens: Sequence[_Found], scores: Ints, gaps: Ints) -> Sentence:
    """The sentence with its joints, from the scores of its tokens and what follows them."""
    known = list(zip(tokens, scores.tolist(), gaps.tolist(), strict=True))
    joints = Joints(
        tuple(score for token, own, _ in known for score in (NO_JOINT,) * (len(token.words) - 1) + (own,)),
        tuple(gap for token, _, own in known for gap in (-1,) * (len(token.words) - 1) + (own,)),
    )
    return replace(sentence, layout=replace(sentence.layout, joints=joints))
