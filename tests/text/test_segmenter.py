"""The segmenter beside naive features, on toy treebanks, on odd text, and saved."""

from __future__ import annotations

import io
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.archive import Archive, load_archive, save_archive
from headway.errors import TrainingError
from headway.text import characters
from headway.text.boundaries import BOUNDARY_SLOTS, boundary_features
from headway.text.characters import (
    BREAK,
    DIGIT,
    LETTER,
    LOWER,
    MOST_FEATURES,
    PAD,
    SPACE,
    UPPER,
    characters_of,
    class_of,
    coded,
)
from headway.text.segmenter import LONGEST, Segmenter
from headway.text.sentence_ends import SENTENCE_SLOTS, sentence_ends_of, sentence_features, tokens_in
from headway.treebank import Sentence, read_treebank
from headway.treebank.annotations import offsets_of
from headway.treebank.raw_text import raw_text, tokens_of
from tests.models import toy_treebank

TINY = Path(__file__).parents[2] / "examples" / "tiny.conllu"

# Everything that may be met, and often what the features look at.
texts = st.text(st.one_of(st.sampled_from("aAbB1.,'\"-()@/: \n\u00a0\u2029\u200d"), st.characters()), max_size=60)


@pytest.fixture(scope="module")
def tiny() -> Segmenter:
    return Segmenter.learn(list(read_treebank(TINY)))


@pytest.fixture(scope="module")
def random_weights() -> Segmenter:
    """Cuts anywhere, so that nothing depends on sensible decisions."""
    rng = np.random.default_rng(0)
    boundaries = rng.integers(-127, 128, (BOUNDARY_SLOTS, 3)).astype(np.int8)
    return Segmenter(boundaries, rng.integers(-127, 128, SENTENCE_SLOTS).astype(np.int8), {}, 3, False)


# Characters.


@given(texts)
def test_every_character_has_its_class_and_its_lower_case(text: str) -> None:
    codes, entries = coded(text)
    assert codes.tolist() == list(map(ord, text))
    assert (entries & 255).tolist() == list(map(class_of, text))
    lower = [c.lower() if len(c.lower()) == 1 else c for c in text]
    assert (entries >> 8).tolist() == list(map(ord, lower))


@pytest.mark.parametrize("text", ["", "\U0010ffff", "\ud800a", "日本語。 Ελληνικά 😀"])
def test_a_text_of_any_pages_of_unicode(text: str) -> None:
    codes, entries = coded(text)
    assert codes.tolist() == list(map(ord, text))
    assert (entries & 255).tolist() == list(map(class_of, text))


def test_the_pages_of_unicode_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        characters._page(0)[0] = 1


# The naive twin: features written down from the characters, without prefix sums.

MASK = (1 << 64) - 1


def signed(number: int) -> int:
    number &= MASK
    return number - (1 << 64) if number >> 63 else number


def hashed(values: list[int]) -> int:
    total = 0
    for value in values[: characters._REACH]:
        total = total * characters._BASE + value
    return signed(total)


def both(one: int, other: int) -> int:
    return signed((one ^ (one >> 29)) * characters._MIX + other)


def slot(template: int, value: int, size: int) -> int:
    mixed = signed((value ^ (value >> 32)) * characters._MIX + template * characters._STEP)
    return (signed((mixed ^ (mixed >> 29)) * characters._STEP) >> 40) % size


