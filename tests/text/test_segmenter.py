"""The segmenter on toy treebanks, on odd text, and saved."""

from __future__ import annotations

import io
import re
import textwrap
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.archive import Archive, load_archive, save_archive
from headway.errors import ArgumentError, TrainingError
from headway.text.boundaries import BOUNDARY_SLOTS, FEWEST_SLOTS
from headway.text.segmenter import LONGEST, Segmenter
from headway.text.sentence_ends import SENTENCE_SLOTS, sentence_ends_of
from headway.treebank import Sentence, read_treebank
from headway.treebank.annotations import NO_JOINT, Doubt, offsets_of
from headway.treebank.raw_text import Newlines, ends_of, pieces_of, raw_text, split_paragraphs, tokens_of
from tests.models import toy_treebank

from .naive_text import texts

TINY = Path(__file__).parents[2] / "examples" / "tiny.conllu"


@pytest.fixture(scope="module")
def tiny() -> Segmenter:
    return Segmenter.learn(list(read_treebank(TINY)))


@pytest.fixture(scope="module")
def random_weights() -> Segmenter:
    """Cuts anywhere, so that nothing depends on sensible decisions."""
    rng = np.random.default_rng(0)
    boundaries = rng.integers(-127, 128, (BOUNDARY_SLOTS, 3)).astype(np.int8)
    return Segmenter(boundaries, rng.integers(-127, 128, SENTENCE_SLOTS).astype(np.int8), {}, 3, False)


# Learning.


def spans_and_forms(sentences: list[Sentence]) -> list[tuple[tuple[str, ...], list[str]]]:
    return [(sentence.forms, [token.form for token in tokens_of(sentence)]) for sentence in sentences]


def test_a_small_treebank_is_learnt_perfectly(tiny: Segmenter) -> None:
    sentences = list(read_treebank(TINY))
    text = raw_text(sentences).text
    assert spans_and_forms(tiny.sentences(text)) == spans_and_forms(sentences)


def test_a_treebank_without_spaces_is_learnt_perfectly() -> None:
    train, new = toy_treebank.sentences(200, 0, two_roots=True), toy_treebank.sentences(50, 1, two_roots=True)
    segmenter = Segmenter.learn(train)
    for sentences in (train, new):
        text = raw_text(sentences, guess_spaces=True).text
        assert " ." not in text
        assert spans_and_forms(segmenter.sentences(text)) == spans_and_forms(sentences)


