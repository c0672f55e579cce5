"""Features of words in a row, for tagging: how a word is written, what is known about it, and its neighbours.

All fields of a word follow from its form alone: the form and its lower case, prefixes and suffixes, its shape, the
tags it had in training (`tags`, for words seen often enough to trust), the path of its cluster. `WordCoder` numbers the
values that were seen at least twice in training; a template with any other value does not fire. So rare words of the
training text look to the learner as unknown words will.

A template is one line of atoms, each a field and an offset: `lower-1 lower`, `suffix3 tags+1`; `.` is the template
without atoms. Keys are as in `headway.features.firing`: a sum of odd 64-bit multipliers times codes, modulo 2^64.
Coding costs O(1) per word, the keys O(T) for T templates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from headway.arrays import Ints
from headway.errors import TemplateError
from headway.features.blocks import Keys
from headway.features.clusters import NO_CLUSTERS, Clusters
from headway.features.coding import shape
from headway.features.hashing import multiplier, odd_number
from headway.features.numbering import Codes, codes_of, numbered, values_seen, word_columns
from headway.inference.jit import part

UNKNOWN, OUTSIDE = 0, 1
_FIRST = 2
PADDING = 2
SILENT = np.uint64(0)  # the key of a template that does not fire
_LEAST = 2  # times a value must be seen to be numbered
_MOST_ATOMS = 3
_ATOM = re.compile(r"([a-z]+\d?)([+-][12])?")

_PREFIXES, _SUFFIXES = range(1, 5), range(1, 6)
FIELDS = (
    *("form", "lower", "shape"),
    *(f"prefix{k}" for k in _PREFIXES),
    *(f"suffix{k}" for k in _SUFFIXES),
    *("tags", "bits", "bits8", "bits4"),
)


class CodedWords(NamedTuple):
    """Sentences in a row, two columns of padding on both sides of each; word i of sentence s is column start[s] + i."""

    codes: Codes  # (fields, columns)
    start: Ints
    lengths: Ints


@dataclass(frozen=True, repr=False)
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
        forms, blank = chain.from_iterable(sentences), cls({}, tags, clusters)
        return cls.from_values(values_seen(forms, blank._values, FIELDS, _LEAST), tags, clusters)

    @classmethod
    def from_values(cls, fields: Mapping[str, Sequence[str]], tags: Mapping[str, str], clusters: Clusters) -> WordCoder:
        """The coder that numbers these values in this order, as a saved model lists them."""
        return cls({field: numbered(fields[field], _FIRST) for field in FIELDS}, tags, clusters)

    def code(self, sentences: Sequence[Sequence[str]]) -> CodedWords:
        """Sentences as integers."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        start = np.cumsum(lengths + 2 * PADDING) - lengths - PADDING
        width = int(start[-1] + lengths[-1]) + PADDING if len(sentences) else 0
        codes = np.full((len(FIELDS), width), OUTSIDE, np.int32)
        forms = chain.from_iterable(sentences)
        codes[:, word_columns(start, lengths)] = codes_of(forms, self._values, self.fields.values(), UNKNOWN)
        return CodedWords(codes, start, lengths)

    def _values(self, form: str) -> Sequence[str]:
        """The values of a form's FIELDS, in their order; "" where there is none."""
        lower, path = form.lower(), self.clusters.path(form, "")
        prefixes = (form[:1], form[:2], form[:3], form[:4].lower())
        suffixes = (form[-k:].lower() for k in _SUFFIXES)
        return (form, lower, shape(form), *prefixes, *suffixes, self.tags.get(lower, ""), path, path[:8], path[:4])


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
            multipliers[t, a] = multiplier(line, a)
    return WordTemplates(rows, offsets, multipliers, np.array([odd_number(line) for line in lines], np.uint64))


@part
def template_keys(templates: WordTemplates, codes: Codes, start: int, n: int, keys: Keys) -> None:
    """keys[t, i]: the key of template t at word i; SILENT where one of its values is not known."""
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
