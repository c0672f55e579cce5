"""The syntax of Entity=: hand-written values, and random mentions against marks put together word by word."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.coreference import entity_marks
from headway.coreference.entity_marks import Mark, MarksError, Span, parse_marks, read_spans, write_spans


def spans_of(*values: str) -> set[Span]:
    """The spans of values of words 1, 2, ...; "" where a word has none."""
    return set(read_spans((word, value) for word, value in enumerate(values, start=1) if value))


def test_a_run_of_marks() -> None:
    value = "e4)(7-abstract-new-nnnss-cf6*-2,4-coref(3-abstract-giv:act--)e5[1/2])(e5[2/2]-x"
    assert list(parse_marks(value, 1)) == [
        Mark("e4", opens=False, closes=True),
        Mark("7", opens=True, closes=False, rest="abstract-new-nnnss-cf6*-2,4-coref"),
        Mark("3", opens=True, closes=True, rest="abstract-giv:act--"),
        Mark("e5", opens=False, closes=True, part=1, parts=2),
        Mark("e5", opens=True, closes=False, rest="x", part=2, parts=2),
    ]


def test_values_are_not_interpreted() -> None:
    rest = "person-Jean%2DPaul_%28x%29,é:[1/2]'@!&"
    assert spans_of(f"(1-{rest})") == {Span("1", (1,), rest)}


def test_nesting_in_one_entity_closes_the_last_opened_first() -> None:
    assert spans_of("(1-a", "(1-b", "1)", "1)") == {Span("1", (1, 2, 3, 4), "a"), Span("1", (2, 3), "b")}


def test_different_entities_may_cross() -> None:
    assert spans_of("(1", "(2", "1)", "2)") == {Span("1", (1, 2, 3)), Span("2", (2, 3, 4))}


@pytest.mark.parametrize("value", ["1)(3(2)", "(2)1)(3", "1)(2)(3"])
def test_marks_of_one_word_in_any_order(value: str) -> None:
    assert spans_of("(1", value, "3)") == {Span("1", (1, 2)), Span("2", (2,)), Span("3", (2, 3))}


def test_a_mention_opened_and_closed_on_one_word_with_another_between() -> None:
    assert spans_of("(1-a(2-b)1)") == {Span("1", (1,), "a"), Span("2", (1,), "b")}


def test_parts_are_joined_and_the_first_one_says_the_rest() -> None:
    values = ("(e5[1/3]-person", "e5[1/3])", "", "(e5[2/3])", "", "(e5[3/3]-person", "e5[3/3])")
    assert spans_of(*values) == {Span("e5", (1, 2, 4, 6, 7), "person")}


def test_parts_of_a_nested_mention_of_the_same_entity() -> None:
    values = ("(1[1/2]-a)", "(1[1/2]-b)", "", "(1[2/2]-b)", "(1[2/2]-a)")
    assert spans_of(*values) == {Span("1", (1, 5), "a"), Span("1", (2, 4), "b")}


@pytest.mark.parametrize(
    ("values", "word", "cause"),
    [
        (("", "1)"), 2, "'1)' closes a mention that is not open"),
        (("(1", "2)"), 2, "'2)' closes a mention that is not open"),
        (("(1[1/2]", "1)"), 2, "'1)' closes a mention that is not open"),
        (("(1", "(2-person", "1)"), 2, "'(2' is not closed in its sentence; write '2)' at its last word"),
        (("x", "(2[1/2])"), 1, "'x' is not a mark"),
        (("", "(1)x"), 2, "'x' is not a mark"),
        (("()",), 1, "'()' is not a mark"),
        (("(-person)",), 1, "'(-person)' is not a mark"),
        (("((1)",), 1, "'((1)' is not a mark"),
        (("(1))",), 1, "')' is not a mark"),
        (("(1[0/2])",), 1, "is not a mark"),
        (("(1[1/])",), 1, "is not a mark"),
        (("(1[a])",), 1, "is not a mark"),
        (("(1", "1-person)"), 2, "the closing mark '1-person)' has more than a name"),
        (("(1[3/2])",), 1, "is part 3 of 2"),
        (("(1[1/2])", ""), 1, "part '1[1/2]' is not followed by part 2"),
        (("(1[1/3])", "(1[2/3])"), 2, "part '1[2/3]' is not followed by part 3"),
        (("", "(1[2/2])"), 2, "part '1[2/2]' does not follow part 1"),
        (("(1[1/3])", "(1[3/3])"), 2, "part '1[3/3]' does not follow part 2"),
        (("(1[1/2]", "(1[2/2]", "1[1/2])", "1[2/2])"), 2, "part '1[2/2]' does not follow part 1"),
        (("(" + "x" * 100,), 1, "is not closed"),
    ],
)
def test_what_is_wrong_is_named_with_its_word(values: tuple[str, ...], word: int, cause: str) -> None:
    with pytest.raises(MarksError) as caught:
        spans_of(*values)
    assert caught.value.word == word
    assert cause in str(caught.value)
    assert len(str(caught.value)) < 140


def test_an_empty_value() -> None:
    with pytest.raises(MarksError, match="'' is not a mark"):
        read_spans([(1, "")])


def test_nesting_beyond_all_bounds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entity_marks, "MOST_WORDS", 9)
    assert len(spans_of("(1", "(2", "(3", "3)2)1)")) == 3  # 4 + 3 + 2 words
    with pytest.raises(MarksError, match="over 9 words"):
        spans_of("(1", "(2", "(3", "", "3)2)1)")


@pytest.mark.parametrize(
    ("spans", "values"),
    [
        ([Span("1", (1, 2, 3), "a"), Span("2", (1, 2)), Span("3", (1,))], {1: "(1-a(2(3)", 2: "2)", 3: "1)"}),
        ([Span("1", (1, 2)), Span("2", (2,), "b"), Span("3", (1, 2, 3))], {1: "(3(1", 2: "(2-b)1)", 3: "3)"}),
        ([Span("1", (1, 2)), Span("2", (2, 3)), Span("3", (2,))], {1: "(1", 2: "1)(2(3)", 3: "2)"}),
        ([Span("1", (1, 2)), Span("1", (2, 3))], {1: "(1", 2: "1)(1", 3: "1)"}),
        ([Span("1", (1, 3, 4), "a")], {1: "(1[1/2]-a)", 3: "(1[2/2]-a", 4: "1[2/2])"}),
        ([], {}),
    ],
)
def test_the_order_of_marks_is_that_of_corefud(spans: list[Span], values: dict[int, str]) -> None:
    assert write_spans(spans) == values


def test_crossing_mentions_of_one_entity_are_written_in_parts() -> None:
    spans = [Span("1", (1, 2, 3), "a"), Span("1", (2, 3, 4), "b"), Span("1", (1, 2, 3, 4, 5), "c")]
    values = write_spans(spans)
    assert sorted(read_spans(values.items()), key=str) == sorted(spans, key=str)
    assert any("[" in value for value in values.values())


def test_a_mention_in_the_gap_of_another_of_its_entity() -> None:
    spans = [Span("1", (1, 5), "a"), Span("1", (2, 4), "b"), Span("1", (3,), "c")]
    values = write_spans(spans)
    assert values == {1: "(1[1/2]-a)", 2: "(1[1/2]-b)", 3: "(1-c)", 4: "(1[2/2]-b)", 5: "(1[2/2]-a)"}
    assert set(read_spans(values.items())) == set(spans)


def test_what_no_marks_can_tell_apart_is_refused() -> None:
    with pytest.raises(MarksError, match="mentions of '1' interleave") as caught:
        write_spans([Span("1", (1, 3)), Span("1", (2, 4))])
    assert caught.value.word in (1, 2)


@given(
    st.dictionaries(st.tuples(st.integers(1, 9), st.integers(0, 8)), st.sampled_from(["", "x", "p-1-"]), max_size=12)
)
def test_reading_marks_put_together_word_by_word(ranges: dict[tuple[int, int], str]) -> None:
    """Every mention is of another entity: crossing, nested and adjacent ones."""
    spans = {
        Span(f"e{number}", tuple(range(first, min(first + length, 9) + 1)), rest)
        for number, ((first, length), rest) in enumerate(ranges.items())
    }
    values = []
    for word in range(1, 10):
        value = "".join(f"{span.name})" for span in spans if span.words[-1] == word > span.words[0])
        for span in spans:
            if span.words[0] == word:
                value += (
                    f"({span.name}" + ("-" + span.rest if span.rest else "") + (")" if len(span.words) == 1 else "")
                )
        values.append(value)
    assert spans_of(*values) == spans


@given(st.lists(st.tuples(st.integers(1, 3), st.sets(st.integers(1, 9), min_size=1)), max_size=8))
def test_what_is_written_is_read_or_refused(drawn: list[tuple[int, set[int]]]) -> None:
    """Any words: gaps, crossing, nesting, in few entities."""
    spans = {Span(f"e{entity}", tuple(sorted(words)), f"r{entity}") for entity, words in drawn}
    try:
        values = write_spans(spans)
    except MarksError:
        pairs = [(one, other) for one, other in permutations(spans, 2) if one.name == other.name]
        assert any(one.words[0] <= other.words[0] <= one.words[-1] for one, other in pairs)
        return
    assert list(values) == sorted(values)
    found = read_spans(values.items())
    assert len(found) == len(spans)
    assert set(found) == spans


@given(st.sets(st.tuples(st.integers(1, 12), st.integers(0, 11)), max_size=4))
def test_few_adjacent_words_of_one_entity_can_always_be_written(drawn: set[tuple[int, int]]) -> None:
    """Up to four crossing mentions are told apart by the number of their parts, unless they are too short to be cut."""
    spans = {Span("1", tuple(range(first, first + length + 4))) for first, length in drawn}
    found = read_spans(write_spans(spans).items())
    assert len(found) == len(spans)
    assert set(found) == spans