def test_learning_depends_on_nothing_but_the_seed() -> None:
    sentences = list(read_treebank(TINY))
    one, same, other = (Segmenter.learn(sentences, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.boundaries, same.boundaries)
    assert np.array_equal(one.sentence_ends, same.sentence_ends)
    assert not np.array_equal(one.sentence_ends, other.sentence_ends)


@pytest.mark.parametrize("sentences", [[], [Sentence.from_words([])]])
def test_nothing_to_learn_from(sentences: list[Sentence]) -> None:
    assert not Segmenter.can_learn(sentences)
    with pytest.raises(TrainingError, match="no words"):
        Segmenter.learn(sentences)


def test_one_word_is_enough_to_learn_from() -> None:
    assert Segmenter.can_learn([Sentence.from_words([]), Sentence.from_words(["Go"])])
    assert Segmenter.learn([Sentence.from_words(["Go"])]).sentence("Go").forms == ("Go",)


def test_at_least_one_pass() -> None:
    with pytest.raises(TrainingError, match="passes is 0"):
        Segmenter.learn([Sentence.from_words(["Go"])], passes=0)


def treebank(*sentences: str) -> list[Sentence]:
    """A line a sentence, its tokens between spaces: FORM, or FORM=WORD+WORD, with ~ where no space follows."""
    lines = []
    for sentence in sentences:
        number = 1
        for token in sentence.split():
            form, _, words = token.rstrip("~").partition("=")
            misc = "SpaceAfter=No" if token.endswith("~") else "_"
            parts = words.split("+") if words else [form]
            if words:
                lines.append(f"{number}-{number + len(parts) - 1}\t{form}" + "\t_" * 7 + f"\t{misc}")
            for part in parts:
                lines.append(f"{number}\t{part}" + "\t_" * 7 + f"\t{misc if not words else '_'}")
                number += 1
        lines.append("")
    return list(read_treebank(io.StringIO("\n".join(lines) + "\n")))


PORTUGUESE = treebank(
    "o cão do=de+o rei trata-se=trata+se bem~ .",
    "No=Em+o dia do=de+o rei vê-se=vê+se tudo~ .",
    "DO=DE+O rei nos=em+os viu~ .",
    "ele nos viu~ .",
)


def test_multiword_tokens_of_other_words_come_from_a_table() -> None:
    segmenter = Segmenter.learn(PORTUGUESE * 5)
    assert dict(segmenter.table) == {"do": ("de", "o"), "no": ("em", "o")}  # "nos" is as often something else
    assert segmenter.silent_hyphen
    (sentence,) = segmenter.sentences("No dia do rei trata-se bem DO NO.", offset=10)
    assert sentence.forms == ("Em", "o", "dia", "de", "o", "rei", "trata", "se", "bem", "DE", "O", "EM", "O", ".")
    lines = sentence.to_conllu().splitlines()
    assert lines[:4] == [
        "# text = No dia do rei trata-se bem DO NO.",
        "1-2\tNo" + "\t_" * 7 + "\tTokenRange=10:12",
        "1\tEm" + "\t_" * 7 + "\tTokenRange=10:12",
        "2\to" + "\t_" * 7 + "\tTokenRange=10:12",
    ]
    assert "7-8\ttrata-se" + "\t_" * 7 + "\tTokenRange=24:32" in lines
    assert "8\tse" + "\t_" * 7 + "\tTokenRange=30:32" in lines
    assert "12-13\tNO" + "\t_" * 7 + "\tSpaceAfter=No|TokenRange=40:42" in lines
    assert spans_and_forms([next(read_treebank(io.StringIO(sentence.to_conllu())))]) == spans_and_forms([sentence])


def test_multiword_tokens_of_pieces_are_learnt() -> None:
    train = treebank("I do~ .", "I don't=do+n't go~ .", "He won't=wo+n't go~ .", "We go~ .") * 5
    (sentence,) = Segmenter.learn(train).sentences("I don't go.")
    assert sentence.forms == ("I", "do", "n't", "go", ".")
    written = next(read_treebank(io.StringIO(sentence.to_conllu())))
    assert [line for _, line in written.layout.extra_lines] == ["2-3\tdon't" + "\t_" * 7 + "\tTokenRange=2:7"]
    assert offsets_of(sentence) == ((0, 1), (2, 4), (4, 7), (8, 10), (10, 11))


# Any text.


def check(sentences: list[Sentence], text: str, offset: int = 0) -> None:
    """Nothing that is not white space is lost, every word stands where it says, and files can hold the words."""
    assert "".join(form for s in sentences for form in s.forms) == "".join(text.split())
    for sentence in sentences:
        assert len(sentence) > 0
        places = offsets_of(sentence)
        assert places is not None
        assert tuple(text[start - offset : end - offset] for start, end in places) == sentence.forms
        tokens = list(tokens_of(sentence))
        said = "".join(token.form + " " * token.space_after for token in tokens).rstrip(" ")
        assert sentence.layout.comments == (f"# text = {said}",)
        assert all(len(form.split()) == 1 and form.split()[0] == form for form in sentence.forms)


@given(texts, st.integers(0, 1000))
def test_no_character_is_lost(tiny: Segmenter, random_weights: Segmenter, text: str, offset: int) -> None:
    for segmenter in (tiny, random_weights):
        check(segmenter.sentences(text, offset), text, offset)
        one = segmenter.sentence(text, offset)
        check([one] if len(one) else [], text, offset)


@given(st.lists(texts, max_size=4))
def test_paragraphs_are_split_as_if_alone(random_weights: Segmenter, parts: list[str]) -> None:
    whole = random_weights.sentences("\n\n".join(parts))
    alone = [sentence for part in parts for sentence in random_weights.sentences(part)]
    assert [sentence.forms for sentence in whole] == [sentence.forms for sentence in alone]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \t\r\n\n \u00a0\u3000",
        "\x00\x01\x1b \x7f",
        "\ud800 a\udfff",
        "👩\u200d👩\u200d👧 😀😀!",
        "see http://example.org/a?b=c&d=(e)#f, or me@example.org...",
        "a\u200bb\u2060c\ufeff",
        "İ ß ǅ ﬁ",
    ],
)
def test_odd_text(tiny: Segmenter, random_weights: Segmenter, text: str) -> None:
    for segmenter in (tiny, random_weights):
        check(segmenter.sentences(text), text)
    assert len(tiny.sentence("")) == 0


