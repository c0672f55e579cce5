"""Training data: what is read, what is refused, and how it is coded."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from headway.arrays import TreeClass
from headway.errors import HeadwayError, TemplateError, TrainingError, TreebankError
from headway.features.coding import Coder
from headway.training.arc_trainer import prepare_arcs
from headway.training.data import TrainingData, checksum, code_trees, root_labels, training_text, training_trees
from headway.training.settings import Settings
from headway.training.stages import Run
from headway.treebank import Sentence, is_projective, projectivise, require_tree, roots, write_treebank

from ..models.toy_treebank import sentences

LABELS = ("x", "y", "z")


def test_trees_from_files_and_from_memory(tmp_path: Path) -> None:
    text = [*sentences(5, 1, crossing=True), Sentence.from_words([], heads=[-1])]
    path = tmp_path / "toy.conllu"
    write_treebank(text[:5], path)
    read = training_trees(path, TreeClass(), "toy")
    assert [s.forms for s in read] == [s.forms for s in training_trees(iter(text), TreeClass(), "toy")]
    assert [s.forms for s in read] == [s.forms for s in text[:5]]
    assert checksum(read) == checksum(text[:5])
    with gzip.open(tmp_path / "toy.conllu.gz", "wb") as file:
        file.write(path.read_bytes().replace(b"\n", b"\r\n"))
    assert checksum(training_trees(tmp_path / "toy.conllu.gz", TreeClass(), "toy")) == checksum(read)


def test_the_checksum_knows_every_head() -> None:
    one = Sentence.from_words(["a", "b"], heads=[-1, 0, 1])
    variants = [one, one.with_tree([-1, 2, 0]), one.with_tree([-1, 0, 1], [None, "x", "y"])]
    variants.append(Sentence.from_words(["a", "c"], heads=[-1, 0, 1]))
    assert len({checksum([sentence]) for sentence in variants}) == 4
    assert len({checksum([one]), checksum([one, one]), checksum([])}) == 3


def test_several_words_on_the_root() -> None:
    text = sentences(9, 2, two_roots=True)
    with pytest.raises(
        TrainingError, match=r"^my\.conllu: 4 of 9 trees have several words on the root; .*--multi-root"
    ):
        training_trees(text, TreeClass(), "my.conllu")
    assert training_trees(text, TreeClass(single_root=False), "my.conllu") == text


@pytest.mark.parametrize("single_root", [True, False])
def test_projective_training_projectivises(single_root: bool) -> None:
    text = sentences(12, 3, crossing=True, two_roots=not single_root)
    assert any(not is_projective(require_tree(sentence)) for sentence in text)
    found = training_trees(text, TreeClass(True, single_root), "toy")
    for before, after in zip(text, found, strict=True):
        assert after.heads is not None
        assert is_projective(after.heads)
        expected = projectivise(before, single_root=single_root)
        np.testing.assert_array_equal(after.heads, expected.heads)
        assert len(roots(after.heads)) == 1 or not single_root


def test_what_no_model_can_be_trained_from(tmp_path: Path) -> None:
    for nothing in ([], [Sentence.from_words([], heads=[-1])]):
        with pytest.raises(TrainingError, match="the data: has no sentence with words"):
            training_trees(nothing, TreeClass(), "the data")
    with pytest.raises(TreebankError, match="no heads"):
        training_trees([Sentence.from_words(["a"])], TreeClass(), "the data")
    with pytest.raises(TreebankError, match="cycle"):
        training_trees([Sentence.from_words(["a", "b"], heads=[-1, 2, 1])], TreeClass(), "the data")
    with pytest.raises(HeadwayError):
        training_trees(tmp_path / "absent.conllu", TreeClass(), "the data")
    one_word = [Sentence.from_words(["a"], heads=[-1, 0])]
    with pytest.raises(TemplateError, match="no field of the templates varies"):
        prepare_arcs(TrainingData(one_word), Settings().complete(), Run())


def test_text_needs_no_trees(tmp_path: Path) -> None:
    """Files or sentences, with whatever is in the columns of heads; but some word there must be."""
    text = [Sentence.from_words(["a", "b"]), Sentence.from_words([]), Sentence.from_words(["c"], heads=[-1, 0])]
    found = training_text(iter(text), "the text")
    assert [sentence.forms for sentence in found] == [("a", "b"), ("c",)]
    path = tmp_path / "toy.conllu"
    write_treebank(sentences(5, 33, two_roots=True), path)
    assert [s.forms for s in training_text(path, "toy")] == [s.forms for s in sentences(5, 33, two_roots=True)]
    with pytest.raises(TrainingError, match=r"^my text: has no sentence with words"):
        training_text([Sentence.from_words([])], "my text")


def test_coded_trees_are_padded_with_minus_one() -> None:
    text = [
        Sentence.from_words(["a"], heads=[-1, 0], labels=[None, "y"]),
        Sentence.from_words(["a", "b"], heads=[-1, 2, 0], labels=[None, "new", "z"]),
    ]
    coded, heads, labels = code_trees(text, Coder.learn(text), LABELS)
    assert coded.lengths.tolist() == [1, 2]
    assert heads.tolist() == [[-1, 0, -1], [-1, 2, 0]]
    assert labels.tolist() == [[-1, 1, -1], [-1, 0, 2]]  # an unknown label is taken for the first
    assert code_trees(text, Coder.learn(text), ()).labels.tolist() == [[-1] * 3] * 2


def test_labels_of_the_root_alone() -> None:
    def tree(heads: list[int], *labels: str) -> Sentence:
        return Sentence.from_words(["w"] * len(labels), heads=[-1, *heads], labels=[None, *labels], partial=True)

    assert root_labels([tree([2, 0], "subj", "root"), tree([0, 1], "top", "obj")]) == ("root", "top")
    assert root_labels([tree([2, 0], "subj", "root"), tree([2, 0], "root", "root")]) == ()
    assert root_labels([tree([2, 0], "_", "_")]) == ()
    assert root_labels([tree([2, -1], "root", "_")]) == ()
    assert root_labels([Sentence.from_words(["w"])]) == ()
