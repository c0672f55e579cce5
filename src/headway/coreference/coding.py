"""Documents as numbers, for the compiled comparisons and templates.

A `MentionCoder` numbers the values of each attribute that occur at least `LEAST` times in the training data. Mention m
of a document is row m of `codes`; row 0 is the artificial root, whose children start clusters. The other arrays compare
mentions of the same document: except for the labels, their numbers mean nothing outside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Ints
from headway.coreference.attributes import ATTRIBUTES, describe_mentions
from headway.coreference.documents import Document
from headway.errors import TemplateError
from headway.treebank import Sentence, require_tree

LEAST = 5
ROOT, UNKNOWN = 0, 1
_FIRST = 2


class CodedDocument(NamedTuple):
    """A document of M mentions and W words. Arrays over mentions have M + 1 entries, the root's first.

    Words are numbered from 0 through the document. Texts are equal if their numbers are; 0 is "none".
    """

    codes: NDArray[np.int32]  # (M+1, attributes)
    sentence: Ints
    first: Ints  # first and last word, and head
    last: Ints
    head: Ints
    kind: Ints
    string: Ints
    core: Ints
    lemma: Ints  # of the head, and of its head
    governor_lemma: Ints
    number: Ints
    gender: Ints
    person: Ints
    type: Ints
    speaker: Ints
    addressee: Ints
    initials: Ints
    content_start: Ints  # (M+2,) the content words of m, ascending: content[content_start[m] : content_start[m+1]]
    content: Ints
    governor: Ints  # (W,) the head of each word, -1 for roots
    label: Ints  # (W,) hashed, the same in all documents


@dataclass(frozen=True, repr=False)
class MentionCoder:
    """The numbering of every attribute's values, `values[attribute][value]`."""

    values: Mapping[str, Mapping[str, int]]

    @classmethod
    def learn(cls, documents: Iterable[Document]) -> MentionCoder:
        """Number the values that are frequent enough to learn from."""
        counts: dict[str, Counter[str]] = {name: Counter() for name in ATTRIBUTES}
        for document in documents:
            for _, attributes in describe_mentions(document):
                for name, value in attributes.items():
                    counts[name][value] += 1
        return cls.from_values({name: [v for v, n in seen.items() if n >= LEAST] for name, seen in counts.items()})

    @classmethod
    def from_values(cls, values: Mapping[str, Sequence[str]]) -> MentionCoder:
        """A coder that numbers these values in this order, as listed in a saved model."""
        if set(values) != set(ATTRIBUTES):
            raise TemplateError(f"a coder needs values for the attributes {', '.join(ATTRIBUTES)}")
        return cls({name: {v: i for i, v in enumerate(values[name], start=_FIRST)} for name in ATTRIBUTES})

    def code(self, document: Document) -> CodedDocument:
        """Turn a document into numbers, O(words of its mentions)."""
        described = describe_mentions(document)
        codes = np.zeros((len(described) + 1, len(ATTRIBUTES)), np.int32)
        for column, name in enumerate(ATTRIBUTES):
            get = self.values[name].get
            codes[1:, column] = [get(attributes[name], UNKNOWN) for _, attributes in described]
        offsets = np.concatenate(([0], np.cumsum([len(s) for s in document.sentences]))).astype(np.int64)
        number = _Numbers()
        content = [sorted({number(word) for word in m.content()}) for m, _ in described]
        at = [int(offsets[m.mention.sentence]) - 1 for m, _ in described]
        spans = list(zip(at, described, strict=True))
        return CodedDocument(
            codes=codes,
            sentence=_column(m.mention.sentence for m, _ in described),
            first=_column(start + m.mention.words[0] for start, (m, _) in spans),
            last=_column(start + m.mention.words[-1] for start, (m, _) in spans),
            head=_column(start + m.head for start, (m, _) in spans),
            kind=_column(m.kind for m, _ in described),
            string=_column(number(m.text(m.mention.words)) for m, _ in described),
            core=_column(number(m.text(m.core)) for m, _ in described),
            lemma=_column(number(x["lemma"]) for _, x in described),
            governor_lemma=_column(number(x["governor"]) for _, x in described),
            number=_column(number(x["number"]) for _, x in described),
            gender=_column(number(x["gender"]) for _, x in described),
            person=_column(number(x["person"]) for _, x in described),
            type=_column(number(x["type"]) for _, x in described),
            speaker=_column(number(m.speaker or "_") for m, _ in described),
            addressee=_column(number(m.addressee or "_") for m, _ in described),
            initials=_column(number(m.initials()) for m, _ in described),
            content_start=np.concatenate(([0, 0], np.cumsum([len(words) for words in content]))).astype(np.int64),
            content=np.array([word for words in content for word in words], np.int64),
            governor=governors(document.sentences, offsets),
            label=np.array(
                [crc32(str(x).encode()) for s in document.sentences for x in (s.labels or ())[1:]], np.int64
            ),
        )


class _Numbers:
    """Numbers for texts, 0 for "_"."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"_": 0}

    def __call__(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))


def _column(values: Iterable[int]) -> Ints:
    """The value of the root, -1, and then those of the mentions."""
    return np.fromiter((-1, *values), np.int64)


def governors(sentences: Sequence[Sentence], offsets: Ints) -> Ints:
    heads = [require_tree(sentence)[1:] for sentence in sentences]
    moved = [np.where(h > 0, h - 1 + start, -1) for h, start in zip(heads, offsets[:-1], strict=True)]
    return np.concatenate([np.zeros(0, np.int64), *moved])