def test_a_space_after_the_last_token_is_not_denied(tiny: Segmenter) -> None:
    (sentence,) = tiny.sentences("The dog sleeps.")
    assert [misc.startswith("SpaceAfter=No") for misc in sentence.layout.misc] == [False, False, True, False]


def test_long_sentences_are_cut_where_the_model_likes_it_best(tiny: Segmenter) -> None:
    never = replace(tiny, sentence_ends=np.full_like(tiny.sentence_ends, -1))
    lengths = [len(sentence) for sentence in never.sentences("word " * 2500)]
    assert sum(lengths) == 2500
    assert max(lengths) <= LONGEST
    assert min(lengths[:-1]) >= LONGEST // 2
    assert len(never.sentence("word " * 2500)) == 2500
    scores = np.full(3000, -10, np.int64)
    scores[[700, 1500]] = -5
    ends = sentence_ends_of(scores, np.ones(3000, np.int64), np.ones(3000, np.int64), LONGEST)
    assert np.flatnonzero(ends).tolist()[:2] == [700, 1500]
    assert np.diff(np.flatnonzero(ends)).max() <= LONGEST


def test_tokens_do_not_have_more_words_than_any_in_training(random_weights: Segmenter) -> None:
    always = np.zeros_like(random_weights.boundaries)
    always[:, 1] = 1
    segmenter = replace(random_weights, boundaries=always)
    assert segmenter.sentence("abc abcd").forms == ("a", "b", "c", "abcd")


def test_a_long_text_is_split_as_its_paragraphs_are(tiny: Segmenter) -> None:
    paragraph = "The dog sleeps. " * 500
    text = (paragraph + "\n\n") * 20
    found = tiny.sentences(text, offset=5)
    check(found, text, 5)
    assert [s.forms for s in found] == [s.forms for s in tiny.sentences(paragraph)] * 20


# Drafts.


@given(texts, st.integers(0, 100), st.integers(-200, 0), st.sampled_from(["auto", "keep", "ignore"]))
def test_drafts_are_sentences_joined_where_the_splitter_is_not_sure(
    tiny: Segmenter, random_weights: Segmenter, text: str, high: int, low: int, newlines: Newlines
) -> None:
    for segmenter in (tiny, random_weights):
        drafts = segmenter.drafts(text, Doubt(low, high), 7, newlines=newlines)
        check(drafts, text, 7)
        cut = [piece for draft in drafts for piece in pieces_of(draft, ends_of(draft))]
        assert [s.to_conllu() for s in cut] == [s.to_conllu() for s in segmenter.sentences(text, 7, newlines=newlines)]
        always = segmenter.drafts(text, Doubt(-10_000, high), 7, newlines=newlines)
        for draft, same in zip(drafts, always, strict=True):
            joints, known = draft.layout.joints, same.layout.joints
            assert joints == (known if known and max(known.scores[:-1]) > low else None)
            if known is None:
                assert len(list(tokens_of(draft))) == 1
            if joints is None:
                continue
            assert len(joints.scores) == len(joints.gaps) == len(draft)
            assert max(joints.scores[:-1]) <= high
            ends = [i + 1 for i, gap in enumerate(joints.gaps) if gap >= 0]
            assert ends == list(accumulate(len(token.words) for token in tokens_of(draft)))
            assert [gap < 0 for gap in joints.gaps] == [score == NO_JOINT for score in joints.scores]


