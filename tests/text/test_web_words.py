"""Addresses, handles, hashtags and emoji: in training text, and as one token each."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headway.text.boundaries import BOUNDARY_SLOTS
from headway.text.segmenter import Segmenter
from headway.text.sentence_ends import SENTENCE_SLOTS
from headway.text.web_words import with_web_words
from headway.treebank import read_treebank
from headway.treebank.raw_text import SENTENCE, TOKEN, raw_text

TINY = Path(__file__).parents[2] / "examples" / "tiny.conllu"
FAMILY, THUMB, HEART = "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd", "\u2764\ufe0f"
BRITAIN, ITALY = "\U0001f1ec\U0001f1e7", "\U0001f1ee\U0001f1f9"
WALES = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"


def always(end: int) -> Segmenter:
    """Ends a token, or a word, wherever that may be."""
    boundaries = np.zeros((BOUNDARY_SLOTS, 3), np.int8)
    boundaries[:, end] = 1
    return Segmenter(boundaries, np.full(SENTENCE_SLOTS, -1, np.int8), {}, 16, False)


@pytest.mark.parametrize("end", [1, 2])
def test_nothing_cuts_through_a_character(end: int) -> None:
    text = f"a{FAMILY}{THUMB}{HEART}{BRITAIN}{ITALY}{BRITAIN}e\u0301 {WALES}x"
    expected = ["a", FAMILY, THUMB, HEART, BRITAIN, ITALY, BRITAIN, "e\u0301", WALES, "x"]
    assert list(always(end).sentence(text).forms) == expected


def test_training_text_says_where_their_tokens_end() -> None:
    source = raw_text(list(read_treebank(TINY)) * 4)  # 160 sentences, in eleven pieces
    found = [with_web_words(source, seed) for seed in range(20)]
    assert with_web_words(source, 3).text == found[3].text
    tokens: list[str] = []
    for each in found:
        assert len(each.text) == len(each.ends)
        assert 20 <= (each.ends == SENTENCE).sum() <= 30
        cuts = np.flatnonzero(each.ends >= TOKEN) + 1
        tokens += [each.text[a:b].strip() for a, b in zip([0, *cuts[:-1]], cuts, strict=True)]
    for pattern in (r"https?://\S+\?\S+=\S+", r"@\w+", r"#\w+", r"[\w.]+@[\w.]+", re.escape(FAMILY), ":-\\)", "<3"):
        assert any(re.fullmatch(pattern, token) for token in tokens), pattern
    assert all(len(token.split()) == 1 for token in tokens)


def test_they_are_learnt() -> None:
    segmenter = Segmenter.learn(list(read_treebank(TINY)) * 20)
    whole = [
        "https://example.org/find?q=dog&page=2#top",
        "@old_woman",
        "#SmallBird",
        "jane.dog@example.com",
        "<3",
        "\U0001f60d",
    ]
    for word in whole:
        text = f"The dog sleeps {word} here."
        forms = replace(segmenter, most_words=1).sentence(text).forms
        assert forms == ("The", "dog", "sleeps", word, "here", "."), forms
    assert segmenter.sentence(f"The dog sleeps{THUMB}{HEART}").forms == ("The", "dog", "sleeps", THUMB, HEART)
