"""Projectivisation changes as few heads as enumeration says is possible, and keeps everything else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from headway.errors import TreebankError
from headway.inference.brute_force import all_trees
from headway.treebank import Sentence, projectivise

from .strategies import trees

CLASSES = {(n, single): all_trees(n, projective=True, single_root=single) for n in range(7) for single in (True, False)}


def sentence_with(heads: tuple[int, ...]) -> Sentence:
    n = len(heads) - 1
    return Sentence.from_words(["w"] * n, heads=heads, labels=[None, *(f"l{m}" for m in range(1, n + 1))])


@pytest.mark.parametrize("single_root", [True, False])
@given(heads=trees(max_words=6))
def test_as_few_changes_as_possible(single_root: bool, heads: tuple[int, ...]) -> None:
    sentence = sentence_with(heads)
    projective = projectivise(sentence, single_root=single_root)
    candidates = CLASSES[len(sentence), single_root]
    assert projective.heads is not None
    assert (candidates == projective.heads).all(axis=1).any()
    fewest = (candidates != np.array(heads)).sum(axis=1).min()
    assert (projective.heads != np.array(heads)).sum() == fewest
    assert projective.labels == sentence.labels
    assert projective.forms == sentence.forms


@pytest.mark.parametrize("single_root", [True, False])
def test_a_tree_of_the_class_stays(single_root: bool) -> None:
    for heads in CLASSES[4, single_root]:
        sentence = sentence_with(tuple(heads.tolist()))
        assert projectivise(sentence, single_root=single_root) is sentence


def test_what_is_no_tree_is_an_error() -> None:
    with pytest.raises(TreebankError, match="cycle"):
        projectivise(sentence_with((-1, 2, 1)))
    with pytest.raises(TreebankError, match="no heads"):
        projectivise(Sentence.from_words(["w"]))