def test_within_a_token_there_is_no_joint() -> None:
    segmenter = Segmenter.learn(PORTUGUESE * 5)
    (draft,) = segmenter.drafts("No dia do rei", Doubt(-10_000, 10_000))
    assert draft.forms == ("Em", "o", "dia", "de", "o", "rei")
    joints = draft.layout.joints
    assert joints is not None
    assert [score == NO_JOINT for score in joints.scores] == [True, False, False, True, False, False]
    assert segmenter.sentence("No dia do rei").layout.joints is None


# Line ends.


def forms(sentences: list[Sentence]) -> list[tuple[str, ...]]:
    return [sentence.forms for sentence in sentences]


def with_line_ends(text: str, ends: str) -> str:
    return ends.join(text.split("\n"))


words_and_line_ends = st.text(st.sampled_from("aA1.,-:* \n"), max_size=60)


@given(words_and_line_ends)
def test_line_ends_that_are_kept_end_sentences(random_weights: Segmenter, text: str) -> None:
    found = random_weights.sentences(text, newlines="keep")
    check(found, text)
    assert forms(found) == [s for line in text.split("\n") for s in forms(random_weights.sentences(line))]


@given(words_and_line_ends)
def test_line_ends_that_are_ignored_are_spaces(random_weights: Segmenter, text: str) -> None:
    found = random_weights.sentences(text, newlines="ignore")
    check(found, text)
    paragraphs = re.split(r"\n[ \n]*\n", text)
    assert forms(found) == [s for p in paragraphs for s in forms(random_weights.sentences(p.replace("\n", " ")))]


@given(words_and_line_ends, st.sampled_from(["auto", "keep", "ignore"]))
def test_windows_line_ends_change_nothing(random_weights: Segmenter, text: str, newlines: Newlines) -> None:
    reading = replace(random_weights, reads_lines=True)
    for ends in ("\r\n", "\r"):
        laid = with_line_ends(text, ends)
        found = reading.sentences(laid, newlines=newlines)
        check(found, laid)
        assert forms(found) == forms(reading.sentences(text, newlines=newlines))


@given(words_and_line_ends, st.integers(1, 9), st.sampled_from(["auto", "keep", "ignore"]))
def test_a_stream_is_split_as_the_whole_text_is(
    random_weights: Segmenter, text: str, size: int, newlines: Newlines
) -> None:
    reading = replace(random_weights, reads_lines=True)
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    found = [s for offset, p in split_paragraphs(pieces) for s in reading.sentences(p, offset, newlines=newlines)]
    check(found, text)
    assert forms(found) == forms(reading.sentences(text, newlines=newlines))


def test_a_segmenter_that_never_read_lines_takes_them_for_spaces(random_weights: Segmenter) -> None:
    text = "one two\nthree\nfour"
    assert forms(random_weights.sentences(text)) == forms(random_weights.sentences(text, newlines="ignore"))
    with pytest.raises(ArgumentError, match="newlines is 'always'; expected one of auto, keep, ignore"):
        random_weights.sentences(text, newlines="always")  # type: ignore[arg-type]


