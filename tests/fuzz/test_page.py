"""The page of limits shows the code's limits and the committed counts, and these add up."""

from __future__ import annotations

import json

import pytest

from headway import archive
from headway.features import templates
from headway.models import stretches
from headway.text import segmenter
from headway.training import grammar_settings
from headway.treebank import conll_reader, raw_text, streams
from tests.fuzz.page import PAGE, RESULTS, rows, shown

TEXT = PAGE.read_text("utf-8")
COUNTS = json.loads(RESULTS.read_text("utf-8"))
LIMITS = {
    "a sentence of a treebank": (
        f"{conll_reader.LONGEST_SENTENCE:,} lines, {conll_reader.LARGEST_SENTENCE // 1_000_000} MB"
    ),
    "a paragraph of text": f"{raw_text.LONGEST_PARAGRAPH:,} characters",
    "a line with one sentence": f"{raw_text.LONGEST_LINE:,} characters",
    "words of a sentence split from text": f"{segmenter.LONGEST:,}",
    "words of a sentence parsed as a whole": f"{stretches.MOST_WORDS:,}",
    "memory to unpack `.xz`": f"{streams._XZ_MEMORY >> 20} MB",
    "atoms of a template": f"{templates.MOST_ATOMS}",
    "words that an atom looks away": f"{templates.LARGEST_OFFSET}",
    "hidden states of a grammar": f"{grammar_settings.MOST_STATES}",
    "arrays of a model or checkpoint": f"{archive._MOST_MEMBERS}",
    "values in its JSON": f"{archive._MOST_VALUES:,}",
}


@pytest.mark.parametrize("what", LIMITS)
def test_limits_are_those_of_the_code(what):
    assert f"\n| {what} | {LIMITS[what]} | " in TEXT


def test_the_page_shows_the_committed_counts():
    assert shown(TEXT) == rows(COUNTS)


def test_counts_add_up():
    for found in COUNTS.values():
        counted = sum(found["accepted"].values()) + sum(found["refused"].values()) + len(found["findings"])
        assert counted == found["draws"]
