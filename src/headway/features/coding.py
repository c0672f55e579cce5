"""Sentences as small integers: what the compiled templates read.

A `Coder` numbers the values that every field had in training. A sentence of n words becomes n + 5 columns of
`CodedNodes.codes`, which has one row per field: two columns of padding, the root, the words, two columns of padding. A
template can thus look two words beyond any node without a test. Codes are 0 outside the sentence, 1 for the root, 2 for
values never seen in training, 3 and up for the others.

A word has a set of morphological features (`Nature=Fine|Number=Sing`, or `ev|neut` in CoNLL-X). The sets are ragged:
the features of column i are `feats[feat_start[i] : feat_start[i + 1]]`, and unknown ones are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.errors import TemplateError
from headway.features.clusters import NO_CLUSTERS, Clusters
from headway.features.templates import FIELDS, LARGEST_OFFSET
from headway.inference.batch import Ints
from headway.treebank import Sentence

OUTSIDE, ROOT, UNKNOWN = 0, 1, 2
_FIRST = 3
PADDING = LARGEST_OFFSET
MOST_FEATS = 32  # pairs of features are enumerated: a hostile line must not ask for millions
PREFIX, SUFFIX = 5, 3  # McDonald et al. 2005 use prefixes of five characters


class CodedNodes(NamedTuple):
    """The columns of coded sentences: codes (fields, columns) and the ragged sets of features."""

    codes: NDArray[np.int32]
    feat_start: NDArray[np.int32]
    feats: NDArray[np.int32]


@dataclass(frozen=True)
class Coded:
    """A batch of sentences: `roots[i]` is the column of sentence i's root, `lengths[i]` its number of words."""

    nodes: CodedNodes
    roots: Ints
    lengths: Ints

    def __len__(self) -> int:
        return len(self.lengths)

    def some(self, which: Ints) -> Coded:
        """The sentences numbered `which`, in that order; their columns are shared, not copied."""
        return Coded(self.nodes, self.roots[which], self.lengths[which])


@dataclass(frozen=True)
class Coder:
    """The numbering of every field's values, `fields[name][value]`, and of single features, `feats[feature]`."""

    fields: Mapping[str, Mapping[str, int]]
    feats: Mapping[str, int]
    clusters: Clusters = NO_CLUSTERS

    @classmethod
    def learn(cls, sentences: Iterable[Sentence], clusters: Clusters = NO_CLUSTERS) -> Coder:
        """Number the values seen, in the order they are first seen.

        >>> coder = Coder.learn([Sentence.from_words(["a", "b", "a"], upos=["X", "Y", "X"])])
        >>> coder.fields["upos"]
        {'X': 3, 'Y': 4}
        """
        values: dict[str, dict[str, None]] = {field: {} for field in FIELDS}
        feats: dict[str, None] = {}
        columns = _columns(clusters)
        for sentence in sentences:
            for field, column in columns.items():
                values[field].update(dict.fromkeys(column(sentence)))
            feats.update(dict.fromkeys(chain.from_iterable(map(single_features, sentence.feats))))
        return cls.from_values({field: list(seen) for field, seen in values.items()}, list(feats), clusters)

    @classmethod
    def from_values(
        cls, fields: Mapping[str, Sequence[str]], feats: Sequence[str], clusters: Clusters = NO_CLUSTERS
    ) -> Coder:
        """The coder that numbers these values in this order, as a saved model lists them."""
        if set(fields) != set(FIELDS) or not all(isinstance(v, str) for v in chain(feats, *fields.values())):
            raise TemplateError(f"a coder needs text values for the fields {', '.join(FIELDS)}")
        numbered = {field: {v: i for i, v in enumerate(fields[field], start=_FIRST)} for field in FIELDS}
        return cls(numbered, {feature: i for i, feature in enumerate(feats)}, clusters)

    @property
    def names(self) -> tuple[str, ...]:
        """The fields, in the order of the rows of `CodedNodes.codes`."""
        return tuple(self.fields)

    def code(self, sentences: Sequence[Sentence]) -> Coded:
        """Sentences as integers, O(tokens)."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        widths = lengths + 1 + 2 * PADDING
        ends = np.cumsum(widths)
        roots = ends - widths + PADDING
        total = int(ends[-1]) if len(sentences) else 0
        words = np.arange(int(lengths.sum())) + np.repeat(
            roots + 1 - np.concatenate(([0], np.cumsum(lengths[:-1])))[: len(lengths)], lengths
        )
        codes = np.zeros((len(self.fields), total), np.int32)
        codes[:, roots] = ROOT
        columns = _columns(self.clusters)
        for row, (field, numbers) in zip(codes, self.fields.items(), strict=True):
            values = chain.from_iterable(map(columns[field], sentences))
            get = numbers.get
            row[words] = np.fromiter((get(value, UNKNOWN) for value in values), np.int32, len(words))
        return Coded(CodedNodes(codes, *self._feats(sentences, words, total)), roots, lengths)

    def _feats(
        self, sentences: Sequence[Sentence], words: Ints, total: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        known: dict[str, list[int]] = {}  # few distinct strings fill the column
        rows = []
        for text in chain.from_iterable(sentence.feats for sentence in sentences):
            row = known.get(text)
            if row is None:
                row = known[text] = [self.feats[f] for f in single_features(text) if f in self.feats]
            rows.append(row)
        counts = np.zeros(total + 1, np.int32)
        counts[words + 1] = np.fromiter(map(len, rows), np.int32, len(rows))
        return np.cumsum(counts, dtype=np.int32), np.fromiter(chain.from_iterable(rows), np.int32)


def single_features(feats: str) -> list[str]:
    """The features of a FEATS column.

    >>> single_features("Case=Nom|Number=Sing"), single_features("_")
    (['Case=Nom', 'Number=Sing'], [])
    """
    return [] if feats == "_" else feats.split("|")[:MOST_FEATS]


def shape(form: str) -> str:
    """Upper and lower case, digits and the rest, runs shortened.

    >>> shape("McDonald's"), shape("1800-talet")
    ('XxXx.x', '0.x')
    """
    kinds = ["X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdigit() else "." for c in form]
    return "".join(kind for kind, before in zip(kinds, ["", *kinds], strict=False) if kind != before)


def fine_tags(sentence: Sentence) -> list[str]:
    """The language's own tags; the universal one where a word has none, as in many UD treebanks."""
    return [upos if xpos == "_" else xpos for xpos, upos in zip(sentence.xpos, sentence.upos, strict=True)]


def _columns(clusters: Clusters) -> dict[str, Column]:
    """Every field's values, word by word."""
    return {
        **_COLUMNS,
        "bits": lambda s: map(clusters.path, s.forms),
        "bits6": lambda s: (clusters.path(form)[:6] for form in s.forms),
        "bits4": lambda s: (clusters.path(form)[:4] for form in s.forms),
    }


Column = Callable[[Sentence], Iterable[str]]

_COLUMNS: dict[str, Column] = {
    "form": lambda s: s.forms,
    "lower": lambda s: map(str.lower, s.forms),
    "lemma": lambda s: s.lemmas,
    "word": lambda s: (form.lower() if lemma == "_" else lemma for form, lemma in zip(s.forms, s.lemmas, strict=True)),
    "prefix": lambda s: (form[:PREFIX] for form in s.forms),
    "suffix": lambda s: (form[-SUFFIX:] for form in s.forms),
    "shape": lambda s: map(shape, s.forms),
    "upos": lambda s: s.upos,
    "xpos": fine_tags,
    "feats": lambda s: s.feats,
    "morph": lambda s: map("/".join, zip(fine_tags(s), s.feats, strict=True)),
}
