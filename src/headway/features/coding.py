"""Sentences as small integers: what the compiled templates read.

A `Coder` numbers the values that every field had in training. A sentence of n words becomes n + 5 columns of
`CodedNodes.codes`, which has one row per field: two columns of padding, the root, the words, two columns of padding. A
template can thus look two words beyond any node without a test. Codes are 0 outside the sentence, 1 for the root, 2 for
values never seen in training, 3 and up for the others.

A word has a set of morphological features (`Nature=Fine|Number=Sing`, or `ev|neut` in CoNLL-X). The sets are ragged:
the features of column i are `feats[feat_start[i] : feat_start[i + 1]]`, and unknown ones are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from headway.arrays import Ints
from headway.errors import TemplateError
from headway.features.clusters import NO_CLUSTERS, Clusters
from headway.features.numbering import Codes, ValuesOf, codes_of, numbered, values_seen, word_columns
from headway.features.tag_classes import NO_CLASSES, TagClasses
from headway.features.templates import FIELDS, LARGEST_OFFSET
from headway.treebank import Sentence

OUTSIDE, ROOT, UNKNOWN = 0, 1, 2
_FIRST = 3
PADDING = LARGEST_OFFSET
MOST_FEATS = 32  # pairs of features are enumerated: a hostile line must not ask for millions
PREFIX, SUFFIX = 5, 3  # McDonald et al. 2005 use prefixes of five characters

_Word = tuple[str, str, str, str, str]  # form, lemma, UPOS, XPOS, FEATS


class CodedNodes(NamedTuple):
    """The columns of coded sentences: codes (fields, columns) and the ragged sets of features."""

    codes: Codes
    feat_start: Codes
    feats: Codes


@dataclass(frozen=True, repr=False)
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

    def only(self, which: Ints) -> Coded:
        """The same with columns of their own, for somebody who has no others."""
        columns = self.columns(which)
        widths = _widths(self.lengths[which])
        counts = np.diff(self.nodes.feat_start)[columns]
        start = np.concatenate((np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)))
        feats = self.nodes.feats[word_columns(self.nodes.feat_start[columns].astype(np.int64), counts)]
        nodes = CodedNodes(self.nodes.codes[:, columns], start, feats)
        return Coded(nodes, np.cumsum(widths) - widths + PADDING, self.lengths[which])

    def columns(self, which: Ints) -> Ints:
        """The columns of the sentences numbered `which`, padding included, one sentence after the other."""
        return word_columns(self.roots[which] - PADDING, _widths(self.lengths[which]))


@dataclass(frozen=True, repr=False)
class Coder:
    """The numbering of every field's values, `fields[name][value]`, and of single features, `feats[feature]`.

    Tags that have a class (`headway.features.tag_classes`) have it for their coarse tag.
    """

    fields: Mapping[str, Mapping[str, int]]
    feats: Mapping[str, int]
    clusters: Clusters = NO_CLUSTERS
    tag_classes: TagClasses = NO_CLASSES

    @classmethod
    def learn(
        cls,
        sentences: Iterable[Sentence],
        clusters: Clusters = NO_CLUSTERS,
        tag_classes: TagClasses = NO_CLASSES,
    ) -> Coder:
        """Number the values seen, in the order they are first seen.

        >>> coder = Coder.learn([Sentence.from_words(["a", "b", "a"], upos=["X", "Y", "X"])])
        >>> coder.fields["upos"]
        {'X': 3, 'Y': 4}
        """
        words = list(dict.fromkeys(_words(sentences)))
        feats = dict.fromkeys(chain.from_iterable(single_features(feats) for *_, feats in words))
        fields = values_seen(words, _values_of(clusters, tag_classes), FIELDS)
        return cls.from_values(fields, list(feats), clusters, tag_classes)

    @classmethod
    def from_values(
        cls,
        fields: Mapping[str, Sequence[str]],
        feats: Sequence[str],
        clusters: Clusters = NO_CLUSTERS,
        tag_classes: TagClasses = NO_CLASSES,
    ) -> Coder:
        """The coder that numbers these values in this order, as a saved model lists them."""
        if set(fields) != set(FIELDS) or not set(map(type, chain(feats, *fields.values()))) <= {str}:
            raise TemplateError(f"a coder needs text values for the fields {', '.join(FIELDS)}")
        numbers = {field: numbered(fields[field], _FIRST) for field in FIELDS}
        return cls(numbers, numbered(feats, 0), clusters, tag_classes)

    @property
    def names(self) -> tuple[str, ...]:
        """The fields, in the order of the rows of `CodedNodes.codes`."""
        return tuple(self.fields)

    def code(self, sentences: Sequence[Sentence]) -> Coded:
        """Sentences as integers, O(tokens)."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        widths = _widths(lengths)
        ends = np.cumsum(widths)
        roots = ends - widths + PADDING
        total = int(ends[-1]) if len(sentences) else 0
        words = word_columns(roots + 1, lengths)
        codes = np.zeros((len(self.fields), total), np.int32)
        codes[:, roots] = ROOT
        values_of = _values_of(self.clusters, self.tag_classes)
        codes[:, words] = codes_of(_words(sentences), values_of, self.fields.values(), UNKNOWN)
        return Coded(CodedNodes(codes, *self._feats(sentences, words, total)), roots, lengths)

    def _feats(self, sentences: Sequence[Sentence], words: Ints, total: int) -> tuple[Codes, Codes]:
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


def _widths(lengths: Ints) -> Ints:
    """How many columns sentences take: a root, words and padding."""
    return lengths + 1 + 2 * PADDING


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


def fine_tags(sentence: Sentence) -> Sequence[str]:
    """The language's own tags; the universal one where a word has none, as in many UD treebanks."""
    if "_" not in sentence.xpos:
        return sentence.xpos
    return tuple(map(_fine_tag, sentence.upos, sentence.xpos))


def _fine_tag(upos: str, xpos: str) -> str:
    return upos if xpos == "_" else xpos


def _words(sentences: Iterable[Sentence]) -> Iterator[_Word]:
    """Every word with everything its fields are made from."""
    return chain.from_iterable(zip(s.forms, s.lemmas, s.upos, s.xpos, s.feats, strict=True) for s in sentences)


def _values_of(clusters: Clusters, tag_classes: TagClasses) -> ValuesOf[_Word]:
    """The values of a word's FIELDS, in their order."""

    def values(word: _Word) -> Sequence[str]:
        form, lemma, upos, xpos, feats = word
        lower, tag, path = form.lower(), _fine_tag(upos, xpos), clusters.path(form)
        of_form = (form, lower, lemma, lower if lemma == "_" else lemma, form[:PREFIX], form[-SUFFIX:], shape(form))
        coarse = tag_classes.classes.get(tag, upos)
        return (*of_form, coarse, tag, feats, f"{tag}/{feats}", path, path[:6], path[:4])

    return values
