"""Features of words in a row, for tagging: what a word is made of, what is known of it, and its neighbours.

All fields of a word follow from its form alone: the form and its lower case, beginnings and ends, its shape, the
tags it had in training (`tags`, for words seen often enough to trust), the path of its cluster. `WordCoder` numbers the
values that training showed at least twice; with a value it does not know, a template says nothing. So rare words of the
training text look to the learner as unknown words will.

A template is one line of atoms, each a field and a place beside the word: `lower-1 lower`, `suffix3 tags+1`; `.` is
the template of no atom. Keys are as in `headway.features.firing`: a sum of odd 64-bit multipliers times codes, modulo
2^64. Coding costs O(1) a word, the keys O(T) for T templates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.errors import TemplateError
from headway.features.clusters import NO_CLUSTERS, Clusters
from headway.features.coding import shape
from headway.inference.batch import Ints
from headway.inference.jit import part

UNKNOWN, OUTSIDE = 0, 1
_FIRST = 2
PADDING = 2
SILENT = np.uint64(0)  # the key of a template that says nothing of a word
_LEAST = 2  # times a value must be seen to be numbered
_MOST_ATOMS = 3

Codes = NDArray[np.int32]
Keys = NDArray[np.uint64]

_ATOM = re.compile(r"([a-z]+\d?)([+-][12])?")

_OF_FORM: dict[str, Callable[[str], str]] = {
    "form": lambda form: form,
    "lower": str.lower,
    "shape": shape,
    **{f"prefix{k}": lambda form, k=k: form[:k] for k in (1, 2, 3)},  # type: ignore[misc]
    "prefix4": lambda form: form[:4].lower(),
    **{f"suffix{k}": lambda form, k=k: form[-k:].lower() for k in (1, 2, 3, 4, 5)},  # type: ignore[misc]
}
FIELDS = (*_OF_FORM, "tags", "bits", "bits8", "bits4")


class CodedWords(NamedTuple):
    """Sentences in a row, two columns of padding on both sides of each; word i of sentence s is column start[s] + i."""

    codes: Codes  # (fields, columns)
    start: Ints
    lengths: Ints


@dataclass(frozen=True)
class WordCoder:
    """The numbering of every field's values; `tags` are the tags of a word in lower case, as one value."""

    fields: Mapping[str, Mapping[str, int]]
    tags: Mapping[str, str]
    clusters: Clusters

    @classmethod
    def learn(
        cls, sentences: Sequence[Sequence[str]], tags: Mapping[str, str], clusters: Clusters = NO_CLUSTERS
    ) -> WordCoder:
        """Number the values that are seen at least twice."""
        forms = Counter(form for sentence in sentences for form in sentence)
        bare = cls({}, tags, clusters)
        seen: dict[str, Counter[str]] = {field: Counter() for field in FIELDS}
        for form, count in forms.items():
            for field, value in bare._values(form).items():
                if value:
                    seen[field][value] += count
        kept = {field: [value for value, count in some.items() if count >= _LEAST] for field, some in seen.items()}
        return cls.from_values(kept, tags, clusters)

    @classmethod
    def from_values(cls, fields: Mapping[str, Sequence[str]], tags: Mapping[str, str], clusters: Clusters) -> WordCoder:
        """The coder that numbers these values in this order, as a saved model lists them."""
        return cls(
            {field: {value: i for i, value in enumerate(fields[field], _FIRST)} for field in FIELDS}, tags, clusters
        )

    def code(self, sentences: Sequence[Sequence[str]]) -> CodedWords:
        """Sentences as integers; every distinct form is looked at once."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        start = np.cumsum(lengths + 2 * PADDING) - lengths - PADDING
        row: dict[str, int] = {}
        rows = [row.setdefault(form, len(row)) for sentence in sentences for form in sentence]
        table = np.array([self._codes(form) for form in row], np.int32).reshape(-1, len(FIELDS))
        width = int(start[-1] + lengths[-1]) + PADDING if len(sentences) else 0
        codes = np.full((len(FIELDS), width), OUTSIDE, np.int32)
        codes[:, word_columns(start, lengths)] = table[rows].T
        return CodedWords(codes, start, lengths)

    def _codes(self, form: str) -> list[int]:
        values = self._values(form)
        return [numbers.get(values[field], UNKNOWN) for field, numbers in self.fields.items()]

    def _values(self, form: str) -> dict[str, str]:
        """The value of every field, "" where there is none."""
        path = self.clusters.paths.get(form) or self.clusters.paths.get(form.lower(), "")
        known = {"tags": self.tags.get(form.lower(), ""), "bits": path, "bits8": path[:8], "bits4": path[:4]}
        return {**{field: value(form) for field, value in _OF_FORM.items()}, **known}


def word_columns(start: Ints, lengths: Ints) -> Ints:
    """The columns of all words, sentence by sentence.

    >>> word_columns(np.array([2, 9]), np.array([3, 1])).tolist()
    [2, 3, 4, 9]
    """
    before = np.cumsum(lengths) - lengths
    columns: Ints = np.arange(int(lengths.sum())) + np.repeat(start - before, lengths)
    return columns


class WordTemplates(NamedTuple):
    """Compiled templates: row, offset and multiplier (0 where there is none) of each atom, and the key without them."""

    rows: Ints
    offsets: Ints
    multipliers: Keys
    salts: Keys


def compile_templates(lines: Sequence[str]) -> WordTemplates:
    """Templates as arrays."""
    shape = (len(lines), _MOST_ATOMS)
    rows, offsets, multipliers = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.uint64)
    for t, line in enumerate(lines):
        atoms = [] if line == "." else line.split()
        if len(atoms) > _MOST_ATOMS:
            raise TemplateError(f"{line}: a template of words has at most {_MOST_ATOMS} atoms")
        for a, atom in enumerate(atoms):
            match = _ATOM.fullmatch(atom)
            if match is None or match[1] not in FIELDS:
                raise TemplateError(f"{line}: {atom} is not a field of a word with an offset of at most {PADDING}")
            rows[t, a], offsets[t, a] = FIELDS.index(match[1]), int(match[2] or 0)
            multipliers[t, a] = odd_number(f"{line} {a}")
    return WordTemplates(rows, offsets, multipliers, np.array([odd_number(line) for line in lines], np.uint64))


def odd_number(text: str) -> int:
    """An odd 64-bit number drawn from a text."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") | 1


@part
def template_keys(templates: WordTemplates, codes: Codes, start: int, n: int, keys: Keys) -> None:
    """keys[t, i]: what template t says of word i; SILENT where it has a value that is not known."""
    rows, offsets, multipliers, salts = templates
    for t in range(len(rows)):
        for i in range(n):
            key = salts[t]
            for a in range(rows.shape[1]):
                if multipliers[t, a] == 0:
                    break
                code = codes[rows[t, a], start + i + offsets[t, a]]
                if code == UNKNOWN:
                    key = SILENT
                    break
                key += multipliers[t, a] * np.uint64(code)
            keys[t, i] = key