class NaiveText:
    """One paragraph, its white space squeezed; outside it there are breaks without end."""

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())

    def kind(self, i: int) -> int:
        if not 0 <= i < len(self.text):
            return BREAK
        return SPACE if self.text[i] == " " else class_of(self.text[i])

    def is_space(self, i: int) -> bool:
        return self.kind(i) in (SPACE, BREAK)

    def raw(self, start: int, end: int) -> int:
        return hashed([self.kind(i) if self.is_space(i) else ord(self.text[i]) for i in range(start, end)])

    def low(self, start: int, end: int) -> int:
        return hashed([self.kind(i) if self.is_space(i) else self._lower(i) for i in range(start, end)])

    def shape(self, start: int, end: int) -> int:
        return hashed([self.kind(i) for i in range(start, end)])

    def end_of_stretch(self, i: int) -> int:
        while not self.is_space(i):
            i += 1
        return i

    def _lower(self, i: int) -> int:
        lower = self.text[i].lower()
        return ord(lower if len(lower) == 1 else self.text[i])

    def boundary_features(self, i: int, start: int) -> list[int]:
        e, kind, raw, low, shape = i + 1, self.kind, self.raw, self.low, self.shape
        head, tail = i, self.end_of_stretch(i)
        while not self.is_space(head - 1):
            head -= 1
        stretch = self.text[head:tail]
        letters = [c for c in stretch if class_of(c) in (UPPER, LOWER, LETTER)]
        digits = [c for c in stretch if class_of(c) == DIGIT]
        web = ("@" in stretch) + 2 * ("//" in stretch)
        traits = web + 4 * min(stretch.count("."), 3) + 16 * bool(digits) + 32 * bool(letters)
        traits += 64 * min(len(stretch), 3)
        pair, rest = shape(i, i + 2), shape(e, tail)
        ending = both(rest, kind(tail))
        goes_on = both(ending, kind(tail + 1))
        next_stretch = low(tail + 1, self.end_of_stretch(tail + 1))
        values = [0, *(raw(e - k, e + k) for k in (1, 2, 3)), *(shape(e - k, e + k) for k in (1, 2, 3, 4, 5))]
        values += [shape(e - a, e + b) for a, b in ((6, 2), (2, 6), (9, 1), (1, 9))]
        values += [both(low(head, tail), e - head), both(shape(head, tail), e - head), low(head, e), low(e, tail)]
        values += [both(shape(head, e), kind(e)), both(rest, kind(i)), both(low(start, e), kind(e))]
        values += [both(shape(start, e), kind(e)), both(low(start, e), low(e, tail)), goes_on]
        values += [both(goes_on, other) for other in (low(e - 3, e), low(head, e), traits)]
        values += [both(ending, next_stretch), both(traits, pair), both(traits, shape(i - 1, e + 2))]
        values += [both(web, other) for other in (pair, kind(e), ending)]
        values += [both(pair, min(e - head, 6)), both(pair, min(tail - e, 6))]
        for a, b in itertools.product(range(7), range(7)):
            if (0 < a < 5 and 0 < b < 5) or (a == 0) != (b == 0):
                values.append(low(e - a, e + b))
        return [slot(f, value, BOUNDARY_SLOTS) for f, value in enumerate(values)]

    def spans(self) -> list[tuple[int, int]]:
        """Every character that is not white space as a token."""
        return [(i, i + 1) for i in range(len(self.text)) if not self.is_space(i)]

    def sentence_features(self, spans: list[tuple[int, int]], t: int, start: int, state: int) -> list[int]:
        def seen(k: int, value: Any) -> int:
            return -1 if k < 0 else -2 if k >= len(spans) else value(*spans[k])

        def outline(a: int, b: int) -> int:
            second = self.kind(a + 1) if b > a + 1 else 0
            return ((self.kind(a) * 128 + second) * 128 + self.kind(b - 1)) * 8 + min(b - a, 4)

        def gap(_: int, b: int) -> int:
            return self.kind(b) if self.is_space(b) else 0

        def bucket(n: int) -> int:
            return n if n < 6 else 6 + sum(n >= limit for limit in (8, 12, 18, 30, 50))

        def capitals(ks: range) -> int:
            return len(list(itertools.takewhile(lambda k: self.kind(spans[k][0]) == UPPER, ks)))

        (v2, v1, w0, w1, w2) = (seen(t + k, self.low) for k in (-2, -1, 0, 1, 2))
        (r2, r1, s0, s1, s2, s3) = (seen(t + k, outline) for k in (-2, -1, 0, 1, 2, 3))
        f1, f2 = seen(t + 1, self.raw), seen(t + 2, self.raw)
        after, before = seen(t, gap), seen(t - 1, gap)
        length, left = bucket(t + 1 - start), bucket(len(spans) - t - 1)
        opening = [self.kind(a) for a, _ in spans]
        upper, lower = opening.count(UPPER), opening.count(LOWER)
        stops = sum(self.text[b - 1] in ".!?" and self.is_space(b) for _, b in spans)
        share = upper / (upper + lower) if upper else -1
        mood = 4 * sum((share > 0, share >= 1 / 3, share >= 3 / 4)) + min(stops, 3)
        ahead = capitals(range(t + 1, min(t + 5, len(spans))))
        behind = capitals(range(t, max(start - 1, t - 4), -1))
        first, first_shape = self.low(*spans[start]), outline(*spans[start])
        same, same_shape = int(first == w1), int(first_shape == s1)
        s01, w0s1 = both(both(s0, s1), after), both(both(w0, s1), after)
        run = both(ahead, behind)
        ending = self.low(spans[t][1] - 3, spans[t][1])
        values = [after, both(w0, after), s01, both(w0, w1), w0s1, both(w0, v1), both(w0s1, v1), both(w0s1, r1)]
        values += [both(w0s1, s2), both(both(w0s1, s2), r1), w1, f1, both(f1, s0), both(f1, w0s1), both(f1, f2)]
        values += [both(both(f1, f2), s0), both(w1, w2), both(s01, s2), both(s01, r1), both(both(s01, r1), s2)]
        values += [both(both(both(s01, r1), s2), r2), both(both(s01, s2), s3), both(s01, v1), both(both(v2, v1), w0)]
        values += [both(w0s1, before), both(both(w0s1, before), r1), both(s01, length), both(w0s1, length)]
        values += [both(s01, left), both(w0s1, left), both(s01, mood), both(w0s1, mood), both(both(s01, mood), length)]
        values += [both(w0s1, state), both(s01, state), both(both(first, w0s1), 1), both(first_shape, w0s1)]
        values += [both(first_shape, s01), both(both(first, length), s01), both(ending, s1), both(f1, mood)]
        values += [both(both(f1, after), length), both(both(w0s1, both(r1, v2)), 2), both(w2, s01)]
        values += [both(both(same, s01), 3), both(both(same, length), w1), both(both(same_shape, s01), 4)]
        values += [both(both(same_shape, length), s01), both(both(first_shape, s1), length), both(run, s01)]
        values += [both(ahead, w0s1), both(run, length)]
        return [slot(MOST_FEATURES + f, value, SENTENCE_SLOTS) for f, value in enumerate(values)]


