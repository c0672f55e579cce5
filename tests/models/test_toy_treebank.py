"""The artificial language is what the tests of training take it for."""

from __future__ import annotations

from headway.treebank import is_projective, require_tree, roots

from .toy_treebank import LABELS, sentences


def test_kinds() -> None:
    plain, crossing, two_roots = sentences(30, 1, crossing=True, two_roots=True)[:3]
    trees = [require_tree(sentence) for sentence in (plain, crossing, two_roots)]
    assert [is_projective(heads) for heads in trees] == [True, False, True]
    assert [len(roots(heads)) for heads in trees] == [1, 1, 2]


def test_every_label_occurs() -> None:
    found = {label for sentence in sentences(30, 2, crossing=True) for label in (sentence.labels or ())[1:]}
    assert found == set(LABELS)


def test_new_sentences_have_new_words() -> None:
    seen = {form for sentence in sentences(40, 3) for form in sentence.forms}
    assert any(form not in seen for sentence in sentences(10, 4) for form in sentence.forms)
