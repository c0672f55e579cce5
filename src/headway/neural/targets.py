"""What a network is to find for each word besides its head: label, UPOS, XPOS, every feature, and the lemma.

Every task is a choice among values seen in training. FEATS is a choice for each feature, of which the first value means
that the word has none. A lemma is an edit of the word: capitals or not, what to cut off and put in its place at the
beginning and at the end (as in UDPipe 2, Straka 2018); edits seen once are left out, and their words taught nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Ints
from headway.saved_values import column_value, column_values
from headway.treebank import Sentence

NONE = "_"
UNTAUGHT = -1  # what words are not trained on
_REMEMBERED = 10_000  # edits of lemmas
FEATURE = "feats:"  # before a feature's name, in the names of tasks


@dataclass(frozen=True, repr=False)
class Tasks:
    """The values of each task by name: `labels`, `upos`, `xpos`, `feats:Case` and its like, `lemmas`."""

    values: Mapping[str, tuple[str, ...]]

    @classmethod
    def learn(cls, sentences: Sequence[Sentence], *, tags: bool, labels: bool) -> Tasks:
        """The tasks that a treebank has something to learn for; `tags` asks for all but labels."""
        counts: dict[str, Counter[str]] = {}
        for sentence in sentences:
            for name, column in _columns(sentence):
                counts.setdefault(name, Counter()).update(value for value in column if value is not None)
        values = {}
        for name in sorted(counts, key=lambda name: (name != "labels", name)):
            wanted = labels if name == "labels" else tags
            kept = tuple(v for v, n in counts[name].most_common() if n > (name == "lemmas"))
            if name.startswith(FEATURE):
                kept = (NONE, *kept)
            if wanted and len(kept) > (name != "labels"):
                values[name] = kept
        return cls(values)

    @cached_property
    def _numbers(self) -> Mapping[str, Mapping[str, int]]:
        return {name: {value: i for i, value in enumerate(values)} for name, values in self.values.items()}

    @property
    def sizes(self) -> dict[str, int]:
        """How many values each task has."""
        return {name: len(values) for name, values in self.values.items()}

    @property
    def labels(self) -> tuple[str, ...]:
        return self.values.get("labels", ())

    @property
    def tags(self) -> tuple[str, ...]:
        """The tasks but labels."""
        return tuple(name for name in self.values if name != "labels")

    @property
    def description(self) -> str:
        """What is found besides the tree, in a few words."""
        sizes = {name: size for name, size in self.sizes.items() if not name.startswith(FEATURE)}
        features = len(self.values) - len(sizes)
        named = [f"{size} {'edits for lemmas' if name == 'lemmas' else name}" for name, size in sizes.items()]
        return ", ".join([*named, *([f"{features} features"] if features else [])]) or "nothing"

    @property
    def width(self) -> int:
        """How many values they have in all."""
        return sum(len(self.values[name]) for name in self.tags)

    @property
    def names_of_columns(self) -> frozenset[str]:
        """The columns of a treebank that they make."""
        return frozenset("feats" if name.startswith(FEATURE) else name for name in self.tags)

    def targets(self, sentences: Sequence[Sentence]) -> dict[str, NDArray[np.int64]]:
        """The number of every word's value for each task, (S, N+1); UNTAUGHT for padding and values not known."""
        nodes = max(map(len, sentences), default=0) + 1
        result = {name: np.full((len(sentences), nodes), UNTAUGHT, np.int64) for name in self.values}
        for row, sentence in enumerate(sentences):
            inside = slice(1, len(sentence) + 1)
            for name in self.values:
                if name.startswith(FEATURE):
                    result[name][row, inside] = 0  # unless it is among the word's own
            for name, column in _columns(sentence):
                if name not in self.values:
                    continue
                number, into = self._numbers[name], result[name][row, inside]
                absent = 0 if name.startswith(FEATURE) else UNTAUGHT
                into[:] = [absent if value is None else number.get(value, UNTAUGHT) for value in column]
        return result

    def columns(self, forms: Sequence[str], chosen: Mapping[str, Ints]) -> dict[str, tuple[str, ...]]:
        """The columns that the numbers of values make for words, of those columns that there are tasks for.

        Every combination of features and every edit of a form is written once.
        """
        columns = {name: tuple(self._named(name, chosen[name])) for name in ("upos", "xpos") if name in chosen}
        features = sorted((name for name in chosen if name.startswith(FEATURE)), key=str.lower)
        if features:
            rows = np.stack([chosen[name] for name in features], axis=1).astype(np.int64)
            keys = rows.view(f"V{rows.itemsize * len(features)}").ravel().tolist()
            places = dict(zip(keys, range(len(keys)), strict=True))
            written = {key: self._features(features, rows[place].tolist()) for key, place in places.items()}
            columns["feats"] = tuple(map(written.__getitem__, keys))
        if "lemmas" in chosen:
            pairs = list(zip(forms, self._named("lemmas", chosen["lemmas"]), strict=True))
            made = {pair: edited(*pair) for pair in set(pairs)}
            columns["lemmas"] = tuple(map(made.__getitem__, pairs))
        return columns

    def _named(self, name: str, numbers: Ints) -> Iterator[str]:
        return map(self.values[name].__getitem__, numbers.tolist())

    def _features(self, tasks: Sequence[str], numbers: Sequence[int]) -> str:
        """The features of a word as one column."""
        pairs = ((name.removeprefix(FEATURE), self.values[name][k]) for name, k in zip(tasks, numbers, strict=True))
        return "|".join(f"{name}={value}" for name, value in pairs if value != NONE) or NONE

    def to_data(self) -> dict[str, Any]:
        return {name: list(values) for name, values in self.values.items()}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Tasks:
        """The tasks that were saved."""
        values = {column_value(name, "a task"): column_values(values, "a value") for name, values in data.items()}
        if not all(values.values()):
            raise ValueError("a task without values")
        for edit in values.get("lemmas", ()):
            _parse(edit)
        return cls(values)


