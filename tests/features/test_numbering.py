"""Words as numbers: each against its own lookup, and every distinct word looked at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from headway.features.numbering import codes_of, numbered, values_seen

FIELDS = ("form", "first", "long")
words = st.lists(st.sampled_from(["a", "ab", "abc", "b", "ba", "c"]), max_size=12)


def values_of(word: str) -> Sequence[str]:
    return word, word[0], word if len(word) > 1 else ""


@given(words, st.integers(1, 3))
def test_values_seen_often_enough_in_the_order_they_are_first_seen(text: list[str], least: int) -> None:
    found = values_seen(text, values_of, FIELDS, least)
    assert list(found) == list(FIELDS)
    for k, field in enumerate(FIELDS):
        counts = Counter(values_of(word)[k] for word in text)
        assert found[field] == [value for value, count in counts.items() if value and count >= least]


@given(words, words)
def test_every_code_is_its_words_own(seen: list[str], new: list[str]) -> None:
    numbers = [numbered(values, 3) for values in values_seen(seen, values_of, FIELDS).values()]
    codes = codes_of(new, values_of, numbers, 2)
    assert codes.shape == (len(FIELDS), len(new))
    for word, column in zip(new, codes.T.tolist(), strict=True):
        assert column == [number.get(value, 2) for number, value in zip(numbers, values_of(word), strict=True)]


def test_every_distinct_word_is_looked_at_once() -> None:
    looked: list[str] = []

    def counted(word: str) -> Sequence[str]:
        looked.append(word)
        return values_of(word)

    text = iter(["a", "b", "a", "ab", "b"])
    assert codes_of(text, counted, [{"a": 3}, {"a": 3, "b": 4}, {"ab": 3}], 2).tolist() == [
        [3, 2, 3, 2, 2], [3, 4, 3, 3, 4], [2, 2, 2, 3, 2],
    ]  # fmt: skip
    assert looked == ["a", "b", "ab"]
    looked.clear()
    assert values_seen(["a", "b", "a"], counted, FIELDS, 2) == {"form": ["a"], "first": ["a"], "long": []}
    assert looked == ["a", "b"]
