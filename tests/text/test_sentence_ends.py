"""Ends of sentences: features against a naive twin."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headway.text.characters import AUTO, MOST_FEATURES, PAD, characters_of
from headway.text.sentence_ends import sentence_features, tokens_in

from .naive_text import NaiveText, texts


@given(texts.filter(lambda text: len(text.split()) > 0), st.data())
def test_sentence_features_are_those_of_the_naive_twin(text: str, data: st.DataObject) -> None:
    words = text.split()
    laid = words[0] + "".join(data.draw(st.sampled_from(" \n")) + word for word in words[1:])
    naive, squeezed = NaiveText(laid), characters_of(laid, AUTO)
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
