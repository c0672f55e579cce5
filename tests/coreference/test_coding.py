"""Documents as numbers: equal where the texts are, and what training did not see often enough."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.coreference.attributes import ATTRIBUTES, KINDS
from headway.coreference.coding import LEAST, ROOT, UNKNOWN, MentionCoder
from headway.errors import TemplateError, TreebankError
from headway.treebank import Sentence

from .naive_pairs import naive_attributes, naive_mentions
from .toy_documents import document, head_match_documents, random_document, sentence

SEEDS = st.integers(0, 2**32 - 1)


def test_values_are_numbered_that_are_seen_often_enough() -> None:
    texts = [random_document(seed) for seed in range(12)]
    coder = MentionCoder.learn(iter(texts))
    counts: dict[str, Counter[str]] = {}
    for text in texts:
        for attributes in naive_attributes(text):
            for name, value in attributes.items():
                counts.setdefault(name, Counter())[value] += 1
    for name, seen in counts.items():
        assert set(coder.values[name]) == {value for value, count in seen.items() if count >= LEAST}
        numbers = sorted(coder.values[name].values())
        assert len(set(numbers)) == len(numbers)
        assert not {ROOT, UNKNOWN} & set(numbers)
    assert any(LEAST - 1 in seen.values() for seen in counts.values())
    assert any(LEAST in seen.values() for seen in counts.values())


@given(SEEDS)
def test_codes_are_the_values(seed: int) -> None:
    coder = MentionCoder.learn([random_document(seed ^ 1), random_document(seed ^ 2), random_document(seed)])
    text = random_document(seed)
    coded, expected = coder.code(text), naive_attributes(text)
    assert (coded.codes[0] == ROOT).all()
    assert len(coded.codes) == len(expected) + 1
    for column, name in enumerate(ATTRIBUTES):
        texts = {number: value for value, number in coder.values[name].items()}
        for row, attributes in zip(coded.codes[1:], expected, strict=True):
            if name in attributes:
                code = int(row[column])
                known = attributes[name] in coder.values[name]
                assert texts[code] == attributes[name] if known else code == UNKNOWN


@given(SEEDS)
def test_numbers_are_equal_where_texts_are(seed: int) -> None:
    text = random_document(seed)
    mentions = naive_mentions(text)
    coded = MentionCoder.learn([text]).code(text)
    texts = {
        "string": [m.text for m in mentions],
        "core": [m.core for m in mentions],
        "lemma": [m.lemma for m in mentions],
        "governor_lemma": [m.governor for m in mentions],
        "number": [m.number for m in mentions],
        "gender": [m.gender for m in mentions],
        "person": [m.person for m in mentions],
        "type": [m.type for m in mentions],
        "speaker": [m.speaker for m in mentions],
        "addressee": [m.addressee for m in mentions],
        "initials": [m.initials for m in mentions],
    }
    seen: dict[int, str] = {}
    for name, values in texts.items():
        column = getattr(coded, name)
        assert column[0] == -1
        for number, value in zip(column[1:].tolist(), values, strict=True):
            assert (number == 0) == (value is None)
            if value is not None:
                assert seen.setdefault(number, value) == value
    assert len(set(seen.values())) == len(seen)
    starts = coded.content_start.tolist()
    contents = [coded.content[start:end].tolist() for start, end in pairwise(starts[1:])]
    for words, mention, lemma in zip(contents, mentions, coded.lemma[1:].tolist(), strict=True):
        assert words == sorted(set(words))
        assert (lemma in words) == (mention.lemma in mention.content)
        for others, other in zip(contents, mentions, strict=True):
            assert len(set(words) & set(others)) == len(mention.content & other.content)
    assert coded.content_start[:2].tolist() == [0, 0]
    assert [KINDS[kind] for kind in coded.kind[1:]] == [m.kind for m in mentions]


@given(SEEDS)
def test_words_are_counted_through_the_document(seed: int) -> None:
    text = random_document(seed)
    coded = MentionCoder.learn([text]).code(text)
    words = [(s, w) for s, sentence in enumerate(text.sentences) for w in range(1, len(sentence) + 1)]
    for m, mention in enumerate(naive_mentions(text), start=1):
        assert coded.sentence[m] == mention.sentence
        assert words[coded.first[m]] == (mention.sentence, mention.words[0])
        assert words[coded.last[m]] == (mention.sentence, mention.words[-1])
        assert words[coded.head[m]] == (mention.sentence, mention.head)
    for place, (s, w) in enumerate(words):
        heads, labels = text.sentences[s].heads, text.sentences[s].labels
        assert heads is not None
        assert labels is not None
        above = (s, int(heads[w]))
        assert coded.governor[place] == (words.index(above) if above[1] else -1)
        assert coded.label[place] == crc32(str(labels[w]).encode())


def test_values_as_they_are_saved() -> None:
    coder = MentionCoder.learn(head_match_documents(0, 3))
    assert MentionCoder.from_values({name: list(values) for name, values in coder.values.items()}) == coder


@pytest.mark.parametrize("change", ["one missing", "one more"])
def test_values_of_other_attributes(change: str) -> None:
    values: dict[str, list[str]] = {name: [] for name in ATTRIBUTES}
    if change == "one missing":
        del values["kind"]
    else:
        values["colour"] = []
    with pytest.raises(TemplateError, match="a coder needs values for the attributes kind"):
        MentionCoder.from_values(values)


def test_nothing_to_code() -> None:
    coder = MentionCoder.learn([])
    for text in (document([], []), document([sentence("a NOUN 0 root")], [])):
        coded = coder.code(text)
        assert coded.codes.shape == (1, len(ATTRIBUTES))
        assert len(coded.content) == 0
        np.testing.assert_array_equal(coded.content_start, [0, 0])
        assert len(coded.governor) == len(coded.label) == sum(map(len, text.sentences))


def test_a_sentence_without_a_tree() -> None:
    bare = document([sentence("a NOUN 0 root"), Sentence.from_words(["b"])], [(0, (1,))])
    with pytest.raises(TreebankError, match="has no heads"):
        MentionCoder.learn([bare])
    with pytest.raises(TreebankError, match="has no heads"):
        MentionCoder.learn([]).code(bare)