def _columns(sentence: Sentence) -> list[tuple[str, Sequence[str | None]]]:
    """What each task says of every word; None where it says nothing."""
    words = range(len(sentence))
    columns: list[tuple[str, Sequence[str | None]]] = [
        (name, [None if value == NONE else value for value in getattr(sentence, name)]) for name in ("upos", "xpos")
    ]
    if sentence.labels is not None and sentence.heads is not None:
        known = zip(sentence.labels[1:], sentence.heads[1:].tolist(), strict=True)
        columns.append(("labels", [label if head >= 0 else None for label, head in known]))
    features: dict[str, list[str | None]] = {}
    for i, feats in enumerate(sentence.feats):
        for feature in feats.split("|") if feats != NONE else ():
            name, _, value = feature.partition("=")
            if value:
                features.setdefault(name, [None for _ in words])[i] = value
    columns += [(f"{FEATURE}{name}", values) for name, values in features.items()]
    if any(lemma != NONE for lemma in sentence.lemmas):
        pairs = zip(sentence.forms, sentence.lemmas, strict=True)
        columns.append(("lemmas", [edit_of(form, lemma) if lemma != NONE else None for form, lemma in pairs]))
    return columns


def edit_of(form: str, lemma: str) -> str:
    """The edit that makes the lemma of a form: case, what to cut off in front and at the end, how
    much of the text goes in front, and the text.

    >>> edit_of("Cities", "city"), edit_of("Paris", "Paris"), edit_of("gekauft", "kaufen")
    ('l 0 3 0 y', 'k 0 0 0 ', 'k 2 1 0 en')
    """
    keep = lemma != lemma.lower()
    source = form if keep else form.lower()
    case = "k" if keep or source == form else "l"
    start, length, at = _longest_common(source, lemma)
    if length == 0:
        return f"= {lemma}"
    return f"{case} {start} {len(source) - start - length} {at} {lemma[:at]}{lemma[at + length :]}"


def edited(form: str, edit: str) -> str:
    """The lemma that an edit makes of a form; the form itself where it is too short for it.

    >>> edited("Ponies", "l 0 3 0 y"), edited("is", "= be"), edited("a", "k 0 3 0 y")
    ('pony', 'be', 'a')
    """
    parsed = _parse(edit)
    if isinstance(parsed, str):
        return parsed
    case, first, last, before, after = parsed
    source = form.lower() if case == "l" else form
    if first + last > len(source):
        return form
    return before + source[first : len(source) - last] + after or form


@lru_cache(_REMEMBERED)
def _parse(edit: str) -> str | tuple[str, int, int, str, str]:
    if edit.startswith("= ") and len(edit) > 2:
        return edit[2:]
    case, *numbers, ends = edit.split(" ", 4)
    if case not in ("k", "l") or len(numbers) != 3 or not all(number.isdecimal() for number in numbers):
        raise ValueError(f"{edit[:40]!r} is no edit that makes a lemma")
    first, last, before = map(int, numbers)
    return case, first, last, ends[:before], ends[before:]


def _longest_common(a: str, b: str) -> tuple[int, int, int]:
    """Where the longest text that both share begins in `a`, its length, and where it begins in `b`."""
    best = (0, 0, 0)
    row = [0] * (len(b) + 1)
    for i, x in enumerate(a):
        next_row = [0] * (len(b) + 1)
        for j, y in enumerate(b):
            if x == y:
                length = next_row[j + 1] = row[j] + 1
                if length > best[1]:
                    best = (i + 1 - length, length, j + 1 - length)
        row = next_row
    return best