@given(texts.filter(lambda text: len(text.split()) > 0), st.data())
def test_boundary_features_are_those_of_the_naive_twin(text: str, data: st.DataObject) -> None:
    naive, squeezed = NaiveText(" ".join(text.split())), characters_of(" ".join(text.split()))
    i = data.draw(st.sampled_from([i for i in range(len(naive.text)) if not naive.is_space(i)]))
    start = data.draw(st.integers(0, i).filter(lambda start: " " not in naive.text[start:i]))
    slots = np.zeros(MOST_FEATURES, np.int64)
    count = boundary_features(squeezed, i + PAD, start + PAD, slots)
    assert slots[:count].tolist() == naive.boundary_features(i, start)


@given(texts.filter(lambda text: len(text.split()) > 0), st.data())
def test_sentence_features_are_those_of_the_naive_twin(text: str, data: st.DataObject) -> None:
    naive, squeezed = NaiveText(" ".join(text.split())), characters_of(" ".join(text.split()))
    spans = naive.spans()
    # Some tokens of several characters, where no white space is between.
    joined = [(a, data.draw(st.integers(b, min(naive.end_of_stretch(a), b + 2)))) for a, b in spans]
    spans = [span for k, span in enumerate(joined) if k == 0 or all(span[0] >= b for _, b in joined[:k])]
    ends = np.zeros(len(squeezed.kind), np.int64)
    previous = 0
    kept = []
    for a, b in spans:
        if a == previous or naive.is_space(a - 1):
            kept.append((a, b))
        else:  # the characters that were left out go to this token
            kept.append((previous if not naive.is_space(previous) else previous + 1, b))
        previous = b
    for _, b in kept:
        ends[b - 1 + PAD] = 2
    ends[[b + PAD - 1 for b in range(1, len(naive.text) + 1) if naive.is_space(b)]] = 2
    ends[squeezed.place < 0] = 0
    tokens = tokens_in(squeezed, ends)
    spans = [(int(a) - PAD, int(b) - PAD) for a, b in zip(tokens.start, tokens.end, strict=True)]
    assert "".join(naive.text[a:b] for a, b in spans) == naive.text.replace(" ", "")
    t = data.draw(st.integers(0, len(spans) - 1))
    start, state = data.draw(st.integers(0, t)), data.draw(st.integers(0, 6))
    slots = np.zeros(MOST_FEATURES, np.int64)
    count = sentence_features(squeezed, tokens, t, start, state, slots)
    assert slots[:count].tolist() == naive.sentence_features(spans, t, start, state)


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
    assert sum(array.nbytes for array in arrays.values()) < 1_500_000
    text = "No dia do rei trata-se bem."
    assert again.sentence(text).to_conllu() == segmenter.sentence(text).to_conllu()


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
