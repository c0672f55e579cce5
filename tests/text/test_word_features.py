"""Features of words against a twin that keeps them as text: the same key where, and only where, the values agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import TemplateError
from headway.features.clusters import NO_CLUSTERS, Clusters
from headway.features.hashing import odd_number
from headway.features.numbering import word_columns
from headway.text.word_features import (
    FIELDS,
    OUTSIDE,
    PADDING,
    SILENT,
    UNKNOWN,
    WordCoder,
    compile_templates,
    template_keys,
)
from tests.features.naive import words_shape
from tests.features.strategies import clusters

FORMS = ("Dog", "dog", "dogs", "12.5", "barks", "Barking", "über-Hund", "!", "a")
TAGS = {"dog": "N|V", "dogs": "N", "a": "D", "!": "S"}
Value = str | None  # None is outside the sentence

texts = st.lists(st.lists(st.sampled_from(FORMS), max_size=5), max_size=4)
atoms = st.builds("{}{}".format, st.sampled_from(FIELDS), st.sampled_from(["", "-1", "-2", "+1", "+2"]))
lines = st.one_of(st.just("."), st.lists(atoms, min_size=1, max_size=3).map(" ".join))


def value(form: str, field: str, paths: Clusters) -> str:
    """Of one field, "" where the word has none."""
    lower = form.lower()
    if field in ("form", "lower", "shape"):
        return {"form": form, "lower": lower, "shape": words_shape(form)}[field]
    if field == "tags":
        return TAGS.get(lower, "")
    if field == "bits":
        return paths.paths[form] if form in paths.paths else paths.paths.get(lower, "")
    size = int(field[-1])
    match field[:-1]:
        case "bits":
            return value(form, "bits", paths)[:size]
        case "prefix":
            return form[:size] if size < 4 else lower[:size]
        case "suffix":
            return "".join(reversed("".join(reversed(form))[:size])).lower()
    raise AssertionError(field)


def known_values(seen: Sequence[Sequence[str]], paths: Clusters) -> dict[str, set[str]]:
    """Those that come up twice."""
    counts = {field: Counter(value(form, field, paths) for text in seen for form in text) for field in FIELDS}
    return {field: {v for v, count in some.items() if v and count >= 2} for field, some in counts.items()}


def feature(line: str, text: Sequence[str], i: int, known: dict[str, set[str]], paths: Clusters) -> tuple[Value, ...]:
    """What a template says of word i; a value that is not known is an error of lookup."""
    found: list[Value] = []
    for atom in [] if line == "." else line.split():
        field, _, offset = atom.replace("-", "+-").partition("+")
        at = i + int(offset or 0)
        own = value(text[at], field, paths) if 0 <= at < len(text) else None
        if own is not None and own not in known[field]:
            raise LookupError(own)
        found.append(own)
    return tuple(found)


@given(texts, texts, clusters)
def test_every_code_is_its_words_own(seen: list[list[str]], new: list[list[str]], paths: Clusters) -> None:
    """Two columns of padding, the words, two columns of padding, for each sentence in turn."""
    coder, known = WordCoder.learn(seen, TAGS, paths), known_values(seen, paths)
    assert {field: set(numbers) for field, numbers in coder.fields.items()} == known
    for numbers in coder.fields.values():
        assert list(numbers.values()) == list(range(2, 2 + len(numbers)))
    text = [*new, *seen]
    words = coder.code(text)
    assert words.codes.shape == (len(FIELDS), sum(len(s) + 2 * PADDING for s in text))
    assert words.lengths.tolist() == [len(s) for s in text]
    column = 0
    for sentence, start in zip(text, words.start.tolist(), strict=True):
        assert start == column + PADDING
        for i in range(-PADDING, len(sentence) + PADDING):
            expected = [OUTSIDE] * len(FIELDS)
            if 0 <= i < len(sentence):
                own = [value(sentence[i], field, paths) for field in FIELDS]
                expected = [coder.fields[f][v] if v in known[f] else UNKNOWN for f, v in zip(FIELDS, own, strict=True)]
            assert words.codes[:, start + i].tolist() == expected
        column += len(sentence) + 2 * PADDING
    columns = [start + i for s, start in zip(text, words.start.tolist(), strict=True) for i in range(len(s))]
    assert word_columns(words.start, words.lengths).tolist() == columns


@settings(max_examples=60)
@given(texts, texts, st.lists(lines, min_size=1, max_size=4, unique=True), clusters)
def test_keys_agree_where_values_do(
    seen: list[list[str]], new: list[list[str]], table: list[str], paths: Clusters
) -> None:
    """Over all words of all sentences; templates never share a key."""
    coder, known = WordCoder.learn(seen, TAGS, paths), known_values(seen, paths)
    text, templates = [*seen, *new], compile_templates(table)
    words = coder.code(text)
    by_key: dict[int, tuple[str, tuple[Value, ...]]] = {}
    by_feature: dict[tuple[str, tuple[Value, ...]], int] = {}
    for sentence, start in zip(text, words.start.tolist(), strict=True):
        keys = np.full((len(table), len(sentence)), 77, np.uint64)
        template_keys(templates, words.codes, start, len(sentence), keys)
        for line, row in zip(table, keys.tolist(), strict=True):
            for i, key in enumerate(row):
                try:
                    own = (line, feature(line, sentence, i, known, paths))
                except LookupError:
                    assert key == int(SILENT)
                    continue
                assert key != int(SILENT)
                assert by_key.setdefault(key, own) == own
                assert by_feature.setdefault(own, key) == key


def test_a_key_by_hand() -> None:
    """The number of the line, and of each atom in it times its code; the codes of "a" and of nothing are 2 and 1."""
    coder = WordCoder.learn([["a", "a"]], {})
    words = coder.code([["a", "b"]])
    keys = np.zeros((3, 2), np.uint64)
    template_keys(compile_templates([".", "lower", "form-1 lower"]), words.codes, int(words.start[0]), 2, keys)

    def number(text: str) -> int:
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") | 1

    assert number("lower 0") == odd_number("lower 0")
    assert keys[0].tolist() == [number(".")] * 2
    assert keys[1].tolist() == [(number("lower") + 2 * number("lower 0")) % 2**64, 0]
    pair = "form-1 lower"
    assert keys[2].tolist() == [(number(pair) + number(f"{pair} 0") + 2 * number(f"{pair} 1")) % 2**64, 0]


def test_what_is_seen_once_is_as_what_is_never_seen() -> None:
    coder = WordCoder.learn([["once", "twice"], ["twice"]], {})
    assert coder.code([["once", "twice", "never"]]).codes[FIELDS.index("form"), 2:5].tolist() == [UNKNOWN, 2, UNKNOWN]
    assert WordCoder.learn([], {}).code([["a"]]).codes[:, 2].tolist() == [UNKNOWN] * len(FIELDS)


def test_no_sentence_and_empty_ones() -> None:
    coder = WordCoder.learn([["a", "a"]], {})
    assert coder.code([]).codes.shape == (len(FIELDS), 0)
    words = coder.code([[], ["a"], []])
    assert words.start.tolist() == [2, 6, 11]
    assert words.codes[0].tolist() == [1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1]


def test_a_saved_coder_codes_alike() -> None:
    paths = Clusters({"dog": "0101"})
    coder = WordCoder.learn([["dog", "Dog", "a", "a"]], TAGS, paths)
    again = WordCoder.from_values({field: list(some) for field, some in coder.fields.items()}, TAGS, paths)
    assert again == coder
    with pytest.raises(KeyError, match="suffix3"):
        WordCoder.from_values({field: [] for field in FIELDS if field != "suffix3"}, {}, NO_CLUSTERS)


@pytest.mark.parametrize(
    "line", ["colour", "form+3", "form-0", "form lower shape tags", "Form", "form+", "", " ", "form,lower", "bits6"]
)
def test_templates_that_are_none(line: str) -> None:
    if not line.strip():  # no atom, but not written as such: nothing to tell it from "."
        assert compile_templates([line]).multipliers.tolist() == [[0, 0, 0]]
        return
    with pytest.raises(TemplateError) as caught:
        compile_templates(["form", line])
    assert str(caught.value).startswith(line)