def test_lines_are_learnt() -> None:
    """Headings on lines of their own, wrapped sentences: no mark says which line end is which, only room does."""
    rng = np.random.default_rng(0)
    words = ["wool", "tin", "salt", "corn", "amber", "silk", "marble"]

    def drawn(k: int) -> list[str]:
        return rng.choice(words, k).tolist()

    train = [Sentence.from_words([*drawn(2)] if rng.random() < 0.4 else [*drawn(30), "."]) for _ in range(600)]
    segmenter = Segmenter.learn(train)
    heading, prose = " ".join(drawn(2)), " ".join(drawn(40)) + "."
    wrapped = textwrap.fill(prose, 70)
    assert forms(segmenter.sentences(f"{heading}\n{wrapped}")) == forms(segmenter.sentences(f"{heading}\n\n{prose}"))
    assert len(segmenter.sentences(wrapped)) == 1
    assert len(segmenter.sentences(wrapped, newlines="keep")) > wrapped.count("\n")


# Saving.


def test_saved_and_read_back(tiny: Segmenter, tmp_path: Path) -> None:
    segmenter = Segmenter.learn(PORTUGUESE * 5)
    data, arrays = segmenter.to_data()
    save_archive(Archive("segmenter", data, arrays), tmp_path / "segmenter")
    archive = load_archive(tmp_path / "segmenter", "segmenter")
    again = Segmenter.from_data(archive.data, archive.arrays)
    assert np.array_equal(again.boundaries, segmenter.boundaries)
    assert np.array_equal(again.sentence_ends, segmenter.sentence_ends)
    assert again.table == segmenter.table
    assert (again.most_words, again.silent_hyphen) == (segmenter.most_words, segmenter.silent_hyphen)
    assert again.reads_lines
    del archive.data["reads_lines"]  # older files do not say
    assert not Segmenter.from_data(archive.data, archive.arrays).reads_lines
    assert sum(array.nbytes for array in arrays.values()) < 2_700_000
    text = "No dia do rei trata-se bem."
    assert again.sentence(text).to_conllu() == segmenter.sentence(text).to_conllu()


def test_older_files_with_fewer_slots(random_weights: Segmenter) -> None:
    few = np.random.default_rng(1).integers(-127, 128, (FEWEST_SLOTS, 3)).astype(np.int8)
    older = Segmenter.from_data(*replace(random_weights, boundaries=few).to_data())
    repeated = replace(random_weights, boundaries=np.tile(few, (BOUNDARY_SLOTS // FEWEST_SLOTS, 1)))
    text = "Some words, and others (of more letters); numbers like 12.5, don't they?"
    assert older.sentence(text).forms == repeated.sentence(text).forms


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("table", []),
        ("table", {"do": "de"}),
        ("table", {"do": ["de", 1]}),
        ("table", {"do": ["de", "o\n"]}),
        ("table", {"do": ["de"]}),
        ("table", {"": ["de", "o"]}),
        ("table", {"do": ["a"] * 100}),
        ("most_words", 0),
        ("most_words", True),
        ("most_words", 10**9),
        ("silent_hyphen", 1),
        ("reads_lines", 1),
        ("boundaries", np.zeros(5, np.int32)),
        ("boundaries", np.zeros(3 * BOUNDARY_SLOTS // 4, np.float32)),
        ("sentence_ends", np.zeros((1, SENTENCE_SLOTS // 4), np.int32)),
    ],
)
def test_damaged_data(tiny: Segmenter, name: str, value: Any) -> None:
    data, arrays = tiny.to_data()
    (arrays if name in arrays else data)[name] = value
    with pytest.raises(ValueError, match="segmenter"):
        Segmenter.from_data(data, arrays)


@pytest.mark.parametrize("name", ["table", "most_words", "silent_hyphen", "boundaries", "sentence_ends"])
def test_missing_data(tiny: Segmenter, name: str) -> None:
    data, arrays = tiny.to_data()
    (arrays if name in arrays else data).pop(name)
    with pytest.raises(KeyError):
        Segmenter.from_data(data, arrays)
