"""Sentences as integers: each cell against a lookup of its own word."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import TemplateError
from headway.features.clusters import NO_CLUSTERS, Clusters
from headway.features.coding import MOST_FEATS, PADDING, Coder, shape, single_features
from headway.features.templates import FIELDS, LARGEST_OFFSET
from headway.treebank import Sentence

from .naive import OUTSIDE, ROOT, UNKNOWN, code, single, value, words_shape
from .strategies import clusters, sentences

some_sentences = st.lists(sentences(), max_size=4)


@given(some_sentences, some_sentences, clusters)
def test_every_code_is_its_words_own(seen: list[Sentence], new: list[Sentence], paths: Clusters) -> None:
    """Two columns of padding, the root, the words, two columns of padding, for each sentence in turn."""
    coder = Coder.learn(seen, paths)
    text = [*new, *seen]
    coded = coder.code(text)
    assert len(coded) == len(text)
    assert coded.lengths.tolist() == [len(sentence) for sentence in text]
    assert coder.names == FIELDS
    column = 0
    for sentence, root in zip(text, coded.roots.tolist(), strict=True):
        assert root == column + PADDING
        for node in range(-PADDING, len(sentence) + 1 + PADDING):
            expected = [code(coder, field, value(sentence, node, field, coder)) for field in FIELDS]
            assert coded.nodes.codes[:, root + node].tolist() == expected
        column += len(sentence) + 1 + 2 * PADDING
    assert coded.nodes.codes.shape == (len(FIELDS), column)


@given(some_sentences, some_sentences)
def test_features_are_a_ragged_row_a_column(seen: list[Sentence], new: list[Sentence]) -> None:
    coder = Coder.learn(seen)
    text = [*seen, *new]
    coded = coder.code(text)
    names = list(coder.feats)
    _, start, feats = coded.nodes
    found = [[names[i] for i in feats[a:b]] for a, b in pairwise(start.tolist())]
    expected: list[list[str]] = []
    for sentence in text:
        words = [single(sentence, node, coder) for node in range(1, len(sentence) + 1)]
        nothing: list[list[str]] = [[]] * PADDING
        expected += [*nothing, [], *words, *nothing]
    assert found == expected
    assert start[0] == 0
    assert start[-1] == len(feats)


def test_padding_reaches_as_far_as_templates_look() -> None:
    assert PADDING >= LARGEST_OFFSET
    assert (OUTSIDE, ROOT, UNKNOWN) == (0, 1, 2)


def test_the_empty_sentence_and_no_sentence() -> None:
    coder = Coder.learn([Sentence.from_words(["a"])])
    coded = coder.code([Sentence.from_words([]), Sentence.from_words(["a"])])
    assert coded.lengths.tolist() == [0, 1]
    assert coded.nodes.codes[0].tolist() == [0, 0, 1, 0, 0, 0, 0, 1, 3, 0, 0]
    nothing = coder.code([])
    assert len(nothing) == 0
    assert nothing.nodes.codes.shape == (len(FIELDS), 0)


def test_the_path_of_a_words_cluster_and_its_beginnings() -> None:
    """As it is written, else in lower case; a word without a path has "_" for all three."""
    paths = Clusters({"dog": "01101001", "Dog": "1110", "cat": "011011"})
    text = [Sentence.from_words(["Dog", "dog", "DOG", "Cat", "cow"])]
    coder = Coder.learn(text, paths)
    assert list(coder.fields["bits"]) == ["1110", "01101001", "011011", "_"]
    assert list(coder.fields["bits6"]) == ["1110", "011010", "011011", "_"]
    assert list(coder.fields["bits4"]) == ["1110", "0110", "_"]
    rows = dict(zip(coder.names, coder.code(text).nodes.codes.tolist(), strict=True))
    assert rows["bits"][3:8] == [3, 4, 4, 5, 6]
    assert rows["bits6"][3:8] == [3, 4, 4, 5, 6]
    assert rows["bits4"][3:8] == [3, 4, 4, 4, 5]
    assert Coder.learn(text).clusters == NO_CLUSTERS
    assert list(Coder.learn(text).fields["bits"]) == ["_"]


@given(some_sentences, some_sentences, clusters)
def test_a_saved_coder_codes_alike(seen: list[Sentence], new: list[Sentence], paths: Clusters) -> None:
    coder = Coder.learn(seen, paths)
    again = Coder.from_values({name: list(values) for name, values in coder.fields.items()}, list(coder.feats), paths)
    assert again == coder
    one, other = coder.code(new), again.code(new)
    for ours, theirs in zip(one.nodes, other.nodes, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_what_a_saved_coder_must_have() -> None:
    fields: dict[str, list[str]] = {field: [] for field in FIELDS}
    with pytest.raises(TemplateError, match="text values for the fields form, lower"):
        Coder.from_values({**fields, "more": []}, [])
    with pytest.raises(TemplateError, match="text values"):
        Coder.from_values({field: [] for field in FIELDS[1:]}, [])
    with pytest.raises(TemplateError, match="text values"):
        Coder.from_values({**fields, "form": [3]}, [])  # type: ignore[list-item]
    with pytest.raises(TemplateError, match="text values"):
        Coder.from_values(fields, [None])  # type: ignore[list-item]


def test_a_hostile_line_has_few_features() -> None:
    many = "|".join(f"f{i}" for i in range(1000))
    assert single_features(many) == [f"f{i}" for i in range(MOST_FEATS)]
    coder = Coder.learn([Sentence.from_words(["a"], feats=[many])])
    assert len(coder.code([Sentence.from_words(["a"], feats=[many])]).nodes.feats) == MOST_FEATS


@given(st.text(max_size=12))
def test_shape_is_runs_of_kinds(form: str) -> None:
    assert shape(form) == words_shape(form)


def test_shapes() -> None:
    assert [shape(form) for form in ("ABCdef", "12.5", "a-b", "", "É", "ß9")] == ["Xx", "0.0", "x.x", "", "X", "x0"]
