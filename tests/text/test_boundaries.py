"""Ends of tokens and words: features against a naive twin."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headway.text.boundaries import boundary_features
from headway.text.characters import MOST_FEATURES, PAD, characters_of

from .naive_text import NaiveText, texts


@given(texts.filter(lambda text: len(text.split()) > 0), st.data())
def test_boundary_features_are_those_of_the_naive_twin(text: str, data: st.DataObject) -> None:
    naive, squeezed = NaiveText(" ".join(text.split())), characters_of(" ".join(text.split()))
    i = data.draw(st.sampled_from([i for i in range(len(naive.text)) if not naive.is_space(i)]))
    start = data.draw(st.integers(0, i).filter(lambda start: " " not in naive.text[start:i]))
    slots = np.zeros(MOST_FEATURES, np.int64)
    count = boundary_features(squeezed, i + PAD, start + PAD, slots)
    assert slots[:count].tolist() == naive.boundary_features(i, start)
