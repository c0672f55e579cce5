"""The experiment with sentence ends by an encoder: a tiny one learns that full stops end sentences."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from headway import Sentence
from headway.treebank import write_treebank
from headway.treebank.annotations import with_first_comments

from . import tiny


@pytest.fixture(scope="module")
def experiment() -> Any:
    folder = str(Path(__file__).parents[2] / "experiments" / "english")
    sys.path.insert(0, folder)
    import neural_splitter

    sys.path.remove(folder)
    return neural_splitter


def test_a_tiny_encoder_learns_sentence_ends(experiment: Any, tmp_path: Path) -> None:
    for part, seed in (("train", 0), ("dev", 1)):
        forms = [[*sentence.forms, "."] for sentence in tiny.sentences(60, seed)]
        trees = [Sentence.from_words(words, heads=[-1, 0, *[1] * (len(words) - 1)]) for words in forms]
        marked = [with_first_comments(tree, "# newpar") if i % 3 == 0 else tree for i, tree in enumerate(trees)]
        write_treebank(marked, tmp_path / f"{part}.conllu")
    folder = tiny.folder_of("bert", tmp_path / "encoder")
    words = ["--data", tmp_path, "--encoder", folder, "--epochs", 8, "--rate", 1e-2, "--batch", 256]
    assert experiment.main(list(map(str, words))) == 100
