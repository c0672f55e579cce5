"""A sentence: its words, its tree where it has one, and what else its file held.

Words are numbered 1..n and come as n-tuples of raw column strings, word 1 first, "_" where a file has nothing. The tree
is indexed by node: `heads` (n+1,) with `heads[0] == -1`, `labels` n+1 entries with `labels[0] is None`. CoNLL-X's
CPOSTAG is `upos`, its POSTAG `xpos`.

A partial sentence, made only on request (`partial=True`), has `heads[m] == -1` and `labels[m] == "_"` where the head of
word m is unknown; if none is known, `heads` is None. `require_tree` refuses it.

The `Layout` makes a round trip exact: comments, multiword tokens, empty nodes, the last two columns, line ends.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Ints
from headway.errors import TreebankError
from headway.treebank.annotations import Joints, Offsets
from headway.treebank.conll_writer import to_text
from headway.treebank.trees import as_heads, cycle

Format = Literal["conllu", "conllx"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sentence comes from; line 0 when it was not read from a file.

    >>> str(Place("train.conllu", 17))
    'train.conllu, line 17'
    """

    source: str
    line: int

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}" if self.line else self.source

    def error(self, cause: str, offset: int = 0) -> TreebankError:
        """An error that names this place, or a place so many lines after it."""
        return TreebankError(cause, self.source, self.line + offset if self.line else None)


IN_MEMORY = Place("sentence in memory", 0)


@dataclass(frozen=True, slots=True)
class Layout:
    """What a file holds besides words and tree.

    `extra_lines` are multiword tokens and empty nodes, each with the number of words before it. `deps` and `misc` are
    the last two columns (PHEAD and PDEPREL in CoNLL-X).

    `offsets` say where the words of a sentence that was made from text begin and end there, in characters. They are
    written to CoNLL-U as TokenRange in MISC; `annotations.offsets_of` also finds those that a file has in MISC. Such a
    sentence has `joints` while it is a draft, which the model that parses it may cut (`raw_text.pieces_of`).
    """

    format: Format
    comments: tuple[str, ...]
    extra_lines: tuple[tuple[int, str], ...]
    deps: tuple[str, ...]
    misc: tuple[str, ...]
    newline: str
    offsets: Offsets | None = None
    joints: Joints | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sentence:
    """n words, and a tree over them unless `heads` is None; see the module. Treat the arrays as read-only.

    >>> sentence = Sentence.from_words(["Dogs", "bark"], heads=[-1, 2, 0], labels=[None, "nsubj", "root"])
    >>> len(sentence), sentence.heads.tolist(), sentence.labels
    (2, [-1, 2, 0], (None, 'nsubj', 'root'))
    """

    forms: tuple[str, ...]
    lemmas: tuple[str, ...]
    upos: tuple[str, ...]
    xpos: tuple[str, ...]
    feats: tuple[str, ...]
    heads: Ints | None
    labels: tuple[str | None, ...] | None
    layout: Layout
    place: Place

    @classmethod
    def from_words(
        cls,
        forms: Iterable[str],
        *,
        lemmas: Iterable[str] | None = None,
        upos: Iterable[str] | None = None,
        xpos: Iterable[str] | None = None,
        feats: Iterable[str] | None = None,
        heads: ArrayLike | None = None,
        labels: Sequence[str | None] | None = None,
        partial: bool = False,
    ) -> Sentence:
        """A sentence made in memory; columns left out are "_". With `partial`, -1 stands for an unknown head.

        >>> Sentence.from_words(["Dogs", "bark"], upos=["NOUN", "VERB"]).upos
        ('NOUN', 'VERB')
        """
        words = _column("forms", forms)
        absent = ("_",) * len(words)
        given = {"lemmas": lemmas, "upos": upos, "xpos": xpos, "feats": feats}
        columns = {name: absent if values is None else _column(name, values) for name, values in given.items()}
        for name, column in columns.items():
            if len(column) != len(words):
                raise TreebankError(f"there are {len(column)} {name} for {len(words)} words; give one per word")
        layout = Layout("conllu", (), (), absent, absent, "\n")
        sentence = cls(words, **columns, heads=None, labels=None, layout=layout, place=IN_MEMORY)
        if heads is not None:
            return sentence.with_tree(heads, labels, partial=partial)
        if labels is not None:
            raise TreebankError("labels are given without heads; give both")
        return sentence

    def __len__(self) -> int:
        """The number of words."""
        return len(self.forms)

    def __repr__(self) -> str:
        return f"<Sentence of {len(self)} words: {self.place}>"

    def with_tree(
        self, heads: ArrayLike, labels: Sequence[str | None] | None = None, *, partial: bool = False
    ) -> Sentence:
        """The same words and layout under another tree, every label "_" unless given.

        With `partial`, -1 stands for an unknown head; such a word has no label, and if all are such, there is no tree.

        >>> Sentence.from_words(["Dogs", "bark"]).with_tree([-1, 2, 0]).labels
        (None, '_', '_')
        >>> print(Sentence.from_words(["Dogs", "bark"]).with_tree([-1, 2, -1], partial=True).heads)
        [-1  2 -1]
        """
        array = as_heads(heads, partial=partial)
        n = len(self)
        if len(array) != n + 1:
            raise TreebankError(f"there are {len(array)} heads for {n} words; expected {n + 1}, heads[0] == -1 first")
        names = (None, *("_",) * n) if labels is None else _labels(labels, n)
        unknown = _unknown(array) if partial else []
        for m in unknown:
            if names[m] != "_":
                raise TreebankError(f"word {m} has a label but no head; give both, or neither")
        words = (self.forms, self.lemmas, self.upos, self.xpos, self.feats)
        if 0 < n == len(unknown):
            return Sentence(*words, None, None, self.layout, self.place)
        return Sentence(*words, array, names, self.layout, self.place)

    def to_conllu(self) -> str:
        """The sentence as CoNLL-U, with the blank line after it.

        >>> print(Sentence.from_words(["Dogs", "bark"], heads=[-1, 2, 0]).to_conllu().replace("\\t", " "))
        1 Dogs _ _ _ _ 2 _ _ _
        2 bark _ _ _ _ 0 _ _ _
        """
        return to_text(self, "conllu")

    def to_conllx(self) -> str:
        """The sentence as CoNLL-X, which has no comments, multiword tokens or empty nodes.

        >>> Sentence.from_words(["Go"]).to_conllx()
        '1\\tGo\\t_\\t_\\t_\\t_\\t_\\t_\\t_\\t_\\n\\n'
        """
        return to_text(self, "conllx")


