"""What is known of a sentence under annotation, and how it stands in the file.

`sentence.heads` are the heads as they are shown: those that a person fixed (the words in `pins`) and, for the other
words, what the model suggests, -1 where nobody says anything. A pinned word whose label is "_" has a fixed head only.

In the file a word is pinned if it has a head, unless MISC has `Suggested=Yes`: such a head is a model's, and nobody has
confirmed it. This mark is Headway's own. It goes when the word is pinned, or with the head: a file can be written with
all heads, the suggested ones marked, or with the pinned ones alone and "_" elsewhere (`WriteChoice`).

A sentence that nobody has changed keeps its text, byte for byte (`original`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from headway.errors import ArgumentError
from headway.treebank import Sentence
from headway.treebank.annotations import comment, misc_entry, with_misc_entries
from headway.treebank.conll_reader import Block, parse_block
from headway.treebank.sentence import IN_MEMORY

Arc = tuple[int, int]  # head, word
WriteChoice = Literal["all", "pinned"]

SUGGESTED = "Suggested"
NOTE = "note"


@dataclass(frozen=True, eq=False)
class State:
    """A sentence as it is annotated so far; see the module. `version` rises with every change."""

    sentence: Sentence
    pins: frozenset[int] = frozenset()
    forbidden: frozenset[Arc] = frozenset()
    done: bool = False
    original: str | None = None
    version: int = 0

    @property
    def note(self) -> str:
        """What the annotators note about the sentence, "" if nothing."""
        return comment(self.sentence, NOTE) or ""

    def same_as(self, other: State) -> bool:
        """Whether everything is the same but the version."""
        return (
            self.sentence.to_conllu() == other.sentence.to_conllu()
            and (self.pins, self.forbidden, self.done) == (other.pins, other.forbidden, other.done)
            and self.original == other.original
        )

    def to_record(self) -> dict[str, Any]:
        """The state as JSON has it, without its version."""
        return {
            "conllu": self.sentence.to_conllu() if self.original is None else self.original,
            "pins": sorted(self.pins),
            "forbidden": sorted(map(list, self.forbidden)),
            "done": self.done,
            "original": self.original is not None,
        }

    @classmethod
    def from_record(cls, record: Any, version: int) -> State:
        """The state that was recorded; a built-in error of lookup, type or value where it is none."""
        if record["original"] is True:
            return replace(original_state(record["conllu"]), done=bool(record["done"]), version=version)
        sentence = sentence_of(record["conllu"])
        pins = frozenset(map(int, record["pins"]))
        forbidden = frozenset((int(head), int(word)) for head, word in record["forbidden"])
        if not pins <= {m for m, head in enumerate(shown_heads(sentence)) if head >= 0}:
            raise ValueError("a pinned word has no head")
        return cls(sentence, pins, forbidden, bool(record["done"]), None, version)

    def file_text(self, write: WriteChoice) -> str:
        """The sentence as the file has it, with the blank line that ends it."""
        if self.original is not None:
            return self.original
        n = len(self.sentence)
        open_words = frozenset(range(1, n + 1)) - self.pins
        if not open_words:
            return self.sentence.to_conllu()
        if write == "pinned":
            return pinned_only(self).to_conllu()
        heads = shown_heads(self.sentence)
        misc = tuple(
            with_misc_entries(column, **{SUGGESTED: "Yes"}) if m in open_words and heads[m] >= 0 else column
            for m, column in enumerate(self.sentence.layout.misc, start=1)
        )
        return with_misc(self.sentence, misc).to_conllu()


def original_state(text: str) -> State:
    """The state of a sentence as a file has it.

    >>> lines = "1\\tGo\\t_\\t_\\t_\\t_\\t0\\troot\\t_\\tSuggested=Yes", "2\\ton\\t_\\t_\\t_\\t_\\t1\\tx\\t_\\t_"
    >>> state = original_state("\\n".join(lines))
    >>> state.pins, state.done
    (frozenset({2}), False)
    """
    sentence = sentence_of(text)
    misc = sentence.layout.misc
    suggested = {m for m, column in enumerate(misc, start=1) if misc_entry(column, SUGGESTED) == "Yes"}
    heads = shown_heads(sentence)
    pins = frozenset(m for m in range(1, len(sentence) + 1) if heads[m] >= 0 and m not in suggested)
    if suggested:
        cleaned = tuple(
            with_misc_entries(column, **{SUGGESTED: None}) if m in suggested else column
            for m, column in enumerate(misc, start=1)
        )
        sentence = with_misc(sentence, cleaned)
    return State(sentence, pins, done=len(pins) == len(sentence), original=text)


def sentence_of(text: str) -> Sentence:
    """The sentence of a block of CoNLL-U, blank lines after it or not; unknown heads are -1."""
    parsed = parse_block(Block(body_of(text.encode()), 1), "sentence", "conllu", partial=True)
    return replace(parsed, place=IN_MEMORY)  # lines move while a file is annotated


def body_of(piece: bytes) -> bytes:
    """A sentence's lines without the blank ones after it.

    >>> body_of(b"1\\tGo\\r\\n\\r\\n\\r\\n")
    b'1\\tGo\\r\\n'
    """
    end = piece.find(b"\n", len(piece.rstrip(b"\r\n")))
    return piece if end < 0 else piece[: end + 1]


def shown_heads(sentence: Sentence) -> list[int]:
    """The heads (n+1), -1 where unknown, even if none is known."""
    return [-1] * (len(sentence) + 1) if sentence.heads is None else sentence.heads.tolist()


def shown_labels(sentence: Sentence) -> list[str | None]:
    """The labels (n+1), "_" where unknown."""
    return [None, *["_"] * len(sentence)] if sentence.labels is None else list(sentence.labels)


def with_arcs(sentence: Sentence, heads: Sequence[int], labels: Sequence[str | None]) -> Sentence:
    """The sentence under these heads, -1 where unknown; words without heads lose their labels."""
    known = [label if head >= 0 else "_" for head, label in zip(heads[1:], labels[1:], strict=True)]
    return sentence.with_tree(heads, [None, *known], partial=True)


def pinned_only(state: State) -> Sentence:
    """The sentence with the pinned heads alone."""
    heads = [head if m in state.pins else -1 for m, head in enumerate(shown_heads(state.sentence))]
    return with_arcs(state.sentence, heads, shown_labels(state.sentence))


def with_misc(sentence: Sentence, misc: tuple[str, ...]) -> Sentence:
    """The sentence with another MISC column."""
    return replace(sentence, layout=replace(sentence.layout, misc=misc))


def with_comments(sentence: Sentence, comments: Sequence[str]) -> Sentence:
    """The sentence with other comments."""
    return replace(sentence, layout=replace(sentence.layout, comments=tuple(comments)))


def require_write_choice(write: object) -> WriteChoice:
    """The choice, if it is one."""
    for choice in get_args(WriteChoice):
        if write == choice:
            return choice  # type: ignore[no-any-return]
    raise ArgumentError(f"write is {write!r}; expected 'all' or 'pinned'")
