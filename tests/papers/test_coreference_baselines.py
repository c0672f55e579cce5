"""Clusters without learning."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_papers.coreference_baselines import BASELINES, all_singletons, head_match, one_cluster
from tests.coreference.naive_pairs import naive_mentions
from tests.coreference.toy_documents import document, head_match_documents, random_document, sentence


def test_heads_by_lemma_and_pronouns_by_form() -> None:
    rows = (
        "dogs NOUN 2 nsubj _ dog", "saw VERB 0 root _ see", "Dog PROPN 2 obj", "him PRON 2 obj _ he",
        "he PRON 2 nsubj _ he", "Him PRON 2 obj _ he", "he NOUN 2 obj",
    )  # fmt: skip
    text = document([sentence(*rows)], [(0, (word,)) for word in range(1, 8) if word != 2])
    assert head_match(text).tolist() == [0, 0, 1, 2, 1, 3]


@given(st.integers(0, 2**32 - 1))
def test_against_plain_python(seed: int) -> None:
    text = random_document(seed)
    count = len(text.mentions)
    keys: list[Hashable] = [
        m.tree[m.head].form.lower() if m.kind == "pronoun" else (m.lemma,) for m in naive_mentions(text)
    ]
    found = head_match(text)
    for i in range(count):
        for j in range(count):
            assert (found[i] == found[j]) == (keys[i] == keys[j])
    assert len(set(all_singletons(text).tolist())) == len(all_singletons(text)) == count
    assert one_cluster(text).tolist() == [0] * count


def test_where_heads_decide() -> None:
    for text in head_match_documents(4, 3):
        np.testing.assert_array_equal(text.with_clusters(head_match(text)).clusters, text.clusters)


@pytest.mark.parametrize("name", list(BASELINES))
def test_all_give_one_number_a_mention(name: str) -> None:
    for text in (random_document(1), document([sentence("a X 0 x")], [])):
        clusters = BASELINES[name](text)
        assert clusters.shape == (len(text.mentions),)
        assert text.with_clusters(clusters).mentions == text.mentions
