"""Characters as the segmenter sees them, whatever their page of Unicode."""

from __future__ import annotations

import pytest
from hypothesis import given

from headway.text import characters
from headway.text.characters import class_of, coded

from .naive_text import texts


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