def require_tree(sentence: Sentence) -> Ints:
    """The sentence's heads, if they are a tree; otherwise an error that names the place and the words on the cycle.

    >>> require_tree(Sentence.from_words(["Dogs", "bark"], heads=[-1, 2, 0]))
    array([-1,  2,  0])
    """
    heads = _acyclic(sentence)
    unknown = _unknown(heads)
    if unknown:
        word = _named(sentence, unknown[0])
        raise sentence.place.error(f"word {word} has no head; give every word one, or leave the sentence out")
    return heads


def require_partial_tree(sentence: Sentence, single_root: bool) -> Ints:
    """The sentence's heads, -1 where unknown, if some tree of the class has the known ones; otherwise an error that
    names the place and the words.

    Known arcs without a cycle lead from every word up to the root or to a word without a head. To make a tree, attach
    the words without heads to the root; if only one word may be there, attach them to that one, or to the first of them
    if it is unknown. So there must be no cycle and, for a single root, no second word under the root.

    >>> partial = Sentence.from_words(["Dogs", "bark"], heads=[-1, 2, -1], partial=True)
    >>> require_partial_tree(partial, single_root=True)
    array([-1,  2, -1])
    """
    heads = _acyclic(sentence)
    under_root = np.flatnonzero(heads == 0).tolist()
    if single_root and len(under_root) > 1:
        words = ", ".join(_named(sentence, m) for m in under_root)
        cause = f"words {words} are all under the root; keep one, or allow several (single_root=False)"
        raise sentence.place.error(cause)
    return heads


@lru_cache(maxsize=1 << 16)
def is_punctuation(form: str) -> bool:
    """Whether all characters of the form are Unicode punctuation; symbols such as "$" and "+" are not.

    >>> [is_punctuation(form) for form in ("...", "«", "$", "'s")]
    [True, True, False, False]
    """
    return bool(form) and all(unicodedata.category(character)[0] == "P" for character in form)


def _acyclic(sentence: Sentence) -> Ints:
    """The heads, if the sentence has any and the known ones form no cycle."""
    heads = sentence.heads
    if heads is None:
        raise sentence.place.error("the sentence has no heads; annotate it or leave it out")
    closed = np.maximum(heads, 0)  # a word under the root is on no cycle
    closed[0] = -1
    words = cycle(closed)
    if words:
        path = " -> ".join(_named(sentence, word) for word in (*words, words[0]))
        raise sentence.place.error(f"the heads form a cycle, {path}; let every word reach the root")
    return heads


def _unknown(heads: Ints) -> list[int]:
    """The words whose heads are unknown."""
    words: list[int] = (np.flatnonzero(heads[1:] < 0) + 1).tolist()
    return words


def _named(sentence: Sentence, word: int) -> str:
    return f"{word} ({sentence.forms[word - 1]})"


def _column(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """The values, if a file can hold them: text without tabs or line ends, never empty."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TreebankError(f"{name} are {type(values).__name__}; expected a list of strings, one per word")
    column = tuple(values)
    for position, value in enumerate(column, start=1):
        if not isinstance(value, str) or not value or "\t" in value or "\n" in value or "\r" in value:
            raise TreebankError(f"{name} of word {position} is {value!r}; expected text without tabs or line ends")
    return column


def _labels(labels: Sequence[str | None], n: int) -> tuple[str | None, ...]:
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise TreebankError(f"labels are {type(labels).__name__}; expected a list, None first")
    if len(labels) != n + 1 or labels[0] is not None:
        raise TreebankError(f"there are {len(labels)} labels for {n} words; expected {n + 1}, labels[0] is None first")
    return (None, *_column("labels", labels[1:]))  # type: ignore[arg-type]  # _column checks that each is text
