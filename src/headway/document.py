"""A parsed text: its sentences, their words, and the forms in which all of it leaves Headway."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, overload

from headway.data_frame import data_frame
from headway.parsed import UNSURE_BELOW, WIDTH, Parsed
from headway.treebank.annotations import with_first_comments
from headway.treebank.raw_text import split_paragraphs
from headway.word import Word, shortened


@dataclass(frozen=True, eq=False, repr=False)
class Document:
    """What `parser(text)` gives: the text, and its parsed sentences in order.

    It holds the trees of the whole text at once; `Parser.parse_text` gives them one by one.
    """

    text: str
    sentences: tuple[Parsed, ...]

    def __repr__(self) -> str:
        return f"<Document of {len(self)} sentence{'s' * (len(self) != 1)}: {shortened(self.text)}>"

    def __str__(self) -> str:
        return self.text

    def __len__(self) -> int:
        """The number of sentences."""
        return len(self.sentences)

    def __iter__(self) -> Iterator[Parsed]:
        return iter(self.sentences)

    @overload
    def __getitem__(self, place: int) -> Parsed: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Parsed, ...]: ...
    def __getitem__(self, place: int | slice) -> Parsed | tuple[Parsed, ...]:
        return self.sentences[place]

    @property
    def words(self) -> Iterator[Word]:
        """The words of all sentences, one after the other."""
        return (word for sentence in self.sentences for word in sentence)

    def to_dict(self) -> dict[str, Any]:
        """The document as plain data: its text, and a dictionary for every sentence (`Parsed.to_dict`)."""
        return {"text": self.text, "sentences": [sentence.to_dict() for sentence in self.sentences]}

    def to_json(self, *, indent: int | None = None) -> str:
        """What `to_dict` gives, as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    def to_conllu(self, *, probabilities: bool = False) -> str:
        """The document as CoNLL-U, its sentences numbered and its paragraphs marked, as `headway parse` writes them.

        `probabilities` are as for `Parsed.to_conllu`.
        """
        written = []
        for number, (sentence, begins) in enumerate(
            zip(self.sentences, self._paragraph_begins(), strict=True), start=1
        ):
            comments = [*["# newpar"] * begins, f"# sent_id = {number}"]
            written.append(with_first_comments(sentence.noted(probabilities=probabilities), *comments).to_conllu())
        return "".join(written)

    def to_svg(self, *, unsure_below: float = UNSURE_BELOW, width: float | None = WIDTH) -> str:
        """The trees one below the other in one picture, each as `Parsed.to_svg` draws it."""
        from headway.drawing import stacked_svg

        drawings = [sentence.drawing(unsure_below=unsure_below, width=width) for sentence in self.sentences]
        return stacked_svg(drawings, "Dependency trees")

    def to_dataframe(self) -> Any:
        """A table of pandas, one row for every word (`headway.data_frame`)."""
        return data_frame(self.sentences)

    def _paragraph_begins(self) -> Iterator[bool]:
        """Whether each sentence is the first of its paragraph; without offsets, none is known to be."""
        starts = [start for start, _ in split_paragraphs([self.text])]
        before = 0
        for sentence in self.sentences:
            paragraph = bisect_right(starts, sentence.offsets[0][0]) if sentence.offsets else before
            yield paragraph > before
            before = paragraph
