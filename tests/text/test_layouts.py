"""Treebank text in lines: nothing is lost, and what ends after each character stays known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headway.text.layouts import concatenated, laid_out, run_on
from headway.treebank import Sentence, read_treebank
from headway.treebank.raw_text import SENTENCE, TOKEN, RawText, raw_text

TINY = Path(__file__).parents[2] / "examples" / "tiny.conllu"


@pytest.fixture(scope="module")
def tiny() -> RawText:
    return raw_text(list(read_treebank(TINY)))


def marked(source: RawText) -> str:
    """The text without white space, a bar after every sentence."""
    pairs = zip(source.text, source.ends.tolist(), strict=True)
    return "".join(c + "|" * (end == SENTENCE) for c, end in pairs if not c.isspace())


def without_marks(sentence: str) -> str:
    """A sentence without the mark of a list before it."""
    return sentence.lstrip("-*\u2022\u2013\u00b7>").lstrip("0123456789").lstrip(".)").lower()


def test_every_layout_has_the_same_sentences(tiny: RawText) -> None:
    gold = [without_marks(sentence) for sentence in marked(tiny).split("|")]
    assert len({laid_out(tiny, seed).text for seed in range(30)}) > 25
    assert laid_out(tiny, 7).text == laid_out(tiny, 7).text
    for seed in range(30):
        found = laid_out(tiny, seed)
        assert len(found.text) == len(found.ends)
        assert [without_marks(sentence) for sentence in marked(found).split("|")] == gold


def test_white_space_ends_nothing_and_every_word_before_it_ends(tiny: RawText) -> None:
    for source in (laid_out(tiny, 3), run_on(tiny), concatenated([tiny, laid_out(tiny, 1)])):
        space = np.array([c.isspace() for c in source.text])
        assert not source.ends[space].any()
        assert (source.ends[:-1][space[1:] & ~space[:-1]] >= TOKEN).all()


def test_the_layouts_differ_in_what_line_ends_mean() -> None:
    sentences = [
        Sentence.from_words(["Word"] * 30 + ["."]) if k % 2 else Sentence.from_words(["Heading", str(k)])
        for k in range(200)
    ]
    source = raw_text(sentences, guess_spaces=True)
    found = laid_out(source, 0)
    ends = [i for i, c in enumerate(found.text) if c == "\n" and found.text[i - 1] != "\n"]
    share = np.mean(found.ends[[i - 1 for i in ends]] == SENTENCE)
    assert 0.2 < share < 0.8
    assert {mark for mark in "-*1" if f"\n{mark}" in laid_out(source, 1).text + laid_out(source, 2).text}


def test_without_paragraphs_there_is_one_line(tiny: RawText) -> None:
    assert "\n" not in run_on(tiny).text
    assert marked(run_on(tiny)) == marked(tiny)
    assert marked(concatenated([tiny, tiny])) == marked(tiny) * 2
